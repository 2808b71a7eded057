"""Released correlations with residuals, as evidence about least-squares coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.solvers.shared.explained import Evidence
from dpregress.solvers.shared.gram import MixedGram


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
