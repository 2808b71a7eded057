r"""Engines, which compute sums over private rows.

Sums are deterministic: the size of a chunk is determined by the number of columns, and the values of chunks are added
in a fixed binary tree for any number of threads. A public bound on the rounding error (:meth:`Engine.rounding`) is
added to the sensitivity by the mechanisms.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Self

import numpy as np

from dpregress.coordinates import Vector
from dpregress.coordinates.products import one_blas_thread
from dpregress.rows.bounded import RawRows
from dpregress.rows.sources import Piece, Source

_CHUNK_BYTES = 1 << 22  # larger ones leave the cache, smaller ones cost more calls than sums
#: The number of rows in a chunk is a multiple of this: libraries multiply rows in groups, and round short groups
#: differently.
_GROUP = 64
#: The largest block whose release tells glibc to keep freed memory of this size.
_KEPT_BYTES = (1 << 25) - (1 << 16)
_UNIT = np.finfo(float).eps / 2

Progress = Callable[[int, int], None]


class Engine(ABC):
    """Sums a function of chunks over a source."""

    @abstractmethod
    def total(self, source: Source, value: Callable[[RawRows], Vector], *, columns: int) -> Vector:
        """The float64 sum of ``value`` over all chunks; ``value`` uses this many columns of a row."""

    @abstractmethod
    def reporting(self, progress: Progress) -> Self:
        """The same engine, which calls ``progress`` with (rows done, rows in all)."""

    @staticmethod
    def chunk_rows(columns: int) -> int:
        """The number of rows in a chunk, which depends only on the number of columns."""
        groups = _CHUNK_BYTES // (8 * max(columns, 1)) // _GROUP
        return max(256, (groups - 1 + groups % 2) * _GROUP)  # odd: at strides of whole pages columns share cache lines

    @classmethod
    def rounding(cls, n: int, columns: int) -> float:
        """Relative rounding error of a sum: ``|computed - exact| <= rounding * sum |terms|``.

        The error is at most ``gamma_m`` within a chunk, for any order of additions, and grows with the depth of the
        tree between chunks (Higham 2002, section 4.2). Four more operations form and scale each term.
        """
        rows = min(n, cls.chunk_rows(columns))
        depth = max(n // max(rows, 1), 1).bit_length()
        return (rows + depth + 4) * _UNIT


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

    def total(self, source: Source, value: Callable[[RawRows], Vector], *, columns: int) -> Vector:
        def work(piece: Piece) -> tuple[int, Vector]:
            with np.errstate(all="ignore"):  # with a caller's setting, private cells could raise or warn
                chunk = piece()
                return len(chunk.x), value(chunk)

        rows = self.chunk_rows(columns)
        tree = _TreeSum()
        done = 0
        for count, part in self._map(work, source.pieces(rows), alone=source.n <= rows):
            tree.add(part)
            done += count
            if self.progress is not None:
                self.progress(done, source.n)
        return tree.result()

    def reporting(self, progress: Progress) -> Self:
        return replace(self, progress=progress)

    def _map(
        self, work: Callable[[Piece], tuple[int, Vector]], pieces: Iterator[Piece], *, alone: bool
    ) -> Iterator[tuple[int, Vector]]:
        """Values in the order of the chunks, with a few in flight while the next are read.

        The calling thread reads, and computes whenever the others have enough work, so that no processor is idle or
        shared.
        """
        if alone:
            with one_blas_thread:
                yield from map(work, pieces)
            return
        _keep_pages()
        pending: deque[Future[tuple[int, Vector]]] = deque()
        others = self.workers - 1
        with one_blas_thread, ThreadPoolExecutor(max(others, 1)) as pool:
            for piece in pieces:
                waiting = sum(not future.done() for future in pending)
                pending.append(pool.submit(work, piece) if waiting < 2 * others else _done(work(piece)))
                while pending and (pending[0].done() or len(pending) > 2 * self.workers):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()


def _done(result: tuple[int, Vector]) -> Future[tuple[int, Vector]]:
    future: Future[tuple[int, Vector]] = Future()
    future.set_result(result)
    return future


class _TreeSum:
    """Adds vectors in a binary tree of fixed shape; the rounding error grows with the depth of the tree."""

    def __init__(self) -> None:
        self._levels: list[Vector | None] = []

    def add(self, vector: Vector) -> None:
        for level, held in enumerate(self._levels):
            if held is None:
                self._levels[level] = vector
                return
            vector = held + vector
            self._levels[level] = None
        self._levels.append(vector)

    def result(self) -> Vector:
        held = [vector for vector in self._levels if vector is not None]
        total = held[0]
        for vector in held[1:]:
            total = total + vector
        return total


@cache
def _keep_pages() -> None:
    """Let the allocator keep the pages of a chunk for the next one, because faulting them in again doubles the time.

    glibc returns freed memory beyond twice the largest block that it has mapped and freed. With other allocators this
    has no effect.
    """
    np.empty(_KEPT_BYTES, dtype=np.uint8)
