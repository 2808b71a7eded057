"""One line for every class of which laws speak: readers, queries, mechanisms, noise laws, solvers, estimators and more.

Every law in ``tests/laws`` and every audit in ``tests/audit`` runs over these lists; a class that is on none
of them fails ``tests/laws/test_registry.py``. What the laws need to know of a query is how to make one in a
given space and how its release is laid out; the spaces and the rows that stretch it are the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import (
    DPGammaRegressor,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSurvival,
    LocalGLM,
    MarginalsRegression,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
    SQLiteLedger,
    VerticalRegression,
)
from dpregress.accounting import GDP, ZCDP, ApproxDP, Composed, Event, Ledger, PureDP, Relation, split
from dpregress.coordinates import (
    Domain,
    Exposure,
    Matrix,
    Ranges,
    ResponseScale,
    Vector,
    Weighting,
    WhitenedSpace,
    endless,
)
from dpregress.errors import NotAnswered
from dpregress.estimators.families import estimator_of
from dpregress.mechanisms import (
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Mechanism,
    Sampler,
    SecureSampler,
    SeededSampler,
    UnitVector,
)
from dpregress.mechanisms.sketching import MIXINGS, sketch_matrix
from dpregress.models import FAMILIES as OFFERED_FAMILIES
from dpregress.models import (
    BinomialFamily,
    Family,
    GammaFamily,
    GaussianFamily,
    PoissonFamily,
    contrasts,
    family_of,
    probabilities,
)
from dpregress.models.families import Distribution
from dpregress.models.links import Link
from dpregress.papers.cao2026 import PublishedRidge
from dpregress.public.coding import domain_of
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms
from dpregress.public.response import cross_weight
from dpregress.public.whitening import Start
from dpregress.queries import (
    ABSENT,
    BinnedClasses,
    BinnedResiduals,
    BinomialInformation,
    Blocks,
    CentredTables,
    ClassRemainder,
    ClippedGradient,
    ClippedScore,
    ColumnHistograms,
    Counted,
    CrossMoment,
    DevianceSums,
    ExposureHistogram,
    ExposureScore,
    FarVotes,
    MeanClassResidual,
    MeanResidual,
    ModelErrors,
    MultinomialScore,
    Norm,
    PairDistances,
    PieceInformation,
    PieceScore,
    PieceTotals,
    Predictions,
    PredictorHistogram,
    PublishedHessian,
    PublishedMoments,
    Query,
    ResidualHistogram,
    ResponseHistogram,
    RowQuery,
    RowSketch,
    ScoreRemainder,
    ScoreSquares,
    SecondMoment,
    ShortenedRows,
    TableQuery,
    UsableRowCount,
)
from dpregress.releases import DiscreteLaplaceNoise, Entrywise, Isotropic, MessageParts, NoiseLaw, UnitMessages
from dpregress.releases.block_noise import BlockNoise
from dpregress.releases.moment_noise import MomentNoise
from dpregress.releases.residual_noise import ResidualNoise
from dpregress.releases.standardised import TurnedNoise
from dpregress.rows import (
    ArraySource,
    CappedSource,
    CodedParquet,
    CodedSource,
    DaskEngine,
    Encoder,
    Engine,
    ExposedSource,
    LevelRows,
    OrderedRows,
    PrivateRows,
    PushDownEngine,
    RangedSource,
    RawRows,
    ResponseRows,
    RowMap,
    Source,
    StreamSource,
    TableSource,
    ThreadedEngine,
    WeightedSource,
    WhitenedRows,
)
from dpregress.rows.readers.base import CapsuleReader, DatasetReader, DuckDBReader, LazyFrameReader, Reader
from dpregress.rows.readers.files import CSVReader, ParquetReader
from dpregress.rows.readers.lakes import DeltaReader, IcebergReader
from dpregress.rows.readers.spark import SparkReader
from dpregress.rows.readers.sql import _ADBCReader
from dpregress.rows.readers.sqlite import SQLiteReader
from dpregress.rows.sources import reader_of
from dpregress.solvers import MultinomialSteps, OneShot, PieceSteps, Residual, ScoreSteps, Solver
from dpregress.solvers.marginals.aim import AIM
from dpregress.solvers.marginals.noisy_blocks import NoisyBlocks
from dpregress.solvers.marginals.one_shot_tables import OneShotTables
from dpregress.solvers.marginals.residual_planner import ResidualPlanner, planned
from dpregress.solvers.marginals.tables import TableSolver
from dpregress.solvers.shared.near_public import NearPublic
from dpregress.trust import Central, Local, TrustModel, TwoRounds, Vertical
from tests.laws import noise_laws
from tests.laws.noise_laws import Law

Rng = np.random.Generator

# ---------------------------------------------------------------- spaces

#: Columns of the private rows in every space: two directions to stretch, one for coefficients.
WIDTH = 3


def _whitening(rng: Rng, scale: float = 1.0) -> Matrix:
    left, right = (np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0] for _ in range(2))
    return scale * (left * np.array([0.2, 1.0, 5.0])) @ right


def _plain(rng: Rng, radius: float, response: ResponseScale, scale: float = 1.0, **more: Any) -> WhitenedSpace:
    names = tuple(f"x{i}" for i in range(WIDTH))
    response = replace(response, cross=cross_weight(min(radius, 1e6), response.bound))
    return WhitenedSpace(names, _whitening(rng, scale), radius, rng.normal(size=WIDTH), response=response, **more)


def _with_intercept(rng: Rng, radius: float, response: ResponseScale) -> WhitenedSpace:
    space = _plain(rng, radius, response)
    root, mean = space.whitening, rng.normal(size=WIDTH)
    whitening = np.block([[np.ones((1, 1)), np.zeros((1, WIDTH))], [-(root @ mean)[:, None], root]])
    return replace(space, whitening=whitening, intercept=True)


#: Kinds of spaces; each takes a generator.
SPACES: dict[str, Callable[[Rng], WhitenedSpace]] = {
    "plain": lambda rng: _plain(rng, 2.5, ResponseScale("y", scale=0.7, bound=3.0)),
    "intercept": lambda rng: _with_intercept(rng, 2.5, ResponseScale("y", -4.0, 11.0, 2.0)),
    "published": lambda rng: _plain(rng, 6.0, ResponseScale("y", scale=2.0, bound=4.0), weighting=Weighting.FEATURES),
    "small ball": lambda rng: _plain(rng, 1e-3, ResponseScale("y", 1e3, 1e-6, 0.5)),
    "large ball": lambda rng: _plain(rng, 1e4, ResponseScale("y", 0.1, 1e3, 1.0)),
    "exposure": lambda rng: replace(
        _with_intercept(rng, 2.5, ResponseScale("y", scale=0.7, bound=3.0)), exposure=Exposure("e", 1e-4, 1e5)
    ),
    "any exposure": lambda rng: _plain(
        rng, 2.5, ResponseScale("y", 0.5, 11.0, 2.0), weighting=Weighting.FEATURES, exposure=Exposure("e")
    ),
    "minute units": lambda rng: _plain(rng, 1e-3, ResponseScale("y", 0.0, 1e-3, 3.0), scale=1e20),
}

#: Spaces that differ from another in numbers alone: laws over all queries are checked in them at night.
_ALIKE = ("plain", "small ball", "large ball", "any exposure")
SPACES_BY_TIME = [pytest.param(name, marks=[pytest.mark.nightly] if name in _ALIKE else []) for name in SPACES]


def basis(space: WhitenedSpace) -> Matrix:
    """Orthonormal directions of shape (p, d) that whitened rows can take."""
    return np.linalg.qr(space.slopes)[0]


# ---------------------------------------------------------------- rows that stretch a query


def wild_rows(rng: Rng, rows: int) -> RawRows:
    """Rows of every magnitude, of a constant, and with cells that are not numbers."""
    x = rng.normal(size=(rows, WIDTH)) * 10.0 ** rng.integers(-3, 4, size=(rows, 1))
    y = rng.exponential(size=rows) * 10.0 ** rng.integers(-3, 4, size=rows)
    strange = np.array([np.nan, np.inf, -np.inf, 1e300, -1e308, 1.7e308, 5e-324, -1e-310, 0.0, 1e160, -1e75])
    hit = rng.random(x.shape) < 0.25
    x[hit] = rng.choice(strange, hit.sum())
    hit = rng.random(rows) < 0.25
    y[hit] = rng.choice(strange, hit.sum())
    constant = rng.random(rows) < 0.1
    x[constant] = rng.choice(strange, (constant.sum(), 1))
    exposure = 10.0 ** rng.integers(-3, 4, size=rows)
    hit = rng.random(rows) < 0.25
    exposure[hit] = rng.choice(np.concatenate([strange, -strange]), hit.sum())
    return RawRows(x, y, exposure=exposure)


def tame_rows(rng: Rng, space: WhitenedSpace, rows: int) -> RawRows:
    """Rows as the space expects them: about half of them inside its ball, responses within a few bounds."""
    response = space.response or ResponseScale("y", bound=1.0)
    shift = np.zeros(space.order) if space.shift is None else space.shift
    whitened = rng.normal(size=(rows, WIDTH)) * _reach(space) / math.sqrt(WIDTH)
    x = np.linalg.solve(basis(space).T @ space.slopes, (whitened - shift @ basis(space)).T).T
    y = response.centre + response.scale * response.bound * rng.normal(size=rows)
    return RawRows(x, y, exposure=rng.exponential(size=rows))


def private(rows: RawRows) -> PrivateRows:
    """Raw rows as mechanisms take them."""
    source = ArraySource(rows.x, rows.y)
    exposed = source if rows.exposure is None else ExposedSource(source, rows.exposure)
    return PrivateRows(exposed, ThreadedEngine(workers=1))


def extremal_rows(query: RowQuery[Any]) -> RawRows:
    """Rows that the row map brings to the edge: every response bound with directions at telling angles.

    Among the directions are opposite ones, orthogonal ones, and ones that make two joint rows orthogonal.
    """
    space = query.space
    bound = 1.0 if space.response is None else min(space.response.bound, 1e3)
    cross = 0.0 if space.response is None else space.response.cross
    cosine = min(1.0, (cross * bound / _reach(space)) ** 2)
    sine = math.sqrt(1 - cosine**2)
    planar = [(1, 0), (-1, 0), (0, 1), (0, -1), (cosine, sine), (-cosine, sine)]
    rows = [
        _raw_row(space, np.array([*direction, 0.0]), y) for direction in planar for y in (-bound, -0.01 * bound, bound)
    ]
    exposure = np.ones(len(rows))  # an offset of 0: they see no prediction
    rows, exposure = [*rows, rows[0], rows[0]], np.append(exposure, [1e-3, 1e3])
    y = np.array([y for _, y in rows])
    return RawRows(np.array([x for x, _ in rows]), y, exposure=exposure)


def rows_of_all_classes(query: RowQuery[Any]) -> RawRows:
    """The same rows, with every class in every direction."""
    rows = extremal_rows(query)
    return replace(rows, y=np.arange(len(rows.x)) % 3.0)


def with_an_unusable_row(query: RowQuery[Any]) -> RawRows:
    """The same rows, one of them without a response."""
    rows = extremal_rows(query)
    assert rows.y is not None
    return replace(rows, y=np.append(rows.y[:-1], np.nan))


def taken(rows: RawRows, which: Any) -> RawRows:
    """Some rows, by a slice or an array of places."""
    assert rows.y is not None
    return RawRows(rows.x[which], rows.y[which], exposure=None if rows.exposure is None else rows.exposure[which])


def joined(*parts: RawRows) -> RawRows:
    """Rows one after the other."""
    x, y, exposure = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y", "exposure"))
    return RawRows(x, y, exposure=exposure)


def _reach(space: WhitenedSpace) -> float:
    return space.radius if math.isfinite(space.radius) else 1e3


def _raw_row(space: WhitenedSpace, direction: Vector, response: float) -> tuple[Vector, float]:
    """A raw row far outside the ball that is mapped onto ``radius * direction``, with this response."""
    # a constant column cannot be turned away from; next to a huge row it vanishes
    shift = np.zeros(space.order) if space.shift is None else space.shift
    size = 10 * _reach(space) + 1e8 * float(np.linalg.norm(shift))
    x = np.linalg.lstsq(space.slopes, size * (basis(space) @ direction), rcond=None)[0]
    weight = min(1.0, space.radius / float(np.linalg.norm(space.slopes @ x + shift)))
    if space.weighting is Weighting.FEATURES:
        weight = 1.0
    scale = space.response or ResponseScale("y")
    return x, scale.centre + scale.scale * response / weight


#: Row maps of coded rows, each made from a domain; tests/laws/test_coded.py.
CODED_ROW_MAPS: tuple[type[RowMap], ...] = (LevelRows,)
#: Row maps, each made from a space.
ROW_MAPS: tuple[Callable[[WhitenedSpace], RowMap], ...] = (WhitenedRows, ResponseRows, OrderedRows)

# ---------------------------------------------------------------- queries

#: Distances in the norms of queries, as scipy calls them.
METRICS = {Norm.L1: "cityblock", Norm.L2: "euclidean", Norm.LINF: "chebyshev"}


def symmetric(total: Matrix) -> Vector:
    """Independent entries of a symmetric release, scaled to equal noise: written here a second time on purpose."""
    assert np.array_equal(total, total.T)
    order = len(total)
    return np.array([total[i, j] * (1.0 if i == j else math.sqrt(2)) for i in range(order) for j in range(i, order)])


def triangle(total: Matrix) -> Vector:
    """Entries on and above the diagonal as they stand: the published layout."""
    assert np.array_equal(total, total.T)
    return np.array([total[i, j] for i in range(len(total)) for j in range(i, len(total))])


def plain(total: Vector) -> Vector:
    """A vector as it stands."""
    return total


def _coef(space: WhitenedSpace, rng: Rng) -> Vector:
    """Coefficients orthogonal to the directions of :func:`extremal_rows`, so that these see no prediction."""
    shift = np.zeros((space.order, 0)) if space.shift is None else space.shift[:, None]
    stretched = np.linalg.qr(np.hstack([basis(space)[:, :2], shift]))[0]
    coef = 10 * rng.normal(size=space.order)
    return coef - stretched @ (stretched.T @ coef)


def _bound(space: WhitenedSpace) -> float:
    assert space.response is not None
    return space.response.bound


_EDGES = 2.0 ** np.arange(-30.0, 13.0)


#: Every distribution with every link that is offered, as the package's own table has them.
FAMILIES = tuple(family for offered in OFFERED_FAMILIES.values() for family in offered)
DISTRIBUTIONS: tuple[Distribution, ...] = tuple(offered[0].distribution for offered in OFFERED_FAMILIES.values())
LINKS: tuple[Link, ...] = tuple(dict.fromkeys(family.link for family in FAMILIES))


def _score(family: Family, space: WhitenedSpace, rng: Rng) -> ClippedScore:
    return ClippedScore(space, family, _coef(space, rng), 0.8 * _bound(space))


def _mixture(mixing: str, space: WhitenedSpace, rng: Rng) -> RowSketch:
    return RowSketch(space, sketch_matrix(mixing, 1000, 9, rng.bytes(32)))


def _classes(space: WhitenedSpace) -> WhitenedSpace:
    """The space of a response in {0, 1, 2}, with a bound for the rows that are made in it."""
    return space.with_response(ResponseScale("y", bound=2.0))


def _multinomial_score(space: WhitenedSpace, rng: Rng) -> MultinomialScore:
    """The rows that stretch it are shrunk into the ball by up to 1e-9, and their residuals with them."""
    return MultinomialScore(_classes(space), np.column_stack([_coef(space, rng), _coef(space, rng)]), clip=1e-13)


def _class_remainder(space: WhitenedSpace, rng: Rng) -> ClassRemainder:
    """Longer than the bound for rows at the edge."""
    return ClassRemainder(_multinomial_score(space, rng), 1e-4 * space.radius)


def _squares(space: WhitenedSpace, rng: Rng) -> ScoreSquares:
    """Scores of rows at the edge are twice as long as the bound."""
    clip = 0.8 * _bound(space)
    return ScoreSquares(ClippedScore(space, GaussianFamily, _coef(space, rng), clip), 0.5 * space.radius * clip)


def _remainder(family: Family, space: WhitenedSpace, rng: Rng) -> ScoreRemainder:
    """What little remains of rows at the edge is longer than the bound."""
    score = ClippedScore(space, family, _coef(space, rng), 0.1 * _bound(space))
    return ScoreRemainder(score, 1e-4 * space.radius * _bound(space))


def _gradient(family: Family, space: WhitenedSpace, rng: Rng) -> ClippedGradient:
    """Shorter than the gradients of rows at the edge."""
    return ClippedGradient(space, family, _coef(space, rng), 0.5 * space.radius * _bound(space))


def _remainder_of_gradients(space: WhitenedSpace, rng: Rng) -> ScoreRemainder:
    gradient = ClippedGradient(space, GaussianFamily, _coef(space, rng), 0.1 * space.radius * _bound(space))
    return ScoreRemainder(gradient, 1e-4 * space.radius * _bound(space))


def _histograms(space: WhitenedSpace, rng: Rng) -> ColumnHistograms:  # noqa: ARG001
    """Of all columns between -2 and 2, with missing cells far beyond."""
    d, first = len(space.features), int(space.intercept)
    whitening = np.eye(d + first)
    whitening[first:, first:] /= 2
    plain = replace(space, whitening=whitening, radius=math.inf, fill=np.full(d, 4 * ABSENT), exposure=None)
    return ColumnHistograms(plain, range(d), np.linspace(-1, 1, 9))


def _beyond_all_edges(query: RowQuery[Any]) -> RawRows:
    """Two rows that share no bin, and one of missing cells."""
    d = len(query.space.features)
    return RawRows(np.array([[-3.0] * d, [3.0] * d, [np.nan] * d]), np.zeros(3), exposure=np.ones(3))


def _squares_of_wholes(space: WhitenedSpace, rng: Rng) -> ScoreSquares:
    return ScoreSquares(_remainder(GaussianFamily, space, rng), 0.05 * space.radius * _bound(space))


def _squares_of_gradients(space: WhitenedSpace, rng: Rng) -> ScoreSquares:
    return ScoreSquares(_gradient(GaussianFamily, space, rng), 0.25 * space.radius * _bound(space))


def _squares_of_classes(space: WhitenedSpace, rng: Rng) -> ScoreSquares:
    score = _multinomial_score(space, rng)
    return ScoreSquares(score, 0.5 * space.radius * score.clip)


def _squares_of_class_remainders(space: WhitenedSpace, rng: Rng) -> ScoreSquares:
    remainder = _class_remainder(space, rng)
    return ScoreSquares(remainder, 0.5 * remainder.bound)


def _mean_class_residual(space: WhitenedSpace, _: Rng) -> MeanClassResidual:
    """Rows far along the first direction are predicted to be of class 0, far against it of class 1."""
    towards = contrasts(3).T @ [1.0, -1.0, 0.0]
    return MeanClassResidual(_classes(space), np.outer(basis(space)[:, 0], 1e6 * towards))


#: Bins of predictors, between rows at either end of the first direction.
_SPLIT = np.array([-0.5, 0.0, 0.5])


def _along(space: WhitenedSpace) -> Vector:
    """Coefficients of which rows at either end of the first direction have predictors of 1 and -1."""
    return basis(space)[:, 0] / _reach(space)


def _deviances(family: Family, space: WhitenedSpace, _: Rng) -> DevianceSums:
    bounds = {"deviance": (0.0, 3.0), "null": (0.0, 2.0), "saturated": (-4.0, 0.5)}
    return DevianceSums(space, family, _along(space), 0.3, 0.8, bounds)


_CUTS = (0.5, 1.0, 4.0)


def _timed(space: WhitenedSpace) -> WhitenedSpace:
    """The space of persons with a time."""
    return replace(space, exposure=Exposure("time"))


def _hazards(space: WhitenedSpace, rng: Rng) -> Vector:
    return np.append(3 * _along(space), rng.normal(size=len(_CUTS) - 1))


@dataclass(frozen=True)
class QueryEntry:
    """A kind of query: how to make one in a space, the entries of its release in which the noise is equal, and rows
    that stretch it.
    """

    name: str
    make: Callable[[WhitenedSpace, Rng], RowQuery[Any]]
    layout: Callable[[Any], Vector] = plain
    extremes: Callable[[RowQuery[Any]], RawRows] = extremal_rows

    def __str__(self) -> str:
        return self.name


QUERIES = (
    QueryEntry("second moment", lambda f, _: SecondMoment(f.with_response(None)), symmetric),
    QueryEntry("joint second moment", lambda f, _: SecondMoment(f), symmetric),
    QueryEntry("counted second moment", lambda f, _: Counted(SecondMoment(f.with_response(None))), symmetric),
    QueryEntry(
        "counted mean residual",
        lambda f, r: Counted(MeanResidual(f, GaussianFamily, _coef(f, r), -0.8 * _bound(f), 0.8 * _bound(f))),
    ),
    QueryEntry("Gaussian Hessian", lambda f, r: PublishedHessian(f, GaussianFamily, _coef(f, r), 1.0), triangle),
    QueryEntry("Binomial Hessian", lambda f, r: PublishedHessian(f, BinomialFamily, _coef(f, r), 0.25), triangle),
    QueryEntry("Poisson Hessian", lambda f, r: PublishedHessian(f, PoissonFamily, _coef(f, r), 3.0), triangle),
    QueryEntry("Gaussian score", lambda f, r: ClippedScore(f, GaussianFamily, _coef(f, r), 0.8 * _bound(f))),
    QueryEntry("Binomial score", lambda f, r: ClippedScore(f, BinomialFamily, _coef(f, r), 0.8 * _bound(f))),
    QueryEntry("cross moment and mean", lambda f, _: CrossMoment(f, MessageParts(first=0.5))),
    QueryEntry("cross moment and products", lambda f, _: CrossMoment(f, MessageParts(gram=0.125))),
    QueryEntry("moments in parts", lambda f, _: CrossMoment(f, MessageParts(0.25, 0.75, 5, 0.125))),
    QueryEntry("Gaussian gradient", partial(_gradient, GaussianFamily)),
    QueryEntry("Binomial gradient", lambda f, r: ClippedGradient(f, BinomialFamily, _coef(f, r), 1e-4)),
    QueryEntry("gradient within two radii", lambda f, r: ClippedGradient(f, GaussianFamily, _coef(f, r), 1e-4, 2.0)),
    QueryEntry(
        "unbounded gradient",
        lambda f, r: ClippedGradient(replace(f, radius=math.inf), GaussianFamily, _coef(f, r), 1e-4),
    ),
    *(
        QueryEntry(f"{family.distribution.name} {family.link.name} score", partial(_score, family))
        for family in FAMILIES
        if family not in (GaussianFamily, BinomialFamily)
    ),
    QueryEntry(
        "mean residual",
        lambda f, r: MeanResidual(f, GaussianFamily, _coef(f, r), -0.3 * _bound(f), 0.8 * _bound(f)),
    ),
    QueryEntry("Poisson mean residual", lambda f, r: MeanResidual(f, PoissonFamily, _coef(f, r), -1e-4, 1e-5)),
    QueryEntry("Gamma mean residual", lambda f, r: MeanResidual(f, GammaFamily, _coef(f, r), -2.0, 3.0)),
    QueryEntry(
        "probit mean residual", lambda f, r: MeanResidual(f, family_of("binomial", "probit"), _coef(f, r), -1e-4, 1e-5)
    ),
    *(QueryEntry(f"{name} mixture", partial(_mixture, name)) for name in MIXINGS),
    QueryEntry("residual histogram", lambda f, r: ResidualHistogram(f, GaussianFamily, _coef(f, r), _EDGES)),
    QueryEntry("Gamma residual histogram", lambda f, r: ResidualHistogram(f, GammaFamily, _coef(f, r), _EDGES)),
    QueryEntry("published moments", lambda f, _: PublishedMoments(f)),
    QueryEntry("predictions", lambda f, _: Predictions(f, 2 * basis(f)[:, 0] / _reach(f), 120)),
    QueryEntry("multinomial score", _multinomial_score, extremes=rows_of_all_classes),
    QueryEntry("multinomial remainder", _class_remainder, extremes=rows_of_all_classes),
    QueryEntry("Gaussian remainder", partial(_remainder, GaussianFamily)),
    QueryEntry("Poisson remainder", partial(_remainder, PoissonFamily)),
    QueryEntry("remainder of gradients", _remainder_of_gradients),
    QueryEntry("squares of scores", _squares, symmetric),
    QueryEntry("squares of whole scores", _squares_of_wholes, symmetric),
    QueryEntry("squares of gradients", _squares_of_gradients, symmetric),
    QueryEntry("squares of multinomial scores", _squares_of_classes, symmetric, rows_of_all_classes),
    QueryEntry("squares of whole multinomial scores", _squares_of_class_remainders, symmetric, rows_of_all_classes),
    QueryEntry("information of classes", lambda f, r: BinomialInformation(f, _coef(f, r)), symmetric),
    QueryEntry("mean class residual", _mean_class_residual, extremes=rows_of_all_classes),
    QueryEntry(
        "exposure histogram", lambda f, _: ExposureHistogram(replace(f, exposure=Exposure("e", 1e-2, 1e7)), _EDGES)
    ),
    QueryEntry(
        "exposure score",
        lambda f, _: ExposureScore(replace(f, exposure=Exposure("e", 1e-2, 1e7)), 0.5, 0.8 * min(_bound(f), 5.0)),
    ),
    QueryEntry("response histogram", lambda f, _: ResponseHistogram(f, _EDGES)),
    QueryEntry("histograms of columns", _histograms, extremes=_beyond_all_edges),
    QueryEntry("histogram of predictors", lambda f, _: PredictorHistogram(f, GaussianFamily, _along(f), _SPLIT)),
    QueryEntry("classes by prediction", lambda f, _: BinnedClasses(f, BinomialFamily, _along(f), _SPLIT)),
    QueryEntry(
        "residuals by prediction",
        lambda f, _: BinnedResiduals(f, GaussianFamily, _along(f), _SPLIT, 0.1 * _bound(f)),
    ),
    QueryEntry(
        "Gamma residuals by prediction",
        lambda f, _: BinnedResiduals(f, GammaFamily, _along(f), _SPLIT, 2.0),
    ),
    *(
        QueryEntry(f"{family.distribution.name} deviances", partial(_deviances, family))
        for family in (GaussianFamily, PoissonFamily, GammaFamily)
    ),
    QueryEntry("binomial deviances", partial(_deviances, BinomialFamily), extremes=rows_of_all_classes),
    QueryEntry("events by piece", lambda f, _: PieceTotals(_timed(f), _CUTS)),
    QueryEntry("score of pieces", lambda f, r: PieceScore(_timed(f), _CUTS, _hazards(f, r), 0.7)),
    QueryEntry(
        "information of pieces", lambda f, r: PieceInformation(_timed(f), _CUTS, _hazards(f, r), 0.7), symmetric
    ),
    QueryEntry("shortened rows", lambda f, _: ShortenedRows(f), extremes=with_an_unusable_row),
    QueryEntry("votes of far rows", lambda f, r: FarVotes(f, _coef(f, r), 0.5 * _bound(f) / _reach(f), 2.0)),
    QueryEntry("usable rows", lambda f, _: UsableRowCount(f), extremes=with_an_unusable_row),
)

# ---------------------------------------------------------------- coded rows: domains, queries, mechanisms


def _domain(sizes: tuple[int, ...], numeric: tuple[int, ...]) -> Domain:
    names = tuple(f"c{j}" for j in range(len(sizes)))
    levels = {name: range(size) for name, size in zip(names, sizes, strict=True)}
    return domain_of(Schema.from_levels(levels, numeric=[names[j] for j in numeric]))


#: Public domains of coded tables.
DOMAINS = {
    "classes": _domain((2, 3, 5), ()),
    "mixed": _domain((4, 2, 7, 3), (0, 2)),
    "numbers": _domain((5, 9, 2), (0, 1, 2)),
}


def coded_rows(rng: Rng, domain: Domain, rows: int) -> RawRows:
    """Codes of every kind: declared, at both ends, and cells that are none."""
    sizes = np.array(domain.sizes)
    x = rng.integers(0, sizes, size=(rows, len(sizes))).astype(np.float64)
    ends = rng.random(rows) < 0.3
    x[ends] = np.where(rng.random((ends.sum(), 1)) < 0.5, 0, sizes - 1)
    strange = np.array([np.nan, np.inf, -np.inf, -1.0, 1e300, 0.5, 1e9, -1e-310])
    hit = rng.random(x.shape) < 0.1
    x[hit] = rng.choice(strange, hit.sum())
    return RawRows(x, None)


@dataclass(frozen=True)
class CodedEntry:
    """A query over coded rows."""

    name: str
    make: Callable[[Domain, Rng], TableQuery[Any]]
    #: Whether some row moves it by 99% of its sensitivity whatever its public reference is.
    reached: bool = True

    @property
    def norm(self) -> Norm:
        return self.make(DOMAINS["mixed"], np.random.default_rng(0)).norm

    def __str__(self) -> str:
        return self.name


def _weighted_blocks(domain: Domain, rng: Rng) -> Blocks:
    return Blocks(domain, domain.pairs, np.exp(rng.normal(size=len(domain.pairs))).tolist())


def _sums(domain: Domain, rng: Rng) -> Blocks:
    cliques = [(), (0,), *domain.own_pairs]
    return Blocks(domain, cliques, np.exp(rng.normal(size=len(cliques))).tolist())


def _references(domain: Domain, rng: Rng) -> dict[tuple[int, ...], Matrix]:
    shapes = {(j, k): [len(domain.attributes[a].columns) for a in (j, k)] for j, k in domain.pairs}
    return {pair: rng.normal(size=shape) * rng.choice([0.0, 10.0]) for pair, shape in shapes.items()}


def _model_errors(domain: Domain, rng: Rng) -> ModelErrors:
    sizes = domain.sizes
    models = {clique: rng.exponential(size=[sizes[j] for j in clique]) for clique in [(0,), *domain.pairs]}
    return ModelErrors(domain, models, rng.uniform(1, 5, len(models)).tolist(), rng.normal(size=len(models)).tolist())


CODED_QUERIES = (
    CodedEntry("one-way tables", lambda d, _: Blocks(d, [(j,) for j in range(len(d.attributes))])),
    CodedEntry("rows, sums and a table", _sums),
    CodedEntry("weighted blocks", _weighted_blocks),
    CodedEntry("pair distances", lambda d, r: PairDistances(d, _references(d, r)), reached=False),
    CodedEntry("model errors", _model_errors, reached=False),
    CodedEntry("centred tables", lambda d, _: CentredTables(d, planned(d))),
)


@dataclass(frozen=True)
class TableSolverEntry:
    """A method that estimates marginals, and how to make one within a budget."""

    kind: type[TableSolver]
    make: Callable[[Domain, float], tuple[Event, TableSolver]]

    def __str__(self) -> str:
        return self.kind.__name__


TABLE_SOLVERS = (
    TableSolverEntry(OneShotTables, lambda d, mu: (GDP(mu), OneShotTables(d, GDP(mu), 0))),
    TableSolverEntry(ResidualPlanner, lambda d, mu: (GDP(mu), ResidualPlanner(d, GDP(mu), 0))),
    TableSolverEntry(NoisyBlocks, lambda d, mu: (GDP(mu), NoisyBlocks(d, GDP(mu)))),
    TableSolverEntry(AIM, lambda d, mu: (ZCDP(mu**2 / 2), AIM(d, ZCDP(mu**2 / 2)))),
)

# ---------------------------------------------------------------- mechanisms, trust models, ledgers, events


@dataclass(frozen=True)
class MechanismEntry:
    """A kind of mechanism: what it spends at a strength mu or epsilon, one that spends it, and the law of its noise."""

    kind: type[Mechanism]
    spend: Callable[[float], Any]
    law: Law
    #: How many releases show the law.
    releases: int = 400
    #: Whether it adds noise to the answer, by one call of the sampler.
    additive: bool = True

    def make(self, strength: float) -> Any:
        kind: Any = self.kind
        return kind(self.spend(strength))

    def answers(self, entry: QueryEntry) -> bool:
        """Whether it answers this kind of query."""
        rng = np.random.default_rng(0)
        query = entry.make(SPACES["plain"](rng), rng)
        return self._accepts(query, private(tame_rows(rng, query.space, 5)))

    def answered_by(self, trust: TrustModel, query: Query[Any], rows: PrivateRows) -> bool:
        """Whether this trust model picks it for this query, and it does not refuse."""
        spend = self.spend(1.0)
        picked = (query.norm, type(spend)) in trust.mechanisms and trust.mechanism(query, spend, rows)
        return isinstance(picked, self.kind) and self._accepts(query, rows)

    def _accepts(self, query: Query[Any], rows: PrivateRows) -> bool:
        try:
            self.make(1.0).check(query, rows, Relation.REPLACE_ONE)
        except NotAnswered:
            return False
        return True

    def __str__(self) -> str:
        return self.kind.__name__


def _choice(epsilon: float) -> ZCDP:
    """What the exponential mechanism costs at this epsilon."""
    return ZCDP(epsilon**2 / 8)


MECHANISMS = (
    MechanismEntry(Gaussian, GDP, noise_laws.normal),
    MechanismEntry(DiscreteLaplace, PureDP, noise_laws.whole_numbers, releases=4000),
    MechanismEntry(UnitVector, PureDP, noise_laws.unit_messages, releases=10, additive=False),
    MechanismEntry(Exponential, _choice, noise_laws.choices, releases=2000, additive=False),
)


def gaussian() -> MechanismEntry:
    """The mechanism of most laws about queries."""
    return next(entry for entry in MECHANISMS if entry.kind is Gaussian)


SAMPLERS: dict[str, Callable[[Rng], Sampler]] = {
    "secure": lambda _: SecureSampler(),
    "seeded": SeededSampler,
}

#: Laws of the noise on a symmetric matrix of order 3, or on any vector.
NOISE_LAWS: tuple[NoiseLaw, ...] = (
    Isotropic(0.7),
    UnitMessages(1.3, 0.4),
    DiscreteLaplaceNoise((2.5,)),
    Entrywise.of_scales(np.array([[1.0, 0.5, 0.2], [0.5, 2.0, 0.1], [0.2, 0.1, 0.3]])),
    ResidualNoise(
        DOMAINS["classes"], {(): 1.0, (0,): 0.5, (1,): 2.0, (2,): 0.3, (0, 1): 1.0, (0, 2): 0.7, (1, 2): 0.2}, (0, 1, 3)
    ),
    TurnedNoise(Isotropic(0.7), np.array([[1.0, 0.0, 0.0], [-0.5, 2.0, 0.0], [0.3, 0.0, 4.0]])),
    MomentNoise(
        DOMAINS["classes"], {(): 1.0, (0,): 0.5, (1,): 2.0, (2,): 0.3, (0, 1): 1.0, (0, 2): 0.7, (1, 2): 0.2}, (0, 1, 3)
    ),
    BlockNoise(DOMAINS["classes"], {(0,): 0.5, (1,): 2.0, (2,): 0.3, (0, 1): 1.0, (0, 2): 0.7, (1, 2): 0.2}, (0, 1, 3)),
)


@dataclass(frozen=True)
class TrustEntry:
    """A trust model, and how many draws of noise add up in a release over n rows."""

    make: Callable[[], TrustModel]
    draws: Callable[[int], int]

    def __str__(self) -> str:
        return type(self.make()).__name__


TRUST = (
    TrustEntry(Central, lambda n: 1),  # noqa: ARG005 - one draw whatever n is
    TrustEntry(Local, lambda n: n),
    TrustEntry(TwoRounds, lambda n: n),
    TrustEntry(Vertical, lambda n: 1),  # noqa: ARG005 - one draw whatever n is
)


@dataclass(frozen=True)
class LedgerEntry:
    """A kind of ledger and how to open a budget in an empty folder."""

    kind: type[Ledger]
    open: Callable[[Path, Event, Relation], Ledger]

    def __str__(self) -> str:
        return self.kind.__name__


LEDGERS = (
    LedgerEntry(MemoryLedger, lambda folder, budget, of: MemoryLedger(budget, folder.name, relation=of)),
    LedgerEntry(SQLiteLedger, lambda folder, budget, of: SQLiteLedger.create(folder / "l", "a", budget, relation=of)),
)

EVENTS: tuple[Event, ...] = (
    GDP(0.7),
    ZCDP(0.3),
    PureDP(1.2),
    ApproxDP(1.5, 1e-6),
    Composed.of((GDP(0.7), GDP(0.2), PureDP(0.1))),
)

# ---------------------------------------------------------------- solvers


@dataclass(frozen=True)
class SolverEntry:
    """A solver, made so that nothing is clipped: the space's radius and the public labels are very large.

    Solvers that are not of linear models have their limits in tests/solvers.
    """

    kind: type[Solver]
    make: Callable[[PublicMoments, WhitenedSpace, int, GDP, float], Solver]
    linear: bool = True

    def __str__(self) -> str:
        return self.kind.__name__


def _one_shot(public: PublicMoments, space: WhitenedSpace, n: int, budget: GDP, alpha: float) -> Solver:
    return OneShot(PublicFacts(n, "y", Start(space, refinements=0), public, None), budget, alpha)


def _residual(public: PublicMoments, space: WhitenedSpace, n: int, budget: GDP, alpha: float) -> Solver:
    """With public labels so large that the prior is worth nothing, and rows as long as the space's radius."""
    norms = replace(RowNorms.of(public, space, refined=False), median=space.radius)
    return Residual(PublicFacts(n, "y", Start(space, refinements=0), public, None), budget, alpha, norms)


