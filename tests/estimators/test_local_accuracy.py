"""LocalGLM is not worse than the mean where noise hides the slopes, nor than the public fit where there are labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpregress import LocalGLM, Numeric, PublicMoments, Schema
from dpregress.accounting import ApproxDP, PureDP
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.solvers.local.shrinkage import LinearMoments, shrunk_fit
from tests.laws.spies import watched

# every simulation has a fixed seed
pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
BOUNDS = (-10.0, 20.0)


def linear(seed: int, n: int, d: int, noise: float = 2.0) -> tuple[Matrix, Vector]:
    """Columns within [-1, 1] that explain about a third of y."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, d))
    signs = np.where(np.arange(d) % 2, -1.0, 1.0)
    y = 5 + noise * math.sqrt(1.5 / d) * (x @ signs) + noise * rng.normal(size=n)
    return x, np.clip(y, *BOUNDS)


def schema_of(d: int) -> Schema:
    return Schema({**{f"x{i}": Numeric(-1, 1) for i in range(d)}, "y": Numeric(*BOUNDS)})


def loss(model: LocalGLM, x: Matrix, y: Vector) -> float:
    """Mean squared error over that of the mean for everybody."""
    return float(np.mean((y - model.predict(x)) ** 2) / np.var(y))


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 5.0])
def test_a_schema_alone_is_not_worse_than_the_mean(epsilon: float) -> None:
    """20 columns: with 50,000 users no slope can be told, but the mean can."""
    x, y = linear(1, 50_000, 20)
    model = LocalGLM(ApproxDP(epsilon, 1e-6), family="gaussian", schema=schema_of(20), random_state=1)
    assert loss(model.fit(x, y), x, y) <= 1.01
    assert model.privacy_.promise == PureDP(epsilon)
    assert "predictions are the mean for everybody" in str(model.summary())
    assert np.isfinite(model.coefficients_.standard_error).all()


def test_a_schema_alone_tells_slopes_where_it_can() -> None:
    x, y = linear(2, 200_000, 2)
    model = LocalGLM(ApproxDP(8.0, 1e-6), family="gaussian", schema=schema_of(2), random_state=2).fit(x, y)
    assert loss(model, x, y) <= 0.75
    assert "everybody is predicted" not in str(model.summary())


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_slopes_without_signal_are_not_told(family: str) -> None:
    """y does not depend on x: 10 campaigns are never 1% worse than the mean, and mostly predict it."""
    told = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(30_000, 8)), (rng.random(30_000) < 0.3).astype(float)
        model = LocalGLM(
            ApproxDP(2.0, 1e-6), family=family, public=PublicMoments.from_rows(rng.normal(size=(500, 8))),
            response_bounds=(0.0, 1.0), random_state=seed,
        )  # fmt: skip
        assert loss(model.fit(x, y), x, y) <= 1.01
        told += bool(model.coef_.any())
    assert told <= 2


@pytest.mark.parametrize("labelled", [False, True])
def test_a_level_that_no_public_row_has(labelled: bool) -> None:
    """The public moment is singular there; the schema gives a scale, and the slope is not noise over nothing."""
    x, y = linear(3, 50_000, 4)
    x[:, 3] = np.random.default_rng(3).random(len(x)) < 0.002
    x[:400, 3] = 0.0
    public = PublicMoments.from_rows(x[:400], y[:400] if labelled else None)
    model = LocalGLM(
        ApproxDP(3.0, 1e-6), family="gaussian", public=public, schema=schema_of(4), random_state=3
    ).fit(x[400:], y[400:])  # fmt: skip
    assert loss(model, x, y) <= (0.8 if labelled else 1.01)


@pytest.mark.slow
def test_labels_are_merged_whatever_the_unit_of_the_response() -> None:
    """Of 8 campaigns the mean excess loss is below that of the public rows alone, and equal in other units."""
    excess = np.zeros(2)
    for seed in range(8):
        x, y = linear(10 + seed, 100_000, 5)
        rows, labels = x[:150], y[:150]
        found = []
        for unit in (1.0, 100.0):
            model = LocalGLM(
                ApproxDP(8.0, 1e-6), family="gaussian", public=PublicMoments.from_rows(rows, unit * labels),
                response_bounds=(unit * BOUNDS[0], unit * BOUNDS[1]), random_state=seed,
            ).fit(x[150:], unit * y[150:])  # fmt: skip
            found.append(loss(model, x, unit * y))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
        design, ones = np.column_stack([np.ones(150), rows]), np.ones(len(x))
        alone = np.column_stack([ones, x]) @ np.linalg.lstsq(design, labels, rcond=None)[0]
        best = np.column_stack([ones, x])
        best = best @ np.linalg.lstsq(best, y, rcond=None)[0]
        excess += np.array([found[0], np.mean((y - alone) ** 2) / np.var(y)]) - np.mean((y - best) ** 2) / np.var(y)
    assert excess[0] < 0.8 * excess[1]


@pytest.mark.parametrize("recipe", ["auto", "joint"])
def test_what_cannot_be_told_is_refused_before_the_charge(recipe: Any) -> None:
    x, y = linear(4, 10, 3)
    model = LocalGLM(ApproxDP(0.3, 1e-6), family="gaussian", schema=schema_of(3), recipe=recipe)
    with watched() as steps, pytest.raises(InvalidInput, match=r"not tell even the mean of 'y': ask about \d+ users"):
        model.fit(x, y)
    assert not steps


def test_a_shrunk_fit_is_least_squares_where_nothing_is_noise() -> None:
    rng = np.random.default_rng(5)
    x = np.column_stack([np.ones(1_000), rng.normal(size=(1_000, 3)) + 1])
    y = x @ [1.0, 2.0, -1.0, 0.5]
    tiny = 1e-12 * np.eye(4)
    moments = LinearMoments(x.T @ x / 1_000, x.T @ y / 1_000, tiny, 1e-12, 1e-12, 10.0, intercept=True)
    fit = shrunk_fit(moments)
    assert fit.told
    np.testing.assert_allclose(fit.coef, [1.0, 2.0, -1.0, 0.5], rtol=1e-4)
    np.testing.assert_allclose(fit.linear @ moments.cross, fit.coef)
