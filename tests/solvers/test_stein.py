"""Stein's constant: roots where there are any, a stated rule where there are none."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from dpregress.errors import NoScaleWarning
from dpregress.queries.responses import LINKS, LOSSES, MeanResponse
from dpregress.solvers.stein import scaled_coefficients, stein_scale

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
