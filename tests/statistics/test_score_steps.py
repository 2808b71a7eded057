"""What score steps are worth: their error beside that of maximum likelihood without privacy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2

from dpregress import GDP, DPGLMRegressor, DPLogisticRegression, PublicMoments
from dpregress.coordinates import Matrix, Vector

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")]

D, N, M = 8, 10_000, 100
REPEATS = 61


def maximum_likelihood(x: Matrix, y: Vector) -> Vector:
    """Newton's method from 0."""
    coef = np.zeros(x.shape[1])
    for _ in range(30):
        mean = expit(x @ coef)
        coef = coef + np.linalg.solve((x * (mean * (1 - mean))[:, None]).T @ x, x.T @ (y - mean))
    return coef


def errors(mu: float, rng: np.random.Generator) -> tuple[float, float]:
    """l2 errors of the library (public rows without labels) at sqrt(2) mu, and of maximum likelihood."""
    rotation = np.linalg.qr(rng.normal(size=(D, D)))[0]
    mean = rng.normal(size=D)
    x = rng.normal(size=(N + M, D)) @ (rotation * np.sqrt(np.logspace(0, -2, D))).T + mean / np.linalg.norm(mean)
    beta = rng.normal(size=D)
    y = rng.binomial(1, expit(x @ beta)).astype(float)
    public = PublicMoments.from_rows(x[N:])
    model = DPLogisticRegression(GDP(math.sqrt(2) * mu), public=public, fit_intercept=False, random_state=rng)
    ours = model.fit(x[:N], y[:N]).coef_
    return tuple(float(np.linalg.norm(coef - beta)) for coef in (ours, maximum_likelihood(x[:N], y[:N])))


@pytest.mark.parametrize("mu", [1.0, 3.0])
def test_logistic_error_is_near_that_of_maximum_likelihood(mu: float, seed: int) -> None:
    """The median over 61 data sets of the ratio of the errors at most 1.4; 1.04 and 1.01 are usual.

    Failure: in 300 other repeats the ratio was at most 1.4 in 93% (mu = 1) and 97% (mu = 3); the lower
    Clopper-Pearson bound at 1e-9 is 80% or more, and P(Bin(61, .80) <= 30) is below 1e-7.
    """
    found = np.array([errors(mu, np.random.default_rng([seed, repeat])) for repeat in range(REPEATS)])
    assert np.median(found[:, 0] / found[:, 1]) <= 1.4


@pytest.mark.parametrize("labelled", [False, True], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("family", ["poisson", "gaussian"])
def test_standard_errors_are_not_too_small(family: str, labelled: bool, seed: int) -> None:
    """z-scores of one slope over 60 data sets; their standard deviation is .76 to .88, in any unit of y.

    Were it 1, the sum of squares would pass the upper bound with probability 1e-8; were it .5, it would fall below
    the lower one with probability 1e-8.
    """
    coef, repeats = np.array([0.3, -0.2, 0.1]), 60
    unit = 1.0 if family == "poisson" else 100.0
    scores = np.empty(repeats)
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        x = rng.normal(size=(5_200, 3))
        mean = 0.5 + x @ coef
        y = rng.poisson(np.exp(mean)).astype(float) if family == "poisson" else unit * rng.normal(mean)
        public = PublicMoments.from_rows(x[:200], y[:200] if labelled else None)
        found = DPGLMRegressor(GDP(3.0), family=family, public=public, random_state=rng).fit(x[200:], y[200:])
        scores[repeat] = (found.coef_[0] - unit * coef[0]) / found.coefficients_.standard_error[0]
    assert 0.25 * chi2.ppf(1e-8, repeats) <= float(scores @ scores) <= chi2.isf(1e-8, repeats)
