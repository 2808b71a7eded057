"""Fits whose sums Spark computes, against a server of Spark Connect that needs no Java."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import GDP, DPLinearRegression, MemoryLedger, Numeric, Schema
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import InvalidInput, SourceError
from dpregress.rows import OrderedRows, push_down_engine, row_kernel
from tests.rows.leaks import everything_said

N = 5_000
SCHEMA = Schema({"a": Numeric(-4, 4), "b.c": Numeric(-4, 4), "y": Numeric(-9, 9)})


@pytest.fixture
def rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 2))
    return pa.table({"a": x[:, 0], "b.c": x[:, 1], "y": x @ [1.0, -2.0] + rng.normal(size=N)})


def model(**more: Any) -> Any:
    return DPLinearRegression(**{"privacy": GDP(1.0), "schema": SCHEMA, "recipe": "one-shot", **more})


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_a_fit_on_spark_is_that_of_threads(spark_session: Any, rows: pa.Table, tmp_path: Path, seed: int) -> None:
    """Of a table by a name of three parts, one of them quoted. No seed can break it."""
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=999)
    name = f"{spark_session.catalog.currentCatalog()}.default.`visits_{uuid4().hex}`"
    spark_session.sql(f"CREATE TABLE {name} USING parquet LOCATION '{tmp_path}'")
    fitted = []
    for engine in (None, "spark"):
        ledger = MemoryLedger(GDP(1.0))
        fit = model(ledger=ledger, random_state=seed)
        fitted.append(fit.fit_table(spark_session.table(name), "y", engine=engine, progress=False).coef_)
        assert [each.event for each in ledger.charges] == [GDP(1.0)]
    np.testing.assert_allclose(fitted[0], fitted[1], rtol=1e-6)


def test_what_spark_does_not_answer_is_refused_before_the_charge(spark_session: Any, rows: pa.Table) -> None:
    ledger = MemoryLedger(GDP(1.0))
    frame = spark_session.createDataFrame(rows)
    with pytest.raises(InvalidInput, match="leave out diagnose="):
        model(ledger=ledger).fit_table(frame, "y", engine="spark", diagnose=0.05)
    text = spark_session.createDataFrame(pa.table({"a": ["1"] * 9, "b.c": [1.0] * 9, "y": [1.0] * 9}))
    with pytest.raises(InvalidInput, match="column 'a' is not one of numbers alone"):
        model(ledger=ledger).fit_table(text, "y", engine="spark")
    assert not ledger.charges


def test_a_table_that_fails_is_paid_once(spark_session: Any, rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows on which the workers fail after the charge; the error shows none of them."""
    ledger = MemoryLedger(GDP(1.0))
    checked = push_down_engine._check_arithmetic

    def failing(batches: Any) -> Any:
        raise ValueError(f"a31337 {next(iter(batches))}")

    def then_failing(table: Any) -> None:
        checked(table)
        monkeypatch.setattr(row_kernel, "kernel", lambda *_: failing)

    monkeypatch.setattr(push_down_engine, "_check_arithmetic", then_failing)
    with pytest.raises(SourceError, match="a budget that was charged stays charged") as caught:
        model(ledger=ledger).fit_table(spark_session.createDataFrame(rows), "y", engine="spark")
    assert "31337" not in everything_said(caught.value)
    assert len(ledger.charges) == 1


_WORKER = """
import pickle, sys
sys.modules["dpregress"] = None  # an import of it fails
kernel, batches = pickle.loads(sys.stdin.buffer.read())
sys.stdout.buffer.write(pickle.dumps([batch.to_pylist() for batch in kernel(batches)]))
assert not [name for name in sys.modules if name.startswith("dpregress.")]
"""


def test_workers_need_no_dpregress(rows: pa.Table, tmp_path: Path) -> None:
    """The function is sent by value, and computes the same where the package cannot be imported."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    space = WhitenedSpace(("a", "b.c"), np.eye(2), 2.0, np.zeros(2), response=ResponseScale("y", bound=3.0))
    kernel, batches = row_kernel.kernel(OrderedRows(space).joint(True), ["y"]), rows.to_batches(max_chunksize=999)
    cloudpickle.register_pickle_by_value(row_kernel)
    try:
        sent = cloudpickle.dumps((kernel, batches))
    finally:
        cloudpickle.unregister_pickle_by_value(row_kernel)
    done = subprocess.run([sys.executable, "-c", _WORKER], input=sent, capture_output=True, check=True, cwd=tmp_path)
    assert pickle.loads(done.stdout) == [batch.to_pylist() for batch in kernel(batches)]
