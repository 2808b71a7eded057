"""Models with a formula: the fit of a statistics package without noise, scikit-learn's contract, nothing unpaid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from dpregress import (
    GDP,
    Categorical,
    DPGammaRegressor,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.coordinates import ResponseScale
from dpregress.errors import InvalidInput, UnboundedData
from dpregress.estimators.saved import SavedModel
from dpregress.public.whitening import start
from dpregress.queries import SecondMoment
from dpregress.releases.model_files import load_formula, model_text
from dpregress.rows import FormulaEncoder, PrivateRows, TableSource
from dpregress.rows.readers.files import to_table
from dpregress.solvers import solve_moments
from dpregress.trust import Central, Session, session
from tests.laws.spies import Silent, watched
from tests.support import write_csv

pytest.importorskip("formulaic")
smf = pytest.importorskip("statsmodels.formula.api")

SCHEMA = Schema(
    {
        "age": Numeric(18, 90),
        "dose": Numeric(0.1, 5),
        "plan": Categorical(("basic", "silver", "gold")),
        "cost": Numeric(0.5, 200),
        "sick": Categorical(("no", "yes")),
    }
)
FORMULAS = [
    "cost ~ age + C(plan) + age:plan",
    "cost ~ 0 + age + plan",
    "cost ~ log(dose)*plan + I(age**2)",
    "log(cost) ~ age + I((age - 50)**2 / 100) + sqrt(dose)",
    "cost ~ 0 + plan:age + dose",
]


def space(rng: np.random.Generator, n: int = 3000) -> pd.DataFrame:
    """Rows inside the schema's bounds."""
    levels = ["basic", "silver", "gold"]
    rows = pd.DataFrame({"age": rng.uniform(18, 90, n), "dose": rng.uniform(0.1, 5, n)})
    rows["plan"] = pd.Categorical(rng.choice(levels, n), categories=levels)
    mean = 0.5 * rows["age"] + 4 * np.log(rows["dose"]) + 8 * (rows["plan"] == "gold") + 12
    rows["cost"] = np.clip(mean + rng.normal(size=n), 0.5, 200)
    rows["sick"] = np.where(rng.logistic(size=n) < (rows["age"] - 50) / 10, "yes", "no")
    return rows


