"""``exposure`` of fits and predictions."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import r2_score

import dpregress
from dpregress import (
    GDP,
    Categorical,
    DPGammaRegressor,
    DPGLMRegressor,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.errors import InvalidInput

SCHEMA = Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1), "years": Numeric(0, 10)})
pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")


def table(n: int = 2_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, n))
    years = rng.exponential(2.0, n).clip(0, 9)
    return pd.DataFrame({"a": a, "years": years, "b": b, "y": rng.poisson(years * np.exp(0.5 * a - 0.5 * b)) * 1.0})


def model(**parameters: Any) -> DPPoissonRegressor:
    return DPPoissonRegressor(GDP(20.0), **{"schema": SCHEMA, "random_state": 0, **parameters})


def test_tables_arrays_and_formulas_agree() -> None:
    whole = table()
    x, y = whole[["a", "b"]], whole["y"]
    first = model().fit_table(whole, "y", exposure="years")
    assert first.coefficients_.features == ("a", "b")
    assert first.exposure_ == first.response_model.exposure == "years"
    others = [
        model().fit(x, y, exposure=whole["years"]),
        model().fit(x, y, exposure=whole["years"].to_numpy()),
        model().fit(x, y, exposure=whole["years"].astype(object).tolist()),
        model(formula="y ~ a + b").fit_table(whole, exposure="years"),
        model(formula="y ~ a + b").fit(whole, exposure=whole["years"]),
        model(formula="y ~ a + b").fit(x, y, exposure=whole["years"]),
    ]
    for fitted in others:
        np.testing.assert_allclose(fitted.coef_, first.coef_, rtol=1e-9)
    np.testing.assert_allclose(first.coef_, [0.5, -0.5], atol=0.25)


@pytest.mark.parametrize("setting", ["schema", "labelled"])
@pytest.mark.parametrize("cell", [0.0, -1.0, -1e300, math.nan, math.inf, -math.inf, "abc", None, ""])
def test_a_row_without_a_usable_exposure_is_a_row_without_a_response(cell: Any, setting: str) -> None:
    """To the last bit, and without a word: warnings are errors here."""
    whole = table()
    more: dict[str, Any] = {}
    if setting == "labelled":
        head = whole[:100]
        exposure = head["years"].clip(0.01)
        more = {"public": PublicMoments.from_rows(head[["a", "b"]], head["y"], exposure=exposure), "schema": None}
    strange, lost = whole.astype({"years": object}), whole.copy()
    strange.loc[3:50, "years"] = cell
    lost.loc[3:50, "y"] = math.nan
    fits = [model(**more).fit_table(rows, "y", exposure="years") for rows in (strange, lost)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].intercept_ == fits[1].intercept_


@pytest.mark.parametrize("huge", [1e300, 1e-300, 5e-324])
def test_exposures_beyond_the_bounds_are_clipped(huge: float) -> None:
    whole = table()
    bounded, beyond = whole.copy(), whole.copy()
    bounded["years"] = bounded["years"].clip(0.5, 10)
    schema = Schema({**SCHEMA.columns, "years": Numeric(0.5, 10)})
    bounded.loc[7, "years"] = 10.0 if huge > 1 else 0.5
    beyond.loc[7, "years"] = huge
    fits = [model(schema=schema).fit_table(rows, "y", exposure="years") for rows in (bounded, beyond)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    without = model(schema=None, row_bound=3.0).fit_table(beyond, "y", exposure="years")
    assert np.isfinite(without.coef_).all()


def test_predictions_are_proportional_to_exposures() -> None:
    whole = table()
    fitted = model().fit_table(whole, "y", exposure="years")
    x = whole[["a", "b"]]
    rates = fitted.predict(x)
    np.testing.assert_allclose(rates, np.exp(x.to_numpy() @ fitted.coef_ + fitted.intercept_))
    for exposure in (whole["years"], whole["years"].tolist(), whole["years"].to_numpy()):
        np.testing.assert_allclose(fitted.predict(x, exposure=exposure), rates * whole["years"])
    odd = fitted.predict(x[:4], exposure=[0.0, -1.0, math.nan, 2.0])
    assert np.isnan(odd[:3]).all()
    assert odd[3] == pytest.approx(2 * rates[3])
    with pytest.raises(InvalidInput, match="no column 'years'"):
        fitted.predict(x, exposure="years")
    with pytest.raises(InvalidInput, match="exposure has 3"):
        fitted.predict(x, exposure=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="fitted without an exposure"):
        model().fit(x, whole["y"]).predict(x, exposure=whole["years"])


def test_predictions_read_the_column_of_the_fit(tmp_path: Path) -> None:
    whole = table()
    fitted = model().fit_table(whole, "y", exposure="years")
    fitted.save(tmp_path / "rates")
    whole.to_csv(tmp_path / "rows.csv", index=False)
    other = whole.rename(columns={"years": "time"})
    saved = dpregress.load(tmp_path / "rates")
    expected = fitted.predict(whole[["a", "b"]]) * np.where(whole.years > 0, whole.years, np.nan)
    arrow, some = pa.table(dict(whole)), whole[["b", "years", "a"]]
    rows = [(whole, None), (whole, "years"), (some, None), (other, "time"), (arrow, None)]
    for found in [
        *(each.predict(given, exposure=name) for each in (fitted, saved) for given, name in rows),
        *(saved.predict(tmp_path / "rows.csv", exposure=name) for name in (None, "years")),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(saved.predict_file(tmp_path / "rows.csv")["y"], expected, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict(other), fitted.predict(whole[["a", "b"]]))
    mean = fitted.predict(whole, interval="mean").mean
    np.testing.assert_allclose(mean, fitted.predict(whole[["a", "b"]], exposure=whole.years, interval="mean").mean)
    with pytest.raises(InvalidInput, match="no column 'time' in the rows to predict for"):
        fitted.predict(whole, exposure="time")


def test_units_and_exposures_go_together() -> None:
    whole = table().assign(who=np.arange(2_000) // 2)
    bounded = model().fit_table(whole, "y", exposure="years", unit="who", max_rows_per_unit=2)
    assert bounded.coefficients_.features == ("a", "b")
    again = model().fit(whole[["a", "b"]], whole["y"], exposure=whole["years"], unit=whole["who"], max_rows_per_unit=2)
    np.testing.assert_allclose(again.coef_, bounded.coef_, rtol=1e-9)


def test_the_statement_says_what_was_public() -> None:
    whole = table()
    head = whole[:100].assign(years=lambda rows: rows["years"].clip(0.01))
    public = PublicMoments.from_rows(head[["a", "b"]], head["y"], exposure=head["years"])
    fitted = model(public=public, schema=None).fit_table(whole, "y", exposure="years")
    assert "the moments of 100 public rows with their responses and exposures" in fitted.privacy_.assumed_public


LABELLED = PublicMoments.from_rows(table(100)[["a", "b"]], table(100)["y"])
EXPOSED = PublicMoments.from_rows(table(100)[["a", "b"]], table(100)["y"], exposure=table(100)["years"])


@pytest.mark.parametrize(
    ("make", "arguments", "said"),
    [
        (model, {"exposure": "age"}, "no column 'age'"),
        (model, {"exposure": "y"}, "is the target"),
        (model, {"exposure": "a", "features": ["a", "b"]}, "among the features"),
        (model, {"exposure": [1.0]}, "the name of the column of the exposures, not a list"),
        (model, {"exposure": "years", "unit": "years", "max_rows_per_unit": 1}, "is the unit"),
        (lambda **more: model(public=LABELLED, **more), {"exposure": "years"}, "need exposures too"),
        (lambda **more: model(public=EXPOSED, **more), {"features": ["a", "b"]}, "the private rows none"),
        (
            lambda **more: model(**{**more, "schema": Schema({**SCHEMA.columns, "years": Categorical(("1", "2"))})}),
            {"exposure": "years"},
            "is categorical",
        ),
        (
            lambda **more: model(**{**more, "schema": Schema({**SCHEMA.columns, "years": Numeric(-9, 0)})}),
            {"exposure": "years"},
            "must include a number between",
        ),
        (
            lambda **more: DPGLMRegressor(GDP(1.0), link="identity", schema=SCHEMA, **more),
            {"exposure": "years"},
            "link is identity",
        ),
        (lambda **more: DPRidge(GDP(1.0), schema=SCHEMA, **more), {"exposure": "years"}, "link is identity"),
        (lambda **more: DPLogisticRegression(GDP(1.0), schema=SCHEMA, **more), {"exposure": "years"}, "link is logit"),
    ],
)
def test_refusals_charge_nothing(make: Any, arguments: dict[str, Any], said: str) -> None:
    ledger = MemoryLedger(GDP(30.0))
    with pytest.raises(InvalidInput, match=said):
        make(ledger=ledger).fit_table(table(100), "y", **arguments)
    assert not ledger.charges


def test_arrays_are_refused_too() -> None:
    whole = table(100)
    x, y = whole[["a", "b"]], whole["y"]
    for exposure, said in (("years", "fit_table the name"), (whole["years"][:-1], "exposure has 99"), (x, "1d array")):
        with pytest.raises(InvalidInput, match=said):
            model().fit(x, y, exposure=exposure)
    for exposure, said in ((whole["years"] - 5, "must be positive"), (whole["years"][1:], "100 exposures, not 99")):
        with pytest.raises(InvalidInput, match=said):
            PublicMoments.from_rows(x, y, exposure=exposure)


def test_other_log_links_take_exposures() -> None:
    whole = table().assign(y=lambda rows: rows["years"] * np.exp(0.5 * rows["a"]))
    for estimator in (
        DPGammaRegressor(GDP(20.0), schema=SCHEMA),
        DPGLMRegressor(GDP(20.0), family="gaussian", link="log", schema=SCHEMA),
    ):
        assert np.isfinite(estimator.fit_table(whole, "y", exposure="years").coef_).all()


@pytest.mark.parametrize("kind", ["str", "category", "string", "large_string[pyarrow]"])
def test_text_exposures_are_refused_before_the_charge(kind: str) -> None:
    """No row would count; a schema that declares a number is believed."""
    declared = Schema({"a": Numeric(-1, 1)})
    table = pd.DataFrame({"a": np.linspace(-1, 1, 400), "claims": np.ones(400)})
    table["years"] = pd.Series(["1.5"] * 400).astype(pd.ArrowDtype(pa.large_string()) if "[" in kind else kind)
    ledger = MemoryLedger(GDP(8.0))
    model = DPPoissonRegressor(GDP(4.0), schema=declared, ledger=ledger, random_state=1)
    formula = DPPoissonRegressor(GDP(4.0), schema=declared, ledger=ledger, formula="claims ~ a", random_state=1)
    for fit in (
        lambda: model.fit(table[["a"]], table["claims"], exposure=table["years"]),
        lambda: model.fit_table(table, "claims", ["a"], exposure="years"),
        lambda: formula.fit(table, exposure=table["years"]),
        lambda: formula.fit_table(table, exposure="years"),
    ):
        with pytest.raises(InvalidInput, match=r"exposure 'years' is text"):
            fit()
    assert not ledger.charges
    model.set_params(schema=SCHEMA).fit_table(table, "claims", ["a"], exposure="years")


def both(fitted: Any, folder: Path) -> tuple[Any, Any]:
    """The model, and the one that its files hold."""
    fitted.save(folder)
    return fitted, dpregress.load(folder)


CONTAINERS: list[Callable[[pd.DataFrame], Any]] = [
    lambda rows: rows,
    lambda rows: rows.astype({"years": "category"}),
    lambda rows: pa.table(dict(rows)),
    lambda rows: pa.table(dict(rows)).to_reader(),
]


@pytest.mark.parametrize("formula", [None, "y ~ a + b"])
def test_text_that_the_fit_accepts_is_read_in_predictions(tmp_path: Path, formula: str | None) -> None:
    whole = table()
    text = whole.assign(years=whole["years"].astype(str))
    fitted = model(formula=formula).fit_table(text, None if formula else "y", exposure="years")
    rates, rows = fitted.predict(whole[["a", "b"]])[:3], text[:3].assign(years=["2.5", "abc", "0.5"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    models = both(fitted, tmp_path / "rates")
    found = [each.predict(make(rows)) for each in models for make in CONTAINERS]
    named = [each.predict(rows, exposure="years") for each in models]
    for means in (*found, *named, models[1].predict(tmp_path / "rows.csv")):
        np.testing.assert_allclose(means, rates * [2.5, math.nan, 0.5], rtol=1e-9)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("formula", [None, "y ~ a + b", "y ~ a + b + offset(log(years))"])
def test_streams_are_read_once(tmp_path: Path, formula: str | None, rows: int) -> None:
    """A second reading would find no rows: an error for three of them, and none for one."""
    whole = table().assign(years=lambda rows: rows["years"].clip(0.01))
    how: dict[str, Any] = {} if formula and "offset" in formula else {"exposure": "years"}
    fitted = model(formula=formula).fit_table(whole, None if formula else "y", **how)
    some = pa.table(dict(whole[:rows]))
    for each in both(fitted, tmp_path / "rates"):
        np.testing.assert_array_equal(each.predict(some.to_reader()), each.predict(some))
        ends = [each.predict(given, interval="mean").upper for given in (some.to_reader(), some)]
        np.testing.assert_array_equal(*ends)
    if rows > 1:
        assert fitted.score(some.to_reader(), whole["y"][:rows]) == fitted.score(some, whole["y"][:rows])


def test_streams_of_classes_with_an_offset_are_read_once(tmp_path: Path) -> None:
    whole = table().assign(y=lambda rows: (rows["a"] > 0) * 1)
    fitted = DPLogisticRegression(GDP(20.0), schema=SCHEMA, formula="y ~ a + offset(b)", random_state=0)
    some = pa.table(dict(whole[:3]))
    for each in both(fitted.fit_table(whole), tmp_path / "classes"):
        np.testing.assert_array_equal(each.predict_proba(some.to_reader()), each.predict_proba(some))
        ends = [each.predict(given, interval="mean").upper for given in (some.to_reader(), some)]
        np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("formula", [None, "y ~ a + log1p(exposure)"])
def test_a_column_that_the_model_reads_is_no_exposure_by_default(tmp_path: Path, formula: str | None) -> None:
    """Exposures of an array are called ``exposure``, as the column is."""
    whole = table().rename(columns={"years": "exposure"})
    X, schema = whole[["a", "exposure"]], Schema({"a": Numeric(-1, 1), "exposure": Numeric(0, 10)})
    fitted = model(schema=schema, formula=formula).fit(X, whole["y"], exposure=np.ones(len(X)))
    assert fitted.exposure_ == "exposure"
    X.to_csv(tmp_path / "rows.csv", index=False)
    rates = fitted.predict(X, exposure=np.ones(len(X)))
    models = both(fitted, tmp_path / "rates")
    files = models[1].predict(tmp_path / "rows.csv"), models[1].predict_file(tmp_path / "rows.csv")["y"]
    for found in (*(each.predict(X) for each in models), *files):
        np.testing.assert_allclose(found, rates, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict(X, exposure="exposure"), rates * X["exposure"].where(X["exposure"] > 0))


def test_dates_are_no_exposures(tmp_path: Path) -> None:
    rows = pa.table({"a": [0.1], "b": [0.2], "years": [datetime.date(2020, 1, 1)]})
    said = "exposure 'years' is of type date32.*: exposures are positive numbers, choose another column or cast it"
    for each in both(model().fit_table(table(), "y", exposure="years"), tmp_path / "rates"):
        for name in (None, "years"):
            with pytest.raises(InvalidInput, match=said):
                each.predict(rows, exposure=name)


def test_scores_need_exposures() -> None:
    """They are a column of the rows or given; scores of rates as if they were counts tell nothing."""
    whole = table()
    fitted = model().fit_table(whole, exposure="years")
    own = r2_score(whole["y"], fitted.predict(whole[["a", "b"]], exposure=whole["years"]))
    assert fitted.score(whole[["a", "b"]], whole["y"], exposure=whole["years"]) == own
    assert fitted.score(whole[["a", "b", "years"]], whole["y"]) == own
    with pytest.raises(InvalidInput, match="give exposure=, 'years' of each row"):
        fitted.score(whole[["a", "b"]], whole["y"])
