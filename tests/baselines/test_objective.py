"""Objective perturbation: its scales keep (epsilon, delta) for replaced rows, and its fit is the exact minimiser."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from dpregress.accounting import ApproxDP
from dpregress.baselines import perturbation_scales, tilted_logistic


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_scales_spend_delta_and_no_more(epsilon: float, share: float) -> None:
    """E (1 - exp(left - s r - s^2/2))_+ over r ~ Rayleigh, the norm of two normals, by numerical integration."""
    penalty, sigma = perturbation_scales(epsilon=epsilon, delta=1e-6, radius=3.0, share=share)
    s = 2 * 3.0 / sigma
    left = epsilon - math.log1p(3.0**2 / (4 * penalty))
    assert left == pytest.approx((1 - share) * epsilon)
    least = (left - s**2 / 2) / s
    spent, _ = quad(lambda r: r * math.exp(-(r**2) / 2) * -math.expm1(left - s * r - s**2 / 2), least, least + 40)
    assert 0.999e-6 <= spent <= 1e-6


def test_the_tilt_is_no_smaller_than_the_gaussian_mechanism_would_need() -> None:
    """The gradient at the minimiser moves by up to 2R: less noise than for a sum of that sensitivity is too little."""
    _, sigma = perturbation_scales(epsilon=1.0, delta=1e-6, radius=1.0, share=0.1)
    assert 2 / ApproxDP(1.0, 1e-6).gaussian_mu < sigma < 1.5 * 2 / ApproxDP(1.0, 1e-6).gaussian_mu


def test_the_fit_is_the_minimiser(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, tilt = rng.normal(size=(500, 4)), rng.normal(size=4)
    signs = np.where(rng.random(500) < expit(x[:, 0]), 1.0, -1.0)
    coef = tilted_logistic(x, signs, tilt=tilt, penalty=2.0, radius=5.0)
    slope = -(x * signs[:, None]).T @ expit(-signs * (x @ coef)) + 2.0 * coef + tilt
    assert np.linalg.norm(slope) <= 1e-9
