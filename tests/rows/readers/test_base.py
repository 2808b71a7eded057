"""Readers: the same rows in the same chunks from whatever holds them, and one plain line where they cannot be read."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregress import Categorical, Schema
from dpregress.coordinates.exact import ExactVector
from dpregress.errors import InvalidInput, SourceError
from dpregress.inputs.coded import coded_source
from dpregress.public.coding import domain_of
from dpregress.rows import Encoder, SQLQuery, StreamSource, TableSource, ThreadedEngine
from dpregress.rows.design.encoder import to_numbers
from dpregress.rows.readers import csv, sqlite
from dpregress.rows.readers.base import CapsuleReader, Reader
from dpregress.rows.readers.files import read, read_files
from dpregress.rows.sources import reader_of
from tests.rows.leaks import everything_said
from tests.rows.properties import untimed
from tests.rows.tables import KEPT, Stream

RNG = np.random.default_rng(0)
N = 1_000
TABLE = pa.table(
    {
        "a": RNG.normal(size=N),
        "count": RNG.integers(0, 9, size=N),
        "level": RNG.choice(["low", "mid", "high"], size=N),
        "gaps": pa.array(np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)), from_pandas=True),
        "y": RNG.normal(size=N),
    }
)
SCHEMA = Schema({"level": Categorical(["low", "mid", "high"])})
ENCODER = Encoder.of(["a", "count", "level", "gaps"], "y", SCHEMA)
STREAMED = [kind for kind in KEPT if kind not in ("pandas", "Polars", "Arrow")]


def stream(source: Any) -> StreamSource:
    reader = reader_of(source)
    ENCODER.check_types(reader.schema)
    reader.check(ENCODER.needed)
    return StreamSource(reader, ENCODER)


@pytest.mark.parametrize("kind", STREAMED)
@pytest.mark.parametrize("rows", [256, 190, 5_000])
def test_every_kind_gives_the_same_chunks(kind: str, rows: int, tmp_path: Path) -> None:
    source, expected = stream(KEPT[kind](TABLE, tmp_path)), TableSource(TABLE, ENCODER)
    assert source.n == N
    for _ in range(2):
        for chunk, wanted in zip(source.chunks(rows), expected.chunks(rows), strict=True):
            assert chunk.first_row == wanted.first_row
            np.testing.assert_array_equal(chunk.x, wanted.x)
            np.testing.assert_array_equal(chunk.y, wanted.y)
    (response,) = source.responses().chunks(5_000)
    assert response.x.shape == (N, 0)
    np.testing.assert_array_equal(response.y, TABLE["y"].to_numpy())
    if source.reader.ordered:
        found = [float(cell) for piece in source.column("count") for cell in piece.to_pylist()]
        np.testing.assert_array_equal(found, TABLE["count"].to_numpy())


def test_threads_do_not_change_a_bit_of_a_streamed_sum(tmp_path: Path) -> None:
    source = stream(KEPT["Parquet"](TABLE, tmp_path))

    def value(rows: Any) -> ExactVector:
        return ExactVector(np.rint(2.0**20 * np.nan_to_num(rows.x)).astype(np.int64).sum(axis=0))

    totals = [ThreadedEngine(workers=workers).total(source, value, columns=4_000) for workers in (1, 2, 4)]
    assert totals[0].whole.tolist() == totals[1].whole.tolist() == totals[2].whole.tolist()


# ------------------------------------------------------------------ files that do not fit together


def write(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    a = write(tmp_path / "a.parquet", x=[1.0], y=[1.0])
    b = write(tmp_path / "b.parquet", x=[1.0], z=[1.0])
    with pytest.raises(
        InvalidInput,
        match=r"a\.parquet, which has 2 columns, and .*b\.parquet, which has 2 columns, name them differently",
    ):
        read_files([a, b])
    (tmp_path / "c.csv").write_text("x,y\n1,2\n")
    (tmp_path / "d.csv").write_text("x,y,z\n1,2,3\n")
    with pytest.raises(InvalidInput, match=r"c\.csv, which has 2 columns, and .*d\.csv, which has 3 columns"):
        read_files(tmp_path / "*.csv")
    with pytest.raises(InvalidInput, match="of two kinds"):
        read_files([a, tmp_path / "c.csv"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["same", "pattern", "symbolic link", "hard link", "relative", "roundabout", "URL"])
def test_one_file_under_two_names_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    path = tmp_path / f"a.{kind}"
    (pacsv.write_csv if kind == "csv" else pq.write_table)(TABLE, path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / f"soft.{kind}").symlink_to(path)
    (tmp_path / f"hard.{kind}").hardlink_to(path)
    other = {
        "same": path,
        "pattern": tmp_path / "a*",
        "symbolic link": f"soft.{kind}",
        "hard link": f"hard.{kind}",
        "relative": f"a.{kind}",
        "roundabout": f"folder/../a.{kind}",
        "URL": path.as_uri(),
    }[name]
    for paths in ([path, other], [other, path]):
        with pytest.raises(InvalidInput, match=r"named twice, as .*: its rows would count twice") as caught:
            read_files(paths)
        assert "\n" not in str(caught.value)
    assert read_files([other]).n == N


def test_a_column_that_changes_type_is_refused(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.parquet", x=[1.0], y=[1.0]), write(tmp_path / "b.parquet", x=["1"], y=[1.0])
    reader = read_files([a, b])
    reader.check(["y"])
    with pytest.raises(InvalidInput, match=r"'x' is double in .*a.parquet and string in .*b.parquet") as caught:
        reader.check(["y", "x"])
    assert "\n" not in str(caught.value)


def test_a_column_of_nulls_has_the_type_it_has_elsewhere(tmp_path: Path) -> None:
    a = write(tmp_path / "a.parquet", x=pa.nulls(2), y=[1.0, 2.0])
    b = write(tmp_path / "b.parquet", x=[3, 4], y=[3.0, 4.0])
    source = StreamSource(read_files([a, b]), Encoder.of(["x"], "y", None))
    source.reader.check(["x", "y"])
    (chunk,) = source.chunks(10)
    np.testing.assert_array_equal(chunk.x[:, 0], [np.nan, np.nan, 3, 4])


@pytest.mark.parametrize("source", [[], "none-*.csv", "nowhere.csv", "memory://nowhere.csv", 3.0, [3.0], "odd://x"])
def test_files_that_are_not_there_are_refused(source: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_files(source)
    assert "\n" not in str(caught.value)


def test_files_without_rows_add_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n")
    (tmp_path / "b.csv").write_text("y,x\n1,2\n")
    assert read_files(tmp_path / "?.csv").n == 1
    (tmp_path / "c.csv").write_text("")
    with pytest.raises(InvalidInput, match=r"c\.csv is empty: it needs a line of column names"):
        read_files(tmp_path / "?.csv")


# ------------------------------------------------------------------ what goes wrong in a pass


def check_fails(source: StreamSource, words: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        list(source.chunks(100))
    assert "\n" not in str(caught.value)
    assert "stays charged" in str(caught.value)
    assert "31337" not in everything_said(caught.value)


@pytest.mark.parametrize("rows", [0, 5, 400, N])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_that_changes_after_it_was_counted_is_noticed(tmp_path: Path, ending: str, rows: int) -> None:
    """Also where it has as many rows as before."""
    path = tmp_path / f"rows.{ending}"
    keep = pacsv.write_csv if ending == "csv" else pq.write_table
    keep(TABLE, path)
    source = stream(path)
    assert source.n == N
    keep(TABLE.slice(0, rows) if rows else pa.concat_tables([TABLE, TABLE]), path)
    check_fails(source, "has changed while it was read")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("how", ["replaced", "written over", "deleted"])
def test_a_file_that_changes_in_the_middle_of_a_pass_is_noticed(tmp_path: Path, ending: str, how: str) -> None:
    """By as many rows of the same size: nothing but the file itself tells."""
    path, other = tmp_path / f"rows.{ending}", tmp_path / f"other.{ending}"
    keep = pacsv.write_csv if ending == "csv" else pq.write_table
    keep(pa.concat_tables([TABLE.slice(1), TABLE.slice(0, 1)]), other)
    keep(TABLE, path)
    content = other.read_bytes()
    source = stream(path)
    assert source.n == N
    chunks = source.chunks(100)
    next(chunks)
    if how == "replaced":
        other.replace(path)
    elif how == "written over":
        path.write_bytes(content)
    else:
        path.unlink()
    with pytest.raises(SourceError, match=r"has changed while it was read.*stays charged") as caught:
        list(chunks)
    assert "\n" not in str(caught.value)
    check_fails(source, "has changed while it was read")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_at_a_url_that_changes_is_noticed(ending: str) -> None:
    place, keep = f"memory://changing.{ending}", pacsv.write_csv if ending == "csv" else pq.write_table
    with fsspec.open(place, "wb") as file:
        keep(TABLE, file)
    source = stream(place)
    assert source.n == N
    list(source.chunks(100))
    with fsspec.open(place, "wb") as file:
        keep(pa.concat_tables([TABLE.slice(1), TABLE.slice(0, 1)]), file)
    check_fails(source, "has changed while it was read")


def test_a_file_of_marginals_that_changes_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet", level=["low", "mid"], other=["a", "a"])
    schema = Schema({"level": Categorical(["low", "mid"]), "other": Categorical(["a", "b"])})
    source = coded_source(path, domain_of(schema))
    assert source.n == 2
    write(path, level=["mid", "low"], other=["a", "a"])
    with pytest.raises(SourceError, match=r"has changed while it was read.*stays charged"):
        list(source.chunks(10))


def test_a_type_that_changes_after_it_was_checked_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", x=[1.0], y=[1.0])
    source = StreamSource(read_files(path), Encoder.of(["x"], "y", None))
    assert source.n == 1
    write(path, x=["31337"], y=[1.0])
    check_fails(source, "changed")


def test_a_damaged_page_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE.append_column("secret", [[31337.5] * N]), path)
    content = path.read_bytes()
    path.write_bytes(content[:8] + bytes(400) + content[408:])
    source = stream(path)
    assert source.n == N
    check_fails(source, "cannot be read to its end")


def test_a_query_that_fails_on_a_cell_does_not_show_it() -> None:
    query = "SELECT CASE WHEN i = 900 THEN 'a31337' ELSE '1' END::INT AS x, 1.0 AS y FROM range(1000) t(i)"
    relation = duckdb.connect().sql(query)
    for source in (SQLQuery("duckdb://", query), relation):
        found = StreamSource(reader_of(source), Encoder.of(["x"], "y", None))
        assert found.n == 1000
        check_fails(found, "a query on it fails")
    space = pl.DataFrame({"x": ["1"] * 20 + ["a31337"], "y": [1.0] * 21}).lazy().with_columns(pl.col("x").cast(pl.Int8))
    check_fails(StreamSource(reader_of(space), Encoder.of(["x"], "y", None)), "a query on it fails")


# ------------------------------------------------------------------ streams


def test_streams_that_can_be_read_only_once_are_refused() -> None:
    once = TABLE.to_reader()
    with pytest.raises(InvalidInput, match="only once"):
        reader_of(once)

    class Spent:
        def __init__(self, stream: pa.RecordBatchReader) -> None:
            self._stream = stream

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return self._stream.__arrow_c_stream__(requested_schema)

    with pytest.raises(InvalidInput, match="Spent can be read only once"):
        _ = CapsuleReader(Spent(TABLE.to_reader())).n


def test_a_stream_is_counted_once() -> None:
    class Counted(Stream):
        opened = 0

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            self.opened += 1
            return super().__arrow_c_stream__(requested_schema)

    source = Counted(TABLE)
    found = stream(source)
    assert (found.n, found.n) == (N, N)
    before = source.opened
    list(found.chunks(300))
    assert source.opened == before + 1


class Endless(Reader):
    """Batches as they are asked for, and how many were in use at a time."""

    name = "the batches"
    schema = TABLE.schema
    n = 300 * N

    def __init__(self) -> None:
        self.read = 0

    def batches(self, columns: Any, rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        (batch,) = TABLE.to_batches()
        for _ in range(300):
            self.read += 1
            yield batch.select(columns)


def test_only_a_few_chunks_are_read_ahead() -> None:
    """Memory does not grow with n: what was read and not yet summed stays within two chunks a thread."""
    reader = Endless()
    summed, furthest = 0, 0

    def progress(done: int, of: int) -> None:
        nonlocal summed, furthest
        furthest = max(furthest, reader.read * N - summed)
        summed = done
        assert of == reader.n

    engine = ThreadedEngine(workers=2, progress=progress)
    rows = engine.chunk_rows(400)
    engine.total(StreamSource(reader, ENCODER), lambda chunk: ExactVector(np.array([len(chunk.x)])), columns=400)
    assert summed == reader.n
    assert furthest <= (2 * 2 + 2) * rows + N


# ------------------------------------------------------------------ CSV in blocks

lines = st.lists(
    st.sampled_from(
        [b"1,2", b"", b"3", b'"4","5"', b'"6,7', b"8,9\r", b"1\r0,2", b"\xff,1", b"\xef\xbb\xbf1,2", b"x" * 40]
    )
)


@given(lines, st.integers(1, 60), st.booleans())
@untimed
def test_blocks_do_not_change_a_record(tmp_path: Path, records: list[bytes], block: int, ended: bool) -> None:
    """However a file falls into blocks, every line is one record, and the same one."""
    content = b"a,b\n" + b"\n".join(records) + (b"\n" if ended and records else b"")
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    whole, expected = read_files(path), None
    if whole.n:
        expected = read(path).to_pydict()
    before, csv._BLOCK = csv._BLOCK, block
    try:
        again = read_files(path)
        assert again.n == whole.n
        if expected is not None:
            assert read(path).to_pydict() == expected
            assert len(expected["a"]) == whole.n
    finally:
        csv._BLOCK = before


def test_a_line_beyond_all_bounds_is_a_row_of_missing_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "LONGEST_LINE", 100)
    for block in (7, 64, 1 << 20):
        monkeypatch.setattr(csv, "_BLOCK", block)
        for length in (100, 101, 102, 500):
            (tmp_path / "rows.csv").write_bytes(b"a,b\n1,2\n" + b"3," + b"4" * (length - 2) + b"\n5,6\n")
            found = read(tmp_path / "rows.csv").to_pydict()
            assert found["a"] == [b"1", b"3" if length <= 100 else None, b"5"]


# ------------------------------------------------------------------ queries


@pytest.mark.parametrize(
    ("url", "query", "words"),
    [
        ("mysql://host/db", "SELECT 1", "a URL begins with duckdb://, postgresql://, sqlite://"),
        ("rows.db", "SELECT 1", "a URL begins with"),
        ("sqlite:///none.db", "SELECT 1", "no file none.db"),
        ("sqlite://none.db", "SELECT 1", "a file has no host: write sqlite:///none.db"),
        ("duckdb:///none.db", "SELECT 1", "no file none.db"),
        ("duckdb://", " ", "one SELECT statement"),
        ("duckdb://", "SELECT nothing FROM nowhere", "the query cannot be planned: "),
        ("postgresql://nobody@127.0.0.1:1/none", "SELECT 1", "the database cannot be reached"),
    ],
)
def test_queries_that_cannot_run_are_refused(url: str, query: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        SQLQuery(url, query).open()
    assert "\n" not in str(caught.value)


def test_a_query_to_sqlite_is_planned_before_rows_are_read(tmp_path: Path) -> None:
    KEPT["SQLite query"](TABLE, tmp_path)
    with pytest.raises(InvalidInput, match="cannot be planned: no such column: none"):
        SQLQuery(f"sqlite:///{tmp_path / 'rows.db'}", "SELECT none FROM t").open()
    with pytest.raises(InvalidInput, match="the query cannot be planned"):
        SQLQuery(f"sqlite:///{tmp_path / 'rows.db'}", "DROP TABLE t").open()


ANYTHING = [
    1.5,
    3,
    2**62 + 1,
    "12",
    "text",
    "",
    b"\xff\x00",
    None,
    float("inf"),
    "\udce9".encode("utf-8", "surrogatepass"),
]


def sqlite_table(folder: Path, kind: str, cells: list[Any]) -> SQLQuery:
    """A table of one column of this declared type, with these cells as SQLite keeps them."""
    with closing(sqlite3.connect(folder / "cells.db")) as connection:
        connection.execute(f"CREATE TABLE t (a {kind})")
        connection.executemany("INSERT INTO t VALUES (?)", [(cell,) for cell in cells])
        connection.commit()
    return SQLQuery(f"sqlite:///{folder / 'cells.db'}", "SELECT * FROM t")


@pytest.fixture(params=["driver", "Python's module"])
def read_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite by the driver of ADBC, and without it."""
    if request.param != "driver":
        monkeypatch.setattr(sqlite, "_driver", lambda: None)


