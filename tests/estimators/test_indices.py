"""Rows that go by position although their indices say otherwise are refused before the charge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpregress import (
    GDP,
    ApproxDP,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPSurvival,
    LocalGLM,
    MarginalsRegression,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
    VerticalRegression,
)
from dpregress.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
N = 400
rng = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": rng.uniform(-1, 1, N), "b": rng.uniform(-1, 1, N), "y": rng.integers(0, 2, N) * 1.0})
TABLE = TABLE.assign(w=1.0, t=rng.uniform(0.1, 2, N), who=np.arange(N)).set_index(pd.Index(np.arange(N) + 987_000))
X, OTHER = TABLE[["a", "b"]], TABLE.sample(frac=1, random_state=1)
SCHEMA = Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1), "y": Numeric(0, 1), "w": Numeric(0, 2)})
PUBLIC = PublicMoments.from_rows(rng.uniform(-1, 1, (100, 2)), names=("a", "b"))
HOW: dict[str, Any] = {"schema": SCHEMA, "random_state": 0}


Fit = Callable[[MemoryLedger, Any], object]
FITS: dict[str, Fit] = {
    "linear": lambda to, y: DPLinearRegression(GDP(1.0), ledger=to, **HOW).fit(X, y),
    "classes": lambda to, y: DPLogisticRegression(GDP(1.0), classes=(0, 1), ledger=to, **HOW).fit(X, y),
    "found classes": lambda to, y: DPLogisticRegression(GDP(1.0), ledger=to, **HOW).fit(X, y),
    "formula": lambda to, y: DPLinearRegression(GDP(1.0), formula="y ~ a", ledger=to, **HOW).fit(X, y),
    "local": lambda _, y: LocalGLM(ApproxDP(4.0, 1e-6), public=PUBLIC, **HOW).fit(X, y),
    "marginals": lambda _, y: MarginalsRegression(GDP(1.0), **HOW).fit(X, y),
    "vertical": lambda _, y: VerticalRegression(GDP(1.0), **HOW).fit([X[["a"]], X[["b"]]], y),
}


def refused(fit: Callable[[], object], name: str) -> None:
    with pytest.raises(InvalidInput, match=f"X and {name} have different indices") as told:
        fit()
    assert f"{name}.loc[X.index]" in str(told.value)
    assert "987" not in str(told.value)


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_responses(fit: Fit) -> None:
    ledger = MemoryLedger(GDP(5.0))
    refused(lambda: fit(ledger, OTHER["y"]), "y")
    refused(lambda: fit(ledger, TABLE["y"].reset_index(drop=True)), "y")
    assert not ledger.charges


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_of_one_order(fit: Fit) -> None:
    """The same index, and what has none."""
    for y in (OTHER["y"].loc[X.index], TABLE["y"].to_numpy()):
        fit(MemoryLedger(GDP(5.0)), y)


def test_what_stands_beside() -> None:
    ledger = MemoryLedger(GDP(5.0))
    counts = DPPoissonRegressor(GDP(1.0), ledger=ledger, **HOW)
    refused(lambda: counts.fit(X, TABLE["y"], exposure=OTHER["t"]), "exposure")
    refused(lambda: counts.fit(X, TABLE["y"], weights=OTHER["w"]), "weights")
    refused(lambda: counts.fit(X, TABLE["y"], unit=OTHER["who"], max_rows_per_unit=1), "unit")
    survival = DPSurvival(GDP(1.0), cuts=(1.0, 2.0), ledger=ledger, **HOW)
    refused(lambda: survival.fit(X, TABLE["y"], time=OTHER["t"]), "time")
    assert not ledger.charges


def test_diagnoses_scores_and_predictions() -> None:
    ledger = MemoryLedger(GDP(50.0))
    model = DPLogisticRegression(GDP(20.0), classes=(0, 1), ledger=ledger, **HOW).fit(X, TABLE["y"])
    refused(lambda: model.diagnose(X, OTHER["y"], privacy=GDP(1.0)), "y")
    assert len(ledger.charges) == 1
    refused(lambda: model.score(X, OTHER["y"]), "y")
    assert model.score(X, TABLE["y"]) == model.score(X, TABLE["y"].to_numpy())
    linear = DPLinearRegression(GDP(20.0), **HOW).fit(X, TABLE["y"])
    refused(lambda: linear.score(X, OTHER["y"]), "y")
    rates = DPPoissonRegressor(GDP(20.0), **HOW).fit(X, TABLE["y"], exposure=TABLE["t"])
    refused(lambda: rates.predict(X, exposure=OTHER["t"]), "exposure")
