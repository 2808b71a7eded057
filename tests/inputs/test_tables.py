"""What users pass becomes numbers by one rule for every kind of input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregress.errors import InvalidInput
from dpregress.inputs.tables import coded, design, matrix, numbers, training_source, training_table
from dpregress.rows.design.encoder import to_numbers
from tests.rows.properties import untimed

nan = float("nan")
VALUES = [1.5, nan, -2.0]


@pytest.mark.parametrize(
    "y",
    [
        VALUES,
        tuple(VALUES),
        np.array(VALUES),
        np.array(VALUES, dtype=object),
        np.array(["1.5", "secret", "-2"]),
        ["1.5", None, -2],
        np.array([b"1.5", b"x", b"-2"]),
        np.array(["1.5", "secret", "-2"], dtype=np.dtypes.StringDType()),
        pd.Series(VALUES),
        pd.Series([1.5, None, -2], dtype=object),
        pd.Series([1.5, pd.NA, -2], dtype="Float64"),
        pd.Series(["1.5", None, "-2"]),
        pd.Series(pd.Categorical(["1.5", "secret", "-2"])),
        pl.Series(VALUES),
        pl.Series([1.5, None, -2.0]),
        pl.Series(["1.5", "secret", "-2"]),
        pa.array([1.5, None, -2.0]),
        pa.chunked_array([[1.5, None], [-2.0]]),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__}",
)
def test_responses_of_every_kind(y: Any) -> None:
    np.testing.assert_array_equal(numbers(y), VALUES)


def test_matrices_of_objects() -> None:
    cells = [["1.5", None, "secret"], [2, object(), 10**400]]
    for x in (cells, np.array(cells, dtype=object)):
        np.testing.assert_array_equal(matrix(x), [[1.5, nan, nan], [2, nan, nan]])


#: Text that only some readers take for a number.
DOUBTFUL = ["1_000", "\u0663", "true", "False", "1\n", "0x10", " 5 ", "1e5", "+5", "1.", "--1", "", "x"]


@pytest.mark.parametrize("text", DOUBTFUL)
def test_text_is_the_same_number_in_arrays_and_tables(text: str) -> None:
    in_table = to_numbers(pa.array([text]))
    np.testing.assert_array_equal(numbers(np.array([text], dtype=object)), in_table)
    np.testing.assert_array_equal(matrix([[text]])[0], in_table)


@given(st.lists(st.one_of(st.none(), st.text(), st.binary(), st.integers(), st.floats(), st.complex_numbers())))
@untimed
def test_no_cell_of_an_object_array_raises(cells: list[Any]) -> None:
    column = np.empty(len(cells) + 1, dtype=object)
    column[:-1] = cells
    assert numbers(column).shape == column.shape
    assert matrix(column[:, None]).shape == (len(column), 1)


def test_one_row_per_response() -> None:
    for x in (np.ones((3, 2)), pd.DataFrame(np.ones((3, 2)), columns=["a", "b"])):
        with pytest.raises(InvalidInput, match="X has 3 rows, y has 2"):
            training_source(x, [1.0, 2.0], target="y", schema=None, public=None)
    with pytest.raises(InvalidInput, match="y is None"):
        training_source(np.ones((3, 2)), None, target="y", schema=None, public=None)


def test_a_feature_may_have_the_targets_name() -> None:
    frame = pd.DataFrame({"y": [1.0, 2.0], "y'": [3.0, 4.0]})
    source, features = training_source(frame, [5.0, 6.0], target="y", schema=None, public=None)
    (chunk,) = source.chunks(10)
    assert features == ("y", "y'")
    np.testing.assert_array_equal(chunk.x, [[1, 3], [2, 4]])
    np.testing.assert_array_equal(chunk.y, [5, 6])


def test_columns_of_a_table_to_fit() -> None:
    frame = pd.DataFrame({"a": [1.0], "y": [2.0], "b": [3.0]})
    assert training_table(frame, "y", None, None, ())[1].features == ("a", "b")
    assert training_table(frame, "y", ["b"], None, ())[1].features == ("b",)
    with pytest.raises(InvalidInput, match="target 'y' is among the features"):
        training_table(frame, "y", ["a", "y"], None, ())
    for target, features in (("z", None), ("y", ["z"])):
        with pytest.raises(InvalidInput, match="no column 'z'"):
            training_table(frame, target, features, None, ())


def test_rows_to_predict_for_are_put_in_order() -> None:
    frame = pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]})
    np.testing.assert_array_equal(design(frame, schema=None, features=("c", "a")), [[3, 1]])
    with pytest.raises(InvalidInput, match="no column 'z'"):
        design(frame, schema=None, features=("a", "z"))


@pytest.mark.parametrize(
    "classes",
    [("0", "1"), ("1.0", "0"), ("a", "b"), ("true", "false"), ("nan", "inf"), ("0.1", "0.2"), ("1", "1.0"), ("-0", "5"),
     ("1e3", "2"), ("9007199254740993", "9007199254740992"), ("1.152921504606847e+18", "3"),
     ("1152921504606846976", "0")],
)  # fmt: skip
@pytest.mark.parametrize(
    "labels",
    [np.array([0, 1, 2, -1]), np.array([0, 1, 2], np.uint8), np.array([0.1, 0.2, 1, 0], np.float32),
     np.array([0, 1, np.nan, np.inf, -np.inf, 0.1, 0.2, 5, -0.0, 1e3, 2.0**60, 2.0**53]), np.array([True, False]),
     np.array([2**60, 0, 2**53 + 1, 2**53]), np.array([2**63 + 5, 1], np.uint64), np.array([0.1, 1], np.float16)],
    ids=lambda labels: labels.dtype.name,
)  # fmt: skip
def test_labels_have_the_same_codes_whatever_holds_them(labels: np.ndarray, classes: tuple[str, str]) -> None:
    np.testing.assert_array_equal(coded(labels, classes), coded(labels.tolist(), classes))