@pytest.mark.usefixtures("read_by")
@pytest.mark.parametrize("kind", ["REAL", "double precision"])
def test_declared_numbers_of_sqlite_are_numbers_whatever_the_cells_hold(tmp_path: Path, kind: str) -> None:
    reader = sqlite_table(tmp_path, kind, ANYTHING).open()
    assert reader.schema.types == [pa.float64()]
    (batch,) = reader.batches(["a"], 100)
    nothing = None
    expected = [1.5, 3.0, float(2**62 + 1), 12.0, nothing, nothing, nothing, nothing, float("inf"), nothing]
    assert batch["a"].to_pylist() == expected


@pytest.mark.usefixtures("read_by")
@pytest.mark.parametrize("kind", ["INTEGER", "BIGINT"])
def test_declared_whole_numbers_of_sqlite_are_exact(tmp_path: Path, kind: str) -> None:
    """Beyond 2^53 too, so that ids stay apart; a cell that is none is missing."""
    reader = sqlite_table(tmp_path, kind, ANYTHING).open()
    assert reader.schema.types == [pa.int64()]
    (batch,) = reader.batches(["a"], 100)
    expected = [cell for cell in batch["a"].to_pylist() if cell is not None]
    assert expected == [3, 2**62 + 1, 12]


@pytest.mark.usefixtures("read_by")
@pytest.mark.parametrize("kind", ["", "TEXT", "BLOB", "DATE", "DECIMAL(9, 2)", "BOOLEAN"])
def test_other_columns_of_sqlite_are_text_cell_by_cell(tmp_path: Path, kind: str) -> None:
    query = sqlite_table(tmp_path, kind, ANYTHING)
    assert query.open().schema.types == [pa.large_string()]
    (batch,) = query.open().batches(["a"], 100)
    assert batch["a"].to_pylist()[4] == "text"
    np.testing.assert_array_equal(to_numbers(batch["a"])[[0, 1, 3]], [1.5, 3.0, 12.0])
    computed = SQLQuery(query.url, "SELECT CASE WHEN 1 THEN a END AS a FROM t").open()
    assert computed.schema.types == [pa.large_string()]  # SQLite says no type of what a query computes without CAST


