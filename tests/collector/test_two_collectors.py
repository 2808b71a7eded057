"""Two collectors: shares that tell nothing alone, one noisy sum each, and every way in which one may fail."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, norm

from dpregress import ApproxDP, MemoryLedger
from dpregress.collector import Study, device_report, device_shares
from dpregress.collector.drafting import expected_errors
from dpregress.collector.readout import read_out
from dpregress.collector.shares import noisy_sums
from dpregress.collector.shares.holder import ShareHolder, check_holders, identity_text, load_identity
from dpregress.collector.shares.joining import join_sums, read_joined
from dpregress.collector.shares.lists import agree, close_list, load_list, own_list
from dpregress.collector.shares.noisy_sums import load_share_sum, release_share_sum
from dpregress.collector.shares.splitting import additive_share, seed_words, sum_of_shares
from dpregress.collector.store import open_store
from dpregress.collector.wire import token_for
from dpregress.errors import BudgetExceeded, ChargedBefore, InvalidInput, NotAvailable, StoreError
from dpregress.mechanisms import SecureSampler
from dpregress.parties.documents import public_half, signed
from tests.collector.support import TRUTH, make_study, people
from tests.collector.two import HOLDERS, KEYS, Two, exact_sum, filled, shares, two_collectors, two_study
from tests.reference.additive_shares import VECTORS, known_shares


@pytest.fixture
def study(tmp_path: Path, seed: int) -> Study:
    return two_study(tmp_path, seed)


# ------------------------------------------------------------ shares


def test_known_answers() -> None:
    """The file is what the reference computes, and the library agrees with it to the last bit."""
    known = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert known == known_shares()
    for case in known["shares"]:
        seed, integers = bytes.fromhex(case["seed"]), np.array(case["integers"], dtype=np.int64)
        assert [f"{word:016x}" for word in seed_words(seed, len(integers))] == case["words"]
        share = additive_share(integers, seed)
        assert share.astype("<u8").tobytes().hex() == case["share"]
        np.testing.assert_array_equal(sum_of_shares([share, seed_words(seed, len(integers))]), integers)
    token = bytes.fromhex(known["token"])
    assert [token_for(token, holder).hex() for holder in (0, 1)] == known["tokens"]
    assert token_for(bytes(32), 0) == bytes(32)
    with pytest.raises(InvalidInput, match="16 bytes"):
        seed_words(b"short", 2)


def test_shares_add_up_to_the_answer_and_differ_every_time(study: Study) -> None:
    row: list[object] = [44, 2, "no", "yes"]
    one, other = device_shares(row, study)
    assert (one.id, one.task) == (other.id, other.task)
    found = sum_of_shares([seed_words(one.payload, study.query.size), np.frombuffer(other.payload, "<u8")])
    assert study.terms is not None
    numbers = study.terms.row(row)
    np.testing.assert_array_equal(found, study.exact_steps(numbers[:-1], float(numbers[-1])))
    again = device_shares(row, study)
    assert {one.payload, other.payload}.isdisjoint({each.payload for each in again})


@pytest.mark.nightly
def test_a_share_alone_is_uniform(study: Study) -> None:
    """The bytes of 300 shares of one answer against the uniform law: chi-square, failure probability 1e-7."""
    row: list[object] = [44, 2, "no", "yes"]
    data = np.frombuffer(b"".join(device_shares(row, study)[1].payload for _ in range(300)), np.uint8)
    counts, expected = np.bincount(data, minlength=256), len(data) / 256
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-7, 255)


def test_devices_take_the_right_way(study: Study, tmp_path: Path, seed: int) -> None:
    """No noisy report for two collectors, no shares for one; nothing is charged before that is known."""
    ledger = MemoryLedger(ApproxDP(8.0, 1e-5), unit="user")
    row: list[object] = [44, 2, "no", "yes"]
    with pytest.raises(InvalidInput, match="device_shares"):
        device_report(row, study, ledger=ledger)
    with pytest.raises(InvalidInput, match="device_report"):
        device_shares(row, make_study(tmp_path, seed), ledger=ledger)
    assert not ledger.charges
    device_shares(row, study, ledger=ledger)
    assert [charge.event for charge in ledger.charges] == [study.spend]
    with pytest.raises(ChargedBefore):
        device_shares(row, study, ledger=ledger)
    with pytest.raises(InvalidInput, match="shares"):
        study.answer(np.zeros(3), 0.0, SecureSampler())


# ------------------------------------------------------------ the study


def test_the_file_names_both_collectors(study: Study, tmp_path: Path, seed: int) -> None:
    assert Study.read(study.text()).holders == HOLDERS
    assert json.loads(study.text())["format"] == "dpregress.study/3"
    path = tmp_path / "me.json"
    path.write_text(identity_text("clinic", "https://clinic.example", KEYS[0]), encoding="utf-8")
    assert load_identity(path) == HOLDERS[0]
    path.write_text(path.read_text().replace("clinic.example", "thief.example"), encoding="utf-8")
    with pytest.raises(InvalidInput, match="changed after it was signed"):
        load_identity(path)
    for holders in (HOLDERS[:1], (HOLDERS[0], HOLDERS[0]), (HOLDERS[0], replace(HOLDERS[1], key=HOLDERS[0].key))):
        with pytest.raises(InvalidInput):
            replace(study, holders=holders)
    spelt = replace(HOLDERS[1], address=f"{HOLDERS[0].address.upper().replace('HTTPS', 'https')}:443")
    with pytest.raises(InvalidInput, match="of their own"):
        replace(study, holders=(HOLDERS[0], spelt))
    for address in ("http://localhost:8000", "http://127.0.0.9"):
        assert ShareHolder("a", address, HOLDERS[0].key).address == address
    local = make_study(tmp_path, seed)
    with pytest.raises(InvalidInput, match="GDP"):
        replace(local, holders=HOLDERS)
    for name, address in (
        ("a b", "https://x.example"),
        ("a", "ftp://x.example"),
        ("a", "https://x.example/path"),
        ("a", "https://["),
        ("a", "https://x.example:port"),
        ("a", "https://user@x.example"),
        ("a", "http://x.example"),
        ("a", "http://127.0.0.1.example"),
        ("a", "https://[2001:db8::1]"),
        ("a", "https://[fe80::1%x * ; form-action *; z]"),
        ("a", "https://[v1.x]"),
        ("a", "https://0.0.0.0"),
        ("a", "https://x.example:0"),
        ("a", "https://x.example#"),
        ("a", " https://x.example"),
        ("a", "https://-x.example"),
        ("a", "https://\u212alinic.example"),
        ("a", f"https://{'x' * 300}.example"),
    ):
        with pytest.raises(InvalidInput):
            ShareHolder(name, address, HOLDERS[0].key)


def test_expected_errors_of_second_moments(study: Study, tmp_path: Path) -> None:
    """What nothing explains still has errors, which fall nearly as ``1 / sqrt n`` where sampling counts."""
    errors = expected_errors(study, [1_000, 4_000, 16_000], tmp_path / "pilot.csv")
    assert np.isfinite(errors).all()
    assert np.all(np.diff(errors, axis=0) < 0)
    assert np.all(errors[0] > 1.8 * errors[1])


def test_weaker_noise_is_refused(study: Study) -> None:
    record = json.loads(study.text())
    record["answer"]["noise_scale"] -= 1
    with pytest.raises(InvalidInput, match="its noise or its grid was changed"):
        Study.read(json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n")


def test_a_store_belongs_to_one_collector(study: Study, tmp_path: Path) -> None:
    open_store(tmp_path / "s.db", study, 0).close()
    for holder in (1, None):
        with pytest.raises((StoreError, InvalidInput)):
            open_store(tmp_path / "s.db", study, holder)
    with open_store(tmp_path / "s.db") as store:
        assert store.holder == 0
        with pytest.raises(NotAvailable, match="holds shares"):
            read_out(store)
        with pytest.raises(InvalidInput, match="not the key"):
            close_list(store, KEYS[1])


# ------------------------------------------------------------ the sums


def test_the_sum_is_exact_but_for_the_noise(study: Study, tmp_path: Path, seed: int) -> None:
    """Without noise the joined sum is the sum of the answers; with it, the excess is within 12 standard deviations."""
    n = 200
    with two_collectors(study, tmp_path) as two:
        found = shares(study, seed, n)
        for holder in range(2):
            assert {each.status for each in two.admit([pair[holder] for pair in found], holder)} == {201}
            assert two.stores[holder].verify() == n
        total, count = join_sums(study, two.sums())
    assert count == n
    away = (total - exact_sum(study, *people(seed, n))) / study.integer_noise.scale
    assert np.abs(away).max() < 12 * np.sqrt(2)  # below 1e-30
    assert np.abs(away).max() > 1e-6  # all below with probability (1e-6)^15


def test_noise_of_both_in_the_release(study: Study) -> None:
    """The law that inference uses: two draws of the scale of the study, whatever n is."""
    step = 2.0**-study.bits
    for n in (10, 10_000):
        release = study.release(np.zeros(study.query.size, dtype=np.int64), n)
        assert release.noise.sigma == pytest.approx(np.sqrt(2) * study.integer_noise.scale * step)
        assert release.events == (study.spend,)
        assert study.message_plan.noise(n) * n == pytest.approx(release.noise.sigma, rel=1e-5)


class Counting(SecureSampler):
    """Counts draws, and may fail after one."""

    def __init__(self, fails: bool = False) -> None:
        self.draws, self.fails = 0, fails

    def add_integer_gaussian(self, value: Any, scale: int) -> Any:
        self.draws += 1
        if self.fails:
            raise KeyboardInterrupt
        return super().add_integer_gaussian(value, scale)


def test_the_same_sum_again(study: Study, tmp_path: Path, seed: int) -> None:
    """A second read-out is the first one, byte for byte, and draws no noise; also after the store is opened again."""
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        lists, sampler = two.lists(), Counting()
        texts = [release_share_sum(two.stores[0], KEYS[0], lists[1], sampler=sampler) for _ in range(3)]
    with open_store(tmp_path / "clinic.db") as again:
        texts.append(release_share_sum(again, KEYS[0], lists[1], sampler=sampler))
        again.verify()
    assert (len(set(texts)), sampler.draws) == (1, 1)


def test_charged_before_noise_and_kept_before_it_is_shown(
    study: Study, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between charge, noise and commit: the ledger holds one charge, and the next call goes on."""
    ledger = MemoryLedger(ApproxDP(8.0, 1e-5), unit="user")
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        lists, store = two.lists(), two.stores[0]
        with pytest.raises(KeyboardInterrupt):
            release_share_sum(store, KEYS[0], lists[1], ledger=ledger, sampler=Counting(fails=True))
        assert len(ledger.charges) == 1
        assert store.noted("charged") is not None
        assert store.noted("released") is None
        kept: list[bool] = []
        monkeypatch.setattr(noisy_sums, "signed", lambda *each: kept.append(True) or signed(*each))
        text = release_share_sum(store, KEYS[0], lists[1], ledger=ledger)
        assert store.noted("released") == text
        assert len(ledger.charges) == 1
        assert [event["kind"] for event in _log(store)] == [
            "made",
            "stored",
            "sealed",
            "claimed",
            "charged",
            "released",
        ]