def _residual_unlabelled(public: PublicMoments, space: WhitenedSpace, n: int, budget: GDP, alpha: float) -> Solver:
    return _residual(public.unlabelled(), space, n, budget, alpha)


def _near_public(public: PublicMoments, space: WhitenedSpace, n: int, budget: GDP, alpha: float) -> Solver:
    cost, left = split(budget, (0.005, 0.995))
    solvers = (make(public, space, n, left, alpha) for make in (_residual, _residual_unlabelled))
    return NearPublic(ShortenedRows(space.with_response(ResponseScale("y"))), cost, n, *solvers)


def _published_ridge(_: PublicMoments, space: WhitenedSpace, n: int, budget: GDP, alpha: float) -> Solver:
    return PublishedRidge(space.with_response(ResponseScale("y", bound=1e6)), budget, alpha / n)


def _score_steps(public: PublicMoments, space: WhitenedSpace, n: int, budget: GDP, alpha: float) -> Solver:
    """With a public prior of no slopes, worth nothing beside steps without noise; rows as long as the radius."""
    assert public.rows is not None
    public = PublicMoments.from_rows(np.repeat(public.rows, 2, axis=0), np.tile([-1e6, 1e6], public.n))
    facts = PublicFacts(n, "y", Start(space, refinements=0), public, None)
    norms = replace(RowNorms.of(public, space, refined=False), median=space.radius)
    return ScoreSteps(facts, GaussianFamily, budget, alpha, steps=(1.0,) * 8, norms=norms)


