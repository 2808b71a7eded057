"""Ledgers in files under faults: killed processes, full disks, lost permissions, and clocks that jump.

After every fault no acknowledged charge is lost, none is doubled, and the file is sound.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.accounting import GDP, Policy, SQLiteLedger, sqlite_ledger
from dpregress.accounting import ledger as ledger_module
from dpregress.errors import BudgetExceeded, ChargedBefore, LedgerError

#: Processes that charge one file at the same time.
_TOGETHER = 3


def sound(path: Path) -> None:
    """SQLite finds no damage, and the triggers that keep lines final are there."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (6,)


def notes(path: Path) -> list[str]:
    return [charge.note for charge in SQLiteLedger(path, "people").charges]


def charging(path: Path, name: str, acknowledge: int) -> None:
    """Charge the next free note, which other processes want as well, and acknowledge each that is granted."""
    ledger = SQLiteLedger(path, "people").on_behalf(analyst=name)
    number = 0
    while True:
        number = max(number, len(ledger.charges))
        try:
            ledger.reserve(GDP(1e-3), note=str(number), once=True)
        except ChargedBefore:
            continue
        os.write(acknowledge, f"{name}-{number}\n".encode())


def forked(act: Callable[[], None]) -> int:
    """The number of a process of its own that does this."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            act()
        os._exit(1)
    return child


def check_kills(path: Path, kills: int, seed: int) -> None:
    """Kill, again and again, one of the processes that share the ledger, at a random time after it began.

    A new process takes the place of each. Times are uniform over some charges, so that kills fall before the
    transaction, within it, between commit and acknowledgement, and while waiting for another process.
    """
    rng = np.random.default_rng(seed)
    budget = GDP(1e-3 * np.sqrt(1e6))
    SQLiteLedger.create(path, "people", budget, policy=Policy(analysts=tuple(f"p{kill}" for kill in range(kills))))
    read, write = os.pipe()
    os.set_blocking(read, False)
    said = b""
    alive: list[int] = []
    for kill in range(kills + _TOGETHER):
        if len(alive) == _TOGETHER:
            time.sleep(float(rng.uniform(0, 0.02)))
            child = alive.pop(int(rng.integers(_TOGETHER)))
            os.kill(child, signal.SIGKILL)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL, "it ended by itself"
        if kill < kills:
            alive.append(forked(lambda kill=kill: charging(path, f"p{kill}", write)))  # type: ignore[misc]
        with suppress(BlockingIOError):
            said += os.read(read, 1 << 20)
    for child in alive:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with suppress(BlockingIOError):
        said += os.read(read, 1 << 20)
    os.close(read)
    os.close(write)
    check_kept(path, said.decode().split(), kills)


def check_kept(path: Path, acknowledged: list[str], kills: int) -> None:
    """Every acknowledged charge is kept once, and of each killed process at most one that was not acknowledged."""
    charges = SQLiteLedger(path, "people").charges
    kept = [f"{charge.request.analyst}-{charge.note}" for charge in charges]
    assert [charge.note for charge in charges] == [str(number) for number in range(len(charges))], "doubled, or lost"
    assert set(acknowledged) <= set(kept), "an acknowledged charge was lost"
    unheard = [name.partition("-")[0] for name in set(kept) - set(acknowledged)]
    assert len(unheard) == len(set(unheard)), "a process went on although its charge was not acknowledged"
    assert len(acknowledged) > kills / 4, "processes were killed before they could charge anything"
    sound(path)
    SQLiteLedger(path, "people").on_behalf(analyst="p0").reserve(GDP(1e-3))


def test_fifty_kills(tmp_path: Path, seed: int) -> None:
    """Holds for any seed and any timing."""
    check_kills(tmp_path / "l.db", 50, seed)


@pytest.mark.nightly
@pytest.mark.once
def test_a_thousand_kills(tmp_path: Path) -> None:
    """Once a night: what it depends on is the timing of processes, of which no seed decides."""
    check_kills(tmp_path / "l.db", 1000, os.getpid())


def test_a_transaction_that_was_cut_off_is_taken_back(tmp_path: Path) -> None:
    """A process is killed while its charge is written but not committed; the next one finds the file as it was."""
    path = tmp_path / "l.db"
    SQLiteLedger.create(path, "people", GDP(1.0)).reserve(GDP(0.1), note="kept")

    def act() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size=1")
        connection.execute("PRAGMA cache_spill=1")
        connection.execute("BEGIN IMMEDIATE")
        row = ("people", json.dumps(GDP(0.1).encode()), "x" * 1000, "")
        for _ in range(2000):  # far beyond the cache, so that pages of the file are overwritten
            connection.execute("INSERT INTO charge (dataset, event, note, charged) VALUES (?, ?, ?, ?)", row)
        os.kill(os.getpid(), signal.SIGKILL)

    assert os.waitpid(forked(act), 0)[1] == signal.SIGKILL
    assert (tmp_path / "l.db-journal").exists(), "nothing had been written"
    assert notes(path) == ["kept"]
    sound(path)


def killed_at(step: int) -> None:
    """From now on this process is killed before its ``step``-th statement on a ledger."""
    connect, left = sqlite3.connect, step

    class Killing(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().execute(*arguments)

    sqlite3.connect = lambda *arguments, **options: connect(*arguments, factory=Killing, **options)  # type: ignore[assignment]


def test_a_kill_at_every_statement(tmp_path: Path) -> None:
    """Of a charge that upgrades a file of version 1: the file is as before, or upgraded and charged once."""
    old = Path(__file__).parents[1] / "golden" / "files" / "ledger.db"
    before = len(SQLiteLedger(old, "people").charges)
    found = set()
    for step in range(100):
        path = tmp_path / f"{step}.db"
        shutil.copy(old, path)

        def act(path: Path = path, step: int = step) -> None:
            killed_at(step)
            SQLiteLedger(path, "people").reserve(GDP(0.1), note="new", once=True)
            os._exit(0)

        ended = os.waitpid(forked(act), 0)[1]
        sound(path)
        with closing(sqlite3.connect(path)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        charged = notes(path)[before:]
        assert (version, charged) in [(1, []), (3, ["new"])], step
        found.add(version)
        SQLiteLedger(path, "people").reserve(GDP(0.1), note="next")
        assert notes(path)[before:] == [*charged, "next"]
        if ended == 0:
            break
    else:
        pytest.fail("it never came to its end")
    assert step > 15
    assert found == {1, 3}


def test_a_charge_is_synced_and_can_be_rolled_back(tmp_path: Path) -> None:
    """SQLite's settings within a transaction: a rollback journal, and every commit synced to the disk.

    EXTRA (3) syncs the folder as well once the journal is deleted: a journal that a power cut brought back would undo
    a charge whose noise may have been published.
    """
    path = tmp_path / "l.db"
    SQLiteLedger.create(path, "people", GDP(1.0))
    with sqlite_ledger._transaction(path, write=True) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.in_transaction


# ---------------------------------------------------------------- disks and permissions


def in_limits(act: Callable[[], None], most: int) -> int:
    """How a process ended whose files cannot grow beyond so many bytes, as on a full disk."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        act()
        os._exit(0)

    return os.waitstatus_to_exitcode(os.waitpid(forked(limited), 0)[1])


