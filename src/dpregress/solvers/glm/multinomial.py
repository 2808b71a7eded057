r"""Multinomial logistic regression by score steps: K classes, one private Gram matrix and a few private scores.

Class predictors are ``Q B'x`` with contrasts Q of shape (K, K - 1) and B of shape (p, K - 1). They sum to 0, and no
class is the reference. Steps, shares and updates are those of the logistic model in :mod:`.score_steps`, with

* the information ``mean s^2 x~x~' (x) Q'(diag(pi) - pi pi')Q`` over surrogate rows, of order p (K - 1);
* a clip on the norm of the residual, chosen for the residuals that the model itself expects;
* the shares of classes, from public labels or released before all else, where the scores begin;
* a mean residual of K - 1 numbers, by which the K intercepts are corrected as far as it is known better.

Coefficients are flat, ``B.ravel()``, with the contrasts of each column side by side (docs/methods/multinomial.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.models import contrasts, probabilities
from dpregress.public.facts import PublicFacts
from dpregress.queries import (
    Ask,
    ClassRemainder,
    MeanClassResidual,
    MultinomialScore,
    Query,
    ResponseHistogram,
    ScoreSquares,
    SecondMoment,
    among,
)
from dpregress.releases import Isotropic
from dpregress.solvers.base import FactSolver, Solution, Uncertainty
from dpregress.solvers.glm.binary_model import FARTHEST
from dpregress.solvers.glm.class_truncation import ClassTruncation
from dpregress.solvers.glm.cut_off import SoftmaxCut
from dpregress.solvers.glm.design import design_shares, released_design
from dpregress.solvers.glm.estimates import released_squares, scored_estimates, untruncated
from dpregress.solvers.glm.rate import mean_start_share
from dpregress.solvers.glm.score_loop import Beginning, Clipped, ScoreModel, take_steps
from dpregress.solvers.glm.score_steps import MEAN_BOUNDED, STEPS_OF_CLASSES, STEPS_WITH_PRIOR, WIDER
from dpregress.solvers.glm.softmax_fit import LONGEST, class_covariances, fit_public_classes, softmax_information
from dpregress.solvers.glm.surrogate_model import (
    MEAN_MISSED,
    MOST_ROWS,
    SMALLEST_INFORMATION,
    SMALLEST_SATURATED,
    shortened,
)
from dpregress.solvers.shared.asked_remainder import AskedRemainder
from dpregress.solvers.shared.budget import allocate_budget, has_prior, leaving_steps
from dpregress.solvers.shared.explained import Evidence, SlopesPrior
from dpregress.solvers.shared.gram import MixedGram
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.radius_plan import TOLERATED
from dpregress.solvers.shared.remainder import remainder_share
from dpregress.solvers.shared.repair import floor_information, ridge_penalty
from dpregress.solvers.shared.sandwich import MeanEquation, gain_of, meat_share
from dpregress.solvers.shared.slope_shapes import slope_shapes
from dpregress.solvers.shared.surrogate import SurrogateRows, surrogate_rows
from dpregress.solvers.shared.unresolved import are_where_public_rows_are
from dpregress.solvers.shared.weak_prior import WeakPrior
from dpregress.solvers.shared.whitening import planned_start
from dpregress.solvers.shared.within_ends import shares_within

_NEWTON_STEPS = 50
#: An information counts no probability as smaller, as in the range of the logistic link: some information is left.
_RAREST = math.exp(-30.0)


class MultinomialSteps(FactSolver):
    """Noisy scoring of a softmax model with surrogate rows for one private Gram matrix.

    Parameters
    ----------
    facts : PublicFacts
        Public labels are positions of classes.
    classes : int
        K >= 2.
    budget : GDP
        All of it is drawn.
    alpha : float
        Ridge penalty ``alpha / 2`` times the squared slopes of all classes, in original units.
    steps : tuple of float, optional
        Relative budgets of the private steps.
    robust : bool, default=True
        As in :class:`ScoreSteps`.
    """

    def __init__(
        self,
        facts: PublicFacts,
        classes: int,
        budget: GDP,
        alpha: float,
        steps: tuple[float, ...] | None = None,
        *,
        robust: bool = True,
    ) -> None:
        self.facts = facts = planned_start(facts, budget)
        self.classes = classes
        self.alpha = alpha
        self._basis = contrasts(classes)
        self._labelled = has_prior(facts)
        order = facts.start.space.order * (classes - 1)
        starts = facts.start.space.intercept and not self._labelled
        start = mean_start_share(facts, budget, classes) if starts else 0.0
        shares = {
            **design_shares(facts),
            "mean": MEAN_BOUNDED if facts.start.space.intercept else 0.0,
            "remainder": remainder_share(facts.start.space),
            "squares": meat_share(facts.n, order, budget) if robust else 0.0,
        }
        shares = {
            "start": start,
            **leaving_steps({name: share * (1 - start) for name, share in shares.items()}, 1 - start),
        }
        weights = steps or (STEPS_WITH_PRIOR if self._labelled else STEPS_OF_CLASSES)
        self._spend, self._steps = allocate_budget(budget, shares, weights)
        self.squares = order if "squares" in self._spend else 0

    @property
    def asks(self) -> tuple[type[Query[Any]], ...]:
        return (SecondMoment, MultinomialScore, ClassRemainder, ScoreSquares, MeanClassResidual, ResponseHistogram)

    @property
    def rounds(self) -> int:
        return len(self._spend) + len(self._steps) + ("remainder" in self._spend)

    def solve(self, ask: Ask) -> Solution:
        known = self._shares(ask) if "start" in self._spend else None
        space, gram, n = released_design(ask, self.facts, self._spend, self._steps)
        return self.among(n)._scored(among(ask, n), space, gram, known)

    def _shares(self, ask: Ask) -> Shares:
        """Of the classes, by a histogram of their places."""
        space = self.facts.start.space.with_response(ResponseScale(self.facts.target))
        counts = ask(ResponseHistogram(space, np.arange(self.classes + 1.0)), self._spend["start"])
        assert isinstance(counts.noise, Isotropic)
        usable = max(float(counts.total.sum()), 1.0)
        return Shares.of(counts.total / usable, counts.noise.sigma / usable)

    def _scored(self, ask: Ask, space: WhitenedSpace, mixed: MixedGram, known: Shares | None) -> Solution:
        """From the Gram matrix of the usable rows."""
        gram = mixed.matrix
        rows = surrogate_rows(space, self.facts.public, gram, self.facts.schema)
        space = space.with_response(ResponseScale(self.facts.target))
        each = np.eye(self.classes - 1)
        penalty = np.asarray(np.kron(ridge_penalty(space, self.alpha, self.facts.n), each), dtype=np.float64)
        model = SurrogateClasses(
            space, rows, np.asarray(np.kron(gram, each)), self._basis, self.facts.n, mixed.variance
        )
        weak = WeakPrior.of(space, gram, self.facts.schema).repeated(len(each))
        begin = self._begin(space, gram, weak, known)
        told = [] if known is None else [ReleasedShares(model, begin.prior.coef, np.zeros(len(each)), known.variance)]
        n, beyond = self.facts.n, None
        if "remainder" in self._spend:
            ordinary, spend = partial(untruncated, model), self._spend["remainder"]
            beyond = AskedRemainder(ask, model.truncation, ordinary, spend, n, WIDER, model.farthest)
        steps = take_steps(ask, lambda *_: model, begin, self._steps, penalty, n, told, beyond)
        answer, wide = (None, None) if beyond is None else (beyond.first, beyond.wide)
        model, steps = model.resolved, steps.resolved
        squares = released_squares(ask, model, steps.coef, self._steps[-1], self._spend.get("squares"), n, answer)
        coef, equation = steps.coef.reshape(space.order, -1), None
        if "mean" in self._spend:
            query = MeanClassResidual(space, coef)
            noise = query.noise(self._spend["mean"], n) ** 2
            found = ask(query, self._spend["mean"]).mean
            equation = partial(model.mean_equation, steps.coef, found, noise)
            slope = model.mean_slope(steps.coef)
            doubt = float(np.trace(slope @ steps.uncertainty.total @ slope.T)) / len(found)
            coef = self._adjusted(space, rows, coef, gain_of(found, doubt, noise) * found)
        there = are_where_public_rows_are(space, gram, self.facts.known_rows)
        estimates = scored_estimates(model, steps, squares, equation, mixed, n, answer, wide, identified=there)
        return Solution(coef.ravel(), steps.system, space, None, steps.uncertainty, estimates)

    def _begin(self, space: WhitenedSpace, gram: Matrix, weak: WeakPrior, known: Shares | None) -> Beginning:
        if self._labelled and self.facts.public is not None:
            fit = fit_public_classes(self.facts.public, space, self.classes)
            return Beginning(fit.prior, fit.dispersion, weak)
        each = np.eye(self.classes - 1)
        shapes = tuple(np.asarray(np.kron(shape, each)) for shape in slope_shapes(space, gram, common=False))
        contrast = np.zeros(len(each)) if known is None else self._basis.T @ np.log(known.value)
        coef = np.outer(space.constant if space.intercept else np.zeros(space.order), contrast).ravel()
        intercept = np.asarray(np.kron(space.along_constant / LONGEST**2, each), dtype=np.float64)
        variance = len(each) * LONGEST**2  # of every contrast's predictor
        return Beginning(SlopesPrior(coef, intercept, shapes, variance), 1.0, weak=weak)

    def _adjusted(self, space: WhitenedSpace, rows: SurrogateRows, coef: Matrix, found: Vector) -> Matrix:
        """Correct the intercepts so that the mean probabilities of surrogate rows change by the released mean residual.

        They are not changed if a class predictor would have to change by more than the longest step.
        """
        predictor = rows.predictor(coef)
        present = probabilities(predictor, self._basis).mean(axis=0)
        wanted = np.maximum(present + self._basis @ found, math.exp(-LONGEST) * present)
        shift = _shift(predictor, wanted / wanted.sum(), self._basis)
        if float(np.abs(self._basis @ shift).max()) > LONGEST:
            return coef
        return np.asarray(coef + np.outer(space.constant, shift))


@dataclass(frozen=True, eq=False)
class SurrogateClasses(ScoreModel):
    """A softmax model on surrogate rows; ``basis`` holds the contrasts, and ``gram`` has one block for each of them."""

    space: WhitenedSpace
    rows: SurrogateRows
    gram: Matrix
    basis: Matrix
    n: int
    gram_variance: float
    canonical: bool = True
    estimates: bool = False

    @cached_property
    def resolved(self) -> SurrogateClasses:
        return replace(self, estimates=True)

    @property
    def unweighted(self) -> SurrogateClasses:
        rows = self.rows.unweighted
        more = np.kron(rows.second - self.rows.second, np.eye(self.basis.shape[1]))
        return replace(self, rows=rows, gram=np.asarray(self.gram + more))

    @property
    def farthest(self) -> float:
        """Of residuals of at most the root of 2: that of private rows several times as far out as surrogate rows."""
        return math.sqrt(2) * FARTHEST * float(np.linalg.norm(self.rows.unweighted.x, axis=1).max())

    def question(self, coef: Vector, spend: GDP) -> MultinomialScore:
        """The score, with the best clip for the residuals that the model itself expects."""
        mean = self._mean(coef)
        expected = self._sizes(mean)
        per_unit = MultinomialScore(self.space, self._columns(coef), 1.0).noise_length(spend, self.n)
        tolerated = TOLERATED * expected.root_mean_square**2 * self.space.order / self.n
        return MultinomialScore(
            self.space, self._columns(coef), expected.best_clip(lambda clip: per_unit * clip, tolerated=tolerated)
        )

    def _sizes(self, mean: Matrix) -> Magnitudes:
        """Norms of the residuals that the model expects."""
        sizes = self.rows.weight[:, None] * np.sqrt(1 - 2 * mean + np.sum(mean**2, axis=1, keepdims=True))
        return Magnitudes(sizes.ravel(), mean.ravel() / len(mean))

    def clipped(self, coef: Vector, clip: float) -> Clipped:
        sizes = self._sizes(self._mean(coef))
        within = replace(sizes, size=np.minimum(sizes.size, clip))
        share = sizes.share_within(clip)
        return Clipped(1.0, share, 1.0, within, sizes, 1.0, sizes.beyond(clip))

    def cut_off(self, coef: Vector, clip: float, dispersion: float | None = None) -> SoftmaxCut:  # noqa: ARG002
        return SoftmaxCut.of(self.rows, self.basis, self._columns(coef), clip)

    def truncation(self, coef: Vector, clip: float) -> ClassTruncation:
        """What weights and this clip take from a score at these coefficients."""
        return ClassTruncation(self.rows, self._mean(coef), self.basis, clip)

    def mean_equation(self, coef: Vector, found: Vector, noise: float, dispersion: float) -> MeanEquation:
        """The released mean residual as an equation of the intercepts."""
        return MeanEquation(
            asked=coef,
            value=found,
            slope=self.mean_slope(coef),
            constant=np.asarray(np.kron(self.space.constant[:, None], np.eye(len(found)))),
            privacy=noise,
            sampling=np.asarray(dispersion * self.covariances(coef).mean(axis=0) / self.n),
            bias=0.0,
        )

    def mean_slope(self, coef: Vector) -> Matrix:
        """Of the contrasts of mean probabilities of rows without weights, of shape (K - 1, q)."""
        x, contrasted = self.rows.x / self.rows.weight[:, None], self.covariances(coef)
        return np.asarray(
            np.tensordot(contrasted, x, (0, 0)).transpose(0, 2, 1).reshape(len(contrasted[0]), -1) / len(x)
        )

    def covariances(self, coef: Vector) -> Vector:
        """Of the contrasts of each row's class, of shape (m, K - 1, K - 1)."""
        return class_covariances(self._mean(coef), self.basis)

    def shares(self, coef: Vector) -> Vector:
        """Contrasts of the mean probabilities, of shape (K - 1,)."""
        return np.asarray(self._mean(coef).mean(axis=0) @ self.basis)

    def information(self, coef: Vector) -> Matrix:
        mean = np.maximum(self._mean(coef), _RAREST)
        mean /= mean.sum(axis=1, keepdims=True)
        smallest = SMALLEST_INFORMATION if self.estimates else SMALLEST_SATURATED
        return floor_information(_information(self.rows, mean, self.basis), self.gram, smallest)

    def expected(self, coef: Vector, asked: Vector) -> Vector:  # noqa: ARG002  # the factors are 1
        residual = self.rows.weight[:, None] * (self._mean(coef) @ self.basis)
        return np.asarray((self.rows.x.T @ residual / len(self.rows.x)).ravel())

    def curvature(self, coef: Vector, asked: Vector) -> Matrix:  # noqa: ARG002
        return softmax_information(self.rows.x, self._mean(coef), self.basis) / len(self.rows.x)

    def length(self, move: Vector) -> float:
        return float(np.mean(np.sum((self.rows.x @ self._columns(move)) ** 2, axis=1)))

    def limited(self, move: Vector) -> Vector:
        """Shortened so that class predictors of most surrogate rows move by no more than the longest step."""
        moves = np.abs(self.rows.x @ self._columns(move) @ self.basis.T).max(axis=1)
        return np.asarray(move * shortened(moves, MOST_ROWS, LONGEST))

    def _columns(self, coef: Vector) -> Matrix:
        return coef.reshape(self.space.order, -1)

    def _mean(self, coef: Vector) -> Matrix:
        return probabilities(self.rows.predictor(self._columns(coef)), self.basis)


