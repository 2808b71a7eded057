"""Sums over chunks are exact, whatever the number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dpregress.coordinates import Matrix
from dpregress.coordinates.exact import ExactVector
from dpregress.rows import ArraySource, Engine, RawRows, Source, ThreadedEngine
from dpregress.rows.sources import Part, Piece

COLUMNS = 60


def column_sums(rows: RawRows) -> ExactVector:
    return ExactVector(rows.x.astype(np.int64).sum(axis=0))


def rows_of(seed: int, n: int) -> Matrix:
    """Integers of many orders of magnitude, so large that sums of floats would round."""
    rng = np.random.default_rng(seed)
    return np.trunc(rng.normal(size=(n, COLUMNS)) * 2.0 ** rng.integers(0, 48, size=(n, 1)))


def test_totals_are_exact(seed: int) -> None:
    """Deterministic: no seed can break it."""
    x = rows_of(seed, 15_000)
    expected = [sum(map(int, column)) for column in x.T]
    for workers in (1, 2, 3, 5):
        total = ThreadedEngine(workers=workers).total(ArraySource(x), column_sums, columns=COLUMNS)
        assert total.whole.tolist() == expected


def test_totals_do_not_overflow() -> None:
    """Four chunks of almost 2^63 each, of either sign."""
    for largest in (2**63 - 1, -(2**63)):
        source = ArraySource(np.zeros((4 * Engine.chunk_rows(1), 1)))
        value = ExactVector(np.array([largest]), 0.5)
        total = ThreadedEngine(workers=1).total(source, lambda _, value=value: value, columns=1)
        assert total.whole.tolist() == [4 * largest]
        assert total.unit == 0.5


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

    def parts(self, rows: int) -> Iterator[Part]:
        return self.source.parts(rows)


@pytest.mark.parametrize("workers", [1, 2])
def test_chunks_have_a_public_size_and_cover_every_row_once(workers: int) -> None:
    rows = Engine.chunk_rows(COLUMNS)
    n = 2 * rows + 17
    source = Recorded(ArraySource(np.ones((n, COLUMNS))))
    total = ThreadedEngine(workers=workers).total(source, column_sums, columns=COLUMNS)
    np.testing.assert_array_equal(np.asarray(total), n)
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
    def fail(rows: RawRows) -> ExactVector:
        raise RuntimeError(f"chunk at {rows.first_row}")

    source = ArraySource(np.zeros((2 * Engine.chunk_rows(COLUMNS), COLUMNS)))
    with pytest.raises(RuntimeError, match="chunk at 0"):
        ThreadedEngine(workers=workers).total(source, fail, columns=COLUMNS)


def overflown(rows: RawRows) -> ExactVector:
    return ExactVector(np.array([np.isinf(rows.x**2).sum()]))


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_callers_setting_for_overflows_is_not_the_rows(workers: int) -> None:
    """What a cell overflows to would raise or warn, depending on the cell and on who computed its chunk."""
    x = np.full((3 * Engine.chunk_rows(COLUMNS), COLUMNS), 1e200)
    with np.errstate(all="raise"):
        total = ThreadedEngine(workers).total(ArraySource(x), overflown, columns=COLUMNS)
    assert total.whole.tolist() == [x.size]
