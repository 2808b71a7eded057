"""Queries to SQL databases, which are run again in every pass.

The error of a database may quote a cell, so only messages from before any row is read are passed on.
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from dpregress.display import shown
from dpregress.errors import InvalidInput
from dpregress.rows.design.encoder import text_of, untyped
from dpregress.rows.readers.base import DuckDBReader, Reader, quoted
from dpregress.rows.readers.failures import planning, raise_alone, reading, unreached

_URL = re.compile(r"[A-Za-z][\w+.\-]*://[^\s'\"]+")
#: Texts, quoted names and comments, which contain no SQL keywords.
_ASIDE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
#: Keywords that change the number of rows.
_SELECTS = re.compile(
    r"\b(?:WHERE|HAVING|QUALIFY|JOIN|DISTINCT|GROUP\s+BY|INTERSECT|EXCEPT|UNION|UNNEST|PIVOT|UNPIVOT)\b",
    re.IGNORECASE,
)
_SCHEMES = ("duckdb", "postgresql", "sqlite")
#: A cell of a SQLite column of numbers, and of whole numbers; NULL for anything else. No cell makes this fail.
_NUMBER = "CASE WHEN typeof({0}) IN ('integer', 'real') THEN CAST({0} AS REAL) END"
_WHOLE = "CASE WHEN typeof({0}) = 'integer' THEN {0} END"
_FETCHED = 1 << 12  # rows that SQLite gives at once; more leave the cache
_HELD = 1 << 28  # bytes of rows that stay in memory between the passes


@dataclass(frozen=True)
class SQLQuery:
    """A query to a database, as a table for ``fit_table``: it is run once in every pass.

    Parameters
    ----------
    url : str
        ``duckdb:///file.db`` or ``duckdb://`` (the ``sql`` extra), ``sqlite:///file.db``, or
        ``postgresql://user@host/database`` (the ``postgresql`` extra).
    query : str
        One SELECT statement.

    Examples
    --------
    >>> from dpregress import SQLQuery
    >>> SQLQuery("sqlite:///clinic.db", "SELECT age, cost FROM visits").query
    'SELECT age, cost FROM visits'
    """

    url: str
    query: str

    def __repr__(self) -> str:
        query = _URL.sub(lambda found: shown(found.group()), self.query)
        return f"SQLQuery(url={shown(self.url)!r}, query={query!r})"

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not isinstance(self.query, str) or not self.query.strip():
            raise InvalidInput("a query needs the database's URL and one SELECT statement")
        if self._scheme not in _SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
            given = self._scheme if "://" in self.url else "no scheme"
            raise InvalidInput(f"no database is known by {given or 'no scheme'}: a URL begins with {known}")

    @property
    def _scheme(self) -> str:
        return self.url.partition("://")[0]

    @property
    def selects(self) -> str | None:
        """The keyword by which the number of rows depends on their contents, such as WHERE; None if there is none.

        The result depends only on the text of the query.
        """
        found = _SELECTS.search(_ASIDE.sub(" ", self.query))
        return None if found is None else " ".join(found.group().upper().split())

    def open(self) -> Reader:
        """Connect and plan the query; InvalidInput if that fails, before any row is read."""
        if self._scheme == "duckdb":
            return _duckdb(self._file, self.query)
        if self._scheme == "sqlite":
            return _SQLiteReader(self._file, self.query)
        return _ADBCReader(self.url, self.query)

    @property
    def _file(self) -> str:
        """``/a.db`` of ``duckdb:////a.db``, ``a.db`` of ``duckdb:///a.db``, nothing of ``duckdb://``."""
        parts = urlsplit(self.url)
        if parts.netloc:
            raise InvalidInput(f"a file has no host: write {shown(f'{parts.scheme}:///{parts.netloc}{parts.path}')}")
        return unquote(parts.path.removeprefix("/"))


def _duckdb(file: str, query: str) -> Reader:
    try:
        import duckdb
    except ImportError as error:
        raise InvalidInput("DuckDB is not installed: pip install 'dpregress[sql]'") from error
    if file and not Path(file).is_file():
        raise InvalidInput(f"no file {file}: check the URL")
    with planning("the database cannot be opened"):
        connection = duckdb.connect(file, read_only=True) if file else duckdb.connect()
        connection.execute("SET threads = 1")  # the threads are needed for the sums
        connection.execute("SET enable_progress_bar = false")
    with planning("the query cannot be planned", query):
        try:
            return DuckDBReader(connection.sql(query))
        except (duckdb.DataError, duckdb.InvalidInputException):  # of a cell: PIVOT and CSV files are read for a plan
            raise_alone(InvalidInput("it fails on what the tables hold"))


