"""The parametric bootstrap as an oracle of the covariance: tables drawn from a private fit, and fitted again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2

from dpregress import (
    GDP,
    DPGammaRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.coordinates import Matrix, Vector

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")

D, N, M, REFITS = 4, 5_000, 80, 40
COEF = np.array([0.5, -0.3, 0.2, 0.0, 0.1])  # the intercept first
COLUMNS = {f"x{place}": Numeric(-6, 6) for place in range(D)}
FAMILIES: dict[str, Any] = {
    "linear": (DPLinearRegression, Numeric(-20, 20), lambda rng, eta, scale: rng.normal(eta, np.sqrt(scale))),
    "logistic": (DPLogisticRegression, None, lambda rng, eta, _: rng.uniform(size=len(eta)) < expit(eta)),
    "poisson": (DPPoissonRegressor, Numeric(0, 100), lambda rng, eta, _: rng.poisson(np.exp(eta))),
    "gamma": (DPGammaRegressor, Numeric(0, 200), lambda rng, eta, scale: rng.gamma(1 / scale, scale * np.exp(eta))),
}


def columns(rng: np.random.Generator, rows: int) -> Matrix:
    return np.sqrt(0.7) * rng.normal(size=(rows, D)) + np.sqrt(0.3) * rng.normal(size=(rows, 1))


def fitted(family: str, coef: Vector, scale: float, known: str, rng: np.random.Generator) -> Any:
    """A fit at mu = 1 to a table that this model has drawn."""
    estimator, bounds, response = FAMILIES[family]
    x = columns(rng, N + M)
    y = response(rng, coef[0] + x @ coef[1:], scale).astype(float)
    schema = Schema(COLUMNS | ({} if bounds is None else {"y": bounds}))
    public = {
        "schema": None,
        "unlabelled": PublicMoments.from_rows(x[N:]),
        "labelled": PublicMoments.from_rows(x[N:], y[N:]),
    }[known]
    model = estimator(GDP(1.0), public=public, schema=schema, random_state=rng)
    return model.fit(x[:N], y[:N])


@pytest.mark.parametrize("known", ["schema", "unlabelled", "labelled"])
@pytest.mark.parametrize("family", FAMILIES)
def test_refits_scatter_as_their_covariance_says(family: str, known: str, seed: int) -> None:
    """Squared errors of 40 refits, all coefficients together and in units of each refit's own covariance.

    Were the covariance right, their sum would be a chi-square with 200 degrees of freedom, and pass the upper bound
    (310) with probability 1e-6. Intervals may be too long, by up to a third: then it falls below the lower bound (67)
    with probability 1e-6.
    """
    rng = np.random.default_rng([seed, 8])
    first = fitted(family, COEF, 0.5, known, rng)
    scale = float(first.scale) if family in ("linear", "gamma") else 1.0
    total = 0.0
    for _ in range(REFITS):
        refit = fitted(family, first.params, scale, known, rng)
        gap = refit.params - first.params
        total += float(gap @ np.linalg.solve(refit.cov_params(), gap))
    freedom = REFITS * (D + 1)
    assert chi2.ppf(1e-6, freedom) / 1.33**2 <= total <= chi2.isf(1e-6, freedom)
