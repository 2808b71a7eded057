"""Shuffled messages: the numerical bound against the sum it stands for, and against the paper's closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpregress.accounting import GDP, ZCDP, ApproxDP, PureDP
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


@pytest.mark.parametrize("message", [PureDP(1e-5), PureDP(1e-12), GDP(1e-6), GDP(50.0)])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5])
def test_extreme_messages_have_a_bound(message: PureDP | GDP, delta: float) -> None:
    found = shuffled_epsilon(message, 10, delta, entries=5)
    local = message if isinstance(message, PureDP) else ZCDP(message.rho)
    assert 0 <= found <= local.epsilon(delta)


@pytest.mark.slow
def test_a_gaussian_message_gains_too() -> None:
    message = GDP(ApproxDP(1.0, 1e-6).gaussian_mu)
    assert shuffled_epsilon(message, 10**6, 1e-6) < 0.05
    assert math.isclose(shuffled_epsilon(message, 1, 1e-6, entries=230), 1.0, rel_tol=1e-6)
    # not knowing how many integers there are costs a little, and nothing of the guarantee
    for n in (1, 10**4):
        known, unknown = (shuffled_epsilon(message, n, 1e-6, entries=entries) for entries in (230, None))
        assert known <= unknown <= 1.15 * known


#: Of one entry, as docs/privacy/local-messages.md has it for the coarsest grid that is allowed.
TOTAL_VARIATION = 0.0202 / 2.0**46 + 0.0158 / 2.0**69


def least_delta(epsilon: float, mu: float, n: int, entries: int) -> float:
    """The delta that can be proved at epsilon, by either route and over all points of the curves: by its own sums."""
    rho, best = mu * mu / 2, math.inf
    rounding = n * entries * TOTAL_VARIATION * (1 + math.exp(epsilon))
    orders = 1 + 10.0 ** np.arange(-3.0, 6.0, 0.01)
    for epsilon0 in np.arange(0.7, 1.0, 0.05):
        logs = (orders - 1) * (orders * rho - epsilon0) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        normal = norm.cdf(mu / 2 - epsilon0 / mu) - math.exp(epsilon0) * norm.cdf(-mu / 2 - epsilon0 / mu)
        hidden = divergence(epsilon, float(epsilon0), n)
        factor = (math.exp(epsilon) + 1) * (1 + math.exp(-epsilon0) / 2) * n
        best = min(best, hidden + factor * math.exp(logs.min()), hidden + factor * max(normal, 0.0) + rounding)
    return best


def test_what_integers_take_of_delta_is_counted() -> None:
    """The exact discrete Gaussian is zCDP; it is mu-GDP only up to a total variation, of all n messages together."""
    mu, n, entries, delta = 0.1, 600, 50_000, 1e-11
    found = shuffled_epsilon(GDP(mu), n, delta, entries=entries)
    assert least_delta(found, mu, n, entries) <= delta, "the bound is broken"
    without = shuffled_epsilon(GDP(mu), n, delta, entries=1)  # as if messages were 50,000 times as short
    assert without <= found
    assert found < GDP(mu).epsilon(delta)  # it still gains


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 1e-12), (8.0, 1e-9)])
def test_one_message_costs_what_its_integers_cost(epsilon: float, delta: float) -> None:
    """n = 1: the curve of mu-GDP alone is no bound for integers; where they take all of delta only zCDP is left."""
    mu, entries = ApproxDP(epsilon, delta).gaussian_mu, 10_000
    found = shuffled_epsilon(GDP(mu), 1, delta, entries=entries)
    assert found > epsilon
    taken = entries * TOTAL_VARIATION * (1 + math.exp(found))
    assert GDP(mu).delta(found) + taken <= delta or ZCDP(mu * mu / 2).delta(found) <= delta * (1 + 1e-9)


def test_what_has_no_bound_is_refused() -> None:
    with pytest.raises(InvalidInput, match="PureDP and GDP"):
        shuffled_epsilon(ApproxDP(1.0, 1e-6), 100, 1e-6)
    with pytest.raises(InvalidInput, match="at least one"):
        shuffled_epsilon(PureDP(1.0), 0, 1e-6)
    with pytest.raises(InvalidInput, match="at least one entry"):
        shuffled_epsilon(GDP(1.0), 10, 1e-6, entries=0)
