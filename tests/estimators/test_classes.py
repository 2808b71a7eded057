"""Labels of a logistic model are its classes by their spelling or their number; nothing is lost in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpregress import (
    GDP,
    Categorical,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    MemoryLedger,
    PublicMoments,
    Schema,
    load,
)
from dpregress.errors import InvalidInput, SeededNoiseWarning
from dpregress.inputs.response import type_of_array
from dpregress.rows.design.encoder import is_text

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4_000, 2))
Y = RNG.random(len(X)) < 1 / (1 + np.exp(-X[:, 0]))
pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")


def model(**more: Any) -> DPLogisticRegression:
    return DPLogisticRegression(GDP(1.0), row_bound=4.0, random_state=0, **more)


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """Coefficients of labels that are spelt as the classes are."""
    with pytest.warns(SeededNoiseWarning):
        return np.asarray(model().fit(X, Y.astype(int)).coef_)


@pytest.mark.parametrize(
    "y",
    [
        Y,
        Y.tolist(),
        pd.Series(Y),
        pd.Series(Y, dtype="boolean"),
        pl.Series(Y),
        pa.array(Y),
        Y.astype(object),
        np.where(Y, "1.0", "0.0"),
        pd.Series(np.where(Y, "1.0", "0")),
        np.where(Y, "True", "false"),
        Y.astype(np.int8),
    ],
    ids=lambda y: f"{type(y).__name__} {getattr(y, 'dtype', '')}",
)
def test_booleans_and_numbers_in_text_are_the_classes_0_and_1(y: Any, expected: np.ndarray) -> None:
    text = getattr(y, "dtype", None) is not None and np.asarray(y).dtype.kind in "OU" and isinstance(y[0], str)
    if not text:  # of text the classes are named
        np.testing.assert_array_equal(model().fit(X, y).coef_, expected)
    np.testing.assert_array_equal(model(classes=(0, 1)).fit(X, y).coef_, expected)
    np.testing.assert_array_equal(model(classes=("0", "1")).fit(X, y).coef_, expected)
    np.testing.assert_array_equal(model(classes=(False, True)).fit(X, y).coef_, expected)


@pytest.mark.parametrize("y", [Y, np.where(Y, "1.0", "0.0"), np.where(Y, 1.0, 0.0)], ids=["bool", "text", "number"])
def test_a_column_of_a_table(y: Any, expected: np.ndarray, tmp_path: Path) -> None:
    table = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "y": y})
    table.to_csv(tmp_path / "rows.csv", index=False)
    for source in (table, pl.from_pandas(table), pa.Table.from_pandas(table), tmp_path / "rows.csv"):
        np.testing.assert_allclose(model(classes=(0, 1)).fit_table(source, "y").coef_, expected)


@pytest.mark.parametrize("y", [Y + 1j, np.full(len(Y), "2020", "M8[Y]")], ids=["complex", "dates"])
def test_labels_of_a_type_that_holds_none_are_refused(y: Any) -> None:
    ledger = MemoryLedger(GDP(1.0))
    with pytest.raises(InvalidInput, match=r"labels of type|Complex data"):
        model(ledger=ledger).fit(X, y)
    assert not ledger.charges


def test_a_response_of_declared_levels_is_refused_where_numbers_are_fitted() -> None:
    schema = Schema({"y": Categorical(("no", "yes"))})
    table = pd.DataFrame({"x0": X[:, 0], "y": np.where(Y, "yes", "no")})
    for kind in (DPLinearRegression, DPPoissonRegressor):
        fit = kind(GDP(1.0), schema=schema, row_bound=1.0)
        with pytest.raises(InvalidInput, match="'y' is categorical"):
            fit.fit_table(table)
        with pytest.raises(InvalidInput, match="'y' is categorical"):
            fit.fit(table[["x0"]], table["y"])


@pytest.mark.parametrize(("family", "label"), [("poisson", -1.0), ("gamma", 0.0), ("gamma", -2.0), ("binomial", 2.0)])
def test_public_labels_outside_the_family_are_refused(family: str, label: float) -> None:
    rows, ledger = RNG.normal(size=(60, 2)), MemoryLedger(GDP(1.0))
    public = PublicMoments.from_rows(rows, np.r_[label, np.ones(59)])
    with pytest.raises(InvalidInput, match=f"that {family} cannot have") as refused:
        DPGLMRegressor(GDP(1.0), family=family, public=public, ledger=ledger).fit(X, Y)
    assert "\n" not in str(refused.value)
    assert not ledger.charges


def test_a_text_that_raises_shows_nothing() -> None:
    class Odd(str):
        def encode(self, *_: object) -> bytes:
            raise ValueError("a secret")

    y = np.array([Odd("1"), "0", "1"], dtype=object)
    DPPoissonRegressor(GDP(1.0), row_bound=1.0, random_state=0).fit(np.ones((3, 1)), y)


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())], ids=lambda kind: str(kind)
)
def test_text_of_arrow_in_pandas_is_text(kind: pa.DataType) -> None:
    found = type_of_array(pd.Series(["a", "b"]).astype(pd.ArrowDtype(kind)))
    assert found is not None
    assert is_text(found)


@pytest.mark.parametrize("kind", [int, float, bool, str])
def test_a_saved_model_predicts_classes_in_the_type_of_the_response(tmp_path: Path, kind: type) -> None:
    y = Y.astype(int).astype(kind)
    fitted = model(classes=["0", "1"] if kind is str else None).fit(X, y)
    fitted.save(tmp_path)
    predicted, read = fitted.predict(X), load(tmp_path / "model.json").predict(X)
    assert read.dtype.kind == predicted.dtype.kind
    assert (read == predicted).all()
    assert np.mean(read == y) > 0.6


def test_a_saved_model_of_three_classes_predicts_them_in_their_type(tmp_path: Path) -> None:
    y = Y.astype(int) + (X[:, 1] > 1)
    fitted = model(classes=[0, 1, 2]).fit(X, y)
    fitted.save(tmp_path)
    read = load(tmp_path / "model.json")
    assert (read.predict(X) == fitted.predict(X)).all()
    record = json.loads((tmp_path / "model.json").read_text())
    for labels in ([0, 1], [1, 0, 2], [0, 1, 1], [[], 1, 2], [0, 1, None], {"0": 1}, None, 5):
        record["response"]["labels"] = labels
        (tmp_path / "model.json").write_text(json.dumps(record))
        with pytest.raises(InvalidInput, match="its labels are not those of its classes"):
            load(tmp_path / "model.json")


def test_truth_values_beside_numbers_are_saved_as_text(tmp_path: Path) -> None:
    """NumPy makes numbers of both, which are not their spelling."""
    fitted = model(classes=[False, True, 2]).fit(X, np.where(X[:, 1] > 1, 2, Y.astype(object)))
    fitted.save(tmp_path)
    assert set(load(tmp_path / "model.json").predict(X)) <= {"false", "true", "2"}


def test_classes_that_no_array_holds_are_saved_as_text(tmp_path: Path) -> None:
    large = Y.astype(object) * 10**30
    model(classes=[0, 10**30]).fit(X, large).save(tmp_path)
    assert set(load(tmp_path / "model.json").predict(X)) <= {"0", str(10**30)}
    mixed = np.where(Y, "yes", "0").astype(object)
    model(classes=[0, "yes"]).fit(X, mixed).save(tmp_path / "mixed")
    found = load(tmp_path / "mixed" / "model.json")
    assert set(found.predict(X)) == {0, "yes"}
    rows = pd.DataFrame(X, columns=["x0", "x1"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert set(found.predict_file(tmp_path / "rows.csv")["y"].to_pylist()) == {"0", "yes"}
