"""Mixed rows: exact sums, so that threads and orders do not show; spaces that cannot be mixed are refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpregress.errors import InvalidInput
from dpregress.mechanisms.sketching import MIXINGS, sketch_matrix
from dpregress.queries import RowSketch
from dpregress.rows import ArraySource, ThreadedEngine, WhitenedRows
from tests.registry import SPACES, WIDTH


@pytest.mark.parametrize("name", MIXINGS)
def test_threads_do_not_show(name: str, seed: int) -> None:
    """Bit for bit the same on one thread and on three, over several chunks."""
    rng = np.random.default_rng(seed)
    space = SPACES["plain"](rng)
    n = 150_000
    query = RowSketch(space, sketch_matrix(name, n, 24, rng.bytes(32)))
    source = ArraySource(rng.normal(size=(n, WIDTH)))
    row_map = WhitenedRows(query.space)
    found = [
        ThreadedEngine(workers).total(source, lambda rows: query.exact(row_map(rows)), columns=query.columns)
        for workers in (1, 3)
    ]
    assert found[0].whole.tolist() == found[1].whole.tolist()


def test_matrix_is_the_mixture(seed: int) -> None:
    """``matrix`` is ``B Z`` with columns of B of norm 1, to the grid of cells."""
    rng = np.random.default_rng(seed)
    space = SPACES["intercept"](rng)
    mixing = sketch_matrix("sparse", 300, 40, rng.bytes(32))
    query = RowSketch(space, mixing)
    x = rng.normal(size=(300, WIDTH))
    bounded = WhitenedRows(query.space)(ArraySource(x).chunks(300).__next__())
    mixture = query.read(query.value(bounded), n=300, noise=None, events=())  # type: ignore[arg-type]
    expected = mixing.apply(np.eye(300), 0) @ bounded.x[:, 1:] / mixing.column_norm
    assert mixture.matrix.shape == (40, WIDTH)
    assert np.abs(mixture.matrix - expected).max() <= 300 * space.radius * 2.0**-16


def test_an_infinite_ball_is_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = replace(SPACES["plain"](rng), radius=math.inf)
    with pytest.raises(InvalidInput, match="finite radius"):
        RowSketch(space, sketch_matrix("sparse", 10, 4, rng.bytes(32)))
