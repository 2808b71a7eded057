"""Rows that count only if certain cells are there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dpregress import Categorical, Schema
from dpregress.errors import InvalidInput
from dpregress.rows.design.complete import CompleteEncoder

TABLE = pa.table({
    "age": pa.array([30.0, None, 50.0, float("inf"), 20.0]),
    "plan": pa.array(["free", "full", None, "full", "gold"]),
    "note": pa.array(["1", "2", "3", "x", None]),
})  # fmt: skip
SCHEMA = Schema({"plan": Categorical(("free", "full"))})


@pytest.mark.parametrize(
    ("required", "counts"),
    [
        (("age",), [True, False, True, False, True]),
        (("plan",), [True, True, False, True, False]),
        (("note",), [True, True, True, False, False]),
        (("age", "plan"), [True, False, False, False, False]),
    ],
)
def test_a_row_counts_if_its_required_cells_are_usable(required: tuple[str, ...], counts: list[bool]) -> None:
    encoder = CompleteEncoder.requiring(("age", "plan", "note"), SCHEMA, required)
    found = encoder.y(TABLE)
    assert found is not None
    np.testing.assert_array_equal(np.isfinite(found), counts)
    assert encoder.features == ("age", "plan=full", "note")
    assert encoder.needed == ("age", "plan", "note")
    np.testing.assert_array_equal(np.isfinite(encoder.responses().y(TABLE)), counts)


def test_nothing_is_required_by_default() -> None:
    assert CompleteEncoder.requiring(("age",), None, ()).y(TABLE) is None


def test_other_columns_cannot_be_required() -> None:
    with pytest.raises(InvalidInput, match="'size' is required"):
        CompleteEncoder.requiring(("age",), None, ("size",))
