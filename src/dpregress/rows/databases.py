"""Queries to SQL databases, run anew in every pass.

A database may fail on a cell and quote it, so only what it says before any row is read is passed on.
"""

from __future__ import annotations

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

from dpregress.errors import InvalidInput
from dpregress.rows.encoding import text_of, untyped
from dpregress.rows.readers import DuckDBReader, Reader, public, quoted, reading

_SCHEMES = ("duckdb", "postgresql", "sqlite")


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

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not isinstance(self.query, str) or not self.query.strip():
            raise InvalidInput("a query needs the database's URL and one SELECT statement")
        if self._scheme not in _SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
            raise InvalidInput(f"no database is known by {self._scheme or 'no scheme'}: a URL begins with {known}")

    @property
    def _scheme(self) -> str:
        return self.url.partition("://")[0]

    def open(self) -> Reader:
        """Connect and plan the query; InvalidInput where that fails, before any row is read."""
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
            raise InvalidInput(f"a file has no host: write {parts.scheme}:///{parts.netloc}{parts.path}")
        return unquote(parts.path.removeprefix("/"))


def _duckdb(file: str, query: str) -> Reader:
    try:
        import duckdb
    except ImportError as error:
        raise InvalidInput("DuckDB is not installed: pip install 'dpregress[sql]'") from error
    if file and not Path(file).is_file():
        raise InvalidInput(f"no file {file}: check the URL")
    with public("the database cannot be opened"):
        connection = duckdb.connect(file, read_only=True) if file else duckdb.connect()
        connection.execute("SET threads = 1")  # the threads are needed for the sums
        connection.execute("SET enable_progress_bar = false")
    with public("the query cannot be planned"):
        try:
            return DuckDBReader(connection.sql(query))
        except (duckdb.DataError, duckdb.InvalidInputException):  # of a cell: PIVOT and CSV files are read for a plan
            raise InvalidInput("it fails on what the tables hold") from None


class _SQLiteReader(Reader):
    """SQLite, whose columns have no types: every cell is read by itself, as text."""

    def __init__(self, file: str, query: str) -> None:
        if not Path(file).is_file():
            raise InvalidInput(f"no file {file or '(none)'}: check the URL")
        self._file = file
        self._query = _subquery(query)
        with closing(self._connect()) as connection, public("the query cannot be planned"):
            columns = connection.execute(f"SELECT * FROM {self._query} LIMIT 0").description
        self._schema = pa.schema([untyped(column[0]) for column in columns])

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

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        kinds = pa.schema([(name, pa.large_string()) for name in columns])
        with closing(self._connect()) as connection:
            cursor = connection.execute(f"SELECT {quoted(columns)} FROM {self._query}")
            while held := cursor.fetchmany(rows):
                cells = zip(*held, strict=True)
                arrays = [pa.array([text_of(cell) for cell in column], pa.large_string()) for column in cells]
                yield pa.RecordBatch.from_arrays(arrays, schema=kinds)

    def _connect(self) -> sqlite3.Connection:
        with public(f"{self._file} cannot be opened"):
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
        with public("the database cannot be reached"):
            self._connection: Any = dbapi.connect(url)
        weakref.finalize(self, self._connection.close)
        with public("the query cannot be planned"):
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


def _storage(kind: pa.DataType) -> pa.DataType:
    """How a type that Arrow lacks is sent: of numeric the digits, as text."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _subquery(query: str) -> str:
    return f"({query.strip().rstrip(';')}\n) AS dpregress_rows"  # a comment may end the query
