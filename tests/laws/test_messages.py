"""The law of messages: no error tells what is in a private cell or a credential, nor does anything it came from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dpregress import ApproxDP, DPRidge, Numeric, Schema, SQLQuery
from dpregress.accounting import GDP, MemoryLedger
from dpregress.display import shown
from dpregress.errors import DPRegressError, InvalidInput
from dpregress.inputs.parties import LabelledArray
from dpregress.mechanisms import SeededSampler
from dpregress.rows import BoundedRows, PrivateRows
from dpregress.rows.readers.files import read_files
from dpregress.rows.readers.locations import URL, opened
from dpregress.rows.readers.sql import _ADBCReader
from dpregress.trust import Central, Session
from tests.cli import conftest as cli
from tests.registry import SOURCES as KINDS
from tests.registry import SourceEntry
from tests.rows.leaks import chain, everything_said
from tests.support import missing, run

#: A number that is in private cells and nowhere else.
CELL = "31337"
SCHEMA = Schema({"age": Numeric(0.0, 100.0), "y": Numeric(0.0, 1.0)})


class Raising:
    """A table whose stream fails on a cell and quotes it, in a note and in what it came from too."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self._left -= 1
        if self._left < 0:
            error = ValueError(f"cell a{CELL}")
            error.add_note(f"it was a{CELL}")
            raise error from KeyError(f"a{CELL}")
        table = pa.table({"age": [1.0], "y": [0.5]})
        return table.__arrow_c_stream__(requested_schema)


def headerless(folder: Path) -> Path:
    path = folder / "headerless.csv"
    path.write_text(f"a{CELL},0.5\nb{CELL},0.25\n")
    return path


def failing(_: Path) -> duckdb.DuckDBPyRelation:
    cell = f"CASE WHEN i = 9 THEN 'a{CELL}' ELSE '1' END"
    return duckdb.connect().sql(f"SELECT {cell}::INT AS age, 1.0 AS y FROM range(99) t(i)")


def damaged(folder: Path) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(pa.table({"age": [float(CELL)] * 99, "y": [0.5] * 99}), path, compression="none")
    content = path.read_bytes()
    path.write_bytes(content[:4] + f"a{CELL}".encode() * 20 + content[124:])
    return path


def two_types(folder: Path) -> Any:
    pq.write_table(pa.table({"age": [1.0], "y": [0.5]}), folder / "a.parquet")
    pq.write_table(pa.table({"age": [f"a{CELL}"], "y": [0.5]}), folder / "b.parquet")
    return ds.dataset(folder)


def binary(folder: Path) -> Path:
    (folder / "binary.csv").write_bytes(f"a{CELL},\xff\n".encode("latin-1") + b"1,2\n")
    return folder / "binary.csv"


#: What fails on private cells, or quotes them when it is planned.
SOURCES: dict[str, Callable[[Path], Any]] = {
    "LazyFrame without a header": lambda folder: pl.scan_csv(headerless(folder)).select("age", "y"),
    "LazyFrame that casts": lambda _: pl.DataFrame({"age": [f"a{CELL}"], "y": [0.5]}).lazy().cast({"age": pl.Int8}),
    "LazyFrame with a false type": lambda folder: pl.scan_csv(
        headerless(folder), has_header=False, schema={"age": pl.Int64, "y": pl.Float64}
    ),
    "DuckDB query without a header": lambda folder: SQLQuery("duckdb://", f"SELECT age, y FROM '{headerless(folder)}'"),
    "DuckDB query that casts": lambda _: SQLQuery(
        "duckdb://", f"SELECT CAST('a{CELL[:2]}' || '{CELL[2:]}' AS INT) AS age, 0.5 AS y FROM range(9)"
    ),
    "DuckDB relation that casts": failing,
    "Parquet, damaged": damaged,
    "dataset of two types": two_types,
    "dataset of CSV": lambda folder: ds.dataset(headerless(folder), format="csv"),
    "CSV without a header": headerless,
    "CSV in another encoding": binary,
    "a stream that fails at once": lambda _: Raising(0),
    "a stream that fails later": lambda _: Raising(2),
    "a column": lambda _: pl.Series("age", [f"a{CELL}"]),
}


def refusal(act: Callable[[], Any]) -> DPRegressError:
    with pytest.raises(DPRegressError) as caught:
        act()
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.filterwarnings("ignore::dpregress.errors.SelectedRowsWarning")
@pytest.mark.parametrize("kind", SOURCES)
def test_no_error_holds_a_cell(kind: str, tmp_path: Path) -> None:
    source = SOURCES[kind](tmp_path)
    model = DPRidge(ApproxDP(1.0, 1e-6), schema=SCHEMA)
    error = refusal(lambda: model.fit_table(source, "y", ["age"]))
    # a query is the caller's own words; here it has a part of the cell at most
    assert CELL not in everything_said(error)
    assert all(isinstance(each, DPRegressError) for each in chain(error)), "it carries another library's error"


