"""Sources: private rows in chunks, which can be read any number of times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.rows.bounded import RawRows
from dpregress.rows.design.base import Design
from dpregress.rows.design.encoder import to_numbers
from dpregress.rows.readers.base import (
    ArrowStream,
    CapsuleReader,
    DatasetReader,
    DuckDBReader,
    LazyFrameReader,
    Reader,
    chunks,
    divided,
)
from dpregress.rows.readers.files import read_files
from dpregress.rows.readers.lakes import DeltaReader, IcebergReader
from dpregress.rows.readers.spark import SparkReader
from dpregress.rows.readers.sql import SQLQuery

#: A function that returns a chunk and may be called on any thread.
Piece = Callable[[], RawRows]


class Part(NamedTuple):
    """Some consecutive rows of a source, as a source of their own that can be pickled.

    ``first_row`` is the place of its first row in the whole.
    """

    first_row: int
    rows: Source


class Source(ABC):
    """Rows that can be read repeatedly in the same order."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows, public under replace-one neighbours."""

    @abstractmethod
    def pieces(self, rows: int) -> Iterator[Piece]:
        """Functions that make chunks of at most ``rows`` rows, each with the index of its first row."""

    def chunks(self, rows: int) -> Iterator[RawRows]:
        """The chunks themselves."""
        for piece in self.pieces(rows):
            yield piece()

    @abstractmethod
    def parts(self, rows: int) -> Iterator[Part]:
        """All rows in consecutive parts, for processes that compute sums in chunks of ``rows`` rows.

        Raises
        ------
        InvalidInput
            If they are read by a reader that cannot be divided.
        """

    def readers(self) -> tuple[Reader, ...]:
        """What reads the rows anew in every pass; nothing for rows in memory."""
        return ()

    @property
    def capped(self) -> bool:
        """Whether the rows of each unit are capped. Neighbouring tables may then hold a unit's rows in other places."""
        return False

    def responses(self) -> Source:
        """The same rows without features, if reading features takes time."""
        return self


@dataclass(frozen=True, eq=False, repr=False)
class ArraySource(Source):
    """NumPy arrays in memory, sliced without copying.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    y : ndarray of shape (n,) or None
    """

    x: Matrix
    y: Vector | None = None

    def __post_init__(self) -> None:
        if self.x.ndim != 2 or (self.y is not None and self.y.shape != self.x.shape[:1]):
            raise InvalidInput("X must have shape (n, d) and y shape (n,)")

    @property
    def n(self) -> int:
        return len(self.x)

    def pieces(self, rows: int) -> Iterator[Piece]:
        for first in range(0, self.n, rows):
            part = slice(first, first + rows)
            yield partial(RawRows, self.x[part], None if self.y is None else self.y[part], first)

    def parts(self, rows: int) -> Iterator[Part]:
        for first in range(0, self.n, rows):
            part = slice(first, first + rows)
            yield Part(first, ArraySource(self.x[part], None if self.y is None else self.y[part]))


class _Encoded(Source):
    """A source of tables that are encoded chunk by chunk."""

    encoder: Design

    @abstractmethod
    def _tables(self, rows: int) -> Iterator[pa.Table | pa.RecordBatch]:
        """The required columns, in tables of exactly ``rows`` rows except for the last."""

    def pieces(self, rows: int) -> Iterator[Piece]:
        first = 0
        for table in self._tables(rows):
            yield partial(_encoded, self.encoder, table, first)
            first += table.num_rows


def _encoded(encoder: Design, table: pa.Table | pa.RecordBatch, first: int) -> RawRows:
    return RawRows(encoder.x(table), encoder.y(table), first, exposure=encoder.exposure(table))


