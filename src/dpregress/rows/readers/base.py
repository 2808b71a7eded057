"""Readers: tables that are read repeatedly in batches and never held in memory as a whole.

Types and the number of rows are public and known before a pass. The cells are private, and errors during a pass do not
reveal them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from dpregress.coordinates.exact import Integers
from dpregress.errors import InvalidInput, SourceError
from dpregress.rows.readers.failures import planning, raise_alone, reading
from dpregress.rows.row_kernel import Program, UnitCap


@runtime_checkable
class ArrowStream(Protocol):
    """Anything with the Arrow PyCapsule stream interface: pandas, Polars, Arrow, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


#: Public rows as a table of a statement, in a dialect.
Writer = Callable[[pa.Table, str], str]


class PushedSums(Protocol):
    """Sums that a database computes: :class:`~dpregress.rows.push_down_sql.RowSums`."""

    @property
    def features(self) -> tuple[str, ...]: ...

    @property
    def beside(self) -> Mapping[str, str]: ...

    @property
    def program(self) -> Program: ...

    @property
    def uncast(self) -> frozenset[str]: ...

    @property
    def cap(self) -> UnitCap | None: ...

    @property
    def given(self) -> tuple[str, ...]: ...

    def statement(self, source: str, dialect: str) -> str: ...

    def read(self, rows: Iterable[Sequence[Any]]) -> tuple[Integers, int, int]: ...

    def of_words(self, parts: Iterable[pa.RecordBatch | pa.Table]) -> tuple[Integers, int, int]: ...


class Aggregator(ABC):
    """What holds the rows of a reader and computes sums over them itself.

    Attributes
    ----------
    most_columns : int
        With more columns, reading the rows is far cheaper.
    """

    most_columns: ClassVar[int] = 40

    @abstractmethod
    def summed(self, sums: PushedSums) -> tuple[Integers, int, int]:
        """The sums, the number of usable rows, and that of all rows. Errors may quote cells."""

    @abstractmethod
    def holding(self, table: pa.Table, write: Writer) -> Aggregator:
        """The same with public rows in place of the private ones."""

    def plan(self, sums: PushedSums) -> None:  # noqa: B027  # of those that plan a statement before they run it
        """Fail as :meth:`summed` would for the types of columns, without reading a row."""


@dataclass(frozen=True)
class SQLDatabase(Aggregator):
    """One that takes statements.

    Parameters
    ----------
    dialect : str
        The name of its SQL in sqlglot.
    source : str
        The rows as a table of a statement.
    answer : callable
        Runs a statement and gives its rows.
    """

    dialect: str
    source: str
    answer: Callable[[str], Sequence[Sequence[Any]]]

    def summed(self, sums: PushedSums) -> tuple[Integers, int, int]:
        return sums.read(self.answer(sums.statement(self.source, self.dialect)))

    def plan(self, sums: PushedSums) -> None:
        self.answer(sums.statement(f"(SELECT * FROM {self.source} LIMIT 0) AS dpregress_none", self.dialect))

    def holding(self, table: pa.Table, write: Writer) -> SQLDatabase:
        return replace(self, source=write(table, self.dialect))


class Reader(ABC):
    """A table that can be read repeatedly."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in messages."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The public names and types of its columns."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows, public under replace-one neighbours; determined once, by a pass if it is not stored."""

    @property
    def ordered(self) -> bool:
        """Whether rows have a fixed order, for any contents and any selection of columns.

        A query has no fixed order: an engine plans it again for other columns, using what it knows about the cells.
        """
        return False

    @abstractmethod
    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """These columns of every row, in batches of about this many rows."""

    def parts(self, rows: int) -> Iterator[Reader]:  # noqa: ARG002  # most tables cannot be divided
        """Readers of consecutive rows, for other processes; ``rows`` are those of a chunk.

        Raises
        ------
        InvalidInput
            If its rows have no fixed order, or cannot be read from their middle.
        """
        raise InvalidInput(
            f"{self.name} cannot be divided among workers: write it to Parquet files and fit those, or give no engine"
        )

    @property
    def database(self) -> Aggregator | None:
        """The database that holds the rows, if it can compute sums over them."""
        return None

    def check_reached(self) -> None:  # noqa: B027  # of all readers, only parts are moved
        """Refuse, in a process to which a part was sent, what is not the same there.

        Raises
        ------
        SourceError
        """

    def check(self, columns: Sequence[str]) -> None:  # noqa: B027  # most tables have a single part
        """Refuse parts of the table in which these columns have another type than in the first part."""


def divided(reader: Reader, rows: int) -> Iterator[tuple[int, Reader]]:
    """The parts of a reader that have rows, each with the place of its first row."""
    first = 0
    for part in reader.parts(rows):
        if part.n:
            yield first, part
        first += part.n


def chunks(reader: Reader, columns: Sequence[str], rows: int) -> Iterator[pa.Table | pa.RecordBatch]:
    """These columns in chunks of exactly ``rows`` rows, except for the last, for batches of any size.

    Raises
    ------
    SourceError
        If rows cannot be read, their number is not ``reader.n``, or types have changed.
    """
    try:
        yield from _chunks(reader, columns, rows)
    except SourceError as error:
        raise_alone(SourceError(f"{error}; a budget that was charged stays charged"))


def _chunks(reader: Reader, columns: Sequence[str], rows: int) -> Iterator[pa.Table | pa.RecordBatch]:
    wanted = reader.schema
    types = [wanted.field(name).type for name in columns]
    held: list[pa.RecordBatch] = []
    have = seen = 0
    for batch in _guarded(reader.batches(columns, rows), reader.name):
        seen += batch.num_rows
        if seen > reader.n or batch.schema.types != types:
            raise _changed(reader)
        rest = batch
        while rest.num_rows >= rows - have:
            held.append(rest.slice(0, rows - have))
            rest = rest.slice(rows - have)
            yield _joined(held)
            held, have = [], 0
        if rest.num_rows:
            held.append(rest)
            have += rest.num_rows
    if seen != reader.n:
        raise _changed(reader)
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.Table | pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches)


