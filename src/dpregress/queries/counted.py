r"""The number of usable rows, released together with another answer at no additional cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Vector
from dpregress.coordinates.exact import ExactVector, Integers, column_sums
from dpregress.errors import InvalidInput
from dpregress.queries.base import Ask, Query, R, RowQuery
from dpregress.releases import Isotropic, NoiseLaw
from dpregress.rows.bounded import SHARES, BoundedRows, RowMap
from dpregress.rows.row_kernel import Program

#: A count this many standard deviations below n is accepted; noise alone reaches it once in 30,000 fits.
_BELIEVED = 4.0


class Counted(RowQuery[R]):
    r"""The answer of a query, extended by u times the number of rows with positive weight; its ``n`` is that number.

    Rows without a usable response contribute nothing, and their number is private. Let D and B be the sensitivities of
    the inner query to replacing and to adding a row, and ``u = sqrt(D^2 - B^2)``. Then the extended vector changes

    * by at most D, if a usable row is replaced by a usable row, because the count stays the same;
    * by at most ``sqrt(B^2 + u^2) = D``, if it is replaced by an unusable row, whose value is 0.

    A row with the survey weight v adds v times the value of one with weight 1, or less, and v u to the count. The
    squared change is convex in the weights of both rows, and so largest where each is 0 or 1: the bounds hold for any
    weights. They would not for a query whose clipped values do not shrink with v, which is therefore refused.

    The count is therefore free for replace-one neighbours. Adding or removing a row changes the vector by at most D.
    The number that is read is n, unless the noisy count lies at least four standard deviations below it.

    Parameters
    ----------
    query : RowQuery
        A tight query with ``D > B`` whose value is 0 for rows of weight 0 and shrinks with survey weights (`shared`).

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = True
    apart: ClassVar[int] = 1

    def __init__(self, query: RowQuery[R]) -> None:
        super().__init__(query.space)
        self.query = query
        if not query.shared:
            raise InvalidInput(f"{type(query).__name__} cannot be counted: its values ignore survey weights")
        change = query.replacement()
        share = query.contribution() / change if change > 0 else 1.0
        if not share < 1:
            raise InvalidInput("only a query whose replacement sensitivity exceeds its contribution can be counted")
        self.unit = change * math.sqrt((1 - share) * (1 + share))  # squares could leave the range of floats

    @property
    def columns(self) -> int:
        return self.query.columns

    @property
    def row_map(self) -> RowMap:
        return self.query.row_map

    @property
    def size(self) -> int:
        return self.query.size + 1

    def exact(self, rows: BoundedRows) -> ExactVector:
        idle = rows.weight == 0
        far = np.any(rows.x[idle] != 0, axis=1)  # rows so far out that their weight is rounded to 0 have a value
        idle[idle] = ~far
        count, unit = int(np.count_nonzero(~idle)), self.unit
        if rows.survey is not None:
            count, unit = column_sums((rows.survey * ~idle)[:, None], SHARES)[0], self.unit * SHARES.step
        return self._with_count(self.query.exact(rows), count, unit)

    @property
    def pushes_down(self) -> bool:  # type: ignore[override]  # that of the query
        return self.query.pushes_down

    def program(self, labelled: bool) -> Program:
        return self.query.program(labelled)

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:
        return self._with_count(self.query.of_sums(whole, usable), usable, self.unit)

    @staticmethod
    def _with_count(total: ExactVector, count: int, unit: float) -> ExactVector:
        units = np.broadcast_to(total.unit, total.whole.shape)
        return ExactVector(np.append(total.whole, count), np.append(units, unit))

    def contribution(self) -> float:
        return self.query.replacement()

    def replacement(self) -> float:
        return self.query.replacement()

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> R:
        assert isinstance(noise, Isotropic)
        doubt = _BELIEVED * noise.sigma / self.unit
        count = float(total[-1]) / self.unit
        usable = n if n - count < max(doubt, 0.5) else max(round(max(count, doubt)), 1)
        return self.query.read(total[:-1], n=usable, noise=noise, events=events)


def among(ask: Ask, n: int) -> Ask:
    """The same ``ask``, with the released number n of usable rows in every answer."""

    def asked(query: Query[R], spend: Event) -> R:
        return replace(ask(query, spend), n=n)

    return asked
