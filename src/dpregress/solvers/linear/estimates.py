"""Estimates for inference from released correlations with residuals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.queries import Ask, ClippedScore, ScoreRemainder
from dpregress.solvers.base import Unshrunk
from dpregress.solvers.shared.explained import Evidence
from dpregress.solvers.shared.gram import MixedGram
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.remainder import Remainder, Truncation, Untruncated
from dpregress.solvers.shared.sandwich import MeanEquation, Meat, released_meat, unshrunk
from dpregress.solvers.shared.surrogate import SurrogateRows
from dpregress.solvers.shared.unresolved import unidentified_directions


@dataclass(frozen=True, eq=False)
class LinearScore(Evidence):
    """A released ``mean s^2 x~ (y - x~'b)`` at ``asked``; its slope is the released Gram matrix."""

    mixed: MixedGram
    asked: Vector
    value: Vector
    variance: float

    def change(self, coef: Vector) -> Vector:
        return np.asarray(self.mixed.matrix @ (coef - self.asked))

    def slope(self, coef: Vector) -> Matrix:  # noqa: ARG002  # the same everywhere
        return self.mixed.matrix

    def error(self, coef: Vector) -> float:
        move = coef - self.asked
        return self.mixed.variance * float(move @ move)


@dataclass(frozen=True, eq=False)
class FinalScore:
    """The last score of a fit with what is known about it.

    Attributes
    ----------
    score : ClippedScore
        At the fit.
    mixed : MixedGram
    levels : Magnitudes
        Sizes of weighted residuals.
    dispersion : float
        Of residuals.
    weight : float
        The mean squared weight of a row.
    """

    score: ClippedScore
    mixed: MixedGram
    levels: Magnitudes
    dispersion: float
    weight: float

    def truncation(self, rows: SurrogateRows) -> Truncation:
        """What weights and the clip take from the scores of surrogate rows."""
        return Truncation(rows, self.levels.seen, self.score.clip)

    def untruncated(self, truncation: Truncation) -> Untruncated:
        """The ordinary score; if b are the true coefficients, weights and the clip take a part of the change to b."""
        slope = np.asarray(self.mixed.matrix + truncation.weighted)
        taken = slope - (1 - self.levels.above(self.score.clip)) * self.mixed.matrix
        return Untruncated(slope, lambda coef: np.asarray(taken @ (coef - self.score.coef)))

    def meat(self, ask: Ask, query: ScoreRemainder | None, spend: GDP | None, truncation: Truncation, n: int) -> Meat:
        """The second moment of contributions to the score, and to its remainder if there is one.

        It is released if there is a budget for it.
        """
        sizes = self.levels.seen if query is not None else self._clipped
        gram = self.mixed.matrix / self.weight
        if query is not None:
            gram = gram + truncation.weighted
        expected = sizes.root_mean_square**2 * gram
        if spend is None:
            return Meat(np.asarray(expected), math.inf, "model")
        norms = Magnitudes.of_sample(np.linalg.norm(truncation.rows.x, axis=1))
        asked = self.score if query is None else query
        return released_meat(ask, asked, spend, np.asarray(expected), (norms, sizes), n)

    @property
    def _clipped(self) -> Magnitudes:
        """Sizes of clipped residuals."""
        return replace(self.levels, size=np.minimum(self.levels.size, self.score.clip))

    def mean_equation(self, found: Vector, privacy: float, n: int) -> MeanEquation:
        """The released mean residual, with this variance of noise, as an equation of the intercept."""
        space = self.score.space
        return MeanEquation(
            asked=self.score.coef,
            value=found,
            slope=space.mean_row(self.mixed.matrix)[None, :],
            constant=space.constant[:, None],
            privacy=privacy,
            sampling=np.array([[self.dispersion / n]]),
            bias=self.levels.cut(self.score.clip) ** 2,
        )

    def estimates(
        self,
        told: Sequence[Evidence],
        meat: Meat,
        mean: MeanEquation | None,
        hidden: Matrix,
        truncation: Truncation,
        n: int,
        remainder: Remainder | None,
    ) -> Unshrunk:
        """The estimate that explains all scores, and its covariances."""
        clip, gram = self.score.clip, self.mixed.matrix
        slope = (1 - self.levels.above(clip)) * gram if remainder is None else remainder.score.slope
        return unshrunk(
            told, self.score.coef, slope, meat, gram,
            n=n,
            mean=mean,
            hidden=hidden,
            unidentified=unidentified_directions(self.mixed),
            dispersion=self.dispersion,
            lost=truncation.lost(0.0) if remainder is None else remainder.answer.lost,
            remainder=remainder,
        )  # fmt: skip
