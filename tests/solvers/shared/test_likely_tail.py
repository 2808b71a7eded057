"""A tail beside responses that are nearly all the same, which noise hides bin by bin."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import (
    ApproxDP,
    DPGammaRegressor,
    DPLinearRegression,
    DPPoissonRegressor,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.releases import Histogram, Isotropic
from dpregress.solvers.linear.residual_sizes import Sizes
from dpregress.solvers.shared.likely_tail import (
    Looked,
    all_the_same,
    likely_tail,
    nearly_same,
    with_lacking_rows,
)
from dpregress.solvers.shared.magnitudes import Magnitudes

BINS, ROWS, NOISE = 40, 10_000, 100.0
SIZE = 2.0 ** (np.arange(BINS) / 2)
HELD = np.arange(BINS) < 3
OTHERS = 0.05


def counted(tail: float, rng: np.random.Generator) -> Vector:
    """Noisy counts: nearly all rows in bin 1, and so many in a tail of six bins, each of which noise hides."""
    counts = np.zeros(BINS)
    counts[1], counts[18:24] = ROWS - tail, tail / 6
    return counts + rng.normal(0, NOISE, BINS)


def test_a_tail_is_found_in_all_bins_together(seed: int) -> None:
    """Its 1,200 rows are 200 a bin, two noises; their expected count is right to three tenths, where they are.

    The sum of evidence has the signal 1,200 and a noise of some 140 (8 deviations; 3.5 are needed): 2e-6 at most fail
    in one of 20 draws to be found at all, and half of the draws would have to (p < 1e-12).
    """
    rng = np.random.default_rng(seed)
    found = np.array([likely_tail(counted(1_200, rng), SIZE, HELD, NOISE, ROWS) for _ in range(20)])
    assert np.median(found.sum(axis=1)) == pytest.approx(1_200, rel=0.3)
    middle = np.array([np.average(np.arange(BINS), weights=each) for each in found if each.any()])
    assert 16 < np.median(middle) < 26


def test_noise_is_hardly_ever_a_tail(seed: int) -> None:
    """Of 400 draws without a tail some three are taken for one; at a rate of .01, more than 25 have p < 1e-9."""
    rng = np.random.default_rng(seed)
    assert sum(bool(likely_tail(counted(0, rng), SIZE, HELD, NOISE, ROWS).any()) for _ in range(400)) <= 25


def test_nothing_lies_above_the_last_bin() -> None:
    everything = np.ones(BINS, dtype=bool)
    assert not likely_tail(np.full(BINS, ROWS / BINS), SIZE, everything, NOISE, ROWS).any()
    assert not likely_tail(np.full(BINS, 0.0), SIZE, ~everything, NOISE, ROWS).any()
    assert nearly_same(np.array([1.0, 5.0, 2.0]), 10)
    assert not nearly_same(np.array([3.0, 1.0, 3.0]), 10)


def look(size: float, *, bulk: float = 0.0, tail: bool = False) -> Looked:
    return Looked(Magnitudes(np.array([size]), np.ones(1)), bulk, tail)


def test_residuals_that_shrink_from_look_to_look_are_of_one_value() -> None:
    first, shrunk, same = look(1.0, bulk=1.2), look(0.1, bulk=1.2), look(0.9, bulk=1.2)
    assert all_the_same([first, shrunk])
    assert all_the_same([look(2.0), look(1.0), look(0.1)], located=True)
    assert not all_the_same([look(1.0), look(0.1)])  # they were never of one size
    assert not all_the_same([first, same])
    assert not all_the_same([look(1.0, bulk=1.2, tail=True), shrunk])  # the others are known
    assert not all_the_same([look(1.0, bulk=9.0), shrunk])  # the others are seen
    assert all_the_same([look(1.0, bulk=9.0), same, shrunk])  # they were seen, and lost
    assert not all_the_same([first])


def test_a_tail_is_no_longer_than_the_response_allows() -> None:
    """Bins reach forty octaves further, and the range of a response without bounds is that of its sizes."""
    edges = 2.0 ** (np.arange(41) / 2)
    counts = np.zeros(40)
    counts[1], counts[12:18] = 9_000.0, 167.0
    space = WhitenedSpace(("a",), np.eye(1), 1.0, np.zeros(1))
    found = Sizes.of_histogram(Histogram(counts, ROWS, Isotropic(50.0), (), space, edges), 2.0, most=1_024.0)
    assert found.tail
    assert found.levels.size.max() == 1_024.0


def test_rows_that_are_lacking_lie_above_those_seen() -> None:
    """Nine tenths of the rows are seen, in two bins of noise 50; the others are above, but within the bounds."""
    space = WhitenedSpace(("a",), np.eye(1), 1.0, np.zeros(1))
    counts, edges = np.zeros(BINS), 2.0 ** (np.arange(BINS + 1) / 2)
    counts[1], counts[8] = 8_500.0, 500.0
    histogram = Histogram(counts, ROWS, Isotropic(50.0), (), space, edges)
    found = with_lacking_rows(counts, SIZE, histogram, float(SIZE[8]), 40.0)
    assert found is not None
    assert found.share[found.size > SIZE[8]].sum() == pytest.approx(0.1, rel=0.2)
    assert found.size.max() <= max(40.0, SIZE.max())
    assert found.largest > SIZE[8]
    complete = np.where(counts > 8_000, 9_500.0, counts)
    assert with_lacking_rows(complete, SIZE, histogram, float(SIZE[8]), 40.0) is None
    assert with_lacking_rows(counts, SIZE, histogram, 0.0, 40.0) is None


def costs(n: int, common: float, rng: np.random.Generator) -> tuple[np.ndarray, Vector]:
    """Responses nineteen of twenty of which are one value, the others log-normal."""
    x = rng.normal(size=(n, 3))
    others = np.exp(x @ [0.5, -0.3, 0.2] + 0.5 * rng.normal(size=n))
    return x, np.where(rng.random(n) < OTHERS, others, common)


def bounded(**response: Numeric) -> Schema:
    return Schema({**{f"x{place}": Numeric(-6, 6) for place in range(3)}, **response})


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0])
def test_rare_costs_are_covered_or_not_identified(epsilon: float, public: bool, seed: int) -> None:
    """Estimates were off by hundreds of standard errors, all of them; of 420 fits like these none was off by nine."""
    rng = np.random.default_rng(seed)
    x, y = costs(200_000, 0.0, rng)
    truth = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0]
    known = PublicMoments.from_rows(x[-300:]) if public else None
    model = DPLinearRegression(
        ApproxDP(epsilon, 1e-6), schema=bounded(y=Numeric(0, 30)), public=known, random_state=rng
    )
    model.fit(x[:10_000], y[:10_000])
    errors = np.abs(model.params - truth) / model.bse
    assert np.all(np.isnan(errors) | (errors < 12))


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_amounts_that_are_nearly_all_the_same_are_covered_or_not_identified(seed: int) -> None:
    """They were off by a hundred standard errors; of 100 fits like this none was off by 12."""
    rng = np.random.default_rng(seed)
    x, y = costs(5_000, 1.0, rng)
    model = DPGammaRegressor(ApproxDP(1, 1e-6), schema=bounded(y=Numeric(0.001, 60)), random_state=rng).fit(x, y)
    slope = 0.0330  # of the first column, by maximum likelihood with a million rows
    error = abs(model.params[1] - slope) / model.bse[1]
    assert np.isnan(error) or error < 12


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_zeros_without_bounds_identify_nothing(seed: int) -> None:
    """Nothing but 0 exceeds the noise: a bin with 500 rows has a noise of 150, a threshold of 1,000 (p < 1e-6)."""
    rng = np.random.default_rng(seed)
    x, y = costs(10_000, 0.0, rng)
    model = DPLinearRegression(ApproxDP(0.3, 1e-6), schema=bounded(), random_state=rng)
    assert np.isnan(model.fit(x, y).bse).all()


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_labels_that_hardly_differ_identify_nothing(seed: int) -> None:
    """Two public labels of 300 are not 0, and of the private rows one in 500, which noise hides."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(5_300, 3))
    y = np.zeros(5_300)
    y[[0, 1, *range(300, 310)]] = 1.0
    known = PublicMoments.from_rows(x[:300], y[:300])
    model = DPLinearRegression(ApproxDP(0.1, 1e-6), schema=bounded(y=Numeric(0, 30)), public=known, random_state=rng)
    model.fit(x[300:], y[300:])
    assert np.isnan(model.bse).all()


