"""Solving exact moments is scikit-learn's least squares and ridge."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dpregress import PublicMoments
from dpregress.coordinates import Matrix, ResponseScale, Vector
from dpregress.mechanisms.base import exact_total
from dpregress.public.response import scaled
from dpregress.public.whitening import from_public
from dpregress.queries import SecondMoment
from dpregress.releases import Isotropic, Moments
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers import solve_moments


def data(seed: int) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng(seed)
    x = rng.normal(1.0, 1.0, size=(400, 3)) * [1.0, 10.0, 0.1]
    return x, x @ [1.0, -0.2, 5.0] + 3.0 + rng.normal(size=400)


def exact_moments(x: Matrix, y: Vector, *, intercept: bool, sigma: float = 0.0) -> Moments:
    """Moments without noise in a space that truncates nothing; sigma is what they claim."""
    space = from_public(PublicMoments.from_rows(x[:50]), intercept=intercept)
    space = space.rewhitened(np.eye(space.order), 1e3)
    space = space.with_response(scaled(ResponseScale("y", 2.0 * intercept, 4.0), space, 1e3))
    query = SecondMoment(space)
    total = exact_total(query, PrivateRows(ArraySource(x, y)))
    return query.read(total, n=len(x), noise=Isotropic(sigma), events=())


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 300.0])
def test_exact_moments_give_ridge(intercept: bool, alpha: float, seed: int) -> None:
    x, y = data(seed)
    moments = exact_moments(x, y, intercept=intercept)
    coef, system = solve_moments(moments, alpha=alpha)
    expected = Ridge(alpha=alpha, fit_intercept=intercept, solver="cholesky").fit(x, y)
    slopes, constant = moments.space.pull_back(coef)
    np.testing.assert_allclose(slopes, expected.coef_, rtol=1e-7, atol=1e-9)
    assert constant == pytest.approx(expected.intercept_, rel=1e-7, abs=1e-8)
    np.testing.assert_allclose(system @ coef, moments.cross, atol=1e-12)


def test_the_penalty_leaves_the_intercept_alone(seed: int) -> None:
    x, y = data(seed)
    moments = exact_moments(x, y, intercept=True)
    slopes, constant = moments.space.pull_back(solve_moments(moments, alpha=1e12)[0])
    np.testing.assert_allclose(slopes, 0, atol=1e-6)
    assert constant == pytest.approx(y.mean(), abs=1e-4)


def test_a_gram_matrix_below_its_noise_is_repaired(seed: int) -> None:
    """With noise as large as the moments the system stays positive definite and the answer finite."""
    x, y = data(seed)
    moments = exact_moments(x, y, intercept=False, sigma=2.0 * len(x))
    coef, system = solve_moments(moments, alpha=0.0)
    assert np.linalg.eigvalsh(system).min() >= 2.0
    assert np.linalg.norm(coef) <= np.linalg.norm(moments.cross) / 2.0