def _log(store: Any) -> list[Any]:
    from dpregress.collector.store import audit

    return [entry.event for entry in audit.entries(store.database)]


def test_a_budget_that_is_spent_refuses_before_noise(study: Study, tmp_path: Path, seed: int) -> None:
    ledger, sampler = MemoryLedger(ApproxDP(1.0, 1e-6), unit="user"), Counting()
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        with pytest.raises(BudgetExceeded):
            release_share_sum(two.stores[0], KEYS[0], two.lists()[1], ledger=ledger, sampler=sampler)
    assert sampler.draws == 0


def test_an_older_copy_of_a_store_is_refused_by_the_ledger(study: Study, tmp_path: Path, seed: int) -> None:
    """A backup from before the read-out, restored after it, would draw other noise for the same people."""
    ledger, sampler = MemoryLedger(ApproxDP(8.0, 1e-5), unit="user"), Counting()
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        lists = two.lists()
        two.stores[0].backup(tmp_path / "old.db")
        release_share_sum(two.stores[0], KEYS[0], lists[1], ledger=ledger, sampler=sampler)
    with open_store(tmp_path / "old.db") as old, pytest.raises(ChargedBefore):
        release_share_sum(old, KEYS[0], lists[1], ledger=ledger, sampler=sampler)
    assert sampler.draws == 1


