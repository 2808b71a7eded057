"""Sources: private rows in chunks, as often as a method asks for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from dpregress.errors import InvalidInput
from dpregress.releases import Matrix, Vector
from dpregress.rows.bounded import RawRows
from dpregress.rows.design import Design


class Source(ABC):
    """Rows that can be walked through again and again in the same order."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows, public under replace-one neighbours."""

    @abstractmethod
    def chunks(self, rows: int) -> Iterator[RawRows]:
        """Chunks of at most ``rows`` rows, each with the index of its first row."""


@dataclass(frozen=True, eq=False)
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

    def chunks(self, rows: int) -> Iterator[RawRows]:
        for first in range(0, self.n, rows):
            part = slice(first, first + rows)
            yield RawRows(self.x[part], None if self.y is None else self.y[part], first)


@dataclass(frozen=True, eq=False)
class TableSource(Source):
    """An Arrow table, encoded chunk by chunk.

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

    def chunks(self, rows: int) -> Iterator[RawRows]:
        for first in range(0, self.n, rows):
            batch = self.table.slice(first, rows)
            yield RawRows(self.encoder.x(batch), self.encoder.y(batch), first, exposure=self.encoder.exposure(batch))


@dataclass(frozen=True, eq=False)
class ExposedSource(Source):
    """A source whose rows have these exposures, of shape (n,).

    Parameters
    ----------
    rows : Source
    exposure : ndarray of shape (n,)
    """

    rows: Source
    exposure: Vector

    def __post_init__(self) -> None:
        if self.exposure.shape != (self.rows.n,):
            raise InvalidInput(f"X has {self.rows.n} rows, exposure has {len(self.exposure)}")

    @property
    def n(self) -> int:
        return self.rows.n

    def chunks(self, rows: int) -> Iterator[RawRows]:
        for chunk in self.rows.chunks(rows):
            yield replace(chunk, exposure=self.exposure[chunk.first_row : chunk.first_row + len(chunk.x)])
