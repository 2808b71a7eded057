"""The noise of DP-SGD: that of the Gaussian mechanism with whole batches, and of one step by direct integration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from benchmarks.subsampling import noise_of, spent
from scipy.integrate import quad
from scipy.stats import norm

from dpregress import ApproxDP


@pytest.mark.parametrize("steps", [1, 9, 100])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_whole_batches_are_a_gaussian_mechanism(steps: int, epsilon: float) -> None:
    """Replaced rows move a sum by twice the clip."""
    mu = ApproxDP(epsilon, 1e-6).gaussian_mu
    assert noise_of(1.0, steps, epsilon, 1e-6) == pytest.approx(2 * math.sqrt(steps) / mu, rel=3e-4)


@pytest.mark.parametrize(
    ("s", "share", "epsilon"), [(0.8, 0.1, 1.0), (2.0, 0.3, 0.3), (1.0, 0.01, 0.1), (3.0, 0.9, 1.0)]
)
def test_one_step_by_integration(s: float, share: float, epsilon: float) -> None:
    def excess(at: float) -> float:
        one, other = ((1 - share) * norm.pdf(at, 0, s) + share * norm.pdf(at, sign, s) for sign in (1, -1))
        return max(0.0, one - math.exp(epsilon) * other)

    edges = np.linspace(-1 - 12 * s, 1 + 12 * s, 200)
    direct = sum(quad(excess, low, high)[0] for low, high in itertools.pairwise(edges))
    assert spent(s, share, 1, epsilon) == pytest.approx(direct, rel=1e-3)


def test_smaller_batches_never_need_more_noise() -> None:
    noise = [noise_of(share, 30, 1.0, 1e-6) for share in (0.1, 0.3, 1.0)]
    assert noise == sorted(noise)
