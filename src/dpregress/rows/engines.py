r"""Engines, which compute sums over private rows.

The values of chunks are integers times public units (:class:`~dpregress.coordinates.exact.ExactVector`), and are
added as integers. A total therefore does not depend on the chunks, on the order of the rows, or on the engine.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol, Self, runtime_checkable

import numpy as np

from dpregress.coordinates import Vector
from dpregress.coordinates.exact import ExactVector, Integers
from dpregress.coordinates.products import one_blas_thread
from dpregress.rows.bounded import RawRows
from dpregress.rows.row_kernel import Program
from dpregress.rows.sources import Piece, Source

_CHUNK_BYTES = 1 << 22  # larger ones leave the cache, smaller ones cost more calls than sums
#: The number of rows in a chunk is a multiple of this: libraries multiply rows in groups.
_GROUP = 64
#: The largest block whose release tells glibc to keep freed memory of this size.
_KEPT_BYTES = (1 << 25) - (1 << 16)
#: Bits of the lower word of a total.
_LOW_BITS = 32

Progress = Callable[[int, int], None]


class Value(Protocol):
    """What is summed: a function of a chunk."""

    def __call__(self, chunk: RawRows, /) -> ExactVector: ...


@runtime_checkable
class PushedValue(Value, Protocol):
    """One whose sum an engine can take by a program of rows, so that no chunk is needed."""

    def programs(self, labelled: bool) -> tuple[Program, ...]:
        """What is computed of each row, and added up; each program takes a pass.

        Parameters
        ----------
        labelled : bool
            Whether there is a column of responses; rows without one do not count.

        Raises
        ------
        NotAnswered
            If there is none.
        """

    def of_all(self, wholes: Sequence[Integers], usable: int) -> ExactVector:
        """The sum over all rows, from the sums of the programs and the number of rows that count."""


class Engine(ABC):
    """Sums a function of chunks over a source."""

    @abstractmethod
    def total(self, source: Source, value: Value, *, columns: int) -> ExactVector:
        """The sum of ``value`` over all chunks, without rounding.

        Parameters
        ----------
        source : Source
        value : callable
            Its integers are below 2^63 or Python's, and its units the same for all chunks.
        columns : int
            The number of columns of a row that it uses.
        """

    @abstractmethod
    def reporting(self, progress: Progress) -> Self:
        """The same engine, which calls ``progress`` with (rows done, rows in all)."""

    @contextmanager
    def ready(self, source: Source, asks: Sequence[type] | None = None, pieces: int = 0) -> Iterator[Self]:  # noqa: ARG002
        """The same engine, ready for passes over the source; nothing of the source is read before the first.

        Parameters
        ----------
        source : Source
        asks : sequence of types of queries, optional
            What will be asked; None if that is not known.
        pieces : int
            Of a follow-up; 0 without one.

        Raises
        ------
        InvalidInput
            If it cannot make a pass over it. A fit calls this before it charges.
        """
        yield self

    @staticmethod
    def chunk_rows(columns: int) -> int:
        """The number of rows in a chunk, which depends only on the number of columns."""
        groups = _CHUNK_BYTES // (8 * max(columns, 1)) // _GROUP
        return max(256, (groups - 1 + groups % 2) * _GROUP)  # odd: at strides of whole pages columns share cache lines


@dataclass(frozen=True)
class ThreadedEngine(Engine):
    """Processes chunks on a pool of threads, with one BLAS thread each, while the calling thread reads.

    Parameters
    ----------
    workers : int, optional
        Number of threads that compute sums, including the calling one. Default: the processors available to the
        process.
    progress : callable, optional
        Called with (rows done, rows in all).
    """

    workers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    progress: Progress | None = None

    def total(self, source: Source, value: Value, *, columns: int) -> ExactVector:
        return self.summed(source, value, self.chunk_rows(columns)).result()

    def summed(self, source: Source, value: Value, rows: int) -> IntegerSum:
        """The sum over chunks of ``rows`` rows."""

        def work(piece: Piece) -> tuple[int, ExactVector]:
            with np.errstate(all="ignore"):  # with a caller's setting, private cells could raise or warn
                chunk = piece()
                return len(chunk.x), value(chunk)

        total = IntegerSum()
        done = 0
        for count, part in self._map(work, source.pieces(rows), alone=source.n <= rows):
            total.add(part)
            done += count
            if self.progress is not None:
                self.progress(done, source.n)
        return total

    def reporting(self, progress: Progress) -> Self:
        return replace(self, progress=progress)

    def _map(
        self, work: Callable[[Piece], tuple[int, ExactVector]], pieces: Iterator[Piece], *, alone: bool
    ) -> Iterator[tuple[int, ExactVector]]:
        """Values in the order of the chunks, with a few in flight while the next are read.

        The calling thread reads, and computes whenever the others have enough work, so that no processor is idle or
        shared.
        """
        if alone:
            with one_blas_thread:
                yield from map(work, pieces)
            return
        _keep_pages()
        pending: deque[Future[tuple[int, ExactVector]]] = deque()
        others = self.workers - 1
        with one_blas_thread, ThreadPoolExecutor(max(others, 1)) as pool:
            for piece in pieces:
                waiting = sum(not future.done() for future in pending)
                pending.append(pool.submit(work, piece) if waiting < 2 * others else _done(work(piece)))
                while pending and (pending[0].done() or len(pending) > 2 * self.workers):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()


def _done(result: tuple[int, ExactVector]) -> Future[tuple[int, ExactVector]]:
    future: Future[tuple[int, ExactVector]] = Future()
    future.set_result(result)
    return future


class IntegerSum:
    """Adds integers in two words, which overflow for no fewer than 2^31 chunks."""

    def __init__(self) -> None:
        self._high: Integers | int = 0
        self._low: Integers | int = 0
        self._unit: float | Vector = 1.0

    def add(self, vector: ExactVector) -> None:
        self._high = self._high + (vector.whole >> _LOW_BITS)
        self._low = self._low + (vector.whole & ((1 << _LOW_BITS) - 1))
        self._unit = vector.unit

    def merge(self, other: IntegerSum) -> None:
        """Add the sum over other chunks, of which there is at least one."""
        self._high, self._low, self._unit = self._high + other._high, self._low + other._low, other._unit

    def result(self) -> ExactVector:
        high, low = np.asarray(self._high, dtype=object), np.asarray(self._low, dtype=object)
        return ExactVector(high * (1 << _LOW_BITS) + low, self._unit)


@cache
def _keep_pages() -> None:
    """Let the allocator keep the pages of a chunk for the next one, because faulting them in again doubles the time.

    glibc returns freed memory beyond twice the largest block that it has mapped and freed. With other allocators this
    has no effect.
    """
    np.empty(_KEPT_BYTES, dtype=np.uint8)