def events(n: int, common: float, rng: np.random.Generator) -> tuple[np.ndarray, Vector]:
    """Counts nine of ten of which are the same, the others some seven."""
    x = rng.normal(size=(n, 3))
    others = rng.poisson(np.exp(2 + x @ [0.5, 0.3, 0.0])).clip(0, 100)
    return x, np.where(rng.random(n) < 0.1, others, common)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("common", [0.0, 1.0])
def test_counts_that_are_nearly_all_the_same_are_covered(common: float, seed: int) -> None:
    """Clips held back all others: most slopes were off by 5 to 15 standard errors; now by 3.2 at most of 144."""
    rng = np.random.default_rng(seed)
    x, y = events(10_000, common, rng)
    design = np.column_stack([np.ones(len(x)), x])
    truth = np.array([np.log(y.mean()), 0.0, 0.0, 0.0])
    for _ in range(30):  # maximum likelihood
        mean = np.exp(design @ truth)
        truth += np.linalg.solve((design * mean[:, None]).T @ design, design.T @ (y - mean))
    known = PublicMoments.from_rows(rng.normal(size=(200, 3)))
    model = DPPoissonRegressor(ApproxDP(0.3, 1e-6), schema=bounded(y=Numeric(0, 100)), public=known, random_state=rng)
    errors = np.abs(model.fit(x, y).params - truth) / model.bse
    assert np.all(np.isnan(errors) | (errors < 8))


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_amounts_between_bounds_that_are_the_same_are_covered_or_not_identified(seed: int) -> None:
    """Of 3,000 rows at epsilon .3 noise hides the tenth that differs; estimates were up to 50 standard errors off."""
    for place in range(4):
        rng = np.random.default_rng([seed, place])
        x = rng.normal(size=(3_000, 3))
        others = np.exp(1.5 + x @ [0.5, 0.3, 0.0]) * rng.gamma(2, 0.5, size=len(x))
        y = np.where(rng.random(len(x)) < 0.1, others, 1.0).clip(0.01, 200)
        model = DPGammaRegressor(ApproxDP(0.3, 1e-6), schema=bounded(y=Numeric(0.01, 200)), random_state=rng)
        model.fit(x, y)
        error = abs(model.params[0] - np.log(1.37)) / model.bse[0]
        assert np.isnan(error) or error < 8


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_costs_of_one_in_five_are_covered(epsilon: float, seed: int) -> None:
    """90% intervals held in .3 to .7, as clips took the rarer ones; at a rate of .8, half of 80 have p < 1e-8."""
    inside = []
    for place in range(20):
        rng = np.random.default_rng([seed, place])
        x = rng.normal(size=(10_000, 3))
        others = np.exp(x @ [0.5, -0.3, 0.2] + 0.7 * rng.normal(size=len(x)))
        y = np.where(rng.random(len(x)) < 0.2, others, 0.0).clip(0, 60)
        truth = 0.2 * np.exp(0.435) * np.array([1.0, 0.5, -0.3, 0.2])  # of exp(eta + .7 N(0, 1)) by normal columns
        known = PublicMoments.from_rows(rng.normal(size=(200, 3)))
        model = DPLinearRegression(
            ApproxDP(epsilon, 1e-6), schema=bounded(y=Numeric(0, 60)), public=known, random_state=rng
        )
        lower, upper = model.fit(x, y).conf_int(level=0.9).T
        inside.append(np.isnan(lower) | ((lower <= truth) & (truth <= upper)))
    assert np.mean(inside) > 0.5
