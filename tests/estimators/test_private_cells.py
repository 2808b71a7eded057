"""No error and no warning of a fit or a prediction shows a private cell, whatever was passed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregress import GDP, DPLinearRegression, PublicMoments
from dpregress.errors import InvalidInput
from dpregress.solvers.linear import residual
from tests.rows.leaks import everything_said
from tests.rows.properties import untimed

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)), RNG.normal(size=30)
PUBLIC = PublicMoments.from_rows(RNG.normal(size=(40, 3)), RNG.normal(size=40))
SECRET = 31337.25
SECRET_TEXT = "31337 is my salary"
SHOWN = "31337"


def model() -> DPLinearRegression:
    return DPLinearRegression(GDP(1.0), public=PUBLIC)


@pytest.fixture
def planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The radius and the clip are planned once for each n: they depend on public facts alone."""
    plan, made = residual.plan_labelled, {}

    def remembered(*facts: Any, n: int, **more: Any) -> Any:
        if n not in made:
            made[n] = plan(*facts, n=n, **more)
        return made[n]

    monkeypatch.setattr(residual, "plan_labelled", remembered)


def said(call: Callable[[], object]) -> str:
    """What a call's error says; warnings are errors in these tests, so what a warning says is looked at too."""
    try:
        call()
    except Exception as error:
        return everything_said(error)
    return ""


def spoiled(cell: Any) -> np.ndarray:
    """X as objects, with one cell."""
    x = X.astype(object)
    x[3, 1] = cell
    return x


STRANGE_X: dict[str, Any] = {
    "one dimension": np.full(30, SECRET),
    "no dimension": np.float64(SECRET),
    "three dimensions": np.full((30, 3, 2), SECRET),
    "list of one dimension": [SECRET] * 30,
    "complex": X + SECRET * 1j,
    "text in objects": spoiled(SECRET_TEXT),
    "complex in objects": spoiled(SECRET * 1j),
    "list in objects": spoiled([SECRET]),
    "text": X.astype(object).astype(str),
    "text of variable width": np.array([[SECRET_TEXT] * 3] * 30, dtype=np.dtypes.StringDType()),
    "ragged lists": [[SECRET] * 3, [SECRET] * 2] * 15,
    "lists of text": [[SECRET_TEXT, "1", "2"]] * 30,
    "records": np.array([(SECRET, SECRET_TEXT)] * 30, dtype=[("a", "f8"), ("b", "U30")]),
    "a series": pd.Series([SECRET] * 30),
    "a Polars series": pl.Series([SECRET] * 30),
    "nothing": None,
    "a word": SECRET_TEXT,
    "a dictionary": {"x0": [SECRET] * 30},
    "a set": {SECRET},
    "pandas with text": pd.DataFrame(spoiled(SECRET_TEXT), columns=["x0", "x1", "x2"]),
    "pandas with a half character": pd.DataFrame(spoiled(SECRET_TEXT + "\ud800"), columns=["x0", "x1", "x2"]),
    "pandas with lists": pd.DataFrame(spoiled([SECRET]), columns=["x0", "x1", "x2"]),
    "pandas with another column": pd.DataFrame(X, columns=["x0", "x1", "z"]) + SECRET,
    "Arrow with lists": pa.table({"x0": [[SECRET]] * 30, "x1": [1.0] * 30, "x2": [1.0] * 30}),
    "too few rows": X[:-1] + SECRET,
    "no rows": X[:0],
    "too few columns": X[:, :2] + SECRET,
}
STRANGE_Y: dict[str, Any] = {
    "two dimensions": np.full((30, 2), SECRET),
    "a column": np.full((30, 1), SECRET),
    "no dimension": np.float64(SECRET),
    "complex": Y + SECRET * 1j,
    "text": np.array([SECRET_TEXT] * 30),
    "text in objects": np.array([SECRET_TEXT, *Y[1:]], dtype=object),
    "text of variable width": np.array([SECRET_TEXT] * 30, dtype=np.dtypes.StringDType()),
    "list of text": [SECRET_TEXT] * 30,
    "ragged lists": [[SECRET], [SECRET, SECRET]] * 15,
    "records": np.array([(SECRET, 1)] * 30, dtype=[("a", "f8"), ("b", "i8")]),
    "dates": np.array(["3133-07-01"] * 30, dtype="M8[D]"),
    "a word": SECRET_TEXT,
    "a dictionary": {"y": SECRET},
    "a set": {SECRET},
    "categorical": pd.Series([SECRET_TEXT, "x"] * 15, dtype="category"),
    "too few": Y[:-1] + SECRET,
    "a frame": pd.DataFrame({"y": Y + SECRET}),
}


