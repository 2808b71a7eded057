r"""The number of rows that a truncation radius shortens."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Vector
from dpregress.coordinates.exact import ExactVector, Integers
from dpregress.queries.base import RowQuery
from dpregress.releases import Count, NoiseLaw
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import OrderedRows, kept_within, within
from dpregress.rows.row_kernel import Program, case, name

#: Weights this close to 1 are rounding.
_ROUNDING = 1e-9


class ShortenedRows(RowQuery[Count]):
    r"""The number of rows outside the ball, whose weight is below 1, as a vector of length 1.

    A row counts as 1 or 0, so adding, removing or replacing one changes the number by at most 1.

    Parameters
    ----------
    space : WhitenedSpace
        With a response.

    References
    ----------
    docs/queries.md.
    """

    #: In a space that weights features only, no row has a weight below 1.
    tight: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return 1

    def exact(self, rows: BoundedRows) -> ExactVector:
        shortened = (rows.weight > 0) & (rows.weight < (1 - _ROUNDING) * rows.root)
        return ExactVector(np.array([np.count_nonzero(shortened)]))

    def program(self, labelled: bool) -> Program:
        shortened = case(name("w") < 1 - _ROUNDING, 1, 0)
        stages = (*OrderedRows(self.space).stages(labelled), {"b": shortened}, kept_within(("b",), within("b", 0, 1)))
        return Program.of(stages, ("b",))

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole)

    def contribution(self) -> float:
        return 1.0

    def replacement(self) -> float:
        return 1.0

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Count:
        return Count(total, n, noise, events, self.space)