class _SQLiteReader(Reader):
    """SQLite, in which a cell need not have the declared type of its column.

    Columns declared as REAL hold numbers, and those declared as INTEGER hold whole numbers. Both are read column by
    column, and other cells are missing. In all other columns, and in those that the query computes, each cell is read
    as text. Rows stay in memory up to a fixed size, because SQLite returns one row at a time, which is slow.
    """

    def __init__(self, file: str, query: str) -> None:
        if not Path(file).is_file():
            raise InvalidInput(f"no file {file or '(none)'}: check the URL")
        self._file = file
        self._query = _subquery(query)
        self._held: dict[tuple[str, ...], list[pa.RecordBatch]] = {}
        with closing(self._connect()) as connection, planning("the query cannot be planned", query):
            columns = connection.execute(f"SELECT * FROM {self._query} LIMIT 0").description
            connection.execute(f"CREATE TEMP VIEW dpregress_view AS SELECT * FROM {self._query}")
            declared = [column[2] for column in connection.execute("PRAGMA table_info(dpregress_view)")]
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
        with closing(self._connect()) as connection, reading(self.name):
            return int(connection.execute(f"SELECT count(*) FROM {self._query}").fetchone()[0])

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
        cells = ", ".join(_cell(field.type).format(quoted([field.name])) for field in kinds)
        with closing(self._connect()) as connection:
            cursor = connection.execute(f"SELECT {cells} FROM {self._query}")
            while rows := cursor.fetchmany(_FETCHED):
                arrays = [
                    pa.array(map(_text, column) if pa.types.is_large_string(field.type) else column, field.type)
                    for column, field in zip(zip(*rows, strict=True), kinds, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=kinds)

    def _connect(self) -> sqlite3.Connection:
        with planning(f"{self._file} cannot be opened"):
            connection = sqlite3.connect(f"{Path(self._file).absolute().as_uri()}?mode=ro", uri=True)
            connection.text_factory = lambda cell: cell.decode("utf-8", "replace")  # strange bytes must not raise
            return connection


class _ADBCReader(Reader):
    """PostgreSQL, in one read-only transaction, so that every pass sees the same rows."""

    def __init__(self, url: str, query: str) -> None:
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError as error:
            raise InvalidInput("the PostgreSQL driver is not installed: pip install 'dpregress[postgresql]'") from error
        self._query = _subquery(query)
        try:
            self._connection: Any = dbapi.connect(url)
        except Exception as error:  # it may quote the URL
            raise_alone(InvalidInput(f"the database cannot be reached: {unreached(error)}; check {shown(url)}"))
        weakref.finalize(self, self._connection.close)
        with planning("the query cannot be planned", query):
            self._run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            with self._connection.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {self._query} LIMIT 0")
                found = cursor.fetch_arrow_table().schema
        self._schema = pa.schema([(field.name, _storage(field.type)) for field in found])

    def _run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    @property
    def name(self) -> str:
        return "the query"

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @cached_property
    def n(self) -> int:
        with self._connection.cursor() as cursor, reading(self.name):
            cursor.execute(f"SELECT count(*) FROM {self._query}")
            return int(cursor.fetchone()[0])

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # as they come
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {quoted(columns)} FROM {self._query}")
            for batch in cursor.fetch_record_batch():
                arrays = [
                    column.storage if isinstance(column.type, pa.BaseExtensionType) else column
                    for column in batch.columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _text(cell: Any) -> str | None:
    """A cell as text; SQLite has already decoded text."""
    return cell if type(cell) is str else text_of(cell)


def _cell(kind: pa.DataType) -> str:
    """The SQL expression for a cell of a column of this type."""
    if pa.types.is_integer(kind):
        return _WHOLE
    return _NUMBER if pa.types.is_floating(kind) else "{0}"


def _declared_field(name: str, declared: str) -> pa.Field:
    """Numbers for SQLite's affinities INTEGER and REAL, and text for TEXT.

    Anything else, such as a computed column, has no type. This includes NUMERIC, which dates have as well.
    """
    kind = declared.upper()
    if "INT" in kind:
        return pa.field(name, pa.int64())
    if any(word in kind for word in ("CHAR", "CLOB", "TEXT")):
        return pa.field(name, pa.large_string())
    if "BLOB" not in kind and any(word in kind for word in ("REAL", "FLOA", "DOUB")):
        return pa.field(name, pa.float64())
    return untyped(name)


def _storage(kind: pa.DataType) -> pa.DataType:
    """The Arrow type for a PostgreSQL type that Arrow lacks: the digits of numeric as text."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _subquery(query: str) -> str:
    return f"({query.strip().rstrip(';')}\n) AS dpregress_rows"  # a comment may end the query
