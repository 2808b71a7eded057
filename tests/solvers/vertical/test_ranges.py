"""Ranges of a party's numbers: where values are, missing cells, and what is spent."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import Categorical, Numeric, Schema
from dpregress.accounting import GDP, MemoryLedger
from dpregress.mechanisms import SeededSampler
from dpregress.public.whitening import start
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers.vertical.ranges import FoundRanges, find_ranges, range_spends, ranged_space
from dpregress.trust import Session, Vertical

NAMES = ("normal", "skewed", "class=b")


def found(x: np.ndarray, schema: Schema, mu: float, seed: int, numbers: dict[int, Numeric]) -> FoundRanges:
    reservation = MemoryLedger(GDP(mu)).reserve(GDP(mu))
    session = Session(Vertical(), PrivateRows(ArraySource(x)), SeededSampler(np.random.default_rng(seed)), reservation)
    space = start(NAMES, intercept=True, public=None, schema=schema, row_bound=None).space
    looked = find_ranges(session, space, numbers, GDP(mu))
    assert looked.events == reservation.drawn.parts
    assert reservation.drawn.rho == pytest.approx(GDP(mu).rho)
    inside = ranged_space(space, looked.ranges)
    at_ends = np.where(np.isfinite(looked.ranges.ends), looked.ranges.ends, 0.0)
    np.testing.assert_allclose(inside.whiten(at_ends)[:, 1:][:, list(numbers)], [[-1.0] * 2, [1.0] * 2], atol=1e-6)
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
        "normal": Numeric(-8 * wide, 10 * wide), "skewed": Numeric(0, 20 * wide, fill=2.5),
        "class": Categorical(("a", "b")),
    })  # fmt: skip
    ranges = found(x, schema, 0.02, seed, {0: schema.columns["normal"], 1: schema.columns["skewed"]}).ranges
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
    look, rest = range_spends(GDP(1.0), {0: Numeric(0, 1)})
    assert look is not None
    assert look.rho + rest.rho == pytest.approx(GDP(1.0).rho)
    assert look.rho == pytest.approx(0.07 * GDP(1.0).rho)


@pytest.mark.parametrize(("share", "bounds"), [(0.3, (0.0, 60.0)), (0.3, (-100.0, 100.0)), (0.1, (0.0, 60.0))])
def test_a_second_cluster_is_no_tail_to_cut(share: float, bounds: tuple[float, float], seed: int) -> None:
    """What fills a bin of the first histogram is spread over many of the second, each below its noise.

    The noise of a bin is 2% of the rows for the larger cluster and 0.7% for the smaller one. Each stands out by six
    standard deviations of the bins that hold it.
    """
    rng, n = np.random.default_rng(seed), 20_000
    x = rng.normal(10, 1, size=(n, 3))
    x[:, 0] += 40 * (rng.random(n) < share)
    schema = Schema({"normal": Numeric(*bounds), "skewed": Numeric(0, 60), "class": Categorical(("a", "b"))})
    ranges = found(
        x, schema, 0.007 if share > 0.2 else 0.02, seed, {0: schema.columns["normal"], 1: schema.columns["skewed"]}
    ).ranges
    assert ranges.ends[1, 0] > 47


def test_missing_cells_where_the_schema_says(seed: int) -> None:
    """Half of the cells are missing and count as 0, far from all others: the range holds both."""
    rng, n = np.random.default_rng(seed), 20_000
    x = rng.uniform(60, 70, size=(n, 3))
    x[rng.random(n) < 0.5, 0] = np.nan
    for fill, least in ((0.0, 0.0), (None, 50.0)):
        schema = Schema(
            {"normal": Numeric(-100, 100, fill=fill), "skewed": Numeric(0, 99), "class": Categorical(("a", "b"))}
        )
        ranges = found(x, schema, 0.1, seed, {0: schema.columns["normal"], 1: schema.columns["skewed"]}).ranges
        assert (ranges.ends[0, 0] > least) == (fill is None)
        assert abs(ranges.fill[0] - (65 if fill is None else fill)) < 2