@pytest.mark.parametrize("kind", STRANGE_X)
def test_strange_features_are_not_shown(kind: str) -> None:
    assert SHOWN not in said(lambda: model().fit(STRANGE_X[kind], Y))


@pytest.mark.parametrize("kind", STRANGE_Y)
def test_strange_responses_are_not_shown(kind: str) -> None:
    assert SHOWN not in said(lambda: model().fit(X, STRANGE_Y[kind]))


@pytest.mark.parametrize("kind", STRANGE_X)
def test_strange_rows_to_predict_for_are_not_shown(kind: str) -> None:
    fitted = model().fit(X, Y)
    assert SHOWN not in said(lambda: fitted.predict(STRANGE_X[kind]))


cells = st.one_of(st.text(), st.none(), st.integers(), st.floats(), st.complex_numbers(), st.binary(), st.dates())


@given(st.lists(st.tuples(cells, cells, cells, cells), min_size=1, max_size=5))
@untimed
@pytest.mark.usefixtures("planned_once")
def test_no_object_makes_a_fit_raise(rows: list[tuple[Any, ...]]) -> None:
    """Neither in arrays nor in tables: an error that depends on a cell is itself a release."""
    table = np.empty((len(rows) + 30, 4), dtype=object)
    table[:30, :3], table[:30, 3] = X, Y
    for row, values in enumerate(rows, start=30):
        table[row] = values
    assert np.isfinite(model().fit(table[:, :3], table[:, 3]).coef_).all()
    frame = pd.DataFrame(table[:, :3], columns=["x0", "x1", "x2"])
    assert np.isfinite(model().fit(frame, table[:, 3]).coef_).all()


LINES = [
    b"31337",
    b"31337,2,3,4,5",
    b"\xff31337",
    b'"31337,2,3,4',
    b"31337\xff,,,\xfe",
    b"31337 is my salary,1,2,3",
    b"31337" + b"7" * (3 << 20) + b",1,2,3",
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: repr(line[:20]))
def test_lines_of_a_file_are_not_shown(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x0,x1,x2,y\n" + b"1,2,3,4\n" * 5 + line + b"\n" + b"1,2,3,4\n" * 5)
    assert SHOWN not in said(lambda: model().fit_table(path, "y"))


@given(st.lists(st.binary().map(lambda cell: b",".join([cell.translate(None, b'\r\n"')] * 4)), max_size=4))
@untimed
@pytest.mark.usefixtures("planned_once")
def test_no_line_of_a_file_makes_a_fit_raise(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x0,x1,x2,y\n" + b"\n".join([b"1,2,3,4"] * 30 + lines) + b"\n")
    assert np.isfinite(model().fit_table(path, "y").coef_).all()


def test_what_is_refused_is_refused_in_one_line() -> None:
    """For the shapes a user is likely to get wrong."""
    for x, y in ((np.full(30, SECRET), Y), (X, np.ones((30, 2))), (X[:-1], Y), (X[:0], Y[:0]), (X + 1j, Y)):
        with pytest.raises((InvalidInput, ValueError)) as caught:
            model().fit(x, y)
        assert isinstance(caught.value, InvalidInput), caught.value
        assert "\n" not in str(caught.value)
