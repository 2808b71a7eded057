"""Ranges of numbers by released histograms: where values are, tails that bins do not show, counts, missing cells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dpregress import Categorical, Numeric, Schema
from dpregress.accounting import GDP, MemoryLedger, Relation
from dpregress.coordinates import Domain
from dpregress.inputs.coded import coded_source
from dpregress.mechanisms import SeededSampler
from dpregress.public.coding import domain_of
from dpregress.queries import Ask
from dpregress.rows import PrivateRows
from dpregress.solvers.marginals.narrowing import Narrowing, _about_bounds
from dpregress.solvers.shared.column_values import Values
from dpregress.trust import Central, Session


def narrowed(table: pa.Table, domain: Domain, mu: float, seed: int, target: int | None = None) -> Domain:
    reservation = MemoryLedger(GDP(mu), relation=Relation.ADD_REMOVE).reserve(GDP(mu), relation=Relation.ADD_REMOVE)
    sampler = SeededSampler(np.random.default_rng(seed))

    def ask_coded(found: Domain) -> Ask:
        return Session(Central(), PrivateRows(coded_source(table, found)), sampler, reservation)

    found, events = Narrowing(domain, GDP(mu), target).asked(ask_coded)
    assert events == reservation.drawn.parts
    assert reservation.drawn.rho == pytest.approx(GDP(mu).rho)
    return found


@pytest.mark.parametrize("wide", [1.0, 30.0, 1000.0])
def test_ranges_hold_the_values(wide: float, seed: int) -> None:
    """Of normal and of skewed values, whatever the bounds: nearly all of them, in less than 16 standard deviations.

    The noise of a bin is 1.2% of the rows.
    """
    rng = np.random.default_rng(seed)
    n = 20_000
    cells = {"normal": 3 + rng.normal(size=n), "skewed": rng.gamma(1.0, size=n), "class": rng.choice(["a", "b"], n)}
    schema = Schema({
        "normal": Numeric(-8 * wide, 10 * wide), "skewed": Numeric(0, 20 * wide), "class": Categorical(("a", "b")),
    })  # fmt: skip
    domain = domain_of(schema)
    found = narrowed(pa.table(cells), domain, 0.01, seed)
    assert found.attributes[2] == domain.attributes[2]
    for attribute in found.attributes[:2]:
        lower, upper = attribute.ends
        values = cells[attribute.name]
        assert attribute.size == 32
        assert np.mean((values < lower) | (values > upper)) < 0.06
        assert upper - lower < 16 * values.std()


def test_tails_that_no_bin_shows_alone(seed: int) -> None:
    """A tenth of all values in thirty bins, each below the noise: together they are seen."""
    rng, noise = np.random.default_rng(seed), 50.0
    counts = np.zeros(64)
    counts[10], counts[11:41] = 90_000, 10_000 / 30
    values = Values.of(counts + noise * rng.normal(size=64), noise, 100_000.0)
    assert values.range[0] <= 10
    assert 35 <= values.range[1] <= 44


def test_nobody_and_noise_alone(seed: int) -> None:
    """Where nothing can be told the range is wide, and everything is finite."""
    rng = np.random.default_rng(seed)
    for rows in (1.0, 50.0):
        values = Values.of(1e4 * rng.normal(size=64), 1e4, rows)
        assert values.range[1] - values.range[0] > 32
        assert values.share.sum() == pytest.approx(1)


def test_counts_keep_whole_numbers_together() -> None:
    """Every bin holds whole numbers, whatever the bounds; rare large ones are in the last."""
    rng = np.random.default_rng(0)
    table = pa.table({"visits": rng.poisson(1.5, 20_000), "age": rng.uniform(20, 80, 20_000)})
    for bound in (12, 308, 100_000):
        domain = domain_of(Schema({"visits": Numeric(0, bound), "age": Numeric(0, 100)}), count="visits")
        assert domain.attributes[0].whole
        visits = narrowed(table, domain, 0.5, 1).attributes[0]
        assert visits.whole
        assert visits.ends[0] == -0.5
        if bound < 1000:
            assert visits.levels[:3] == ("0 or less", "1", "2")
            assert visits.values[:3] == (0.0, 1.0, 2.0)
            assert visits.levels[-1] == f"{int(visits.values[-1])} or more"
            assert 6 <= visits.size <= 20


def test_missing_cells_do_not_hold_a_range_open() -> None:
    """They stand at the mean that was released, or where the schema says."""
    rng = np.random.default_rng(0)
    income = np.where(rng.random(20_000) < 0.3, np.nan, rng.normal(20, 2, 20_000))
    table = pa.table({"income": income, "other": rng.random(20_000)})
    for fill in (None, 0.0, 21.0):
        schema = Schema({"income": Numeric(0, 1000, fill=fill), "other": Numeric(0, 1)})
        found = narrowed(table, domain_of(schema), 0.2, 2).attributes[0]
        lower, upper = found.ends
        assert 10 < lower < 17
        assert 23 < upper < 40
        expected = 20 if fill is None else max(fill, lower)
        assert abs(found.values[found.unknown] - expected) <= (upper - lower) / 16


def test_bounds_are_middles_of_bins() -> None:
    """Zeros and ones that stand on the bounds stand for themselves."""
    rng = np.random.default_rng(0)
    table = pa.table({"indicator": (rng.random(20_000) < 0.3) * 1.0, "cost": rng.gamma(1.0, size=20_000)})
    schema = Schema({"indicator": Numeric(0, 1), "cost": Numeric(0, 1000)})
    indicator, cost = narrowed(table, domain_of(schema), 0.5, 0).attributes
    assert indicator.values[0] == pytest.approx(0, abs=1e-12)
    assert indicator.values[-1] == pytest.approx(1)
    assert cost.values[0] == pytest.approx(0, abs=1e-12)
    assert cost.values[-1] < 30


@pytest.mark.parametrize("edges", [(-0.1, -0.05), (10.01, 10.1), (-0.1, 0.02), (-0.1, 10.1), (3.0, 4.0)])
def test_ranges_beyond_a_bound_are_moved_to_it(edges: tuple[float, float]) -> None:
    """The half of a bin beyond a bound, in which no value lies, may be taken for a range of its own."""
    declared = domain_of(Schema({"a": Numeric(0, 10), "b": Numeric(0, 1)})).attributes[0]
    lower, upper = _about_bounds(edges, declared)
    half = (upper - lower) / 64
    assert lower < upper
    assert -half * 1.01 <= lower
    assert upper <= 10 + half * 1.01


def test_edges_that_are_zero_but_for_rounding() -> None:
    """Databases refuse numbers near 0 that are not 0."""
    rng = np.random.default_rng(0)
    bounds = Numeric(-0.3, 0.1 + 0.2)
    table = pa.table({"a": np.abs(rng.normal(0, 0.01, 5000)), "b": rng.uniform(-0.3, 0.3, 5000)})
    for attribute in narrowed(table, domain_of(Schema({"a": bounds, "b": bounds})), 5.0, 0).attributes:
        assert all(edge == 0 or abs(edge) > 1e-9 for edge in attribute.edges)


def test_whole_numbers_stay_within_their_bounds() -> None:
    """Ranges at a bound, of one value or of several in a bin, do not drift beyond it."""
    for value, bounds, count in (
        (31.0, (-0.5, 31.5), None),
        (5.0, (0, 1), "k"),
        (99.0, (0, 100), "k"),
        (0.0, (0, 9), "k"),
    ):
        table = pa.table({"k": np.full(3000, value), "x": np.zeros(3000)})
        domain = domain_of(Schema({"k": Numeric(*bounds), "x": Numeric(0, 1)}), count=count)
        for mu in (0.2, 100.0):
            found = narrowed(table, domain, mu, 0).attributes[0]
            assert found.whole
            assert found.ends[1] <= bounds[1] + 0.5
            assert bounds[0] <= found.reach[0] <= found.reach[1] <= bounds[1]


@pytest.mark.filterwarnings("error")
def test_few_bins_and_nobody() -> None:
    """Counts that stand out of the noise, all of them below 0."""
    values = Values.of(np.array([-2.0, -6.0, -13.0]), 0.1, 1.0)
    assert values.share.sum() == pytest.approx(1)
    empty = pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.float64())})
    schema = Schema({"a": Numeric(-0.5, 1.5), "b": Numeric(-0.5, 1.5)})
    for seed in range(6):
        assert all(a.size == 2 for a in narrowed(empty, domain_of(schema, bins=2), 300.0, seed).attributes)


def test_ranges_are_no_finer_than_floats() -> None:
    """Bins of a narrowed range stay evenly spaced, far from 0 too."""
    table = pa.table({"a": np.full(5000, 1e9 + 0.5), "b": np.full(5000, 1.7e9)})
    schema = Schema({"a": Numeric(1e9, 1e9 + 1), "b": Numeric(1.7e9, 1.7e9 + 60)})
    for bins in (30, 31, 32):
        for attribute in narrowed(table, domain_of(schema, bins=bins), 100.0, 0).attributes:
            assert attribute.evenly_spaced
            assert attribute.size == bins
