"""The benchmark of coverage: six of its cells, its real tables, and that it goes on where it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from benchmarks.coverage import Cell

from benchmarks import coverage
from dpregress.datasets.loaders import FOLDER

REPEATS, FEWEST = 60, 34
CELLS = (
    Cell("linear heteroscedastic", 10_000, "schema", 1.0),
    Cell("linear skewed", 10_000, "100 labelled", 1.0),
    Cell("linear missing", 2_000, "100 unlabelled", 3.0),
    Cell("logistic", 10_000, "schema", 1.0),
    Cell("poisson overdispersed", 10_000, "60 unlabelled", 1.0),
    Cell("gamma", 10_000, "60 labelled", 1.0),
)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.design}, {cell.public}")
def test_intervals_cover(cell: Cell, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every identified coefficient in 34 of 60 repeats at least: fewer have probability 1e-8 if .87 cover."""
    monkeypatch.setattr(coverage, "_SEED", seed)
    records = [json.loads(line) for line in coverage.block(cell, 0, REPEATS).splitlines()]
    hits = np.array([record["90"] for record in records]) | ~np.array([record["identified"] for record in records])
    assert (hits.sum(axis=0) >= FEWEST).all()
    assert np.array([record["identified"] for record in records]).mean() > 0.9


def test_a_run_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.jsonl"
    asked = ["--cells", "linear", "--n", "500", "--mu", "3", "--public", "schema", "--jobs", "1", "--out", str(out)]
    coverage.main([*asked, "--repeats", "2"])
    first = out.read_text()
    coverage.main([*asked, "--repeats", "3"])
    assert out.read_text().startswith(first)
    assert [json.loads(line)["repeat"] for line in out.read_text().splitlines()] == [0, 1, 2]
    assert "linear" in capsys.readouterr().out


@pytest.mark.skipif(FOLDER not in os.environ, reason=f"needs the tables of {FOLDER}")
def test_robust_errors_of_two_classes_are_those_of_a_logistic_model(seed: int) -> None:
    """Coefficients that sum to 0 are half of the logistic ones."""
    x, y = coverage.drawn("logistic quadratic", 2_000, np.random.default_rng(seed))
    coef = coverage.likelihood("binomial", x, y)
    classes = coverage.robust_errors("multinomial", x, y, np.concatenate([-coef, coef]) / 2)
    np.testing.assert_allclose(classes, np.tile(coverage.robust_errors("binomial", x, y, coef) / 2, 2), rtol=1e-6)


def test_a_real_table_is_a_population() -> None:
    record = json.loads(coverage.block(Cell("power", 2_000, "80 unlabelled", 1.0), 0, 1))
    assert len(record["90"]) == 5
