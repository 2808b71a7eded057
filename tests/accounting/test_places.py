"""A ledger stays the one that was opened: across forks, folders, and files put in its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpregress import GDP, MemoryLedger, SQLiteLedger
from dpregress.accounting import ledger as ledger_module
from dpregress.errors import LedgerError


def test_a_ledger_in_memory_is_not_charged_in_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its charges would be lost with the child."""
    ledger = MemoryLedger(GDP(1.0))
    monkeypatch.setattr(ledger_module.os, "getpid", lambda: -1)
    with pytest.raises(LedgerError, match="another process"):
        ledger.reserve(GDP(0.1))
    assert ledger.charges == ()


def test_another_folder_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = SQLiteLedger.create("l.db", "d", GDP(1.0))
    SQLiteLedger.create("other/l.db", "d", GDP(1.0))
    os.chdir(tmp_path / "other")
    ledger.reserve(GDP(0.1))
    assert ledger.location == "l.db"
    assert len(SQLiteLedger(tmp_path / "l.db", "d").charges) == 1
    assert SQLiteLedger(tmp_path / "other" / "l.db", "d").charges == ()


@pytest.mark.parametrize("dataset", ["d", "e"])
def test_a_file_put_in_its_place_is_refused(tmp_path: Path, dataset: str) -> None:
    ledger = SQLiteLedger.create(tmp_path / "a.db", "d", GDP(10.0))
    SQLiteLedger.create(tmp_path / "b.db", dataset, GDP(0.1))
    (tmp_path / "b.db").replace(tmp_path / "a.db")
    with pytest.raises(LedgerError, match=r"another budget|no budget"):
        ledger.reserve(GDP(5.0))
    assert SQLiteLedger(tmp_path / "a.db", dataset).charges == ()


@pytest.mark.parametrize(
    "damage",
    [
        "PRAGMA user_version=99",
        "DROP TRIGGER charge_is_final; UPDATE charge SET event = '{'",
        'DROP TRIGGER charge_is_final; UPDATE charge SET event = \'{"kind": "other"}\'',
        "DROP TRIGGER budget_is_final; UPDATE dataset SET relation = 'cousins'",
    ],
)
def test_damaged_ledgers_are_refused_in_one_line(tmp_path: Path, damage: str) -> None:
    import sqlite3

    SQLiteLedger.create(tmp_path / "a.db", "d", GDP(10.0)).reserve(GDP(0.1))
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.executescript(damage)
    connection.close()
    with pytest.raises(LedgerError) as caught:
        SQLiteLedger(tmp_path / "a.db", "d").reserve(GDP(0.1))
    assert "\n" not in str(caught.value)
