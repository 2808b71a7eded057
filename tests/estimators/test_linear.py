"""Linear regression and ridge as users meet them."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import (
    GDP,
    ZCDP,
    ApproxDP,
    Categorical,
    DPLinearRegression,
    DPRidge,
    MemoryLedger,
    Numeric,
    PublicMoments,
    PureDP,
    Schema,
    SQLiteLedger,
)
from dpregress.accounting import Composed
from dpregress.coordinates import Vector
from dpregress.errors import (
    BudgetExceeded,
    DPRegressError,
    InvalidInput,
    LedgerError,
    SeededNoiseWarning,
    UnboundedData,
)
from dpregress.mechanisms import Sampler
from dpregress.papers import cao2026
from dpregress.rows import ThreadedEngine

NAMES = ["age", "dose", "income"]
N, M = 3_000, 120
RNG = np.random.default_rng(20260131)
ALL = RNG.normal([1.0, 0.0, -2.0], [1.0, 0.3, 5.0], size=(N + M, 3))
RESPONSE = ALL @ [1.0, -3.0, 0.5] + 4.0 + RNG.normal(size=N + M)
X, Y = ALL[:N], RESPONSE[:N]
FRAME = pd.DataFrame(X, columns=NAMES)
PUBLIC = PublicMoments.from_rows(ALL[N:], RESPONSE[N:], names=NAMES)
SEED = 5

seeded_quietly = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")


def model(privacy: Any = GDP(1.0), **parameters: Any) -> DPLinearRegression:  # noqa: B008 - events are frozen
    return DPLinearRegression(privacy, **{"public": PUBLIC, **parameters})


def seeded(**parameters: Any) -> DPLinearRegression:
    return model(**{"random_state": SEED, **parameters})


# ------------------------------------------------------------------ one answer for every kind of table

TABLES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "pandas": lambda: (FRAME, pd.Series(Y, name="y")),
    "pandas objects": lambda: (FRAME.astype(object), pd.Series(Y, name="y", dtype=object)),
    "pandas text": lambda: (FRAME.astype(str), Y),
    "Polars": lambda: (pl.from_pandas(FRAME), pl.Series("y", Y)),
    "Arrow": lambda: (pa.table(FRAME), pa.array(Y)),
    "record batch": lambda: (pa.record_batch(FRAME), Y),
    "lists": lambda: (X.tolist(), Y.tolist()),
    "Fortran order": lambda: (np.asfortranarray(X), Y),
    "every second row": lambda: (np.repeat(X, 2, axis=0)[::2], np.repeat(Y, 2)[::2]),
    "in another order": lambda: (FRAME[["income", "age", "dose"]], Y),
}


@seeded_quietly
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("intercept", [True, False])
def test_every_kind_of_table_gives_the_arrays_answer(kind: str, intercept: bool) -> None:
    expected = seeded(fit_intercept=intercept).fit(X, Y)
    found = seeded(fit_intercept=intercept).fit(*TABLES[kind]())
    order = [found.coefficients_.features.index(name) for name in NAMES]
    if kind == "in another order":
        np.testing.assert_allclose(found.coef_[order], expected.coef_, atol=0.2)  # other noise, same regression
    else:
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        assert found.intercept_ == expected.intercept_


@seeded_quietly
@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "Polars", "Arrow"])
def test_fitting_a_column_of_a_table_is_fitting_its_rows(kind: str, tmp_path: Path) -> None:
    whole = FRAME.assign(unused="text", cost=Y)
    source: Any = {"pandas": whole, "Polars": pl.from_pandas(whole), "Arrow": pa.table(whole)}.get(kind)
    if kind == "csv":
        source = tmp_path / "rows.csv"
        whole.to_csv(source, index=False)
    if kind == "parquet":
        source = tmp_path / "rows.parquet"
        pq.write_table(pa.table(whole), source)
    found = seeded().fit_table(source, "cost", NAMES)
    np.testing.assert_array_equal(found.coef_, seeded().fit(FRAME, Y).coef_)
    assert (found.coefficients_.target, found.n_features_in_) == ("cost", 3)
    assert found.feature_names_in_.tolist() == NAMES
    assert seeded().fit_table(whole.drop(columns="unused"), "cost").coef_.tolist() == found.coef_.tolist()


@seeded_quietly
@pytest.mark.parametrize(
    "column",
    [
        lambda cells: pd.Series(cells),
        lambda cells: pd.Series(pd.Categorical(cells)),
        lambda cells: pd.Series(cells, dtype=object),
    ],
    ids=["text", "categorical", "objects"],
)
def test_levels_become_indicators(column: Callable[[list[Any]], pd.Series]) -> None:
    cells = RNG.choice(np.array(["f", "m", "x"]), size=N).tolist()
    space = pd.DataFrame({"age": X[:, 0], "sex": column(cells)})
    schema = Schema({"age": Numeric(-10, 10), "sex": Categorical(("f", "m", "x")), "y": Numeric(-20, 20)})
    y = X[:, 0] + 3.0 * (np.array(cells) == "m") - 2.0 * (np.array(cells) == "x")
    fitted = DPLinearRegression(GDP(1e4), schema=schema, random_state=1).fit(space, y)
    assert fitted.coefficients_.features == ("age", "sex=m", "sex=x")
    np.testing.assert_allclose(fitted.coef_, [1, 3, -2], atol=0.02)
    assert fitted.n_features_in_ == 2
    mapped = space.head(4).copy()
    mapped["sex"] = ["m", "f", None, "undeclared"]
    shift = fitted.predict(mapped) - fitted.intercept_ - fitted.coef_[0] * mapped["age"]
    np.testing.assert_allclose(shift, [fitted.coef_[1], 0, 0, 0], atol=1e-12)


# ------------------------------------------------------------------ names, and prediction


@seeded_quietly
def test_names_of_a_space_are_kept() -> None:
    for table in (FRAME, pl.from_pandas(FRAME), pa.table(FRAME)):
        fitted = seeded().fit(table, Y)
        assert fitted.feature_names_in_.tolist() == NAMES
        assert fitted.coefficients_.features == tuple(NAMES)
    fitted = seeded().fit(X, Y)
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.coefficients_.features == tuple(NAMES)  # the public table's, in the order of the columns


@seeded_quietly
def test_predictions_are_the_linear_form() -> None:
    fitted = seeded().fit(FRAME, Y)
    expected = X @ fitted.coef_ + fitted.intercept_
    for table in (FRAME, pl.from_pandas(FRAME), pa.table(FRAME)):
        np.testing.assert_allclose(fitted.predict(table), expected)
    np.testing.assert_allclose(seeded().fit(X, Y).predict(X), expected)


@seeded_quietly
@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, pa.table], ids=["pandas", "Polars", "Arrow"])
def test_columns_in_another_order_never_give_another_prediction(make: Callable[[pd.DataFrame], Any]) -> None:
    """A model fitted on names refuses them in another order, as scikit-learn does; one fitted on an array warns
    and goes by the public table's names."""
    turned = make(FRAME[["income", "age", "dose"]])
    with pytest.raises(ValueError, match="same order"):
        seeded().fit(FRAME, Y).predict(turned)
    fitted = seeded().fit(X, Y)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        predicted = fitted.predict(turned)
    np.testing.assert_allclose(predicted, fitted.predict(X))


