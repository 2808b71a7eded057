"""Public rows in another unit than the private ones, such as months for years: what is known of intercepts."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from dpregress import (
    GDP,
    Categorical,
    DPGammaRegressor,
    DPLogisticRegression,
    DPPoissonRegressor,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.public.facts import PublicFacts

N, M = 8_000, 200
SLOPE, LEVEL = 0.02, -1.5


def fitted(family: str, factor: float, seed: int):  # type: ignore[no-untyped-def]
    """Estimates of a fit to ages, whose public rows are so many times as large."""
    rng = np.random.default_rng([seed, N])
    x = np.column_stack([rng.integers(18, 90, N + M).astype(float), rng.normal(27, 5, N + M)])
    eta = LEVEL + SLOPE * x[:, 0]
    y = {
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: np.exp(eta) * rng.gamma(2, 0.5, N + M),
        "logistic": lambda: (rng.logistic(size=N + M) < eta).astype(float),
    }[family]()
    estimator = {"poisson": DPPoissonRegressor, "gamma": DPGammaRegressor, "logistic": DPLogisticRegression}[family]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        public = PublicMoments.from_rows(x[:M] * [factor, 1.0])
        return estimator(GDP(1.0), public=public, random_state=seed).fit(x[M:], y[M:]).estimates_


@pytest.mark.parametrize("family", ["poisson", "gamma", "logistic"])
@pytest.mark.parametrize("factor", [3.0, 5.0, 12.0])
def test_an_intercept_is_not_told_where_its_slope_is_not(family: str, factor: float) -> None:
    """Private ages are all at one end of the public ones: their slope is hidden, and it moves the intercept by all of
    their mean. Intervals of +-.1 were six standard errors off. The noise is far smaller than any threshold."""
    estimates = fitted(family, factor, 1)
    assert not estimates.identified[1]
    assert not estimates.identified[0]
    assert estimates.identified[2]


@pytest.mark.parametrize("family", ["poisson", "gamma", "logistic"])
def test_the_same_unit_tells_both(family: str) -> None:
    """Within 5.2 standard errors, which a fit exceeds with a probability of 2e-7. A seed for each."""
    estimates = fitted(family, 1.0, 2)
    assert estimates.identified.all()
    errors = np.sqrt(np.diag(estimates.covariance))
    assert (np.abs(estimates.estimate - [LEVEL, SLOPE, 0.0]) < 5.2 * errors).all()


@pytest.mark.parametrize("family", ["poisson", "gamma", "logistic"])
@pytest.mark.parametrize("factor", [1 / 12, 0.01])
def test_nothing_is_told_where_no_public_row_is_like_a_private_one(family: str, factor: float) -> None:
    """All private ages are many deviations beyond the public ones: their slope had the other sign, four standard errors
    and more from the truth. Noise is a thousandth of what decides; one seed each."""
    assert not fitted(family, factor, 3).identified.any()


@pytest.mark.parametrize("family", ["poisson", "logistic"])
def test_an_intercept_is_told_where_no_private_row_has_a_public_level(family: str) -> None:
    """Its slope is not, but every private row has 0 there, which is where the intercept is. Within 5.2 standard errors,
    which is exceeded with a probability of 2e-7."""
    rng = np.random.default_rng([4, N])
    z, level = rng.normal(size=N + M), (np.arange(N + M) < 0.4 * M).astype(float)
    eta = LEVEL + 0.5 * z
    y = rng.poisson(np.exp(eta)) if family == "poisson" else rng.logistic(size=N + M) < eta
    x = np.column_stack([z, level])
    estimator = DPPoissonRegressor if family == "poisson" else DPLogisticRegression
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimates = estimator(GDP(1.0), public=PublicMoments.from_rows(x[:M]), random_state=4).fit(
            x[M:], y[M:].astype(float)
        ).estimates_  # fmt: skip
    assert estimates.identified.tolist() == [True, True, False]
    assert abs(estimates.estimate[0] - LEVEL) < 5.2 * np.sqrt(estimates.covariance[0, 0])


def test_numbers_are_no_indicators() -> None:
    """By the schema, and by public rows that have more than two values. Deterministic."""
    schema = Schema({"a": Numeric(0, 9), "b": Numeric(0, 1), "c": Categorical(("u", "v", "w"))})
    names = ("a", "b", "c=v", "c=w")
    assert [schema.is_indicator(name) for name in names] == [False, True, True, True]
    rows = np.column_stack([[1.0, 2.0, 5.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    start = SimpleNamespace(space=SimpleNamespace(features=("x", "y", "z")))
    facts = PublicFacts(3, "y", start, PublicMoments.from_rows(rows), None)  # type: ignore[arg-type]
    assert facts.numbers == [True, False, False]
