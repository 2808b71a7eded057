"""Rows within ranges: whole, in chunks and in parts, and by no other row."""

from __future__ import annotations

import math

import numpy as np

from dpregress.coordinates import Ranges
from dpregress.rows import ArraySource, RangedSource


def test_chunks_and_parts_hold_the_same_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_cauchy(size=(103, 3)), rng.normal(size=103)
    x[rng.random(x.shape) < 0.1] = np.nan
    ranges = Ranges(np.array([[-1.0, 0.0, -math.inf], [1.0, 2.0, math.inf]]), np.array([0.5, 1.0, 0.0]))
    source, expected = RangedSource(ArraySource(x, y), ranges), ranges.within(x)
    before = x.copy()
    assert source.n == 103
    for size in (1, 10, 103, 1000):
        chunks = list(source.chunks(size))
        np.testing.assert_array_equal(np.concatenate([chunk.x for chunk in chunks]), expected)
        np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), y)
        parts = list(source.parts(size))
        found = [chunk.x for part in parts for chunk in part.rows.chunks(7)]
        np.testing.assert_array_equal(np.concatenate(found), expected)
        assert [part.first_row for part in parts] == list(range(0, 103, size))
    np.testing.assert_array_equal(x, before)
