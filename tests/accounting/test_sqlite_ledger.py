"""Ledgers in files: append-only, one error of one line for every file that is not one."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dpregress.accounting import GDP, ApproxDP, MemoryLedger, Policy, Relation, Request, SQLiteLedger, sqlite_ledger
from dpregress.errors import InvalidInput, LedgerError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    SQLiteLedger.create(path, "people", GDP(1.0), unit="person").reserve(GDP(0.1), note="first")
    return path


@pytest.fixture
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def refusal(call: Any, *arguments: Any) -> str:
    """The text of the LedgerError that a call raises: one line, with the file's name in it."""
    with pytest.raises(LedgerError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charge SET event = '{}'",
        "DELETE FROM charge",
        "UPDATE dataset SET budget = '{}'",
        "DELETE FROM dataset",
    ],
)
def test_nothing_written_is_changed_or_taken_out(path: Path, raw: sqlite3.Connection, statement: str) -> None:
    with pytest.raises(sqlite3.DatabaseError, match="append-only"):
        raw.execute(statement)
    raw.rollback()
    ledger = SQLiteLedger(path, "people")
    assert ledger.account.budget == GDP(1.0)
    assert [charge.event for charge in ledger.charges] == [GDP(0.1)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR REPLACE INTO dataset SELECT name, 'more', relation, unit, opened, policy FROM dataset",
        "INSERT OR REPLACE INTO charge (id, dataset, event, note, charged) "
        "SELECT id, dataset, 'less', note, charged FROM charge",
    ],
)
def test_nothing_written_is_replaced(raw: sqlite3.Connection, statement: str) -> None:
    """SQLite does not count a replaced row as deleted: the triggers on DELETE are not asked."""
    with pytest.raises(sqlite3.DatabaseError, match="append-only"):
        raw.execute(statement)


def test_a_file_keeps_its_terms(path: Path) -> None:
    account = SQLiteLedger(path, "people").account
    assert (account.dataset, account.budget, account.relation, account.unit) == (
        "people",
        GDP(1.0),
        Relation.REPLACE_ONE,
        "person",
    )


def test_a_budget_is_opened_once(path: Path) -> None:
    assert "already" in refusal(SQLiteLedger.create, path, "people", GDP(9.0))
    assert SQLiteLedger(path, "people").account.budget == GDP(1.0)


def test_many_data_sets_share_a_file(path: Path) -> None:
    other = SQLiteLedger.create(path, "visits", ApproxDP(1.0, 1e-6), relation=Relation.ADD_REMOVE)
    other.reserve(GDP(0.2), relation=Relation.ADD_REMOVE)
    assert SQLiteLedger.datasets(path) == ("people", "visits")
    assert [charge.event for charge in other.charges] == [GDP(0.2)]
    assert [charge.event for charge in SQLiteLedger(path, "people").charges] == [GDP(0.1)]


def test_another_opening_is_the_same_ledger(path: Path) -> None:
    SQLiteLedger(path, "people").reserve(GDP(0.2))
    pickle.loads(pickle.dumps(SQLiteLedger(path, "people"))).reserve(GDP(0.3))
    assert [charge.event.mu for charge in SQLiteLedger(path, "people").charges] == [0.1, 0.2, 0.3]


def test_a_missing_budget_is_refused(path: Path) -> None:
    assert "holds no budget for 'visits'" in refusal(SQLiteLedger, path, "visits")


