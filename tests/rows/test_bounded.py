"""The rules by which rows are bounded, on rows small enough to work out by hand.

That bounds hold for every input is a law (tests/laws/test_row_map.py).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpregress.coordinates import ResponseScale, Weighting, WhitenedSpace
from dpregress.rows import BoundedRows, RawRows, ResponseRows, WhitenedRows

nan, inf = math.nan, math.inf
FRAME = WhitenedSpace(
    ("a", "b"), np.diag([2.0, 1.0]), 5.0, np.array([1.5, -1.0]), response=ResponseScale("y", scale=10.0, bound=3.0)
)


def bounded(x: list[float], y: float, space: WhitenedSpace = FRAME) -> BoundedRows:
    return WhitenedRows(space)(RawRows(np.array([x]), np.array([y])))


def check(rows: BoundedRows, x: list[float], y: float, weight: float) -> None:
    np.testing.assert_allclose(rows.x, [x], rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(rows.y, [y], rtol=1e-10)
    np.testing.assert_allclose(rows.weight, [weight], rtol=1e-10)


def test_a_row_inside_the_ball_is_only_whitened() -> None:
    check(bounded([1.5, 4.0], 20.0), [3.0, 4.0], 2.0, 1.0)


def test_a_row_outside_is_shrunk_with_its_response() -> None:
    check(bounded([3.0, 8.0], 20.0), [3.0, 4.0], 1.0, 0.5)


def test_published_weighting_leaves_the_response_alone() -> None:
    check(bounded([3.0, 8.0], 20.0, replace(FRAME, weighting=Weighting.FEATURES)), [3.0, 4.0], 2.0, 1.0)


def test_the_response_is_clipped_after_the_weight() -> None:
    check(bounded([1.5, 4.0], 50.0), [3.0, 4.0], 3.0, 1.0)
    check(bounded([3.0, 8.0], -50.0), [3.0, 4.0], -2.5, 0.5)


@pytest.mark.parametrize("cell", [nan, inf, -inf])
def test_a_missing_feature_counts_as_the_fill(cell: float) -> None:
    check(bounded([cell, 4.0], 20.0), [3.0, 4.0], 2.0, 1.0)
    check(bounded([1.5, cell], 20.0), [3.0, -1.0], 2.0, 1.0)


@pytest.mark.parametrize("response", [nan, inf, -inf])
def test_a_missing_response_takes_its_row_out(response: float) -> None:
    check(bounded([1.5, 4.0], response), [0.0, 0.0], 0.0, 0.0)


def test_the_response_is_centred_and_scaled() -> None:
    space = WhitenedSpace(("a",), np.eye(2), 9.0, np.zeros(1), True, ResponseScale("y", 100.0, 10.0, 3.0))
    check(bounded([2.0], 120.0, space), [1.0, 2.0], 2.0, 1.0)


def test_a_huge_row_keeps_its_direction() -> None:
    rows = bounded([3e29, 8e29], 20.0)
    np.testing.assert_allclose(rows.x, [[3.0, 4.0]])
    assert 0 < rows.y[0] < 1e-28


@pytest.mark.parametrize("far", [1e31, 1e154, 1.7e308])
def test_cells_are_clipped_to_their_reach(far: float) -> None:
    """2^100 steps of a power of two above the radius, for the size of a column's largest entry of the whitening."""
    np.testing.assert_array_equal(FRAME.reach, [2.0**101, 2.0**102])
    for cells, clipped in (
        ([far, -far], [2.0**101, -(2.0**102)]),
        ([far, 0.0], [2.0**101, 0.0]),
        ([nan, far], [1.5, 2.0**102]),
    ):
        near = bounded(clipped, 20.0)
        check(bounded(cells, 20.0), near.x[0].tolist(), float(near.y[0]), float(near.weight[0]))
    assert bounded([far, 0.0], 20.0).weight[0] == pytest.approx(5 / 2.0**102)


@pytest.mark.parametrize("whitening", [[[1.0, 1.0], [0.0, 2.0**-40]], [[1.0, 0.0], [0.0, 1.0]]])
def test_far_cells_are_found_whatever_the_whitening(whitening: list[list[float]]) -> None:
    """Also where the whitened row is short, because its cells cancel: then every cell is compared."""
    space = replace(FRAME, whitening=np.array(whitening))
    assert (space.least_far > 0) == (whitening[0][1] == 0)
    near, far = (bounded([cell, -cell], 20.0, space) for cell in (float(space.reach[0]), 1e60))
    np.testing.assert_array_equal(near.x, far.x)


def test_the_first_row_is_handed_on() -> None:
    rows = WhitenedRows(FRAME)(RawRows(np.zeros((2, 2)), np.zeros(2), first_row=77))
    assert rows.first_row == 77
    assert ResponseRows(FRAME)(RawRows(np.zeros((2, 2)), np.zeros(2), first_row=77)).first_row == 77


def test_a_query_of_the_response_sees_no_features() -> None:
    rows = ResponseRows(FRAME)(RawRows(np.full((3, 2), 1e9), np.array([20.0, nan, -99.0])))
    assert rows.x.shape == (3, 0)
    np.testing.assert_array_equal(rows.y, [2.0, 0.0, -3.0])
    np.testing.assert_array_equal(rows.weight, [1.0, 0.0, 1.0])
