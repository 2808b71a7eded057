"""Queries to SQLite, in which a cell need not have the declared type of its column.

ADBC's driver reads rows of numbers twice as fast as Python's own module (`python -m benchmarks.databases`). It takes
the types of its columns from the first rows, so the first row is one of known types that is added to every query.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from hashlib import md5
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpregress.errors import InvalidInput
from dpregress.rows.design.encoder import text_of, untyped
from dpregress.rows.readers.base import Reader, SQLDatabase, quoted, subquery, unused
from dpregress.rows.readers.failures import planning, reading

#: A cell of a column of numbers, and of whole numbers; NULL for anything else. No cell makes this fail. Numbers sort
#: before every text, and a comparison is faster than ``typeof``.
NUMBER = "CASE WHEN {0} < '' THEN CAST({0} AS REAL) END"
WHOLE = "CASE WHEN typeof({0}) = 'integer' THEN {0} END"
#: A cell of any other column, in four columns of one type each: whole numbers, numbers, texts, and digits of bytes.
_ANY = (
    WHOLE,
    "CASE WHEN typeof({0}) = 'real' THEN {0} END",
    "CASE WHEN typeof({0}) = 'text' THEN {0} END",
    "CASE WHEN typeof({0}) = 'blob' THEN hex({0}) END",
)
_FIRST_OF_ANY = "0, 0.0, '', ''"
#: Rows that are fetched at once by Python's module; more leave the cache. By the driver, with and without texts.
_FETCHED, _BATCH, _BATCH_OF_TEXTS = 1 << 12, 1 << 10, 1 << 8
_HELD = 1 << 28  # bytes of rows that stay in memory between the passes


class SQLiteReader(Reader):
    """A query to SQLite.

    Columns declared as REAL hold numbers, and those declared as INTEGER hold whole numbers; so do columns that the
    query computes by a CAST. Both are read column by column, and other cells are missing. In all other columns, each
    cell is read as text. Rows stay in memory up to a fixed size, because even the driver is slower than other sources.
    """

    def __init__(self, file: str, query: str) -> None:
        if not Path(file).is_file():
            raise InvalidInput(f"no file {file or '(none)'}: check the URL")
        self._file = file
        self.query = subquery(query)
        self._held: dict[tuple[str, ...], list[pa.RecordBatch]] = {}
        with closing(self.connect()) as connection, planning("the query cannot be planned", query):
            columns = connection.execute(f"SELECT * FROM {self.query} LIMIT 0").description
            declared = _declared(connection, self.query)
        self._schema = pa.schema(
            [_declared_field(column[0], kind) for column, kind in zip(columns, declared, strict=True)]
        )

    @property
    def name(self) -> str:
        return "the query"

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @cached_property
    def n(self) -> int:
        with closing(self.connect()) as connection, reading(self.name):
            return int(connection.execute(f"SELECT count(*) FROM {self.query}").fetchone()[0])

    @property
    def database(self) -> SQLDatabase:
        """Columns of whole numbers hold nothing else there either."""
        if not any(pa.types.is_integer(kind) for kind in self._schema.types):
            return SQLDatabase("sqlite", self.query, self._answer)
        columns = ((quoted([field.name]), pa.types.is_integer(field.type)) for field in self._schema)
        cells = ", ".join(f"{WHOLE.format(name) if whole else name} AS {name}" for name, whole in columns)
        return SQLDatabase("sqlite", f"(SELECT {cells} FROM {self.query}) AS dpregress_rows", self._answer)

    def _answer(self, statement: str) -> Sequence[Sequence[Any]]:
        with closing(self.connect()) as connection:
            connection.create_function("MD5", 1, _md5, deterministic=True)  # which other databases have
            found: Sequence[Sequence[Any]] = connection.execute(statement).fetchall()
            return found

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # as they are best read
        for read, batches in self._held.items():
            if set(columns) <= set(read):
                yield from (batch.select(list(columns)) for batch in batches)
                return
        kept: list[pa.RecordBatch] = []
        size = 0
        for batch in self._fetched(columns):
            size += batch.nbytes
            if size <= _HELD:
                kept.append(batch)
            else:
                kept.clear()
            yield batch
        if size <= _HELD:
            self._held[tuple(columns)] = kept

    def _fetched(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        kinds = pa.schema([self._schema.field(name) for name in columns])
        dbapi = _driver()
        return self._by_rows(kinds) if dbapi is None else self._by_columns(kinds, dbapi)

    def _by_rows(self, kinds: pa.Schema) -> Iterator[pa.RecordBatch]:
        cells = ", ".join(_cell(field.type).format(quoted([field.name])) for field in kinds)
        with closing(self.connect()) as connection:
            cursor = connection.execute(f"SELECT {cells} FROM {self.query}")
            while rows := cursor.fetchmany(_FETCHED):
                arrays = [
                    pa.array(map(_text, column) if pa.types.is_large_string(field.type) else column, field.type)
                    for column, field in zip(zip(*rows, strict=True), kinds, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=kinds)

    def _by_columns(self, kinds: pa.Schema, dbapi: Any) -> Iterator[pa.RecordBatch]:
        first: list[str] = []
        cells: list[str] = []
        for field in kinds:
            text = pa.types.is_large_string(field.type)
            first.append(_FIRST_OF_ANY if text else "0" if pa.types.is_integer(field.type) else "0.0")
            cells.extend(each.format(quoted([field.name])) for each in (_ANY if text else (_cell(field.type),)))
        asked = f"SELECT {', '.join(first)} UNION ALL SELECT {', '.join(cells)} FROM {self.query}"
        size = _BATCH_OF_TEXTS if len(cells) > len(kinds) else _BATCH
        with dbapi.connect(self._uri) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": size})
            cursor.execute(asked)
            skipped = 1
            for batch in cursor.fetch_record_batch():
                yield _of_kinds(batch.slice(skipped), kinds)
                skipped = 0

    @property
    def _uri(self) -> str:
        return f"{Path(self._file).absolute().as_uri()}?mode=ro"

    def connect(self) -> sqlite3.Connection:
        """A connection that cannot write."""
        with planning(f"{self._file} cannot be opened"):
            connection = sqlite3.connect(self._uri, uri=True)
            connection.text_factory = lambda cell: cell.decode("utf-8", "replace")  # strange bytes must not raise
            return connection


def _md5(cell: bytes | None) -> str | None:
    """The digest by which rows of a unit are drawn."""
    return None if cell is None else md5(cell, usedforsecurity=False).hexdigest()


def _driver() -> Any:
    """ADBC's driver; None where it is not installed."""
    try:
        from adbc_driver_sqlite import dbapi
    except ImportError:
        return None
    return dbapi