def test_a_copy_made_between_charge_and_release_is_refused(study: Study, tmp_path: Path, seed: int) -> None:
    """Neither a ledger that refused nor a killed command leaves a store whose backup draws other noise."""
    poor, rich = (MemoryLedger(ApproxDP(*budget), unit="user") for budget in ((0.5, 1e-6), (8.0, 1e-5)))
    sampler = Counting()
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        lists, store = two.lists(), two.stores[0]
        with pytest.raises(BudgetExceeded):
            release_share_sum(store, KEYS[0], lists[1], ledger=poor)
        assert store.noted("charged") is None
        assert [event["kind"] for event in _log(store)] == ["made", "stored", "sealed", "claimed"]
        store.backup(tmp_path / "refused.db")
        with pytest.raises(KeyboardInterrupt):
            release_share_sum(store, KEYS[0], lists[1], ledger=rich, sampler=Counting(fails=True))
        store.backup(tmp_path / "charged.db")
        for name in ("refused.db", "charged.db"):
            with open_store(tmp_path / name) as copy, pytest.raises(ChargedBefore, match="made after"):
                release_share_sum(copy, KEYS[0], lists[1], ledger=rich, sampler=sampler)
        with open_store(tmp_path / "charged.db") as copy, pytest.raises(ChargedBefore, match="go on with that store"):
            release_share_sum(copy, KEYS[0], lists[1], sampler=sampler)
        text = release_share_sum(store, KEYS[0], lists[1], ledger=rich)
        store.backup(tmp_path / "after.db")
        with open_store(tmp_path / "after.db") as copy:
            assert release_share_sum(copy, KEYS[0], lists[1], ledger=rich, sampler=sampler) == text
    assert (len(rich.charges), len(poor.charges), sampler.draws) == (1, 0, 0)


