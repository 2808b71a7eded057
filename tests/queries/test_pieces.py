"""Sums by pieces of the follow-up."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Exposure, ResponseScale, WhitenedSpace
from dpregress.queries import PieceTotals
from dpregress.rows.bounded import RawRows


def test_an_event_at_a_cut_belongs_to_the_piece_that_it_ends() -> None:
    """Whole days are often cuts, and the logarithms of times round either way. No seed can break it."""
    days = np.arange(1.0, 101.0)
    space = WhitenedSpace(
        ("x",), np.eye(2), 1.0, np.zeros(1), intercept=True, response=ResponseScale("event"), exposure=Exposure("days")
    )
    query = PieceTotals(space, days)
    rows = RawRows(np.zeros((100, 1)), np.ones(100), exposure=days)
    events, times = np.split(query.value(query.row_map(rows)), 2)
    np.testing.assert_array_equal(events, 1.0)
    np.testing.assert_allclose(times * np.sqrt(100), days[::-1], rtol=1e-9)