@seeded_quietly
def test_absent_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="income"):
        seeded().fit(FRAME, Y).predict(FRAME[["age", "dose"]])
    with pytest.raises(ValueError, match="2 features, but DPLinearRegression is expecting 3"):
        seeded().fit(X, Y).predict(X[:, :2])


@seeded_quietly
def test_other_public_columns_are_refused_before_any_charge() -> None:
    ledger = MemoryLedger(GDP(9.0))
    with pytest.raises(InvalidInput, match="no column 'weight'"):
        seeded(ledger=ledger).fit(FRAME.rename(columns={"age": "weight"}), Y)
    assert ledger.charges == ()


# ------------------------------------------------------------------ cells that are missing


@seeded_quietly
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("cell", [math.nan, math.inf, -math.inf])
def test_a_missing_feature_counts_as_the_public_mean(cell: float, intercept: bool) -> None:
    broken, filled = X.copy(), X.copy()
    assert PUBLIC.mean is not None
    for row, column in ((0, 0), (17, 2), (17, 1)):
        broken[row, column], filled[row, column] = cell, PUBLIC.mean[column]
    found, expected = (seeded(fit_intercept=intercept).fit(x, Y) for x in (broken, filled))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.predict(broken[:20]), found.predict(filled[:20]), rtol=1e-12)