def _of_kinds(batch: pa.RecordBatch, kinds: pa.Schema) -> pa.RecordBatch:
    """The columns of a batch, four for each text."""
    columns = iter(batch.columns)
    arrays = [
        _texts(*islice(columns, len(_ANY))) if pa.types.is_large_string(field.type) else next(columns)
        for field in kinds
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=kinds)


def _texts(whole: pa.Array, real: pa.Array, text: pa.Array, digits: pa.Array) -> pa.Array:
    """Cells of any type as text, as :func:`_text` has them one by one."""
    cells = pc.coalesce(whole.cast(pa.large_string()).cast(pa.large_binary()), text.cast(pa.large_binary()))
    rare = pc.or_(pc.is_valid(real), pc.is_valid(digits))
    if pc.any(rare).as_py():
        given = zip(real.filter(rare).to_pylist(), digits.filter(rare).to_pylist(), strict=True)
        texts = [_text(bytes.fromhex(held)) if number is None else _text(number) for number, held in given]
        cells = pc.replace_with_mask(cells, rare, pa.array(texts, pa.large_string()).cast(pa.large_binary()))
    try:
        return cells.cast(pa.large_string())
    except pa.ArrowInvalid:  # strange bytes must not raise
        decoded = [None if cell is None else cell.decode("utf-8", "replace") for cell in cells.to_pylist()]
        return pa.array(decoded, pa.large_string())


def _text(cell: Any) -> str | None:
    """A cell as text; SQLite has already decoded text."""
    return cell if type(cell) is str else text_of(cell)


def _cell(kind: pa.DataType) -> str:
    """The SQL expression for a cell of a column of this type."""
    if pa.types.is_integer(kind):
        return WHOLE
    return NUMBER if pa.types.is_floating(kind) else "{0}"


def _declared(connection: sqlite3.Connection, query: str) -> list[str]:
    """The declared types of the columns of a query; some versions give that of a CAST in a new table only."""
    view, table = unused("dpregress_view", query), unused("dpregress_types", query)
    connection.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {query}")
    connection.execute(f"CREATE TEMP TABLE {table} AS SELECT * FROM {query} LIMIT 0")
    seen, cast = ([column[2] for column in connection.execute(f"PRAGMA table_info({name})")] for name in (view, table))
    return [kind or other for kind, other in zip(seen, cast, strict=True)]


def _declared_field(name: str, declared: str) -> pa.Field:
    """Numbers for SQLite's affinities INTEGER and REAL, and text for TEXT.

    Anything else, such as a column computed without CAST, has no type. This includes NUMERIC, which dates have as well.
    """
    kind = declared.upper()
    if "INT" in kind:
        return pa.field(name, pa.int64())
    if any(word in kind for word in ("CHAR", "CLOB", "TEXT")):
        return pa.field(name, pa.large_string())
    if "BLOB" not in kind and any(word in kind for word in ("REAL", "FLOA", "DOUB")):
        return pa.field(name, pa.float64())
    return untyped(name)