@pytest.mark.parametrize("entry", KINDS, ids=str)
def test_no_private_object_shows_a_cell(entry: SourceEntry, tmp_path: Path) -> None:
    """What tools that print the locals of a frame would show: of sources, rows, chunks and sessions."""
    table = pa.table({name: [float(CELL)] * 9 for name in ("a", "b", "y")})
    source = entry.make(table, tmp_path)
    rows = PrivateRows(source)
    chunk = next(iter(source.chunks(5)))
    session = Session(
        Central(), rows, SeededSampler(np.random.default_rng(0)), MemoryLedger(GDP(1.0)).reserve(GDP(1.0))
    )
    bounded = BoundedRows(chunk.x, chunk.x[:, 0], chunk.x[:, 0], 0)
    labelled = LabelledArray(chunk.x, "y")
    for each in (source, rows, chunk, session, bounded, labelled, (source, chunk), {"rows": rows}):
        assert CELL not in f"{each!r} {each}"
        assert "array(" not in repr(each)


def test_what_the_caller_wrote_is_named() -> None:
    for query, word in (("SELECT nothing FROM range(3)", "nothing"), ("SELECT 1 FROM nowhere", "nowhere")):
        assert word in str(refusal(SQLQuery("duckdb://", query).open))
    assert "kein" in str(refusal(SQLQuery("duckdb://", "SELECT kein FROM (SELECT 1 AS ein)").open))


def test_the_law_finds_what_a_traceback_hides() -> None:
    def hidden() -> None:
        try:
            raise ValueError(CELL)
        except ValueError:
            raise InvalidInput("plain") from None

    assert CELL in everything_said(refusal(hidden))


# ------------------------------------------------------------------ credentials

#: Locations with credentials, all of which are called TOKEN.
LOCATIONS = (
    "http://127.0.0.1:1/e.parquet?X-Amz-Signature=TOKEN",
    "http://127.0.0.1:1/e.parquet?TOKEN",
    "http://127.0.0.1:1/e.parquet#TOKEN",
    "http://127.0.0.1:1/e.csv;session=TOKEN",
    "http://user:TOKEN@127.0.0.1:1/e.csv",
    "http://TOKEN@127.0.0.1:1/e.csv",
    "http://user:TO/TOKEN@127.0.0.1:1/e.csv",
    "http://user:TO?TOKEN@127.0.0.1:1/e.csv",
    "http://user:TO#TOKEN@127.0.0.1:1/e.csv",
    "http://user:TO@TOKEN@127.0.0.1:1/e.csv",
    "http://user:a::TOKEN@127.0.0.1:1/e.csv",
    "http:/user:TOKEN@127.0.0.1:1/e.csv",
    "https://user:TOKEN@127.0.0.1:1/e.csv",
    "ftp://user:TOKEN@127.0.0.1:1/e.csv",
    "sftp://user:TOKEN@127.0.0.1:1/e.csv",
    "s3://key:TOKEN@bucket/e.csv",
    "gs://key:TOKEN@bucket/e.csv",
    "az://key:TOKEN@bucket/e.csv",
    "memory://key:TOKEN@bucket/e.csv",
    "nothing://key:TOKEN@bucket/e.csv",
    "simplecache::http://user:TOKEN@127.0.0.1:1/e.csv",
    "zip://e.csv::http://user:TOKEN@127.0.0.1:1/e.zip?sig=TOKEN",
    "postgresql://user:TOKEN@127.0.0.1:1/base",
    "postgresql://127.0.0.1:1/base?user=u&password=TOKEN",
    "postgresql://user:TO@TOKEN:x@127.0.0.1:1/base",
    "postgresql:user:TOKEN@127.0.0.1/base",
    "sqlite://user:TOKEN@host/base.db",
    "duckdb://user:TOKEN@host/base.db?a=TOKEN",
    "mysql://user:TOKEN@host/base",
)  # fmt: skip
tables = cli.tables  # a fixture
#: What fit needs beside its data.
GIVEN = ("--target", "cost", "--epsilon", 1, "--delta", 1e-6, "--out", "o")