@pytest.mark.parametrize("text", FORMULAS)
def test_without_noise_and_bounds_it_is_least_squares(text: str, seed: int) -> None:
    """The design, whitened and unbounded, solved from one silent release: statsmodels' coefficients to 1e-7."""
    rows = space(np.random.default_rng(seed))
    encoder = FormulaEncoder.of(text, SCHEMA)
    table = to_table(rows)
    wide = start(
        encoder.features,
        intercept=encoder.intercept,
        public=PublicMoments.from_rows(encoder.x(table), names=encoder.features),
        schema=None,
        row_bound=None,
    ).space
    wide = wide.rewhitened(np.eye(wide.order), 1e6).with_response(ResponseScale("y", 0.0, 10.0, 1e6, 0.3))
    budget = GDP(1e30)
    reservation = MemoryLedger(budget).reserve(budget)
    ask = Session(Central(), PrivateRows(TableSource(table, encoder)), Silent(), reservation)
    coef, intercept = wide.pull_back(solve_moments(ask(SecondMoment(wide), budget), alpha=0.0)[0])
    known = smf.ols(text.replace("log", "np.log").replace("sqrt", "np.sqrt"), rows, eval_env=0).fit()
    expected = known.params.to_numpy()
    found = np.concatenate([[intercept], coef]) if encoder.intercept else coef
    np.testing.assert_allclose(
        np.asarray(known.model.exog) @ expected,
        (encoder.x(table) @ coef) + intercept,
        rtol=1e-7,
    )
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("public", [False, True], ids=["schema", "public rows"])
def test_a_silent_fit_finds_an_exact_model(text: str, public: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole estimator with its bounds: rows are weighted, which an exact linear response does not feel."""
    monkeypatch.setattr(session, "noise_sampler", lambda *_, **__: Silent())
    rows = space(np.random.default_rng(seed))
    encoder = FormulaEncoder.of(text, SCHEMA)
    x = encoder.x(to_table(rows))
    mean = x @ np.linspace(1, 2, x.shape[1]) / np.abs(x).max(axis=0).sum()
    rows["cost"] = np.exp(mean) if encoder.response.label.startswith("log") else mean + encoder.intercept
    schema = Schema({**SCHEMA.columns, "cost": Numeric(0.001, 30)})
    unlabelled = rows[:400].drop(columns="cost") if public else None
    model = DPLinearRegression.from_formula(text, privacy=GDP(1e9), schema=schema, public=unlabelled).fit_table(rows)
    response = encoder.y(to_table(rows))
    assert response is not None
    np.testing.assert_allclose(model.predict(rows), response, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "formula", "parameters"),
    [
        (DPLinearRegression, "cost ~ age + C(plan)", {}),
        (DPRidge, "cost ~ age*plan", {"alpha": 2.0}),
        (DPPoissonRegressor, "cost ~ age + plan", {}),
        (DPGammaRegressor, "cost ~ log(dose) + plan", {}),
        (DPGLMRegressor, "cost ~ age + plan", {"family": "gaussian"}),
        (DPLogisticRegression, "sick ~ age + plan", {"classes": ("no", "yes")}),
    ],
)
def test_every_estimator(kind: Any, formula: str, parameters: dict[str, Any], seed: int, tmp_path: Path) -> None:
    """From a frame, from X and y, from Polars and from a file; saved, loaded, and the same predictions."""
    rows = space(np.random.default_rng(seed))
    model = kind.from_formula(formula, privacy=GDP(2.0), schema=SCHEMA, public=rows[:300], **parameters)
    target = formula.split(" ~ ")[0]
    fitted = [
        clone(model).fit_table(rows),
        clone(model).fit(rows),
        clone(model).fit(rows.drop(columns=target), rows[target]),
        clone(model).fit_table(pl.DataFrame({name: rows[name].astype(rows[name].dtype).tolist() for name in rows})),
    ]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    fitted.append(clone(model).fit_table(tmp_path / "rows.csv"))
    for each in fitted:
        assert each.coefficients_.features == FormulaEncoder.of(formula, SCHEMA, model.target_classes).features
        assert each.predict(rows).shape == (len(rows),)
        assert list(each.feature_names_in_) == [name for name in ("age", "dose", "plan") if name in formula]
    text = model_text(
        fitted[0].coefficients_,
        fitted[0].privacy_,
        fitted[0].moments_,
        software="test",
        response=fitted[0].response_model,
        formula=fitted[0].written_formula,
    )
    (tmp_path / "model.json").write_text(text)
    saved = SavedModel.load(tmp_path / "model.json")
    predicted = saved.predict_file(tmp_path / "rows.csv")
    assert predicted.equals(saved.predict_file(tmp_path / "rows.csv", SCHEMA))
    found = predicted[target].to_pylist()
    if kind is DPLogisticRegression:
        assert found == fitted[0].predict(rows).tolist()
    else:
        np.testing.assert_allclose(found, fitted[0].predict(rows), rtol=1e-9)


def test_scikit_learn_sees_an_ordinary_estimator(seed: int) -> None:
    rows = space(np.random.default_rng(seed))
    model = DPLinearRegression.from_formula("cost ~ age + plan", privacy=GDP(2.0), schema=SCHEMA)
    assert model.get_params()["formula"] == "cost ~ age + plan"
    assert clone(model).formula == "cost ~ age + plan"
    assert DPLinearRegression(GDP(2.0), formula="cost ~ age + plan", schema=SCHEMA).fit_table(rows).design_ is not None
    assert cross_val_score(model, rows[["age", "plan"]], rows["cost"], cv=3).shape == (3,)
    with pytest.raises(TypeError, match="takes no epsilon="):
        DPLinearRegression.from_formula("cost ~ age", epsilon=1.0)
    assert DPLinearRegression.from_formula("cost ~ age", GDP(2.0), schema=SCHEMA).privacy == GDP(2.0)
    with pytest.raises(TypeError, match="the second positional argument is the budget: give the table to fit_table"):
        DPLinearRegression.from_formula("cost ~ age", rows)


def test_a_formula_in_the_place_of_the_response_and_misspelt_columns(tmp_path: Path, seed: int) -> None:
    rows = space(np.random.default_rng(seed))
    with pytest.raises(InvalidInput, match=r"'cost ~ age' is a formula: make the model by from_formula\('cost ~ age'"):
        DPLinearRegression(GDP(2.0), schema=SCHEMA).fit_table(rows, "cost ~ age")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    misspelt = DPLinearRegression.from_formula("cost ~ agee", GDP(2.0), schema=SCHEMA)
    for given in (rows, pa.Table.from_pandas(rows), tmp_path / "rows.csv"):
        with pytest.raises(InvalidInput, match=r"no column 'agee' .*: did you mean 'age'"):
            misspelt.fit_table(given)
    with pytest.raises(InvalidInput, match=r"no column 'agee' .*: did you mean 'age'"):
        misspelt.fit(rows[["age"]], rows["cost"])


def test_refitted_without_a_formula(seed: int) -> None:
    rows = space(np.random.default_rng(seed))
    model = DPLinearRegression.from_formula("cost ~ age + plan", privacy=GDP(2.0), schema=SCHEMA).fit_table(rows)
    model.set_params(formula=None).fit_table(rows, "cost", ["age"])
    assert model.written_formula is None
    assert model.predict(rows[["age"]]).shape == (len(rows),)


def test_the_intercept_is_the_formulas(seed: int) -> None:
    rows = space(np.random.default_rng(seed))
    for formula, has in (("cost ~ age", True), ("cost ~ 0 + age", False), ("cost ~ age - 1", False)):
        model = DPLinearRegression.from_formula(formula, privacy=GDP(2.0), schema=SCHEMA).fit_table(rows)
        assert (model.intercept_ != 0) == has
    public = space(np.random.default_rng(seed + 1), 300)
    paper = DPRidge.from_formula("cost ~ 0 + age", recipe="paper", privacy=GDP(2.0), schema=SCHEMA, public=public)
    assert paper.fit_table(rows).intercept_ == 0


def test_public_sides(seed: int, tmp_path: Path) -> None:
    """A frame, a file, moments of design columns; labels where the response is there; gaps are left out aloud."""
    rows = space(np.random.default_rng(seed))
    public = rows[:200]
    formula = "cost ~ log(dose) + plan"
    public.to_csv(tmp_path / "public.csv", index=False)
    x = FormulaEncoder.of(formula, SCHEMA).x(to_table(public))
    names = ("log(dose)", "plan=silver", "plan=gold")
    for given, labelled in (
        (public, True),
        (tmp_path / "public.csv", True),
        (public.drop(columns="cost"), False),
        (PublicMoments.from_rows(x, names=names), False),
    ):
        model = DPLinearRegression.from_formula(formula, privacy=GDP(2.0), schema=SCHEMA, public=given)
        assumed = " ".join(model.fit_table(rows).privacy_.assumed_public)
        assert "200 public rows" in assumed
        assert ("with their responses" in assumed) == labelled
    gaps = public.copy()
    gaps.loc[gaps.index[0], "dose"] = -1.0
    model = DPLinearRegression.from_formula(formula, privacy=GDP(2.0), schema=SCHEMA, public=gaps)
    with pytest.warns(UserWarning, match="1 public row"):
        assert "199 public rows" in " ".join(model.fit_table(rows).privacy_.assumed_public)


@pytest.mark.parametrize(
    ("formula", "parameters", "error", "words"),
    [
        ("cost ~ center(age)", {}, InvalidInput, "center() would read private data"),
        ("cost ~ C(age)", {}, InvalidInput, "levels of 'age' are not declared"),
        ("cost ~ height", {}, InvalidInput, "no column 'height'"),
        ("cost ~ age.shape", {}, InvalidInput, "no column 'age.shape'"),
        ("price ~ age", {}, InvalidInput, "no column 'price'"),
        ("cost ~ log(age - 18)", {}, UnboundedData, "no finite public bounds for 'log(age - 18)'"),
        ("cost ~ age", {"schema": None}, UnboundedData, "need a public bound"),
        ("cost ~ age", {"fit_intercept": False}, InvalidInput, "write 0 + in it"),
        ("sick ~ age", {}, InvalidInput, "is categorical"),
        ("cost ~ log(age)", {"public": PublicMoments.from_rows(np.eye(2))}, InvalidInput, "no column 'log(age)'"),
        ("cost ~ age", {"public": np.eye(2)}, InvalidInput, "not a ndarray"),
        ("cost ~ age", {"public": "nowhere.csv"}, InvalidInput, "no file nowhere.csv"),
        (7, {}, InvalidInput, "formula= takes text such as"),
    ],
)
def test_refusals_come_before_the_charge(
    formula: Any, parameters: dict[str, Any], error: type[Exception], words: str
) -> None:
    rows = space(np.random.default_rng(0), 100)
    ledger = MemoryLedger(GDP(5.0))
    given = {"privacy": GDP(2.0), "schema": SCHEMA, "ledger": ledger, **parameters}
    with watched() as steps, pytest.raises(error) as refused:
        DPLinearRegression.from_formula(formula, **given).fit_table(rows)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert steps == []


def test_rows_need_names_and_columns_no_second_name() -> None:
    rows = space(np.random.default_rng(0), 100)
    model = DPLinearRegression.from_formula("cost ~ age", privacy=GDP(2.0), schema=SCHEMA)
    with pytest.raises(InvalidInput, match="a formula names columns, and a ndarray has none"):
        model.fit(rows[["age"]].to_numpy(), rows["cost"])
    with pytest.raises(InvalidInput, match="leave target and features out"):
        model.fit_table(rows, "cost")
    with pytest.raises(InvalidInput, match="X has 100 rows, y has 99"):
        model.fit(rows[["age"]], rows["cost"][:99])
    with pytest.raises(InvalidInput, match="no column 'y' in the table"):
        DPLinearRegression(GDP(2.0), schema=SCHEMA).fit_table(rows)
    model.fit_table(rows)
    with pytest.raises(InvalidInput, match="no column 'age'"):
        model.predict(rows[["dose"]])


def test_private_cells_change_no_branch(seed: int) -> None:
    """Text, gaps and cells outside every domain, in every column: the same steps, no word about them."""
    rows = space(np.random.default_rng(seed), 200)
    strange = rows.astype(object)
    for place, name in enumerate(("age", "dose", "plan", "cost")):
        strange.loc[place, name] = "s3cret"
        strange.loc[place + 10, name] = None
        strange.loc[place + 20, name] = -1e300
    model = DPLinearRegression.from_formula("log(cost) ~ log(dose)*plan + exp(age)", privacy=GDP(2.0), row_bound=9.0)
    model.set_params(schema=SCHEMA)
    counted = []
    for table in (rows, strange):
        with watched() as steps:
            model.fit_table(table)
        counted.append(steps)
    assert counted[0] == counted[1]


def test_damaged_formulas_in_files(tmp_path: Path, seed: int) -> None:
    rows = space(np.random.default_rng(seed), 200)
    model = DPLinearRegression.from_formula("cost ~ plan", privacy=GDP(2.0), schema=SCHEMA).fit_table(rows)
    text = model_text(
        model.coefficients_, model.privacy_, model.moments_, software="test", formula=model.written_formula
    )
    path = tmp_path / "model.json"
    write_csv(tmp_path / "rows.csv", ("plan",), np.array([1.0]))
    for old, new, words in (
        ('"cost ~ plan"', '"cost ~ log(plan)"', "'plan' has levels"),
        ('"cost ~ plan"', '"cost ~ __import__(plan)"', "unknown function"),
        ('"silver",', '"bronze",', "differ from those of the model"),
        ('"levels": {', '"levels": [], "other": {', "is not a model file"),
    ):
        path.write_text(text.replace(old, new))
        with pytest.raises(InvalidInput, match=words):
            SavedModel.load(path).predict_file(tmp_path / "rows.csv")
    path.write_text(text.replace('"formula"', '"formerly"'))
    assert load_formula(path) is None
