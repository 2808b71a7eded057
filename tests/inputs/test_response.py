"""Text where a number is needed is refused by its type, before anything is charged; classes keep their type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dpregress import (
    GDP,
    Categorical,
    DPGammaRegressor,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    MemoryLedger,
    Numeric,
    Schema,
    SQLQuery,
)
from dpregress.errors import InvalidInput

N = 600
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.random(N)})
YES = (RNG.random(N) < X.a).to_numpy()
TABLE = X.assign(y=np.where(YES, "Yes", "No"))
BOUNDS = {"a": Numeric(0, 1)}
KINDS = [
    DPLinearRegression,
    DPPoissonRegressor,
    DPGammaRegressor,
    lambda *args, **given: DPGLMRegressor(*args, family="binomial", **given),
    DPLogisticRegression,
]


def parquet(folder: Path) -> Any:
    pq.write_table(pa.Table.from_pandas(TABLE), folder / "rows.parquet")
    return folder / "rows.parquet"


def duckdb(_: Path) -> Any:
    return SQLQuery("duckdb://", "SELECT random() AS a, 'Yes' AS y FROM range(600)")


TYPED: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda _: TABLE.astype({"y": "str"}),
    "pandas string": lambda _: TABLE.astype({"y": "string"}),
    "pandas category": lambda _: TABLE.astype({"y": "category"}),
    "Polars": lambda _: pl.from_pandas(TABLE),
    "Polars lazy": lambda _: pl.from_pandas(TABLE).lazy(),
    "Arrow": lambda _: pa.Table.from_pandas(TABLE),
    "Arrow dictionary": lambda _: pa.table({"a": TABLE.a, "y": pa.array(TABLE.y).dictionary_encode()}),
    "data set": lambda folder: ds.dataset(parquet(folder)),
    "Parquet": parquet,
    "DuckDB": duckdb,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", TYPED)
def test_text_is_refused_before_the_charge(kind: Any, source: str, tmp_path: Path) -> None:
    ledger = MemoryLedger(GDP(1.0))
    model = kind(GDP(1.0), schema=Schema(BOUNDS), ledger=ledger)
    for formula in (None, "y ~ a"):
        model.set_params(formula=formula)
        with pytest.raises(InvalidInput, match=r"'y' is text \(.*--classes.*schema.*another") as refused:
            model.fit_table(TYPED[source](tmp_path), None if formula else "y")
        assert "\n" not in str(refused.value)
    assert not ledger.charges
    assert "coef_" not in vars(model)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "y",
    [
        TABLE.y.astype("str"),
        TABLE.y.astype("category"),
        TABLE.y.to_numpy().astype("U3"),
        pl.Series(TABLE.y.tolist()),
        pa.array(TABLE.y),
        TABLE.y.tolist(),
        tuple(TABLE.y),
    ],
    ids=lambda y: f"{type(y).__name__} {getattr(y, 'dtype', '')}",
)
def test_responses_of_text_are_refused(kind: Any, y: Any) -> None:
    ledger = MemoryLedger(GDP(1.0))
    with pytest.raises(InvalidInput, match="'y' is text"):
        kind(GDP(1.0), schema=Schema(BOUNDS), ledger=ledger).fit(X, y)
    assert not ledger.charges


@pytest.mark.parametrize("rows", [[["a", 1.0], ["b", 2.0]] * 9, np.array([["a", "b"]] * 18), (("1", 1.0),) * 18])
def test_features_of_text_are_refused_in_arrays_and_lists(rows: Any) -> None:
    ledger, y = MemoryLedger(GDP(1.0)), [0.5] * 18
    with pytest.raises(InvalidInput, match=r"^column 'x0' of X is text: give a data frame and declare the levels"):
        DPLinearRegression(GDP(1.0), row_bound=1.0, ledger=ledger).fit(rows, y)
    assert not ledger.charges
    numbers = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1), "y": Numeric(0, 1)})
    DPLinearRegression(GDP(1.0), schema=numbers, ledger=ledger).fit(rows, y)
    assert len(ledger.charges) == 1


@pytest.mark.parametrize("bounds", [(0, 1500), (0, 40), (1, 2), (-1, 1), (0, 2)])
@pytest.mark.parametrize("formula", [None, "y ~ a"])
def test_bounds_that_contradict_the_classes_are_refused(bounds: tuple[float, float], formula: str | None) -> None:
    ledger, rows = MemoryLedger(GDP(1.0)), X.assign(y=YES * 1.0)
    schema = Schema({**BOUNDS, "y": Numeric(*bounds)})
    model = DPLogisticRegression(GDP(1.0), schema=schema, formula=formula, ledger=ledger)
    said = rf"^the schema declares 'y' between {bounds[0]} and {bounds[1]}, and the classes are 0 and 1, .*classes="
    with pytest.raises(InvalidInput, match=said):
        model.fit_table(rows, None if formula else "y")
    if formula is None:
        with pytest.raises(InvalidInput, match=said):
            model.fit(X, rows["y"])
    assert not ledger.charges
    named = DPLogisticRegression(GDP(1.0), schema=schema, formula=formula, classes=(0, 1))
    assert "The classes are 0 and 1; any other response counts as missing." in str(
        named.fit_table(rows, None if formula else "y").summary()
    )


@pytest.mark.parametrize(
    ("family", "bounds", "said"),
    [
        ("poisson", (-5, 0), "'y' between -5 and 0, and poisson responses have y >= 0: choose another family"),
        ("gamma", (-5, -1), "gamma responses have y > 0"),
        ("binomial", (0, 40), "binomial responses have 0 <= y <= 1"),
    ],
)
def test_bounds_that_contradict_a_family_are_refused(family: str, bounds: tuple[float, float], said: str) -> None:
    ledger = MemoryLedger(GDP(1.0))
    model = DPGLMRegressor(GDP(1.0), family=family, schema=Schema({**BOUNDS, "y": Numeric(*bounds)}), ledger=ledger)
    with pytest.raises(InvalidInput, match=said):
        model.fit(X, YES * 1.0)
    assert not ledger.charges


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_bounds_of_which_a_family_has_a_part_are_noted(family: str) -> None:
    model = DPGLMRegressor(GDP(1.0), family=family, schema=Schema({**BOUNDS, "y": Numeric(-5, 20)}))
    with pytest.warns(UserWarning, match="a response below 0 counts as it stands and biases the fit"):
        model.fit(X, YES * 1.0 + 1)


def test_what_says_what_text_means() -> None:
    numbers = TABLE.assign(y=np.where(YES, "1.0", "0")).astype({"y": "str"})
    DPLinearRegression(GDP(1.0), schema=Schema({**BOUNDS, "y": Numeric(0, 1)})).fit_table(numbers, "y")
    DPLogisticRegression(GDP(1.0), schema=Schema(BOUNDS), classes=("No", "Yes")).fit_table(TABLE, "y")
    # objects are read one by one, and no type says what they are
    DPLinearRegression(GDP(1.0), schema=Schema(BOUNDS)).fit(X, YES.astype(object))
    DPLinearRegression(GDP(1.0), schema=Schema(BOUNDS)).fit_table(X.assign(y=YES.astype(object)), "y")


@pytest.mark.parametrize("formula", [None, "y ~ a"])
def test_levels_in_the_schema_are_the_classes(formula: str | None, tmp_path: Path) -> None:
    schema = Schema({**BOUNDS, "y": Categorical(("No", "Yes"))})
    TABLE.to_csv(tmp_path / "rows.csv", index=False)
    target = None if formula else "y"
    for source in (TABLE, tmp_path / "rows.csv"):
        model = DPLogisticRegression(GDP(1e6), schema=schema, formula=formula).fit_table(source, target)
        assert model.classes_.tolist() == ["No", "Yes"]
        assert float(np.ravel(model.coef_)[0]) > 1
        assert set(model.predict(X).tolist()) == {"No", "Yes"}
        assert model.get_params()["classes"] is None
    assert DPLogisticRegression(GDP(1e6), schema=schema).fit(X, TABLE.y).score(X, TABLE.y) > 0.6
    three = Schema({**BOUNDS, "y": Categorical(("No", "Yes", "Maybe"))})
    assert DPLogisticRegression(GDP(1.0), schema=three).fit_table(TABLE, "y").coef_.shape == (3, 1)


@pytest.mark.parametrize(
    ("y", "levels", "classes"),
    [
        (YES, None, [False, True]),
        (pd.Series(YES, dtype="boolean"), None, [False, True]),
        (pa.array(YES), None, [False, True]),
        (YES.astype(int), None, [0, 1]),
        (YES + 1, ("1", "2"), [1, 2]),
        (YES + 1.0, ("1", "2"), [1.0, 2.0]),
        (YES, ("true", "false"), [True, False]),
    ],
)
def test_classes_have_the_type_of_the_response(y: Any, levels: tuple[str, ...] | None, classes: list[Any]) -> None:
    schema = Schema(BOUNDS if levels is None else {**BOUNDS, "y": Categorical(levels)})
    fits = [
        DPLogisticRegression(GDP(1e6), schema=schema).fit(X, y),
        DPLogisticRegression(GDP(1e6), schema=schema).fit_table(pa.table({"a": X.a, "y": pa.array(y)}), "y"),
    ]
    for model in fits:
        assert model.classes_.tolist() == classes
        assert model.classes_.dtype == np.asarray(classes).dtype
        assert model.predict(X).dtype == model.classes_.dtype
        assert np.mean(model.predict(X) == np.asarray(y)) > 0.6


def test_given_classes_keep_their_type() -> None:
    model = DPLogisticRegression(GDP(1e6), schema=Schema(BOUNDS), classes=(0, "Yes")).fit_table(TABLE, "y")
    assert model.classes_.tolist() == [0, "Yes"]


@pytest.mark.parametrize("labels", [[1, 2], [-1, 1], [1.0, 2.0], ["1", "2"], [True, "no"]])
def test_public_labels_of_which_one_is_a_class_are_refused(labels: list[object]) -> None:
    """Rows with the other label would count as missing, and all that are left have the same response."""
    table = TABLE.assign(y=pd.Series([labels[row % 2] for row in range(len(TABLE))], dtype=np.array(labels).dtype))
    ledger, said = MemoryLedger(GDP(1.0)), r"hold other responses than the classes 0, 1, and none [01]: .*classes="
    for formula, target in ((None, "y"), ("y ~ a", None)):
        model = DPLogisticRegression(GDP(1.0), public=table[:100], classes=(0, 1), formula=formula, ledger=ledger)
        with pytest.raises(InvalidInput, match=said):
            model.fit_table(table[100:], target)
    assert not ledger.charges


def test_codes_beside_all_classes_are_missing_responses() -> None:
    table = TABLE.assign(y=[(0, 1, 0, 9)[row % 4] for row in range(len(TABLE))])
    model = DPLogisticRegression(GDP(1.0), public=table[:100], classes=(0, 1))
    with pytest.warns(UserWarning, match="25 public rows with missing cells were left out"):
        model.fit_table(table[100:], "y")


def test_public_labels_of_other_classes_name_the_option() -> None:
    model = DPLogisticRegression(GDP(1.0), public=TABLE[:100])
    with pytest.raises(InvalidInput, match="than the classes 0, 1, and none one of these"):
        model.set_params(classes=(0, 1)).fit_table(TABLE[100:], "y")


@pytest.mark.parametrize("kind", ["object", "str", "category", "large_binary"])
@pytest.mark.parametrize("blank", ["", " \t"])
def test_blank_public_labels_are_missing_as_those_of_files_are(kind: str, blank: str) -> None:
    """The public rows then have one class, which is not refused: blank text is no other response."""
    labels = [blank if row % 4 == 0 else "0" for row in range(100)]
    column = pa.array(labels, pa.large_binary()) if kind == "large_binary" else pd.Series(labels, dtype=kind)
    public = pa.table({"a": X["a"][:100], "y": column}) if kind == "large_binary" else X[:100].assign(y=column)
    model = DPLogisticRegression(GDP(1.0), public=public, classes=(0, 1))
    with pytest.warns(UserWarning, match="25 public rows with missing cells were left out"):
        model.fit_table(X[100:].assign(y=YES[100:]), "y")
