"""Cells become numbers or levels by their column's declared type; no cell makes anything raise."""

from __future__ import annotations

import decimal
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregress import Categorical, Numeric, Schema
from dpregress.errors import InvalidInput
from dpregress.rows import Encoder
from dpregress.rows.design.encoder import text_of, to_codes, to_numbers
from dpregress.rows.readers.files import to_table
from tests.rows.properties import untimed

nan, inf = float("nan"), float("inf")
LEVELS = ("none", "1", "2.5", "true", "x")

SCHEMA = Schema({"age": Numeric(0, 110), "sex": Categorical(("f", "m", "x")), "y": Numeric(0, 1)})


# ------------------------------------------------------------------ columns


def test_design_columns_are_named_after_levels() -> None:
    encoder = Encoder.of(["age", "sex", "dose"], "y", SCHEMA)
    assert encoder.features == ("age", "sex=m", "sex=x", "dose")
    assert encoder.needed == ("age", "sex", "dose", "y")


def test_design_and_response() -> None:
    encoder = Encoder.of(["sex", "age"], "y", SCHEMA)
    table = pa.table({"y": [1.0, None], "age": ["7", "old"], "sex": ["x", "?"]})
    np.testing.assert_array_equal(encoder.x(table), [[0, 1, 7], [0, 0, nan]])
    np.testing.assert_array_equal(encoder.y(table), [1, nan])
    assert Encoder.of(["age"], None, SCHEMA).y(table) is None
    assert Encoder(()).x(table).shape == (2, 0)


def test_missing_cells_by_the_declared_rules() -> None:
    schema = Schema(
        {
            "age": Numeric(0, 110, missing="indicator"),
            "sex": Categorical(("f", "m"), missing="m"),
            "job": Categorical(("a", "b"), missing="level"),
        }
    )
    encoder = Encoder.of(["age", "sex", "job"], None, schema)
    assert encoder.features == ("age", "age=missing", "sex=m", "job=b", "job=missing")
    cells = [(7.0, "f", "a"), (None, None, None), (inf, "q", "missing"), (nan, "m", "b")]
    age, sex, job = zip(*cells, strict=True)
    table = pa.table({"age": age, "sex": sex, "job": job})
    np.testing.assert_array_equal(
        encoder.x(table), [[7, 0, 0, 0, 0], [nan, 1, 1, 0, 1], [inf, 1, 1, 0, 1], [nan, 1, 1, 1, 0]]
    )


def test_a_column_called_like_an_indicator_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'sex=m' has the name of an indicator"):
        Encoder.of(["sex", "sex=m"], None, SCHEMA)


def test_a_categorical_response_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'sex' is categorical"):
        Encoder.of(["age"], "sex", SCHEMA)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pa.table({"age": [1]}), "no column 'y'"),
        (pa.table([[1], [2], [3]], names=["age", "y", "y"]), "several columns 'y'"),
        (pa.table({"age": [[1]], "y": [1]}), "'age' is of type list"),
        (pa.table({"age": [{"a": 1}], "y": [1]}), "'age' is of type struct"),
        (pa.table({"age": pa.array([0], pa.timestamp("s")), "y": [1]}), "'age' is of type timestamp"),
        (pa.table({"age": pa.array([b"abc"], pa.binary(3)), "y": [1]}), "'age' is of type fixed_size_binary"),
    ],
    ids=["absent", "twice", "list", "struct", "timestamp", "bytes"],
)
def test_columns_that_cannot_be_read_are_refused_by_type(table: pa.Table, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Encoder.of(["age"], "y", None).check_types(table.schema)


READABLE: dict[str, tuple[pa.Array, list[float], list[int]]] = {
    "double": (pa.array([1.0, 2.5, nan, inf]), [1, 2.5, nan, inf], [1, 2, 0, 0]),
    "half": (pa.array(np.array([1.0, 2.5], np.float16)), [1, 2.5], [1, 2]),
    "float": (pa.array([1.0, 2.5], pa.float32()), [1, 2.5], [1, 2]),
    "int": (pa.array([1, 2**63 - 1, None]), [1, 2.0**63, nan], [1, 0, 0]),
    "unsigned": (pa.array([2**64 - 1, 1], pa.uint64()), [2.0**64, 1], [0, 1]),
    "bool": (pa.array([True, False, None]), [1, 0, nan], [3, 0, 0]),
    "null": (pa.nulls(2), [nan, nan], [0, 0]),
    "decimal": (pa.array([decimal.Decimal("2.5"), None]), [2.5, nan], [2, 0]),
    "text": (pa.array(["1", "x", None]), [1, nan, nan], [1, 4, 0]),
    "large text": (pa.array(["1", "x"], pa.large_string()), [1, nan], [1, 4]),
    "text view": (pa.array(["1", "x"], pa.string_view()), [1, nan], [1, 4]),
    "bytes": (pa.array([b"1", b"x", b"\xff"]), [1, nan, nan], [1, 4, 0]),
    "bytes view": (pa.array([b"1", b"x", b"\xff"], pa.binary_view()), [1, nan, nan], [1, 4, 0]),
    "large bytes": (pa.array([b"1", b"x"], pa.large_binary()), [1, nan], [1, 4]),
    "dictionary of text": (pa.array(["1", "x", None, "1"]).dictionary_encode(), [1, nan, nan, 1], [1, 4, 0, 1]),
    "dictionary of numbers": (pa.array([1.0, 2.5]).dictionary_encode(), [1, 2.5], [1, 2]),
    "dictionary of integers": (pa.array([1, 7, 1]).dictionary_encode(), [1, 7, 1], [1, 0, 1]),
    "dictionary of views": (
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["1", "x"], pa.string_view())),
        [nan, 1, nan],
        [4, 1, 0],
    ),
}