@pytest.mark.usefixtures("read_by")
@pytest.mark.parametrize("kind", ["", "TEXT", "BLOB", "DATE", "DECIMAL(9, 2)", "BOOLEAN"])
def test_casts_of_sqlite_are_numbers(tmp_path: Path, kind: str) -> None:
    """SQLite makes 0 of text that is no number."""
    cast = SQLQuery(sqlite_table(tmp_path, kind, ANYTHING).url, "SELECT CAST(a AS REAL) AS a FROM t").open()
    assert cast.schema.types == [pa.float64()]
    (batch,) = cast.batches(["a"], 100)
    cells = batch["a"].to_pylist()
    assert [cells[place] for place in (0, 1, 3, 4)] == [1.5, 3.0, 12.0, 0.0]


#: Missing cells first, so that nothing can be told of a column by its first rows, and cells of every type after them.
MIXED = [None] * 3000 + [*ANYTHING, "a\0b", "x" * 100_000, "9" * 400, b"", b"b", -0.0, 5e-324, 1e22, -(2**63), 0.1] * 3


@pytest.mark.parametrize("kind", ["REAL", "INTEGER", "TEXT", "", "NUMERIC", "BLOB"])
def test_the_driver_of_sqlite_reads_what_python_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Cell by cell, whatever the cells before it hold."""
    query = sqlite_table(tmp_path, kind, MIXED)
    for asked in ("SELECT * FROM t", "SELECT a FROM t ORDER BY rowid DESC;", "SELECT a || '' AS a FROM t -- all"):
        tables = []
        for driver in (sqlite._driver, lambda: None):
            monkeypatch.setattr(sqlite, "_driver", driver)
            tables.append(pa.Table.from_batches(SQLQuery(query.url, asked).open().batches(["a"], 100)))
        assert tables[0].num_rows == len(MIXED)
        assert tables[0].combine_chunks().equals(tables[1].combine_chunks()), asked


@pytest.mark.usefixtures("read_by")
@pytest.mark.parametrize("fits", [True, False])
def test_a_fit_reads_sqlite_once_where_its_rows_fit_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: bool
) -> None:
    passes: list[Any] = []
    fetched = sqlite.SQLiteReader._fetched
    monkeypatch.setattr(sqlite.SQLiteReader, "_fetched", lambda *given: passes.append(given) or fetched(*given))
    if not fits:
        monkeypatch.setattr(sqlite, "_HELD", 1_000)
    source = stream(KEPT["SQLite query, declared types"](TABLE, tmp_path))
    expected = TableSource(TABLE, ENCODER)
    for _ in range(3):
        for chunk, wanted in zip(source.chunks(300), expected.chunks(300), strict=True):
            np.testing.assert_array_equal(chunk.x, wanted.x)
    (response,) = source.responses().chunks(5_000)
    np.testing.assert_array_equal(response.y, TABLE["y"].to_numpy())
    assert len(passes) == (1 if fits else 4)


@pytest.mark.parametrize("ending", ["", ";", " -- all of them", "\n-- all of them\n", " /* all */ ;"])
@pytest.mark.parametrize("kind", ["SQLite query", "DuckDB query"])
def test_a_query_may_end_in_a_comment(tmp_path: Path, kind: str, ending: str) -> None:
    query = KEPT[kind](TABLE, tmp_path)
    source = stream(SQLQuery(query.url, query.query.rstrip(";") + ending))
    assert source.n == sum(len(chunk.x) for chunk in source.chunks(300)) == N


def test_a_query_that_reads_cells_to_be_planned_does_not_show_them(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a31337' AS age, 0.5 AS y")
    (tmp_path / "rows.csv").write_text("age,y\na31337,1\n")
    read_csv = f"read_csv('{tmp_path / 'rows.csv'}', columns = {{'age': 'INT', 'y': 'INT'}})"
    for query in (
        "PIVOT (SELECT CAST(age AS INT) AS age, y FROM t) ON age USING first(y)",
        f"PIVOT (SELECT age, y FROM {read_csv}) ON age USING first(y)",
    ):
        with pytest.raises(
            InvalidInput, match="the query cannot be planned: it fails on what the tables hold"
        ) as caught:
            SQLQuery(f"duckdb:///{tmp_path / 'rows.duckdb'}", query).open()
        assert "31337" not in everything_said(caught.value)


@pytest.mark.parametrize(
    ("missing", "extra", "source"),
    [
        ("duckdb", "sql", SQLQuery("duckdb://", "SELECT 1")),
        ("fsspec", "remote", "memory://rows.csv"),
        ("adbc_driver_postgresql", "postgresql", SQLQuery("postgresql://host/db", "SELECT 1")),
    ],
)
def test_an_extra_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, missing: str, extra: str, source: Any
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InvalidInput, match=rf"pip install 'dpregress\[{extra}\]'"):
        reader_of(source)


def test_a_dataset_over_files_of_two_types_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1.0], y=[1.0])
    write(tmp_path / "b.parquet", x=["a31337"], y=[1.0])
    check_fails(StreamSource(reader_of(ds.dataset(tmp_path)), Encoder.of(["x"], "y", None)), "cannot be read")
