r"""Random sketches of rows, which parties release so that their columns can be combined."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.exact import ExactVector
from dpregress.errors import InvalidInput
from dpregress.queries.base import RowQuery
from dpregress.releases import NoiseLaw, Sketch
from dpregress.rows.bounded import BoundedRows

#: Cells are truncated to this many bits of the radius. This changes them by a relative 1e-5, and the rounding of
#: other chunks hardly ever moves a cell across a step.
_CELL_BITS = 16
#: Below this power of two, sums of integers are exact in float64 in any order.
_EXACT_BITS = 52


class SketchMatrix(ABC):
    r"""A public k x n matrix B with entries 0 and +-1, whose columns have equal norms; it is never stored.

    Its entries are functions of a shared seed and the row number, so that every party has the same B, whatever the
    sizes of its chunks.

    Attributes
    ----------
    n : int
        Number of columns, which is the number of people.
    k : int
        Number of rows, which is the length of the sketch.
    """

    def __init__(self, n: int, k: int) -> None:
        if not 1 <= k <= 2**31 or not 1 <= n <= 2**40:
            raise InvalidInput(f"{n} rows cannot be sketched in {k} rows: give 1 <= k <= 2^31, n at least 1")
        self.n = n
        self.k = k

    @property
    @abstractmethod
    def column_norm(self) -> float:
        """The norm of each column, the same for all."""

    @abstractmethod
    def apply(self, x: Matrix, first_row: int) -> Matrix:
        """``sum_i B[:, first_row + i] x[i]'``, of shape (k, p); exact for integer x within 2^52 / n."""


class RowSketch(RowQuery[Sketch]):
    r"""``B Z`` of bounded rows z (without the constant of an intercept), in integer units of ``R 2^-16``.

    Cells are truncated toward zero onto the grid, so that ``||z|| <= R`` still holds. Every sum is then a sum of
    integers below 2^52, which is exact in any order. With b the norm of B's columns,

    * adding or removing a row changes the answer by ``B e_i z_i'``, of Frobenius norm ``b ||z_i|| <= b R``;
    * replacing it, by ``B e_i (z_i - z_i')'``: at most ``2 b R``, reached by opposite rows on the sphere.

    Parameters
    ----------
    space : WhitenedSpace
        With a finite radius R.
    mixing : SketchMatrix

    Source: Wu et al. (2022), section 4.2, where ``R = sqrt(d_max)``; docs/queries.md.
    """

    tight: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, mixing: SketchMatrix) -> None:
        super().__init__(space.with_response(None))
        if not math.isfinite(space.radius):
            raise InvalidInput("sketched rows must lie in a ball: give the whitened space a finite radius")
        bits = min(_CELL_BITS, _EXACT_BITS - mixing.n.bit_length())
        self.unit = space.radius * 2.0**-bits
        self.mixing = mixing

    @property
    def width(self) -> int:
        """Number of columns of the sketch."""
        return len(self.space.features)

    @property
    def size(self) -> int:
        return self.mixing.k * self.width

    def exact(self, rows: BoundedRows) -> ExactVector:
        whole = np.trunc(rows.x[:, self.space.order - self.width :] / self.unit)
        return ExactVector(self.mixing.apply(whole, rows.first_row).reshape(-1).astype(np.int64))

    @staticmethod
    def largest_change(radius: float) -> float:
        """``2 R`` for columns of B of norm 1, for planning before there is a query."""
        return 2 * radius

    def contribution(self) -> float:
        return self.mixing.column_norm * self.space.radius / self.unit

    def replacement(self) -> float:
        return self.mixing.column_norm * self.largest_change(self.space.radius) / self.unit

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Sketch:
        return Sketch(total, n, noise, events, self.space, self.mixing.k, self.unit / self.mixing.column_norm)
