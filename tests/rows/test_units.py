"""Which rows count, and what an id is."""

from __future__ import annotations

import decimal
import math
import uuid
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpregress.coordinates.exact import ExactVector
from dpregress.errors import InvalidInput
from dpregress.rows import ArraySource, CappedSource, RawRows, ThreadedEngine
from dpregress.rows.readers.files import to_table
from dpregress.rows.units import counted, ids_of, keys_of


def keys(unit: Any) -> list[bytes | None]:
    ids = ids_of(unit)
    chunks = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
    return [key for chunk in chunks for key in keys_of(chunk).to_pylist()]


def plainly(ids: list[Any], most: int) -> list[bool]:
    """The rule, written out."""
    return [key is not None and sum(before == key for before in ids[:place]) < most for place, key in enumerate(ids)]


def test_the_rule_however_the_ids_come_in_chunks(seed: int) -> None:
    """Exact; any seed."""
    rng = np.random.default_rng(seed)
    ids = [None if i == 0 else f"id {i}" for i in rng.integers(9, size=300)]
    for most in (1, 2, 7, 1000):
        cuts = [0, *sorted(rng.integers(300, size=5)), 300]
        chunks = [pa.array(ids[a:b], pa.string()) for a, b in pairwise(cuts)]
        for given in ([pa.array(ids)], chunks, [pa.chunked_array(chunks)], [c.dictionary_encode() for c in chunks]):
            assert counted(given, 300, most).tolist() == plainly(ids, most)


def test_every_pass_and_every_chunk_size_drops_the_same_rows(seed: int) -> None:
    """Exact; any seed."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(50, size=1000)
    source = CappedSource(ArraySource(rng.normal(size=(1000, 2)), rng.normal(size=1000)), [pa.array(ids)], 3)
    expected = plainly(ids.tolist(), 3)
    for rows in (1000, 1, 256, 77, 1000):
        assert np.concatenate([chunk.counts for chunk in source.chunks(rows)]).tolist() == expected
    assert source.n == 1000

    def value(chunk: RawRows) -> ExactVector:
        assert chunk.counts is not None
        return ExactVector(np.array([chunk.counts.sum()]))

    totals = {ThreadedEngine(workers).total(source, value, columns=10_000).whole[0] for workers in (1, 2)}
    assert totals == {sum(expected)}


def test_ids_that_look_alike_are_one_unit() -> None:
    same = [1, "1", 1.0, " 1\t", b"1", np.int8(1), np.float32(1), decimal.Decimal(1)]
    assert set(keys(same)) == {b"1"}
    assert set(keys([0, -0.0, 0.0, "0"])) == {b"0"}
    assert keys([True, "true"]) == [b"true", b"true"]


def test_no_id() -> None:
    class Rude:
        def __float__(self) -> float:
            raise RuntimeError("a private cell")

    none = [None, math.nan, math.inf, "", "  ", pd.NA, pd.NaT, Rude(), 10**5000, [1]]
    wrapped = np.empty(len(none), dtype=object)
    wrapped[:] = none
    assert keys(wrapped) == [None] * len(none)
    assert keys(pa.array([None, None])) == [None, None]


@pytest.mark.parametrize(
    "unit",
    [
        np.array([2**63, 2**63 + 1], dtype=np.uint64),
        [2**70, 2**70 + 1],
        [2**53, 2**53 + 1],
        np.array([b"a", b"b"]),
        np.array(["a", "b"]),
        [b"\xff", b"\xfe"],
        [uuid.UUID(int=1), uuid.UUID(int=2)],
        pd.Series([2**53, 2**53 + 1], dtype=object),
        pa.array([b"ab", b"cd"], pa.binary(2)),
        pa.array(["a", "b"], pa.string_view()),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "b"], pa.string_view())),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([b"a", b"b"], pa.binary_view())),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([b"ab", b"cd"], pa.binary(2))),
        pa.array([1, 2]).dictionary_encode(),
        pa.array([decimal.Decimal("1.20"), decimal.Decimal("1.21")]),
        pa.array([b"\xff", b"\xfe "]),
        pd.Series(["a", "b"], dtype="category"),
        pd.Series([1, 2], dtype="Int64"),
        pl.Series(["a", "b"]),
    ],
    ids=lambda unit: f"{type(unit).__name__} {getattr(unit, 'dtype', getattr(unit, 'type', ''))}",
)
def test_ids_of_many_types_stay_apart(unit: Any) -> None:
    found = keys(unit)
    assert None not in found
    assert len(set(found)) == 2


@pytest.mark.parametrize(
    "unit", ["abc", b"abc", 3, np.zeros((2, 2)), np.array(["2020"], dtype="M8[Y]"), np.array([1j]), pa.array([[1]])]
)
def test_what_is_no_column_of_ids_is_refused(unit: Any) -> None:
    with pytest.raises(InvalidInput, match="unit"):
        ids_of(unit)


@pytest.mark.parametrize(
    "unit",
    [
        np.array([1.0, 2.0]),
        np.array([0.5, 1.5], dtype=np.float16),
        pa.array([1.0, None]),
        pa.array([1.0, 2.0]).dictionary_encode(),
        pd.Series([1, None]),
        pd.Series([1.0, 2.0], dtype="Float64"),
        pd.Series([1.0, 2.0], dtype="category"),
        pl.Series([1.0, 2.0]),
    ],
    ids=lambda unit: f"{type(unit).__name__} {getattr(unit, 'dtype', getattr(unit, 'type', ''))}",
)
def test_ids_of_a_float_type_are_refused(unit: Any) -> None:
    """Above 2^53 two of them are one number, and rows of one person would decide which of another's count."""
    with pytest.raises(InvalidInput, match=r"ids above 2\^53 merge.*by its path"):
        ids_of(unit)


