"""Penalised fits of several classes to labelled public rows: how likely each penalty is, and how precise a fit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from dpregress import PublicMoments
from dpregress.coordinates import Matrix, Vector
from dpregress.models import contrasts
from dpregress.public.whitening import from_public
from dpregress.solvers.glm.softmax_fit import PublicClasses, fit_public_classes, softmax_scoring
from dpregress.solvers.shared.public_fit import RIDGES


def classes(rng: np.random.Generator, m: int) -> tuple[Matrix, Vector]:
    x = rng.normal(size=(m, 3))
    predictors = x @ np.array([[1.0, -1.0, 0.0], [0.5, 0.0, -0.5], [0.0, 0.0, 0.0]])
    return x, (predictors + rng.gumbel(size=predictors.shape)).argmax(axis=1).astype(float)


def fitted(x: Matrix, y: Vector) -> tuple[PublicClasses, Matrix, Matrix]:
    """A fit, whitened rows, and where it begins."""
    public = PublicMoments.from_rows(x, y)
    space = from_public(public, intercept=True)
    counts = np.bincount(y.astype(int), minlength=3) + 0.5
    start = np.outer(space.constant, contrasts(3).T @ np.log(counts / counts.sum()))
    return fit_public_classes(public, space, 3), space.whiten(x), start


def penalised(z: Matrix, y: Vector, start: Matrix, ridge: float) -> Matrix:
    """The optimum, by a general method."""
    basis, places = contrasts(3), (np.arange(len(y)), y.astype(int))

    def objective(flat: Vector) -> tuple[float, Vector]:
        coef = flat.reshape(start.shape)
        predictors = z @ coef @ basis.T
        residual = softmax(predictors, axis=1)
        residual[places] -= 1
        gradient = z.T @ residual @ basis + ridge * (coef - start)
        value = -log_softmax(predictors, axis=1)[places].sum() + ridge / 2 * np.sum((coef - start) ** 2)
        return float(value), gradient.ravel()

    found = minimize(objective, start.ravel(), jac=True, method="BFGS", options={"gtol": 1e-9})
    return np.asarray(found.x.reshape(start.shape))


def test_scoring_reaches_the_penalised_optimum(seed: int) -> None:
    x, y = classes(np.random.default_rng(seed), 150)
    _, z, start = fitted(x, y)
    found = softmax_scoring(z, y, start, penalty=3 * np.eye(start.size))
    np.testing.assert_allclose(found, penalised(z, y, start, 3), atol=1e-6)


def test_penalties_are_as_likely_as_they_predict_rows_that_are_left_out(seed: int) -> None:
    """Against the definition, for penalties of ten rows and of a hundred on whitened slopes."""
    x, y = classes(np.random.default_rng(seed), 90)
    fit, z, start = fitted(x, y)
    basis, fold = contrasts(3), np.arange(90) % 5

    def left_out(ridge: float) -> float:
        total = 0.0
        for turn in range(5):
            out: NDArray[np.bool_] = fold == turn
            coef = penalised(z[~out], y[~out], start, 0.8 * ridge)
            likely = log_softmax(z[out] @ coef @ basis.T, axis=1)
            total -= 2 * float(likely[np.arange(out.sum()), y[out].astype(int)].sum())
        return total

    coefs = {ridge: penalised(z, y, start, ridge) for ridge in (10.0, 100.0)}
    found = {
        ridge: next(each for each in fit.prior.among if np.allclose(each.mean, coef.ravel(), atol=1e-5))
        for ridge, coef in coefs.items()
    }
    wanted = (left_out(100) - left_out(10)) / (2 * fit.dispersion)
    assert found[10].log_weight - found[100].log_weight == pytest.approx(wanted, abs=1e-4)
    mean = softmax(z @ coefs[10] @ basis.T, axis=1)
    whole = 10 * np.eye(start.size)
    for row, chances in zip(z, mean, strict=True):
        whole += np.kron(np.outer(row, row), basis.T @ (np.diag(chances) - np.outer(chances, chances)) @ basis)
    np.testing.assert_allclose(found[10].precision, whole / (fit.dispersion * 90 / 86), rtol=1e-4, atol=1e-6)


def test_the_likeliest_penalty_makes_the_fit(seed: int) -> None:
    fit, _, _ = fitted(*classes(np.random.default_rng(seed), 200))
    np.testing.assert_array_equal(fit.coef.ravel(), fit.prior.among[0].mean)
    weights = [each.log_weight for each in fit.prior.among]
    assert weights == sorted(weights, reverse=True)
    assert 1 < len(weights) <= 2 * len(RIDGES)


def test_many_rows_need_no_penalty(seed: int) -> None:
    """The fit is that of maximum likelihood, but for less than a standard deviation in each of eight directions."""
    x, y = classes(np.random.default_rng(seed), 20_000)
    fit, z, start = fitted(x, y)
    away = (fit.coef - softmax_scoring(z, y, np.zeros_like(start))).ravel()
    assert away @ fit.prior.among[0].precision @ away < 8


def test_one_public_row_of_a_class_widens_no_prior_without_bound(seed: int) -> None:
    """A row that was predicted to be of another class counts with a limited square."""
    rng = np.random.default_rng(seed)
    x, y = classes(rng, 300)
    y[y == 2] = 0
    y[0] = 2
    fit, _, _ = fitted(x, y)
    assert fit.dispersion <= 30
    assert np.isfinite(fit.prior.among[0].precision).all()
