"""Estimates for inference from released correlations with residuals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.queries import Ask, ClippedScore
from dpregress.solvers.base import Unshrunk
from dpregress.solvers.shared.explained import Evidence
from dpregress.solvers.shared.gram import MixedGram
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.sandwich import MeanEquation, Meat, released_meat, truncated, unshrunk
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

    def meat(self, ask: Ask, spend: GDP | None, rows: Magnitudes, n: int) -> Meat:
        """The second moment of its contributions, released if there is a budget for it; ``rows`` are rows' norms."""
        expected = self.levels.square_within(self.score.clip) / self.weight * self.mixed.matrix
        if spend is None:
            return Meat(np.asarray(expected), math.inf, "model")
        clipped = replace(self.levels, size=np.minimum(self.levels.size, self.score.clip))
        return released_meat(ask, self.score, spend, np.asarray(expected), (rows, clipped), n)

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
        rows: SurrogateRows,
        n: int,
    ) -> Unshrunk:
        """The estimate that explains all scores, and its covariances."""
        clip, gram = self.score.clip, self.mixed.matrix
        return unshrunk(
            told, self.score.coef, (1 - self.levels.above(clip)) * gram, meat, gram,
            n=n,
            mean=mean,
            hidden=hidden,
            unidentified=unidentified_directions(self.mixed),
            dispersion=self.dispersion,
            lost=truncated(rows, self.levels.beyond(clip), meat),
        )  # fmt: skip
