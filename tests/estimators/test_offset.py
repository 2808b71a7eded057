"""``offset()`` in formulas: the limit of statsmodels, predictions, files, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import dpregress
from dpregress import DPGLMRegressor, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor, Numeric, Schema
from dpregress.accounting import GDP, MemoryLedger
from dpregress.errors import InvalidInput
from dpregress.models import family_of
from dpregress.solvers import ScoreSteps
from tests.laws.spies import Silent
from tests.registry import responses
from tests.support import missing, statsmodels_family

HUGE = GDP(1e20)
SCHEMA = Schema({"a": Numeric(-4, 4), "b": Numeric(-4, 4), "z": Numeric(-2, 3)})


def table(family: str, rng: np.random.Generator, n: int = 3_000) -> pd.DataFrame:
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"]).assign(z=rng.uniform(-2, 3, n))
    mean = family_of(family).mean(0.2 + frame["a"] * 0.5 - frame["b"] * 0.4 + 0.8 * frame["z"].to_numpy())
    return frame.assign(y=responses(family_of(family), np.asarray(mean), rng))


def fitted(kind: Any, frame: pd.DataFrame, formula: str, public: pd.DataFrame, **more: Any) -> Any:
    def more_steps(facts: Any, family: Any, budget: Any, alpha: float, **options: Any) -> ScoreSteps:
        return ScoreSteps(facts, family, budget, alpha, (1.0,) * 20, **options)

    with (
        patch("dpregress.trust.session.noise_sampler", return_value=Silent()),
        patch("dpregress.estimators.glm.ScoreSteps", more_steps),
    ):
        return kind(HUGE, formula=formula, public=public, schema=SCHEMA, **more).fit_table(frame)


@pytest.mark.parametrize("kind", [DPPoissonRegressor, DPLogisticRegression])
def test_limit_is_statsmodels(kind: Any, seed: int, tmp_path: Path) -> None:
    """Also predictions, of the saved model too. Deterministic."""
    try:
        import statsmodels.api as sm
    except ImportError:
        missing("statsmodels")
    family = "poisson" if kind is DPPoissonRegressor else "binomial"
    rng = np.random.default_rng(seed)
    frame, public = table(family, rng), table(family, rng, 400).drop(columns="y")
    model = fitted(kind, frame, "y ~ a + b + offset(0.8 * z)", public)
    offset = 0.8 * frame["z"].to_numpy()
    design = sm.add_constant(frame[["a", "b"]].to_numpy())
    glm = sm.GLM(frame["y"].to_numpy(), design, family=statsmodels_family(family_of(family)), offset=offset)
    right = glm.fit(tol=1e-14, maxiter=100)
    np.testing.assert_allclose(model.coef_, right.params[1:], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.params, right.params, rtol=1e-6, atol=1e-6)
    mean = model.predict_proba(frame)[:, 1] if family == "binomial" else model.predict(frame)
    np.testing.assert_allclose(mean, right.fittedvalues, rtol=1e-5)
    model.save(tmp_path / "m")
    back = dpregress.load(tmp_path / "m")
    again = back.predict_proba(frame)[:, 1] if family == "binomial" else back.predict(frame)
    np.testing.assert_allclose(again, mean)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    np.testing.assert_allclose(back.predict_file(tmp_path / "rows.csv").column(0).to_numpy(), mean, rtol=1e-9)
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        assert back.diagnose(frame, privacy=HUGE).explained.value > 0.1


def test_it_is_the_logarithm_of_an_exposure(seed: int) -> None:
    """``offset(log(e))`` gives the rates that ``exposure="e"`` gives. Deterministic."""
    rng = np.random.default_rng(seed)
    frame = table("poisson", rng).assign(e=rng.uniform(0.5, 2, 3_000))
    public = frame[:300].drop(columns="y")
    one = fitted(DPPoissonRegressor, frame, "y ~ a + b + offset(log(e))", public)
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        model = DPPoissonRegressor(GDP(1.0), formula="y ~ a + b", public=public, schema=SCHEMA)
        other = model.fit_table(frame, exposure="e")
        same = DPPoissonRegressor(GDP(1.0), formula="y ~ a + b + offset(log(e))", public=public, schema=SCHEMA)
        np.testing.assert_allclose(same.fit_table(frame).coef_, other.coef_, rtol=1e-9)
    assert one.exposure_ == "offset(log(e))"


def test_refusals(seed: int) -> None:
    frame = table("poisson", np.random.default_rng(seed), 500)
    ledger, public = MemoryLedger(GDP(1.0)), frame[:100].drop(columns="y")
    for kind, formula, words in (
        (DPLinearRegression, "y ~ a + offset(z)", "subtract"),
        (DPPoissonRegressor, "y ~ a + offset(z) + offset(b)", "one offset"),
        (DPPoissonRegressor, "y ~ offset(z)", "nothing to regress on"),
        (DPPoissonRegressor, "y ~ a + offset(y)", "right side"),
        (DPGLMRegressor, "y ~ a:offset(z)", "one offset"),
    ):
        with pytest.raises(InvalidInput, match=words):
            kind(GDP(1.0), formula=formula, public=public, schema=SCHEMA, ledger=ledger).fit_table(frame)
    with pytest.raises(InvalidInput, match="exposure"):
        DPPoissonRegressor(GDP(1.0), formula="y ~ a + offset(z)", public=public, ledger=ledger).fit_table(
            frame.assign(e=1.0), exposure="e"
        )
    assert not ledger.charges
