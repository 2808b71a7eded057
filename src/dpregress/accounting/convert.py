r"""Exact conversions between privacy definitions, stable far into the tails.

With Phi the normal distribution function, a mechanism is mu-GDP if and only if it is
(eps, delta(eps))-DP for every eps (Dong, Roth, Su 2022, Corollary 1)::

    delta(eps) = Phi(mu/2 - eps/mu) - exp(eps) Phi(-mu/2 - eps/mu)

Computed in this form, delta loses all its digits when it is small. Since
``phi(t1) = exp(eps) phi(t2)`` at ``t1 = eps/mu - mu/2``, ``t2 = eps/mu + mu/2``, it equals
``phi(t1) (m(t1) - m(t2))`` with m the Mills ratio. This form has no cancellation of large terms; for
close ``t1, t2`` the difference is the integral of ``-m'(t) = 1 - t m(t)``. Results of root searches
are rounded in the safe direction.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfcx, log_ndtr, ndtri_exp

from dpregress.errors import InvalidInput, one_line

_NODES, _WEIGHTS = leggauss(12)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
#: Root searches stop within this relative distance; the answer is then moved that far to the safe side.
_ROOT_TOLERANCE = 1e-13
#: A larger epsilon cannot be distinguished from no guarantee.
LARGEST_EPSILON = 1e9
_RTOL = 1e-15
#: Beyond this mu the upper bound equals epsilon to thirteen digits, and the exact formula has no digits left.
_LARGE_MU = 1e7
#: Beyond this argument ``1 - t m(t)`` is computed from its asymptotic series, because it cancels.
_ASYMPTOTIC = 30.0


def _mills(t: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(t / math.sqrt(2)))


def _mills_slope(t: np.ndarray) -> np.ndarray:
    """``1 - t m(t)``, the negative derivative of the Mills ratio."""
    direct = 1 - t * math.sqrt(math.pi / 2) * erfcx(np.minimum(t, _ASYMPTOTIC) / math.sqrt(2))
    u = (1 / np.maximum(t, _ASYMPTOTIC)) ** 2
    series = u * (1 - u * (3 - u * (15 - u * (105 - 945 * u))))
    return np.asarray(np.where(t < _ASYMPTOTIC, direct, series))


def log_gdp_delta(mu: float, epsilon: float) -> float:
    """Natural logarithm of the smallest delta at which mu-GDP implies (epsilon, delta)-DP."""
    if mu <= 0:
        return -math.inf
    if math.isinf(mu):
        return 0.0
    low, high = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if low < -1:
        log_first = float(log_ndtr(-low))
        log_ratio = math.log(_mills(high)) - low * low / 2 - _LOG_SQRT_2PI - log_first  # low < -1 only where mu > 2
        return log_first + math.log1p(-math.exp(log_ratio))
    if mu < 0.5:
        nodes = low + mu * (1 + _NODES) / 2
        difference = mu / 2 * float(_WEIGHTS @ _mills_slope(nodes))
    else:
        difference = _mills(low) - _mills(high)
    return -low * low / 2 - _LOG_SQRT_2PI + math.log(difference) if difference > 0 else -math.inf


def gdp_delta(mu: float, epsilon: float) -> float:
    """Smallest delta at which mu-GDP implies (epsilon, delta)-DP."""
    return math.exp(log_gdp_delta(mu, epsilon))


@lru_cache(maxsize=4096)
def gdp_mu(epsilon: float, delta: float) -> float:
    """Largest mu such that mu-GDP implies (epsilon, delta)-DP: the analytic Gaussian mechanism.

    Exact for every epsilon > 0 (Balle, Wang 2018); rounded down by one part in 1e13.
    """
    check_epsilon_delta(epsilon, delta)
    target = math.log(delta)

    def excess(log_mu: float) -> float:
        return log_gdp_delta(math.exp(log_mu), epsilon) - target

    low, high = _bracket(excess, start=math.log(math.sqrt(2 * epsilon + 1)))
    root = float(brentq(excess, low, high, xtol=_ROOT_TOLERANCE, rtol=_RTOL))
    return math.exp(root - 2 * _ROOT_TOLERANCE)


def gdp_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon at which mu-GDP implies (epsilon, delta)-DP; rounded up."""
    check_delta(delta)
    target = math.log(delta)
    if mu <= 0 or log_gdp_delta(mu, 0.0) <= target:
        return 0.0
    if math.isinf(mu):
        return math.inf
    upper = mu * (mu / 2 - float(ndtri_exp(target))) + 1  # delta(eps) <= Phi(mu/2 - eps/mu)
    if mu > _LARGE_MU:
        return upper
    root = float(brentq(lambda e: target - log_gdp_delta(mu, e), 0.0, upper, xtol=1e-300, rtol=_RTOL))
    return root * (1 + 1e-13)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Delta at which rho-zCDP implies (epsilon, delta)-DP (Canonne, Kamath, Steinke 2020, Lemma 3.5).

    ``delta = min over a > 1 of exp((a - 1)(a rho - eps)) / (a - 1) * (1 - 1/a)^a``.
    """
    return math.exp(min(0.0, _log_zcdp_delta(rho, epsilon)))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon at which rho-zCDP implies (epsilon, delta)-DP, by the same bound; rounded up."""
    check_delta(delta)
    if rho <= 0:
        return 0.0
    if math.isinf(rho):
        return math.inf
    target = math.log(delta)

    def epsilon_at(log_order: float) -> float:
        extra = math.exp(log_order)  # the order minus one
        order = 1 + extra
        return order * rho + math.log(extra / order) - (target + math.log(order)) / extra

    return max(0.0, _minimum(epsilon_at, centre=(math.log(-target) - math.log(rho)) / 2)) * (1 + 1e-12)