def test_a_release_without_a_ledger_is_charged_when_one_is_given(study: Study, tmp_path: Path, seed: int) -> None:
    """Once, and the older copy of the store is then refused; a ledger that refuses gets no sum."""
    poor, rich = (MemoryLedger(ApproxDP(*budget), unit="user") for budget in ((0.5, 1e-6), (8.0, 1e-5)))
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        lists, store = two.lists(), two.stores[0]
        store.backup(tmp_path / "old.db")
        text = release_share_sum(store, KEYS[0], lists[1])
        with pytest.raises(BudgetExceeded):
            release_share_sum(store, KEYS[0], lists[1], ledger=poor)
        for _ in range(2):
            assert release_share_sum(store, KEYS[0], lists[1], ledger=rich) == text
            assert [charge.event for charge in rich.charges] == [study.spend]
        with open_store(tmp_path / "old.db") as old, pytest.raises(ChargedBefore):
            release_share_sum(old, KEYS[0], lists[1], ledger=rich)


@pytest.mark.parametrize("name", ["released", "charged"])
def test_a_release_that_vanished_is_not_drawn_again(study: Study, tmp_path: Path, seed: int, name: str) -> None:
    """The audit log tells of it: neither another sum nor a clean verification."""
    sampler = Counting()
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        two.sums()
        store = two.stores[0]
        assert store.verify() == 5
        store.database.run("DELETE FROM meta WHERE name = ?", [name])
        with pytest.raises(StoreError, match="made after the read-out"):
            release_share_sum(store, KEYS[0], two.lists()[1], sampler=sampler)
        with pytest.raises(StoreError, match="made after the read-out"):
            store.verify()
    assert sampler.draws == 0


