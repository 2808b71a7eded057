"""Reports in one SQLite file: write-ahead log, every commit flushed to the disk."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from dpregress.collector.store.database import Database, Row

#: Seconds to wait for another process that writes.
_PATIENCE = 30.0


class SQLiteDatabase(Database):
    """A SQLite file with ``journal_mode=WAL`` and ``synchronous=FULL``.

    Parameters
    ----------
    path : Path
        Created, readable by its owner only, if it is not there.
    """

    blob: ClassVar[str] = "BLOB"

    def __init__(self, path: Path) -> None:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            for setting in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=8000"):
                self._connection.execute(f"PRAGMA {setting}")
        except sqlite3.Error:  # not a database: nobody else can close it
            self._connection.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._ended():
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        with self._ended():
            yield

    @contextmanager
    def _ended(self) -> Iterator[None]:
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(statement, parameters)

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement, parameters).fetchall()

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self.put(table, columns, rows)

    def matching(self, columns: str, table: str, key: str, keys: Sequence[Any]) -> list[Row]:
        marks = ",".join("?" * len(keys))
        return self.rows(f"SELECT {columns} FROM {table} WHERE {key} IN ({marks})", keys)

    def close(self) -> None:
        self._connection.close()
