"""The samplers themselves: their law, and the scales and values at which they could hand back the data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from dpregress.errors import UnsafeNoise
from dpregress.mechanisms import Sampler, SecureSampler, SeededSampler

DRAWS = 20_000
FAILURE = 1e-7

SOURCES = {
    "secure": lambda seed: SecureSampler(),  # noqa: ARG005 - it takes no seed
    "seeded": lambda seed: SeededSampler(np.random.default_rng(seed)),
}
each_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES.keys())
#: For tests of laws: those of noise that takes no seed are nightly.
each_law = pytest.mark.parametrize(
    "make", [pytest.param(SOURCES["secure"], marks=pytest.mark.nightly), SOURCES["seeded"]], ids=SOURCES.keys()
)


@pytest.mark.parametrize("sigma", [1e-6, 1.0, 3e7])
@each_law
def test_normal(make, sigma: float, seed: int) -> None:
    """Each of four tests fails with probability 1e-7: distribution, scale, mean, and neighbours' independence."""
    draws = make(seed).add_gaussian(np.zeros(DRAWS), sigma) / sigma
    assert kstest(draws, norm.cdf).pvalue > FAILURE
    low, high = chi2.ppf(FAILURE / 2, DRAWS), chi2.isf(FAILURE / 2, DRAWS)
    assert low < float(draws @ draws) < high
    reach = norm.isf(FAILURE / 2)
    assert abs(draws.sum()) < reach * np.sqrt(DRAWS)
    # given the second of each pair, the sum of products is normal with the sum of squares as its variance
    left, right = draws[::2], draws[1::2]
    assert abs(left @ right) < reach * np.linalg.norm(right)


@pytest.mark.parametrize("cells", [10, 200])
@each_law
def test_chi_square(make, cells: int, seed: int) -> None:
    """Counts in equally likely cells; fails with probability about 1e-7 (at least 100 are expected in each)."""
    draws = make(seed).add_gaussian(np.zeros(DRAWS), 2.0) / 2.0
    counts = np.histogram(norm.cdf(draws), bins=cells, range=(0, 1))[0]
    expected = DRAWS / cells
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(FAILURE, cells - 1)


@each_law
def test_tails(make, seed: int) -> None:
    """No draw beyond 8 sigma (probability 2e-11), some beyond 3 (none with probability 1e-23)."""
    size = np.abs(make(seed).add_gaussian(np.zeros(DRAWS), 1.0)).max()
    assert 3 < size < 8


@pytest.mark.nightly
def test_secure_draws_differ() -> None:
    """Two calls, and all entries of one, differ (a repeat has probability below 1e-9: the grid is 2^-40 sigma)."""
    first, second = (SecureSampler().add_gaussian(np.zeros(50), 1.0) for _ in range(2))
    assert len({*first, *second}) == 100


def test_grid_is_far_below_the_noise() -> None:
    """Noise hides the last digits of the value: what comes out lies on one grid, wherever the value lay."""
    value = np.full(64, 1 / 3)
    noisy = SecureSampler().add_gaussian(value, 1.0)
    steps = noisy * 2.0**43  # 64 entries: the grid lies 40 + 3 bits below sigma
    np.testing.assert_array_equal(steps, np.round(steps))


@each_law
def test_location(make, seed: int) -> None:
    """The value is the mean. Fails with probability 1e-7."""
    noise = make(seed).add_gaussian(np.full(DRAWS, 123.25), 0.5) - 123.25
    assert abs(noise.mean()) < norm.isf(FAILURE / 2) * 0.5 / np.sqrt(DRAWS)


@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf, -np.inf, 1e-300, 1e300, 5e-324])
@each_source
def test_unsafe_scales(make, sigma: float, seed: int) -> None:
    with pytest.raises(UnsafeNoise):
        make(seed).add_gaussian(np.zeros(3), sigma)


@pytest.mark.parametrize("sigma", [1e-200, 1.0, 1e200])
@each_source
def test_strange_values(make, sigma: float, seed: int) -> None:
    """Values that are no numbers, infinite or huge raise nothing and come out finite; not-a-number counts as 0."""
    value = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0])
    noisy = make(seed).add_gaussian(value, sigma)
    assert np.isfinite(noisy).all()
    assert abs(noisy[0]) < 9 * sigma
    # 2^50 sigma, where the noise is still a quarter of the value's last digit and more
    np.testing.assert_allclose(np.abs(noisy[1:3]), 2.0**50 * sigma, rtol=1e-12)


@each_law
def test_large_values_keep_their_noise(make, seed: int) -> None:
    """At the clamp the noise still moves the last digits: repeated answers differ (all equal: below 1e-9)."""
    answers = make(seed).add_gaussian(np.full(100, 1e300), 1.0)
    assert len(set(answers)) > 3


def test_a_sampler_of_another_length_is_refused() -> None:
    class Short(Sampler):
        seeded = True

        def _draw(self, value: np.ndarray, sigma: float) -> np.ndarray:  # noqa: ARG002
            return value[:-1]

    with pytest.raises(UnsafeNoise, match="length"):
        Short().add_gaussian(np.zeros(3), 1.0)


@each_source
def test_value_is_kept(make, seed: int) -> None:
    """The exact totals are not written to."""
    value = np.array([1.0, np.nan, 2.0])
    make(seed).add_gaussian(value, 1.0)
    np.testing.assert_array_equal(value, [1.0, np.nan, 2.0])
