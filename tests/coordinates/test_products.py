"""Products of rows: right, the same at every place, and never by a routine that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates import products as module
from dpregress.coordinates.products import one_blas_thread, products, row_sums, squared_norms

SHAPES = [(1, 1), (2, 3), (3, 1), (20, 20), (21, 1), (64, 2), (65, 64), (150, 40)]


def cancelling(rng: np.random.Generator, rows: int, d: int, q: int) -> tuple[Matrix, Matrix]:
    """Rows and a matrix whose products are little more than rounding."""
    x, matrix = rng.normal(size=(rows, d)) * 1e17, rng.normal(size=(q, d))
    half = d // 2
    x[:, half : 2 * half], matrix[:, half : 2 * half] = -x[:, :half], matrix[:, :half]
    return x, matrix


@pytest.fixture
def fresh() -> Iterator[None]:
    """No trial from before, and none kept."""
    module._trial.cache_clear()
    yield
    module._trial.cache_clear()


@pytest.mark.parametrize(("d", "q"), SHAPES)
def test_products_are_those_of_numpy(d: int, q: int, seed: int) -> None:
    """Up to rounding: ``|error| <= d u sum |x_j w_j|``, with factors to spare. No seed can break it."""
    rng = np.random.default_rng(seed)
    x, matrix = cancelling(rng, 700, d, q)
    allowed = 4 * d * np.finfo(float).eps
    assert (np.abs(products(x, matrix) - x @ matrix.T) <= allowed * (np.abs(x) @ np.abs(matrix.T))).all()
    np.testing.assert_allclose(squared_norms(x), (x * x).sum(axis=1), rtol=allowed)
    np.testing.assert_allclose(row_sums(np.abs(x)), np.abs(x).sum(axis=1), rtol=allowed)


def check_places(function: Callable[[Matrix], Matrix | Vector], x: Matrix, rng: np.random.Generator) -> None:
    """The same bits for rows in other orders, chunks and layouts, the same shape many times over."""
    whole = function(x)
    order = rng.permutation(len(x))
    np.testing.assert_array_equal(function(x[order]), whole[order])
    for length in (*[2048] * 5, 1999, 257, 64, 1):
        for first in (0, 1, len(x) - length):
            part = x[first : first + length]
            for held in (part, np.asfortranarray(part), np.repeat(part, 2, axis=0)[::2], np.array(part)):
                np.testing.assert_array_equal(function(held), whole[first : first + length])


@pytest.mark.parametrize("passes", [True, False], ids=["by the library", "one by one"])
@pytest.mark.parametrize(("d", "q"), SHAPES)
@pytest.mark.usefixtures("fresh")
def test_products_do_not_depend_on_the_place(
    d: int, q: int, *, passes: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No seed can break it."""
    rng = np.random.default_rng(seed)
    if not passes:
        monkeypatch.setattr(module._Trial, "_products_in_a_block", lambda _: np.empty((0, q, 1)))
    x, matrix = cancelling(rng, 2051, d, q)
    check_places(lambda rows: products(rows, matrix), x, rng)
    check_places(squared_norms, x, rng)
    check_places(row_sums, x, rng)


def other_at_the_end(columns: Matrix, matrix: Matrix, out: Matrix) -> None:
    """A product that adds up the last row backwards."""
    np.matmul(matrix, columns, out=out)
    out[:, -1] = 0.0
    for j in reversed(range(len(columns))):
        out[:, -1] += matrix[:, j] * columns[j, -1]


def fused_in_long_chunks(columns: Matrix, matrix: Matrix, out: Matrix) -> None:
    """A product that keeps more digits in one row of a long chunk."""
    np.matmul(matrix, columns, out=out)
    if columns.shape[1] > 1000:
        exact = matrix.astype(np.longdouble) @ columns[:, 777].astype(np.longdouble)
        out[:, 777] = exact.astype(np.float64)


@pytest.mark.parametrize("q", [1, 5])
@pytest.mark.usefixtures("fresh")
def test_a_library_that_looks_at_the_place_is_not_used(q: int, seed: int) -> None:
    """Neither for blocks nor for whole chunks. The numbers of a trial are fixed: no seed can break it."""
    rng = np.random.default_rng(seed)
    x, matrix = cancelling(rng, 2048, 7, q)
    assert not module._Trial(other_at_the_end, 7, q).passed
    trial = module._Trial(fused_in_long_chunks, 7, q)
    assert trial.passed
    assert not any(trial.whole(x) for _ in range(5))
    assert not any(trial.whole(np.asfortranarray(x)) for _ in range(5))
    for kernel in (other_at_the_end, fused_in_long_chunks):
        assert np.ptp(module._evaluated(kernel, np.tile(x[:1], (2048, 1)), matrix), axis=1).max() == 0


@pytest.mark.usefixtures("fresh")
def test_whole_chunks_are_used_where_they_may_be() -> None:
    """The library that the wheels of NumPy bring multiplies whole chunks alike; otherwise passes cost twice as much."""
    trial = module._trial(module._matmul, 20, 20)
    x = module._aligned((20, 4096)).T
    assert [trial.whole(x) for _ in range(4)] == [False, False, True, True]


def test_threads_come_back() -> None:
    """One thread inside, as many as before outside, however many ask for it."""
    before = [info["num_threads"] for info in threadpool_info()]
    with one_blas_thread, one_blas_thread:
        assert all(info["num_threads"] == 1 for info in threadpool_info() if info["user_api"] == "blas")
    assert [info["num_threads"] for info in threadpool_info()] == before


def test_nothing_times_nothing() -> None:
    assert products(np.empty((3, 0)), np.empty((2, 0))).tolist() == [[0.0, 0.0]] * 3
    assert products(np.empty((0, 2)), np.ones((1, 2))).shape == (0, 1)
    assert squared_norms(np.empty((2, 0))).tolist() == [0.0, 0.0]
