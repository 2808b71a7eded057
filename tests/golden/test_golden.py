"""Answers that must not drift: a seeded fit of a fixed table, and exact budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpregress import GDP, ApproxDP, DPLinearRegression, PublicMoments
from dpregress.errors import SeededNoiseWarning


def fixed_table() -> tuple[np.ndarray, np.ndarray]:
    """Rows from a formula, so that they depend on no generator."""
    t = np.arange(2000.0)
    x = np.column_stack([np.sin(t), np.cos(1.7 * t) * 3, np.sin(0.3 * t) + np.cos(t) * 0.1])
    return x, x @ [1.0, -2.0, 0.5] + 4 + 0.1 * np.sin(12.9898 * t)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("recipe", ["residual", "one-shot"])
def test_seeded_fit(recipe: Any) -> None:
    assert SeededNoiseWarning.__doc__
    x, y = fixed_table()
    public = PublicMoments.from_rows(x[:100], y[:100])
    model = DPLinearRegression(GDP(1.0), public=public, recipe=recipe, random_state=7).fit(x[100:], y[100:])
    assert np.allclose([model.intercept_, *model.coef_], GOLDEN[recipe], rtol=1e-8)


def test_exact_budget() -> None:
    assert np.isclose(ApproxDP(1.0, 1e-6).gaussian_mu, 0.23670438066338836, rtol=1e-12)


GOLDEN = {
    "residual": [4.0000729367379515, 0.9997030141521429, -2.000151002288518, 0.49968574290941226],
    "one-shot": [3.988227212544637, 0.9905910968230376, -2.0035713774292723, 0.48065569081068055],
}