def space_keys(unit: Any) -> list[bytes | None]:
    """Of the column of a data frame, as ``fit_table`` reads it."""
    space = pl.DataFrame({"id": unit}) if isinstance(unit, pl.Series) else pd.DataFrame({"id": unit})
    return keys(to_table(space, ["id"])["id"])


NEXT = b"%d" % (2**53 + 1)
DECIMALS = (str(2**53), str(2**53 + 1), "1.0", "1E+2", "NaN", "-0.0", "1e-999999")
SPELT = {
    "text": (pd.Series(["ann", None, "nan"]), [b"ann", None, b"nan"]),
    "objects": (
        pd.Series([1, np.nan, None, 2.0, 2**53 + 1, np.inf], dtype=object),
        [b"1", None, None, b"2", NEXT, None],
    ),
    "bytes": (pd.Series([b"ann", b"7", b"007", NEXT], dtype=object), [b"ann", b"7", b"007", NEXT]),
    "decimals": (
        pd.Series([decimal.Decimal(text) for text in DECIMALS], dtype=object),
        [b"%d" % 2**53, NEXT, b"1", b"100", None, b"0", b"0"],
    ),
    "uuids": (pd.Series([uuid.UUID(int=1), None], dtype=object), [str(uuid.UUID(int=1)).encode(), None]),
    "nullable": (pd.Series([2**53 + 1, None], dtype="Int64"), [NEXT, None]),
    "arrow's": (pd.Series([2**53 + 1, None], dtype="int64[pyarrow]"), [NEXT, None]),
    "categories": (pd.Series(pd.Categorical([2**53 + 1, None, 2**53])), [NEXT, None, b"%d" % 2**53]),
    "objects of Polars": (
        pl.Series([7, "ann", None, decimal.Decimal(2**53 + 1)], dtype=pl.Object),
        [b"7", b"ann", None, NEXT],
    ),
}


@pytest.mark.parametrize("name", SPELT)
def test_ids_are_the_same_in_a_space_and_beside_one(name: str) -> None:
    """A missing id is none, whatever the type; none merges with another; no missing cell makes a type be refused."""
    unit, expected = SPELT[name]
    assert keys(unit) == expected
    assert space_keys(unit) == expected


def test_ids_of_sparse_floats_are_refused() -> None:
    unit = pd.Series([1.0, None], dtype="Sparse[float]")
    for found in (unit, to_table(pd.DataFrame({"id": unit}), ["id"])["id"]):
        with pytest.raises(InvalidInput, match="ids above"):
            ids_of(found)


def test_masked_ids_are_none() -> None:
    assert keys(np.ma.array([1, 2], mask=[False, True])) == [b"1", None]
    assert keys(np.ma.array(["a", "b"], mask=[False, True])) == [b"a", None]


def test_no_cell_decides_on_the_shape_of_a_list() -> None:
    """A list of n cells is n ids, whatever the cells are; a cell that is a list is none."""
    for unit in (
        ["a", "b", "c"],
        [["a"], ["b"], "c"],
        [["a"], ["b"], ["c"]],
        ["a", ["b", "d"], "c"],
        [("a",), "b", "c"],
    ):
        assert keys(unit) == [None if isinstance(cell, list | tuple) else str(cell).encode() for cell in unit]


def test_no_warning_of_an_id_escapes() -> None:
    class Loud(int):
        def __int__(self) -> int:
            warnings.warn("a secret", stacklevel=1)
            return 7

    assert keys([Loud(7), 1 + 2j, "a"]) == [b"7", None, b"a"]
