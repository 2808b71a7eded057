"""Public facts that are ugly but possible: a fit that has been charged for is finite, others are refused before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpregress import (
    GDP,
    ApproxDP,
    DPGammaRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    LocalGLM,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.solvers.local.shrinkage import LinearMoments, shrunk_fit
from tests.laws.spies import watched

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")

N, M = 2_000, 400
MODELS: dict[str, Any] = {
    "linear": DPLinearRegression,
    "ridge": DPRidge,
    "logistic": DPLogisticRegression,
    "poisson": DPPoissonRegressor,
    "gamma": DPGammaRegressor,
    "classes": DPLogisticRegression,
    "local": LocalGLM,
}


def response(name: str, x: Matrix, rng: np.random.Generator) -> Vector:
    """Of a model whose signal is weak."""
    eta = 0.5 * np.tanh(x).sum(axis=1)
    if name in ("linear", "ridge"):
        return np.asarray(eta + rng.normal(size=len(x)))
    if name == "gamma":
        return np.asarray(rng.gamma(2.0, np.exp(eta)))
    return np.asarray(np.digitize(eta + rng.normal(size=len(x)), [-0.5, 0.5] if name == "classes" else [0.0]), float)


def bounds_of(name: str) -> Numeric:
    """Wide bounds of a response of the model."""
    return Numeric(0, 1) if name == "logistic" else Numeric(0 if name in ("poisson", "gamma") else -10, 10)


def fitted(name: str, x: Matrix, y: Vector, rng: np.random.Generator, **more: Any) -> Any:
    more = {"privacy": GDP(1.0), "random_state": rng, **more}
    if name == "classes":
        more["classes"] = (0, 1, 2)
    if name == "local":
        more = {**more, "privacy": ApproxDP(2.0, 1e-6), "response_bounds": (0.0, 1.0)}
    return MODELS[name](**more).fit(x, y)


def assert_finite(model: Any) -> None:
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("labelled", [False, True], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("name", MODELS)
def test_public_rows_of_which_many_are_0(name: str, labelled: bool, seed: int) -> None:
    """Sparse columns without an intercept."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N + M, 6)) * (rng.random((N + M, 6)) < 0.1)
    y = response(name, x, rng)
    public = PublicMoments.from_rows(x[N:], y[N:] if labelled else None)
    schema = Schema({"y": bounds_of(name)})
    assert_finite(fitted(name, x[:N], y[:N], rng, public=public, schema=schema, fit_intercept=False))


@pytest.mark.parametrize("far", [1e10, 1e28])
@pytest.mark.parametrize(
    "name", ["linear", "ridge", "logistic", "poisson", "gamma", pytest.param("classes", marks=pytest.mark.slow)]
)
def test_public_rows_beyond_the_bounds(name: str, far: float, seed: int) -> None:
    """So few that the bounds are the start, in other units than the schema has; two of the columns are equal."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N + 40, 10))
    y = response(name, x, rng)
    schema = Schema({**{f"x{i}": Numeric(-4, 4) for i in range(10)}, "y": bounds_of(name)})
    x[N:, 0] = x[N:, 1]
    for _ in range(3):
        public = PublicMoments.from_rows(x[N:] * far ** rng.uniform(size=10), y[N:])
        for intercept in (True, False):
            assert_finite(fitted(name, x[:N], y[:N], rng, public=public, schema=schema, fit_intercept=intercept))


@pytest.mark.parametrize("distance", [1e5, 1e7, 1e9])
def test_a_centred_gram_matrix_that_is_rounding(distance: float, seed: int) -> None:
    """Rows far from the bounds by which they are scaled: no direction counts as known to have no variance."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        rows = np.column_stack([np.ones(30), rng.normal(size=(30, 10)) + distance])
        left = rng.normal(size=30)
        noise = (rows * left[:, None] ** 2).T @ rows / 30**2
        moments = LinearMoments(rows.T @ rows / 30, left @ rows / 30, noise, 0.0, 0.0, 1.0, intercept=True)
        fit = shrunk_fit(moments)
        assert np.isfinite(fit.coef).all()
        assert np.isfinite(fit.bias).all()


