"""Sizes of values by a sample."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.solvers.shared.magnitudes import Magnitudes


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
