"""Domains from schemas: levels, bins, scores, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dpregress import Categorical, Numeric, Schema
from dpregress.errors import InvalidInput, SchemaError, UnboundedData
from dpregress.public.coding import domain_of
from dpregress.rows import LevelRows, RawRows
from dpregress.rows.codes import Coder, decoded


def test_levels_and_bins() -> None:
    schema = Schema(
        {"a": Categorical(("x", "y")), "n": Numeric(0, 10), "k": Categorical(("1", "2", "4"), ordered=True)}
    )
    domain = domain_of(schema, bins=5)
    assert domain.sizes == (2, 5, 3)
    assert domain.attributes[1].values == (1.0, 3.0, 5.0, 7.0, 9.0)
    assert domain.attributes[2].values == (1.0, 2.0, 4.0)
    assert not domain.attributes[2].evenly_spaced
    assert domain.width == 1 + 2 + 1 + 1


def test_cells_become_levels() -> None:
    """The stated rules, cell by cell."""
    schema = Schema(
        {"a": Categorical(("x", "y")), "n": Numeric(0, 10), "k": Categorical(("1", "2", "3"), ordered=True)}
    )
    domain = domain_of(schema, bins=5)
    table = pa.table({
        "a": ["y", "z", None, "x"],
        "n": ["3.9", "-5", "abc", "1e9"],
        "k": pa.array([3, 7, None, 1]),
    })  # fmt: skip
    codes = LevelRows(domain)(RawRows(Coder(domain).codes(table), None)).x
    assert codes.tolist() == [[1, 1, 2], [0, 0, 1], [0, 2, 1], [0, 4, 0]]
    back = decoded(domain, codes.astype(int)).to_pydict()
    assert back == {"a": ["y", "x", "x", "x"], "n": [3.0, 1.0, 5.0, 9.0], "k": [3, 2, 2, 1]}


def test_refusals() -> None:
    wide = {f"c{i}": Categorical(tuple(map(str, range(100)))) for i in range(200)}
    for columns, error, said in (
        ({"a": Numeric(), "b": Numeric(0, 1)}, UnboundedData, "bounds"),
        ({"a": Numeric(0, 1)}, InvalidInput, "two columns"),
        ({"a": Categorical(tuple(map(str, range(2000)))), "b": Numeric(0, 1)}, InvalidInput, "2,000 levels"),
        (wide, InvalidInput, "cells"),
    ):
        with pytest.raises(error, match=said):
            domain_of(Schema(columns))
    with pytest.raises(SchemaError, match="is not among the levels"):
        Schema.from_levels({"a": range(3)}, numeric=["b"])


def test_counts_are_divided_by_whole_numbers() -> None:
    """Every whole number between the bounds is in one bin, and single ones stand for themselves."""
    for lower, upper, bins, size in ((0, 7, 32, 8), (0.0, 99.4, 32, 25), (-3, 3, 2, 2)):
        schema = Schema({"k": Numeric(lower, upper), "x": Numeric(0, 1)})
        found = domain_of(schema, bins=bins, count="k").attributes[0]
        assert found.size == size
        assert found.whole
        assert found.ends[0] == lower - 0.5
        assert found.ends[1] > upper
    assert domain_of(Schema({"k": Numeric(0, 7), "x": Numeric(0, 1)}), count="k").attributes[0].values == tuple(
        range(8)
    )
    for lower, upper in ((0.2, 0.9), (5, 5.5)):
        with pytest.raises(InvalidInput, match="fewer than two whole numbers"):
            domain_of(Schema({"k": Numeric(lower, upper), "x": Numeric(0, 1)}), count="k")
    far = domain_of(Schema({"k": Numeric(0, 1e15), "x": Numeric(0, 1)}), count="k").attributes[0]
    assert (far.size, far.whole) == (32, False)


def test_fills_are_the_bins_of_their_values() -> None:
    schema = Schema({"a": Numeric(0, 10, fill=9.99), "b": Numeric(0, 10, fill=10.0), "c": Numeric(0, 10)})
    assert [attribute.unknown for attribute in domain_of(schema, bins=5).attributes] == [4, 4, 2]
    narrow = domain_of(schema, bins=5).attributes[0].narrowed((0.0, 5.0), 5)
    assert narrow.unknown == 4
    assert narrow.levels == ("1 or less", "1 to 2", "2 to 3", "3 to 4", "4 or more")