@dataclass(frozen=True, eq=False, repr=False)
class TableSource(_Encoded):
    """An Arrow table in memory, encoded chunk by chunk.

    Parameters
    ----------
    table : pyarrow.Table
    encoder : Design
    """

    table: pa.Table
    encoder: Design

    @property
    def n(self) -> int:
        return int(self.table.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.table.schema

    def column(self, name: str) -> Iterator[pa.Array | pa.ChunkedArray]:
        """One column, in the order of the rows."""
        yield self.table[name]

    def parts(self, rows: int) -> Iterator[Part]:
        for first in range(0, self.n, rows):
            yield Part(first, replace(self, table=detached(self.table.slice(first, rows))))

    def _tables(self, rows: int) -> Iterator[pa.Table | pa.RecordBatch]:
        for first in range(0, self.n, rows):
            yield self.table.slice(first, rows)


def detached(table: pa.Table) -> pa.Table:
    """The rows of a slice without those around them, with which Arrow would pickle it."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(buffer.getvalue()).read_all()


#: What goes without an order: the database numbers rows itself.
_IN_PLACE = "; with a unit, push-down will do as well"


@dataclass(frozen=True, eq=False, repr=False)
class StreamSource(_Encoded):
    """A table that is read again in every pass, in chunks that do not depend on how it is stored.

    Parameters
    ----------
    reader : Reader
    encoder : Design
    """

    reader: Reader
    encoder: Design

    @property
    def n(self) -> int:
        return self.reader.n

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.reader.schema

    def column(self, name: str) -> Iterator[pa.Array | pa.ChunkedArray]:
        """One column, in the order of the rows, by a pass of its own.

        Raises
        ------
        InvalidInput
            If rows have no fixed order: it could then differ between this pass and those over other columns.
        """
        if not self.reader.ordered:
            raise InvalidInput(
                f"{self.reader.name} gives its rows in no fixed order, and ids or weights are read by themselves: "
                f"write its result to Parquet and fit that{_IN_PLACE if self.reader.database is not None else ''}"
            )
        return (table.column(name) for table in chunks(self.reader, (name,), 1 << 16))

    def responses(self) -> Self:
        return replace(self, encoder=self.encoder.responses())

    def parts(self, rows: int) -> Iterator[Part]:
        for first, reader in divided(self.reader, rows):
            yield Part(first, replace(self, reader=reader))

    def readers(self) -> tuple[Reader, ...]:
        return (self.reader,)

    def _tables(self, rows: int) -> Iterator[pa.Table | pa.RecordBatch]:
        return chunks(self.reader, self.encoder.needed, rows)


@dataclass(frozen=True, eq=False, repr=False)
class SourceOf(Source):
    """The rows of another source, with something beside them."""

    rows: Source

    @property
    def n(self) -> int:
        return self.rows.n

    @property
    def capped(self) -> bool:
        return self.rows.capped

    def readers(self) -> tuple[Reader, ...]:
        return self.rows.readers()


@dataclass(frozen=True, eq=False, repr=False)
class ExposedSource(SourceOf):
    """A source with exposures for its rows.

    Parameters
    ----------
    rows : Source
    exposure : ndarray of shape (n,)
    """

    exposure: Vector

    def __post_init__(self) -> None:
        if self.exposure.shape != (self.rows.n,):
            raise InvalidInput(f"X has {self.rows.n} rows, but exposure has {len(self.exposure)}")

    def pieces(self, rows: int) -> Iterator[Piece]:
        for piece in self.rows.pieces(rows):
            yield partial(_exposed, piece, self.exposure)

    def parts(self, rows: int) -> Iterator[Part]:
        for first, part in self.rows.parts(rows):
            yield Part(first, ExposedSource(part, self.exposure[first : first + part.n]))

    def responses(self) -> Self:
        return replace(self, rows=self.rows.responses())


def _exposed(piece: Piece, exposure: Vector) -> RawRows:
    chunk = piece()
    return replace(chunk, exposure=exposure[chunk.first_row : chunk.first_row + len(chunk.x)])


@dataclass(frozen=True, eq=False, repr=False)
class WeightedSource(SourceOf):
    """A source with survey weights for its rows, divided by their public bound.

    The weights are read by a pass of their own when rows are first requested, that is, after the charge, and are kept
    in memory.

    Parameters
    ----------
    rows : Source
    weights : iterable of pyarrow arrays, or ndarray of shape (n,)
        One weight for each row, in the order of the rows; read once.
    bound : float
        Larger weights count as this.
    """

    weights: Iterable[pa.Array | pa.ChunkedArray] | Vector
    bound: float

    @cached_property
    def _shares(self) -> Vector:
        given = self.weights
        whole = given if isinstance(given, np.ndarray) else np.concatenate([to_numbers(part) for part in given])
        if len(whole) != self.n:
            raise InvalidInput("there is not one weight for each row: give one for each")
        with np.errstate(all="ignore"):  # an error would tell of a cell, after the charge
            return np.asarray(whole / self.bound)

    def pieces(self, rows: int) -> Iterator[Piece]:
        shares = self._shares
        for piece in self.rows.pieces(rows):
            yield partial(_surveyed, piece, shares)

    def parts(self, rows: int) -> Iterator[Part]:
        shares = self._shares
        for first, part in self.rows.parts(rows):
            yield Part(first, WeightedSource(part, shares[first : first + part.n], 1.0))

    def responses(self) -> WeightedSource:
        return WeightedSource(self.rows.responses(), self._shares, 1.0)  # weights are read once


def _surveyed(piece: Piece, shares: Vector) -> RawRows:
    chunk = piece()
    return replace(chunk, survey=shares[chunk.first_row : chunk.first_row + len(chunk.x)])


#: Readers of other libraries' objects: the package, the end of the type's name, and the reader. None is imported.
OBJECT_READERS: tuple[tuple[str, str, Callable[[Any], Reader]], ...] = (
    ("polars", "LazyFrame", LazyFrameReader),
    ("duckdb", "DuckDBPyRelation", DuckDBReader),
    ("pyarrow", "Dataset", DatasetReader),
    ("pyspark", "DataFrame", SparkReader),
    ("deltalake", "DeltaTable", DeltaReader),
    ("pyiceberg", "Table", IcebergReader),
)


def reader_of(source: Any) -> Reader:
    """The reader of files, a dataset, a lazy table, a relation, a query, or any Arrow stream that can be read again.

    A reader is given back. Rows of CSV files are counted in the same opening that finds their columns.

    Raises
    ------
    InvalidInput
        For anything else, and for streams that can be read only once.
    """
    if isinstance(source, Reader):
        return source
    if isinstance(source, SQLQuery):
        return source.open()
    package, kind = type(source).__module__.split(".", 1)[0], type(source).__name__
    for of, ending, reader in OBJECT_READERS:
        if package.lstrip("_") == of and kind.endswith(ending):
            return reader(source)
    if isinstance(source, ArrowStream):
        return CapsuleReader(source)
    return read_files(source, counted=True)
