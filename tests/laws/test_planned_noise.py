"""The noise that solvers plan with is the noise that releases then have.

Deterministic: each law holds for every seed, to one part in a million, which is what covers rounding.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import dpregress
from dpregress.accounting import GDP, ApproxDP, Event, MemoryLedger, PureDP, Relation
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.mechanisms import SeededSampler
from dpregress.mechanisms.sketching import sketch_matrix
from dpregress.models import BinomialFamily
from dpregress.queries import (
    Blocks,
    ClippedGradient,
    ClippedScore,
    MeanResidual,
    MultinomialScore,
    Norm,
    Query,
    RowSketch,
    ScoreRemainder,
)
from dpregress.releases import DiscreteLaplaceNoise, Isotropic, Release
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers.glm.binary_model import WholeBinaryModel
from dpregress.solvers.glm.score_loop import ModelledScore
from dpregress.solvers.linear.scores import Scores, WholeScores
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.posterior import Posterior, Step
from dpregress.solvers.vertical.release import plan_radius, plan_shares, release_party
from dpregress.trust import Central, Session, TrustModel, Vertical
from tests import registry
from tests.laws.spies import Silent
from tests.registry import CODED_QUERIES, ESTIMATORS, QUERIES, SPACES, TRUST, EstimatorEntry, QueryEntry, TrustEntry

MU, ROWS, CLOSE = 0.8, 20, 1e-6
Clipped = ClippedGradient | ClippedScore | MultinomialScore | MeanResidual


def norm_of(entry: QueryEntry) -> Norm:
    """L2 for Gaussian noise, L1 for discrete Laplace noise."""
    rng = np.random.default_rng(0)
    return entry.make(SPACES["plain"](rng), rng).norm


def noise_of(release: Release) -> float:
    """The standard deviation in each entry of the mean, by the release's own noise law."""
    assert isinstance(release.noise, Isotropic)
    return release.noise.sigma / release.n