def _multinomial_steps(public: PublicMoments, space: WhitenedSpace, n: int, budget: GDP, alpha: float) -> Solver:
    return MultinomialSteps(
        PublicFacts(n, "y", Start(space, refinements=0), public.unlabelled(), None), 3, budget, alpha
    )


def _piece_steps(public: PublicMoments, space: WhitenedSpace, n: int, budget: GDP, _: float) -> Solver:
    facts = PublicFacts(n, "y", Start(space, refinements=0), public.unlabelled(), None, Exposure("time"))
    return PieceSteps(facts, _CUTS, budget)


SOLVERS = (
    SolverEntry(OneShot, _one_shot),
    SolverEntry(Residual, _residual),
    SolverEntry(Residual, _residual_unlabelled),
    SolverEntry(NearPublic, _near_public),
    SolverEntry(PublishedRidge, _published_ridge),
    SolverEntry(ScoreSteps, _score_steps),
    SolverEntry(MultinomialSteps, _multinomial_steps, linear=False),
    SolverEntry(PieceSteps, _piece_steps, linear=False),
)

# ---------------------------------------------------------------- estimators


def linear_data(rng: Rng, n: int = 900) -> tuple[Matrix, Vector]:
    """Private rows for a linear model."""
    x = rng.uniform(-1, 1, size=(n, WIDTH))
    return x, x @ np.arange(1.0, WIDTH + 1) + rng.normal(size=n)


