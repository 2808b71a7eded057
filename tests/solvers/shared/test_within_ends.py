"""Means of truncated normal laws: of numbers between ends, and of shares that sum to 1."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.solvers.marginals.tables import project
from dpregress.solvers.shared.within_ends import mean_between, mean_within, shares_within


@pytest.mark.parametrize(
    ("low", "high", "mean"),
    [(-1e9, 1e9, 0.0), (0.0, 1e9, 0.798), (1e3, 2e3, 1e3), (-2e10, -1e10, -1e10), (-1e-9, 1e-8, 0.0), (5.0, 5.0, 5.0)],
)
@pytest.mark.filterwarnings("error")
def test_themean_between_two_ends(low: float, high: float, mean: float) -> None:
    assert mean_between(low, high) == pytest.approx(mean, abs=1e-3)


def test_a_value_without_noise_is_kept_within_its_ends() -> None:
    assert [mean_within(value, 0.0, 0.0, 1.0) for value in (-3.0, 0.4, 2.0)] == [0.0, 0.4, 1.0]
    assert mean_within(0.4, 1e-6, 0.0, 1.0) == pytest.approx(0.4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("noise", [1e-12, 1e-3, 0.3, 5.0, 1e6])
def test_shares(noise: float, seed: int) -> None:
    """They are shares whatever was released; without noise those of the projection, by noise alone nearly equal."""
    rng = np.random.default_rng(seed)
    for size in (2, 7, 300):
        values = rng.dirichlet(np.ones(size)) + noise * rng.normal(size=size)
        shares = shares_within(values, noise)
        assert (shares >= 0).all()
        assert shares.sum() == pytest.approx(1)
        assert (np.diff(shares[np.argsort(values)]) >= -1e-12).all()
        if noise < 1e-6:
            np.testing.assert_allclose(shares, project(values), atol=1e-6)
    np.testing.assert_allclose(shares_within(np.zeros(4), noise), 0.25, atol=1e-6)


def test_shares_are_what_is_expected_of_two() -> None:
    """Of two shares with equal noise the difference has a truncated normal law: its mean, by integration."""
    values, noise = np.array([0.1, 1.05]), 0.2
    grid = np.linspace(0, 1, 100_001)
    weight = np.exp(-((grid - values[0]) ** 2 + (1 - grid - values[1]) ** 2) / (2 * noise**2))
    expected = float(weight @ grid / weight.sum())
    assert shares_within(values, noise)[0] == pytest.approx(expected, abs=0.03)
