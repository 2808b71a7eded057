"""Predictions stay near those of rows that the fit knew, and within the declared bounds of the response."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpregress
from dpregress import (
    GDP,
    DPGammaRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.errors import InvalidInput
from dpregress.releases import Coefficients

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")

WIDE = Schema({"x0": Numeric(-60, 60), "x1": Numeric(-60, 60)})
SCHEMA = Schema({"a": Numeric(0, 60), "b": Numeric(-5, 5), "y": Numeric(0.01, 200)})


def rows(rng: np.random.Generator, n: int) -> pa.Table:
    """A skewed column and amounts."""
    a = np.minimum(np.exp(rng.normal(size=n)), 60)
    b = np.clip(rng.normal(size=n), -5, 5)
    y = np.clip(np.exp(1 - 0.1 * np.minimum(a, 5) + 0.2 * b) * rng.gamma(2, 0.5, n), 0.01, 200)
    return pa.table({"a": a, "b": b, "y": y})


def fitted(model: Any = DPGammaRegressor, public: bool = True, **more: Any) -> Any:
    """A fit with 300 unlabelled public rows, or by the schema alone."""
    rng = np.random.default_rng(0)
    shown = rows(rng, 300).select(["a", "b"]) if public else None
    return model(GDP(0.5), public=shown, schema=SCHEMA, random_state=1, **more).fit_table(
        rows(rng, 8_000), "y", ["a", "b"]
    )


FAR = pa.table({"a": [1e6, -1e6, 1.0], "b": [0.0, 0.0, 0.0]})


@pytest.mark.parametrize("model", [DPGammaRegressor, DPPoissonRegressor])
def test_far_rows_are_predicted_within_reach(model: Any) -> None:
    fit = fitted(model)
    low, high = fit.coefficients_.reach
    assert -math.inf < low < high < math.inf
    found = fit.predict(FAR)
    assert (found >= math.exp(low)).all()
    assert (found <= math.exp(high)).all()
    assert math.exp(low) < found[2] < math.exp(high)
    assert math.exp(low) >= 0.01 * (1 - 1e-12)  # the least response of the schema
    assert math.exp(high) <= 200 * (1 + 1e-12)


@pytest.mark.parametrize("public", [True, False])
def test_far_rows_are_not_classified_with_certainty(public: bool) -> None:
    """Where public rows, or likely rows by the schema, do not reach; the scores of all others are as they were."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4_000, 2))
    y = (rng.random(4_000) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(int)
    known = {"public": PublicMoments.from_rows(x[:300])} if public else {"schema": WIDE}
    fit = DPLogisticRegression(GDP(1.0), classes=(0, 1), random_state=1, **known).fit(x[300:], y[300:])
    low, high = fit.coefficients_.reach
    assert -12 < low < 0 < high < 12
    found = fit.decision_function(np.array([[50.0, 0.0], [-50.0, 0.0], [1.0, 0.0]]))
    assert found[0] == high
    assert found[1] == low
    near = fit.decision_function(x[300:])
    np.testing.assert_allclose(np.clip(x[300:] @ fit.coef_ + fit.intercept_, low, high), near)
    assert np.mean(near == x[300:] @ fit.coef_ + fit.intercept_) > 0.99


@pytest.mark.parametrize("known", ["row bound", "no intercept", "some bounds"])
def test_normal_rows_limit_nothing(known: str) -> None:
    """They have no rare levels: rows with one of them were predicted as if it had hardly any effect."""
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.random(8_000) < 0.02, rng.random(8_000) < 0.5]).astype(float)
    y = (rng.random(8_000) < 1 / (1 + np.exp(2 - 4 * x[:, 0]))).astype(int)
    more: dict[str, Any] = {
        "row bound": {"row_bound": 1.5},
        "no intercept": {"schema": Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1)}), "fit_intercept": False},
        "some bounds": {"schema": Schema({"x0": Numeric(0, 1)}), "row_bound": 1.5},
    }
    fit = DPLogisticRegression(GDP(2.0), classes=(0, 1), random_state=1, **more[known]).fit(x, y)
    assert fit.coefficients_.reach == (-math.inf, math.inf)


def test_rare_levels_are_within_the_reach_of_likely_rows() -> None:
    """Likely rows have none of a level that one row in 5,000 has; its effect is predicted in full where it is known."""
    rng = np.random.default_rng(4)
    a, b = rng.random(400_000) < 0.0002, rng.random(400_000) < 0.5
    x = np.column_stack([a, b]).astype(float)
    y = (rng.random(400_000) < 1 / (1 + np.exp(4 - 4 * a - 0.5 * b))).astype(int)
    schema = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1)})
    fit = DPLogisticRegression(GDP(5.0), schema=schema, classes=(0, 1), random_state=1).fit(x, y)
    own = fit.coef_[0] + fit.intercept_
    assert own > -1.5
    assert fit.decision_function(np.array([[1.0, 0.0]]))[0] > own - 0.3


