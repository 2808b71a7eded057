"""Every reader and every source gives the same rows in every pass and in chunks of every size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpregress.rows.readers.base import chunks
from dpregress.rows.sources import reader_of
from tests.registry import READERS, SOURCES, ReaderEntry, SourceEntry
from tests.rows.tables import KEPT

ROWS = 61


def table_of(seed: int) -> pa.Table:
    """Whole numbers from 0 to 4, each of them at least once a column."""
    cells = np.random.default_rng(seed).integers(5, size=(ROWS, 3))
    cells[:5] = np.arange(5)[:, None]
    return pa.table(dict(zip(("a", "b", "y"), cells.T, strict=True)))


@pytest.mark.parametrize("entry", [entry for entry in READERS if entry.kept], ids=str)
def test_reader(entry: ReaderEntry, tmp_path: Path, seed: int) -> None:
    """Deterministic. The reader of PostgreSQL needs a server: tests/rows/readers/test_sql.py."""
    table = table_of(seed)
    reader = reader_of(KEPT[str(entry.kept)](table, tmp_path))
    assert type(reader) is entry.kind
    assert reader.n == ROWS
    assert sorted(reader.schema.names) == ["a", "b", "y"]
    for rows in (7, 7, ROWS, 1000):
        pieces = list(chunks(reader, ["y", "a"], rows))
        assert [piece.num_rows for piece in pieces[:-1]] == [rows] * (len(pieces) - 1)
        cells = [[float(cell) for piece in pieces for cell in piece[name].to_pylist()] for name in ("y", "a")]
        np.testing.assert_array_equal(cells, [table["y"].to_numpy(), table["a"].to_numpy()])


@pytest.mark.parametrize("entry", SOURCES, ids=str)
def test_source(entry: SourceEntry, tmp_path: Path, seed: int) -> None:
    """Deterministic."""
    table = table_of(seed)
    source = entry.make(table, tmp_path)
    assert type(source) is entry.kind
    assert source.n == ROWS
    expected = np.column_stack([table["a"].to_numpy(), table["b"].to_numpy()])
    for rows in (7, 7, ROWS, 1000):
        found = list(source.chunks(rows))
        assert [chunk.first_row for chunk in found] == list(range(0, ROWS, rows))
        np.testing.assert_array_equal(np.concatenate([chunk.x for chunk in found]), expected)
        if found[0].y is not None:
            np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in found]), table["y"].to_numpy())
