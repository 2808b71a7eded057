r"""The number of rows that a truncation radius shortens."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpregress.queries.count import RowCount
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import SHORTENED, OrderedRows, kept_within, within
from dpregress.rows.row_kernel import Program, case


class ShortenedRows(RowCount):
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

    def which(self, rows: BoundedRows) -> NDArray[np.bool_]:
        return (rows.weight > 0) & rows.shortened

    def program(self, labelled: bool) -> Program:
        shortened = case(SHORTENED, 1, 0)
        stages = (*OrderedRows(self.space).stages(labelled), {"b": shortened}, kept_within(("b",), within("b", 0, 1)))
        return Program.of(stages, ("b",))
