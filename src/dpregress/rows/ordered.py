r"""The row map in a fixed order of IEEE operations, as a database can repeat it bit for bit.

The products of a matrix library, in :class:`~dpregress.rows.bounded.WhitenedRows`, have no fixed order. Here every sum
runs over its terms from the first to the last, and only ``+ - * /``, square roots and comparisons are used. IEEE 754
determines each of their results. Numbers are rounded to integers by adding and subtracting ``1.5 2^52``, which rounds
half to even everywhere.

Some databases fail if a product overflows or underflows, and a failure tells of the cell that caused it. So cells are
clipped to ``2^100``, cells below ``2^-200`` and entries of the whitening below ``2^-150`` count as 0, and public
numbers beyond ``2^100`` are refused. Then no operation leaves the range of floats.

Rounding decides on no bound: what comes out is a vector of integers, and a row whose integers exceed the integer bound
of the space becomes 0. docs/privacy/floating-point.md has the proof.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpregress.coordinates import ResponseScale, Weighting, WhitenedSpace
from dpregress.coordinates.exact import Grid
from dpregress.errors import InvalidInput
from dpregress.rows.bounded import BoundedRows, RawRows, RowMap
from dpregress.rows.row_kernel import Limits, Numbers, Response, mapped

#: Finite cells are clipped to ``LARGEST``, and those below ``SMALLEST`` are 0.
FINITE, LARGEST, SMALLEST = sys.float_info.max, 2.0**100, 2.0**-200
#: Entries of the whitening below it are 0.
_LEAST_ENTRY = 2.0**-150
#: Adding and subtracting it rounds numbers below 2^51 to integers, half to even.
ROUNDER = 1.5 * 2.0**52


@dataclass(frozen=True)
class OrderedRows(RowMap):
    """The row map of a space with one word on each grid, without anything whose order is not fixed.

    Parameters
    ----------
    space : WhitenedSpace
        With a finite radius, and without an exposure.

    Raises
    ------
    InvalidInput
        If a public number of the space lies beyond ``2^100``.
    """

    space: WhitenedSpace

    def __post_init__(self) -> None:
        space, sizes = self.space, [np.abs(self.space.whitening).max()]
        if space.exposure is not None:
            raise InvalidInput("rows with an exposure have no fixed order of operations: leave the engine out")
        if space.response is not None:
            sizes += [space.response.scale, 1 / space.response.scale, abs(space.response.centre)]
            sizes += [space.response.bound, 1 / space.response.bound]
        if not max(*sizes, space.radius, 1 / space.radius) <= LARGEST:
            raise InvalidInput("bounds and scales of columns must lie between 2^-100 and 2^100: change their units")

    @property
    def radius(self) -> float:
        return self.space.radius

    # ---------------------------------------------------------------- public numbers

    @cached_property
    def grid(self) -> Grid:
        """That of x."""
        return Grid(self.radius, 1)

    @cached_property
    def limit(self) -> float:
        """Longer rows are shrunk to this norm before they are rounded."""
        return self.grid.inside(self.space.order)

    @cached_property
    def steps(self) -> float:
        """The same in steps of the grid."""
        return self.limit / self.grid.step

    @cached_property
    def most(self) -> int:
        """The largest sum of squares of the integers of a row."""
        return math.floor(Fraction(self.radius) ** 2 / Fraction(self.grid.step) ** 2)

    @cached_property
    def entries(self) -> tuple[tuple[float, ...], ...]:
        """The whitening, row by row, with zeros for what is too small; that of the constant comes first."""
        whitening = self.space.whitening
        kept = np.where(np.abs(whitening) < _LEAST_ENTRY, 0.0, whitening)
        return tuple(tuple(row) for row in kept.tolist())

    @cached_property
    def fill(self) -> tuple[float, ...]:
        """What missing cells become."""
        fill = self.space.fill
        return tuple(np.where(np.abs(fill) < SMALLEST, 0.0, np.clip(fill, -LARGEST, LARGEST)).tolist())

    @property
    def weighted(self) -> bool:
        """Whether the response is shrunk with the row."""
        return self.space.weighting is Weighting.ROW

    @staticmethod
    def grid_of(response: ResponseScale) -> Grid:
        """That of the response."""
        return Grid(response.bound, 1)

    @staticmethod
    def centre_of(response: ResponseScale) -> float:
        """The centre, or 0: its differences from cells would underflow if it were smaller than those may be."""
        return response.centre if abs(response.centre) >= SMALLEST else 0.0

    @classmethod
    def most_of(cls, response: ResponseScale) -> int:
        """The largest integer of a response."""
        return math.floor(Fraction(response.bound) / Fraction(cls.grid_of(response).step))

    @cached_property
    def numbers(self) -> Numbers:
        """All of them, for processes that have nothing of this package."""
        return Numbers(
            entries=self.entries,
            intercept=self.space.intercept,
            fill=self.fill,
            limit=self.limit,
            steps=self.steps,
            most=self.most,
            weighted=self.weighted,
            response=None if self.space.response is None else self._numbers_of(self.space.response),
            limits=Limits(FINITE, LARGEST, SMALLEST, ROUNDER),
        )

    def _numbers_of(self, response: ResponseScale) -> Response:
        steps = 1 / self.grid_of(response).step
        return Response(self.centre_of(response), 1 / response.scale, steps, self.most_of(response))

    def _bound(self, rows: RawRows, words: int) -> BoundedRows:  # noqa: ARG002  # databases have no integers for more
        x, y, weight = mapped(list(rows.x.T), rows.y, self.numbers)
        step = 0.0 if self.space.response is None else self.grid_of(self.space.response).step
        return BoundedRows(x * self.grid.step, y * step, weight, rows.first_row, words=1)