@pytest.mark.parametrize("entry", [entry for entry in QUERIES if norm_of(entry) is Norm.L2], ids=str)
@pytest.mark.parametrize("trust", TRUST, ids=str)
def test_every_query_knows_the_noise_of_its_release(trust: TrustEntry, entry: QueryEntry, seed: int) -> None:
    """Where every user adds noise, that of one user's message, averaged."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES["plain"](rng), rng)
    rows = registry.private(registry.tame_rows(rng, query.space, ROWS))
    reservation = MemoryLedger(GDP(MU)).reserve(GDP(MU))
    release = trust.make().release(rows, query, GDP(MU), sampler=Silent(), reservation=reservation)
    draws = 1 if query.kept_apart else trust.draws(ROWS)
    assert noise_of(release) == pytest.approx(math.sqrt(draws) * query.noise(GDP(MU), ROWS), rel=CLOSE)
    assert query.noise(GDP(MU), 1) == pytest.approx(ROWS * query.noise(GDP(MU), ROWS))
    assert query.noise_length(GDP(MU), ROWS) == pytest.approx(math.sqrt(query.size) * query.noise(GDP(MU), ROWS))


@pytest.mark.parametrize("entry", [entry for entry in QUERIES if norm_of(entry) is Norm.L1], ids=str)
def test_every_count_knows_the_noise_of_its_release(entry: QueryEntry, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES["plain"](rng), rng)
    rows = registry.private(registry.tame_rows(rng, query.space, ROWS))
    reservation = MemoryLedger(PureDP(MU)).reserve(PureDP(MU))
    release = Central().release(rows, query, PureDP(MU), sampler=Silent(), reservation=reservation)
    assert isinstance(release.noise, DiscreteLaplaceNoise)
    assert release.noise.sigma / release.n == pytest.approx(query.noise(PureDP(MU), ROWS), rel=CLOSE)


@pytest.mark.parametrize("entry", [entry for entry in CODED_QUERIES if entry.name != "model errors"], ids=str)
def test_every_table_query_knows_the_noise_of_its_release(entry: registry.CodedEntry, seed: int) -> None:
    """For add-or-remove neighbours, in the sum: the number of rows is private then."""
    rng = np.random.default_rng(seed)
    domain = registry.DOMAINS["mixed"]
    query = entry.make(domain, rng)
    rows = registry.private(registry.coded_rows(rng, domain, ROWS))
    reservation = MemoryLedger(GDP(MU), relation=Relation.ADD_REMOVE).reserve(GDP(MU), relation=Relation.ADD_REMOVE)
    release = Central().release(rows, query, GDP(MU), sampler=Silent(), reservation=reservation)
    assert isinstance(release.noise, Isotropic)
    assert release.noise.sigma == pytest.approx(query.noise(GDP(MU), 1, Relation.ADD_REMOVE), rel=CLOSE)


def test_blocks_are_planned_with_the_sensitivity_of_their_weights() -> None:
    """Before weights are rounded down to six binary digits."""
    domain, weights = registry.DOMAINS["mixed"], [0.6, 0.8]
    assert Blocks.largest_addition(*weights) == pytest.approx(1.0)
    assert Blocks(domain, domain.pairs[:2], weights).contribution() == pytest.approx(1.0, rel=2**-5)


# ---------------------------------------------------------------- every place where a solver plans


@dataclass
class Watched:
    """What a fit planned: clips with their noise, relative to the clip, and the variances of steps."""

    clips: list[float] = field(default_factory=list)
    released: list[float] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)


@contextmanager
def watched() -> Iterator[Watched]:
    """Clips are planned right before they are asked with: the last plan belongs to the next clipped release.

    That of the score whose squares are asked is not released; bounds of a mean of zeros and ones are not planned. A
    score that pays for a wider remainder keeps the clip of that remainder, planned for what both cost together.
    """
    seen, planned, stated, systems = Watched(), list[float](), list[tuple[Vector, float]](), list[Matrix]()
    release, best_clip, update = TrustModel.release, Magnitudes.best_clip, Posterior.update
    best_whole = WholeBinaryModel.best_clip
    linear, gradients = Scores.best_clip, WholeScores.best_clip
    remainders: list[tuple[Query[Any], float]] = []

    def together(query: Query[Any], spend: Event) -> float:
        """The cost for which a clip was planned, over that of the score: that of its second remainder is a part."""
        paid = [mu for score, mu in remainders if score is query][1:]
        return math.hypot(spend.mu, *paid) / spend.mu

    def released(self: TrustModel, rows: Any, query: Query[Any], spend: Event, **more: Any) -> Any:
        answer = release(self, rows, query, spend, **more)
        if isinstance(query, ClippedGradient | ClippedScore | MultinomialScore):
            seen.scores.append(noise_of(answer) ** 2)
        if isinstance(query, ScoreRemainder):
            remainders.append((query.score, spend.mu))
        bounded = isinstance(query, MeanResidual) and query.family == BinomialFamily
        if planned and isinstance(query, Clipped) and not bounded:
            seen.clips.append(planned.pop() * together(query, spend))
            seen.released.append(math.sqrt(query.size) * noise_of(answer) / query.clip)
        return answer

    def clipped(self: Magnitudes, noise: Any, **more: float) -> float:
        found = best_clip(self, noise, **more)
        planned[:] = [float(noise(np.array([found]))[0]) / found]
        return found

    def whole(self: WholeBinaryModel, coef: Vector, noise: float) -> float:
        planned[:] = [noise]
        return best_whole(self, coef, noise)

    def shortened(self: Scores, levels: Magnitudes, per_unit: float, inefficiency: float) -> float:
        planned[:] = [per_unit]
        return linear(self, levels, per_unit, inefficiency)

    def uncut(self: WholeScores, levels: Magnitudes, per_unit: float, inefficiency: float) -> float:
        planned[:] = [per_unit]
        return gradients(self, levels, per_unit, inefficiency)

    def updated(self: Posterior, step: Step, **more: Any) -> Posterior:
        if not any(step.system is system for system in systems):  # replayed steps are no others
            systems.append(step.system)
            seen.variances.append(step.variance)
        return update(self, step, **more)

    explained = ModelledScore.of.__func__  # type: ignore[attr-defined]

    def taken(
        cls: type[ModelledScore], model: Any, asked: Vector, value: Vector, variance: float, *more: Any, **named: Any
    ) -> Any:
        released = variance > 0 or bool(value.any())  # not where only the change of a score is asked
        if released and not (stated and stated[-1][0] is asked and stated[-1][1] == variance):  # with a penalty or not
            stated.append((asked, variance))
            seen.variances.append(variance)
        return explained(cls, model, asked, value, variance, *more, **named)

    with ExitStack() as patches:
        patches.enter_context(patch.object(ModelledScore, "of", classmethod(taken)))
        for cls, name, spy in (
            (TrustModel, "release", released),
            (WholeBinaryModel, "best_clip", whole),
            (Magnitudes, "best_clip", clipped),
            (Scores, "best_clip", shortened),
            (WholeScores, "best_clip", uncut),
            (Posterior, "update", updated),
        ):
            patches.enter_context(patch.object(cls, name, spy))
        yield seen


@pytest.mark.parametrize("entry", ESTIMATORS, ids=str)
def test_clips_and_steps_are_planned_with_the_noise_of_the_release(entry: EstimatorEntry, seed: int) -> None:
    rng = np.random.default_rng(seed)
    estimator = entry.make(rng, privacy=ApproxDP(8.0, 1e-6), random_state=seed)
    with watched() as seen, pytest.warns(UserWarning, match="seed"):
        estimator.fit(*entry.data(rng))
    assert seen.clips == pytest.approx(seen.released, rel=CLOSE)
    assert seen.variances == pytest.approx(seen.scores[: len(seen.variances)], rel=CLOSE)
    if estimator.get_params().get("recipe", "residual") == "residual":
        assert seen.clips
        assert seen.variances


@pytest.mark.parametrize("columns", [1, 4])
def test_a_party_is_planned_with_the_noise_of_its_mixture(columns: int, seed: int) -> None:
    n, mu, rng = 1_000, 0.5, np.random.default_rng(seed)
    names = tuple(f"x{j}" for j in range(columns))
    wide = WhitenedSpace(names, np.eye(columns + 1), 100.0, np.zeros(columns), intercept=True)
    reservation = MemoryLedger(GDP(mu)).reserve(GDP(mu))
    rows = PrivateRows(ArraySource(rng.normal(size=(n, columns))))
    ask = Session(Vertical(), rows, SeededSampler(rng), reservation)
    mixture = release_party(ask, wide, GDP(mu), sketch_matrix("sparse", n, 64, bytes(32)), {}).mixture
    assert isinstance(mixture.noise, Isotropic)
    share = plan_shares(columns, n, mu)[1]
    planned = RowSketch.largest_change(plan_radius(columns, n, mu)) / (mu * math.sqrt(share))
    assert mixture.noise.sigma * mixture.unit == pytest.approx(planned, rel=CLOSE)


# ---------------------------------------------------------------- nobody writes a sensitivity a second time


def hand_written(source: str) -> list[str]:
    """Quotients by mu, but for thresholds of n mu: named constants over it. Noise has a sensitivity above."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _mentions_mu(node.right):
            threshold = isinstance(node.left, ast.Name) and node.left.id.isupper()
            if not threshold:
                found.append(ast.unparse(node))
    return found


