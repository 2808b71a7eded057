"""The law of paid fits: once a budget is charged, a fit is returned, whatever was released.

Solvers choose their way by released numbers, and public rows may be of another population, in other units, constant or
few. Random tables, public rows and budgets are fitted. A fit may be refused by public facts, before the charge; after
it, it has finite coefficients and predictions. Noise comes from seeds; nothing else is random.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dpregress import (
    ApproxDP,
    DPGammaRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.errors import DPRegressError, SeededNoiseWarning

MODELS: dict[str, Any] = {
    "linear": DPLinearRegression,
    "logistic": DPLogisticRegression,
    "poisson": DPPoissonRegressor,
    "gamma": DPGammaRegressor,
    "multinomial": DPLogisticRegression,
}
#: Factors by which public rows are in another unit, and that of a constant column.
UNITS = (1.0, 1.0, 1.0, 12.0, 1 / 12, 1e3, 1e-3, 0.0)


def response(name: str, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One that the model may have, or one that is nearly always the same."""
    if rng.random() < 0.1:
        eta = np.full_like(eta, -6.0)
    if name == "linear":
        return eta + rng.standard_t(3, len(eta)) * 10 ** rng.uniform(-3, 1)
    if name == "logistic":
        return (rng.logistic(size=len(eta)) < eta).astype(float)
    if name == "multinomial":
        return (eta + rng.gumbel(size=len(eta)) > [[-1], [1]]).sum(axis=0).astype(float)
    mean = np.exp(np.clip(eta, -8, 8))
    return rng.poisson(mean).astype(float) if name == "poisson" else mean * rng.gamma(0.7, size=len(eta)) + 1e-9


def fit(name: str, seed: int) -> None:
    """A random table with its model; the law is asserted."""
    rng = np.random.default_rng([54, sum(map(ord, name)), seed])
    n, d, m = int(rng.integers(300, 3_000)), int(rng.integers(1, 6)), int(rng.choice([4, 40, 300]))
    x = rng.standard_t(rng.choice([3, 100]), size=(n + m, d)) * 10 ** rng.uniform(-1, 2, d)
    slopes = rng.normal(size=d) * rng.choice([0.1, 1, 10]) / np.maximum(x.std(axis=0), 1e-12)
    y = response(name, x @ slopes + rng.normal(), rng)
    shown, labels = x[:m] * rng.choice(UNITS, d), y[:m]
    if name in ("linear", "gamma"):
        labels = labels * rng.choice(UNITS[:-1])
    ways = {"schema": None, "unlabelled": lambda: PublicMoments.from_rows(shown)}
    ways["labelled"] = lambda: PublicMoments.from_rows(shown, labels)
    way = ways[str(rng.choice(list(ways)))]
    wide = rng.choice([1.0, 1.0, 10.0, 0.3])
    most = np.abs(x).max(axis=0) * wide + 1e-9
    bounds = {f"x{place}": Numeric(-size, size) for place, size in enumerate(most.tolist())}
    if name in ("linear", "poisson", "gamma"):
        end = float(np.abs(y).max() * rng.choice([1.0, 10.0, 0.3]) + 1e-9)
        bounds["y"] = Numeric(-end if name == "linear" else 0.0, end)
    ledger, budget = MemoryLedger(ApproxDP(100, 1e-3)), ApproxDP(float(rng.choice([0.05, 0.5, 3, 30])), 1e-6)
    classes = {"classes": (0, 1) if name == "logistic" else (0, 1, 2)} if MODELS[name] is DPLogisticRegression else {}
    known = Schema(bounds) if way is None or rng.random() < 0.7 else None
    try:
        model = MODELS[name](
            budget, public=way and way(), schema=known, ledger=ledger, random_state=seed, **classes
        ).fit(x[m:], y[m:])  # fmt: skip
    except DPRegressError:
        assert ledger.spent is None or ledger.spent.mu == 0, f"seed {seed}: a paid fit was lost"
        return
    assert np.isfinite(model.coef_).all(), seed
    assert np.isfinite(model.predict(x[m:])).all(), seed
    assert model.summary().to_frame() is not None


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 300), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_paid_fit_is_returned(name: str, seeds: range) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        warnings.filterwarnings("ignore", category=UserWarning)
        for seed in seeds:
            fit(name, seed)


def test_public_rows_all_of_which_are_far() -> None:
    """Ages in months beside private ages in years: no private row votes as public rows do."""
    rng = np.random.default_rng(0)
    age, mass = rng.integers(18, 90, 20_000).astype(float), rng.normal(27, 5, 20_000)
    x, y = np.column_stack([age, mass]), 5 * age + 3 * mass + rng.normal(0, 60, 20_000)
    public = PublicMoments.from_rows(x[:300] * [12, 1], y[:300])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPLinearRegression(ApproxDP(3, 1e-6), public=public, random_state=0).fit(x[300:], y[300:])
    assert abs(model.coef_[0] - 5) < 0.5
