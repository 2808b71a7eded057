"""Schemas: what is declared, and what a schema file may say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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

[bmi]
missing = "indicator"
fill = 25.0

[region]
levels = ["north", "south"]
missing = "south"

["a \\"b\\" = ü"]
levels = ["x", "1.5", "\\\\ tab"]
missing = "level"
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


def test_missing_rules(schema: Schema) -> None:
    assert schema.columns["bmi"] == Numeric(missing="indicator", fill=25.0)
    assert schema.columns["bmi"].design("bmi") == ("bmi", "bmi=missing")
    region, odd = schema.columns["region"], schema.columns['a "b" = ü']
    assert isinstance(region, Categorical)
    assert isinstance(odd, Categorical)
    assert (region.design("region"), region.stand_in) == (("region=south",), 1)
    assert (odd.all_levels, odd.stand_in) == (("x", "1.5", "\\ tab", "missing"), 3)
    assert Categorical(("f", "m")).stand_in == 0


def test_a_schema_written_is_read_back(schema: Schema, tmp_path: Path) -> None:
    wide = {
        "": Numeric(-1e80, 1e80),
        "x": Numeric(1e-7, 0.1, 'a "unit"\\', fill=0.05),
        "ü=1": Categorical(("é", "\u00a0", "#")),
    }
    whole = Schema({**schema.columns, **wide})
    whole.save(tmp_path / "again.toml")
    assert Schema.from_toml(tmp_path / "again.toml") == whole
    assert Schema.from_toml(tmp_path / "again.toml").to_toml() == whole.to_toml()


def test_codes_become_levels() -> None:
    schema = Schema.from_levels({"sex": 2, "age": [3, 1, 2], "code": ["a", "b"]}, numeric=["age"])
    assert schema.columns == {
        "sex": Categorical(("0", "1")),
        "age": Categorical(("1", "2", "3"), ordered=True),
        "code": Categorical(("a", "b")),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("levels", "numeric", "words"),
    [
        ({"a": 2}, ["b"], "'b' is not among"),
        ({"a": 2}, "a", "list of column names"),
        ({"a": 1}, [], "'a': the number of codes"),
        ({"a": 10**7}, [], "'a': the number of codes"),
        ({"a": "xy"}, [], "'a': give its codes"),
        ({"a": 2.5}, [], "'a': give its codes"),
        ({"a": []}, ["a"], "at least two different"),
        ({"a": [1, 1]}, [], "at least two different"),
        ({"a": [1, None]}, [], "texts or finite numbers"),
    ],
)
def test_codes_that_are_none_are_refused(levels: Any, numeric: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.from_levels(levels, numeric)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Schema([]), "maps names"),  # type: ignore[arg-type]
        (lambda: Schema({1: Numeric()}), "must be text"),  # type: ignore[dict-item]
        (lambda: Schema({"a\nb": Numeric()}), "must be text"),
        (lambda: Schema({"a": "number"}), "Numeric or a Categorical, not str"),  # type: ignore[dict-item]
        (lambda: Schema({"a=m": Numeric(), "a": Categorical(("f", "m"))}), "'a=m' twice"),
        (lambda: Schema({"a": Numeric(missing="indicator"), "a=missing": Numeric()}), "twice"),
        (lambda: Numeric("0", 1), "lower must be a number"),  # type: ignore[arg-type]
        (lambda: Numeric(0, True), "upper must be a number"),
        (lambda: Numeric(0, 10**400), "upper is too large"),
        (lambda: Numeric(unit="a\nb"), "unit must be text"),
        (lambda: Numeric(unit=3), "unit must be text"),  # type: ignore[arg-type]
        (lambda: Numeric(missing="median"), "not 'median'"),  # type: ignore[arg-type]
        (lambda: Numeric(0, 1, fill=2), "within the bounds"),
        (lambda: Numeric(fill=float("inf")), "within the bounds"),
        (lambda: Categorical("fm"), "list of texts"),  # type: ignore[arg-type]
        (lambda: Categorical(("f", "")), "not empty"),
        (lambda: Categorical(("f", "m\x00")), "control characters"),
        (lambda: Categorical(("f", "m"), missing="x"), "one of the levels"),
        (lambda: Categorical(("f", "missing"), missing="level"), "is ambiguous"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


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
        '[sex]\nlevels = ["f", ""]',
        '[sex]\nlevels = ["f", "m\\u0007"]',
        '[sex]\nlevels = ["f", nan]',
        '[sex]\nlevels = ["f", 2020-01-01]',
        '[sex]\nlevels = ["f", ["m"]]',
        '[sex]\nlevels = ["f", "m"]\nmissing = "x"',
        '[sex]\nlevels = ["f", "m"]\nmissing = ["f"]',
        '[age]\nmissing = "level"',
        "[age]\nmissing = 3",
        "[age]\nlower = true\nupper = 3",
        "[age]\nlower = 0\nupper = 1\nfill = 2",
        "[age]\nfill = nan",
        "[age]\nunit = 3",
        "[age]\nlower = 0\nupper = " + "9" * 400,
        "[age]\nlower = 2020-01-01\nupper = 3",
        "[age.old]\nlower = 0",
        "[age]\n[age]",
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
