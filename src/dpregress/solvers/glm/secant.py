"""What consecutive scores say of the surrogate model: a secant correction of its slopes, and what it still misses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpregress.coordinates import Matrix, Vector

#: Noise explains differences up to so many standard deviations of their squared length.
_SURE = 3.0
#: A later pair of scores that agrees with the model halves what was missed before.
_REMEMBERED = 0.5
#: The smallest eigenvalue of a corrected information is at least this share of that of the model's.
_DEFINITE = 0.1


@dataclass(frozen=True, eq=False)
class Correction:
    """Of a surrogate model that released scores contradict.

    Attributes
    ----------
    slope : ndarray of shape (q, q)
        Symmetric; it is added to the slopes of expected scores.
    missed : float
        What the model misses of the change of a score, as a share of its squared length.
    """

    slope: Matrix
    missed: float = 0.0

    def applied(self, information: Matrix) -> Matrix:
        """The corrected information, or the model's where the correction would leave it nearly or not definite."""
        if not self.slope.any():
            return information
        corrected = information + self.slope
        least = float(np.linalg.eigvalsh(information)[0])
        return corrected if float(np.linalg.eigvalsh(corrected)[0]) >= _DEFINITE * least else information

    def updated(self, move: Vector, expected: Vector, found: Vector, noise: float, known: float) -> Self:
        """After a pair of scores.

        The slope is changed by the least symmetric matrix with which it explains what neither noise nor the known
        errors of the model do (Powell's symmetric Broyden update).

        Parameters
        ----------
        move : ndarray of shape (q,)
            From the coefficients of the first score to those of the second.
        expected, found : ndarray of shape (q,)
            The change of the score, by the model and released.
        noise : float
            The variance of an entry of the released change.
        known : float
            What the model may miss, as a share of the squared length of the expected change.
        """
        off = found - expected
        length, whole = float(off @ off), float(expected @ expected)
        explained = len(off) * noise * (1 + _SURE * math.sqrt(2 / len(off))) + known * whole
        excess, square = length - explained, float(move @ move)
        if not (excess > 0 and whole > 0 and square > 0):
            return type(self)(self.slope, _REMEMBERED * self.missed) if self.missed else self
        step, way = excess / length * off, move / math.sqrt(square)
        both = np.outer(step, way) + np.outer(way, step) - float(way @ step) * np.outer(way, way)
        return type(self)(self.slope + both / math.sqrt(square), max(excess / whole, _REMEMBERED * self.missed))
