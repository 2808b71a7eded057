"""Caps of unit vectors: their numbers by direct integration, and the privacy that they keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from dpregress.accounting.caps import Cap, best_cap
from dpregress.errors import InvalidInput

CASES = [(0.1, 2), (1.0, 3), (1.0, 20), (5.0, 5), (10.0, 30)]


def integral(cap: Cap, power: int, low: float, high: float) -> float:
    """``E[T^power; low <= T <= high]`` of a coordinate T of a uniform unit vector, as an angle."""
    weight = quad(lambda a: math.sin(a) ** (cap.order - 2), 0, math.pi)[0]
    inner = quad(
        lambda a: math.cos(a) ** power * math.sin(a) ** (cap.order - 2), math.acos(high), math.acos(low), epsabs=1e-13
    )
    return inner[0] / weight


@pytest.mark.parametrize(("epsilon", "order"), CASES)
def test_numbers_are_those_of_the_density(epsilon: float, order: int) -> None:
    cap = best_cap(epsilon, order)
    assert math.isclose(cap.share, integral(cap, 0, cap.gamma, 1), rel_tol=1e-6)
    inside, outside = cap.inside / cap.share, (1 - cap.inside) / (1 - cap.share)
    for power, found in ((1, cap.gain), (2, cap.along)):
        expected = inside * integral(cap, power, cap.gamma, 1) + outside * integral(cap, power, -1, cap.gamma)
        assert math.isclose(found, expected, rel_tol=1e-6)


@pytest.mark.parametrize(("epsilon", "order"), [*CASES, (2.0, 1)])
def test_the_density_is_just_e_to_the_epsilon_higher_on_the_cap(epsilon: float, order: int) -> None:
    cap = best_cap(epsilon, order)
    ratio = cap.inside / cap.share / ((1 - cap.inside) / (1 - cap.share))
    assert math.isclose(ratio, math.exp(epsilon), rel_tol=1e-9)


@pytest.mark.parametrize(("epsilon", "order"), CASES)
def test_no_other_cap_gains_more(epsilon: float, order: int) -> None:
    best = best_cap(epsilon, order).gain
    assert all(Cap(epsilon, order, float(gamma)).gain <= best * (1 + 1e-9) for gamma in np.linspace(0, 0.99, 100))


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 6.0, 10.0])
@pytest.mark.parametrize("order", [1, 2, 3, 10, 100, 500])
def test_caps_are_hit_often_enough_for_the_bound_on_rounding(epsilon: float, order: int) -> None:
    """docs/privacy/local-messages.md."""
    assert best_cap(epsilon, order).share >= math.exp(-epsilon) / 2


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 10.5, math.inf, math.nan])
def test_other_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        best_cap(epsilon, 5)
    with pytest.raises(InvalidInput, match="up to 500 entries"):
        best_cap(1.0, 501)
