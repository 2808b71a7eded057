"""Rows whose cells are moved into the ranges of their columns before anything else happens to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from dpregress.coordinates import Ranges
from dpregress.rows.bounded import RawRows
from dpregress.rows.sources import Part, Piece, SourceOf


@dataclass(frozen=True, eq=False, repr=False)
class RangedSource(SourceOf):
    """The rows of another source within public or released ranges, each row by itself.

    Parameters
    ----------
    rows : Source
    ranges : Ranges
    """

    ranges: Ranges

    def pieces(self, rows: int) -> Iterator[Piece]:
        for piece in self.rows.pieces(rows):
            yield partial(_ranged, piece, self.ranges)

    def parts(self, rows: int) -> Iterator[Part]:
        for first, part in self.rows.parts(rows):
            yield Part(first, RangedSource(part, self.ranges))

    def responses(self) -> Self:
        return replace(self, rows=self.rows.responses())


def _ranged(piece: Piece, ranges: Ranges) -> RawRows:
    chunk = piece()
    return replace(chunk, x=ranges.within(chunk.x))
