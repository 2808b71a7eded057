"""Coded rows, in which each cell is a level of its attribute; the coding depends on public knowledge only.

A cell that is missing or holds no declared level is assigned the level that the schema names. Without one, it is the
first level of a class, or the middle level of a number. A number beyond the public bounds of a binned column is
assigned to the nearest bin. No value of a cell raises an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpregress.coordinates import Attribute, Domain, Vector
from dpregress.errors import InvalidInput
from dpregress.public.columns import MISSING
from dpregress.rows.bounded import BoundedRows, RawRows, RowMap
from dpregress.rows.design.encoder import check_levels, readable, to_codes, to_numbers, whole_numbers
from dpregress.rows.readers.base import Reader, chunks, divided, has_columns
from dpregress.rows.sources import Part, Piece, Source, detached


def code_type(domain: Domain) -> np.dtype[Any]:
    """The narrowest unsigned integer type for all levels; its largest value stands for no level."""
    return np.min_scalar_type(max(domain.sizes))


@dataclass(frozen=True)
class LevelRows(RowMap):
    """Codes within their domain, for any input: x holds the position of the level of each attribute.

    The one-hot encoding of a row has norm ``sqrt m``. Every row has weight 1 and y = 0.
    """

    domain: Domain

    @property
    def radius(self) -> float:
        return float(np.sqrt(len(self.domain.attributes)))

    def _bound(self, rows: RawRows, words: int) -> BoundedRows:
        # column by column, as they are counted
        codes: NDArray[Any] = np.empty(rows.x.shape, dtype=code_type(self.domain), order="F")
        for place, attribute in enumerate(self.domain.attributes):
            _place(codes[:, place], rows.x[:, place], attribute.size, attribute.unknown)
        return BoundedRows(codes, np.zeros(len(codes)), np.ones(len(codes)), rows.first_row, words=words)


@dataclass(frozen=True)
class Coder:
    """Converts batches of a table to codes; unknown cells have no level until the row map assigns one."""

    domain: Domain

    def codes(self, batch: pa.Table | pa.RecordBatch) -> NDArray[Any]:
        """Positions of levels, of shape (m, attributes); the largest value of the type where there is no level."""
        shape = batch.num_rows, len(self.domain.attributes)
        codes: NDArray[Any] = np.empty(shape, dtype=code_type(self.domain), order="F")
        for place, attribute in enumerate(self.domain.attributes):
            _code(batch.column(attribute.name), attribute, codes[:, place])
        return codes

    def check_types(self, schema: pa.Schema) -> None:
        """Refuse missing columns, and types that are neither numbers nor levels."""
        for name in self.domain.names:
            found = schema.get_all_field_indices(name)
            if len(found) != 1:
                problem = "no column" if not found else "several columns"
                raise InvalidInput(f"{problem} {name!r} in the table, {has_columns(schema.names)}: check its names")
            kind = schema.field(found[0]).type
            if not readable(kind):
                raise InvalidInput(f"column {name!r} is of type {kind}: it must hold numbers or text")
            attribute = self.domain.attributes[self.domain.index(name)]
            check_levels(name, kind, () if attribute.edges else declared(attribute))


@dataclass(frozen=True, eq=False, repr=False)
class CodedSource(Source):
    """An Arrow table, coded chunk by chunk."""

    table: pa.Table
    domain: Domain

    @property
    def n(self) -> int:
        return int(self.table.num_rows)

    def pieces(self, rows: int) -> Iterator[Piece]:
        # one empty chunk if there are no rows, because their number is private
        for first in range(0, max(self.n, 1), rows):
            yield partial(_coded, Coder(self.domain), self.table.slice(first, rows), first)

    def parts(self, rows: int) -> Iterator[Part]:
        for first in range(0, max(self.n, 1), rows):
            yield Part(first, replace(self, table=detached(self.table.slice(first, rows))))


@dataclass(frozen=True, eq=False)
class CodedParquet(Source):
    """Parquet files of any size, read anew and coded chunk by chunk in every pass."""

    reader: Reader
    domain: Domain

    @property
    def n(self) -> int:
        return self.reader.n

    def pieces(self, rows: int) -> Iterator[Piece]:
        coder, first = Coder(self.domain), 0
        for batch in chunks(self.reader, self.domain.names, rows):
            yield partial(_coded, coder, batch, first)
            first += batch.num_rows
        if first == 0:
            yield partial(_coded, coder, self.reader.schema.empty_table(), 0)

    def parts(self, rows: int) -> Iterator[Part]:
        if self.n == 0:
            yield Part(0, CodedSource(self.reader.schema.empty_table(), self.domain))
        for first, reader in divided(self.reader, rows):
            yield Part(first, replace(self, reader=reader))

    def readers(self) -> tuple[Reader, ...]:
        return (self.reader,)


def _coded(coder: Coder, batch: pa.Table | pa.RecordBatch, first: int) -> RawRows:
    return RawRows(coder.codes(batch), None, first)


def _code(column: pa.Array | pa.ChunkedArray, attribute: Attribute, out: NDArray[Any]) -> None:
    """The codes of a column; if its levels are the integers from 0 without gaps, they are the codes."""
    whole = pa.types.is_integer(column.type) and column.null_count == 0 and not attribute.edges
    levels, none = declared(attribute), np.iinfo(out.dtype).max
    if not whole or levels != _digits(len(levels)):
        _place(out, _codes(column, attribute), attribute.size, none)
        return
    first = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        _place(out[first : first + len(chunk)], chunk.to_numpy(zero_copy_only=True), len(levels), none)
        first += len(chunk)


def _place(out: NDArray[Any], cells: NDArray[Any], size: int, otherwise: int) -> None:
    """The cells, rounded down, if they are in ``[0, size)``, and another value otherwise.

    Unsigned arithmetic wraps around, in the same way for every cell, and is ten times as fast as choosing between two
    arrays.
    """
    other = out.dtype.type(otherwise)
    with np.errstate(invalid="ignore"):
        known = (cells >= 0) & (cells < size)
        np.copyto(out, cells, casting="unsafe")
    out -= other
    out *= known
    out += other


@cache
def _digits(count: int) -> tuple[str, ...]:
    """``"0"``, ``"1"``, .."""
    return tuple(map(str, range(count)))


def _codes(column: pa.Array | pa.ChunkedArray, attribute: Attribute) -> Vector:
    if attribute.edges:
        return _binned(to_numbers(column), attribute)
    return to_codes(column, declared(attribute))


def declared(attribute: Attribute) -> tuple[str, ...]:
    """Its levels, without the separate level of missing cells if there is one."""
    last = attribute.size - 1
    own = attribute.stand_in == last and attribute.levels[last] == MISSING
    return attribute.levels[:last] if own else attribute.levels


def _binned(cells: Vector, attribute: Attribute) -> Vector:
    """Equal bins of ``[lower, upper]``; values outside are assigned to the nearest bin."""
    (lower, upper), bins = attribute.ends, len(declared(attribute))
    with np.errstate(over="ignore", invalid="ignore"):
        place = np.floor((cells - lower) / (upper - lower) * bins)
    return np.where(np.isfinite(cells), np.clip(place, 0, bins - 1), np.nan)


def decoded(domain: Domain, codes: NDArray[np.int64]) -> pa.Table:
    """Codes as a table: whole-number levels as integers (missing ones as gaps), bins as middles, others as text."""
    columns = {}
    for place, attribute in enumerate(domain.attributes):
        whole = whole_numbers(declared(attribute))
        if attribute.edges:
            values = pa.array(attribute.values, pa.float64())
        elif whole is not None:
            values = pa.array([*whole.tolist(), None][: attribute.size], pa.int64())
        else:
            values = pa.array(attribute.levels, pa.large_string())
        columns[attribute.name] = values.take(pa.array(codes[:, place]))
    return pa.table(columns)