#: How responses of each family are drawn, given their means and the dispersion.
DRAWS: dict[str, Callable[[Rng, Vector, float], Vector]] = {
    "gaussian": lambda rng, mean, dispersion: rng.normal(mean, math.sqrt(dispersion)),
    "binomial": lambda rng, mean, _: rng.binomial(1, mean).astype(np.float64),
    "poisson": lambda rng, mean, _: rng.poisson(mean).astype(np.float64),
    "gamma": lambda rng, mean, dispersion: rng.gamma(1 / dispersion, mean * dispersion),
    "inverse-gaussian": lambda rng, mean, dispersion: rng.wald(mean, 1 / dispersion),
}


def responses(family: Family, mean: Vector, rng: Rng, dispersion: float = 0.5) -> Vector:
    """Random responses of a family with these means."""
    return DRAWS[family.distribution.name](rng, mean, dispersion)


def glm_data(family: str, rng: Rng, n: int = 900) -> tuple[Matrix, Vector]:
    """Private rows for a generalised linear model with its default link."""
    x = rng.uniform(-1, 1, size=(n, WIDTH))
    return x, responses(family_of(family), family_of(family).mean(x @ np.linspace(-0.5, 1.0, WIDTH)), rng)


def class_data(rng: Rng, n: int = 900) -> tuple[Matrix, Vector]:
    """Private rows of three classes."""
    x = rng.uniform(-1, 1, size=(n, WIDTH))
    chances = probabilities(x @ np.linspace(-1.0, 1.5, 2 * WIDTH).reshape(WIDTH, 2), contrasts(3))
    return x, (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).astype(np.float64)


