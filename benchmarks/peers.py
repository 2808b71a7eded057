"""Strong simple peers of :mod:`benchmarks.grid`, at the library's privacy: (epsilon, delta) for replacing one row.

Gradient descent, objective perturbation and AdaSSP work in coordinates whitened by the public rows: columns
standardised, then multiplied by the inverse root of the rows' Fisher information (at the start or the public fit,
row by row the larger), shrunk as Ledoit and Wolf do.
Gaussian mechanisms spend the exact mu of (epsilon, delta).

Peers with several candidates are tuned by the labelled public rows, by one rule. A quarter of these rows prepares a
candidate (its start, coordinates and clips). It is run on two other quarters with the noise that it would have on the n
private rows, that is, at ``mu n / m`` for m rows. Its deviance is taken on those two quarters, where a fit to so few
rows looks too good, and on the last quarter, where it looks too bad by about as much; the mean of both predicts the
deviance of a fit to many rows. The candidate of smallest mean, over four rotations of the quarters and three draws of
the noise, is run on the private rows. No candidate is chosen by private or held-out rows.

DP-SGD takes each row with the same probability in every step; its noise is the least that replaced rows allow
(:mod:`benchmarks.subsampling`).
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.covariance import ledoit_wolf
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.subsampling import noise_of
from dpregress import ApproxDP
from dpregress.baselines import LinearFit, adassp, dp_gd, perturbation_scales, tilted_logistic, tukey_em
from dpregress.baselines.adassp import bounded
from dpregress.coordinates import Matrix, Vector
from dpregress.models import Family

#: Draws of noise by which a candidate is judged on public rows.
_DRAWS = 3
#: A class with fewer public rows than this many is not cross-validated.
_FEWEST = 10
_FOLDS = 5
#: Regressions with a penalty, by family: model, name of its penalty, penalties, score.
_PENALISED: dict[str, tuple[Any, str, Vector, str]] = {
    "gaussian": (Ridge(), "alpha", np.logspace(-2, 4, 13), "neg_mean_squared_error"),
    "binomial": (LogisticRegression(solver="newton-cholesky"), "C", np.logspace(-4, 2, 9), "neg_log_loss"),
    "poisson": (
        PoissonRegressor(solver="newton-cholesky"),
        "alpha",
        np.logspace(-4, 1, 8),
        "neg_mean_poisson_deviance",
    ),
    "gamma": (GammaRegressor(solver="newton-cholesky"), "alpha", np.logspace(-4, 1, 8), "neg_mean_gamma_deviance"),
}


def public_fit(x: Matrix, y: Vector, family: Family) -> LinearFit:
    """A penalised fit to the public rows; five-fold cross-validation on them chooses the penalty.

    With fewer than ten rows of a class it predicts the share of the class for everybody.
    """
    name = family.distribution.name
    if name == "binomial" and min(y.sum(), len(y) - y.sum()) < _FEWEST:
        return constant_fit(x, y, family)
    model, penalty, penalties, score = _PENALISED[name]
    step = type(model).__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model), {f"{step}__{penalty}": penalties}, cv=_FOLDS, scoring=score
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = search.fit(x, y).best_estimator_
    slopes = np.ravel(best[-1].coef_) / best[0].scale_
    return LinearFit(slopes, float(np.ravel(best[-1].intercept_)[0] - best[0].mean_ @ slopes))


def constant_fit(x: Matrix, y: Vector, family: Family) -> LinearFit:
    """The mean response for everybody, kept half a row away from where it has no predictor."""
    mean = float(np.mean(y))
    if family.distribution.name == "binomial":
        return LinearFit(np.zeros(x.shape[1]), float(logit((y.sum() + 0.5) / (len(y) + 1))))
    if family.distribution.name != "gaussian":
        mean = max(mean, 0.5 / len(y))
    return LinearFit(np.zeros(x.shape[1]), float(family.link.predictor(mean)))


def deviance(family: Family, fit: LinearFit, x: Matrix, y: Vector) -> float:
    """Mean unit deviance: the mean squared error of a linear model."""
    return float(np.mean(family.distribution.unit_deviance(y, family.mean(fit.predict(x)))))


@dataclass(frozen=True, eq=False)
class PeerSpace:
    """Rows ``root ((x - centre) / scale, with a 1 in front)``."""

    centre: Vector
    scale: Vector
    root: Matrix

    def rows(self, x: Matrix) -> Matrix:
        """Whitened rows of shape (n, p)."""
        slopes = self.root[1:] / self.scale[:, None]
        return np.asarray(x @ slopes + (self.root[0] - self.centre @ slopes))

    def coordinates(self, fit: LinearFit) -> Vector:
        """Coefficients of whitened rows with the same predictions."""
        standard = np.concatenate([[fit.intercept + self.centre @ fit.coef], fit.coef * self.scale])
        return np.asarray(np.linalg.solve(self.root, standard))

    def pull_back(self, coef: Vector) -> LinearFit:
        """Coefficients in the original units."""
        standard = self.root @ coef
        slopes = standard[1:] / self.scale
        return LinearFit(slopes, float(standard[0] - self.centre @ slopes))


@dataclass(frozen=True, eq=False)
class Known:
    """What a peer knows: public rows, their responses or None, bounds of columns and of the response.

    Parameters
    ----------
    x : ndarray of shape (m, d)
    y : ndarray of shape (m,) or None
    family : Family
    widths : ndarray of shape (d,)
        Half the range of each column by the schema: the scale of columns that are constant in the public rows.
    bounds : (float, float)
        Of the response, by the schema.
    """

    x: Matrix
    y: Vector | None
    family: Family
    widths: Vector
    bounds: tuple[float, float]

    @cached_property
    def fit(self) -> LinearFit:
        """The public-only fit."""
        assert self.y is not None
        return public_fit(self.x, self.y, self.family)

    @cached_property
    def constant(self) -> LinearFit:
        """The mean for everybody: of the public rows, of the bounds without responses; a half for a class."""
        if self.y is not None:
            return constant_fit(self.x, self.y, self.family)
        middle = 0.0 if self.family.distribution.name == "binomial" else sum(self.bounds) / 2
        return LinearFit(np.zeros(self.x.shape[1]), middle)

    @cached_property
    def spaces(self) -> dict[str, PeerSpace]:
        """The coordinates that were asked for so far."""
        return {}

    def space(self, start: str) -> PeerSpace:
        """Coordinates in which the public rows' information at a start, "zero" or "public", is about the identity."""
        if start not in self.spaces:
            self.spaces[start] = self._whitened(start)
        return self.spaces[start]

    def _whitened(self, start: str) -> PeerSpace:
        centre, spread = self.x.mean(axis=0), self.x.std(axis=0)
        scale = np.where(spread > 1e-9 * self.widths, spread, self.widths)
        standard = np.column_stack([np.ones(len(self.x)), (self.x - centre) / scale])
        information = self.family.information(self.start(start).predict(self.x))
        if self.y is not None:  # the larger on the way: steps of length 1 do not overshoot
            information = np.maximum(information, self.family.information(self.fit.predict(self.x)))
        values, vectors = np.linalg.eigh(ledoit_wolf(standard * np.sqrt(information)[:, None], assume_centered=True)[0])
        return PeerSpace(centre, scale, np.asarray((vectors / np.sqrt(np.maximum(values, 1e-12))) @ vectors.T))

    def start(self, start: str) -> LinearFit:
        """Where a peer starts."""
        return self.fit if start == "public" else self.constant

    def clip(self, start: str, quantile: float) -> float:
        """A quantile of the public scores' norms at the start; without labels of those of y = 0 or 1 at a half."""
        eta = self.start(start).predict(self.x)
        shown = np.abs((self.y if self.y is not None else 0.0) - self.family.mean(eta))
        norms = shown * self.family.factor(eta) * np.linalg.norm(self.space(start).rows(self.x), axis=1)
        return max(float(np.quantile(norms, quantile)), 1e-12)

    def deviance(self, fit: LinearFit) -> float:
        """Mean unit deviance of a fit on these rows."""
        assert self.y is not None
        return deviance(self.family, fit, self.x, self.y)

    def unlabelled(self) -> Known:
        """The same without responses."""
        return Known(self.x, None, self.family, self.widths, self.bounds)

    def part(self, places: NDArray[np.int64]) -> Known:
        """Some of the public rows."""
        return Known(self.x[places], None if self.y is None else self.y[places], self.family, self.widths, self.bounds)


