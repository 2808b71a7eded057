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
