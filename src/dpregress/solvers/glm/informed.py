r"""The information of two classes, as the released second moment of their scores says.

The variance of a class follows from its mean, so that the second moment M of scores is the information J, which
surrogate rows only guess where no public rows are known. Where rows of another shape than theirs decide, such as those
in which a rare class occurs, the guess is several times too large along a direction: steps are too short there, and
errors too small. If M contradicts what the model expects of it, E, by more than noise and sampling explain, every
modelled change of a score is multiplied by

.. math:: T = J^{1/2} R J^{-1/2}, \qquad R = I + \gamma \circ (E^{-1/2} M E^{-1/2} - I),

with gains ``d^2 / (d^2 + v)`` of each difference d of variance v along the eigenvectors of E. The estimates for
inference are those that explain the scores then, if the model's own are others by more than their errors. Predictions
stay as they are: they hardly depend on directions along which few rows tell. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen, symmetric_power
from dpregress.solvers.glm.binary_model import BinaryModel
from dpregress.solvers.shared.explained import Evidence
from dpregress.solvers.shared.posterior import longest
from dpregress.solvers.shared.sandwich import Meat

#: The smallest eigenvalue of R.
_SMALLEST = 0.1
#: A variance of residuals below this share of the largest is rounding.
_DIGITS = 1e-12


class SecondMoments(NamedTuple):
    """Of scores: M, and what the model expects of it, of shape (p, p)."""

    released: Meat
    expected: Matrix


@dataclass(frozen=True, eq=False)
class Ratio:
    """What the model's changes of scores are multiplied by.

    Attributes
    ----------
    turn : ndarray of shape (p, p)
        T.
    back : ndarray of shape (p, p)
        ``V' J^{-1/2}``, to the coordinates in which the entries of R have the variances ``doubt``.
    sizes : ndarray of shape (p,)
        The eigenvalues of J.
    doubt : ndarray of shape (p, p)
    """

    turn: Matrix
    back: Matrix
    sizes: Vector
    doubt: Matrix

    @classmethod
    def of(cls, model: BinaryModel, coef: Vector, slope: Matrix, squares: SecondMoments) -> Ratio | None:
        """From a released second moment of scores; None where the model explains it.

        Parameters
        ----------
        model : BinaryModel
        coef : ndarray of shape (p,)
            Where they were asked.
        slope : ndarray of shape (p, p)
            The information J by the model.
        squares : SecondMoments
        """
        meat = squares.released
        if meat.found is None:
            return None
        values, axes = eigen(squares.expected)
        values = np.maximum(values, _DIGITS * float(values[-1]))
        unit, identity = axes / np.sqrt(values), np.eye(len(coef))
        off = unit.T @ meat.found @ unit - identity
        noise = math.sqrt(2 / meat.df) * float(np.mean(values))
        alone = (1 + identity) / 2  # an entry beside the diagonal has half the variance
        variance = alone * noise**2 / np.outer(values, values) + _sampled(model, coef, unit)
        entries = np.triu_indices(len(coef))
        if float(np.sum((off**2 / variance)[entries])) <= longest(len(entries[0])):
            return None
        ratio = symmetric_power(identity + off**3 / (off**2 + variance), 1.0, smallest=_SMALLEST)
        sizes = np.maximum(np.einsum("ji,jk,ki->i", axes, slope, axes), _DIGITS * float(values[-1]))
        back = (axes / np.sqrt(sizes)).T
        return cls(np.asarray((axes * np.sqrt(sizes)) @ ratio @ back), back, sizes, variance)

    @property
    def information(self) -> Matrix:
        """The information that M says, of shape (p, p)."""
        root = self.back.T * self.sizes
        found = self.turn @ root @ root.T
        return np.asarray((found + found.T) / 2)


@dataclass(frozen=True, eq=False)
class InformedScore(Evidence):
    """A released score whose changes are those of the model, multiplied by T."""

    score: Evidence
    ratio: Ratio

    @property
    def value(self) -> Vector:  # type: ignore[override]  # of the score
        return self.score.value

    @property
    def variance(self) -> float:  # type: ignore[override]
        return self.score.variance

    def change(self, coef: Vector) -> Vector:
        return np.asarray(self.ratio.turn @ self.score.change(coef))

    def slope(self, coef: Vector) -> Matrix:
        return np.asarray(self.ratio.turn @ self.score.slope(coef))

    def error(self, coef: Vector) -> float:
        change, order = self.score.change(coef), len(coef)
        doubt = float(self.ratio.sizes @ self.ratio.doubt @ (self.ratio.back @ change) ** 2) / order
        shorter = float(np.sum((self.ratio.turn @ change) ** 2)) / max(float(change @ change), 1e-300)
        return min(shorter, 1.0) * self.score.error(coef) + doubt  # what bends is a share of the change


def _sampled(model: BinaryModel, coef: Vector, unit: Matrix) -> Matrix:
    """The variances of entries of a second moment of scores of n rows, by the model, in these coordinates."""
    mean, squares = model.mean(coef), (model.rows.x @ unit) ** 2
    spread = mean * (1 - mean)
    fourth = spread * (1 - 3 * spread)
    return np.asarray(squares.T @ (squares * fourth[:, None]) / len(squares) / model.n)
