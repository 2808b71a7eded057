"""A refused fit leaves the estimator as the fit before it did."""

from __future__ import annotations

import copy
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
    LocalGLM,
    MarginalsRegression,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
    VerticalRegression,
)
from dpregress.errors import DPRegressError

N = 500
rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": rng.random(N), "b": rng.random(N)})
Y = pd.Series((FRAME.a + rng.random(N) > 1).astype(float), name="y")
SCHEMA = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1), "y": Numeric(0, 1)})
BOUNDS = {"schema": SCHEMA}
OTHER = FRAME.rename(columns={"b": "unknown"})[["unknown"]]


def attributes(model: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


Refuse = Callable[[Any], object]
CENTRAL: list[Refuse] = [
    lambda model: model.fit(OTHER, Y),  # a column without bounds
    lambda model: model.fit(FRAME.to_numpy()[:, :1], Y),
    lambda model: model.fit(FRAME, Y[:-1]),
    lambda model: model.fit(FRAME[["a"]], Y, unit=np.arange(N)),  # no bound on rows
    lambda model: model.fit_table(FRAME[["b"]].assign(y=Y, c=Y), "y"),
    lambda model: model.fit_table(FRAME[["b"]].assign(y=Y, who=0.5), "y", unit="who", max_rows_per_unit=1),
    lambda model: model.set_params(formula="y ~ b").fit_table(OTHER.assign(y=Y)),
    lambda model: model.set_params(formula="y ~ b", ledger=MemoryLedger(GDP(1e-3))).fit_table(FRAME.assign(y=Y)),
    lambda model: model.set_params(ledger=MemoryLedger(GDP(1e-3))).fit(FRAME[["a"]], Y),  # too little is left
]


@pytest.mark.parametrize("refuse", CENTRAL)
@pytest.mark.parametrize("kind", [DPLinearRegression, DPPoissonRegressor, DPLogisticRegression])
def test_central(kind: type[Any], refuse: Refuse) -> None:
    check(kind(GDP(1.0), **BOUNDS).fit(FRAME, Y), refuse)


@pytest.mark.parametrize("refuse", [*CENTRAL[:3], lambda model: model.refit("none of them")])
def test_local(refuse: Refuse) -> None:
    public = PublicMoments.from_rows(FRAME[:100])
    check(LocalGLM(ApproxDP(2.0, 1e-6), public=public).fit(FRAME[100:], Y[100:]), refuse)


def test_marginals() -> None:
    table = FRAME.assign(y=Y)
    model = MarginalsRegression(ApproxDP(1.0, 1e-5), schema=SCHEMA, bins=4).fit_table(table, "y", ["a"])
    check(model, lambda model: model.fit_table(table, "y", ["c"]))
    ledger = MemoryLedger(ApproxDP(1e-3, 1e-9))
    check(model, lambda model: model.set_params(ledger=ledger).fit_table(table, "y"))


def test_vertical() -> None:
    model = VerticalRegression(ApproxDP(1.0, 1e-6), bounds=(0, 1)).fit_table([FRAME, Y.to_frame()], "y")
    model.rows = 7
    check(model, lambda model: model.fit_table([FRAME, Y.to_frame()], "y", ["y"]))


def check(model: Any, refuse: Refuse) -> None:
    before = copy.copy(attributes(model))
    family = getattr(model, "family", None)
    with pytest.raises(DPRegressError):
        refuse(model)
    after = attributes(model)
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)
    assert getattr(model, "family", None) == family