@pytest.mark.parametrize("name", ["ridge", "logistic", "poisson", "classes"])
def test_a_penalty_on_tiny_columns(name: str, seed: int) -> None:
    """It leaves no slopes, and squares of it do not overflow."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N + M, 2)) * 1e-80
    y = response(name, x, rng)
    model = fitted(name, x[:N], y[:N], rng, public=PublicMoments.from_rows(x[N:], y[N:]), alpha=10.0)
    assert_finite(model)
    assert (np.abs(model.coef_) * 1e-80 < 1e-3).all()


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson"])
def test_a_schema_alone_in_any_units(name: str, seed: int) -> None:
    """Predictors are those of columns of one unit: their rounding would be larger than the columns themselves."""
    x = np.random.default_rng(seed).uniform(-1, 1, size=(N, 3))
    y = response(name, x, np.random.default_rng(seed))
    found = []
    for units in (np.ones(3), np.array([1e-6, 1.0, 1e9])):
        schema = Schema({**{f"x{i}": Numeric(-unit, unit) for i, unit in enumerate(units)}, "y": bounds_of(name)})
        model = fitted(name, x * units, y, np.random.default_rng(seed), schema=schema, privacy=GDP(20.0))
        found.append(model.coef_ * units)
    np.testing.assert_allclose(found[1], found[0], atol=0.2)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_study_with_public_rows_that_show_nothing_is_refused(intercept: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 2))
    schema = Schema({"x0": Numeric(-4, 4), "x1": Numeric(-4, 4)})
    for rows in (1, 5, M):
        public = PublicMoments.from_rows(np.full((rows, 2), 3.0 * intercept))
        with watched() as steps, pytest.raises(InvalidInput, match=r"no column|all public rows are 0") as caught:
            fitted("local", x, response("local", x, rng), rng, public=public, schema=schema, fit_intercept=intercept)
        assert not steps
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_study_with_equal_public_labels(label: float, seed: int) -> None:
    """They are no prior: no residual is left from which its precision could be computed."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N + M, 2))
    public = PublicMoments.from_rows(x[N:], np.full(M, label))
    model = fitted("local", x[:N], response("local", x[:N], rng), rng, public=public)
    assert_finite(model)
    bare = LocalGLM(ApproxDP(2.0, 1e-6), public=public.unlabelled(), response_bounds=(0.0, 1.0))
    assert model.message_plan_.predicted == bare.plan(("x0", "x1"), N).predicted


CENTRAL = ("linear", "ridge", "logistic", "poisson", "gamma")


@pytest.mark.parametrize("times", [1e2, 1e8, 1e14])
@pytest.mark.parametrize("labelled", [False, True], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("name", CENTRAL)
def test_one_far_cell_among_few_public_rows(name: str, labelled: bool, times: float) -> None:
    """Where coordinates start from bounds, it sets neither the radius nor the Gram matrix: answers stay useful.

    The worst that such a row may do is that a fit predicts the mean for everybody.
    """
    rng, d = np.random.default_rng(17), 10
    bounds = Schema({f"x{place}": Numeric(-5, 5) for place in range(d)})
    x, rows, held_out = (rng.normal(size=(size, d)) for size in (20_000, 40, 4_000))
    y, labels, truth = response(name, x, rng), response(name, rows, rng), response(name, held_out, rng)
    rows[3, 2] *= times
    public = PublicMoments.from_rows(rows, labels if labelled else None)
    model = fitted(name, x, y, np.random.default_rng(1), public=public, schema=bounds)
    predicted = model.predict_proba(held_out)[:, 1] if name == "logistic" else model.predict(held_out)
    assert_finite(model)
    assert np.mean((truth - predicted) ** 2) < 1.1 * np.var(truth)


def test_logistic_public_rows_of_zeros_at_a_tiny_budget() -> None:
    """Gradients of rows of zeros are no clips: a clip of next to nothing has no safe noise."""
    rng = np.random.default_rng(2)
    x, rows = rng.normal(size=(50, 3)), rng.normal(size=(200, 3)) * (rng.random((200, 1)) < 0.1)
    y = (x[:, 0] > 0).astype(float)
    public, bounds = PublicMoments.from_rows(rows), Schema({f"x{place}": Numeric(-5, 5) for place in range(3)})
    more = {"privacy": GDP(1e-3), "fit_intercept": False, "public": public, "schema": bounds}
    assert_finite(fitted("logistic", x, y, np.random.default_rng(3), **more))


@pytest.mark.parametrize("name", CENTRAL)
def test_public_rows_that_lie_too_far_apart_are_refused_before_the_charge(name: str) -> None:
    """Without bounds there are no other coordinates than theirs; with bounds the fit starts from these."""
    rng = np.random.default_rng(4)
    x, rows = rng.normal(size=(N, 2)), rng.normal(size=(200, 2))
    y = response(name, x, rng)
    rows[5] = [1e20, 3e20]
    public = PublicMoments.from_rows(rows)
    with watched() as steps, pytest.raises(InvalidInput, match="the public second moment is singular"):
        fitted(name, x, y, rng, public=public)
    assert not steps
    bounds = Schema({"x0": Numeric(-5, 5), "x1": Numeric(-5, 5)})
    assert_finite(fitted(name, x, y, rng, public=public, schema=bounds))