def test_a_store_of_another_study_is_refused(study: Study, tmp_path: Path, seed: int) -> None:
    """Its price would not be the one that the participants were promised."""
    assert study.terms is not None
    other, sampler = replace(study, terms=replace(study.terms, minimum=study.terms.minimum + 1)), Counting()
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        lists, store = two.lists(), two.stores[0]
        store.database.run("UPDATE meta SET value = ? WHERE name = 'study'", [other.text()])
        where = store.where
    with open_store(where) as changed:
        with pytest.raises(StoreError, match="another study"):
            changed.verify()
        with pytest.raises((StoreError, InvalidInput)):
            release_share_sum(changed, KEYS[0], lists[1], sampler=sampler)
    assert sampler.draws == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://clinic.example", "https://CLINIC.example"), ("https://clinic.example", "https://clinic.example.:443"),
        ("https://clinic.example", "https://clinic\u3002example"), ("https://clinic.example", "https://\uff43linic.example"),
        ("https://clinic.example", "https://clinic .example"), ("https://clinic.example", "https://%63linic.example"),
        ("https://192.0.2.1", "https://3221225985"), ("https://192.0.2.1", "https://192.0.513"),
        ("https://192.0.2.1", "https://0xc0.0.2.1"), ("https://[2001:db8::1]", "https://[2001:DB8:0::1]"),
        ("http://localhost:8000", "http://127.0.0.1:8000"), ("https://localhost:8000", "https://a.localhost:8000"),
        ("https://clinic.example", "https://clinic.example:8443"),
    ],
)  # fmt: skip
def test_two_spellings_of_one_server_are_not_two_collectors(one: str, other: str) -> None:
    """One server would get both shares."""
    parts = zip("ab", (one, other), KEYS, strict=True)
    with pytest.raises(InvalidInput):
        check_holders([ShareHolder(name, address, public_half(key)) for name, address, key in parts])


def test_on_both_databases(study: Study, new_store: Callable[[], str], tmp_path: Path, seed: int) -> None:
    """The second collector's store in SQLite and in PostgreSQL: the same sum again, and a copy that knows of it."""
    with open_store(tmp_path / "first.db", study, 0) as first, open_store(new_store(), study, 1) as second:
        two = Two(study, [first, second], tmp_path)
        filled(two, seed)
        lists = two.lists()
        texts = {release_share_sum(second, KEYS[1], lists[0]) for _ in range(2)}
        assert second.verify() == 5
        second.backup(tmp_path / "copy.db")
        with open_store(tmp_path / "copy.db") as copy:
            assert texts == {release_share_sum(copy, KEYS[1], lists[0])}
        assert join_sums(study, [two.sum_of(holder, lists[1 - holder]) for holder in range(2)])[1] == 5


# ------------------------------------------------------------ what may go wrong


def test_nothing_before_the_minimum(study: Study, tmp_path: Path, seed: int) -> None:
    """Neither a list, nor a sum of what both hold."""
    with two_collectors(study, tmp_path) as two:
        found = shares(study, seed, 5)
        two.admit([pair[0] for pair in found[:2]], 0)
        with pytest.raises(NotAvailable, match="2 of 3"):
            close_list(two.stores[0], KEYS[0])
        with pytest.raises(NotAvailable, match="close the list"):
            own_list(two.stores[0], KEYS[0])
        two.admit([pair[0] for pair in found[2:3]], 0)
        two.admit([pair[1] for pair in found[1:5]], 1)
        lists = two.lists()
        sampler = Counting()
        with pytest.raises(NotAvailable, match="both collectors hold 2 of 3"):
            release_share_sum(two.stores[0], KEYS[0], lists[1], sampler=sampler)
        assert (sampler.draws, two.stores[0].noted("charged")) == (0, None)


