"""Sums over chunks: the same bits whatever the number of threads, and an error within the stated bound."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dpregress.coordinates import Matrix, Vector
from dpregress.rows import ArraySource, Engine, RawRows, Source, ThreadedEngine
from dpregress.rows.sources import Piece

COLUMNS = 60


def gram(rows: RawRows) -> Vector:
    return np.asarray((rows.x.T @ rows.x).ravel())


def column_sums(rows: RawRows) -> Vector:
    return np.asarray(rows.x.sum(axis=0))


def rows_of(seed: int, n: int) -> Matrix:
    """Rows over many orders of magnitude, which cancel; entries of 24 bits, so that products are exact."""
    rng = np.random.default_rng(seed)
    mantissas = rng.integers(-(2**24), 2**24, size=(n, COLUMNS)).astype(float)
    return mantissas * 2.0 ** rng.integers(-20, 20, size=(n, 1))


def test_threads_do_not_change_a_bit(seed: int) -> None:
    source = ArraySource(rows_of(seed, 15_000))
    serial = ThreadedEngine(workers=1).total(source, gram, columns=COLUMNS)
    for workers in (2, 3, 5):
        assert np.array_equal(ThreadedEngine(workers=workers).total(source, gram, columns=COLUMNS), serial)
    with threadpool_limits(1, "blas"):
        assert np.array_equal(ThreadedEngine(workers=1).total(source, gram, columns=COLUMNS), serial)


@pytest.mark.parametrize("n", [1, 255, 15_000])
def test_rounding_stays_within_its_bound(n: int, seed: int) -> None:
    """Against exact sums: products of 24-bit entries are exact, and fsum rounds once."""
    x = rows_of(seed, n)
    source = ArraySource(x)
    allowed = Engine.rounding(n, COLUMNS)
    sums = ThreadedEngine().total(source, column_sums, columns=COLUMNS)
    for column in range(0, COLUMNS, 13):
        exact, size = math.fsum(x[:, column]), math.fsum(np.abs(x[:, column]))
        assert abs(sums[column] - exact) <= allowed * size
    moments = ThreadedEngine().total(source, gram, columns=COLUMNS).reshape(COLUMNS, COLUMNS)
    for column in range(0, COLUMNS, 13):
        products = x[:, 0] * x[:, column]
        assert abs(moments[0, column] - math.fsum(products)) <= allowed * math.fsum(np.abs(products))


def test_the_rounding_bound_is_far_below_any_noise() -> None:
    """A sum of n terms is wrong by at most about n ulps; chunks and a tree keep it near the chunk's size."""
    assert Engine.rounding(1, 10) < 1e-14
    assert Engine.rounding(10**9, 10) < 1e-11
    assert Engine.rounding(10**9, 10) >= Engine.rounding(10**6, 10) >= Engine.rounding(10, 10)


class Recorded(Source):
    """A source that notes the chunks it was asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.asked: list[int] = []
        self.given: list[tuple[int, int]] = []

    @property
    def n(self) -> int:
        return self.source.n

    def pieces(self, rows: int) -> Iterator[Piece]:
        self.asked.append(rows)
        for piece in self.source.pieces(rows):
            chunk = piece()
            self.given.append((chunk.first_row, len(chunk.x)))
            yield piece


@pytest.mark.parametrize("workers", [1, 2])
def test_chunks_have_a_public_size_and_cover_every_row_once(workers: int) -> None:
    rows = Engine.chunk_rows(COLUMNS)
    n = 2 * rows + 17
    source = Recorded(ArraySource(np.ones((n, COLUMNS))))
    total = ThreadedEngine(workers=workers).total(source, column_sums, columns=COLUMNS)
    np.testing.assert_array_equal(total, n)
    assert source.asked == [rows]
    assert source.given == [(0, rows), (rows, rows), (2 * rows, 17)]


def test_chunk_sizes_follow_the_columns_alone() -> None:
    sizes = [Engine.chunk_rows(columns) for columns in (0, 1, 10, 100, 10**6)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 256


@pytest.mark.parametrize("workers", [1, 3])
def test_progress_counts_rows_up_to_n(workers: int) -> None:
    seen: list[tuple[int, int]] = []
    n = 4 * Engine.chunk_rows(COLUMNS) + 1
    engine = ThreadedEngine(workers=workers, progress=lambda done, of: seen.append((done, of)))
    engine.total(ArraySource(np.zeros((n, COLUMNS))), column_sums, columns=COLUMNS)
    done = [count for count, _ in seen]
    assert done == sorted(set(done))
    assert done[-1] == n
    assert {of for _, of in seen} == {n}
    assert len(seen) == 5


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_in_a_chunk_reaches_the_caller(workers: int) -> None:
    def fail(rows: RawRows) -> Vector:
        raise RuntimeError(f"chunk at {rows.first_row}")

    source = ArraySource(np.zeros((2 * Engine.chunk_rows(COLUMNS), COLUMNS)))
    with pytest.raises(RuntimeError, match="chunk at 0"):
        ThreadedEngine(workers=workers).total(source, fail, columns=COLUMNS)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_callers_setting_for_overflows_is_not_the_rows(workers: int) -> None:
    """What a cell overflows to would raise or warn, depending on the cell and on who computed its chunk."""
    x = np.full((3 * Engine.chunk_rows(COLUMNS), COLUMNS), 1e200)
    with np.errstate(all="raise"):
        total = ThreadedEngine(workers).total(ArraySource(x), lambda rows: (rows.x**2).sum(axis=0), columns=COLUMNS)
    assert np.isinf(total).all()
