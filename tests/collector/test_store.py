"""One contract for every store: each report counted once, sums exact, every change of what was stored noticed."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.collector import Study
from dpregress.collector.store import Arrival, Outcome, Store, open_store
from dpregress.errors import StoreError
from tests.collector.support import arrival, make_study, reports

NewStore = Callable[[], str]
STORED, REPEATED = Outcome(201), Outcome(200)


@pytest.fixture
def study(tmp_path: Path, seed: int) -> Study:
    return make_study(tmp_path, seed)


@pytest.fixture
def invited(tmp_path: Path, seed: int) -> Study:
    return make_study(tmp_path, seed, enrolment="token")


def arrivals(study: Study, seed: int, n: int) -> list[Arrival]:
    return [arrival(each) for each in reports(study, seed, n)]


def total_of(found: list[Arrival]) -> np.ndarray:
    return np.sum([np.frombuffer(each.answer, "<i4").astype(np.int64) for each in found], axis=0)


def test_sums_are_those_of_the_reports(study: Study, new_store: NewStore, seed: int) -> None:
    found, where = arrivals(study, seed, 300), new_store()
    with open_store(where, study) as store:
        for place in range(0, 300, 70):
            assert set(store.add(found[place : place + 70], hour=place // 140)) == {STORED}
        totals = store.totals()
        assert (totals.n, store.count) == (300, 300)
        np.testing.assert_array_equal(totals.total, total_of(found))
        assert (totals.counts > 0).sum() > 30
        assert store.arrivals() == {0: 140, 1: 140, 2: 20}
        assert store.verify() == 300
    with open_store(where) as again:
        assert again.totals().same_as(totals)
        assert again.study.digest == study.digest
        assert again.verify() == 300


def test_order_does_not_matter(study: Study, new_store: NewStore, seed: int) -> None:
    found, totals = arrivals(study, seed, 60), []
    for order in (found, found[::-1]):
        with open_store(new_store(), study) as store:
            for each in order:
                store.add([each])
            totals.append(store.totals().total)
    np.testing.assert_array_equal(*totals)


def test_repeats_count_once(study: Study, new_store: NewStore, seed: int) -> None:
    """Within a batch, across batches, and after the store was opened again; other bytes raise an alarm."""
    found, where = arrivals(study, seed, 3), new_store()
    with open_store(where, study) as store:
        assert store.add([found[0], found[0], found[1]]) == [STORED, REPEATED, STORED]
        assert store.add([found[1], found[2]]) == [REPEATED, STORED]
    with open_store(where) as store:
        assert store.add(found) == [REPEATED] * 3
        forged = Arrival(found[0].id, None, found[1].answer)
        assert store.add([forged, found[0]]) == [Outcome(409, "changed-report"), REPEATED]
        assert store.refused() == {"changed-report": 1}
        np.testing.assert_array_equal(store.totals().total, total_of(found))
        assert store.verify() == 3


def test_a_token_counts_once(invited: Study, new_store: NewStore, seed: int) -> None:
    hashes = [hashlib.sha256(bytes([place])).digest() for place in range(4)]
    found = [Arrival(each.id, hashes[place], each.answer) for place, each in enumerate(arrivals(invited, seed, 4))]
    with open_store(new_store(), invited) as store:
        store.issue(hashes[:3])
        assert store.add(found) == [STORED] * 3 + [Outcome(403, "unknown-token")]
        other = Arrival(found[3].id, hashes[0], found[3].answer)
        assert store.add([other, found[0]]) == [Outcome(409, "used-token"), REPEATED]
        moved = Arrival(found[0].id, hashes[3], found[0].answer)
        assert store.add([moved]) == [Outcome(409, "changed-report")]
        assert store.tokens() == (3, 3)
        assert store.verify() == 3
        with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
            store.issue(hashes[:1])
        twice = [Arrival(bytes([9] * 16), hashes[1], found[0].answer)] * 2
        assert store.add(twice) == [Outcome(409, "used-token")] * 2


def test_refusals_are_counted(study: Study, new_store: NewStore) -> None:
    with open_store(new_store(), study) as store:
        store.add([], refused={"late": 2})
        store.add([], refused={"late": 1, "rate": 5})
        assert store.refused() == {"late": 3, "rate": 5}


def test_a_store_holds_one_study(tmp_path: Path, new_store: NewStore, seed: int) -> None:
    where, study = new_store(), make_study(tmp_path, seed)
    with pytest.raises(StoreError, match=r"no study|no store"):
        open_store(where)
    open_store(where, study).close()
    with pytest.raises(StoreError, match="another study"):
        open_store(where, make_study(tmp_path, seed, epsilon=2.0))


def test_a_failed_transaction_leaves_nothing(
    study: Study, new_store: NewStore, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = arrivals(study, seed, 20)
    with open_store(new_store(), study) as store:
        store.add(found[:5])
        before = store.totals()
        with monkeypatch.context() as patch:
            patch.setattr("dpregress.collector.store.audit.append", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                store.add(found)
        assert store.totals().same_as(before)
        assert store.verify() == 5
        assert store.add(found) == [REPEATED] * 5 + [STORED] * 15


def test_two_processes_may_write(study: Study, new_store: NewStore, seed: int) -> None:
    """Four connections that write the same reports at once: each counts once."""
    found, where = arrivals(study, seed, 120), new_store()
    open_store(where, study).close()
    outcomes: list[Outcome] = []

    def write(turn: int) -> None:
        with open_store(where) as store:
            for place in range(0, 120, 10):
                at = (place + 30 * turn) % 120
                outcomes.extend(store.add(found[at : at + 10]))

    threads = [threading.Thread(target=write, args=[turn]) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count(STORED), outcomes.count(REPEATED)) == (120, 360)
    with open_store(where) as store:
        np.testing.assert_array_equal(store.totals().total, total_of(found))
        assert store.verify() == 120


SPOILT = {
    "a changed report": "UPDATE reports SET answer = (SELECT answer FROM reports WHERE n = 2) WHERE n = 7",
    "a removed report": "DELETE FROM reports WHERE n = 7",
    "the last report removed": "DELETE FROM reports WHERE n = 20",
    "a changed token": "UPDATE reports SET token = (SELECT id FROM reports WHERE n = 2) WHERE n = 7",
    "a changed sum": "UPDATE sums SET total = (SELECT s.total FROM sums s WHERE s.bucket <> 3 AND "
    "s.total <> sums.total LIMIT 1) WHERE bucket = 3",
    "a changed count": "UPDATE sums SET reports = reports + 1 WHERE bucket = 3",
    "a removed entry": "DELETE FROM audit WHERE n = 2",
    "the last entry removed": "DELETE FROM audit WHERE n = 3",
    "a changed entry": "UPDATE audit SET event = replace(event, '\"first\":1', '\"first\":2') WHERE n = 2",
}


@pytest.mark.parametrize("change", SPOILT)
def test_verify_notices(change: str, study: Study, new_store: NewStore, seed: int) -> None:
    found = arrivals(study, seed, 20)
    with open_store(new_store(), study) as store:
        store.add(found[:10])
        store.add(found[10:])
        assert store.verify() == 20
        with store.database.transaction():
            store.database.run(SPOILT[change])
        with pytest.raises(StoreError, match="restore a backup"):
            store.verify()


def test_a_backup_is_the_store(invited: Study, new_store: NewStore, tmp_path: Path, seed: int) -> None:
    """Copied while another connection writes, verified, and good to go on with."""
    tokens = [hashlib.sha256(bytes([place])).digest() for place in range(30)]
    found = [Arrival(each.id, tokens[place], each.answer) for place, each in enumerate(arrivals(invited, seed, 30))]
    where = new_store()
    with open_store(where, invited) as store, open_store(where) as writer:
        store.issue(tokens)
        store.add(found[:20])
        assert store.backup(tmp_path / "backup.db") == 20
        writer.add(found[20:])
        with open_store(tmp_path / "backup.db") as copy:
            assert copy.verify() == 20
            assert copy.tokens() == (30, 20)
            assert copy.add(found) == [REPEATED] * 20 + [STORED] * 10
            assert copy.totals().same_as(store.totals())
    with open_store(where) as store, pytest.raises(StoreError, match="already exists"):
        store.backup(tmp_path / "backup.db")


def test_a_file_that_is_no_database_is_closed_again(
    tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("no database " * 100)
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*words: Any, **named: Any) -> sqlite3.Connection:
        opened.append(connect(*words, **named))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    with pytest.raises(StoreError, match="not a database"):
        open_store(tmp_path / "notes.txt", study)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")


def test_no_credential_is_shown() -> None:
    with pytest.raises(StoreError) as refusal:
        open_store("postgresql://ann:secret@127.0.0.1:1/nothing")
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_files_belong_to_their_owner(study: Study, tmp_path: Path) -> None:
    open_store(tmp_path / "s.db", study).close()
    assert (tmp_path / "s.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "damage",
    [
        "INSERT INTO tokens (hash, report) VALUES (?, NULL)",
        "DELETE FROM tokens WHERE report IS NULL",
        "UPDATE tokens SET hash = ? WHERE report IS NULL",
        "UPDATE tokens SET hash = ? WHERE report IS NOT NULL",
        "UPDATE tokens SET report = NULL WHERE report IS NOT NULL",
        "UPDATE tokens SET report = ? WHERE report IS NOT NULL",
    ],
)
def test_no_token_is_forged_lost_or_freed_unseen(damage: str, invited: Study, new_store: NewStore, seed: int) -> None:
    tokens = [hashlib.sha256(bytes([place])).digest() for place in range(2)]
    [found] = arrivals(invited, seed, 1)
    with open_store(new_store(), invited) as store:
        store.issue(tokens[:1])
        assert store.admit(tokens) == 1
        assert store.add([Arrival(found.id, tokens[0], found.answer)], hour=0) == [STORED]
        assert store.verify() == 1
        store.database.run(damage, [b"forged" * 5] * damage.count("?"))
        with pytest.raises(StoreError, match="tokens"):
            store.verify()


def test_a_cell_of_another_type_is_a_fault(study: Study, tmp_path: Path, seed: int) -> None:
    with open_store(tmp_path / "s.db", study) as store:
        store.add(arrivals(study, seed, 2), hour=0)
        for damage in ("UPDATE reports SET answer = 'text' WHERE n = 2", "UPDATE audit SET chain = 1.5 WHERE n = 2"):
            store.database.run(damage)
            n, faults = store.faults()
            assert n == 2
            assert "restore a backup" in faults[-1]


def test_tokens_are_stored_hashed(invited: Study, tmp_path: Path, seed: int) -> None:
    """No file of a store holds a token, used or not."""
    token = b"the token of a participant......"
    store = open_store(tmp_path / "s.db", invited)
    store.issue([hashlib.sha256(token).digest()])
    (report,) = reports(invited, seed, 1, [token])
    assert store.add([arrival(report, hashlib.sha256(token).digest())]) == [STORED]
    for path in tmp_path.glob("s.db*"):
        assert token not in path.read_bytes()
    assert isinstance(store, Store)
    store.close()