def test_a_missing_file_is_refused_and_not_made(tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    assert "no ledger at" in refusal(SQLiteLedger, missing, "people")
    assert "no ledger at" in refusal(SQLiteLedger.datasets, missing)
    assert not missing.exists()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    assert "no folder" in refusal(SQLiteLedger.create, tmp_path / "none" / "ledger.db", "people", GDP(1.0))


def test_a_folder_is_not_a_ledger(tmp_path: Path) -> None:
    refusal(SQLiteLedger, tmp_path, "people")
    refusal(SQLiteLedger.create, tmp_path, "people", GDP(1.0))


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n" * 400, b"SQLite format 3\0" + bytes(100)])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    assert str(path) in refusal(SQLiteLedger, path, "people")
    assert path.read_bytes() == content


def test_a_text_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n" * 100)
    refusal(SQLiteLedger.create, path, "people", GDP(1.0))
    assert path.read_text() == "my notes\n" * 100


def test_an_empty_file_becomes_a_ledger_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    assert SQLiteLedger.create(path, "people", GDP(1.0)).charges == ()


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
        connection.commit()
    assert "not a dpregress ledger" in refusal(SQLiteLedger, path, "people")
    assert "not a ledger" in refusal(SQLiteLedger.create, path, "people", GDP(1.0))


def test_a_file_that_vanished_is_refused(path: Path) -> None:
    ledger = SQLiteLedger(path, "people")
    path.unlink()
    assert "no ledger at" in refusal(ledger.reserve, GDP(0.1))
    assert not path.exists()


def test_a_read_only_file_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened through SQLite's own read-only mode, since permissions do not bind every user."""
    ledger = SQLiteLedger(path, "people")
    connect = sqlite3.connect

    def read_only(file: Path, **options: Any) -> sqlite3.Connection:
        return connect(f"file:{file}?mode=ro", uri=True, **options)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    assert "readonly" in refusal(ledger.reserve, GDP(0.1))
    monkeypatch.undo()
    assert len(ledger.charges) == 1


def test_a_locked_file_is_refused_after_waiting(
    path: Path, raw: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = SQLiteLedger(path, "people")
    raw.execute("BEGIN EXCLUSIVE")
    connect = sqlite3.connect

    def impatient(file: Path, *, timeout: float, **options: Any) -> sqlite3.Connection:
        assert timeout >= 10  # patient with other processes
        return connect(file, timeout=0.01, **options)

    monkeypatch.setattr(sqlite3, "connect", impatient)
    assert "locked" in refusal(partial(ledger.reserve, GDP(0.1)))
    raw.rollback()
    ledger.reserve(GDP(0.1))
    assert len(ledger.charges) == 2


@pytest.mark.parametrize("name", ["", " ", "\t", "a\nb", "a\x1b[2J", "\ud800", " a", "a ", "x" * 201, None, 3, b"a"])
@pytest.mark.parametrize("where", ["dataset", "unit"])
def test_a_name_that_nobody_can_type_makes_no_ledger(name: Any, where: str, tmp_path: Path) -> None:
    """An unset shell variable, most of all: refused in one line, before a file is made or a budget is opened."""
    names = {"dataset": "people", "unit": "record", where: name}
    unit = names["unit"]
    for path in (tmp_path / "new.db", tmp_path / "old.db"):
        if path.name == "old.db":
            SQLiteLedger.create(path, "before", GDP(1.0))
        with pytest.raises(InvalidInput) as caught:
            SQLiteLedger.create(path, names["dataset"], GDP(1.0), unit=unit)
        assert "\n" not in str(caught.value)
        assert str(caught.value).isprintable()
    assert not (tmp_path / "new.db").exists()
    assert SQLiteLedger.datasets(tmp_path / "old.db") == ("before",)
    if where == "dataset":
        with pytest.raises(InvalidInput):
            MemoryLedger(GDP(1.0), names["dataset"])


@pytest.mark.parametrize("note", ["a\nb", "\x1b[2J", "\ud800", "x" * 1001, None, 3])
def test_a_note_is_one_line(note: Any, path: Path) -> None:
    for ledger in (SQLiteLedger(path, "people"), MemoryLedger(GDP(1.0), unit="person")):
        before = len(ledger.charges)
        with pytest.raises(InvalidInput, match="the note of a charge is one printable line"):
            ledger.reserve(GDP(0.1), note=note)
        assert len(ledger.charges) == before


def as_version(path: Path, version: int) -> None:
    """The file as this program wrote it when it recorded less."""
    added = {
        2: ("charge.seeded",),
        3: ("dataset.policy", *(f"charge.{name}" for name in (*vars(Request()), "software"))),
    }
    with closing(sqlite3.connect(path)) as connection:
        for column in (column for later in added if later > version for column in added[later]):
            table, name = column.split(".")
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        connection.execute(f"PRAGMA user_version={version}")
        connection.commit()


@pytest.mark.parametrize("version", [1, 2])
def test_older_files_stay_ledgers(path: Path, version: int) -> None:
    """A line that was written before says that less is known; the next charge gives the file its columns."""
    SQLiteLedger(path, "people").reserve(GDP(0.2), seeded=True)
    as_version(path, version)
    known = [None, None] if version == 1 else [False, True]
    ledger = SQLiteLedger(path, "people")
    assert [(charge.event, charge.seeded) for charge in ledger.charges] == list(
        zip([GDP(0.1), GDP(0.2)], known, strict=True)
    )
    assert {(charge.request, charge.software) for charge in ledger.charges} == {(Request(), None)}
    assert ledger.account.policy == Policy()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)  # reading changes nothing
    ledger.on_behalf(analyst="ann").reserve(GDP(0.1), seeded=True)
    ledger.reserve(GDP(0.1))
    assert [charge.seeded for charge in ledger.charges] == [*known, True, False]
    assert [charge.request.analyst for charge in ledger.charges] == ["", "", "ann", ""]
    assert ledger.spent.mu == pytest.approx(0.07**0.5)
    as_version(path, version)
    rules = Policy(analysts=("ann",))
    SQLiteLedger.create(path, "others", GDP(1.0), policy=rules)
    assert SQLiteLedger(path, "others").account.policy == rules
    assert len(SQLiteLedger(path, "people").charges) == 4


def test_an_upgrade_that_fails_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is upgraded in the transaction of the charge: both are there afterwards, or neither is."""
    as_version(path, 1)
    ledger = SQLiteLedger(path, "people")
    monkeypatch.setitem(sqlite_ledger._ADDED, 3, ("ALTER TABLE nowhere ADD COLUMN x TEXT",))
    refusal(ledger.reserve, GDP(0.1))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert [charge.event for charge in ledger.charges] == [GDP(0.1)]
    monkeypatch.undo()
    ledger.reserve(GDP(0.1))
    assert len(ledger.charges) == 2


def test_a_later_version_is_refused(path: Path, raw: sqlite3.Connection) -> None:
    """It may hold rules that this program does not know."""
    raw.execute("PRAGMA user_version=4")
    assert "version 4, this program reads up to 3" in refusal(SQLiteLedger, path, "people")


def test_a_budget_without_a_name_hides_no_other(path: Path, raw: sqlite3.Connection) -> None:
    """Earlier versions opened one for an unset shell variable, and then called the whole file damaged."""
    with raw:
        row = (json.dumps(GDP(1.0).encode()),)
        raw.execute("INSERT INTO dataset VALUES ('', ?, 'replace-one', 'record', '', NULL)", row)
    for name in SQLiteLedger.datasets(path):
        assert SQLiteLedger(path, name).account.budget == GDP(1.0)


def test_the_same_budget_may_be_opened_again(path: Path) -> None:
    """What was charged stays; another budget of the same name is refused, and nothing is written then."""
    again = SQLiteLedger.create(path, "people", GDP(1.0), unit="person", exist_ok=True)
    assert [charge.event for charge in again.charges] == [GDP(0.1)]
    SQLiteLedger.create(path, "others", GDP(1.0), exist_ok=True)
    assert SQLiteLedger.datasets(path) == ("people", "others")
    assert "already" in refusal(partial(SQLiteLedger.create, unit="person"), path, "people", GDP(1.0))
    for budget, unit, relation, policy in (
        (GDP(2.0), "person", Relation.REPLACE_ONE, None),
        (GDP(1.0), "record", Relation.REPLACE_ONE, None),
        (GDP(1.0), "person", Relation.ADD_REMOVE, None),
        (GDP(1.0), "person", Relation.REPLACE_ONE, Policy(analysts=("ann",))),
    ):
        opened = partial(SQLiteLedger.create, unit=unit, relation=relation, policy=policy, exist_ok=True)
        assert "another budget" in refusal(opened, path, "people", budget)
    assert SQLiteLedger(path, "people").account.budget == GDP(1.0)


def test_two_paths_of_one_file_are_one_ledger(tmp_path: Path) -> None:
    """Whoever charges two ledgers at once must know that they are one budget."""
    ledger = SQLiteLedger.create(tmp_path / "l.db", "people", GDP(1.0))
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.db").symlink_to("l.db")
    for path in (tmp_path / "link.db", tmp_path / "sub" / ".." / "l.db"):
        assert ledger.shares(SQLiteLedger(path, "people"))
    SQLiteLedger.create(tmp_path / "l.db", "others", GDP(1.0))
    assert not ledger.shares(SQLiteLedger(tmp_path / "l.db", "others"))


def test_a_ledger_in_memory_has_another_class() -> None:
    with pytest.raises(LedgerError, match="MemoryLedger"):
        SQLiteLedger.create(":memory:", "people", GDP(1.0))