Data = Callable[..., tuple[Matrix, Vector]]


def _public(rng: Rng, m: int = 60, data: Data = linear_data) -> PublicMoments:
    return PublicMoments.from_rows(*data(rng, m))


def _schema(*names: str) -> Schema:
    return Schema({name: Numeric(-20, 20) if name == "y" else Numeric(-1, 1) for name in names})


#: Every combination of public facts that leads a linear estimator down another path; parameters of the call.
LINEAR: dict[str, Callable[[Rng], dict[str, Any]]] = {
    "labelled public rows": lambda rng: {"public": _public(rng)},
    "unlabelled public rows": lambda rng: {"public": _public(rng).unlabelled()},
    "few public rows": lambda rng: {"public": _public(rng, 2 * WIDTH)},
    "public rows and bounds of y": lambda rng: {"public": _public(rng).unlabelled(), "schema": _schema("y")},
    "a schema": lambda _: {"schema": _schema("x0", "x1", "x2", "y"), "fit_intercept": False},
    "a row bound": lambda _: {"row_bound": 2.0},
    "the one-shot recipe": lambda rng: {"public": _public(rng), "recipe": "one-shot"},
    "the paper's recipe": lambda rng: {"public": _public(rng), "recipe": "paper"},
}


def _scored(data: Data, **more: Any) -> dict[str, Callable[[Rng], dict[str, Any]]]:
    """The same for a generalised linear model."""
    return {
        "labelled public rows": lambda rng: {"public": _public(rng, data=data), **more},
        "unlabelled public rows": lambda rng: {"public": _public(rng, data=data).unlabelled(), **more},
        "few public rows": lambda rng: {"public": _public(rng, 2 * WIDTH, data).unlabelled(), **more},
        "few labelled public rows": lambda rng: {"public": _public(rng, 2 * WIDTH, data), **more},
        "a schema": lambda _: {"schema": _schema("x0", "x1", "x2"), "fit_intercept": False, **more},
        "a row bound": lambda _: {"row_bound": 2.0, **more},
    }