def _guarded(batches: Iterator[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    while True:
        with reading(name):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _changed(reader: Reader) -> SourceError:
    return SourceError(f"{reader.name} has changed since the fit began: it no longer has the rows or types it had")


def has_columns(names: Sequence[str]) -> str:
    """The number of columns, for messages; without a header, the names would be the first record."""
    return "which has 1 column" if len(names) == 1 else f"which has {len(names)} columns"


def count_rows(batches: Iterable[pa.RecordBatch], name: str) -> int:
    """Number of rows, by one pass."""
    with reading(name):
        return sum(batch.num_rows for batch in batches)


class CapsuleReader(Reader):
    """Any object that returns a new Arrow stream on each request.

    Parameters
    ----------
    data : ArrowStream

    Raises
    ------
    InvalidInput
        For a stream that can be read only once.
    """

    def __init__(self, data: ArrowStream) -> None:
        self._data = data
        if isinstance(data, pa.RecordBatchReader):
            raise self._once()
        with self._stream() as stream:
            self._schema = stream.schema

    @property
    def name(self) -> str:
        return type(self._data).__name__

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @cached_property
    def n(self) -> int:
        with self._stream() as stream:
            rows = count_rows(stream, self.name)
        with self._stream() as stream, reading(self.name):
            again = any(batch.num_rows for batch in stream)  # stops at the first row
        if again != (rows > 0):
            raise self._once()
        return rows

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # as they come
        with self._stream() as stream:
            for batch in stream:
                yield batch.select(list(columns))

    def _stream(self) -> pa.RecordBatchReader:
        try:
            return pa.RecordBatchReader.from_stream(self._data)
        except Exception:
            raise_alone(self._once())

    def _once(self) -> InvalidInput:
        return InvalidInput(
            f"{self.name} can be read only once, and a fit reads its rows several times: give the file, the query or "
            "the table that it comes from"
        )


class DatasetReader(Reader):
    """A ``pyarrow.dataset.Dataset``: many files, local or remote, with one schema."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    @property
    def name(self) -> str:
        return "the dataset"

    @property
    def schema(self) -> pa.Schema:
        return self._dataset.schema

    @cached_property
    def n(self) -> int:
        with reading(self.name):
            return int(self._dataset.count_rows())

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        # the defaults of Arrow read whole files ahead
        yield from self._dataset.to_batches(
            columns=list(columns), batch_size=rows, batch_readahead=2, fragment_readahead=1
        )


class LazyFrameReader(Reader):
    """A Polars LazyFrame, run by its streaming engine in every pass."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def name(self) -> str:
        return "the LazyFrame"

    @cached_property
    def schema(self) -> pa.Schema:
        import polars as pl

        with planning(f"{self.name} cannot be planned"):
            return pa.RecordBatchReader.from_stream(pl.DataFrame(schema=self._frame.collect_schema())).schema

    @cached_property
    def n(self) -> int:
        import polars as pl

        with reading(self.name):
            return int(self._frame.select(pl.len()).collect(engine="streaming").item())

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        for frame in self._frame.select(list(columns)).collect_batches(chunk_size=rows, engine="streaming"):
            yield from pa.RecordBatchReader.from_stream(frame)


#: The rows of a relation in a statement; a table of this name in the database would hide them.
_DUCKDB_ROWS = "dpregress_rows_of_the_relation"


class DuckDBReader(Reader):
    """A DuckDB relation, run in every pass.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    connection : duckdb.DuckDBPyConnection, optional
        The one it was made on, if it belongs to this reader: the settings of others stay as they are.
    """

    def __init__(self, relation: Any, connection: Any = None) -> None:
        self._relation, self._connection = relation, connection

    @property
    def name(self) -> str:
        return "the query"

    @cached_property
    def schema(self) -> pa.Schema:
        with planning(f"{self.name} cannot be planned"):
            return pa.RecordBatchReader.from_stream(self._relation.limit(0)).schema

    @cached_property
    def n(self) -> int:
        with reading(self.name):
            return int(pa.table(self._relation.aggregate("count(*) AS n"))["n"][0].as_py())

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # as they come
        yield from pa.RecordBatchReader.from_stream(self._relation.project(quoted(columns)))

    @property
    def database(self) -> SQLDatabase:
        return SQLDatabase("duckdb", _DUCKDB_ROWS, self._answer)

    def _answer(self, statement: str) -> Sequence[Sequence[Any]]:
        """All threads of DuckDB compute, where nobody else does; a connection plans a statement only once."""
        found: Sequence[Sequence[Any]]
        if self._connection is None:
            found = self._relation.query(_DUCKDB_ROWS, statement).fetchall()
            return found
        self._connection.register(_DUCKDB_ROWS, self._relation)
        self._connection.execute("RESET threads")
        try:
            found = self._connection.execute(statement).fetchall()
            return found
        finally:
            self._connection.execute("SET threads = 1")
            self._connection.unregister(_DUCKDB_ROWS)


def quoted(columns: Sequence[str]) -> str:
    """Names of columns as SQL reads them."""
    return ", ".join('"' + name.replace('"', '""') + '"' for name in columns)


def unused(name: str, text: str) -> str:
    """A name that begins like this one, and that a text does not mention."""
    while name in text.lower():
        name += "_"
    return name


def subquery(query: str) -> str:
    """A query as a table of another query; a comment may end it."""
    return f"({query.strip().rstrip(';')}\n) AS dpregress_rows"
