"""Every reader and every source gives the same rows in every pass and in chunks of every size."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpregress.errors import InvalidInput
from dpregress.rows.readers import files
from dpregress.rows.readers.base import chunks, divided
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


@pytest.mark.parametrize("entry", SOURCES, ids=str)
def test_parts(entry: SourceEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Parts hold each row once, at its place, and hold no other rows where they are sent. Deterministic."""
    monkeypatch.setattr(files, "_PART", 1)
    table = table_of(seed)
    source = entry.make(table, tmp_path)
    whole = np.concatenate([chunk.x for chunk in source.chunks(ROWS)])
    sent = [pickle.dumps(part) for part in source.parts(7)]
    assert len(sent) > 1
    (tmp_path / "long").mkdir()
    longer = entry.make(pa.concat_tables([table] * 50), tmp_path / "long")
    assert len(pickle.dumps(next(longer.parts(7)))) < 1.2 * len(sent[0]) + 500
    parts = [pickle.loads(part) for part in sent]
    assert [part.first_row for part in parts] == [0, *np.cumsum([part.rows.n for part in parts])[:-1]]
    found = [chunk for part in parts for chunk in part.rows.chunks(5)]
    np.testing.assert_array_equal(np.concatenate([chunk.x for chunk in found]), whole)
    for attribute in ("y", "exposure", "counts", "survey"):
        cells, all_cells = ([getattr(chunk, attribute) for chunk in rows] for rows in (found, source.chunks(7)))
        if all_cells[0] is not None:
            np.testing.assert_array_equal(np.concatenate(cells), np.concatenate(all_cells))


@pytest.mark.parametrize("entry", [entry for entry in READERS if entry.kept], ids=str)
def test_parts_of_readers(entry: ReaderEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Files have parts, and what is planned anew for each pass is refused. Deterministic."""
    monkeypatch.setattr(files, "_PART", 1)
    table = table_of(seed)
    reader = reader_of(KEPT[str(entry.kept)](table, tmp_path))
    if not isinstance(reader, files.FilesReader):
        with pytest.raises(InvalidInput, match="cannot be divided among workers: write it to Parquet"):
            next(iter(reader.parts(7)))
        return
    parts = [pickle.loads(pickle.dumps(part)) for _, part in divided(reader, 7)]
    assert len(parts) > 1
    for part in parts:
        part.check_reached()
    found = [piece["a"].to_pylist() for part in parts for piece in chunks(part, ["y", "a"], 5)]
    assert [float(cell) for cells in found for cell in cells] == table["a"].to_pylist()