class Shares(NamedTuple):
    """Shares of classes away from 0, and the variance of each."""

    value: Vector
    variance: float

    @classmethod
    def of(cls, found: Vector, noise: float) -> Shares:
        """Of released shares, whose noise has this standard deviation, what is expected."""
        return cls(shares_within(found, noise), noise**2)


@dataclass(frozen=True, eq=False)
class ReleasedShares(Evidence):
    """The shares of classes, released before any score, as the mean probabilities of the optimum."""

    model: SurrogateClasses
    asked: Vector
    value: Vector
    variance: float

    @cached_property
    def _start(self) -> Vector:
        return self.model.shares(self.asked)

    def change(self, coef: Vector) -> Vector:
        return self.model.shares(coef) - self._start

    def slope(self, coef: Vector) -> Matrix:
        return self.model.mean_slope(coef)

    def error(self, coef: Vector) -> float:
        length = self.model.length(coef - self.asked)
        slope = float(np.trace(self.model.covariances(coef).mean(axis=0))) / len(self.value)
        return (MEAN_MISSED * slope) ** 2 * length * min(length, 1.0)


def of_classes(solution: Solution, classes: int) -> list[Solution]:
    """The solution of each class's predictor: whitened coefficients of shape (p,) with their covariances."""
    basis = contrasts(classes)
    coef = solution.whitened.reshape(-1, classes - 1)
    found = []
    for row in basis:
        each = np.kron(np.eye(len(coef)), row)
        uncertainty = solution.uncertainty
        if uncertainty is not None:
            uncertainty = Uncertainty(each @ uncertainty.privacy @ each.T, each @ uncertainty.total @ each.T)
        found.append(replace(solution, whitened=np.asarray(coef @ row), uncertainty=uncertainty))
    return found


def _information(rows: SurrogateRows, mean: Matrix, basis: Matrix) -> Matrix:
    """``mean s^2 x~x~' (x) Q'(diag(pi) - pi pi')Q``; unseen directions are weighted as the mean row."""
    found = softmax_information(rows.x, mean, basis) / len(rows.x)
    average = basis.T @ (np.diag(mean.mean(axis=0)) - mean.T @ mean / len(mean)) @ basis
    return np.asarray(found + np.kron(rows.unseen, average))


def _shift(predictor: Matrix, wanted: Vector, basis: Matrix) -> Vector:
    """The contrasts of intercepts that give the wanted mean probabilities, by Newton's method with short steps."""
    shift = np.zeros(basis.shape[1])
    for _ in range(_NEWTON_STEPS):
        mean = probabilities(predictor + shift, basis)
        slope = basis.T @ (np.diag(mean.mean(axis=0)) - mean.T @ mean / len(mean)) @ basis
        step = np.linalg.lstsq(slope, basis.T @ (wanted - mean.mean(axis=0)), rcond=None)[0]
        shift = shift + step * min(1.0, 1 / max(float(np.abs(basis @ step).max()), 1e-300))
    return np.asarray(shift)
