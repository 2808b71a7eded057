"""Malformed input to the real commands: one clear line or a mapped result, nothing written, nothing charged.

The rule: what is public (a file as a whole, its columns' names and types, everything on the public side) is refused
before the ledger is charged; what is in a private cell is mapped, and neither message nor success depends on it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import ApproxDP, SQLiteLedger
from tests.support import Outcome, run

GOOD = b"30,27,1000\n40,22,2000\n50,31,3000\n"
HEADER = b"age,bmi,cost\n"
BUDGET = ("--epsilon", 1, "--delta", 1e-6, "--ledger", "budget.db", "--dataset", "d", "--out", "result")


def parquet(**columns: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


def whole_parquet() -> bytes:
    rng = np.random.default_rng(0)
    return parquet(age=rng.uniform(20, 80, 400), bmi=rng.normal(27, 4, 400), cost=rng.uniform(0, 9, 400))


def repeated_parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays([pa.array([1.0, 2.0])] * 3, names=["age", "bmi", "age"]), sink)
    return bytes(sink.getvalue().to_pybytes())


#: Tables that no command can use: a file's name and bytes.
TABLES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "empty": ("t.csv", lambda: b""),
    "only a line break": ("t.csv", lambda: b"\n"),
    "only a BOM": ("t.csv", lambda: b"\xef\xbb\xbf"),
    "header only": ("t.csv", lambda: HEADER),
    "header without a line break": ("t.csv", lambda: HEADER.strip()),
    "no header": ("t.csv", lambda: GOOD),
    "duplicate columns": ("t.csv", lambda: b"age,bmi,age,cost\n1,2,3,4\n"),
    "header of NULs": ("t.csv", lambda: b"\0\0\0\n1,2,3\n"),
    "header in Latin-1": ("t.csv", lambda: "âge,bmi,cost\n".encode("latin-1") + GOOD),
    "header in UTF-16": ("t.csv", lambda: (HEADER + GOOD).decode().encode("utf-16")),
    "header with an open quote": ("t.csv", lambda: b'"age,bmi,cost\n' + GOOD),
    "other columns": ("t.csv", lambda: b"height,weight\n1,2\n"),
    "binary": ("t.csv", lambda: bytes(range(256))),
    "zip": ("t.csv", lambda: b"PK\x03\x04" + b"\0" * 60),
    "gzip": ("t.csv.gz", lambda: b"\x1f\x8b\x08" + b"\xfe" * 60),
    "JSON lines": ("t.csv", lambda: b'{"age": 1}\n{"age": 2}\n'),
    "Parquet cut at the end": ("t.parquet", lambda: whole_parquet()[:-20]),
    "Parquet cut in half": ("t.parquet", lambda: whole_parquet()[: len(whole_parquet()) // 2]),
    "Parquet of four bytes": ("t.parquet", lambda: b"PAR1"),
    "Parquet without a beginning": ("t.parquet", lambda: whole_parquet()[40:]),
    "Parquet with another footer": ("t.parquet", lambda: whole_parquet()[:-60] + b"\xff" * 52 + whole_parquet()[-8:]),
    "Parquet without rows": ("t.parquet", lambda: parquet(age=pa.array([], pa.float64()), bmi=[], cost=[])),
    "Parquet without columns": ("t.parquet", lambda: parquet()),
    "Parquet of duplicate columns": ("t.parquet", repeated_parquet),
    "Parquet of other columns": ("t.parquet", lambda: parquet(height=[1.0, 2.0])),
    "CSV named Parquet": ("t.parquet", lambda: HEADER + GOOD),
    "cut Parquet named CSV": ("t.csv", lambda: whole_parquet()[:300]),
}
#: Columns that can be neither number nor level.
NESTED: dict[str, object] = {
    "list": [[1.0], [2.0]],
    "struct": [{"a": 1}, {"a": 2}],
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    "timestamp": pa.array([0, 1], pa.timestamp("s")),
    "date": pa.array([0, 1], pa.date32()),
    "time": pa.array([0, 1], pa.time64("us")),
    "duration": pa.array([0, 1], pa.duration("s")),
    "fixed bytes": pa.array([b"abc", b"def"], pa.binary(3)),
}
#: Tables without fault but that of other columns than those asked for.
OTHER = ("other columns", "Parquet of other columns", "JSON lines", *(f"column of type {what}" for what in NESTED))
for what, cells in NESTED.items():
    TABLES[f"column of type {what}"] = ("t.parquet", lambda cells=cells: parquet(age=cells, bmi=[1, 2], cost=[1, 2]))

#: Texts that are no schema.
SCHEMAS: dict[str, bytes] = {
    "not TOML": b"age: 3\n",
    "cut": b"[age]\nlower = 0\nupper =",
    "NUL": b"[age]\nlower = 0\0\n",
    "Latin-1": "[âge]\nlower = 0\nupper = 1\n".encode("latin-1"),
    "UTF-16": "[age]\n".encode("utf-16"),
    "value": b"age = 3\n",
    "array of tables": b"[[age]]\nlower = 0\n",
    "table in a table": b"[age.old]\nlower = 0\nupper = 1\n",
    "twice": b"[age]\n[age]\n",
    "unknown key": b"[age]\nmin = 0\nmax = 1\n",
    "one bound": b"[age]\nlower = 0\n",
    "reversed": b"[age]\nlower = 1\nupper = 0\n",
    "equal": b"[age]\nlower = 1\nupper = 1\n",
    "nan": b"[age]\nlower = nan\nupper = 1\n",
    "inf": b"[age]\nlower = 0\nupper = inf\n",
    "1e400": b"[age]\nlower = 0\nupper = 1e400\n",
    "gigantic integer": b"[age]\nlower = 0\nupper = " + b"9" * 400 + b"\n",
    "integer beyond parsing": b"[age]\nlower = 0\nupper = " + b"9" * 5000 + b"\n",
    "text bound": b'[age]\nlower = "0"\nupper = 1\n',
    "truth bound": b"[age]\nlower = false\nupper = 1\n",
    "date bound": b"[age]\nlower = 2020-01-01\nupper = 2021-01-01\n",
    "fill outside": b"[age]\nlower = 0\nupper = 1\nfill = 2\n",
    "rule": b'[age]\nmissing = "median"\n',
    "unit": b"[age]\nunit = 3\n",
    "unit of two lines": b'[age]\nunit = "a\\nb"\n',
    "levels as text": b'[age]\nlevels = "ab"\n',
    "no levels": b"[age]\nlevels = []\n",
    "one level": b'[age]\nlevels = ["a"]\n',
    "duplicate levels": b'[age]\nlevels = ["a", "a"]\n',
    "duplicate numbers": b'[age]\nlevels = [1, "1"]\n',
    "empty level": b'[age]\nlevels = ["a", ""]\n',
    "control characters": b'[age]\nlevels = ["a", "b\\u0007"]\n',
    "nested levels": b'[age]\nlevels = ["a", ["b"]]\n',
    "levels and bounds": b'[age]\nlevels = ["a", "b"]\nlower = 0\n',
    "undeclared stand-in": b'[age]\nlevels = ["a", "b"]\nmissing = "c"\n',
    "deep": b"a = " + b"[" * 5000,
    "a name of two lines": b'["a\\nb"]\nlower = 0\nupper = 1\n',
    "an indicator's name": b'[age]\nlevels = ["a", "b"]\n["age=b"]\nlower = 0\nupper = 1\n',
}
#: Dictionaries and domains that say nothing.
DRAFTS: dict[str, tuple[str, bytes]] = {
    "no name": ("t.csv", b"name,type\n,numeric\n"),
    "named twice": ("t.csv", b"name,type\na,numeric\na,numeric\n"),
    "unknown type": ("t.csv", b"name,type\na,colour\n"),
    "bound of text": ("t.csv", b"name,min,max\na,low,high\n"),
    "one bound": ("t.csv", b"name,min,max\na,1,\n"),
    "reversed": ("t.csv", b"name,min,max\na,2,1\n"),
    "one level": ("t.csv", b"name,levels\na,x\n"),
    "empty level": ("t.csv", b"name,levels\na,x||y\n"),
    "unknown rule": ("t.csv", b"name,levels,missing\na,x|y,z\n"),
    "indicator's name": ("t.csv", b"name,levels\na,x|y\na=y,\n"),
    "not JSON": ("t.json", b"{"),
    "empty domain": ("t.json", b"{}"),
    "list": ("t.json", b"[1]"),
    "negative": ("t.json", b'{"a": -1}'),
    "fraction": ("t.json", b'{"a": 2.5}'),
    "gigantic": ("t.json", b'{"a": 1e400}'),
    "null": ("t.json", b'{"a": null}'),
    "deep": ("t.json", b"[" * 100_000),
    "Latin-1": ("t.json", b'{"\xe9": 2}'),
}
#: Private lines that are mapped, whatever is in them.
LINES: dict[str, bytes] = {
    "too short": b"1,2\n",
    "too long": b"1,2,3,4,5\n",
    "blank": b"\n\n",
    "NUL bytes": b"\0,\0,\0\n",
    "1e400": b"1e400,-1e400,1e400\n",
    "gigantic integers": b"9" * 5000 + b"," + b"-" + b"9" * 5000 + b"," + b"9" * 400 + b"\n",
    "Latin-1": "é,ü,ß\n".encode("latin-1"),
    "open quote": b'"30,27,1000\n',
    "quoted line break": b'"30\n31",27,1000\n',
    "carriage returns": b"30,27,1000\r\n31\r,22,5\r\n",
    "text": b"thirty,27,a lot\n",
    "words for missing": b"NA,NaN,?\n",
    "infinities": b"inf,-inf,Infinity\n",
    "no last line break": b"30,27,1000",
    "a BOM inside": b"\xef\xbb\xbf30,27,1000\n",
    "half a character": b"\xe2\x82,27,1000\n",
}


@pytest.fixture
def folder(tables: Path) -> Path:
    SQLiteLedger.create(tables / "budget.db", "d", ApproxDP(9.0, 1e-5))
    return tables


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Refused in one line, with nothing written and nothing charged."""
    before = sorted(os.listdir(folder))
    outcome = run(capsys, *arguments)
    said = f"{arguments}: {outcome.err!r}"
    assert outcome.code == 2, said
    assert outcome.out == "", said
    assert outcome.err.startswith("error: "), said
    assert outcome.err.count("\n") == 1, said
    assert len(outcome.err) > 25, said
    assert "Traceback" not in outcome.err
    assert sorted(os.listdir(folder)) == before, said
    assert SQLiteLedger("budget.db", "d").charges == (), said
    return outcome


