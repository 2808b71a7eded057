"""What every ledger promises, in memory and on disk."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

from dpregress.accounting import GDP, ZCDP, ApproxDP, Event, Ledger, MemoryLedger, PureDP, Relation, SQLiteLedger
from dpregress.errors import BudgetExceeded, ChargedBefore, LedgerError

Open = Callable[[Event], Ledger]


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "memory":
        return lambda budget: MemoryLedger(budget, "people")
    return lambda budget: SQLiteLedger.create(tmp_path / "ledger.db", "people", budget)


def test_charges_are_kept_in_order(opened: Open) -> None:
    ledger = opened(GDP(1.0))
    assert ledger.charges == ()
    assert ledger.spent.mu == 0.0
    ledger.reserve(GDP(0.6), note="first")
    ledger.reserve(GDP(0.8), note="second")
    assert [(charge.event, charge.note) for charge in ledger.charges] == [(GDP(0.6), "first"), (GDP(0.8), "second")]
    assert all(datetime.fromisoformat(charge.charged).tzinfo is not None for charge in ledger.charges)
    assert ledger.spent.mu == pytest.approx(1.0)


def test_a_note_is_charged_once(opened: Open) -> None:
    """Equal notes are refused where once is asked for, and only there, among any number of threads."""
    ledger = opened(GDP(100.0))
    start = threading.Barrier(8)

    def attempt(_: int) -> bool:
        start.wait()
        try:
            ledger.reserve(GDP(1.0), note="a release", once=True)
        except ChargedBefore:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1
    ledger.reserve(GDP(1.0), note="another", once=True)
    ledger.reserve(GDP(1.0), note="a release")
    assert [charge.note for charge in ledger.charges] == ["a release", "another", "a release"]


def test_a_refused_charge_leaves_no_trace(opened: Open) -> None:
    ledger = opened(GDP(1.0))
    ledger.reserve(GDP(0.8))
    before = ledger.charges
    for event in (GDP(0.7), ZCDP(0.1), ApproxDP(0.1, 1e-9), GDP(0.5) * 3):
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(event)
        assert "\n" not in str(refusal.value)
        assert "people" in str(refusal.value)
    assert ledger.charges == before
    ledger.reserve(GDP(0.6))


@pytest.mark.parametrize(
    ("budget", "event", "times"),
    [
        (GDP(1.0), GDP(0.1), 100),
        (ZCDP(1.0), ZCDP(0.1), 10),
        (PureDP(1.0), PureDP(0.1), 10),
        (ApproxDP(1.0, 1e-6), ApproxDP(0.25, 2.5e-7), 4),
    ],
    ids=repr,
)
def test_a_budget_holds_exactly_what_it_says(opened: Open, budget: Event, event: Event, times: int) -> None:
    ledger = opened(budget)
    for _ in range(times):
        ledger.reserve(event)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(event)
    assert len(ledger.charges) == times


@pytest.mark.parametrize(
    ("budget", "words"),
    [(GDP(1.0), "mu = 0.1"), (ZCDP(1.0), "rho = 0.005"), (ApproxDP(1.0, 1e-6), "epsilon = 0.3969 at delta = 1e-06")],
    ids=repr,
)
def test_a_refusal_says_what_is_spent_in_the_budgets_currency(opened: Open, budget: Event, words: str) -> None:
    ledger = opened(budget)
    with pytest.raises(BudgetExceeded, match="of which nothing is spent"):
        ledger.reserve(GDP(20.0))
    ledger.reserve(GDP(0.1))
    with pytest.raises(BudgetExceeded, match=words):
        ledger.reserve(GDP(20.0))


def test_other_neighbours_need_a_budget_of_their_own(opened: Open) -> None:
    ledger = opened(GDP(1.0))
    with pytest.raises(LedgerError, match="add-or-remove-one"):
        ledger.reserve(GDP(0.1), relation=Relation.ADD_REMOVE)
    assert ledger.charges == ()


def test_a_copy_is_the_same_ledger(opened: Open) -> None:
    ledger = opened(GDP(1.0))
    for copied in (copy.copy(ledger), copy.deepcopy(ledger), copy.deepcopy([ledger])[0]):
        copied.reserve(GDP(0.1))
    assert len(ledger.charges) == 3


def test_threads_cannot_overspend(opened: Open) -> None:
    ledger = opened(GDP(4.0))

    def attempt(_: int) -> bool:
        try:
            ledger.reserve(GDP(1.0))
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(attempt, range(40))) == 16
    assert len(ledger.charges) == 16


def test_a_ledger_in_memory_does_not_pickle() -> None:
    with pytest.raises(TypeError, match="use SQLiteLedger"):
        pickle.dumps(MemoryLedger(GDP(1.0)))


def test_a_ledger_in_memory_has_no_place(tmp_path: Path) -> None:
    assert MemoryLedger(GDP(1.0)).location is None
    path = tmp_path / "ledger.db"
    ledger = SQLiteLedger.create(path, "people", GDP(1.0))
    assert ledger.location == str(path)
    assert ledger.reserve(GDP(0.1)).recorded == str(path)