def test_by_a_schema_the_response_bounds_them() -> None:
    low, high = fitted(public=False).coefficients_.reach
    assert (low, high) == pytest.approx((math.log(0.01), math.log(200)))


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("model", [DPLinearRegression, DPRidge, partial(DPLinearRegression, recipe="one-shot")])
def test_linear_predictions_are_within_the_bounds_of_the_response(model: Any, public: bool) -> None:
    fit = fitted(model, public=public)
    assert fit.coefficients_.reach == (0.01, 200)
    far = fit.predict(FAR)
    assert ((far >= 0.01) & (far <= 200)).all()
    assert {0.01, 200.0} & set(far.tolist())


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("model", [DPLinearRegression, DPRidge, partial(DPLinearRegression, recipe="one-shot")])
def test_intervals_of_linear_models_are_within_the_same_bounds(model: Any, public: bool, tmp_path: Path) -> None:
    fit = fitted(model, public=public)
    fit.save(tmp_path)
    for kind in ("mean", "prediction"):
        found = fit.predict(FAR, interval=kind)
        for values in (found.mean, found.lower, found.upper):
            assert ((values >= 0.01) & (values <= 200)).all()
        assert (found.lower <= found.mean).all()
        assert (found.mean <= found.upper).all()
        assert found.lower[2] < found.upper[2]
        loaded = dpregress.load(tmp_path).predict(FAR, interval=kind)
        np.testing.assert_allclose(loaded.upper, found.upper, rtol=1e-12)


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("model", [DPGammaRegressor, DPPoissonRegressor])
def test_intervals_under_a_log_link_are_within_the_bounds_and_not_the_reach(
    model: Any, public: bool, tmp_path: Path
) -> None:
    """What public rows have is no limit of a mean: an interval must not end there."""
    fit = fitted(model, public=public)
    assert fit.coefficients_.limits == pytest.approx((math.log(0.01), math.log(200)))
    fit.save(tmp_path)
    saved = dpregress.load(tmp_path)
    assert saved.coefficients_.limits == fit.coefficients_.limits
    found = fit.predict(FAR, interval="mean")
    for values in (found.mean, found.lower, found.upper):
        assert ((values >= 0.01 * (1 - 1e-12)) & (values <= 200 * (1 + 1e-12))).all()
    assert {round(end, 6) for end in (*found.lower, *found.upper)} & {0.01, 200.0}
    np.testing.assert_array_equal(saved.predict(FAR, interval="mean").lower, found.lower)


def test_intervals_with_exposures_have_no_bounds() -> None:
    """The bounds are those of responses, whatever their exposures."""
    rng = np.random.default_rng(0)
    table = rows(rng, 4_000).append_column("years", pa.array(np.full(4_000, 2.0)))
    fit = DPPoissonRegressor(GDP(0.5), schema=SCHEMA, random_state=1)
    fit.fit_table(table, "y", ["a", "b"], exposure="years")
    assert fit.coefficients_.limits == (-math.inf, math.inf)


def test_bounds_that_responses_contradict_are_no_limit() -> None:
    """Many private ones by their released sizes; public ones are refused, since one of the two has another unit."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(8_000, 2))
    y = 50 + 10 * x[:, 0] + rng.normal(size=8_000)
    schema = Schema({"x0": Numeric(-5, 5), "x1": Numeric(-5, 5), "y": Numeric(-5, 5)})
    fit = DPLinearRegression(GDP(2.0), schema=schema, random_state=1).fit(x[100:], y[100:])
    assert fit.coefficients_.reach == (-math.inf, math.inf)
    assert np.median(fit.predict(x)) > 20
    ledger = MemoryLedger(GDP(2.0))
    public = PublicMoments.from_rows(x[:100], y[:100])
    with pytest.raises(InvalidInput, match=r"far beyond their bounds in the schema .* bring both to the same unit"):
        DPLinearRegression(GDP(2.0), schema=schema, public=public, ledger=ledger).fit(x[100:], y[100:])
    assert not ledger.charges


def test_a_saved_model_has_the_same_reach(tmp_path: Path) -> None:
    fit = fitted()
    fit.save(tmp_path / "fit")
    loaded = dpregress.load(tmp_path / "fit")
    assert loaded.coefficients_.reach == fit.coefficients_.reach
    np.testing.assert_array_equal(loaded.predict(FAR), fit.predict(FAR))


@pytest.mark.parametrize(
    ("reach", "refused"),
    [
        (None, False),
        ([None, 3.0], False),
        ([3.0, 1.0], True),
        ([1.0], True),
        ("far", True),
        (["a", "b"], True),
        (7, True),
    ],
)
def test_reach_of_a_file(reach: Any, refused: bool, tmp_path: Path) -> None:
    """Files of earlier versions have none; what is no reach is refused."""
    fitted().save(tmp_path / "fit")
    path = next((tmp_path / "fit").glob("**/model.json"))
    record = json.loads(path.read_text())
    record["reach"] = reach
    path.write_text(json.dumps(record))
    if refused:
        with pytest.raises(InvalidInput):
            dpregress.load(tmp_path / "fit")
    else:
        assert dpregress.load(tmp_path / "fit").coefficients_.reach == (-math.inf, math.inf if reach is None else 3.0)


def test_the_order_of_features_does_not_matter() -> None:
    found: Coefficients = fitted().coefficients_
    assert found.in_order(("b", "a")).reach == found.reach