@pytest.mark.parametrize("location", LOCATIONS)
def test_no_message_shows_a_credential(location: str, tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever a location may be given, and it cannot be read there."""
    assert "TOKEN" not in shown(location)
    (tables / "budget.db").touch()
    for arguments in (
        ("fit", location, *GIVEN, "--schema", "schema.toml"),
        ("fit", "private.csv", location, *GIVEN, "--schema", "schema.toml"),
        ("fit", "private.csv", *GIVEN, "--public", location),
        ("fit", "private.csv", *GIVEN, "--schema", location),
        ("fit", "--sql", location, "--query", "SELECT 1 AS cost", *GIVEN, "--schema", "schema.toml"),
        ("check", location),
        ("predict", location, location, "--out", "p.csv"),
        ("public", location, "--out", "p.json"),
        ("schema", "init", location, "--out", "p.toml"),
        ("schema", "check", location),
        ("marginals", "release", location, "--schema", "schema.toml", "--epsilon", 1, "--delta", 1e-6, "--out", "m"),
        ("marginals", "fit", location, "--target", "y"),
        ("marginals", "report", location, "--out", "r.html"),
        ("ledger", "show", location),
        ("fit", "private.csv", *GIVEN, "--schema", "schema.toml", "--ledger", location, "--dataset", "d"),
        ("vertical", "plan", location, "--key", "k", "--out", "v"),
        ("vertical", "join", location, location, "--out", "v"),
        ("predict", location, location, location, "--out", "p.csv"),
        ("check", "private.csv", f"--schema={location}"),
        ("check", "private.csv", "--nothing", location),
        (location,),
    ):
        outcome = run(capsys, *arguments)
        assert outcome.code == 2, arguments
        assert "TOKEN" not in outcome.out + outcome.err, arguments
    for read in (lambda: read_files(location), lambda: SQLQuery(location, "SELECT 1").open()):
        error = refusal(read)
        assert "TOKEN" not in everything_said(error)


def test_no_result_shows_a_credential(
    tables: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit of a URL that is read: terminal, report, model, statement, ledger."""
    with fsspec.open("memory://host/private.csv", "wb") as file:
        file.write((tables / "private.csv").read_bytes())
    place = "memory://host/private.csv"
    secret = "memory://user:TOKEN@host/private.csv?X-Amz-Signature=TOKEN"
    url_to_fs = fsspec.core.url_to_fs
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url, **o: url_to_fs(place if url == secret else url, **o))
    run(capsys, "ledger", "new", "b.db", "--dataset", "d", "--epsilon", 2, "--delta", 1e-5)
    said = run(
        capsys, "fit", secret, "--target", "cost", "--epsilon", 1, "--delta", 1e-6, "--schema", "schema.toml",
        "--ledger", "b.db", "--dataset", "d", "--out", "o",
    )  # fmt: skip
    assert (said.code, said.err) == (0, "")
    assert "X-Amz-Signature=***" in (tables / "o/report.html").read_text()
    for path in (tables / "b.db", *(tables / "o").iterdir()):
        assert b"TOKEN" not in path.read_bytes()
    assert "TOKEN" not in said.out + run(capsys, "ledger", "show", "b.db").out
    assert "TOKEN" not in repr(SQLQuery("postgresql://u:TOKEN@h/b", "SELECT * FROM 'http://u:TOKEN@h/x?a=TOKEN'"))
    assert "TOKEN" not in f"{URL(secret)} {URL(secret)!r} {read_files([URL(secret)]).name}"
    with opened(URL(secret)) as file:
        assert file.readline(4) == b"age,"


def test_a_driver_that_quotes_the_password_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    dbapi = sys.modules.get("adbc_driver_postgresql.dbapi") or pytest.importorskip("adbc_driver_postgresql.dbapi")
    url = "postgresql://user:TOKEN@host/base"

    def connect(_: str) -> None:
        raise RuntimeError(f'invalid port number: "TOKEN@host" in {url}; password authentication failed')

    monkeypatch.setattr(dbapi, "connect", connect)
    error = refusal(lambda: _ADBCReader(url, "SELECT 1"))
    assert str(error) == (
        "the database cannot be reached: password authentication failed; check postgresql://***@host/base"
    )
    assert "TOKEN" not in everything_said(error)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("rows.csv", "rows.csv"),
        ("a/b@c?d=e.csv", "a/b@c?d=e.csv"),
        ("s3://bucket/part-*.parquet", "s3://bucket/part-*.parquet"),
        ("http://[::1]:80/a.csv", "http://[::1]:80/a.csv"),
        ("https://ann:x@host:8080/a.csv?sig=t&v=2#f", "https://***@host:8080/a.csv?sig=***&v=***#***"),
        ("zip://a.csv::https://u:p@h/z.zip", "zip://a.csv::https://***@h/z.zip"),
        ("postgresql://u:p@h:5432/db", "postgresql://***@h:5432/db"),
        ("duckdb://", "duckdb://"),
    ],
)
def test_urls_as_they_are_shown(location: str, expected: str) -> None:
    assert shown(location) == expected


def test_a_storage_that_is_not_installed_is_named() -> None:
    try:
        import s3fs  # noqa: F401
    except ImportError:
        assert "s3fs is not installed" in str(refusal(lambda: read_files("s3://bucket/e.csv")))
    else:
        missing("a machine without s3fs")


def test_files_of_a_pattern_keep_their_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """FTP has no host in its paths: the URL of a file that matches a pattern has it from the pattern."""
    from dpregress.rows.readers.locations import _address

    class FTP:
        @staticmethod
        def unstrip_protocol(path: str) -> str:
            return f"ftp://{path}"

    files = FTP()
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (files if "host" in url else None, "/a/1.csv"))
    assert _address("ftp://u:p@host/a/*.csv", files, "/a/1.csv") == "ftp://u:p@host/a/1.csv"