def pure_mu(epsilon: float) -> float:
    """The mu at which every epsilon-DP mechanism is mu-GDP: ``-2 Phi^{-1}(1 / (exp(eps) + 1))``."""
    log_tail = -float(np.logaddexp(0.0, epsilon))
    return -2 * float(ndtri_exp(log_tail))


def check_epsilon_delta(epsilon: float, delta: float) -> None:
    """Raise InvalidInput unless epsilon is positive and finite and delta lies in (0, 1)."""
    if not is_positive(epsilon):
        raise InvalidInput(f"epsilon must be positive and finite, not {one_line(epsilon)}: 1 is a common choice")
    if epsilon > LARGEST_EPSILON:
        raise InvalidInput(f"epsilon = {epsilon:g} gives no protection: 1 is a common choice")
    check_delta(delta)


def check_delta(delta: float) -> None:
    """Raise InvalidInput unless delta lies in (0, 1)."""
    if not (is_positive(delta) and delta < 1):
        raise InvalidInput(
            f"delta must lie strictly between 0 and 1, not {one_line(delta)}: choose it below 1/n, such as 1e-6"
        )


def is_positive(value: Any) -> bool:
    """Whether this is a positive finite number; False for strings and arrays."""
    try:
        return isinstance(value, numbers.Real) and math.isfinite(value) and float(value) > 0
    except OverflowError:  # a whole number beyond floats
        return False


def _log_zcdp_delta(rho: float, epsilon: float) -> float:
    if rho <= 0:
        return -math.inf
    if math.isinf(rho):
        return 0.0

    def log_delta(log_order: float) -> float:
        extra = math.exp(log_order)
        order = 1 + extra
        return extra * (order * rho - epsilon) - math.log(extra) + order * math.log(extra / order)

    return _minimum(log_delta, centre=math.log(min(max((epsilon - rho) / (2 * rho), 1e-6), 1e280)))


def _minimum(function: Callable[[float], float], centre: float) -> float:
    """The minimum of a function of a logarithm, from a coarse grid and a search around its best point."""
    grid = centre + np.arange(-20.0, 20.5, 0.5)
    best = float(grid[int(np.argmin([function(float(point)) for point in grid]))])
    bounds = (best - 0.5, best + 0.5)
    return float(minimize_scalar(function, bounds=bounds, method="bounded", options={"xatol": 1e-9}).fun)


def _bracket(function: Callable[[float], float], start: float) -> tuple[float, float]:
    """An interval around the root of an increasing function, found by doubling steps from ``start``."""
    low = high = start
    step = 1.0
    while function(low) > 0:
        low, step = low - step, 2 * step
    step = 1.0
    while function(high) < 0:
        high, step = high + step, 2 * step
    return low, high
