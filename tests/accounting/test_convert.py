"""Conversions against the high-precision reference, in value and in the direction of rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dpregress.accounting import convert
from dpregress.errors import InvalidInput
from tests.reference import accounting as reference

EPSILONS = (1e-3, 0.03, 1.0, 10.0, 31.0, 1e3)
DELTAS = (1e-300, 1e-100, 1e-20, 1e-6, 1e-2, 0.5, 0.9)
MUS = (1e-4, 1e-2, 0.3, 1.0, 7.0, 1e3)
RHOS = (1e-6, 1e-3, 0.1, 1.0, 30.0, 1e4)
CLOSE = 1e-9
SAFE = 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_mu_of_epsilon_and_delta(epsilon: float, delta: float) -> None:
    exact = reference.gdp_mu(epsilon, delta)
    mu = convert.gdp_mu(epsilon, delta)
    assert mu == pytest.approx(exact, rel=CLOSE)
    assert mu <= exact * (1 + SAFE)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_the_way_back_from_mu(epsilon: float, delta: float) -> None:
    # mu is rounded down by 1e-13, which a small epsilon at a large delta magnifies
    assert convert.gdp_epsilon(convert.gdp_mu(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-7)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_of_mu(mu: float, delta: float) -> None:
    exact = reference.gdp_epsilon(mu, delta)
    epsilon = convert.gdp_epsilon(mu, delta)
    assert epsilon == pytest.approx(exact, rel=CLOSE, abs=1e-300)
    assert epsilon >= exact * (1 - SAFE)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
def test_delta_of_mu_far_into_the_tail(mu: float, epsilon: float) -> None:
    log_delta = convert.log_gdp_delta(mu, epsilon)
    # one unit in the last place of a logarithm of size L is a relative error of L eps in delta
    assert log_delta == pytest.approx(reference.gdp_log_delta(mu, epsilon), rel=1e-13, abs=1e-12)


@pytest.mark.parametrize("mu", MUS)
def test_delta_at_zero_epsilon_is_the_total_variation(mu: float) -> None:
    assert convert.gdp_delta(mu, 0.0) == pytest.approx(ndtr(mu / 2) - ndtr(-mu / 2), rel=1e-12)


def test_delta_at_the_ends() -> None:
    assert convert.gdp_delta(0.0, 1.0) == 0.0
    assert convert.gdp_delta(math.inf, 1.0) == 1.0
    assert convert.gdp_epsilon(0.0, 1e-6) == 0.0
    assert convert.gdp_epsilon(math.inf, 1e-6) == math.inf


def test_conversions_are_monotone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        epsilon, delta = 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-30, -0.1)
        mu = convert.gdp_mu(epsilon, delta)
        assert mu < convert.gdp_mu(epsilon * 1.01, delta)
        assert mu < convert.gdp_mu(epsilon, min(delta * 1.01, 0.99))
        assert convert.gdp_delta(mu, epsilon) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_epsilon(rho: float, delta: float) -> None:
    exact = reference.zcdp_epsilon(rho, delta)
    epsilon = convert.zcdp_epsilon(rho, delta)
    assert epsilon == pytest.approx(exact, rel=CLOSE)
    assert epsilon >= exact * (1 - SAFE)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-6, 1e-2, 0.5])
def test_zcdp_delta_is_the_way_back_from_epsilon(rho: float, delta: float) -> None:
    """Both are the best order of one bound, so one undoes the other wherever epsilon is positive."""
    epsilon = reference.zcdp_epsilon(rho, delta)
    back = convert.zcdp_delta(rho, epsilon)
    assert back <= delta * (1 + 1e-6)
    assert epsilon == 0 or back >= delta * (1 - 1e-6)


@pytest.mark.parametrize("rho", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
def test_zcdp_delta_is_no_larger_than_at_any_order(rho: float, epsilon: float) -> None:
    orders = 1 + np.logspace(-3, 3, 61)
    best = min(reference.zcdp_delta_at(rho, epsilon, order) for order in orders)
    assert convert.zcdp_delta(rho, epsilon) <= min(1.0, best) * (1 + 1e-9)


@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
def test_zcdp_is_looser_than_gdp(mu: float, delta: float) -> None:
    assert convert.gdp_epsilon(mu, delta) <= convert.zcdp_epsilon(mu**2 / 2, delta)


def test_zcdp_at_the_ends() -> None:
    assert convert.zcdp_epsilon(0.0, 1e-6) == 0.0
    assert convert.zcdp_epsilon(math.inf, 1e-6) == math.inf
    assert convert.zcdp_delta(0.0, 1.0) == 0.0
    assert convert.zcdp_delta(math.inf, 1.0) == 1.0


@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 0.1, 1.0, 10.0, 100.0, 1e3])
def test_mu_of_pure_epsilon(epsilon: float) -> None:
    exact = reference.pure_mu(epsilon)
    mu = convert.pure_mu(epsilon)
    assert mu == pytest.approx(exact, rel=CLOSE)
    assert mu >= exact * (1 - 1e-10)  # a difference of tails: 1e-16 / epsilon is lost


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilon_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be positive"):
        convert.gdp_mu(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, 2.0, math.nan])
def test_bad_delta_is_refused(delta: float) -> None:
    for convert_it in (convert.gdp_mu, convert.gdp_epsilon, convert.zcdp_epsilon):
        with pytest.raises(InvalidInput, match="delta must lie strictly between"):
            convert_it(1.0, delta)


@pytest.mark.parametrize("mu", [1e7, 1.1e7, 1e30, 1e150, 1e308])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5])
def test_a_mu_beyond_reason_has_an_epsilon(mu: float, delta: float) -> None:
    """``mu^2 / 2`` to first order, never less than that of the tail bound; no error, however large."""
    epsilon = convert.gdp_epsilon(mu, delta)
    assert epsilon == pytest.approx(mu * (mu / 2 - float(ndtri(delta))), rel=1e-12)
    assert convert.gdp_delta(mu, 1.0) == pytest.approx(1.0)
    assert convert.gdp_delta(mu, epsilon) <= delta * (1 + 1e-6) or epsilon == math.inf or mu > 1e7


@pytest.mark.parametrize("mu", [1e-300, 5e-324])
def test_a_mu_below_reason_reveals_nothing(mu: float) -> None:
    assert convert.gdp_epsilon(mu, 1e-6) == 0.0
    assert convert.gdp_delta(mu, 1.0) == 0.0
    assert convert.zcdp_epsilon(mu, 1e-6) < 1e-100
    assert convert.zcdp_delta(mu, 1.0) == 0.0