@dataclass(frozen=True)
class Spend:
    """A budget, and how many private rows one row at hand stands for: 1 on the private rows themselves."""

    epsilon: float
    delta: float
    copies: float = 1.0

    @property
    def mu(self) -> float:
        """The mu of Gaussian mechanisms on the rows at hand whose noise is that on all rows."""
        return ApproxDP(self.epsilon, self.delta).gaussian_mu * self.copies


Candidate = tuple[Any, ...]
Run = Callable[[Known, Matrix, Vector, Candidate, Spend, np.random.Generator], LinearFit | None]


def descent(
    known: Known, x: Matrix, y: Vector, candidate: Candidate, spend: Spend, rng: np.random.Generator
) -> LinearFit:
    """Noisy full-batch gradient descent: every step adds the mean of clipped scores and noise, at ``mu^2 / steps``."""
    start, steps, quantile = candidate
    space, clip = known.space(start), known.clip(start, quantile)
    rows, coef = space.rows(x), space.coordinates(known.start(start))
    lengths, sigma = np.linalg.norm(rows, axis=1), 2 * clip * math.sqrt(steps) / spend.mu
    for _ in range(steps):
        moved = clipped_sum(known.family, rows, lengths, y, coef, clip)
        coef = coef + (moved + rng.normal(0.0, sigma, len(coef))) / len(rows)
    return space.pull_back(coef)


