"""What a store needs of a database: few statements, and transactions that are on the disk when they end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

Row = tuple[Any, ...]


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
    def many(self, statement: str, rows: Sequence[Row]) -> None:
        """Run a statement once for each row of parameters."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def pages(self, columns: str, table: str, size: int) -> Iterator[list[Row]]:
        """A table in the order of its number ``n``, which is the first of the columns, a page at a time."""
        last = 0
        while page := self.rows(f"SELECT {columns} FROM {table} WHERE n > ? ORDER BY n LIMIT {size}", [last]):
            yield page
            last = page[-1][0]
