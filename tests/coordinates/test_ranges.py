"""Ranges: what cells count as, and files of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpregress.coordinates import Ranges, decode_ends, encode_ends, endless
from dpregress.errors import InvalidInput


def test_cells_count_as_ends_or_as_what_fills() -> None:
    ranges = Ranges(np.array([[0.0, -math.inf, -1.0], [2.0, math.inf, math.inf]]), np.array([1.5, 7.0, 0.0]))
    rows = np.array([[-3.0, -3e9, -3.0], [1.0, 5.0, 9.0], [np.nan, np.inf, -np.inf]])
    assert ranges.within(rows).tolist() == [[0.0, -3e9, -1.0], [1.0, 5.0, 9.0], [1.5, 7.0, 0.0]]
    assert ranges.places == (0,)
    assert Ranges(endless(3), np.zeros(3)).places == ()


@pytest.mark.parametrize(
    ("ends", "fill"),
    [
        ([[0.0], [0.0]], [0.0]),
        ([[2.0], [1.0]], [0.0]),
        ([[math.nan], [1.0]], [0.0]),
        ([[0.0], [1.0]], [math.nan]),
        ([[0.0, 1.0], [1.0, 2.0]], [0.0]),
    ],
)
def test_what_are_no_ranges(ends: list[list[float]], fill: list[float]) -> None:
    with pytest.raises(InvalidInput):
        Ranges(np.array(ends), np.array(fill))


def test_files() -> None:
    ends = np.array([[0.1, -math.inf], [2.0, math.inf]])
    record = json.loads(json.dumps(encode_ends(ends), allow_nan=False))
    np.testing.assert_array_equal(decode_ends(record, 2), ends)
    for broken in ([[1.0], [0.0]], [[0.0, 1.0], [1.0, 2.0]]):
        with pytest.raises(InvalidInput):
            decode_ends(broken, 1)
