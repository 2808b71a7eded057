r"""Histograms of several columns in the same bins of their whitened coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.coordinates.exact import ExactVector
from dpregress.errors import InvalidInput
from dpregress.queries.base import RowQuery
from dpregress.releases import ColumnCounts, NoiseLaw
from dpregress.rows.bounded import BoundedRows

#: Whitened cells beyond this count as missing: a space whose ``fill`` is there tells missing cells from others.
ABSENT = 2.0**30


class ColumnHistograms(RowQuery[ColumnCounts]):
    r"""Counts of whitened cells by column, in public bins, and of missing cells.

    A row is in one bin of each of the k columns. Adding or removing it changes k counts by 1 each, and replacing it at
    most 2 k: the sensitivities are ``sqrt k`` and ``sqrt(2 k)``.

    Parameters
    ----------
    space : WhitenedSpace
        Column j of a row is coordinate j of the whitened row, after that of the constant.
    columns : sequence of int
        The places of the columns that are counted.
    edges : ndarray of shape (bins + 1,)
        Increasing; the outer bins include everything beyond the inner edges, up to :data:`ABSENT`.

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, columns: Sequence[int], edges: Vector) -> None:
        super().__init__(space.with_response(None))
        if len(edges) < 3 or not (np.diff(edges) > 0).all():
            raise InvalidInput("a histogram needs at least two bins and increasing edges")
        if not columns or len(set(columns)) < len(columns):
            raise InvalidInput("histograms are of different columns, at least one")
        self.counted = tuple(columns)
        self.edges = edges

    @property
    def size(self) -> int:
        return len(self.counted) * len(self.edges)

    def exact(self, rows: BoundedRows) -> ExactVector:
        places = np.array(self.counted) + int(self.space.intercept)
        cells, bins = rows.x[rows.weight > 0][:, places], len(self.edges) - 1
        found = np.searchsorted(self.edges[1:-1], cells, side="right")
        found[cells > ABSENT] = bins
        found += (bins + 1) * np.arange(len(places))
        return ExactVector(np.bincount(found.ravel(), minlength=self.size).astype(np.int64))

    def contribution(self) -> float:
        return math.sqrt(len(self.counted))

    def replacement(self) -> float:
        return math.sqrt(2 * len(self.counted))

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> ColumnCounts:
        return ColumnCounts(total, n, noise, events, self.space, self.edges)
