"""The discrete Gaussian on a grid stands in for a continuous one: docs/privacy/floating-point.md, part 3.

``s = sigma / g`` is the noise in steps of the grid. The library draws at s >= 2^40; everything here is computed
at small s, where the difference can be seen, and compared with the page's bound in s.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta

from dpregress.accounting import convert
from dpregress.mechanisms import SecureSampler, randomness

#: The page's constants: ``E|Z^2 - 1| / 48`` and ``E|Z^3 - 3 Z| / 96``, rounded up.
SECOND, THIRD = 0.0202, 0.0158
STEPS = [0.5, 1.0, 2.0, 4.0, 8.0, 32.0]


def discrete(s: float, reach: int) -> np.ndarray:
    """The discrete Gaussian of scale s on ``-reach..reach``."""
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / s) ** 2)
    return weights / weights.sum()


def rounded(s: float, reach: int) -> np.ndarray:
    """A continuous normal of scale s, rounded to integers; from the upper tail, where it keeps its digits."""
    size = np.abs(np.arange(-reach, reach + 1))
    return ndtr((0.5 - size) / s) - ndtr((-0.5 - size) / s)


def reach_of(s: float) -> int:
    """Beyond 9 scales lies less than 1e-18."""
    return math.ceil(9 * s) + 1


def variation(s: float) -> float:
    """The total variation between the two."""
    reach = reach_of(s)
    return 0.5 * float(np.abs(discrete(s, reach) - rounded(s, reach)).sum())


def bound(s: float) -> float:
    """The page's bound on it."""
    normaliser = 2 * sum(math.exp(-2 * math.pi**2 * s**2 * k**2) for k in range(1, 9))
    return SECOND / s**2 + THIRD / s**3 + normaliser / 2


@pytest.mark.parametrize("s", STEPS)
def test_variation_is_below_its_bound(s: float) -> None:
    assert variation(s) <= bound(s)


@pytest.mark.parametrize("s", STEPS[3:])
def test_bound_is_sharp(s: float) -> None:
    """The leading term is right: from s = 4 on the bound is at most a quarter too large, and less as s grows."""
    assert bound(s) <= (1 + 1 / s) * variation(s)


def test_constants() -> None:
    """``E|Z^2 - 1| = 4 phi(1)`` and ``E|Z^3 - 3Z| = 2 phi(0) + 8 phi(sqrt 3)``."""
    density = lambda z: math.exp(-z * z / 2) / math.sqrt(2 * math.pi)  # noqa: E731 - one formula
    assert 0.99 * SECOND < 4 * density(1) / 48 < SECOND
    assert 0.99 * THIRD < (2 * density(0) + 8 * density(math.sqrt(3))) / 96 < THIRD
    largest = (SECOND + THIRD * 2.0**-40) * 2.0**-80  # the normaliser's part is below exp(-2^81)
    assert largest < 1.7e-26


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("s", STEPS[1:5])
def test_guarantee_on_a_coarse_grid(s: float, shift: int, epsilon: float) -> None:
    """The exact delta of the discrete Gaussian is at most that of GDP plus ``(1 + exp(epsilon))`` variations."""
    reach = reach_of(s) + shift
    here = discrete(s, reach)
    there = np.concatenate([here[shift:], np.zeros(shift)])  # the same law, moved by `shift` steps
    exact = float(np.maximum(here - math.exp(epsilon) * there, 0).sum())
    assert exact <= convert.gdp_delta(shift / s, epsilon) + (1 + math.exp(epsilon)) * variation(s) + 1e-15


@pytest.mark.parametrize("length", [1, 2, 3, 4, 64, 100, 1023, 4096])
def test_grid_lies_far_below_the_noise(length: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``sqrt(m) g`` lies between 2^-42 sigma and 2^-40 sigma, whatever sigma is."""
    rng = np.random.default_rng(seed)
    asked: list[tuple[int, float]] = []

    def measurement(size: int, scale: float) -> object:
        asked.append((size, scale))
        return lambda value: value

    monkeypatch.setattr(randomness, "_integer_measurement", measurement)
    scales = [*2.0 ** rng.uniform(-890, 890, size=200), *2.0 ** np.arange(-899.0, 900.0, 100)]
    for sigma in scales:
        SecureSampler().add_gaussian(np.zeros(length), float(sigma))
    assert len(asked) == len(scales)
    for size, scale in asked:
        assert size == length
        assert 2.0**-42 < math.sqrt(size) / scale <= 2.0**-40 * (1 + 1e-12)


@pytest.mark.nightly
def test_sampler_is_a_discrete_gaussian() -> None:
    """On a coarse grid (s = 1/2) draws have the discrete law, and not the rounded one.

    Some of 7 counts lies beyond its Clopper-Pearson limits with probability at most 1e-7; that the other law's
    middle is below them fails with probability below 1e-20 (12 standard deviations).
    """
    s, draws, failure = 0.5, 5000, 1e-7
    drawn = np.array(randomness._integer_measurement(draws, s)([0] * draws))
    law, other = discrete(s, 3), rounded(s, 3)
    found = np.array([np.count_nonzero(drawn == step) for step in range(-3, 4)])
    low = beta.ppf(failure / 14, found, draws - found + 1)
    high = beta.isf(failure / 14, found + 1, draws - found)
    assert (np.nan_to_num(low, nan=0.0) <= law).all()
    assert (law <= np.nan_to_num(high, nan=1.0)).all()
    assert other[3] < low[3], "this many draws tell the two laws apart"