@dataclass(frozen=True)
class EstimatorEntry:
    """An estimator under one set of public facts."""

    kind: type[Any]
    setting: str
    facts: Callable[[Rng], dict[str, Any]]
    data: Callable[[Rng], tuple[Matrix, Vector]]

    def make(self, rng: Rng, **parameters: Any) -> Any:
        return self.kind(**{**self.facts(rng), **parameters})

    def __str__(self) -> str:
        return f"{self.kind.__name__} with {self.setting}"


def _settings(kind: type[Any], settings: dict[str, Any], data: Data) -> Iterator[EstimatorEntry]:
    for setting, facts in settings.items():
        yield EstimatorEntry(kind, setting, facts, data)


def _scored_settings(kind: type[Any], distribution: str, **more: Any) -> Iterator[EstimatorEntry]:
    data = partial(glm_data, distribution)
    prefix = f"{distribution}, " if more else ""
    yield from _settings(kind, {prefix + setting: facts for setting, facts in _scored(data, **more).items()}, data)


ESTIMATORS = (
    *_settings(DPLinearRegression, LINEAR, linear_data),
    *_settings(DPRidge, LINEAR, linear_data),
    *(
        entry
        for name in OFFERED_FAMILIES
        if estimator_of(name) in (DPGLMRegressor, DPRidge)
        for entry in _scored_settings(DPGLMRegressor, name, family=name)
    ),
    *_scored_settings(DPPoissonRegressor, "poisson"),
    *_scored_settings(DPGammaRegressor, "gamma"),
    *_scored_settings(DPLogisticRegression, "binomial"),
    *_settings(
        DPLogisticRegression,
        {f"three classes, {name}": facts for name, facts in _scored(class_data, classes=(0, 1, 2)).items()},
        class_data,
    ),
)


