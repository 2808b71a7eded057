"""Sizes of values by a sample, and tails in a histogram that noise hides bin by bin."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.coordinates import WhitenedSpace
from dpregress.releases import Histogram, Isotropic
from dpregress.solvers.shared.magnitudes import Magnitudes, credible, pooled_above, visible_count


@pytest.mark.parametrize("n", [1, 2_000, 2_001, 50_001])
def test_a_large_sample_is_told_by_few_sizes(n: int, seed: int) -> None:
    """Mean squares, the largest sizes, and quantiles are those of the sample."""
    values = np.random.default_rng(seed).standard_t(3, n)
    sizes = Magnitudes.of_sample(values)
    assert len(sizes.size) <= 2_000
    assert sizes.share.sum() == pytest.approx(1)
    assert sizes.root_mean_square == pytest.approx(np.sqrt(np.mean(values**2)))
    largest = np.sort(np.abs(values))[-1_000:]
    np.testing.assert_array_equal(np.sort(sizes.size)[-len(largest) :], largest)
    if n > 2_000:
        np.testing.assert_allclose(
            sizes.quantiles(np.array([0.1, 0.5, 0.9])), np.quantile(np.abs(values), [0.1, 0.5, 0.9]), rtol=0.05
        )


def test_a_tail_over_many_bins_is_seen_as_a_whole() -> None:
    """Each of its bins has 300 rows, where 525 are clear; four of them have 1,200, where 1,000 are."""
    total = np.concatenate([[300.0, 6_000.0], np.full(8, 300.0), np.zeros(8)])
    np.testing.assert_allclose(pooled_above(total, total > 525, 100), [0, 0, *[300] * 8, *[0] * 8])


def test_nothing_is_pooled_where_nothing_is_seen_or_all_is_noise() -> None:
    """Five standard deviations: some 30 groups of bins in a table are beyond them once in 100,000 tables."""
    assert not pooled_above(np.full(9, 400.0), np.zeros(9, dtype=np.bool_), 1.0).any()
    noise = np.random.default_rng(0).normal(0, 150, (200, 40))  # always the same tables
    noise[:, 5] = 6_000
    for each in noise:
        assert not pooled_above(each, np.arange(40) == 5, 150).any()


def histogram(total: list[float]) -> Histogram:
    """Of 1,000 rows, in bins from 0 to 1, 1 to 2, 2 to 4 and so on; the noise of a bin has standard deviation 1."""
    edges = np.concatenate([[0.0], 2.0 ** np.arange(len(total))])
    space = WhitenedSpace(("x",), np.eye(1), 1.0, np.zeros(1))
    return Histogram(np.array(total), 1_000, Isotropic(1.0), (), space, edges)


def test_sizes_that_bounds_rule_out_are_no_sizes() -> None:
    """Bins that begin at the largest possible size or above, where some are seen there; a bin that it cuts stays."""
    seen = histogram([500.0, 400.0, 50.0, 0.0, 50.0])
    assert visible_count(seen) < 50
    for most, bins in ((8.0, 4), (7.0, 4), (5.0, 4), (4.0, 3)):
        found = credible(seen, most)
        assert found.total.tolist() == seen.total[:bins].tolist()
        assert found.edges.tolist() == seen.edges[: bins + 1].tolist()
        assert found.n == 1_000 - round(seen.total[bins:].sum())  # else they would be rows that noise hides


@pytest.mark.parametrize(
    ("total", "most"),
    [
        ([500.0, 400.0, 50.0, 0.0, 50.0], 9.0),  # the last bin may hold possible sizes
        ([500.0, 400.0, 50.0, 50.0, 2.0], 8.0),  # noise
        ([500.0, 200.0, 50.0, 0.0, 250.0], 4.0),  # so many that the bounds are wrong
        ([500.0, 400.0, 50.0, 0.0, 50.0], np.inf),
        ([500.0, 400.0, 50.0, 0.0, 50.0], np.nan),
    ],
)
def test_otherwise_the_histogram_is_what_was_released(total: list[float], most: float) -> None:
    seen = histogram(total)
    assert credible(seen, most) is seen


def test_something_is_left() -> None:
    assert len(credible(histogram([30.0, *[5.0] * 40]), 0.0).total) == 1