@pytest.mark.parametrize("kind", READABLE)
@pytest.mark.parametrize("chunked", [False, True])
def test_every_readable_type(kind: str, chunked: bool) -> None:
    column, numbers, levels = READABLE[kind]
    whole: Any = pa.chunked_array([column.slice(0, 1), column.slice(1)]) if chunked else column
    Encoder((("a", Numeric()),)).check_types(pa.schema([("a", column.type)]))
    np.testing.assert_array_equal(to_numbers(whole), numbers)
    np.testing.assert_array_equal(np.nan_to_num(to_codes(whole, LEVELS)), levels)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7), (" 7\t", 7), ("+5", 5), ("-.5", -0.5), ("1.", 1), ("1e5", 1e5), ("1E-5", 1e-5), ("-0", 0),
        ("1e999", inf), ("-1e999", -inf), ("1e-999", 0), ("9" * 400, inf), ("0" * 500 + "1", 1),
        ("true", 1), ("False", 0),
        ("", nan), ("abc", nan), ("0x10", nan), ("1_000", nan), ("1,5", nan), ("--1", nan), ("+-1", nan), ("1e", nan),
        ("e5", nan), (".", nan), ("inf", nan), ("nan", nan), ("1 2", nan), ("1\n", nan), ("1\0", nan), ("\u0663", nan),
        ("1e99999", nan),
    ],
)  # fmt: skip
def test_text_is_a_number_where_it_is_one(text: str, number: float) -> None:
    np.testing.assert_array_equal(to_numbers(pa.array([text])), [number])


# ------------------------------------------------------------------ the same cells in another library

