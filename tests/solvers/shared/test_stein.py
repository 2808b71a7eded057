"""Stein's constant: roots where there are any, a stated rule where there are none."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.special import expit

from dpregress.errors import NoScaleWarning
from dpregress.models.mean_responses import LINKS, LOSSES, MeanResponse
from dpregress.solvers.shared.stein import logistic_scale, scaled_coefficients, stein_scale

RESPONSES = {**LOSSES, **LINKS}


def normal(size: float) -> np.ndarray:
    """Quantiles of a normal law with this standard deviation, symmetric about 0."""
    from scipy.special import ndtri

    return size * ndtri((np.arange(4001) + 0.5) / 4001)


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("length", [0.2, 1.0])
def test_the_root_of_a_true_model(name: str, length: float) -> None:
    """For normal x of this length, least squares are ``E m'(z) z``: the scale takes them back to z."""
    response = RESPONSES[name]
    z = normal(length)
    shrink = float(np.mean(response.slope(z)))
    found = stein_scale(response.slope, shrink * z)
    assert found.root
    assert math.isclose(found.value * float(np.mean(response.slope(found.value * shrink * z))), 1.0, rel_tol=1e-9)
    assert math.isclose(found.value, 1 / shrink, rel_tol=1e-6)


def test_a_falling_link_has_a_negative_scale() -> None:
    assert stein_scale(LINKS["log1pexp"].slope, normal(0.1)).value < 0


def test_without_a_root_the_rule_chooses_and_says_so() -> None:
    """``c E m'(c z)`` of the logistic loss stays below ``1 / (sqrt(2 pi) sd)``: no root beyond an sd of 0.4."""
    slope, z = LOSSES["logistic"].slope, normal(1.0)
    found = stein_scale(slope, z)
    assert not found.root
    reached = [c * float(np.mean(slope(c * z))) for c in np.geomspace(1e-3, 10, 400)]
    assert found.value * float(np.mean(slope(found.value * z))) >= 0.98 * max(reached)
    with pytest.warns(NoScaleWarning, match="no root"):
        coef = scaled_coefficients(slope, z, np.array([2.0]))
    assert coef.tolist() == [2 * found.value]


def test_a_root_is_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled_coefficients(LOSSES["squared"].slope, normal(1.0), np.ones(2))


def test_functions_of_ones_own() -> None:
    own = MeanResponse("twice", lambda z: 2 * z, lambda z: np.full_like(z, 2.0))
    assert math.isclose(stein_scale(own.slope, normal(1.0)).value, 0.5, rel_tol=1e-9)
    assert stein_scale(own.slope, np.zeros(3)).root


@pytest.mark.parametrize("name", RESPONSES)
def test_slopes_are_derivatives(name: str) -> None:
    response, z, step = RESPONSES[name], np.linspace(-3, 3, 61), 1e-6
    numeric = (response.mean(z + step) - response.mean(z - step)) / (2 * step)
    np.testing.assert_allclose(response.slope(z), numeric, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(("level", "size"), [(0.0, 0.1), (0.5, 1.0), (-3.0, 1.0), (1.0, 3.0)])
def test_logistic_scale_takes_least_squares_back(level: float, size: float) -> None:
    """From the mean and the least squares fit of labels with ``P(1) = g(level + size z)``, exactly integrated."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    chance = expit(level + size * nodes)
    mean, ordinary = float(weights @ chance), float(weights @ (nodes * chance))
    scale, found = logistic_scale(mean, ordinary)
    assert scale.root
    assert math.isclose(scale.value * ordinary, size, rel_tol=0.02)
    assert math.isclose(found, level, abs_tol=0.02 * (1 + abs(level)))


@pytest.mark.parametrize("mean", [1e-6, 0.5, 1 - 1e-6])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 0.5, 1e3])
def test_logistic_scale_is_finite(mean: float, spread: float) -> None:
    """Labels too rare, or explained too well, for any root."""
    scale, level = logistic_scale(mean, spread)
    assert math.isfinite(scale.value)
    assert math.isfinite(level)
    assert scale.value > 0
