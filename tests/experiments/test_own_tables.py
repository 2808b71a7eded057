"""Wang et al., Figures 15 and 16 on Covertype and SUSY: files that a user supplies, here small ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress.datasets import DATASETS
from dpregress.errors import InvalidInput
from dpregress.experiments import wang_tables
from dpregress.experiments.base import DEFAULT, PLAIN, PUBLIC_ONLY, TRIVIAL
from dpregress.experiments.catalogue import EXPERIMENTS
from dpregress.experiments.runner import RunSize, run_experiment
from dpregress.experiments.summaries import RunSummary
from dpregress.experiments.wang_tables import AccuracySetting

N, M, HELD_OUT = 2_000, 150, 500
ROWS = N + M + HELD_OUT


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of tables; the tables' sizes and epsilons are smaller here."""
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path))
    small = {
        name: replace(of, held_out=HELD_OUT, epsilons=of.epsilons[-1:]) for name, of in wang_tables._TABLES.items()
    }
    monkeypatch.setattr(wang_tables, "_TABLES", small)
    wang_tables._rows.cache_clear()
    yield tmp_path
    wang_tables._rows.cache_clear()


def covertype(rng: np.random.Generator, rows: int) -> pa.Table:
    """Ten numbers, one of 4 areas and one of 40 soils, some of them rare, as indicators; seven classes."""
    numbers = np.round(rng.normal(2_000, 400, size=(rows, 10)))
    areas = rng.choice(4, p=(0.45, 0.05, 0.44, 0.06), size=rows)
    soils = rng.choice(40, p=(lambda share: share / share.sum())(1.0 / np.arange(1, 41) ** 2), size=rows)
    lean = numbers[:, 0] - 2_000 + 300 * rng.normal(size=rows)
    classes = np.where(lean > 0, 2, rng.choice((1, 3, 4, 5, 6, 7), size=rows))
    cells = np.column_stack([numbers, np.eye(4)[areas], np.eye(40)[soils], classes]).astype(int)
    return pa.table(dict(zip(DATASETS["covertype"].columns, cells.T, strict=True)))


def susy(rng: np.random.Generator, rows: int) -> pa.Table:
    """The class first, eighteen numbers of several scales."""
    numbers = rng.normal(size=(rows, 18)) * np.geomspace(0.1, 3, 18)
    signal = (numbers[:, 0] / 0.1 + rng.normal(size=rows) > 0).astype(float)
    return pa.table({"signal": signal, **{f"x{place}": numbers[:, place] for place in range(18)}})


MAKERS = {"covertype": covertype, "susy": susy}


def ran(name: str, axis: str, out: Path) -> RunSummary:
    figure = {"n": "wang-15", "m": "wang-16"}[axis]
    settings = (AccuracySetting(name, axis, N, M),)
    small = replace(EXPERIMENTS[figure], settings=settings, quick=settings, repeats=1)
    return run_experiment(small, out, RunSize(workers=1), print)


@pytest.mark.parametrize("axis", ["n", "m"])
@pytest.mark.parametrize("name", MAKERS)
def test_the_figure_runs_on_a_file(name: str, axis: str, folder: Path, seed: int) -> None:
    pq.write_table(MAKERS[name](np.random.default_rng(seed), ROWS), folder / f"{name}.parquet")
    summary = ran(name, axis, folder)
    assert not summary.left_out
    assert {curve.method for curve in summary.curves} == {wang_tables.OWN, DEFAULT, PLAIN, PUBLIC_ONLY, TRIVIAL}
    for curve in summary.curves:
        assert curve.failed == (0,)
        assert 0 <= curve.mean[0] <= 1
    (plain,), (trivial,) = summary.find(PLAIN), summary.find(TRIVIAL)
    assert plain.mean[0] > trivial.mean[0] + 0.1  # a class that a number decides: 500 rows, over 5 standard errors


@pytest.mark.parametrize("name", MAKERS)
def test_a_file_of_another_kind_is_refused(name: str, folder: Path) -> None:
    table = MAKERS[name](np.random.default_rng(0), ROWS)
    target = wang_tables._TABLES[name].target
    wrong = {
        "no column": table.drop_columns([target]),
        "columns of text": table.append_column("t", pa.array(["a"] * ROWS)),
        "empty cells": table.append_column("t", pa.array([None, *range(ROWS - 1)])),
        "rows: at n": table.slice(0, ROWS - 1),
    }
    for said, bad in wrong.items():
        pq.write_table(bad, folder / f"{name}.parquet")
        wang_tables._rows.cache_clear()
        with pytest.raises(InvalidInput, match=said) as refusal:
            ran(name, "n", folder)
        assert name in str(refusal.value)
        assert "\n" not in str(refusal.value)
