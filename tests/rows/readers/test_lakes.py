"""Tables of Delta Lake and Apache Iceberg: fits on them, partitions, and commits during a fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpregress import GDP, Categorical, DPLinearRegression, MemoryLedger, Numeric, Schema
from dpregress.errors import InvalidInput
from dpregress.rows.sources import reader_of
from tests.rows.tables import KEPT

N = 500
SCHEMA = Schema({"a": Numeric(-4, 4), "plan": Categorical(["gold", "silver"]), "y": Numeric(-9, 9)})
LAKES = ("Delta table", "Iceberg table")


@pytest.fixture
def rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=N)
    return pa.table({"a": a, "plan": rng.choice(["gold", "silver"], N), "y": 2 * a + rng.normal(size=N)})


def fitted(table: Any, seed: int) -> Any:
    return DPLinearRegression(GDP(1.0), schema=SCHEMA, random_state=seed).fit_table(table, "y", ["a", "plan"])


@pytest.mark.parametrize("kind", LAKES)
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_a_fit_is_that_of_the_table_in_memory(kind: str, rows: pa.Table, tmp_path: Path, seed: int) -> None:
    """Bit for bit. No seed can break it."""
    found = fitted(KEPT[kind](rows, tmp_path), seed)
    np.testing.assert_array_equal(found.coef_, fitted(rows, seed).coef_)


@pytest.mark.parametrize("kind", LAKES)
def test_later_commits_change_no_pass(kind: str, rows: pa.Table, tmp_path: Path) -> None:
    """A reader keeps to the version that it was made of."""
    table = KEPT[kind](rows, tmp_path)
    reader = reader_of(table)
    assert reader.n == N
    if kind == "Delta table":
        import deltalake

        deltalake.write_deltalake(str(tmp_path / "delta"), rows, mode="append")
        table.update_incremental()
    else:
        table.append(rows)
        table.catalog.close()
    assert sum(batch.num_rows for batch in reader.batches(["a"], 100)) == N
    assert reader_of(table).n == 2 * N


def test_deletion_vectors_are_refused_with_a_mend(rows: pa.Table, tmp_path: Path) -> None:
    """A commit that says that there may be some is enough."""
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(tmp_path / "delta"), rows)
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    commit = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (tmp_path / "delta" / "_delta_log" / f"{1:020}.json").write_text(json.dumps(commit))
    with pytest.raises(InvalidInput, match=r"deletion vectors.*: give it as a table of Spark or a query of DuckDB"):
        reader_of(deltalake.DeltaTable(str(tmp_path / "delta")))


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_columns_of_partitions(rows: pa.Table, tmp_path: Path, seed: int) -> None:
    """Delta keeps them in its log, and not in the files. Sums do not depend on the order. No seed can break it."""
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(tmp_path / "delta"), rows, partition_by=["plan"])
    found = fitted(deltalake.DeltaTable(str(tmp_path / "delta")), seed)
    np.testing.assert_array_equal(found.coef_, fitted(rows, seed).coef_)


@pytest.mark.parametrize("kind", LAKES)
def test_units_are_refused_before_the_charge(kind: str, rows: pa.Table, tmp_path: Path) -> None:
    """Their rows have no fixed order."""
    ledger = MemoryLedger(GDP(1.0))
    model = DPLinearRegression(GDP(1.0), schema=SCHEMA, ledger=ledger)
    with pytest.raises(InvalidInput, match="no fixed order"):
        model.fit_table(KEPT[kind](rows, tmp_path), "y", ["a"], unit="plan", max_rows_per_unit=2)
    assert not ledger.charges