def _mentions_mu(node: ast.expr) -> bool:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return any(name == "mu" or name.endswith("_mu") for name in names)


def test_solvers_never_divide_a_sensitivity_by_mu() -> None:
    """They ask the query: ``query.noise(spend, n)``, or ``noise_in_mean`` of its ``largest_change``."""
    package = Path(dpregress.__file__).parent
    modules = [path for room in ("solvers", "public", "inference") for path in (package / room).rglob("*.py")]
    found = {path.name: hits for path in modules if (hits := hand_written(path.read_text(encoding="utf-8")))}
    assert not found


def test_a_hand_written_noise_is_found() -> None:
    """The law itself works."""
    assert hand_written("noise = (2 * space.radius * clip / (spend.mu * n)) ** 2")
    assert hand_written("rarest = 2 / n_mu")
    assert not hand_written("share = (_CLEAR / (n * spend.mu)) ** 2")


def test_noise_of_many_candidates_is_planned_at_once() -> None:
    """Bounds of a mean residual as arrays: each noise is that of the query with those bounds."""
    space = WhitenedSpace(("a",), np.eye(1), 1.0, np.zeros(1)).with_response(registry.ResponseScale("y"))
    lower, upper = np.array([-1.0, -0.5, 0.0]), np.array([0.0, 0.7, 9.0])
    planned: Vector = dpregress.queries.noise_in_mean(MeanResidual.largest_change(lower, upper), GDP(MU), ROWS)
    made = [
        MeanResidual(space, registry.GaussianFamily, np.zeros(1), *bounds) for bounds in zip(lower, upper, strict=True)
    ]
    assert planned == pytest.approx([query.noise(GDP(MU), ROWS) for query in made])
