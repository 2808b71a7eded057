r"""Gradients of whole rows, clipped as vectors."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.exact import Grid
from dpregress.errors import InvalidInput
from dpregress.models.families import Family
from dpregress.queries.bounded_vectors import BoundedVectors, checked_bound
from dpregress.queries.ordered_residual import LEAST, OrderedResidual
from dpregress.queries.score import ResidualQuery
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import LARGEST, OrderedRows
from dpregress.rows.ordered_functions import flushed
from dpregress.rows.row_kernel import RowExpression, Stage, case, clipped, floated, name

#: The largest reach whose square is a number, in radii.
_FARTHEST = 1e100
#: Rows that are shortened to less count as if they were not further out: the inverse of the square is a number.
_LEAST_WEIGHT = 2.0**-500


class VectorQuery(BoundedVectors, ResidualQuery):
    """Common base of sums of vectors ``x b``, a row times a number, each shrunk to the norm K as a vector."""

    def __init__(self, space: WhitenedSpace, family: Family, coef: Vector, clip: float, bound: float) -> None:
        super().__init__(space, family, coef, clip)
        self.bound = checked_bound(bound)

    @abstractmethod
    def unbounded(self, rows: BoundedRows) -> Vector:
        """b of each row x as it is weighted, before it is shrunk, of shape (m,)."""

    @abstractmethod
    def unbounded_stages(self, labelled: bool) -> tuple[Stage, ...]:
        """Stages of a program to ``h``, the same."""

    def factor(self, rows: BoundedRows) -> Vector:
        """b of each row, of shape (m,)."""
        most = self.most(rows)
        return np.clip(self.unbounded(rows), -most, most)

    def each(self, rows: BoundedRows) -> Matrix:
        return Grid(self.bound, rows.words).nearest(rows.x * self.factor(rows)[:, None])

    def vector_stages(self, labelled: bool) -> tuple[tuple[Stage, ...], tuple[str, ...]]:
        self.check_program()
        each = tuple(f"a{i}" for i in range(self.size))
        return (*self.unbounded_stages(labelled), _times("h", each, OrderedRows(self.space))), each


class ClippedGradient(VectorQuery):
    r"""``sum g min(1, K / ||g||)`` with ``g = t^2 x~ (y - m(x~'beta)) f``, x~ the row without a weight.

    ``t = min(1, c R / ||x~||)`` is 1 for rows within c radii. A row contributes at most K, and replacing one changes
    the sum by at most ``2 K``, for any radius. Such a row counts in full while its response is predicted well; in a
    :class:`~dpregress.queries.ClippedScore`, whose rows have the weight s, it counts ``s^2`` at most.

    Parameters
    ----------
    space : WhitenedSpace
        Its radius may be infinite.
    family : Family
    coef : ndarray of shape (p,)
        Whitened coefficients, public or released.
    clip : float
        K, a public number.
    reach : float
        c, at least 1.

    References
    ----------
    Avella-Medina, Bradshaw, Loh (2023), Algorithm 1; docs/queries.md.
    """

    def __init__(
        self, space: WhitenedSpace, family: Family, coef: Vector, clip: float, reach: float = math.inf
    ) -> None:
        super().__init__(space, family, coef, clip, clip)
        if not (reach == math.inf or 1 <= reach <= _FARTHEST):
            raise InvalidInput(f"rows are whole within 1 to 1e100 radii, or without end, not {reach}")
        self.reach = reach

    def unbounded(self, rows: BoundedRows) -> Vector:
        return whole_factor(rows, self.residual(rows), self.reach)

    @property
    def _factor(self) -> RowExpression:
        """The same in a program, of the residual ``d``."""
        if math.isinf(self.reach):
            return WHOLE_FACTOR
        square = name("w") * name("w")
        whole = case(square * self.reach**2 < 1.0, name("d") * self.reach**2, name("d") / square)
        return clipped(whole, -LARGEST, LARGEST)

    def unbounded_stages(self, labelled: bool) -> tuple[Stage, ...]:
        residual = OrderedResidual(OrderedRows(self.space), self.family, self.coef).stages(labelled)
        return (*residual, {"h": self._factor}, flushed("h", LEAST))

    def kept_stages(self) -> tuple[Stage, ...]:
        """On from the residual ``d`` to ``g``, the factor of x in what the clip leaves."""
        each = tuple(f"a{i}" for i in range(self.size))
        before = ({"g": self._factor}, flushed("g", LEAST), _times("g", each, OrderedRows(self.space)))
        return (*before, *self.shrunk(each), {"g": name("g") * name("s")})


def shortening(rows: BoundedRows) -> Vector:
    """How much each row is shortened, of shape (m,)."""
    return np.asarray(np.maximum(np.where(rows.weight > 0, rows.weight, 1.0) / rows.root, _LEAST_WEIGHT))


def whole_factor(rows: BoundedRows, residual: Vector, reach: float = math.inf) -> Vector:
    """The factor of the weighted row in the score of the row within so many radii, of shape (m,)."""
    return np.asarray(residual * np.minimum(1 / shortening(rows) ** 2, reach**2))


#: The same in a program, of the residual ``d``.
WHOLE_FACTOR: RowExpression = clipped(name("d") / (name("w") * name("w")), -LARGEST, LARGEST)


def _times(factor: str, each: tuple[str, ...], rows: OrderedRows) -> Stage:
    """The columns ``each``: the integers of x, times a column."""
    return {a: floated(name(u)) * name(factor) for a, u in zip(each, rows.integers, strict=True)}
