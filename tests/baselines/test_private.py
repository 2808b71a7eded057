"""What private fits are compared with: right without noise, and no less noisy than they should be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from dpregress.baselines import adassp, dp_gd, tukey_em
from dpregress.coordinates import Matrix, Vector

COEF = np.array([2.0, -1.0, 0.5])


def data(rng: np.random.Generator, n: int) -> tuple[Matrix, Vector]:
    x = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    return x, x @ COEF + 0.1 * rng.normal(size=n)


def test_adassp_without_noise_is_least_squares(seed: int) -> None:
    x, y = data(np.random.default_rng(seed), 500)
    found = adassp(x, y, mu=1e12, radius=100.0, bound=100.0, rng=np.random.default_rng(seed))
    np.testing.assert_allclose(found, np.linalg.lstsq(x, y, rcond=None)[0], rtol=1e-6)


def test_adassp_adds_the_noise_of_the_cross_moment(seed: int) -> None:
    """With responses of 0 the answer is ``A^{-1} e``; A is known to 1% and 3,000 squares lie in their chi-square law.

    ``A = X'X + N + lam I`` with X'X = 1e8 I far above N (below 40 by 6 standard deviations) and lam = 0: the tails are
    1e-8 each.
    """
    x = np.tile(np.eye(3) * 1.0, (1000, 1)) * math.sqrt(1e5)
    rng = np.random.default_rng(seed)
    radius, bound, mu = math.sqrt(1e5), 2.0, 1.0e5
    found = np.array([adassp(x, np.zeros(3000), mu=mu, radius=radius, bound=bound, rng=rng) for _ in range(1000)])
    sigma = 2 * radius * bound * math.sqrt(3) / mu
    squares = float(np.sum((1e8 * found / sigma) ** 2))
    assert 0.98 * chi2.ppf(1e-8, 3000) <= squares <= 1.02 * chi2.isf(1e-8, 3000)


def test_gradient_descent_without_noise_comes_near(seed: int) -> None:
    x, y = data(np.random.default_rng(seed), 5_000)
    found = dp_gd(x, y, mu=1e12, start_clip=5.0, rng=np.random.default_rng(seed), steps=40)
    np.testing.assert_allclose(found, COEF, atol=0.05)


def test_tukey_em_finds_the_middle_of_many_models(seed: int) -> None:
    """The depth is at least a quarter: the point lies between the models' outer quarters, within 0.1 of the truth."""
    x, y = data(np.random.default_rng(seed), 40_000)
    found = tukey_em(x, y, epsilon=5.0, delta=1e-6, models=2_000, rng=np.random.default_rng(seed))
    assert found is not None
    np.testing.assert_allclose(found, COEF, atol=0.1)


@pytest.mark.parametrize(("n", "models", "epsilon"), [(5_990, 2_000, 5.0), (40_000, 60, 0.1)])
def test_tukey_em_gives_no_answer_where_none_is_safe(n: int, models: int, epsilon: float, seed: int) -> None:
    """Too few rows for a model, or too few models: the threshold is 538, the distance at most 15, the noise
    Laplace(20).

    The noise bridges that with probability below exp(-26).
    """
    x, y = data(np.random.default_rng(seed), n)
    assert tukey_em(x, y, epsilon=epsilon, delta=1e-12, models=models, rng=np.random.default_rng(seed)) is None