def stochastic(
    known: Known, x: Matrix, y: Vector, candidate: Candidate, spend: Spend, rng: np.random.Generator
) -> LinearFit:
    """DP-SGD with Poisson subsampling: the mean of the last half of the steps.

    Fewer rows than it is for are drawn more often, so that a batch has as many.
    """
    start, share, steps, rate, quantile = candidate
    space, clip = known.space(start), known.clip(start, quantile)
    rows, coef = space.rows(x), space.coordinates(known.start(start))
    lengths, often = np.linalg.norm(rows, axis=1), min(1.0, share * spend.copies)
    sigma = clip * noise_of(share, steps, spend.epsilon, spend.delta) / (share * spend.copies)
    late = np.zeros(len(coef))
    for step in range(steps):
        batch = rng.random(len(rows)) < often
        moved = clipped_sum(known.family, rows[batch], lengths[batch], y[batch], coef, clip) / often
        coef = coef + rate * (moved + rng.normal(0.0, sigma, len(coef))) / len(rows)
        if step >= steps // 2:
            late += coef
    return space.pull_back(late / (steps - steps // 2))


def clipped_sum(family: Family, rows: Matrix, lengths: Vector, y: Vector, coef: Vector, clip: float) -> Vector:
    """The sum of the rows' scores, each cut to the clip."""
    eta = rows @ coef
    score = (y - family.mean(eta)) * family.factor(eta)
    score *= np.minimum(1.0, clip / np.maximum(np.abs(score) * lengths, 1e-300))
    return np.asarray(score @ rows)


def perturbed(
    known: Known, x: Matrix, y: Vector, candidate: Candidate, spend: Spend, rng: np.random.Generator
) -> LinearFit:
    """Objective perturbation; rows are cut to a quantile of the public norms."""
    share, quantile = candidate
    space = known.space("zero")
    radius = float(np.quantile(np.linalg.norm(space.rows(known.x), axis=1), quantile))
    penalty, sigma = perturbation_scales(epsilon=spend.epsilon, delta=spend.delta, radius=radius, share=share)
    rows, signs = bounded(space.rows(x), 2 * y - 1, radius, 1.0)
    tilt = rng.normal(0.0, sigma, rows.shape[1]) / spend.copies
    return space.pull_back(
        tilted_logistic(rows, signs, tilt=tilt, penalty=penalty / spend.copies, radius=radius)
    )  # fmt: skip


def sufficient(
    known: Known, x: Matrix, y: Vector, candidate: Candidate, spend: Spend, rng: np.random.Generator
) -> LinearFit:
    """AdaSSP; rows and centred responses are cut to quantiles of the public ones, responses else to the schema's."""
    quantile, response = candidate
    space, centre = known.space("zero"), known.constant
    radius = float(np.quantile(np.linalg.norm(space.rows(known.x), axis=1), quantile))
    bound = (known.bounds[1] - known.bounds[0]) / 2
    if known.y is not None:
        bound = min(2 * bound, float(np.quantile(np.abs(known.y - centre.intercept), response)))
    coef = adassp(space.rows(x), y - centre.intercept, mu=spend.mu, radius=radius, bound=max(bound, 1e-12), rng=rng)
    found = space.pull_back(coef)
    return LinearFit(found.coef, found.intercept + centre.intercept)


def adaptive(
    known: Known, x: Matrix, y: Vector, candidate: Candidate, spend: Spend, rng: np.random.Generator
) -> LinearFit:
    """Gradient descent with adaptive clips, from the middle of the schema's bounds of the response."""
    (quantile,) = candidate
    space, centre = known.space("zero"), known.constant.intercept
    radius = float(np.quantile(np.linalg.norm(space.rows(known.x), axis=1), quantile))
    clip = radius * (known.bounds[1] - known.bounds[0]) / 4
    found = space.pull_back(dp_gd(space.rows(x), y - centre, mu=spend.mu, start_clip=clip, rng=rng))
    return LinearFit(found.coef, found.intercept + centre)


def deepest(
    known: Known,  # noqa: ARG001 - it needs nothing public
    x: Matrix, y: Vector, candidate: Candidate, spend: Spend, rng: np.random.Generator,
) -> LinearFit | None:  # fmt: skip
    """TukeyEM on many small fits; None where its test gives no answer."""
    least, most = candidate
    raw = np.column_stack([np.ones(len(x)), x])
    models = min(len(x) // raw.shape[1], max(least, math.ceil(4 * least / spend.epsilon)), most)
    point = tukey_em(raw, y, epsilon=spend.epsilon, delta=spend.delta, models=models, rng=rng)
    return None if point is None else LinearFit(point[1:], float(point[0]))


@dataclass(frozen=True)
class Peer:
    """A private method: what it must know, for which families it is, and between what it chooses.

    Parameters
    ----------
    name : str
    knows : {"labelled", "unlabelled", "schema"}
        Public rows with responses, without, or none.
    families : tuple of str
    run : callable
    candidates : tuple
        More than one are chosen between by public responses.
    """

    name: str
    knows: str
    families: tuple[str, ...]
    run: Run
    candidates: tuple[Candidate, ...]


_ALL = ("gaussian", "binomial", "poisson", "gamma")
#: DP-SGD: start, share of a batch, steps, rate, quantile.
_BATCHES = tuple(
    (start, share, steps, rate, quantile)
    for start, (share, steps), rate, quantile in itertools.product(
        ("zero", "public"), ((0.3, 30), (0.1, 100)), (0.1, 0.3, 1.0), (0.5, 0.9)
    )
)
PEERS = (
    Peer("GD", "labelled", _ALL, descent, tuple(itertools.product(("zero", "public"), (3, 10, 30), (0.5, 0.9)))),
    Peer("objective", "labelled", ("binomial",), perturbed, tuple(itertools.product((0.1, 0.25, 0.5), (0.5, 0.9)))),
    Peer("AdaSSP", "labelled", ("gaussian",), sufficient, tuple(itertools.product((0.9, 1.0), (0.9, 1.0)))),
    Peer("GD, ten steps", "labelled", _ALL, descent, (("zero", 10, 0.9),)),
    Peer("GD, no labels", "unlabelled", ("binomial",), descent, (("zero", 10, 0.9),)),
    Peer("objective, no labels", "unlabelled", ("binomial",), perturbed, ((0.25, 0.9),)),
    Peer("AdaSSP, no labels", "unlabelled", ("gaussian",), sufficient, ((1.0, 1.0),)),
    Peer("adaptive GD", "unlabelled", ("gaussian",), adaptive, ((0.5,),)),
    Peer("TukeyEM", "schema", ("gaussian",), deepest, ((1000, 8000),)),
    Peer("DP-SGD", "labelled", _ALL, stochastic, _BATCHES),
)


def peers_of(family: Family) -> Iterator[Peer]:
    """The peers for a family."""
    return (peer for peer in PEERS if family.distribution.name in peer.families)


class Tuner:
    """Runs peers on the private rows of one split; parts of the public rows are prepared once.

    Parameters
    ----------
    known : Known
        With the responses of the public rows.
    n : int
        The number of private rows.
    delta : float
    """

    def __init__(self, known: Known, n: int, delta: float) -> None:
        order = np.random.default_rng(17).permutation(len(known.x))
        quarters = np.array_split(order, 4)
        self._known, self._unlabelled = known, known.unlabelled()
        self._rotations = [
            (known.part(first), known.part(np.concatenate([second, third])), known.part(last))
            for first, second, third, last in (quarters[turn:] + quarters[:turn] for turn in range(4))
        ]
        self._n, self._delta = n, delta

    def chosen(self, peer: Peer, epsilon: float) -> Candidate:
        """The candidate of smallest predicted deviance, by public rows alone."""
        if len(peer.candidates) == 1:
            return peer.candidates[0]
        return min(peer.candidates, key=lambda candidate: self._predicted(peer, candidate, epsilon))

    def fit(self, peer: Peer, x: Matrix, y: Vector, epsilon: float, rng: np.random.Generator) -> LinearFit | None:
        """The peer's private fit at (epsilon, delta)."""
        known = self._known if peer.knows == "labelled" else self._unlabelled
        return peer.run(known, x, y, self.chosen(peer, epsilon), Spend(epsilon, self._delta), rng)

    def _predicted(self, peer: Peer, candidate: Candidate, epsilon: float) -> float:
        found = []
        for known, fitted, fresh in self._rotations:
            assert fitted.y is not None
            spend = Spend(epsilon, self._delta, self._n / len(fitted.x))
            for draw in range(_DRAWS):
                fit = peer.run(known, fitted.x, fitted.y, candidate, spend, np.random.default_rng([19, draw]))
                found += [math.inf if fit is None else part.deviance(fit) for part in (fitted, fresh)]
        return float(np.nan_to_num(np.mean(found), nan=math.inf))