@seeded_quietly
def test_a_missing_response_takes_its_row_out_and_leaves_n() -> None:
    """In the moments of the one-shot recipe, without an intercept, such a row counts as a row of zeros."""
    one_shot = {"fit_intercept": False, "recipe": "one-shot"}
    y, zero_x, zero_y = Y.copy(), X.copy(), Y.copy()
    y[:50] = math.nan
    zero_x[:50], zero_y[:50] = 0.0, 0.0
    found, expected = (seeded(**one_shot).fit(x, y) for x, y in ((X, y), (zero_x, zero_y)))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    assert found.coefficients_.n == N
    for parameters in (one_shot, {"fit_intercept": False}, {}):
        missing, infinite = (seeded(**parameters).fit(X, np.where(np.arange(N) < 50, c, Y)) for c in (np.nan, math.inf))
        np.testing.assert_array_equal(missing.coef_, infinite.coef_)


# ------------------------------------------------------------------ the response's name and bounds


@seeded_quietly
def test_bounds_are_looked_up_under_the_name_of_the_response() -> None:
    schema = Schema({"cost": Numeric(-30, 30)})
    parameters = {"public": PUBLIC.unlabelled(), "schema": schema, "recipe": "one-shot"}
    for y, releases, target in (
        (pd.Series(Y, name="cost"), 1, "cost"),
        (pl.Series("cost", Y), 1, "cost"),
        (pd.Series(Y, name="other"), 2, "other"),  # its scale has to be bought
        (Y, 2, "y"),
    ):
        fitted = seeded(**parameters).fit(X, y)
        assert len(fitted.privacy_.events.parts) == releases
        assert fitted.coefficients_.target == target
    assert len(seeded(**parameters).fit_table(FRAME.assign(cost=Y), "cost").privacy_.events.parts) == 1


# ------------------------------------------------------------------ ledgers


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        return MemoryLedger(GDP(1.5), "people")
    return SQLiteLedger.create(tmp_path / "ledger.db", "people", GDP(1.5))


@pytest.mark.parametrize("recipe", ["one-shot", "paper"])
def test_a_fit_charges_its_whole_budget_once(ledger: Any, recipe: str) -> None:
    fitted = model(ledger=ledger, recipe=recipe).fit(FRAME, pd.Series(Y, name="cost"))
    (charge,) = ledger.charges
    assert charge.event == GDP(1.0)
    assert charge.note == "DPLinearRegression of cost"
    statement = fitted.privacy_
    assert statement.promise == GDP(1.0)
    assert statement.events.mu == pytest.approx(1.0)
    assert (statement.unit, statement.recorded, statement.seeded) == ("record", ledger.location, False)


