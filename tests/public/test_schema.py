"""Schemas: what is declared, and what a schema file may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpregress import Categorical, Numeric, Schema
from dpregress.errors import SchemaError, UnboundedData

GOOD = """
[age]
lower = 0
upper = 110
unit = "years"

[sex]
levels = ["f", "m"]

[grade]
levels = [1, 2, 3]

[smoker]
levels = [false, true]

[dose]
"""


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    path = tmp_path / "schema.toml"
    path.write_text(GOOD)
    return Schema.from_toml(path)


def test_a_good_file(schema: Schema) -> None:
    assert schema.columns["age"] == Numeric(0.0, 110.0, "years")
    assert schema.columns["sex"] == Categorical(("f", "m"))
    assert schema.columns["grade"] == Categorical(("1", "2", "3"))
    assert schema.columns["dose"] == Numeric()


def test_truth_values_are_written_as_cells_are(schema: Schema) -> None:
    """A column of truth values has cells "true" and "false"; levels spelled otherwise would never be found."""
    assert schema.columns["smoker"] == Categorical(("false", "true"))


@pytest.mark.parametrize(
    "text",
    [
        "age = 3",
        "[age]\nlower = 0",
        "[age]\nlower = 3\nupper = 3",
        "[age]\nlower = 4\nupper = 3",
        "[age]\nlower = 0\nupper = inf",
        "[age]\nlower = nan\nupper = 1",
        '[age]\nlower = "young"\nupper = 1',
        "[age]\nlower = [1]\nupper = 2",
        "[age]\nlow = 0\nhigh = 1",
        '[sex]\nlevels = "f"',
        '[sex]\nlevels = ["f"]',
        '[sex]\nlevels = ["f", "f"]',
        "[sex]\nlevels = []",
        '[sex]\nlevels = ["f", "m"]\nlower = 0',
        "not toml",
        "[age",
        "\0",
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("binary.toml", "none.toml", ""):
        with pytest.raises(SchemaError, match="cannot read"):
            Schema.from_toml(tmp_path / name)


def test_bounds_of_a_column(schema: Schema) -> None:
    assert schema.bounds_of("age") == (0.0, 110.0)
    for name in ("sex", "dose", "none"):
        with pytest.raises(UnboundedData, match=f"no public bounds for '{name}'"):
            schema.bounds_of(name)


def test_bounds_of_design_columns(schema: Schema) -> None:
    """An indicator lies in [0, 1]; a number needs declared bounds."""
    assert schema.bounds_of("sex=m") == (0.0, 1.0)
    assert schema.bounds_all(["age", "sex=m", "grade=3"])
    for name in ("sex=x", "dose", "none=m", "age=1"):
        assert not schema.bounds_all(["age", name])


@pytest.mark.parametrize("bounds", [(0.0, None), (None, 1.0), (1.0, 0.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_half_an_interval_is_refused(bounds: tuple[float | None, float | None]) -> None:
    with pytest.raises(SchemaError):
        Numeric(*bounds)