@pytest.mark.parametrize("spare", [0, 100, 600, 4096])
def test_a_full_disk_refuses_the_charge(tmp_path: Path, spare: int) -> None:
    """Wherever the disk becomes full: in the journal, or in the file. The charge is refused and leaves no trace."""
    path = tmp_path / "l.db"
    ledger = SQLiteLedger.create(path, "people", GDP(10.0))
    while path.stat().st_size < 40_000:
        ledger.reserve(GDP(0.01), note="x" * 900)
    before = notes(path)

    def act() -> None:
        try:
            for _ in range(20):
                SQLiteLedger(path, "people").reserve(GDP(0.01), note="y" * 900)
        except LedgerError as refusal:
            os._exit(7 if "\n" not in str(refusal) and str(path) in str(refusal) else 8)

    # the journal is shorter than the file: a small limit stops it first
    for most in (spare, path.stat().st_size + spare):
        assert in_limits(act, most) == 7
        kept = notes(path)
        assert kept[: len(before)] == before
        assert set(kept[len(before) :]) <= {"y" * 900}
        sound(path)
    SQLiteLedger(path, "people").reserve(GDP(0.01), note="after")
    assert notes(path)[-1] == "after"


def test_a_full_disk_makes_no_half_of_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    def act() -> None:
        try:
            SQLiteLedger.create(path, "people", GDP(1.0))
        except LedgerError:
            os._exit(7)

    assert in_limits(act, 1000) == 7
    assert SQLiteLedger.create(path, "people", GDP(1.0)).charges == ()
    sound(path)


def test_a_folder_where_nothing_can_be_written_refuses_the_charge(tmp_path: Path) -> None:
    """SQLite needs its journal beside the file; a folder in its place stops every user, the superuser too."""
    path = tmp_path / "l.db"
    ledger = SQLiteLedger.create(path, "people", GDP(1.0))
    ledger.reserve(GDP(0.1), note="before")
    (tmp_path / "l.db-journal").mkdir()
    with pytest.raises(LedgerError) as refusal:
        ledger.reserve(GDP(0.1))
    assert "\n" not in str(refusal.value)
    (tmp_path / "l.db-journal").rmdir()
    assert notes(path) == ["before"]
    sound(path)


def test_a_folder_that_is_read_only_refuses_the_charge() -> None:
    """By permissions, as another user than the superuser, in a folder that everybody may enter."""
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "l.db"
        SQLiteLedger.create(path, "people", GDP(1.0)).reserve(GDP(0.1), note="before")
        path.chmod(0o444)
        folder.chmod(0o555)

        def act() -> None:
            if os.geteuid() == 0:  # permissions do not bind the superuser
                os.setuid(65534)
            assert len(SQLiteLedger(path, "people").charges) == 1  # it can still be read
            try:
                SQLiteLedger(path, "people").reserve(GDP(0.1))
            except LedgerError:
                os._exit(7)

        assert os.waitstatus_to_exitcode(os.waitpid(forked(act), 0)[1]) == 7
        folder.chmod(0o755)
        assert notes(path) == ["before"]
        sound(path)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


# ---------------------------------------------------------------- clocks


def test_a_clock_that_jumps_changes_no_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times may repeat and go back: charges keep their order and count once each."""
    path = tmp_path / "l.db"
    SQLiteLedger.create(path, "people", GDP(1.0))
    times = ["2026-11-22T10:00:00+00:00", "1970-01-01T00:00:00+00:00", "2038-01-19T03:14:08+00:00"] * 2
    for number, moment in enumerate(times):
        monkeypatch.setattr(ledger_module, "now", lambda moment=moment: moment)
        SQLiteLedger(path, "people").reserve(GDP(0.4), note=str(number))
    assert notes(path) == [str(number) for number in range(6)]
    assert [charge.charged for charge in SQLiteLedger(path, "people").charges] == times
    with pytest.raises(BudgetExceeded):
        SQLiteLedger(path, "people").reserve(GDP(0.4))