def test_a_refused_fit_reads_nothing_and_leaves_no_trace(ledger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("private rows were read, or noise was drawn, without a charge")

    monkeypatch.setattr(ThreadedEngine, "total", never)
    monkeypatch.setattr(Sampler, "add_gaussian", never)
    refused = model(GDP(2.0), ledger=ledger)
    with pytest.raises(BudgetExceeded, match="people"):
        refused.fit(FRAME, Y)
    assert ledger.charges == ()
    assert not hasattr(refused, "coef_")


@pytest.mark.parametrize("spoil", [{"recipe": "best"}, {"public": None}, {"privacy": PureDP(1.0)}], ids=str)
def test_a_call_that_cannot_be_answered_is_not_charged(ledger: Any, spoil: dict[str, Any]) -> None:
    with pytest.raises(DPRegressError):
        model(**{"ledger": ledger, **spoil}).fit(X, Y)
    assert ledger.charges == ()


def test_a_table_without_rows_is_refused_before_the_charge(ledger: Any) -> None:
    for x in (X[:0], FRAME[:0]):
        with pytest.raises(ValueError, match=r"0 sample|no rows"):
            model(ledger=ledger).fit(x, Y[:0])
    with pytest.raises(ValueError, match="a single row"):
        model(ledger=ledger).fit(X[:1], Y[:1])
    assert ledger.charges == ()


def test_a_fit_that_fails_stays_charged(ledger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(ThreadedEngine, "total", fail)
    with pytest.raises(RuntimeError):
        model(ledger=ledger).fit(X, Y)
    assert [charge.event for charge in ledger.charges] == [GDP(1.0)]


@pytest.mark.parametrize("budget", [GDP(0.7), ApproxDP(3.0, 1e-6), ZCDP(0.3)], ids=repr)
def test_draws_add_up_to_the_promise_of_any_budget(budget: Any) -> None:
    statement = model(budget, public=PUBLIC.unlabelled()).fit(X, Y).privacy_
    assert statement.budget == budget
    assert statement.promise.mu == budget.gaussian_mu
    assert budget.covers(Composed.of(statement.events.parts))
    assert statement.events.mu == pytest.approx(budget.gaussian_mu)


# ------------------------------------------------------------------ recipes and options


@seeded_quietly
def test_without_an_intercept_there_is_none() -> None:
    fitted = seeded(fit_intercept=False).fit(X, Y)
    assert fitted.intercept_ == 0.0
    np.testing.assert_array_equal(fitted.predict(np.zeros((2, 3))), 0.0)
    assert seeded().fit(X, Y).intercept_ == pytest.approx(4.0, abs=1.0)


@seeded_quietly
def test_the_papers_recipe_is_the_papers_function() -> None:
    fitted = seeded(privacy=GDP(math.sqrt(2) * 2.0), recipe="paper", fit_intercept=False).fit(X, Y)
    rng = np.random.default_rng(SEED)
    expected = cao2026.pmt_ridge(X, Y, ALL[N:], RESPONSE[N:], mu=2.0, alpha=0.0, eta=0.05, rng=rng)
    np.testing.assert_allclose(fitted.coef_, expected, rtol=1e-12)
    assert [event.mu for event in fitted.privacy_.events.parts] == pytest.approx([2.0, 2.0])
    assert fitted.moments_ is None
    assert np.isnan(fitted.coefficients_.standard_error).all()
    assert "nan" in str(fitted.summary())


@seeded_quietly
def test_ridge_without_a_penalty_is_least_squares() -> None:
    ridge = DPRidge(GDP(1.0), public=PUBLIC, alpha=0.0, random_state=SEED).fit(X, Y)
    np.testing.assert_array_equal(ridge.coef_, seeded().fit(X, Y).coef_)
    shrunk = DPRidge(GDP(1.0), public=PUBLIC, alpha=1e9, random_state=SEED).fit(X, Y)
    assert np.abs(shrunk.coef_).max() < 1e-2


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"privacy": None}, InvalidInput, "privacy= is not set"),
    ({"privacy": PureDP(1.0)}, InvalidInput, "pure epsilon"),
    ({"public": None}, UnboundedData, "need a public bound"),
    ({"public": None, "row_bound": -1.0}, InvalidInput, "row_bound"),
    ({"public": PUBLIC.unlabelled(), "privacy": GDP(1e-3)}, UnboundedData, "too small"),
    ({"public": PUBLIC.unlabelled(), "recipe": "paper"}, InvalidInput, "public labels"),
    ({"public": None, "row_bound": 9.0, "recipe": "paper"}, InvalidInput, "labelled public rows"),
    ({"public": PublicMoments.from_matrix(np.eye(3), n=9)}, InvalidInput, "public means"),
    ({"recipe": "best"}, InvalidInput, "recipe must be"),
    ({"public": PublicMoments.from_rows(np.ones((5, 3)))}, InvalidInput, "singular"),
]


