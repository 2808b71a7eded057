"""The law of neighbours: beside the release, nothing that a fit shows or writes depends on a private cell.

Neighbouring tables are fitted with the same answers behind the privacy barrier: those of the first table are recorded
and given to all others. Whatever differs then, between exit codes, messages, warnings, files or the ledger, is a leak,
since the release itself is equal. The sequence of charges, draws, passes over the rows and noise is compared as well:
that is all that is promised about time. How long a pass takes may depend on the cells (SECURITY.md).
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

from dpregress import ApproxDP, DPRidge, MemoryLedger, Numeric, Schema
from dpregress.accounting import ledger as ledger_module
from dpregress.estimators import provenance
from dpregress.inputs import units
from dpregress.trust import TrustModel
from tests.laws.spies import watched
from tests.support import run

SCHEMA = """
[age]
lower = 0
upper = 100
[plan]
levels = ["a", "b", "c"]
[years]
lower = 0.1
upper = 9
[y]
lower = 0
upper = 9
"""
ROWS = 400
BUDGET = ("--schema", "s.toml", "--epsilon", 1, "--delta", 1e-6, "--out", "out")
LEDGER = ("--ledger", "l.db", "--dataset", "d")
#: Commands that charge, and whether a record may also be absent.
COMMANDS: dict[str, tuple[object, ...]] = {
    "residual": ("fit", "t.csv", "--target", "y", "--features", "age,plan"),
    "public rows": ("fit", "t.csv", "--target", "y", "--features", "age,years", "--public", "public.csv"),
    "one-shot": ("fit", "t.csv", "--target", "y", "--features", "age", "--recipe", "one-shot"),
    "formula": ("fit", "t.csv", "--formula", "y ~ age * C(plan)"),
    "rates": ("fit", "t.csv", "--target", "y", "--features", "age", "--family", "poisson", "--exposure", "years"),
    "classes": ("fit", "t.csv", "--target", "plan", "--features", "age", "--family", "multinomial"),
    "units": ("fit", "t.csv", "--target", "y", "--features", "age", "--unit", "id", "--max-rows-per-unit", 2),
    "marginals": ("marginals", "release", "t.csv", "--bins", 4, "--columns", "age,plan,y"),
    "aim": ("marginals", "release", "t.csv", "--bins", 4, "--columns", "age,plan,y", "--recipe", "aim"),
}
#: What stands in place of one line of the private table.
LINES: dict[str, bytes] = {
    "other values": b"7,50,b,3,2",
    "text": b"seven,fifty,b,three,two",
    "an undeclared level": b"7,50,Z,3,2",
    "missing": b",,,,",
    "words for missing": b"NA,NaN,NULL,?,-",
    "outliers": b"7,1e300,a,-1e300,1e999",
    "infinite": b"7,inf,a,-inf,nan",
    "gigantic integers": b"9" * 400 + b"," + b"9" * 400 + b",a,1,1",
    "another unit": b"12345,50,b,3,2",
    "bytes that are no text": b"\xff,\xfe,\xff,\x00,\x01",
    "too few cells": b"7",
    "too many cells": b"7,50,b,3,2,8,9,10",
    "an open quote": b'"7,50,b,3,2',
    "a date": b"2020-01-01,2020-01-01,2020-01-01,2020-01-01,2020-01-01",
    "truth values": b"true,true,true,true,true",
    "a formula": b'=1+1,"=1+1",@a,+1,-1',
}


class Seen(NamedTuple):
    """Everything that somebody without the table can see of a command."""

    code: int
    out: str
    err: str
    files: dict[str, bytes]
    charges: list[Any]
    steps: list[str]


@contextmanager
def answered(answers: list[Any], *, recorded: bool) -> Iterator[None]:
    """Record what the trust model releases, or give what was recorded in its place; the work is done all the same."""
    released, given = TrustModel.release, iter(tuple(answers))

    def release(self: TrustModel, *arguments: Any, **options: Any) -> Any:
        answer = released(self, *arguments, **options)
        if recorded:
            return next(given)
        answers.append(answer)
        return answer

    with patch.object(TrustModel, "release", release):
        yield


def table(rng: np.random.Generator) -> list[bytes]:
    rows = zip(range(ROWS), rng.integers(20, 80, ROWS), rng.integers(0, 3, ROWS), rng.uniform(1, 8, ROWS), strict=True)
    return [f"{number // 3},{age},{'abc'[plan]},{years:.2f},{age // 10}".encode() for number, age, plan, years in rows]


def write(lines: list[bytes]) -> None:
    Path("t.csv").write_bytes(b"\n".join((b"id,age,plan,years,y", *lines)) + b"\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> list[bytes]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ledger_module, "now", lambda: "2026-11-22T00:00:00+00:00")
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)  # a report says the minute of the fit
    monkeypatch.setattr(provenance, "datetime", SimpleNamespace(now=lambda _: noon))
    rng = np.random.default_rng(seed)
    Path("s.toml").write_text(SCHEMA)
    write(table(rng)[:100])
    shutil.move("t.csv", "public.csv")
    return table(rng)


def seen(capsys: pytest.CaptureFixture[str], kind: str) -> Seen:
    """Run the command on the table that is there, against a new ledger."""
    for name in ("l.db", "out"):
        shutil.rmtree(name) if Path(name).is_dir() else Path(name).unlink(missing_ok=True)
    arguments = COMMANDS[kind]
    unit = "id" if "--unit" in arguments else "record"
    relation = "replace" if arguments[0] == "fit" else "add-remove"
    terms = ("--epsilon", 3, "--delta", 1e-5, "--unit", unit, "--neighbours", relation)
    assert run(capsys, "ledger", "new", "l.db", "--dataset", "d", *terms).code == 0
    with watched() as steps:
        outcome = run(capsys, *arguments, *BUDGET, *LEDGER)
    shown = run(capsys, "ledger", "show", "l.db", "--json").out
    written = [Path("out")] if Path("out").is_file() else sorted(Path("out").rglob("*"))
    files = {str(path): path.read_bytes() for path in written}
    return Seen(outcome.code, outcome.out, outcome.err, {**files, **dict.fromkeys(os.listdir(), b"")}, [shown], steps)


def check_alike(kind: str, lines: list[bytes], capsys: pytest.CaptureFixture[str], names: list[str]) -> None:
    """All neighbours look alike, with the changed line first, in the middle, and last."""
    write(lines)
    answers: list[Any] = []
    with answered(answers, recorded=False):
        expected = seen(capsys, kind)
    assert (expected.code, expected.err) == (0, "")
    assert len(expected.files) >= 3
    for turn, name in enumerate(names):
        place = (0, ROWS // 2, ROWS - 1)[turn % 3]
        write([*lines[:place], LINES[name], *lines[place + 1 :]])
        with answered(answers, recorded=True):
            found = seen(capsys, kind)
        for field in Seen._fields:
            assert getattr(found, field) == getattr(expected, field), f"{kind}: {name} in line {place} changes {field}"


@pytest.mark.parametrize("kind", COMMANDS)
def test_nothing_beside_the_release_depends_on_a_cell(
    kind: str, folder: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """Holds for any seed and any noise."""
    check_alike(kind, folder, capsys, list(LINES))


@pytest.mark.parametrize("kind", ["residual", "units", "marginals"])
def test_a_few_neighbours_look_alike(kind: str, folder: list[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    check_alike(kind, folder, capsys, ["missing", "text", "outliers", "another unit"])


@pytest.mark.parametrize("kind", ["marginals", "aim"])
def test_a_record_more_or_less_is_not_seen(kind: str, folder: list[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    """Under add-or-remove neighbours the number of records is private too."""
    write(folder)
    answers: list[Any] = []
    with answered(answers, recorded=False):
        expected = seen(capsys, kind)
    for lines in (folder[1:], folder[:-1], [*folder, LINES["text"]], [*folder, LINES["missing"]]):
        write(lines)
        with answered(answers, recorded=True):
            assert seen(capsys, kind) == expected


# ---------------------------------------------------------------- tables in memory

#: Cells of a column of objects: other types, missing, outliers.
CELLS: tuple[Any, ...] = (None, "x", b"\xff", True, 10**400, float("nan"), float("inf"), -1e300, [1], object(), 1j)


def test_nothing_beside_the_release_depends_on_an_object(seed: int) -> None:
    """The same in Python, for arrays of objects: warnings, statement, charges and everything that a model says."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(size=(200, 2)).astype(object), rng.uniform(size=200).astype(object)
    schema = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1), "y": Numeric(0, 1)})

    def shown() -> tuple[Any, ...]:
        ledger = MemoryLedger(ApproxDP(3.0, 1e-5))
        model = DPRidge(ApproxDP(1.0, 1e-6), schema=schema, ledger=ledger)
        with watched() as steps, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.fit(x, y)
        request = ledger.charges[0].request
        return str(model.summary()), model.privacy_, model.coef_.tolist(), request, list(map(str, said)), steps

    answers: list[Any] = []
    with answered(answers, recorded=False):
        expected = shown()
    for cell in CELLS:
        for values, place in ((x, (3, 1)), (y, 7)):
            kept, values[place] = values[place], cell
            with answered(answers, recorded=True):
                assert shown() == expected, f"{cell!r} changes what is seen"
            values[place] = kept


# ---------------------------------------------------------------- planted faults


def warns_of_missing_cells(source: Any) -> None:
    if any(not cell for column in source.column("age") for cell in column.to_pylist()):
        print("a cell is missing")


def reads_once_more(source: Any) -> None:
    if any(cell in ("x", b"x") for column in source.column("plan") for cell in column.to_pylist()):
        list(source.pieces(10))


@pytest.mark.parametrize(
    ("fault", "name", "field"), [(warns_of_missing_cells, "missing", "out"), (reads_once_more, "text", "steps")]
)
def test_the_law_finds_planted_leaks(
    fault: Callable[[Any], None], name: str, field: str, folder: list[bytes], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A message about a missing cell, and one pass more for a strange one."""
    from dpregress.estimators import base

    bounded = units.bounded_units

    def leaking(source: Any, *arguments: Any, **options: Any) -> Any:
        fault(source)
        return bounded(source, *arguments, **options)

    monkeypatch.setitem(LINES, "text", b"7,50,x,3,2")
    monkeypatch.setattr(base, "bounded_units", leaking)
    with pytest.raises(AssertionError, match=f"changes {field}"):
        check_alike("residual", folder, capsys, [name])