def test_one_collector_is_lost(study: Study, tmp_path: Path, seed: int) -> None:
    """Without its list there is no sum of the other one, and without its sum no fit."""
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        lists = two.lists()
        with pytest.raises(InvalidInput, match="one and the same collector"):
            release_share_sum(two.stores[0], KEYS[0], lists[0])
        alone = two.sum_of(0, lists[1])
        with pytest.raises(InvalidInput, match="one sum of each collector"):
            join_sums(study, [alone, alone])
        with pytest.raises(InvalidInput, match="one sum of each collector"):
            join_sums(study, [alone])


def test_late_missing_and_replayed_shares(study: Study, tmp_path: Path, seed: int) -> None:
    """A report counts once, and only where both shares came before both lists were closed."""
    with two_collectors(study, tmp_path) as two:
        found = shares(study, seed, 8)
        assert {each.status for each in two.admit([pair[0] for pair in found], 0)} == {201}
        assert {each.status for each in two.admit([pair[1] for pair in found[:5]], 1)} == {201}
        assert {each.status for each in two.admit([pair[1] for pair in found[:5]], 1)} == {200}
        changed = replace(found[0][1], payload=found[1][1].payload)
        assert [each.reason for each in two.admit([changed], 1)] == ["changed-report"]
        wrong = [each.reason for each in two.admit([found[0][1]], 0)]
        assert wrong == ["wrong-size"]
        lists = two.lists()
        assert [(each.status, each.reason) for each in two.admit([found[6][1]], 1)] == [(403, "late")]
        assert [each.status for each in two.admit([found[0][1]], 1)] == [200]
        sums = [two.sum_of(holder, lists[1 - holder]) for holder in range(2)]
        for store in two.stores:
            store.verify()
        total, n = join_sums(study, sums)
    x, y = people(seed, 8)
    assert n == 5
    away = (total - exact_sum(study, x[:5], y[:5])) / study.integer_noise.scale
    assert np.abs(away).max() < 12 * np.sqrt(2)


def test_a_count_that_is_not_true(study: Study, tmp_path: Path, seed: int) -> None:
    """A wrong count, ids twice, another signature, another study: each is refused."""
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        text = close_list(two.stores[1], KEYS[1])
    record = {name: value for name, value in json.loads(text).items() if name != "signature"}
    ids = base64.b64decode(record["ids"])
    path = tmp_path / "wild.list"
    for change, key, said in (
        ({"reports": 6}, KEYS[1], "are not the ids"),
        ({"ids": base64.b64encode(ids + ids[:16]).decode(), "reports": 6}, KEYS[1], "are not the ids"),
        ({"ids": base64.b64encode(ids[:-1]).decode()}, KEYS[1], "are not the ids"),
        ({"ids": "*"}, KEYS[1], "not a list"),
        ({}, KEYS[0], "signed by somebody else"),
        ({"collector": "clinic"}, KEYS[1], "signed by somebody else"),
        ({"collector": "thief"}, KEYS[1], "nobody who is a collector"),
        ({"study": "0" * 64}, KEYS[1], "another study"),
    ):
        path.write_text(signed({**record, **change}, key), encoding="utf-8")
        with pytest.raises(InvalidInput, match=said):
            load_list(path, study)