@pytest.mark.parametrize(("parameters", "kind", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_a_bad_call_is_refused_in_one_line(parameters: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        model(**parameters).fit(X, Y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("alpha", [-1.0, math.nan, math.inf])
def test_a_bad_penalty_is_refused(alpha: float) -> None:
    with pytest.raises(InvalidInput, match="alpha must be finite and not negative"):
        DPRidge(GDP(1.0), public=PUBLIC, alpha=alpha).fit(X, Y)


# ------------------------------------------------------------------ randomness


def test_a_seed_warns_and_repeats() -> None:
    fits: list[Vector] = []
    for _ in range(2):
        with pytest.warns(SeededNoiseWarning, match="anyone who knows it"):
            fitted = seeded().fit(X, Y)
        assert fitted.privacy_.seeded
        assert "no protection" in str(fitted.summary())
        fits.append(fitted.coef_)
    np.testing.assert_array_equal(*fits)
    with pytest.warns(SeededNoiseWarning):
        assert (seeded(random_state=SEED + 1).fit(X, Y).coef_ != fits[0]).all()


@seeded_quietly
def test_a_generator_moves_on() -> None:
    rng = np.random.default_rng(SEED)
    first, second = (seeded(random_state=rng).fit(X, Y).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, seeded().fit(X, Y).coef_)
    assert (first != second).all()


def test_without_a_seed_two_fits_differ_in_every_coefficient() -> None:
    first, second = (model().fit(X, Y) for _ in range(2))
    assert (first.coef_ != second.coef_).all()
    assert not first.privacy_.seeded


# ------------------------------------------------------------------ what is left after the fit


def test_a_fitted_model_pickles(tmp_path: Path) -> None:
    ledger = SQLiteLedger.create(tmp_path / "ledger.db", "people", GDP(5.0))
    for fitted in (model().fit(FRAME, Y), model(ledger=ledger).fit(FRAME, Y)):
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.predict(FRAME), fitted.predict(FRAME))
        assert str(again.summary()) == str(fitted.summary())
    again.fit(FRAME, Y)
    assert len(ledger.charges) == 2
    with pytest.raises(TypeError, match="use SQLiteLedger"):
        pickle.dumps(model(ledger=MemoryLedger(GDP(5.0))).fit(FRAME, Y))


def test_a_fitted_model_holds_no_private_rows() -> None:
    """A pickle of a fit on many rows is no larger than one on a few: what is kept does not grow with n."""
    few, many = (len(pickle.dumps(model().fit(X[:rows], Y[:rows]))) for rows in (300, N))
    assert abs(many - few) < 200


def test_the_summary_is_a_table_with_the_guarantee_below() -> None:
    """Of a fit without estimates for inference."""
    fitted = model(ApproxDP(2.0, 1e-6), recipe="one-shot").fit(FRAME, pd.Series(Y, name="cost"))
    fitted.estimates_ = None
    printed = str(fitted.summary()).splitlines()
    lines = [line for line in printed[printed.index("=" * len(printed[1]), 2) - 6 :] if set(line) != {"-"}]
    assert printed[0] == "DPLinearRegression of cost"
    assert lines[0].split() == ["coefficient", "std.", "error", "privacy", "s.e."]
    assert lines[1].split() == ["(intercept)", f"{fitted.intercept_:.6g}"]
    found = fitted.coefficients_
    for line, *values in zip(lines[2:5], NAMES, found.coef, found.standard_error, found.privacy_error, strict=True):
        name, coef, error, own = line.split()
        assert name == values[0]
        numbers = [float(cell) for cell in (coef, error, own)]
        np.testing.assert_allclose(numbers[1:], values[2:], rtol=0.05)  # two digits
        assert abs(numbers[0] - values[1]) <= 0.05 * values[2]
    assert lines[-1].startswith(f"n = {N}; epsilon = 2, delta = 1e-06 for replace-one neighbours, one record; mu = ")
    assert len({len(line) for line in lines[:1] + lines[2:5]}) == 1


def test_errors_count_the_noise_on_top_of_sampling() -> None:
    loud, soft = (model(GDP(mu)).fit(X, Y).coefficients_ for mu in (1.0, 1e6))
    for found in (loud, soft):
        assert (found.privacy_error <= found.standard_error).all()
    assert (loud.privacy_error > 1e3 * soft.privacy_error).all()
    residual = Y - np.column_stack([np.ones(N), X]) @ np.linalg.lstsq(np.column_stack([np.ones(N), X]), Y)[0]
    centred = X - X.mean(axis=0)
    textbook = np.sqrt(residual.var() * np.diag(np.linalg.inv(centred.T @ centred)))
    # row weights and the clip act a little at the public radius: the sizes agree, not the digits
    np.testing.assert_allclose(soft.standard_error, textbook, rtol=0.35)


def test_progress_is_reported_for_every_pass() -> None:
    seen: list[tuple[int, int]] = []
    model(public=PUBLIC.unlabelled(), recipe="one-shot").fit(X, Y, progress=lambda done, of: seen.append((done, of)))
    assert seen.count((N, N)) == 2


def test_an_array_with_other_columns_than_the_public_rows_is_refused() -> None:
    """Columns without names are matched by their number, not by the public table's first ones."""
    more = PublicMoments.from_rows(np.column_stack([ALL[N:], RNG.normal(size=(M, 2))]), RESPONSE[N:])
    with pytest.raises(InvalidInput):
        model(public=more).fit(X, Y)


def test_a_ledger_of_another_unit_is_refused() -> None:
    """Nothing bounds the rows of a person here: such a fit protects records, and must not say otherwise."""
    ledger = MemoryLedger(GDP(1.0), unit="person")
    with pytest.raises(LedgerError, match="ledger is person, and the unit of this fit is record"):
        DPRidge(GDP(1.0), row_bound=10.0, schema=Schema({"y": Numeric(-9, 9)}), ledger=ledger).fit(
            np.eye(3), np.ones(3)
        )
    assert ledger.charges == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("privacy", 1.0),
        ("public", np.eye(3)),
        ("schema", {}),
        ("ledger", "budget.db"),
        ("row_bound", "9"),
        ("alpha", "a"),
    ],
)
def test_parameters_of_another_type_are_named(name: str, value: object) -> None:
    model = DPRidge(GDP(1.0), row_bound=10.0, schema=Schema({"y": Numeric(-9, 9)})).set_params(**{name: value})
    with pytest.raises(InvalidInput, match=name):
        model.fit(np.eye(3), np.ones(3))
