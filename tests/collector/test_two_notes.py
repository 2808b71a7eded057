"""Damaged stores of two collectors: a line for each fault, and no charge for reports that are not the closed list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dpregress import ApproxDP, MemoryLedger
from dpregress.collector import Study
from dpregress.collector.shares.lists import close_list
from dpregress.collector.shares.noisy_sums import release_share_sum
from dpregress.collector.store import Store, open_store
from dpregress.collector.store.totals import Buckets, arrival_pages
from dpregress.errors import StoreError
from dpregress.mechanisms import SecureSampler
from dpregress.mechanisms.randomness import random_bytes
from tests.collector.two import KEYS, closed_lists, two_study
from tests.support import run

NewStore = Callable[[], str]
_DAMAGED = "was damaged: restore a backup"
#: Notes of a store after its release, another value of the same kind, and what is said of it.
_NOTES: dict[str, tuple[Callable[[str], str], str]] = {
    "sealed": (lambda value: str(int(value) - 1), "closed list (sealed)"),
    "claim": (lambda value: value[::-1], "claim on the ledger (claim)"),
    "charged": (lambda value: value[::-1], "charged reports (charged)"),
    "released": (lambda value: value.replace("clinic", "thief"), "released sum (released)"),
    "salt": (lambda value: value[::-1], "another salt"),
    "holder": (lambda value: str(1 - int(value)), "another collector"),
}


@pytest.fixture
def study(tmp_path: Path, seed: int) -> Study:
    return two_study(tmp_path, seed)


def faults_of(capsys: pytest.CaptureFixture[str], location: str) -> list[str]:
    """What ``collect verify`` says on standard error; it exits with 1."""
    said = run(capsys, "collect", "verify", "--store", location)
    assert (said.code, said.out) == (1, ""), said
    lines = said.err.splitlines()
    assert all(line.startswith("error: ") and "restore a backup" in line for line in lines)
    return lines


@pytest.mark.parametrize("note", _NOTES)
def test_every_note_is_checked(
    note: str, study: Study, new_store: NewStore, tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The note is changed, cannot be read, is removed: a line names it every time."""
    location = new_store()
    other = closed_lists(study, location, tmp_path, seed)
    change, said = _NOTES[note]
    with open_store(location) as store:
        release_share_sum(store, KEYS[0], other)
        value = store.noted(note)
        assert value is not None
        for damaged in (change(value), "\u00b2"):
            store.database.run("UPDATE meta SET value = ? WHERE name = ?", [damaged, note])
            lines = faults_of(capsys, location)
            assert sum(said in line or _DAMAGED in line for line in lines) == 1, lines
            with pytest.raises(StoreError, match="restore a backup"):
                release_share_sum(store, KEYS[0], other)
        store.database.run("DELETE FROM meta WHERE name = ?", [note])
        lines = faults_of(capsys, location)
        assert [said in line or _DAMAGED in line for line in lines] == [True], lines
        with store.database.transaction():
            store.note(note, value)
        assert run(capsys, "collect", "verify", "--store", location).code == 0


def test_a_line_for_each_fault(study: Study, tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Two notes and a sum; and notes that stand only in the store, or appear before the list is closed."""
    location = str(tmp_path / "s.db")
    other = closed_lists(study, location, tmp_path, seed)
    with open_store(location) as store:
        store.database.run("INSERT INTO meta (name, value) VALUES ('claim', '00'), ('charged', '00')")
        store.database.run("UPDATE sums SET reports = reports + 1 WHERE bucket = 3")
        lines = faults_of(capsys, location)
        assert [part in line for part, line in zip(("(claim)", "(charged)", "running sums"), lines, strict=True)]
        with pytest.raises(StoreError, match="claim on the ledger"):
            release_share_sum(store, KEYS[0], other)


def _renamed(store: Store) -> None:
    store.database.run("UPDATE reports SET id = ? WHERE n = 2", [random_bytes(16)])


def _exchanged(store: Store) -> None:
    store.database.run("UPDATE reports SET answer = (SELECT answer FROM reports WHERE n = 2) WHERE n = 3")


def _removed(store: Store) -> None:
    """The last one, with everything that follows from it but the log."""
    store.database.run("DELETE FROM reports WHERE n = 5")
    found = [each for _, page in arrival_pages(store.database) for each in page]
    totals = Buckets(bytes.fromhex(store.noted("salt") or ""), store.payload).summed(found)
    for bucket, (n, total) in enumerate(zip(totals.counts, totals.sums, strict=True)):
        told = [int(n), total.astype("<i8").tobytes(), bucket]
        store.database.run("UPDATE sums SET reports = ?, total = ? WHERE bucket = ?", told)


def _added(store: Store) -> None:
    """One more, with everything that follows from it and an entry in the log."""
    sealed = store.noted("sealed")
    assert sealed is not None
    store.database.run("DELETE FROM meta WHERE name = 'sealed'")
    ((_, page),) = arrival_pages(store.database)
    assert store.add([replace(page[0], id=random_bytes(16))])[0].status == 201
    with store.database.transaction():
        store.note("sealed", sealed)


def _reopened(store: Store) -> None:
    store.database.run("DELETE FROM meta WHERE name = 'sealed'")


@pytest.mark.parametrize("change", [_renamed, _exchanged, _removed, _added, _reopened])
def test_other_reports_than_those_of_the_closed_list_are_not_summed(
    change: Callable[[Store], None],
    study: Study,
    new_store: NewStore,
    tmp_path: Path,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Refused before the charge and before noise is drawn; nor is a second list signed."""
    location = new_store()
    other, ledger = closed_lists(study, location, tmp_path, seed), MemoryLedger(ApproxDP(8.0, 1e-5), unit="user")
    with open_store(location) as store:
        change(store)
        monkeypatch.setattr(SecureSampler, "add_integer_gaussian", lambda *_: pytest.fail("noise was drawn"))
        with pytest.raises(StoreError, match="restore a backup"):
            release_share_sum(store, KEYS[0], other, ledger=ledger)
        with pytest.raises(StoreError, match="restore a backup"):
            close_list(store, KEYS[0])
        assert (len(ledger.charges), store.noted("claim"), store.noted("charged")) == (0, None, None)
