"""Levels that many private rows have and no public row: their effects are not taken for something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpregress import GDP, ApproxDP, DPLinearRegression, DPLogisticRegression, Numeric, PublicMoments, Schema

SLOPES, PUBLIC, ROWS = np.array([0.5, -0.5, 0.2, 1.5, -1.0]), 300, 40_000
NAMES = [f"x{j}" for j in range(5)]
COLUMNS = {**{name: Numeric(-5, 5) for name in NAMES[:3]}, "x3": Numeric(0, 1), "x4": Numeric(0, 1)}


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("model", [DPLinearRegression, DPLogisticRegression])
def test_their_slopes_are_right(model: Any, labelled: bool, seed: int) -> None:
    """Within .2. Eight fits of each kind, at other seeds, had errors up to .08, with standard deviations up to .034.

    Gradients of whole rows, clipped as if rows were as long as the public ones, had logistic errors of up to .42.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(PUBLIC + ROWS, 5))
    x[:, 3:] = rng.random((len(x), 2)) < [0.3, 0.25]
    x[:PUBLIC, 3:] = 0
    eta = x @ SLOPES - 0.3
    y = eta + rng.normal(size=len(x)) if model is DPLinearRegression else (rng.random(len(x)) < 1 / (1 + np.exp(-eta)))
    known = PublicMoments.from_rows(x[:PUBLIC], y[:PUBLIC] * 1.0 if labelled else None, names=NAMES)
    rows, response = pd.DataFrame(x[PUBLIC:], columns=NAMES), pd.Series(y[PUBLIC:] * 1.0, name="y")
    schema = Schema({**COLUMNS, "y": Numeric(-8, 8)} if model is DPLinearRegression else COLUMNS)
    fit = model(ApproxDP(3, 1e-6), public=known, schema=schema, random_state=seed).fit(rows, response)
    np.testing.assert_allclose(np.ravel(fit.coef_), SLOPES, atol=0.2)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("share", [0.003, 0.02])
@pytest.mark.parametrize("labelled", [False, True])
def test_rare_ones_do_not_alternate(labelled: bool, share: float, seed: int) -> None:
    """At epsilon 10 within 1.5 (.3% of rows) and .6 (2%): four fits had root mean squared errors of .24 and .06.

    Steps that took such rows for shorter than they are had 2% at .97, whatever the budget.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(PUBLIC + ROWS, 5))
    x[:, 3:] = rng.random((len(x), 2)) < share
    x[:PUBLIC, 3:] = 0
    y = x @ SLOPES - 0.3 + rng.normal(size=len(x))
    known = PublicMoments.from_rows(x[:PUBLIC], y[:PUBLIC] if labelled else None, names=NAMES)
    rows, response = pd.DataFrame(x[PUBLIC:], columns=NAMES), pd.Series(y[PUBLIC:], name="y")
    schema = Schema({**COLUMNS, "y": Numeric(-8, 8)})
    model = DPLinearRegression(ApproxDP(10, 1e-6), public=known, schema=schema, random_state=seed)
    errors = np.ravel(model.fit(rows, response).coef_) - SLOPES
    assert float(np.abs(errors[3:]).max()) < (0.6 if share == 0.02 else 1.5)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("mu", [1.0, 2e3])
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("model", [DPLinearRegression, DPLogisticRegression])
def test_public_rows_of_zeros_tell_no_lengths(model: Any, labelled: bool, mu: float, seed: int) -> None:
    """A clip from their lengths would be refused after the charge, and rows of zeros among others clip nothing."""
    x = np.random.default_rng(seed).normal(size=(5_000, 1))
    y = x[:, 0] if model is DPLinearRegression else (x[:, 0] > 0) * 1.0
    columns = {"x": Numeric(-5, 5)} | ({"y": Numeric(-50, 50)} if model is DPLinearRegression else {})
    for public in (np.zeros((4, 1)), np.arange(60.0)[:, None] % 7):
        labels = np.arange(len(public)) % 2 * 1.0
        known = PublicMoments.from_rows(public, labels if labelled else None, names=["x"])
        fit = model(GDP(mu), public=known, schema=Schema(columns), fit_intercept=False, random_state=seed)
        fitted = fit.fit(pd.DataFrame(x, columns=["x"]), pd.Series(y, name="y"))
        assert np.isfinite(fitted.coef_).all()
