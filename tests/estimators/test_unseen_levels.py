"""Levels that many private rows have and no public row: their effects are not taken for something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpregress import ApproxDP, DPLinearRegression, DPLogisticRegression, Numeric, PublicMoments, Schema

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
