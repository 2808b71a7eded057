"""Coded rows: every cell a level of its attribute, by public knowledge alone.

A cell that is missing, or holds no declared level, counts as the first level of a class and as the middle one of
a number; a number beyond the public bounds of a binned column counts as the nearest bin. Nothing here raises
because of a cell's value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpregress.errors import InvalidInput
from dpregress.releases import Attribute, Domain, Matrix, Vector
from dpregress.rows.bounded import BoundedRows, RawRows, RowMap
from dpregress.rows.encoding import readable, to_codes, to_numbers
from dpregress.rows.readers import Reader, chunks, has_columns
from dpregress.rows.sources import Source


@dataclass(frozen=True)
class LevelRows(RowMap):
    """Codes within their domain, whatever is fed in: x holds a level's position for every attribute.

    One-hot rows have the norm ``sqrt m``; the weight of every row is 1, y is 0.
    """

    domain: Domain

    @property
    def radius(self) -> float:
        return float(np.sqrt(len(self.domain.attributes)))

    def pull_back(self, coef: Vector) -> tuple[Vector, float]:
        return coef, 0.0

    def _bound(self, rows: RawRows) -> BoundedRows:
        codes = np.empty(rows.x.shape, order="F")  # column by column, as they are counted
        with np.errstate(invalid="ignore"):
            for place, attribute in enumerate(self.domain.attributes):
                np.floor(rows.x[:, place], out=codes[:, place])
                unknown = ~((codes[:, place] >= 0) & (codes[:, place] < attribute.size))
                codes[unknown, place] = attribute.size // 2 if attribute.numeric else 0
        return BoundedRows(codes, np.zeros(len(codes)), np.ones(len(codes)), rows.first_row)


@dataclass(frozen=True)
class Coder:
    """Turns batches of a table into codes; unknown cells are NaN until the row map places them."""

    domain: Domain

    def codes(self, batch: pa.Table | pa.RecordBatch) -> Matrix:
        """Positions of levels, of shape (m, attributes)."""
        codes = np.empty((batch.num_rows, len(self.domain.attributes)), order="F")
        for place, attribute in enumerate(self.domain.attributes):
            codes[:, place] = _codes(batch.column(attribute.name), attribute)
        return codes

    def check_types(self, schema: pa.Schema) -> None:
        """Refuse missing columns and types that can be neither number nor level."""
        for name in self.domain.names:
            found = schema.get_all_field_indices(name)
            if len(found) != 1:
                problem = "no column" if not found else "several columns"
                raise InvalidInput(f"{problem} {name!r} in the table, {has_columns(schema.names)}: check its names")
            if not readable(schema.field(found[0]).type):
                raise InvalidInput(
                    f"column {name!r} is of type {schema.field(found[0]).type}: numbers or text are read"
                )


@dataclass(frozen=True, eq=False)
class CodedSource(Source):
    """An Arrow table, coded chunk by chunk."""

    table: pa.Table
    domain: Domain

    @property
    def n(self) -> int:
        return int(self.table.num_rows)

    def chunks(self, rows: int) -> Iterator[RawRows]:
        coder = Coder(self.domain)
        for first in range(0, self.n, rows):
            yield RawRows(coder.codes(self.table.slice(first, rows)), None, first)


@dataclass(frozen=True, eq=False)
class CodedParquet(Source):
    """Parquet files of any size, read anew and coded chunk by chunk in every pass."""

    reader: Reader
    domain: Domain

    @property
    def n(self) -> int:
        return self.reader.n

    def chunks(self, rows: int) -> Iterator[RawRows]:
        coder, first = Coder(self.domain), 0
        for batch in chunks(self.reader, self.domain.names, rows):
            yield RawRows(coder.codes(batch), None, first)
            first += batch.num_rows


def _codes(column: pa.Array | pa.ChunkedArray, attribute: Attribute) -> Vector:
    if attribute.edges:
        return _binned(to_numbers(column), attribute)
    whole = _whole_numbers(attribute.levels)
    if whole is not None and pa.types.is_integer(column.type):
        # an unsigned cell beyond int64 becomes one that no level is
        cells = np.asarray(pc.fill_null(pc.cast(column, pa.int64(), safe=False), int(whole.min()) - 1))
        if np.array_equal(whole, np.arange(whole[0], whole[0] + len(whole))):
            return np.asarray(cells - float(whole[0]))
        order = np.argsort(whole)
        place = np.minimum(np.searchsorted(whole[order], cells), len(whole) - 1)
        return np.where(whole[order][place] == cells, order[place], np.nan)
    return to_codes(column, attribute.levels)


def _binned(cells: Vector, attribute: Attribute) -> Vector:
    """Equal bins of ``[lower, upper]``; what lies outside counts as the nearest bin."""
    lower, upper = attribute.edges
    with np.errstate(over="ignore", invalid="ignore"):
        place = np.floor((cells - lower) / (upper - lower) * attribute.size)
    return np.where(np.isfinite(cells), np.clip(place, 0, attribute.size - 1), np.nan)


def _whole_numbers(levels: Sequence[str]) -> NDArray[np.int64] | None:
    try:
        numbers = [int(level) for level in levels]
    except ValueError:
        return None
    if [str(number) for number in numbers] != list(levels) or max(map(abs, numbers)) > 2**53:
        return None
    return np.array(numbers, dtype=np.int64)


def decoded(domain: Domain, codes: NDArray[np.int64]) -> pa.Table:
    """Codes as a table: whole-number levels as integers, bins as their middles, other levels as text."""
    columns = {}
    for place, attribute in enumerate(domain.attributes):
        whole = _whole_numbers(attribute.levels)
        if attribute.edges:
            values = pa.array(attribute.values, pa.float64())
        elif whole is not None:
            values = pa.array(whole, pa.int64())
        else:
            values = pa.array(attribute.levels, pa.large_string())
        columns[attribute.name] = values.take(pa.array(codes[:, place]))
    return pa.table(columns)
