"""What fitted models say: inference under statsmodels' names, summaries, notebooks, files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import dpregress
from dpregress import (
    GDP,
    ApproxDP,
    Categorical,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    LocalGLM,
    MarginalsRegression,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
    VerticalRegression,
)
from dpregress.errors import InvalidInput, OutputError
from dpregress.releases import Estimates

N, M = 1500, 300
RNG = np.random.default_rng(11)
PLANS = ("free", "full", "gold")
TABLE = pd.DataFrame(
    {"age": RNG.uniform(18, 80, N + M), "plan": RNG.choice(PLANS, N + M), "dose": RNG.uniform(0, 1, N + M)}
)
TABLE["cost"] = TABLE["age"] / 10 + 2 * (TABLE["plan"] == "full") + RNG.normal(size=N + M)
TABLE["visits"] = RNG.poisson(np.exp(TABLE["dose"]))
TABLE["ill"] = RNG.choice(["no", "yes"], N + M)
TABLE["kind"] = RNG.choice(["a", "b", "c"], N + M)
LEVELS = Schema({"plan": Categorical(PLANS), "age": Numeric(18, 80), "dose": Numeric(0, 1)})
PUBLIC, PRIVATE = TABLE[:M], TABLE[M:]
FEATURES = ("age", "plan", "dose")
NEW = TABLE[list(FEATURES)][:7]
FORMULA = "cost ~ C(plan) * dose + bs(age, knots=[40], degree=2, lower_bound=18, upper_bound=80)"


def fitted(kind: Any, target: str, **parameters: Any) -> Any:
    model = kind(GDP(1.0), schema=LEVELS, public=PUBLIC, **parameters)
    return model.fit_table(PRIVATE, target, list(FEATURES))


def with_estimates(model: Any, df: float = 40.0) -> Any:
    """The model with estimates made by hand: of the shape that a fit keeps, with a known covariance."""
    found = model.coefficients_
    names = [
        f"{label}: {name}" if label else name
        for label, _ in found.by_class()
        for name in ("(intercept)", *found.features)
    ]
    rng, k, d = np.random.default_rng(3), len(names), len(found.features)
    half = rng.normal(size=(k, 2 * k)) / 500
    estimate, known = rng.normal(size=k) / 50, np.ones(k, dtype=bool)
    noise = np.eye(k) / 1e5
    model.estimates_ = Estimates(
        tuple(names), estimate, half @ half.T, noise, known, np.zeros(k), df, "robust", 1.3, 30 * np.eye(d)
    )
    return model


LINEAR = partial(fitted, DPLinearRegression, "cost")
MODELS: dict[str, Callable[[], Any]] = {
    "linear": LINEAR,
    "formula": lambda: DPLinearRegression.from_formula(
        FORMULA, privacy=GDP(1.0), schema=LEVELS, public=PUBLIC
    ).fit_table(PRIVATE),
    "logistic": partial(fitted, DPLogisticRegression, "ill", classes=("no", "yes")),
    "multinomial": partial(fitted, DPLogisticRegression, "kind", classes=("a", "b", "c")),
    "poisson": partial(fitted, DPPoissonRegressor, "visits"),
    "identity": partial(fitted, DPGLMRegressor, "visits", family="poisson", link="identity"),
}


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {name: with_estimates(made()) for name, made in MODELS.items()}


# ------------------------------------------------------------------ inference


@pytest.mark.parametrize("name", MODELS)
def test_names_and_shapes_are_those_of_statsmodels(models: dict[str, Any], name: str) -> None:
    model = models[name]
    k = len(model.param_names)
    for values in (model.params, model.bse, model.bse_sampling, model.bse_privacy, model.tvalues, model.pvalues):
        assert values.shape == (k,)
    np.testing.assert_allclose(model.bse**2, model.bse_sampling**2 + model.bse_privacy**2, rtol=1e-12)
    np.testing.assert_allclose(model.bse**2, np.diag(model.cov_params()), rtol=1e-12)
    assert model.conf_int().shape == (k, 2)
    np.testing.assert_array_equal(model.conf_int(level=0.9), model.conf_int(alpha=0.1))
    assert (model.estimates_.cov_type, model.scale) == ("robust", 1.3)
    np.testing.assert_allclose(model.t_test(np.eye(k)).pvalue, model.pvalues)
    np.testing.assert_array_equal(model.conf_int(0.1), model.conf_int(alpha=0.1))  # by position as in statsmodels


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (((0.9,), {}), r"without a name is alpha, as in statsmodels: write level=0\.9 or alpha=0\.9"),
        (((0.5,), {}), "write level"),
        (((np.array(0.9),), {}), "write level"),
        ((("0.95",), {}), "write level"),
        (((0.1,), {"alpha": 0.1}), "not both"),
        (((0.1,), {"level": 0.9}), "not both"),
        (((), {"alpha": 0.1, "level": 0.9}), "not both"),
        (((95,), {}), "alpha= takes a number between 0 and 1, not 95"),
        ((("a",), {}), "alpha= takes a number between 0 and 1"),
    ],
)
def test_a_level_by_position_is_not_taken_for_alpha(models: dict[str, Any], given: Any, words: str) -> None:
    values, named = given
    for ask in (models["linear"].conf_int, models["linear"].t_test("age = 0").conf_int):
        with pytest.raises(InvalidInput, match=words) as caught:
            ask(*values, **named)
        assert "\n" not in str(caught.value)
    assert models["linear"].conf_int(alpha=0.5).shape == (5, 2)


def test_terms_hold_the_columns_that_belong_together(models: dict[str, Any]) -> None:
    tests = {name: models[name].wald_test_terms() for name in ("linear", "multinomial", "formula")}
    assert dict(zip(tests["linear"].terms, [each.df_num for each in tests["linear"].tests], strict=True)) == {
        "age": 1,
        "plan": 2,
        "dose": 1,
    }
    assert [each.df_num for each in tests["multinomial"].tests] == [3, 6, 3]
    written = {
        term.split("(")[0]: test.df_num
        for term, test in zip(tests["formula"].terms, tests["formula"].tests, strict=True)
    }
    assert written == {"plan": 2, "dose": 1, "bs": 3, "plan:dose": 2}
    linear = models["linear"]
    assert linear.wald_test("`plan=full` = 0, `plan=gold` = 0") == tests["linear"].tests[1]
    assert linear.compare("plan").test == tests["linear"].tests[1]
    assert linear.compare(["plan", "dose"]).dropped == ("plan=full", "plan=gold", "dose")


def test_a_level_with_an_equals_sign_belongs_to_its_column() -> None:
    schema = Schema({"a=b": Categorical(("x", "y=z", "w")), "u": Numeric(0, 1)})
    rows = pd.DataFrame({"a=b": ["x", "y=z", "w"] * 400, "u": RNG.uniform(size=1200), "y": RNG.normal(size=1200)})
    model = DPLinearRegression(GDP(1.0), schema=schema, public=rows[:300]).fit_table(rows[300:], "y")
    assert with_estimates(model).wald_test_terms().terms == ("a=b", "u")


def test_ratios_are_of_slopes_under_log_and_logit(models: dict[str, Any]) -> None:
    for name in ("logistic", "poisson"):
        model = models[name]
        expected = np.exp(np.column_stack([model.params, model.conf_int(level=0.9)])[1:])
        np.testing.assert_allclose(model.ratios(level=0.9), expected)
    for name, words in (("linear", "link of this model is identity"), ("multinomial", "no base class")):
        with pytest.raises(InvalidInput, match=words):
            models[name].ratios()


def test_ratios_of_classes_are_against_a_base(models: dict[str, Any]) -> None:
    """As with statsmodels' MNLogit: differences of two classes' coefficients, with the errors that t_test has."""
    model = models["multinomial"]
    table = model.ratio_table(base="b")
    frame = table.to_frame()
    features = model.coefficients_.features
    assert tuple(frame.index) == tuple(f"{name}: {one}" for name in ("a", "c") for one in features)
    assert frame.columns[0] == "odds against b"
    for name in ("a", "c"):
        test = model.t_test(f"`{name}: dose` - `b: dose` = 0")
        expected = np.exp([test.effect[0], *test.conf_int()[0]])
        np.testing.assert_allclose(frame.loc[f"{name}: dose"], expected)
    np.testing.assert_allclose(
        1 / model.ratios(base="a")[: len(features), 0], model.ratios(base="b")[: len(features), 0]
    )
    for base in ("d", None, 1):
        with pytest.raises(InvalidInput, match="one of a, b, c"):
            model.ratios(base=base)
    with pytest.raises(InvalidInput, match="leave it out"):
        models["logistic"].ratios(base="no")


def test_ratios_have_names_in_their_table(models: dict[str, Any]) -> None:
    for name, ratio in (("logistic", "odds ratio"), ("poisson", "rate ratio")):
        model = models[name]
        table = model.ratio_table(alpha=0.1)
        frame = table.to_frame()
        assert frame.columns.tolist() == [ratio, "[0.05", "0.95]"]
        assert tuple(frame.index) == model.coefficients_.features
        np.testing.assert_array_equal(frame, model.ratios(level=0.9))
        assert str(table).splitlines()[0].split() == [*ratio.split(), "[0.05", "0.95]"]
        assert repr(table) == str(table)
        assert "<td>dose</td>" in table._repr_html_()
    unknown = with_estimates(MODELS["poisson"]())
    unknown.estimates_.identified[1] = False
    assert str(unknown.ratio_table()).splitlines()[1].split()[2:] == ["not", "identified"]
    assert unknown.ratio_table().to_latex().startswith(r"\begin{tabular}{lrrr}")
    assert unknown.summary().as_text() == str(unknown.summary())
    assert unknown.summary().as_latex() == unknown.summary().to_latex()
    assert unknown.summary().as_html() == unknown.summary().to_html()
    facts, coefficients = unknown.summary().tables
    assert str(facts).startswith("Response:")
    assert facts.to_frame().loc["Model", ""] == "DPPoissonRegressor"
    assert facts.to_latex().startswith(r"\begin{tabular}{ll}")
    assert coefficients.as_html() in unknown.summary().as_html()
    assert facts.as_html() in unknown.summary().as_html()
    with pytest.raises(InvalidInput, match="link of this model is identity"):
        models["linear"].ratio_table()


def test_predictions_take_an_interval(models: dict[str, Any]) -> None:
    linear, logistic, poisson = (models[name] for name in ("linear", "logistic", "poisson"))
    found = linear.predict(NEW, interval="prediction", level=0.9)
    assert (found.lower < found.mean).all()
    assert ((found.upper - found.lower) > 2 * np.sqrt(1.3)).all()
    assert linear.predict(NEW).shape == (7,)
    chances = logistic.predict(NEW, interval="mean").to_frame()
    assert ((chances > 0) & (chances < 1)).all(axis=None)
    assert (poisson.predict(NEW, interval="mean").lower > 0).all()
    for name, kind, words in (
        ("poisson", "prediction", "models their mean only"),
        ("multinomial", "prediction", "models their mean only"),
        ("linear", "both", "interval must be one of"),
    ):
        with pytest.raises(InvalidInput, match=words):
            models[name].predict(NEW, interval=kind)


def test_every_class_has_an_interval_of_its_probability(models: dict[str, Any]) -> None:
    model = models["multinomial"]
    found = model.predict(NEW, interval="mean", level=0.9)
    assert found.classes == ("a", "b", "c")
    assert found.mean.shape == found.lower.shape == found.upper.shape == (7, 3)
    assert ((found.lower > 0) & (found.lower < found.mean) & (found.mean < found.upper) & (found.upper < 1)).all()
    names = ["mean", "mean_ci_lower", "mean_ci_upper"]
    assert found.to_frame()["b"].columns.tolist() == names


def test_a_missing_cell_is_filled_in_intervals_as_in_predictions(models: dict[str, Any]) -> None:
    model = models["linear"]
    holed, filled = NEW.copy(), NEW.copy()
    holed.loc[0, "age"] = np.nan
    filled.loc[0, "age"] = model.coefficients_.fill[0]
    np.testing.assert_allclose(
        model.predict(holed, interval="mean").upper, model.predict(filled, interval="mean").upper
    )


def test_what_no_fit_releases_is_refused_in_one_line(models: dict[str, Any]) -> None:
    for name in ("deviance", "llf", "aic", "bic"):
        with pytest.raises(InvalidInput, match="no fit releases") as caught:
            getattr(models["poisson"], name)
        assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInput, match="R\\^2 is for linear models"):
        _ = models["poisson"].rsquared
    assert 0 < models["linear"].rsquared_adj < models["linear"].rsquared < 1
    assert models["linear"].explained > 0
    for dropped, words in (([], "at least one term"), ("nothing", "neither a term nor a coefficient")):
        with pytest.raises(InvalidInput, match=words):
            models["linear"].compare(dropped)


def test_numbers_of_rows_and_coefficients_are_those_of_statsmodels(models: dict[str, Any]) -> None:
    for name, slopes, coefficients in (
        ("linear", 4, 5),
        ("logistic", 4, 5),
        ("multinomial", 8, 10),
        ("formula", 8, 9),
    ):
        model = models[name]
        assert (model.nobs, model.df_model, model.df_resid) == (N, slopes, N - coefficients)
    through_0 = fitted(DPLinearRegression, "cost", fit_intercept=False)
    assert through_0.df_resid == N - 4
    assert {"nobs", "df_model", "df_resid", "fvalue", "f_pvalue"} <= set(dir(models["linear"]))


def test_the_overall_test_is_that_of_all_slopes(models: dict[str, Any]) -> None:
    linear = models["linear"]
    joint = linear.wald_test(np.eye(5)[1:])
    assert (linear.fvalue, linear.f_pvalue) == (joint.statistic, joint.pvalue)
    known = with_estimates(LINEAR(), df=np.inf)
    joint = known.wald_test(np.eye(5)[1:])
    assert joint.distribution == "chi2"
    assert (known.fvalue, known.f_pvalue) == (joint.statistic / 4, joint.pvalue)
    for name in ("fvalue", "f_pvalue"):
        assert name not in dir(models["poisson"])
        with pytest.raises(InvalidInput, match="f_pvalue are for linear models, and this one is poisson"):
            getattr(models["poisson"], name)


def test_a_diagnosis_is_not_offered_where_there_is_none(models: dict[str, Any]) -> None:
    for name, offered in (("poisson", True), ("multinomial", False)):
        with pytest.raises(InvalidInput, match="no fit releases") as caught:
            _ = models[name].aic
        assert ("diagnose" in str(caught.value)) == offered


def test_a_fit_without_estimates_says_so() -> None:
    model = DPLinearRegression(GDP(2.0), public=PublicMoments.from_rows(RNG.normal(size=(99, 2)), RNG.normal(size=99)))
    model.set_params(recipe="paper").fit(RNG.normal(size=(500, 2)), RNG.normal(size=500))
    assert model.estimates_ is None
    for ask in (lambda: model.params, model.conf_int, lambda: model.wald_test("x0 = 0"), model.wald_test_terms):
        with pytest.raises(InvalidInput, match="no estimates for inference: take the default recipe") as caught:
            ask()
        assert "\n" not in str(caught.value)
    assert "no basis for intervals" in str(model.summary())


# ------------------------------------------------------------------ summaries


def test_the_summary_is_as_statisticians_know_it(models: dict[str, Any]) -> None:
    model = models["linear"]
    summary = model.summary(level=0.9)
    lines = str(summary).splitlines()
    header = next(line for line in lines if "std err" in line)
    assert header.split() == ["coef", "std", "err", "privacy", "s.e.", "t", "P>|t|", "[0.05", "0.95]"]
    frame = summary.to_frame()
    np.testing.assert_allclose(frame["coef"], model.params)
    np.testing.assert_allclose(frame[["[0.05", "0.95]"]], model.conf_int(level=0.9))
    np.testing.assert_allclose(frame["privacy s.e."], model.bse_privacy)
    row = next(line for line in lines if line.startswith("plan=full"))
    coef, error = row.split()[1:3]
    decimals = len(error.partition(".")[2])
    assert (coef, error) == (f"{model.params[2]:.{decimals}f}", f"{model.bse[2]:.{decimals}f}")
    assert len(error.replace(".", "").lstrip("0")) == 2
    text = str(summary)
    for words in (
        "robust",
        "t (df >= ",
        "unshrunk estimate",
        "Privacy:  ",
        "(Gaussian DP)",
        "Predictions use the shrunk estimate, coef_",
        "mu = 1",
    ):
        assert words in text
    assert max(map(len, lines)) <= 100
    assert lines[-1].startswith(f"n = {N}; mu = 1 for replace-one neighbours")


def test_a_summary_tells_which_coefficients_have_the_penalty() -> None:
    x = RNG.normal(size=(1_000, 2))
    said = "The penalty (alpha = 250) is part of coef_"
    fits = [DPRidge(GDP(1.0), alpha=alpha, row_bound=4.0).fit(x, x[:, 0]) for alpha in (0.0, 250.0)]
    assert [said in str(model.summary()) for model in fits] == [False, True]


def test_several_classes_have_a_table_each(models: dict[str, Any]) -> None:
    summary = models["multinomial"].summary()
    assert [table.title for table in summary.tables[1:]] == ["kind = a", "kind = b", "kind = c"]
    assert {table.names for table in summary.tables[1:]} == {("(intercept)", "age", "plan=full", "plan=gold", "dose")}
    assert summary.to_frame().loc[("kind = b", "dose"), "coef"] == models["multinomial"].params[9]


def test_what_is_not_identified_is_written_so() -> None:
    model = with_estimates(LINEAR())
    object.__setattr__(model.estimates_, "identified", np.array([True, False, True, True, True]))
    summary = model.summary()
    for text in (str(summary), summary.to_html(), summary.to_latex()):
        assert text.count("not identified") == 1
        assert text.count("Not identified: neither the releases nor public facts determine such a coefficient.") == 1
        assert f"{model.params[1]:.4f}" not in text
    assert "Not identified" not in str(with_estimates(LINEAR()).summary())
    row = next(line for line in str(summary).splitlines() if line.startswith("age"))
    assert row.split() == ["age", "-", "not", "identified"]
    assert summary.to_frame().loc["age", "coef"] == model.params[1]
    assert np.isnan(summary.to_frame().loc["age", "std err":]).all()


def test_the_reference_is_that_of_identified_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_estimates(LINEAR())
    few = np.array([50.0, 0.01, 60.0, 60.0, 60.0])
    monkeypatch.setattr(type(model.estimates_), "degrees_of_freedom", property(lambda _: few))
    object.__setattr__(model.estimates_, "identified", np.array([True, False, True, True, True]))
    assert "df >= 50," in str(model.summary())
    object.__setattr__(model.estimates_, "identified", np.zeros(5, dtype=bool))
    assert "Reference" not in str(model.summary())  # nothing is tested


def test_no_name_is_markup_or_obeyed() -> None:
    name = "<b>&\x1b[31m$_%[x]"
    model = with_estimates(LINEAR())
    object.__setattr__(model.estimates_, "names", ("(intercept)", name, *model.estimates_.names[2:]))
    object.__setattr__(model.coefficients_, "features", (name, *model.coefficients_.features[1:]))
    summary = model.summary()
    for text in (str(summary), summary.to_html(), summary.to_latex(), str(model.wald_test_terms())):
        assert "\x1b" not in text
    assert "<b>" not in summary.to_html()
    assert r"\textless{}b\textgreater{}\&\textbackslash{}x1b{[}31m\$\_\%{[}x{]}" in summary.to_latex()


# ------------------------------------------------------------------ notebooks


def test_a_representation_holds_no_table() -> None:
    model = DPLinearRegression(GDP(1.0), public=PUBLIC, schema=LEVELS, ledger=MemoryLedger(GDP(3.0)))
    for public, words in (
        (PUBLIC, "public=<DataFrame 300 x 7>"),
        (pl.from_pandas(PUBLIC), "public=<DataFrame 300 x 7>"),
        (pa.Table.from_pandas(PUBLIC), "public=<Table 300 x 7>"),
        (PublicMoments.from_rows(np.ones((4, 2))), "public=<PublicMoments 4 x 2>"),
        ("https://ann:secret@host/rows.csv", "public='https://***@host/rows.csv'"),
    ):
        text = repr(model.set_params(public=public))
        assert words in text
        assert len(text) < 400
        assert "ledger=<MemoryLedger>" in text
    assert repr(DPLinearRegression()) == "DPLinearRegression()"
    assert "classes=('no', 'yes')" in repr(DPLogisticRegression(GDP(1.0), classes=("no", "yes")))
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.get_params()["public"] is not None


def test_results_are_one_line_and_print_as_tables(models: dict[str, Any]) -> None:
    linear = models["linear"]
    selected = linear.select().refit()
    for found, line, words in (
        (linear.coefficients_, "<Coefficients of cost: 4 features, n = 1,500>", "plan=full"),
        (
            models["multinomial"].coefficients_,
            "<ClassCoefficients of kind: 4 features, n = 1,500, 3 classes>",
            "kind = b",
        ),
        (linear.estimates_, "<Estimates of 5 coefficients: robust covariance, df = 40>", "std err"),
        (linear.compare("plan"), "<Submodel without plan=full, plan=gold: F(2,", "Removing plan=full, plan=gold: F(2,"),
        (selected, "<SelectedModel of ", "After selection, 95% intervals hold simultaneously"),
        (linear.path(), "<PenaltyPath alphas 100, coef 100 x 4,", "BIC is smallest at"),
        (linear.select("best"), "<SubsetPath aic 4, bic 4>", "(no term)"),
        (linear.t_test("age = 0, dose = 0"), "<TTest of 2 hypotheses: age = 0, dose = 0>", "P>|t|"),
        (linear.wald_test_terms(), "<TermTests of 3 terms: age, plan, dose>", "reference"),
        (
            linear.predict(NEW, interval="mean"),
            "<PredictedIntervals of 7 rows: mean, level 0.95>",
            "7 rows; intervals of mean responses, level 0.95",
        ),
        (linear.suitability_, "<Suitability of 300 public rows: they ", "condition number"),
        (linear.privacy_, "<PrivacyStatement mu = 1 for replace-one neighbours, one record>", "PrivacyStatement"),
    ):
        assert repr(found).startswith(line)
        assert len(repr(found)) <= 200
        assert "\n" not in repr(found)
        assert words in str(found)
    frame = linear.estimates_.to_frame()
    np.testing.assert_array_equal(frame["coef"], linear.params)
    np.testing.assert_array_equal(frame["privacy s.e."], linear.bse_privacy)
    assert tuple(frame.index) == linear.param_names
    assert "\x1b" not in f"{_renamed(linear.estimates_, 'a' + chr(27))}"


def _renamed(found: Estimates, name: str) -> Estimates:
    return replace(found, names=(name, *found.names[1:]))


def test_models_show_their_summary_in_notebooks_after_the_fit(models: dict[str, Any]) -> None:
    model = models["linear"]
    assert model._repr_html_() == model.summary().to_html() == model._repr_mimebundle_()["text/html"]
    assert "std err" in model._repr_html_()
    assert {"conf_int", "params", "rsquared"} <= set(dir(model))
    assert not {"deviance", "aic"} & set(dir(model))
    before = clone(model)
    assert "params" not in dir(before)
    assert "std err" not in before._repr_html_()
    assert "DPLinearRegression" in before._repr_mimebundle_()["text/html"]


def test_what_belongs_to_a_fit_shows_itself_as_html(models: dict[str, Any]) -> None:
    ledger = MemoryLedger(GDP(3.0), dataset="<i>people</i>")
    ledger.reserve(GDP(1.0), note="<script>", seeded=True)
    shown = (
        models["linear"].coefficients_,
        models["multinomial"].coefficients_,
        models["linear"].privacy_,
        models["linear"].summary(),
        ledger,
        LEVELS,
        PublicMoments.from_rows(np.ones((4, 2)), np.ones(4)),
    )
    for each in shown:
        html = each._repr_html_()
        assert html.startswith("<table>")
        HTMLParser().feed(html)
    assert "SEEDED" in ledger._repr_html_()
    assert "<script>" not in ledger._repr_html_()
    assert "<i>" not in ledger._repr_html_()


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_predicts_summarises_and_infers(models: dict[str, Any], name: str, tmp_path: Path) -> None:
    model = models[name]
    model.save(tmp_path / "deep" / "model")
    saved = dpregress.load(tmp_path / "deep" / "model")
    if isinstance(model, DPLogisticRegression):
        assert saved.predict(NEW).tolist() == model.predict(NEW).tolist()
        np.testing.assert_array_equal(saved.predict_proba(NEW), model.predict_proba(NEW))
    else:
        np.testing.assert_array_equal(saved.predict(NEW), model.predict(NEW))
    NEW.to_parquet(tmp_path / "new.parquet")
    assert np.asarray(saved.predict(tmp_path / "new.parquet")).tolist() == np.asarray(model.predict(NEW)).tolist()
    np.testing.assert_allclose(saved.cov_params(), model.cov_params(), rtol=1e-12, atol=1e-18)
    np.testing.assert_array_equal(saved.conf_int(level=0.8), model.conf_int(level=0.8))
    found, expected = (each.wald_test_terms().to_frame() for each in (saved, model))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert saved.summary().to_frame().equals(model.summary().to_frame())
    assert saved._repr_html_() == saved.summary().to_html()
    assert "\n" not in repr(saved)
    np.testing.assert_array_equal(saved.predict(NEW, interval="mean").upper, model.predict(NEW, interval="mean").upper)


def test_exposures_are_taken_by_a_saved_model(tmp_path: Path) -> None:
    rows = PRIVATE.assign(years=1.0)
    model = DPPoissonRegressor(GDP(1.0), schema=LEVELS, public=PUBLIC.drop(columns="visits"))
    with_estimates(model.fit_table(rows, "visits", list(FEATURES), exposure="years")).save(tmp_path)
    saved, years = dpregress.load(tmp_path), np.arange(1.0, 8.0)
    np.testing.assert_array_equal(saved.predict(NEW, exposure=years), model.predict(NEW, exposure=years))
    found = saved.predict(NEW, exposure=years, interval="mean")
    np.testing.assert_allclose(found.upper, years * saved.predict(NEW, interval="mean").upper)


def test_files_hold_finite_numbers_and_bad_ones_are_refused(tmp_path: Path) -> None:
    model = with_estimates(LINEAR(), df=np.inf)
    model.estimates_.sampling[0, 0] = np.nan
    model.save(tmp_path)
    path = tmp_path / "model.json"
    record = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert record["estimates"]["df"] is None
    assert np.isnan(dpregress.load(path).bse[0])
    broken: list[tuple[str, Any]] = [
        ("names", ["x"] * 5),
        ("names", ["a", "b", "c", "d", "e"]),
        ("sampling", [[1.0]]),
        ("privacy", [[1.0] * 5] * 5),
        ("identified", [True]),
        ("df", -1.0),
        ("cov_type", "best"),
        ("dispersion", -1.0),
        ("estimate", "12345"),
        ("estimate", ["nan", 0.0, 0.0, 0.0, 0.0]),
        ("shift", [-1.0, 0.0, 0.0, 0.0, 0.0]),
        ("spread", 3),
        ("spread", [[1.0]]),
        ("sampling", _negative(record["estimates"]["sampling"])),
        ("privacy", _negative(record["estimates"]["privacy"])),
        ("sampling", _correlated(record["estimates"]["sampling"])),
    ]
    for key, value in broken:
        path.write_text(json.dumps({**record, "estimates": {**record["estimates"], key: value}}))
        with pytest.raises(InvalidInput) as caught:
            dpregress.load(path)
        assert "\n" not in str(caught.value)
    del record["estimates"]
    path.write_text(json.dumps(record))
    old = dpregress.load(path)
    with pytest.raises(InvalidInput, match="fit again with the default recipe"):
        old.conf_int()
    assert "no basis for intervals" in str(old.summary())


def _negative(rows: Any) -> Any:
    """A covariance whose third variance is negative."""
    return [[-value if i == j == 2 else value for j, value in enumerate(row)] for i, row in enumerate(rows)]


def _correlated(rows: Any) -> Any:
    """A covariance with a correlation beyond 1."""
    return [[1e3 if (i, j) == (3, 2) else value for j, value in enumerate(row)] for i, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n", -5),
        ("n", 1e300),
        ("n", 10.7),
        ("intercept", "nan"),
        ("coef", [None, 0.0, 0.0, 0.0]),
        ("response", {"family": "best", "link": "identity", "classes": []}),
        ("response", {"family": "gaussian", "link": "best", "classes": []}),
    ],
)
def test_a_tampered_model_file_is_refused(models: dict[str, Any], tmp_path: Path, key: str, value: Any) -> None:
    models["linear"].save(tmp_path)
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(InvalidInput) as caught:
        dpregress.load(path)
    assert "\n" not in str(caught.value)


def test_what_was_saved_before_outlives_a_save_that_fails(
    models: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models["linear"].save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"model.json", "privacy.json"}

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for write in (models["poisson"].save, lambda folder: models["poisson"].report(folder / "model.json")):
        with pytest.raises(OutputError, match="No space left"):
            write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_save_keeps_a_link(models: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "model.json").symlink_to(tmp_path / "elsewhere" / "model.json")
    models["linear"].save(tmp_path)
    assert (tmp_path / "model.json").is_symlink()
    assert dpregress.load(tmp_path / "elsewhere").intercept_ == models["linear"].intercept_


@pytest.mark.parametrize("dropped", [5, [["age"]], "\x1b[2J"])
def test_terms_that_are_none_are_refused_in_plain_text(models: dict[str, Any], dropped: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        models["linear"].compare(dropped)
    assert str(caught.value).isprintable()


def test_a_report_is_written_from_python_as_by_the_command(models: dict[str, Any], tmp_path: Path) -> None:
    models["linear"].report(tmp_path, title="A <title>")
    page = (tmp_path / "report.html").read_text()
    for words in ("A &lt;title&gt;", "std err", "privacy s.e.", "What is promised", "unshrunk estimate", "<svg"):
        assert words in page
    models["multinomial"].report(tmp_path / "page.html")
    assert "kind = c" in (tmp_path / "page.html").read_text()
    (tmp_path / "file").write_text("")
    for write in (models["linear"].save, models["linear"].report):
        with pytest.raises(OutputError, match="cannot write to"):
            write(tmp_path / "file" / "model")


def test_parties_users_and_coded_tables_have_the_same_face(tmp_path: Path) -> None:
    rows = RNG.uniform(-1, 1, size=(4000, 3))
    parties = VerticalRegression(GDP(1.0)).fit([rows[:, :1], rows[:, 1:]], rows @ [0.3, 0.2, 0.1])
    chances = VerticalRegression(GDP(1.0), family="binomial", schema=Schema({"y": Numeric(-1, 1)}))
    chances.fit([rows[:, :1], rows[:, 1:]], np.sign(rows[:, 0]))
    users = LocalGLM(ApproxDP(8.0, 1e-6), public=PublicMoments.from_rows(rows[:500]))
    users.fit(np.tile(rows, (5, 1)), np.tile(rows[:, 0] + RNG.normal(size=4000) > 0, 5))
    schema = Schema.from_levels({"a": 3, "y": 4}, numeric=["y"])
    coded = MarginalsRegression(ApproxDP(1.0, 1e-6), schema=schema)
    coded.fit_table(pa.table({"a": RNG.integers(3, size=2000), "y": RNG.integers(4, size=2000)}), "y")
    assert (parties.nobs, users.nobs) == (4000, 20_000)
    assert coded.nobs == coded.coefficients_.n  # as released: neighbours add or remove a row
    for model in (parties, users, coded):
        assert np.isfinite(model.conf_int()).all(axis=1).tolist() == model.estimates_.identified.tolist()
        assert "std err" in str(model.summary())
    few = LocalGLM(ApproxDP(2.0, 1e-6), public=PublicMoments.from_rows(rows[:12])).fit(rows, rows[:, 0] > 0)
    counts = MarginalsRegression(ApproxDP(1.0, 1e-6), schema=schema, recipe="aim")
    counts.fit_table(pa.table({"a": RNG.integers(3, size=2000), "y": RNG.integers(4, size=2000)}), "y")
    for model in (chances, few, counts):
        with pytest.raises(InvalidInput, match="no estimates for inference"):
            model.conf_int()
        assert "no basis for intervals" in str(model.summary())
        assert model._repr_html_() == model.summary().to_html()
        assert "params" not in dir(model)
    for place, each in enumerate((parties, chances, users)):
        model, new = with_estimates(each), rows[:5]
        model.save(tmp_path / str(place))
        saved = dpregress.load(tmp_path / str(place))
        np.testing.assert_array_equal(saved.conf_int(), model.conf_int())
        np.testing.assert_array_equal(saved.predict(new), model.predict(new))
        np.testing.assert_array_equal(
            saved.predict(new, interval="mean").lower, model.predict(new, interval="mean").lower
        )
    assert with_estimates(coded).wald_test_terms().tests[0].df_num == 2
