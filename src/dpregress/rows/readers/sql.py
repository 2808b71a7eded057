"""Queries to SQL databases, which are run again in every pass.

The error of a database may quote a cell, so only messages from before any row is read are passed on.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from dpregress.display import shown
from dpregress.errors import InvalidInput
from dpregress.rows.readers.base import DuckDBReader, Reader, SQLDatabase, quoted, subquery
from dpregress.rows.readers.failures import planning, raise_alone, reading, unreached
from dpregress.rows.readers.sqlite import SQLiteReader

_URL = re.compile(r"[A-Za-z][\w+.\-]*://[^\s'\"]+")
#: Texts, quoted names and comments, which contain no SQL keywords.
_ASIDE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
#: Keywords that change the number of rows.
_SELECTS = re.compile(
    r"\b(?:WHERE|HAVING|QUALIFY|JOIN|DISTINCT|GROUP\s+BY|INTERSECT|EXCEPT|UNION|UNNEST|PIVOT|UNPIVOT)\b",
    re.IGNORECASE,
)
#: Bytes of a batch of PostgreSQL. The driver's 16 MiB keep the server waiting and leave the cache.
_BATCH_BYTES = 1 << 18
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
            return SQLiteReader(self._file, self.query)
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
            return DuckDBReader(connection.sql(query), connection)
        except (duckdb.DataError, duckdb.InvalidInputException):  # of a cell: PIVOT and CSV files are read for a plan
            raise_alone(InvalidInput("it fails on what the tables hold"))


class _ADBCReader(Reader):
    """PostgreSQL, in one read-only transaction, so that every pass sees the same rows."""

    def __init__(self, url: str, query: str) -> None:
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError as error:
            raise InvalidInput("the PostgreSQL driver is not installed: pip install 'dpregress[postgresql]'") from error
        self._query = subquery(query)
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

    @property
    def database(self) -> SQLDatabase:
        return SQLDatabase("postgres", self._query, self._answer)

    def _answer(self, statement: str) -> Sequence[Sequence[Any]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            found: Sequence[Sequence[Any]] = cursor.fetchall()
            return found

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # as they come
        with self._connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": _BATCH_BYTES})
            cursor.execute(f"SELECT {quoted(columns)} FROM {self._query}")
            for batch in cursor.fetch_record_batch():
                arrays = [
                    column.storage if isinstance(column.type, pa.BaseExtensionType) else column
                    for column in batch.columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _storage(kind: pa.DataType) -> pa.DataType:
    """The Arrow type for a PostgreSQL type that Arrow lacks: the digits of numeric as text."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