MIXED = ["m", "x", None, "f", "q", "m"]
TABLES = {
    "pandas text": lambda cells: pd.DataFrame({"sex": cells}),
    "pandas objects": lambda cells: pd.DataFrame({"sex": pd.Series(cells, dtype=object)}),
    "pandas categorical": lambda cells: pd.DataFrame({"sex": pd.Categorical(cells)}),
    "Polars text": lambda cells: pl.DataFrame({"sex": cells}),
    "Polars categorical": lambda cells: pl.DataFrame({"sex": pl.Series(cells, dtype=pl.Categorical)}),
    "Polars enum": lambda cells: pl.DataFrame({"sex": pl.Series(cells, dtype=pl.Enum(["q", "x", "m", "f"]))}),
    "Arrow text": lambda cells: pa.table({"sex": cells}),
    "Arrow dictionary": lambda cells: pa.table({"sex": pa.array(cells).dictionary_encode()}),
    "Arrow bytes": lambda cells: pa.table({"sex": [None if cell is None else cell.encode() for cell in cells]}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_levels_are_the_same_in_every_library(kind: str) -> None:
    table = to_table(TABLES[kind](MIXED))
    encoder = Encoder.of(["sex"], None, SCHEMA)
    encoder.check_types(table.schema)
    np.testing.assert_array_equal(encoder.x(table), [[1, 0], [0, 1], [0, 0], [0, 0], [0, 0], [1, 0]])


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series([True, None, False], dtype=object),
        pd.Series(["true", None, "false"]),
        pd.Series(pd.Categorical([True, None, False])),
    ],
    ids=["nullable", "objects", "text", "categorical"],
)
def test_truth_values_are_one_pair_of_levels(cells: pd.Series) -> None:
    table = to_table(pd.DataFrame({"smoker": cells}))
    encoder = Encoder.of(["smoker"], None, Schema({"smoker": Categorical(("false", "true"))}))
    np.testing.assert_array_equal(encoder.x(table)[:, 0], [1, 0, 0])
    np.testing.assert_array_equal(Encoder.of(["smoker"], None, None).x(table)[[0, 2], 0], [1, 0])


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([2, None, 1], dtype="Int64"),
        pd.Series([2.0, None, 1.0]),
        pd.Series([2, None, 1], dtype=object),
        pd.Series([2.0, None, 1.0], dtype=object),
        pd.Series(["2", None, "1"]),
        pd.Series(pd.Categorical([2, None, 1])),
    ],
    ids=["nullable", "float", "objects", "float objects", "text", "categorical"],
)
def test_whole_numbers_are_levels_however_they_are_kept(cells: pd.Series) -> None:
    """A column of integers becomes one of floats as soon as a cell is missing."""
    table = to_table(pd.DataFrame({"grade": cells}))
    encoder = Encoder.of(["grade"], None, Schema({"grade": Categorical(("1", "2", "3"))}))
    np.testing.assert_array_equal(encoder.x(table), [[1, 0], [0, 0], [0, 0]])


# ------------------------------------------------------------------ garbage

#: Anything a cell of a text or object column can hold.
garbage = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**5000), 1 << 64]),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.text(st.characters()),  # with surrogates
    st.binary(),
    st.decimals(),
    st.fractions(),
    st.dates(),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.just(object()),
    st.just(pd.NA),
    st.just(pd.NaT),
)


def check_harmless(column: Any, rows: int) -> None:
    numbers, levels = to_numbers(column), np.nan_to_num(to_codes(column, LEVELS))
    assert numbers.shape == levels.shape == (rows,)
    assert numbers.dtype == np.float64
    assert ((levels >= 0) & (levels < len(LEVELS))).all()


@pytest.mark.parametrize("levels", [["1", "120000000000"], ["120000000000", "none"], ["7", "120000000000", "8"]])
def test_a_gap_does_not_change_how_other_cells_are_read(levels: list[str]) -> None:
    """A gap makes a column of integers one of floats: Arrow spells those as 1.2e+11."""
    cells = [120_000_000_000, 1, 7, 120_000_000_001]
    whole = to_codes(pa.array(cells), levels)
    gap = to_codes(to_table(pd.DataFrame({"c": [*cells, None]})).column("c"), levels)
    assert np.array_equal(gap, [*whole, np.nan], equal_nan=True)
    assert whole[0] == levels.index("120000000000")


@given(st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))), min_size=1, max_size=8))
@untimed
def test_no_text_raises(cells: list[str | None]) -> None:
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        check_harmless(pa.array(cells, kind), len(cells))
    check_harmless(pa.array(cells, pa.string()).dictionary_encode(), len(cells))


@given(st.lists(st.one_of(st.none(), st.binary()), min_size=1, max_size=8))
@untimed
def test_no_bytes_raise(cells: list[bytes | None]) -> None:
    check_harmless(pa.array(cells, pa.binary()), len(cells))


@given(st.lists(st.from_regex(r"\A[ +-]?[0-9]*\.?[0-9]*([eE][+-]?[0-9]*)?[ ]?\Z"), min_size=1, max_size=8))
@untimed
def test_nothing_like_a_number_raises(cells: Sequence[str]) -> None:
    check_harmless(pa.array(cells), len(cells))


