"""What a store needs of a database: few statements, and transactions that are on the disk when they end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

Row = tuple[Any, ...]
#: The largest number of parameters of a statement.
_VARIABLES = 30_000


class Database(ABC):
    """A connection, used by one thread at a time. Statements have ``?`` for their parameters.

    Attributes
    ----------
    blob : str
        The type of bytes in ``CREATE TABLE``.
    """

    blob: ClassVar[str]

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """A transaction that alone may write, and is durable when the block ends; undone if the block raises."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """A block in which every read sees the same state."""

    @abstractmethod
    def run(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement that returns nothing."""

    @abstractmethod
    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query."""

    @abstractmethod
    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows."""

    @abstractmethod
    def matching(self, columns: str, table: str, key: str, keys: Sequence[Any]) -> list[Row]:
        """The rows whose key is among these."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def put(self, table: str, columns: Sequence[str], rows: Sequence[Row], then: str = "") -> None:
        """Insert rows by few statements, with a clause for rows that are there.

        A statement for each row would give up Python's lock for each row, and wait for it behind the event loop.
        """
        marks, at_once = f"({','.join('?' * len(columns))})", _VARIABLES // len(columns)
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            values = ",".join([marks] * len(part))
            statement = f"INSERT INTO {table} ({','.join(columns)}) VALUES {values} {then}"
            self.run(statement, [value for row in part for value in row])

    def pages(self, columns: str, table: str, size: int) -> Iterator[list[Row]]:
        """A table in the order of its number ``n``, which is the first of the columns, a page at a time."""
        last = 0
        while page := self.rows(f"SELECT {columns} FROM {table} WHERE n > ? ORDER BY n LIMIT {size}", [last]):
            yield page
            last = page[-1][0]
