"""Ranges of a party's numbers: where values are, missing cells, and what is spent."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import Categorical, Numeric, Schema
from dpregress.accounting import GDP, MemoryLedger
from dpregress.mechanisms import SeededSampler
from dpregress.public.whitening import start
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers.vertical.ranges import FoundRanges, bounds_of, find_ranges, range_spends, ranged_space
from dpregress.trust import Session, Vertical

NAMES = ("normal", "skewed", "class=b")


def found(x: np.ndarray, schema: Schema, mu: float, seed: int, numbers: dict[int, float | None]) -> FoundRanges:
    reservation = MemoryLedger(GDP(mu)).reserve(GDP(mu))
    session = Session(Vertical(), PrivateRows(ArraySource(x)), SeededSampler(np.random.default_rng(seed)), reservation)
    space = start(NAMES, intercept=True, public=None, schema=schema, row_bound=None).space
    looked = find_ranges(session, space, numbers, GDP(mu))
    assert looked.events == reservation.drawn.parts
    assert reservation.drawn.rho == pytest.approx(GDP(mu).rho)
    inside = ranged_space(space, looked.ranges)
    np.testing.assert_allclose(bounds_of(inside)[:, list(numbers)], looked.ranges.ends[:, list(numbers)], rtol=1e-9)
    np.testing.assert_array_equal(inside.whitening[3], space.whitening[3])
    return looked


@pytest.mark.parametrize("wide", [1.0, 30.0, 300.0])
def test_ranges_hold_the_values(wide: float, seed: int) -> None:
    """Of normal and of skewed values, whatever the bounds, and no missing ones: those stand at the mean.

    The noise of a bin is 0.7% of the rows.
    """
    rng, n = np.random.default_rng(seed), 20_000
    x = np.column_stack([3 + rng.normal(size=n), rng.gamma(1.0, size=n), rng.integers(2, size=n)])
    x[rng.random(n) < 0.3, 0] = np.nan
    schema = Schema({
        "normal": Numeric(-8 * wide, 10 * wide), "skewed": Numeric(0, 20 * wide), "class": Categorical(("a", "b")),
    })  # fmt: skip
    ranges = found(x, schema, 0.02, seed, {0: None, 1: 2.5}).ranges
    for place in (0, 1):
        lower, upper = ranges.ends[:, place]
        values = x[:, place][np.isfinite(x[:, place])]
        assert np.mean((values < lower) | (values > upper)) < 0.06
        assert upper - lower < 16 * values.std()
        assert schema.bounds_of(NAMES[place])[0] <= lower < upper <= schema.bounds_of(NAMES[place])[1]
    assert ranges.places == (0, 1)
    assert abs(ranges.fill[0] - 3) < 0.5
    assert ranges.fill[1] == 2.5


def test_what_they_spend() -> None:
    assert range_spends(GDP(1.0), {}) == (None, GDP(1.0))
    look, rest = range_spends(GDP(1.0), {0: None})
    assert look is not None
    assert look.rho + rest.rho == pytest.approx(GDP(1.0).rho)
    assert look.rho == pytest.approx(0.07 * GDP(1.0).rho)
