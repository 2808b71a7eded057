"""Estimates for inference from released correlations with residuals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.models import GaussianFamily
from dpregress.queries import Ask, ClippedGradient, ClippedScore, MeanResidual, noise_in_mean
from dpregress.solvers.base import Unshrunk
from dpregress.solvers.linear.far_truncation import LinearTruncation
from dpregress.solvers.linear.kept_changes import kept_changes
from dpregress.solvers.linear.scores import LinearScore, Scores
from dpregress.solvers.shared.asked_remainder import AskedRemainder
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.posterior import Posterior
from dpregress.solvers.shared.remainder import Asked, Remainder, Untruncated, ask_remainder, ask_wider
from dpregress.solvers.shared.sandwich import MeanEquation, Meat, gain_of, released_meat, unshrunk
from dpregress.solvers.shared.unresolved import unidentified_directions

#: The share of the mean residual for a wider remainder where the model is wrong.
_WIDER = 1 / 2


@dataclass(frozen=True, eq=False)
class FinalScore:
    """The last score of a fit with what is known about it.

    Attributes
    ----------
    scores : Scores
    coef : ndarray of shape (p,)
        The fit.
    asked : ndarray of shape (p,)
        Where the last score was asked.
    clip : float
        Its clip.
    levels : Magnitudes
        Sizes of weighted residuals.
    dispersion : float
        Of residuals.
    weight : float
        The mean squared weight of a row.
    """

    scores: Scores
    coef: Vector
    asked: Vector
    clip: float
    levels: Magnitudes
    dispersion: float
    weight: float

    @property
    def query(self) -> ClippedScore | ClippedGradient:
        """The last score, at the fit."""
        return self.scores.question(self.coef, self.clip)

    @cached_property
    def truncation(self) -> LinearTruncation:
        """What weights and the clip take from the scores of surrogate rows."""
        return self.scores.truncation(self.levels, self.clip)

    @cached_property
    def _left(self) -> Matrix:
        """The slope that the clip leaves."""
        return self.scores.left(self.levels, self.clip)

    def untruncated(self, at: Vector) -> Untruncated:
        """The ordinary score there; if b are the true coefficients, weights and the clip take a part of the change."""
        slope = np.asarray(self.scores.mixed.matrix + self.truncation.weighted)
        taken = slope - self._left
        return Untruncated(slope, lambda coef: np.asarray(taken @ (coef - at)))

    def remainder(
        self, ask: Ask, spend: GDP, mean: GDP | None, wider: GDP | None, n: int
    ) -> tuple[Remainder, GDP | None]:
        """What weights and the clip take from the score, and what is left of the cost of the mean residual.

        ``wider`` is what was kept for the one with the wider bound, if there are far rows: at the fit, whose slopes
        they rescaled. Else that is asked where the last score was.
        """
        ordinary, taken = self.untruncated(self.coef), self.truncation
        if wider is None and mean is not None:
            asked = AskedRemainder(ask, lambda *_: taken, lambda _: ordinary, spend, n, _WIDER)
            mean = asked(self.query, mean, self.scores.question(self.asked, self.clip))
            assert asked.first is not None
            return Remainder(asked.first, ordinary, asked.wide, self.untruncated(self.asked)), mean
        answer = ask_remainder(ask, self.query, taken, spend, n)
        wide = None if wider is None else ask_wider(ask, self.query, taken, wider, n, narrow=answer.query.bound)
        return Remainder(answer, ordinary, wide), mean

    def meat(self, ask: Ask, query: Asked | None, spend: GDP | None, n: int) -> Meat:
        """The second moment of contributions to the score, and to its remainder if there is one.

        It is released if there is a budget for it.
        """
        sizes = self.levels.seen if query is not None else self._clipped
        gram = self.scores.mixed.matrix / self.weight
        if query is not None:
            gram = gram + self.truncation.weighted
        expected = sizes.root_mean_square**2 * gram
        if spend is None:
            return Meat(np.asarray(expected), math.inf, "model")
        asked = self.query if query is None else query
        return released_meat(ask, asked, spend, np.asarray(expected), self.scores.rows.x, sizes, n)

    @property
    def _clipped(self) -> Magnitudes:
        """Sizes of clipped residuals."""
        return replace(self.levels, size=np.minimum(self.levels.size, self.clip))

    def mean_residual(self, ask: Ask, spend: GDP, n: int) -> MeanEquation:
        """The released mean residual between wide bounds, as an equation of the intercept."""
        space, per_unit = self.scores.space, noise_in_mean(MeanResidual.largest_change(-1.0, 1.0), spend, n)
        upper = self.levels.best_clip(lambda clip: per_unit * clip)
        answer = ask(MeanResidual(space, GaussianFamily, self.coef, -upper, upper), spend)
        return MeanEquation(
            asked=self.coef,
            value=answer.mean,
            slope=space.mean_row(self.scores.mixed.matrix)[None, :],
            constant=space.constant[:, None],
            privacy=(per_unit * upper) ** 2,
            sampling=np.array([[self.dispersion / n]]),
            bias=self.scores.cut(self.levels, self.clip) ** 2,
        )

    def moved(self, equation: MeanEquation, known: Matrix, before: Posterior | None) -> float:
        """How far the intercept follows the released mean residual, given the covariance of the fit.

        Clips bias a mean prediction as far as scores moved it: what labels tell beforehand has no clip.
        """
        row = equation.slope[0]
        doubt, told = float(row @ known @ row), math.inf if before is None else float(row @ before.known @ row)
        doubt += equation.bias * max(1 - doubt / told, 0.0) ** 2
        doubt = min(doubt, self.dispersion)  # a mean residual is no larger than residuals are
        return gain_of(equation.value, doubt, equation.privacy) * float(equation.value[0])

    def estimates(
        self,
        told: Sequence[LinearScore],
        meat: Meat,
        mean: MeanEquation | None,
        hidden: Matrix,
        n: int,
        remainder: Remainder | None,
        *,
        identified: bool,
    ) -> Unshrunk:
        """The estimate that explains all scores, and its covariances; without intervals where responses are unknown."""
        mixed = self.scores.mixed
        slope = self._left if remainder is None else remainder.score.slope
        kept = kept_changes(told, self.coef)
        return unshrunk(
            kept.scores, self.coef, slope, meat, mixed.matrix,
            n=n,
            mean=mean,
            hidden=hidden + np.outer(kept.doubt, kept.doubt),
            unidentified=unidentified_directions(mixed) if identified else np.eye(len(self.coef)),
            dispersion=self.dispersion,
            lost=self.truncation.whole if remainder is None else remainder.answer.lost,
            remainder=remainder,
        )  # fmt: skip
