"""Grids and units at the ends of the range of floats, with rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpregress.accounting import Relation
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.coordinates.exact import FACTOR_BITS, TERM_BITS, Grid
from dpregress.queries import Counted, SecondMoment


@pytest.mark.parametrize("bound", [5e-324, 1e-300, 2e-271, 1e-150, 1e-60, 1.0, 1e100])
@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize("bits", [FACTOR_BITS, TERM_BITS])
def test_numbers_stay_within_any_bound(bound: float, words: int, bits: int) -> None:
    grid = Grid(bound, words, bits)
    values = np.array([-1.0, -0.3, 0.0, 0.7, 1.0]) * bound
    moved = grid.clipped(values)
    assert np.isfinite(moved).all()
    assert (np.abs(moved) <= bound).all()
    assert (moved / grid.step == np.rint(moved / grid.step)).all()
    assert grid.inside(3) >= 0


@pytest.mark.parametrize("radius", [2.0161999735460373e-81, 1e-100, 1e-3, 1.0, 1e100])
def test_a_counted_row_is_no_further_than_a_replaced_one(radius: float) -> None:
    """A usable row in place of one that does not count: the squares of tiny and huge numbers are no floats."""
    response = ResponseScale("y", 0, 1, 1.0, min(1.0, radius))
    query = Counted(SecondMoment(WhitenedSpace(("a",), np.eye(1), radius, np.zeros(1), response=response)))
    inner = query.query
    apart = Fraction(inner.contribution()) ** 2 + Fraction(query.unit) ** 2
    allowed = Fraction(query.sensitivity(Relation.REPLACE_ONE)) ** 2
    assert apart <= allowed * (1 + Fraction(1, 2**40))
