r"""What weights and clips may take from the scores of a linear fit whose mean bends, or varies more, far out.

Surrogate rows have residuals of the same sizes everywhere. Where a column has a long tail and the mean is no straight
line, or errors grow with it, far rows have far larger ones, and weights and clips take more from their scores.
Intervals therefore doubt what rows lose whose residuals grow with the square of their length, beyond twice the root
mean square: about as a quadratic term would let them grow. The length is that of numbers alone: along an indicator,
however rare its level, nothing bends. (The root mean square is that of whole rows, so that one number among many
indicators is not far out sooner.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.solvers.shared.truncation import ResidualTruncation

#: Residuals grow from so many root mean squared lengths of a row on, with this power of the length.
_STRAIGHT, _POWER = 2.0, 2.0
#: They grow up to the length that the other rows exceed: of quasi-random normal rows one is far out in all coordinates.
_ORDINARY = 0.999


def number_directions(space: WhitenedSpace, numbers: Sequence[bool]) -> Matrix:
    """An orthonormal basis of what numbers and the constant tell of whitened rows, of shape (p, k).

    A row is as long along it as the shortest one with the same numbers.
    """
    own = np.array([*([True] if space.intercept else []), *numbers])
    return np.asarray(np.linalg.qr(space.back[own].T)[0])


@dataclass(frozen=True, eq=False)
class LinearTruncation(ResidualTruncation):
    """What weights and a clip take, with residuals of the same sizes everywhere.

    Attributes
    ----------
    numeric : ndarray of shape (p, k)
        See :func:`number_directions`.
    """

    numeric: Matrix = field(kw_only=True)

    @property
    def doubted(self) -> FarTruncation:
        return FarTruncation(**{each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True, eq=False)
class FarTruncation(LinearTruncation):
    """The same with residuals that grow far out."""

    @property
    def doubted(self) -> FarTruncation:
        return self

    @property
    def _larger(self) -> Vector:
        x = self.rows.x / self.rows.shortening[:, None]
        usual = max(float(np.sqrt(np.mean(np.sum(x**2, axis=1)))), 1e-300)
        length = np.linalg.norm(x @ self.numeric, axis=1)
        length = np.minimum(length, np.quantile(length, _ORDINARY, method="higher"))
        return np.asarray(np.maximum(length / (_STRAIGHT * usual), 1.0) ** _POWER)

    def likely(self, bound: float) -> Matrix:
        """The second moment of what this bound leaves: a released remainder shows no more."""
        taken, shares = self._taken
        with np.errstate(over="ignore"):  # rows of zeros lose nothing
            most = bound / self._length
        mean = np.clip(taken, 0.0, most[:, None]) ** 2 @ shares
        return np.asarray((self.rows.x * mean[:, None]).T @ self.rows.x / len(mean))
