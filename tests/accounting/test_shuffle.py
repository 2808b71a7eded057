"""Shuffled messages: the numerical bound against the sum it stands for, and against the paper's closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpregress.accounting import GDP, ApproxDP, PureDP
from dpregress.accounting.shuffle import shuffled_epsilon
from dpregress.errors import InvalidInput


def divergence(epsilon: float, epsilon0: float, n: int) -> float:
    """The hockey-stick divergence of the two sets of clones, cell by cell."""
    high, total = 1 / (1 + math.exp(-epsilon0)), 0.0
    for clones in range(n):
        first = np.arange(clones + 2)
        below, here = binom.pmf(first - 1, clones, 0.5), binom.pmf(first, clones, 0.5)
        one, other = high * below + (1 - high) * here, (1 - high) * below + high * here
        weight = binom.pmf(clones, n - 1, math.exp(-epsilon0))
        total += weight * np.maximum(one - math.exp(epsilon) * other, 0).sum()
    return total


@pytest.mark.parametrize(("epsilon0", "n"), [(0.5, 50), (1.0, 300), (3.0, 300)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_it_is_the_least_epsilon_of_the_sum(epsilon0: float, n: int, delta: float) -> None:
    found = shuffled_epsilon(PureDP(epsilon0), n, delta)
    assert found <= epsilon0
    assert divergence(found, epsilon0, n) <= delta * (1 + 1e-9), "the bound is broken"
    if found < 0.99 * epsilon0:
        assert divergence(found * 0.999, epsilon0, n) > delta, "the bound is loose"


@pytest.mark.parametrize(("epsilon0", "n"), [(0.2, 10_000), (1.0, 100_000), (4.0, 10**6), (1.0, 10**7)])
def test_it_is_below_the_closed_form(epsilon0: float, n: int) -> None:
    """Theorem 3.1 of the paper; with blocks of counts, so that the bound may lose a little, not gain."""
    e0, delta = math.exp(epsilon0), 1e-6
    closed = math.log1p((e0 - 1) / (e0 + 1) * (8 * math.sqrt(e0 * math.log(4 / delta) / n) + 8 * e0 / n))
    assert 0.05 * closed < shuffled_epsilon(PureDP(epsilon0), n, delta) < closed


def test_a_gaussian_message_gains_too() -> None:
    message = GDP(ApproxDP(1.0, 1e-6).gaussian_mu)
    assert shuffled_epsilon(message, 10**6, 1e-6) < 0.05
    assert math.isclose(shuffled_epsilon(message, 1, 1e-6), 1.0, rel_tol=1e-9)


def test_what_has_no_bound_is_refused() -> None:
    with pytest.raises(InvalidInput, match="PureDP and GDP"):
        shuffled_epsilon(ApproxDP(1.0, 1e-6), 100, 1e-6)
    with pytest.raises(InvalidInput, match="at least one"):
        shuffled_epsilon(PureDP(1.0), 0, 1e-6)
