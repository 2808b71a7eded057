"""Containers that hold odd cells: no error, no warning, no word of the cell; found by an adversarial review."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpregress import GDP, DPLinearRegression, Numeric, Schema
from dpregress.errors import InvalidInput

SCHEMA = Schema({"age": Numeric(0, 110), "x0": Numeric(0, 110), "y": Numeric(-5, 5)})


class Hostile:
    """A cell whose conversion raises what it likes."""

    def __float__(self) -> float:
        raise ZeroDivisionError("secret")


def ages(cell: Any) -> np.ndarray:
    column = np.empty(200, dtype=object)
    column[:] = list(np.arange(200) % 90)
    column[7] = cell
    return column


@pytest.mark.parametrize("kind", ["object", "category", "string"])
@pytest.mark.parametrize(
    "cell", ["HIV positive, see notes", None, True, "\ud800", pd.Timestamp("2020-01-01"), (1, 2)], ids=repr
)
def test_pandas_columns(kind: str, cell: Any) -> None:
    if kind == "string" and not isinstance(cell, str | None):
        pytest.skip("a text column holds texts")
    if kind == "string" and cell == "\ud800":
        pytest.skip("pandas itself refuses a lone surrogate here")
    if kind == "category" and isinstance(cell, tuple):
        pytest.skip("pandas itself refuses a tuple as a category")
    column = ages(cell).tolist()
    values = [None if value is None else str(value) for value in column] if kind == "string" else column
    frame = pd.DataFrame({"age": pd.Series(values, dtype=object).astype(kind), "y": np.linspace(-1, 1, 200)})
    model = DPLinearRegression(GDP(50.0), schema=SCHEMA).fit_table(frame, "y")
    assert np.isfinite(model.coef_).all()


def numeric_tables() -> dict[str, tuple[Any, Any]]:
    x, y = np.linspace(0, 90, 200)[:, None], np.linspace(-1, 1, 200)
    huge = x.astype(np.longdouble)
    huge[3] = np.longdouble("1e4000")
    signalling = x.astype(np.float32)
    signalling.view(np.uint32)[3] = 0x7FA00000
    masked = ages(np.ma.masked)[:, None]
    return {
        "longdouble": (huge, y),
        "signalling NaN": (signalling, y),
        "masked": (masked, y),
        "hostile": (ages(Hostile())[:, None], y),
        "arrow y that is not UTF-8": (x, pa.array([b"1"] * 199 + [b"\xff"]).view(pa.string())),
    }


@pytest.mark.parametrize("name", list(numeric_tables()))
def test_arrays(name: str) -> None:
    x, y = numeric_tables()[name]
    assert np.isfinite(DPLinearRegression(GDP(50.0), schema=SCHEMA).fit(x, y).coef_).all()


def test_few_labels_do_not_set_the_scale() -> None:
    """Two public labels once clipped the response to nothing: the bounds of the schema stand instead.

    Failure below 1e-12: at mu = 10 the noise of the coefficients is below .01.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, size=(4000, 3))
    y = x.sum(axis=1)
    from dpregress import PublicMoments

    schema = Schema({**{f"x{i}": Numeric(0, 1) for i in range(3)}, "y": Numeric(0, 3)})
    public = PublicMoments.from_rows(x[:2], y[:2])
    model = DPLinearRegression(GDP(10.0), public=public, schema=schema).fit(x, y)
    assert np.abs(model.coef_ - 1).max() < 0.2


def test_an_array_is_no_table_and_is_not_shown() -> None:
    model = DPLinearRegression(GDP(1.0), schema=SCHEMA)
    with pytest.raises(InvalidInput, match="ndarray is neither a path nor a table") as caught:
        model.fit_table(np.full((5, 2), 31337.25), "y")
    assert "31337" not in str(caught.value)
    with pytest.raises(InvalidInput, match="a list of column names"):
        model.fit_table(pd.DataFrame({"age": [1.0], "y": [1.0]}), "y", "age")
