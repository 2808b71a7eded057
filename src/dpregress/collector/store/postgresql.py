"""Reports in a PostgreSQL database, in a schema of the study's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from dpregress.collector.store.database import Database, Row
from dpregress.errors import StoreError

_SCHEMA = "dpregress_collector"
#: The lock of whoever writes.
_LOCK = 0x64707265


class PostgreSQLDatabase(Database):
    """A PostgreSQL database, in which a commit is on the disk whatever the server's default is.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host/database``.
    """

    blob: ClassVar[str] = "BYTEA"

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise StoreError("PostgreSQL needs psycopg: pip install 'dpregress[collector]'") from error
        self._connection = psycopg.connect(url, autocommit=True)
        try:
            for statement in (
                "SET client_min_messages = warning",
                "SET synchronous_commit = on",
                f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}",
                f"SET search_path = {_SCHEMA}",
            ):
                self._connection.execute(statement)
        except psycopg.Error:  # a role without rights: nobody else can close it
            self._connection.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(_marked(statement), parameters)

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(_marked(statement), parameters).fetchall()

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        with self._connection.cursor() as cursor, cursor.copy(_copied(table, columns)) as copy:
            for row in rows:
                copy.write_row(row)

    def matching(self, columns: str, table: str, key: str, keys: Sequence[Any]) -> list[Row]:
        return self.rows(f"SELECT {columns} FROM {table} WHERE {key} = ANY(?)", [list(keys)])

    def close(self) -> None:
        self._connection.close()


def _marked(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


def _copied(table: str, columns: Sequence[str]) -> bytes:
    return f"COPY {table} ({','.join(columns)}) FROM STDIN".encode()