# ---------------------------------------------------------------- every estimator, whoever holds the rows


@dataclass(frozen=True)
class FitEntry:
    """An estimator of any trust model, and a fit of it whose rows are drawn at random.

    ``fit`` takes a ledger or None, and parameters of the estimator.
    """

    kind: type[Any]
    fit: Callable[..., Any]
    #: A ledger of the right kind.
    ledger: Callable[[Event], Ledger] = MemoryLedger

    def __str__(self) -> str:
        return self.kind.__name__


def _fit_central(entry: EstimatorEntry, rng: Rng, ledger: Ledger | None = None, **more: Any) -> Any:
    return entry.make(rng, privacy=ApproxDP(1.0, 1e-5), ledger=ledger, **more).fit(*entry.data(rng))


def survival_data(rng: Rng, n: int = 900) -> tuple[Matrix, Vector, Vector]:
    """Features, events and times of persons, with hazards that rise with the time."""
    x = rng.uniform(-1, 1, size=(n, WIDTH))
    life = rng.weibull(1.5, n) * np.exp(-x @ np.linspace(-0.5, 1.0, WIDTH) / 1.5)
    end = rng.uniform(0, 3, n)
    return x, (life <= end).astype(np.float64), np.minimum(life, end)


def _fit_survival(rng: Rng, ledger: Ledger | None = None, **more: Any) -> Any:
    x, event, time = survival_data(rng)
    public = PublicMoments.from_rows(x[:60])
    model = DPSurvival(ApproxDP(1.0, 1e-5), cuts=_CUTS, public=public, ledger=ledger, **more)
    return model.fit(x[60:], event[60:], time=time[60:])