def test_a_collector_that_claims_reports_it_does_not_hold(study: Study, tmp_path: Path, seed: int) -> None:
    """The masks of what is missing do not cancel: the sum is out of all bounds, but with probability 2^-100."""
    with two_collectors(study, tmp_path) as two:
        found = shares(study, seed, 8)
        two.admit([pair[0] for pair in found], 0)
        two.admit([pair[1] for pair in found[:5]], 1)
        mine, theirs = two.lists()
        ids = base64.b64encode(b"".join(mine.ids)).decode()
        text = json.loads(close_list(two.stores[1], KEYS[1]))
        record = {**{k: v for k, v in text.items() if k != "signature"}, "reports": 8, "ids": ids}
        path = tmp_path / "false.list"
        path.write_text(signed(record, KEYS[1]), encoding="utf-8")
        honest = two.sum_of(0, load_list(path, study))
        dishonest = two.sum_of(1, mine)
        assert (honest.n, dishonest.n) == (8, 5)
        with pytest.raises(InvalidInput, match="different reports"):
            join_sums(study, [honest, dishonest])
        with pytest.raises(InvalidInput, match="do not fit each other"):
            join_sums(study, [honest, replace(dishonest, n=honest.n, agreed=honest.agreed)])
        with pytest.raises(InvalidInput, match="no second release"):
            release_share_sum(two.stores[0], KEYS[0], theirs)


def test_lists_decide_what_is_summed(study: Study, tmp_path: Path, seed: int) -> None:
    """Two lists of one collector, shown to different people, give sums that do not join."""
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        mine, theirs = two.lists()
        other = replace(theirs, ids=theirs.ids[1:], digest="0" * 64)
        assert agree([mine, theirs]).digest != agree([mine, other]).digest
        one, two_ = two.sum_of(0, other), two.sum_of(1, mine)
        with pytest.raises(InvalidInput, match="different reports"):
            join_sums(study, [one, two_])


def test_a_changed_sum_is_refused(study: Study, tmp_path: Path, seed: int) -> None:
    with two_collectors(study, tmp_path) as two:
        filled(two, seed)
        two.sums()
    path = tmp_path / "0.sum"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "reports": 6}), encoding="utf-8")
    with pytest.raises(InvalidInput, match="changed after it was signed"):
        load_share_sum(path, study)
    del record["signature"]
    path.write_text(signed({**record, "total": "AAAA"}, KEYS[0]), encoding="utf-8")
    with pytest.raises(InvalidInput, match="not the sum"):
        load_share_sum(path, study)


# ------------------------------------------------------------ the fit


@pytest.mark.slow
@pytest.mark.parametrize("family", ["binomial", pytest.param("gaussian", marks=pytest.mark.nightly)])
def test_the_fit_is_nearly_that_of_a_curator(family: str, tmp_path: Path, seed: int) -> None:
    """4,000 people: within 5.1 standard errors of the truth (failure probability 1e-6), of which privacy is little."""
    n = 4_000
    study = two_study(tmp_path, seed, family=family, n=4_000)
    x, y = people(seed, n)
    rng = np.random.default_rng([seed, 9])
    noise = np.rint(rng.normal(0, np.sqrt(2) * study.integer_noise.scale, study.query.size)).astype(np.int64)
    total = exact_sum(study, x, y) + noise
    halves = [rng.integers(0, 2**63, study.query.size, dtype=np.uint64)]
    halves.append(total.astype(np.uint64) - halves[0])
    found = read_joined(
        study,
        [noisy_sums.ShareSum(holder, n, "agreed", each) for holder, each in enumerate(halves)],
        public=tmp_path / "pilot.csv",
    )
    estimates = np.array([each["estimate"] for each in found.encode()["coefficients"]])
    truth = TRUTH
    if family == "gaussian":
        design = np.column_stack([np.ones(20_000), (big := people(seed + 1, 20_000))[0]])
        truth = np.linalg.lstsq(design, big[1], rcond=None)[0][1:]
    of_truth = 0.5 if family == "gaussian" else 0.0  # the truth itself comes from 20,000 people
    ratios = (estimates - truth) / (found.standard_error * np.hypot(1, of_truth))
    print("errors in standard errors:", ratios.round(2))
    assert np.abs(ratios).max() < norm.isf(1e-6 / 6)
    assert found.model.estimates_ is not None
    assert np.all(np.abs(found.standard_error / np.abs(truth)) < 0.5)
    assert "collude" in found.model.privacy_.unit
    with pytest.raises(NotAvailable, match="no messages to shuffle"):
        found.model.shuffled_epsilon()
    assert "shuffled" not in str(found.model.summary())
