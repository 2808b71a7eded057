r"""Numbers of rows: of usable ones, for neighbours under which n itself is private."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Event
from dpregress.coordinates import Vector
from dpregress.coordinates.exact import ExactVector, Integers
from dpregress.queries.base import Norm, RowQuery
from dpregress.releases import Count, NoiseLaw
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import usable_row
from dpregress.rows.row_kernel import Program


class RowCount(RowQuery[Count]):
    """The number of rows of some kind, as a vector of length 1: adding, removing or replacing one changes it by 1."""

    whole: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True

    @abstractmethod
    def which(self, rows: BoundedRows) -> NDArray[np.bool_]:
        """The rows that count."""

    @property
    def size(self) -> int:
        return 1

    def exact(self, rows: BoundedRows) -> ExactVector:
        return ExactVector(np.array([np.count_nonzero(self.which(rows))]))

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # the same number
        return ExactVector(whole)

    def contribution(self) -> float:
        return 1.0

    def replacement(self) -> float:
        return 1.0

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Count:
        return Count(total, n, noise, events, self.space)


class UsableRowCount(RowCount):
    r"""The number of rows with a usable response (and exposure, where there is one), as a vector of length 1.

    A row counts as 1, or as 0 if its weight is 0. Adding, removing or replacing a row changes the count by at most 1.

    Parameters
    ----------
    space : WhitenedSpace
        With a response.

    References
    ----------
    docs/queries.md.
    """

    norm: ClassVar[Norm] = Norm.L1
    tight: ClassVar[bool] = True
    reads_features: ClassVar[bool] = False
    free_of_n: ClassVar[bool] = True

    def which(self, rows: BoundedRows) -> NDArray[np.bool_]:
        return rows.weight > 0

    def program(self, labelled: bool) -> Program:
        return Program.of(({"k": usable_row(labelled)},), ("k",))