@pytest.mark.parametrize("kind", TABLES)
def test_tables_that_cannot_be_used(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    name, content = TABLES[kind]
    (folder / name).write_bytes(content())
    target = ("--target", "cost", *BUDGET)
    refused(folder, capsys, "fit", name, *target, "--public", "public.csv")
    refused(folder, capsys, "fit", "private.csv", *target, "--public", name)
    refused(folder, capsys, "public", name, "--features", "age,bmi", "-o", "new.json")
    refused(folder, capsys, "schema", "check", name)
    refused(folder, capsys, "ledger", "show", name)
    refused(folder, capsys, "predict", name, "private.csv", "-o", "new.csv")
    if kind in OTHER:
        assert run(capsys, "check", name).code == 0
        assert run(capsys, "schema", "init", name, "--out", "new.toml").code == 0
        assert run(capsys, "schema", "check", "new.toml").code in (0, 2)  # 2: not one column is readable
    else:
        refused(folder, capsys, "check", name)
        refused(folder, capsys, "schema", "init", name, "--out", "new.toml")


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_that_contradict_themselves(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    (folder / "t.toml").write_bytes(SCHEMAS[kind])
    refused(folder, capsys, "schema", "check", "t.toml")
    refused(folder, capsys, "fit", "private.csv", "--target", "cost", *BUDGET, "--schema", "t.toml")
    refused(folder, capsys, "check", "private.csv", "--schema", "t.toml")


@pytest.mark.parametrize("kind", DRAFTS)
def test_dictionaries_that_say_nothing(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    name, content = DRAFTS[kind]
    (folder / name).write_bytes(content)
    refused(folder, capsys, "schema", "init", name, "--out", "new.toml")


@pytest.mark.parametrize("kind", LINES)
def test_private_lines_are_mapped(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """The fit succeeds and says what it says of a clean table."""
    with (folder / "private.csv").open("ab") as file:
        file.write(LINES[kind])
    outcome = run(capsys, "fit", "private.csv", "--target", "cost", *BUDGET, "--public", "public.csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert np.isfinite(json.loads((folder / "result/model.json").read_text())["coef"]).all()
    assert run(capsys, "check", "private.csv").code == 0
    made = run(capsys, "predict", "result/model.json", "private.csv", "-o", "predicted.csv")
    assert (made.code, made.err) == (0, "")


@pytest.mark.parametrize(
    "name", ["nowhere.csv", ".", "result.csv/none", "a\x01b.csv", "x" * 300, ""],
    ids=["missing", "folder", "beside a file", "control", "long", "empty"],
)  # fmt: skip
def test_paths_that_lead_nowhere(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    target = ("--target", "cost", *BUDGET)
    refused(folder, capsys, "fit", name, *target, "--public", "public.csv")
    refused(folder, capsys, "fit", "private.csv", *target, "--public", name)
    refused(folder, capsys, "fit", "private.csv", *target, "--schema", name)
    refused(folder, capsys, "public", name, "-o", "new.json")
    refused(folder, capsys, "check", name)
    refused(folder, capsys, "schema", "init", name, "--out", "new.toml")
    refused(folder, capsys, "schema", "check", name)
    refused(folder, capsys, "schema", "check", "schema.toml", "--public", name)
    refused(folder, capsys, "predict", name, "private.csv", "-o", "new.csv")
    refused(folder, capsys, "ledger", "show", name)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser reads every file")
def test_files_that_may_not_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("private.csv", "schema.toml"):
        (folder / name).chmod(0)
    refused(folder, capsys, "fit", "private.csv", "--target", "cost", *BUDGET, "--public", "public.csv")
    refused(folder, capsys, "schema", "check", "schema.toml")


@pytest.mark.parametrize("name", ["t.csv", "t.data", "t"])
def test_parquet_by_another_name_is_read(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (folder / name).write_bytes(whole_parquet())
    outcome = run(capsys, "fit", name, "--target", "cost", *BUDGET, "--public", "public.csv")
    assert (outcome.code, outcome.err) == (0, "")


def test_a_byte_order_mark_and_windows_line_ends_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (folder / "private.csv").read_bytes().replace(b"\n", b"\r\n")
    (folder / "private.csv").write_bytes(b"\xef\xbb\xbf" + lines)
    outcome = run(capsys, "fit", "private.csv", "--target", "cost", *BUDGET, "--public", "public.csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert "5,000 private records" in outcome.out