@given(st.lists(garbage, min_size=1, max_size=8))
@untimed
def test_no_object_in_a_pandas_column_raises(cells: list[Any]) -> None:
    column = pd.Series([None] * len(cells), dtype=object)
    for row, cell in enumerate(cells):
        column.iat[row] = cell
    check_harmless(to_table(pd.DataFrame({"a": column}))["a"], len(cells))


# ------------------------------------------------------------------ responses that are classes


@pytest.mark.parametrize(
    ("cells", "classes", "positions"),
    [
        (["1.0", "0.0", " 1", "0e0", "2", "x", None], ("0", "1"), [1, 0, 1, 0, nan, nan, nan]),
        ([True, False, None], ("0", "1"), [1, 0, nan]),
        ([1.0, 0.0, nan], ("false", "true"), [1, 0, nan]),
        (["True", "false"], ("0", "1"), [1, 0]),
        (["1", "1.0", "1.00"], ("1", "1.0"), [0, 1, nan]),
        (["true", "1", "1.0"], ("true", "1"), [0, 1, nan]),
        (["well", "ill", "1"], ("well", "ill"), [0, 1, nan]),
        (["low", "2.0", "2"], ("low", "2"), [0, 1, 1]),
    ],
)
def test_a_class_is_its_spelling_or_else_its_number(
    cells: list[Any], classes: tuple[str, ...], positions: list[float]
) -> None:
    whole = to_codes(pa.array(cells), classes)
    np.testing.assert_array_equal(whole, positions)
    alone = [to_codes(pa.array([cell], pa.array(cells).type), classes)[0] for cell in cells]
    np.testing.assert_array_equal(alone, whole)  # no cell has a say in another


# ------------------------------------------------------------------ objects


class Loud:
    """Warns, and then is a number."""

    def __float__(self) -> float:
        warnings.warn("a secret", stacklevel=1)
        return 2.0


class OddText(str):
    """Text that raises when it is asked for its bytes."""

    def encode(self, *_: object) -> bytes:
        raise ValueError("a secret")


class Hidden:
    """Raises when it is asked what it is."""

    @property
    def __class__(self) -> Any:
        raise ValueError("a secret")


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (1 + 2j, None),
        (np.complex128(3 + 1j), None),
        (np.array(3 + 1j), None),
        (np.array(2.0), "2"),
        (Loud(), "2"),
        (OddText("abc"), "abc"),
        (Hidden(), None),
        (decimal.Decimal("2.5"), "2.5"),
        (decimal.Decimal("sNaN"), None),
        (np.float32(3), "3"),
        (float("nan"), None),
        (float("-inf"), None),
        (decimal.Decimal(2**53 + 1), str(2**53 + 1)),
        (decimal.Decimal("0.10"), "0.1"),
        (b"007", "007"),
        (bytearray(b"\xff"), "\\xff"),
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_no_warning_and_no_error_of_an_object_escapes(cell: Any, text: str | None) -> None:
    assert text_of(cell) == text


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_levels_that_short_floats_round(kind: pa.DataType) -> None:
    """They are spelt alike where their values differ by rounding."""
    cells = pa.array(np.array([0.5, 0.1, 3.0], dtype=kind.to_pandas_dtype()), kind)
    expected = [0.0, np.nan, 2.0] if pa.types.is_float16(kind) else [0.0, 1.0, 2.0]
    assert np.array_equal(to_codes(cells, ("0.5", "0.1", "3")), expected, equal_nan=True)


def test_levels_that_floats_merge_are_text() -> None:
    """An absent cell makes floats of whole numbers, so that neither are read: no cell decides."""
    schema = Schema({"id": Categorical([str(2**53), str(2**53 + 1)])})
    encoder = Encoder.of(["id"], None, schema)
    text = pa.table({"id": [str(2**53), str(2**53 + 1), None]})
    encoder.check_types(text.schema)
    assert encoder.x(text).ravel().tolist() == [0, 1, 0]
    for kind in (pa.int64(), pa.float64()):
        with pytest.raises(InvalidInput, match="may be another number"):
            encoder.check_types(pa.schema({"id": kind}))
    Encoder.of(["id"], None, Schema({"id": Categorical(["1", "2"])})).check_types(pa.schema({"id": pa.float64()}))