def _fit_local(rng: Rng, ledger: Ledger | None = None, **more: Any) -> Any:
    x, y = glm_data("binomial", rng)
    public = PublicMoments.from_rows(x[:60])
    return LocalGLM(ApproxDP(1.0, 1e-5), public=public, recipe="gaussian", ledger=ledger, **more).fit(x[60:], y[60:])


def _fit_marginals(rng: Rng, ledger: Ledger | None = None, **more: Any) -> Any:
    a, b = rng.integers(4, size=(2, 900))
    table = pa.table({"a": a, "b": b, "y": np.minimum(a + b, 4)})
    schema = Schema.from_levels({"a": range(4), "b": range(4), "y": range(5)}, numeric=["a", "y"])
    return MarginalsRegression(ApproxDP(1.0, 1e-5), schema=schema, ledger=ledger, **more).fit_table(table, "y")


def _fit_vertical(rng: Rng, ledger: Ledger | None = None, **more: Any) -> Any:
    x, _ = linear_data(rng)
    ledgers = None if ledger is None else {"one": ledger, "other": MemoryLedger(ledger.account.budget)}
    parties = {"one": x[:, :1], "other": x[:, 1:]}
    return VerticalRegression(ApproxDP(1.0, 1e-5), ledger=ledgers, **more).fit_table(parties)


#: Every estimator that the package exports, once.
FITS = (
    *(
        FitEntry(kind, partial(_fit_central, next(entry for entry in ESTIMATORS if entry.kind is kind)))
        for kind in dict.fromkeys(entry.kind for entry in ESTIMATORS)
    ),
    FitEntry(DPSurvival, _fit_survival),
    FitEntry(LocalGLM, _fit_local),
    FitEntry(MarginalsRegression, _fit_marginals, lambda budget: MemoryLedger(budget, relation=Relation.ADD_REMOVE)),
    FitEntry(VerticalRegression, _fit_vertical),
)

# ---------------------------------------------------------------- readers and sources


@dataclass(frozen=True)
class ReaderEntry:
    """A reader, and the way of keeping a table (``KEPT`` of tests/rows/tables.py) that it reads.

    None where a server is needed: tests/rows/readers/test_sql.py and tests/laws/test_push_down.py start one.
    """

    kind: type[Reader]
    kept: str | None

    def __str__(self) -> str:
        return self.kind.__name__


READERS = (
    ReaderEntry(CapsuleReader, "an Arrow stream"),
    ReaderEntry(DatasetReader, "Arrow dataset"),
    ReaderEntry(LazyFrameReader, "Polars, lazy"),
    ReaderEntry(DuckDBReader, "DuckDB query"),
    ReaderEntry(SQLiteReader, "SQLite query"),
    ReaderEntry(_ADBCReader, None),
    ReaderEntry(SparkReader, None),
    ReaderEntry(DeltaReader, "Delta table"),
    ReaderEntry(IcebergReader, "Iceberg table"),
    ReaderEntry(ParquetReader, "list of Parquet files"),
    ReaderEntry(CSVReader, "list of CSV files"),
)


@dataclass(frozen=True)
class SourceEntry:
    """A source, and how to make one of the same rows: columns a and b, response y, of whole numbers from 0 to 4."""

    kind: type[Source]
    make: Callable[[pa.Table, Path], Source]

    def __str__(self) -> str:
        return self.kind.__name__


def _arrays(table: pa.Table) -> ArraySource:
    a, b, y = (table[name].to_numpy().astype(np.float64) for name in ("a", "b", "y"))
    return ArraySource(np.column_stack([a, b]), y)


def _parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "rows.parquet", row_group_size=19)
    return folder / "rows.parquet"


_CODES = _domain((5, 5), ()).select(["c0", "c1"])
_COLUMNS = Encoder.of(["a", "b"], "y", None)


def _codes_of(table: pa.Table) -> pa.Table:
    return table.select(["a", "b"]).rename_columns(["c0", "c1"])


SOURCES = (
    SourceEntry(ArraySource, lambda table, _: _arrays(table)),
    SourceEntry(TableSource, lambda table, _: TableSource(table, _COLUMNS)),
    SourceEntry(StreamSource, lambda table, folder: StreamSource(reader_of(_parquet(table, folder)), _COLUMNS)),
    SourceEntry(RangedSource, lambda table, _: RangedSource(_arrays(table), Ranges(endless(2), np.zeros(2)))),
    SourceEntry(ExposedSource, lambda table, _: ExposedSource(_arrays(table), np.ones(table.num_rows))),
    SourceEntry(WeightedSource, lambda table, _: WeightedSource(_arrays(table), np.arange(table.num_rows) % 7.0, 5.0)),
    SourceEntry(CappedSource, lambda table, _: CappedSource(_arrays(table), [pa.array(range(table.num_rows))], 1)),
    SourceEntry(CodedSource, lambda table, _: CodedSource(_codes_of(table), _CODES)),
    SourceEntry(CodedParquet, lambda table, to: CodedParquet(reader_of(_parquet(_codes_of(table), to)), _CODES)),
)


@dataclass(frozen=True)
class EngineEntry:
    """An engine, and how to make one, of a client of Dask if it needs one.

    ``pushes`` is True for one that leaves the sums to a database, in a fixed order of operations.
    """

    kind: type[Engine]
    make: Callable[[Any], Engine]
    pushes: bool = False

    def __str__(self) -> str:
        return self.kind.__name__


ENGINES = (
    EngineEntry(ThreadedEngine, lambda _: ThreadedEngine(workers=3)),
    EngineEntry(DaskEngine, DaskEngine),
    EngineEntry(PushDownEngine, lambda _: PushDownEngine(), pushes=True),
)
#: Those that read rows, from any source.
READING_ENGINES = tuple(entry for entry in ENGINES if not entry.pushes)
