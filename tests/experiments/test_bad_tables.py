"""A table of the data folder that is not the one of the source is refused in one line that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress.datasets import dataset_named
from dpregress.errors import InvalidInput
from dpregress.experiments import cao_logistic, cao_ridge, wang_tables, wu_tables
from dpregress.experiments.coded_tables import TASKS, CodedSplit
from tests.support import run

ROWS = 3_000
Read = Callable[[], object]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path))
    for cached in (wang_tables._rows, cao_logistic._rows, wu_tables.scaled_table):
        cached.cache_clear()
    return tmp_path


def _ridge(name: str) -> Read:
    setting = cao_ridge.RidgeSetting("n", name, 1_000, 100, 1.0, 0.0, 1e-3)
    return lambda: cao_ridge._table(setting, np.random.default_rng(0))


def _coded(place: int) -> Read:
    return lambda: CodedSplit.of(TASKS[place], np.random.default_rng(0))


READERS: dict[str, Read] = {
    "wine_quality_white": _ridge("wine_quality_white"),
    "power_plant": _ridge("power_plant"),
    **{name: partial(cao_logistic._rows, name) for name in ("bank_marketing", "banknote")},
    **{name: partial(wang_tables._rows, name) for name in ("covertype", "susy", "skin_segmentation")},
    **{name: partial(wu_tables.scaled_table, name) for name in ("insurance", "bike_sharing", "sgemm_gpu")},
    "adult_discretized": _coded(0),
    "acs_income": _coded(1),
    "fire": _coded(2),
    "nist_taxi": _coded(3),
}


def _refused(name: str, table: pa.Table, folder: Path) -> str:
    pq.write_table(table, folder / f"{name}.parquet")
    with pytest.raises(InvalidInput, match=rf"{name}\.parquet") as refusal:
        READERS[name]()
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize("name", READERS)
def test_other_columns_are_refused(name: str, folder: Path) -> None:
    text = _refused(name, pa.table({"other": np.arange(ROWS)}), folder)
    assert f"{name}.parquet has no column" in text
    assert "needs the columns" in text


@pytest.mark.parametrize("name", [name for name in READERS if name != "bank_marketing"])
def test_text_for_numbers_is_refused(name: str, folder: Path) -> None:
    known = dataset_named(name).columns or (TASKS[0].target, "PINCP", "Priority", "trip_total")
    cells = dict.fromkeys(known, ["a", "b"] * ROWS)
    if "dteday" in cells:
        cells["dteday"] = ["2011-01-01", "2011-01-31"] * ROWS
    assert "where numbers are needed" in _refused(name, pa.table(cells), folder)


def test_dates_are_dates(folder: Path) -> None:
    cells = dict.fromkeys(dataset_named("bike_sharing").columns, ["1", "2"] * ROWS)
    assert "dates such as" in _refused("bike_sharing", pa.table(cells), folder)


#: A column that names a class, with cells that hold no class of the source.
CLASSES: list[tuple[str, str, list[object]]] = [
    ("covertype", "Cover_Type", ["2", "1"]),
    ("covertype", "Cover_Type", [2, 0]),
    ("covertype", "Cover_Type", [1, 3]),
    ("susy", "signal", [0.0, 0.0]),
    ("susy", "signal", [-1.0, 1.0]),
    ("skin_segmentation", "class", [0, 1]),
    ("banknote", "class", [1, 2]),
    ("bank_marketing", "y", ["N", "Y"]),
    ("insurance", "sex", ["m", "f"]),
    ("insurance", "smoker", ["no", "no"]),
]


@pytest.mark.parametrize(("name", "column", "cells"), CLASSES)
def test_a_class_column_holds_both_classes(name: str, column: str, cells: list[object], folder: Path) -> None:
    numbers = dict.fromkeys(dataset_named(name).columns, np.arange(ROWS, dtype=float))
    texts = {"insurance": ("sex", "smoker", "region"), "bank_marketing": ("job", "y")}.get(name, ())
    table = pa.table(
        {**numbers, **{text: ["male", "yes"] * (ROWS // 2) for text in texts}, column: cells * (ROWS // 2)}
        | ({"x": np.arange(ROWS, dtype=float)} if name == "susy" else {})
    )
    assert repr(column) in _refused(name, table, folder)


def test_columns_that_do_not_vary_are_refused(folder: Path) -> None:
    signal = {"signal": [0, 1] * (ROWS // 2)}
    assert "no column that varies" in _refused("susy", pa.table({**signal, "x": np.ones(ROWS)}), folder)
    assert "no columns of features" in _refused("susy", pa.table(signal), folder)
    same = pa.table(dict.fromkeys(dataset_named("power_plant").columns, np.ones(ROWS)))
    assert "does not vary" in _refused("power_plant", same, folder)


def test_codes_are_whole_numbers_from_nought(folder: Path) -> None:
    for wrong in (np.linspace(0, 3, ROWS), np.arange(ROWS) - 1):
        table = pa.table({"education-num": np.arange(ROWS), "age": wrong})
        assert "codes 0, 1, 2" in _refused("adult_discretized", table, folder)


def test_all_leaves_out_what_is_refused_and_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpregress.experiments import catalogue

    pq.write_table(pa.table({"other": [1.0]}), folder / "power_plant.parquet")
    chosen = {name: catalogue.EXPERIMENTS[name] for name in ("cao-4", "cao-9")}
    monkeypatch.setattr(catalogue, "EXPERIMENTS", chosen)
    done = run(capsys, "experiment", "run", "all", "--quick", "--repeats", 1, "--workers", 1, "--out", folder / "out")
    assert done.code == 0, done.err
    assert "left out: power_plant.parquet has no column 'AT', 'V'" in done.out
    assert "left out: cao-9 needs bank_marketing, banknote" in done.out
