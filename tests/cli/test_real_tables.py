"""Real tables from files, through the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress.baselines import least_squares
from dpregress.releases.model_files import load_model
from tests.support import data_file, run

#: table, target
TABLES = [("wine_quality_white", "quality"), ("power_plant", "PE")]


@pytest.mark.parametrize(("name", "target"), TABLES)
def test_fit_at_vanishing_noise_is_near_least_squares(
    name: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At epsilon 1000 what is left is the difference between weighted and plain least squares.

    Failure probability below 1e-12: mu is 39, the noise is five orders below the signal.
    """
    table = pq.read_table(data_file(name))
    order = np.random.default_rng(0).permutation(table.num_rows)
    pq.write_table(table.take(pa.array(order[:300])), tmp_path / "public.parquet")
    pq.write_table(table.take(pa.array(order[300:])), tmp_path / "private.parquet")
    command = ("fit", tmp_path / "private.parquet", "--target", target, "--public", tmp_path / "public.parquet")
    done = run(capsys, *command, "--epsilon", 1000, "--delta", 1e-6, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    model = load_model(tmp_path / "out" / "model.json")
    x = np.column_stack([table[column].to_numpy() for column in model.features]).astype(float)
    y = table[target].to_numpy().astype(float)
    plain = least_squares(x, y).predict(x)
    assert np.mean((y - model.predict(x)) ** 2) < 1.05 * np.mean((y - plain) ** 2)
