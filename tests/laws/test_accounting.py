"""Every fit pays once, before it reads or draws; a copy of a ledger is the ledger; a refusal leaves no trace."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from dpregress.accounting import GDP, ZCDP, ApproxDP, Composed, Event, Ledger, MemoryLedger, PureDP, Relation, decode
from dpregress.accounting.events import pure_epsilon
from dpregress.errors import BudgetExceeded, LedgerError, NotAnswered, SeededNoise, SeededNoiseWarning
from dpregress.mechanisms import SecureSampler
from dpregress.trust import Session
from tests import registry
from tests.laws.spies import CHARGE, DRAW, NOISE, READ, Silent, watched
from tests.registry import (
    ESTIMATORS,
    EVENTS,
    FITS,
    LEDGERS,
    QUERIES,
    TRUST,
    EstimatorEntry,
    FitEntry,
    LedgerEntry,
    TrustEntry,
)

#: Sums of squares of floats.
CLOSE = 1e-9

# ---------------------------------------------------------------- one fit


def fitted(entry: EstimatorEntry, seed: int, **parameters: Any) -> Any:
    rng = np.random.default_rng(seed)
    return entry.make(rng, **parameters).fit(*entry.data(rng))


def table_of(x: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    """The same rows as a table; columns are called as the public facts call them."""
    return pd.DataFrame({**{f"x{i}": column for i, column in enumerate(x.T)}, "y": y})


def ways_to_fit(model: Any, x: np.ndarray, y: np.ndarray) -> tuple[Callable[[], Any], ...]:
    """Arrays, a table with a response beside it, and a table that holds the response."""
    table = table_of(x, y)
    return (
        lambda: model.fit(x, y),
        lambda: model.fit(table.drop(columns="y"), table["y"]),
        lambda: model.fit_table(table, "y"),
    )


def check_promise(entry: EstimatorEntry, seed: int) -> None:
    """What a fit draws is what it reserved, what it reserved is the budget, and the ledger holds just that."""
    for budget in (GDP(0.9), ApproxDP(5.0, 1e-6)):
        ledger = MemoryLedger(GDP(2.0))
        statement = fitted(entry, seed, privacy=budget, ledger=ledger).privacy_
        assert math.isclose(statement.events.mu, statement.promise.mu, rel_tol=CLOSE), "draws are not the promise"
        assert math.isclose(statement.promise.mu, budget.gaussian_mu, rel_tol=CLOSE), "the promise is not the budget"
        assert [charge.event for charge in ledger.charges] == [statement.promise]
        assert statement.mu == ledger.spent.mu
        assert statement.relation is ledger.account.relation
        assert not statement.seeded


def check_order(entry: EstimatorEntry, seed: int) -> None:
    """One charge, first of all; then every pass over the rows and every noise is drawn from the reservation before."""
    rng = np.random.default_rng(seed)
    for fit in ways_to_fit(entry.make(rng, privacy=GDP(0.9)), *entry.data(rng)):
        with watched() as steps:
            fit()
        _assert_paid_first(steps)


def _assert_paid_first(steps: list[str]) -> None:
    assert steps.count(CHARGE) == 1, f"charged {steps.count(CHARGE)} times: {steps}"
    assert steps[0] == CHARGE, f"something came before the charge: {steps}"
    assert READ in steps, f"nobody saw the rows being read: {steps}"
    assert steps.count(NOISE) == steps.count(DRAW) >= 1, f"draws and noises do not match: {steps}"
    drawn = answered = 0
    for step in steps[1:]:
        drawn += step == DRAW
        answered += step == NOISE
        assert answered <= drawn, f"noise before its draw: {steps}"
        assert step != READ or answered < drawn, f"rows read unpaid: {steps}"


def check_wild_data(entry: EstimatorEntry, seed: int) -> None:
    """No private cell raises or warns, however strange; the answer is finite. Warnings are errors in this suite."""
    rng = np.random.default_rng(seed)
    rows = registry.wild_rows(rng, 900)
    for x, y in ((rows.x, rows.y), (_as_objects(rows.x, rng), _as_objects(rows.y, rng))):
        for fit in ways_to_fit(entry.make(rng, privacy=GDP(0.9)), x, y):
            model = fit()
            assert np.isfinite(model.coef_).all()
            assert np.isfinite(model.intercept_).all()


def check_seed_is_recorded(entry: EstimatorEntry, seed: int) -> None:
    """The ledger's line and the statement say that the noise came from a seed, and no total is given for it."""
    for random_state, seeded in ((None, False), (seed, True)):
        ledger = MemoryLedger(GDP(2.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            model = fitted(entry, seed, privacy=GDP(0.9), ledger=ledger, random_state=random_state)
        assert [charge.seeded for charge in ledger.charges] == [seeded]
        assert ("no protection" in model.privacy_.describe()) is seeded
        assert ("no protection" in str(model.summary())) is seeded
        if seeded:
            with pytest.raises(SeededNoise):
                model.privacy_.epsilon(1e-6)
        else:
            assert model.privacy_.epsilon(1e-6) == model.privacy_.promise.epsilon(1e-6)


def check_failure_stays_charged(entry: EstimatorEntry, seed: int) -> None:
    """A fit that breaks off while it reads has paid all the same."""
    rng = np.random.default_rng(seed)
    ledger = MemoryLedger(GDP(2.0))

    def interrupt(done: int, of: int) -> None:  # noqa: ARG001 - the signature of a progress bar
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        entry.make(rng, privacy=GDP(0.9), ledger=ledger).fit(*entry.data(rng), progress=interrupt)
    assert [charge.event for charge in ledger.charges] == [GDP(0.9)]


def _as_objects(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    cells = np.array(["", "NA", "1e400", "minus one", None, 10**400, " 3 ", b"4", "\ud800"], dtype=object)
    mixed = values.astype(object)
    hit = rng.random(values.shape) < 0.2
    mixed[hit] = rng.choice(cells, hit.sum())
    return mixed


@pytest.mark.parametrize("entry", ESTIMATORS, ids=str)
@pytest.mark.parametrize(
    "law",
    [check_promise, check_order, check_wild_data, check_seed_is_recorded, check_failure_stays_charged],
    ids=lambda law: law.__name__,
)
def test_fit(law: Callable[..., None], entry: EstimatorEntry, seed: int) -> None:
    """Holds for any seed and any noise."""
    law(entry, seed)


# ---------------------------------------------------------------- many fits, one ledger


def check_charges_first(entry: FitEntry, seed: int) -> None:
    """Whoever holds the rows: all charges come first, every pass and noise after its draw. Holds for any noise."""
    ledger = entry.ledger(GDP(1.0))
    with watched() as steps:
        model = entry.fit(np.random.default_rng(seed), ledger)
    statements = model.privacy_ if isinstance(model.privacy_, tuple) else (model.privacy_,)
    charged = steps.count(CHARGE)
    assert steps[:charged] == [CHARGE] * charged == [CHARGE] * len(statements)
    _assert_paid_first(steps[charged - 1 :])
    for statement in statements:
        assert statement.promise.covers(statement.events)
        assert not statement.seeded
    assert [charge.event for charge in ledger.charges] == [statements[0].promise]


@pytest.mark.parametrize("entry", FITS, ids=str)
def test_every_estimator_is_paid_first(entry: FitEntry, seed: int) -> None:
    """Holds for any seed and any noise."""
    check_charges_first(entry, seed)


@pytest.mark.parametrize("entry", FITS, ids=str)
def test_every_estimator_refuses_another_ledger(entry: FitEntry, seed: int) -> None:
    """A ledger of too little, and one that counts other units: nothing is charged, read or drawn."""
    relation = entry.ledger(GDP(1.0)).account.relation
    for ledger, error in (
        (entry.ledger(GDP(1e-3)), BudgetExceeded),
        (MemoryLedger(GDP(1.0), relation=relation, unit="household"), LedgerError),
    ):
        with watched() as steps, pytest.raises(error):
            entry.fit(np.random.default_rng(seed), ledger)
        assert not steps, f"the refused fit did {steps}"
        assert not ledger.charges


def ledger_of(entry: LedgerEntry, folder: Path, budget: Event, of: Relation = Relation.REPLACE_ONE) -> Ledger:
    return entry.open(folder, budget, of)


def check_clones_share(entry: LedgerEntry, folder: Path, seed: int) -> None:
    """k fits through ``clone`` and cross-validation are k charges on the one ledger."""
    rng = np.random.default_rng(seed)
    estimator = ESTIMATORS[0]
    ledger = ledger_of(entry, folder, GDP(10.0))
    model = estimator.make(rng, privacy=GDP(1.0), ledger=ledger)
    x, y = estimator.data(rng)
    for fits in (1, 2):
        clone(model).fit(x, y)
        assert len(ledger.charges) == fits, f"{fits} fits of clones left {len(ledger.charges)} charges"
    cross_val_score(model, x, y, cv=4)
    assert len(ledger.charges) == 2 + 4, f"2 + 4 fits left {len(ledger.charges)} charges"
    assert math.isclose(ledger.spent.mu, math.sqrt(6.0), rel_tol=CLOSE)


def check_travels(entry: LedgerEntry, folder: Path, seed: int) -> None:
    """A ledger that reaches another process charges the same budget; one that could not, refuses to go."""
    rng = np.random.default_rng(seed)
    estimator = ESTIMATORS[0]
    ledger = ledger_of(entry, folder, GDP(10.0))
    model = estimator.make(rng, privacy=GDP(1.0), ledger=ledger)
    if ledger.location is None:
        with pytest.raises(TypeError, match="SQLiteLedger"):
            pickle.dumps(model)
        return
    pickle.loads(pickle.dumps(model)).fit(*estimator.data(rng))
    assert len(ledger.charges) == 1


def check_refusal(entry: LedgerEntry, folder: Path, seed: int) -> None:
    """A fit that is not covered leaves the ledger as it was, reads no row and adds no noise."""
    rng = np.random.default_rng(seed)
    estimator = ESTIMATORS[0]
    ledger = ledger_of(entry, folder, GDP(1.0))
    x, y = estimator.data(rng)
    estimator.make(rng, privacy=GDP(0.8), ledger=ledger).fit(x, y)
    before = ledger.charges
    with watched() as steps:
        try:
            estimator.make(rng, privacy=GDP(0.61), ledger=ledger).fit(x, y)
        except BudgetExceeded:
            assert not steps, f"the refused fit did {steps}"
        else:
            raise AssertionError("mu = 0.8 and 0.61 went through a budget of mu = 1")
    assert ledger.charges == before
    estimator.make(rng, privacy=GDP(0.599), ledger=ledger).fit(x, y)
    assert len(ledger.charges) == 2


def check_other_neighbours(entry: LedgerEntry, folder: Path, seed: int) -> None:
    """A ledger that counts other neighbours is not charged."""
    rng = np.random.default_rng(seed)
    estimator = ESTIMATORS[0]
    ledger = ledger_of(entry, folder, GDP(1.0), Relation.ADD_REMOVE)
    with watched() as steps, pytest.raises(LedgerError):
        estimator.make(rng, privacy=GDP(0.5), ledger=ledger).fit(*estimator.data(rng))
    assert not steps
    assert not ledger.charges


@pytest.mark.parametrize("entry", LEDGERS, ids=str)
@pytest.mark.parametrize(
    "law",
    [check_clones_share, check_travels, check_refusal, check_other_neighbours],
    ids=lambda law: law.__name__,
)
def test_ledger(law: Callable[..., None], entry: LedgerEntry, tmp_path: Path, seed: int) -> None:
    """Holds for any seed and any noise."""
    law(entry, tmp_path, seed)


# ---------------------------------------------------------------- reservations and trust models


def check_no_overdraft() -> None:
    """A reservation gives out its promise to the last digit and nothing beyond."""
    reservation = MemoryLedger(GDP(1.0)).reserve(GDP(1.0))
    parts = 7
    for _ in range(parts):
        reservation.draw(GDP(1 / math.sqrt(parts)))
    assert math.isclose(reservation.drawn.mu, 1.0, rel_tol=CLOSE)
    for further in (GDP(1.0), GDP(1e-3)):
        try:
            reservation.draw(further)
        except BudgetExceeded:
            continue
        raise AssertionError(f"{further} was drawn from a reservation that was used up")
    assert len(reservation.drawn.parts) == parts


def check_paid_first(entry: TrustEntry, seed: int) -> None:
    """A query beyond the reservation is not answered: nothing read, no noise."""
    rng = np.random.default_rng(seed)
    query = QUERIES[0].make(registry.SPACES["plain"](rng), rng)
    rows = registry.private(registry.tame_rows(rng, query.space, 20))
    reservation = MemoryLedger(GDP(1.0)).reserve(GDP(0.5))
    with watched() as steps:
        try:
            entry.make().release(rows, query, GDP(0.51), sampler=SecureSampler(), reservation=reservation)
        except BudgetExceeded:
            assert not steps, f"the refused query did {steps}"
        else:
            raise AssertionError("mu = 0.51 was answered from a reservation of mu = 0.5")
    assert not reservation.drawn.parts


def check_refusal_draws_nothing(entry: TrustEntry, seed: int) -> None:
    """A query that cannot be answered (another event, other neighbours) takes nothing from the reservation."""
    rng = np.random.default_rng(seed)
    query = QUERIES[0].make(registry.SPACES["plain"](rng), rng)
    rows = registry.private(registry.tame_rows(rng, query.space, 20))
    ledger = MemoryLedger(GDP(1.0), relation=Relation.ADD_REMOVE)
    for reservation, spend in (
        (MemoryLedger(GDP(1.0)).reserve(GDP(1.0)), ApproxDP(0.1, 1e-6)),
        (ledger.reserve(GDP(1.0), relation=Relation.ADD_REMOVE), GDP(0.5)),
    ):
        with watched() as steps, pytest.raises(NotAnswered):
            entry.make().release(rows, query, spend, sampler=Silent(), reservation=reservation)
        assert not steps, f"the refused query did {steps}"
        assert not reservation.drawn.parts


def check_rounds(entry: TrustEntry) -> None:
    """A model that answers a stated number of times refuses, before any charge, a method that asks more often."""
    model = entry.make()
    if model.rounds is None:
        model.accept(10**6)
        return
    model.accept(model.rounds)
    with pytest.raises(NotAnswered):
        model.accept(model.rounds + 1)
    ledger = MemoryLedger(GDP(1.0))
    rows = registry.private(registry.wild_rows(np.random.default_rng(0), 5))
    with watched() as steps, pytest.raises(NotAnswered):
        Session.reserve(rows, GDP(0.5), trust=model, rounds=model.rounds + 1, ledger=ledger)
    assert not steps
    assert not ledger.charges


def test_no_overdraft() -> None:
    check_no_overdraft()


@pytest.mark.parametrize("entry", TRUST, ids=str)
@pytest.mark.parametrize("law", [check_paid_first, check_refusal_draws_nothing], ids=lambda law: law.__name__)
def test_trust_model(law: Callable[..., None], entry: TrustEntry, seed: int) -> None:
    """Holds for any seed and any noise."""
    law(entry, seed)


@pytest.mark.parametrize("entry", TRUST, ids=str)
def test_rounds(entry: TrustEntry) -> None:
    check_rounds(entry)


# ---------------------------------------------------------------- events


def check_composition(seed: int) -> None:
    """mu composes as the root of a sum of squares, however the parts are grouped; k-fold is k times."""
    rng = np.random.default_rng(seed)
    mus = rng.uniform(0.01, 3.0, size=12)
    expected = math.sqrt(math.fsum(mus**2))
    flat = Composed.of(GDP(mu) for mu in mus)
    nested = Composed.of([Composed.of(GDP(mu) for mu in mus[:5]), *(GDP(mu) for mu in mus[5:])])
    for total in (flat, nested):
        assert math.isclose(total.mu, expected, rel_tol=1e-12)
        assert math.isclose(total.rho, expected**2 / 2, rel_tol=1e-12)
        assert len(total.parts) == len(mus)
    for delta in (1e-3, 1e-9):
        assert math.isclose(flat.epsilon(delta), GDP(expected).epsilon(delta), rel_tol=CLOSE)
    assert math.isclose((GDP(0.3) * 25).mu, 1.5, rel_tol=1e-12)


def check_event(event: Event) -> None:
    """An event covers itself and its Gaussian equivalent, no more; it survives a file; k-fold is k times."""
    assert event.covers(event)
    assert not event.covers(event + event), "twice the event is within the event"
    assert decode(event.encode()) == event
    assert math.isclose((event * 3).rho, 3 * event.rho, rel_tol=1e-12) or math.isinf(event.rho)
    assert math.isclose((event * 3).mu, math.sqrt(3) * event.mu, rel_tol=1e-12) or math.isinf(event.mu)
    assert (event * 3).epsilon(1e-3) >= (event * 2).epsilon(1e-3) >= event.epsilon(1e-3)
    epsilons = [event.epsilon(delta) for delta in (1e-9, 1e-6, 1e-3, 0.1)]
    deltas = [event.delta(epsilon) for epsilon in (0.0, 0.5, 1.0, 5.0)]
    for curve in (epsilons, deltas):
        assert all(high >= low >= 0 for high, low in pairwise(curve))
    if isinstance(event, Composed) or event.gaussian_mu == 0:
        return
    assert event.covers(GDP(event.gaussian_mu))
    assert not event.covers(GDP(event.gaussian_mu * 1.001))


def check_ledger_covers_its_budget(event: Event, epsilon: float, delta: float) -> None:
    """A fresh ledger takes every event that keeps its promise: composing an event with nothing costs nothing."""
    for budget in (event, ApproxDP(epsilon, delta)):
        assert budget.covers(event)
        ledger = MemoryLedger(budget)
        ledger.reserve(event).draw(event)
        assert [charge.event for charge in ledger.charges] == [event]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_ledger_covers_its_budget(event: Event, delta: float) -> None:
    """At the smallest epsilon that the event promises, with room for rounding; at a pure event's own epsilon."""
    epsilon = event.epsilon0 if isinstance(event, PureDP) else event.epsilon(delta)
    if math.isfinite(epsilon):
        check_ledger_covers_its_budget(event, epsilon * (1 + CLOSE), delta)


def test_composition(seed: int) -> None:
    """Deterministic up to rounding."""
    check_composition(seed)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_event(event: Event) -> None:
    check_event(event)


# ---------------------------------------------------------------- charges that depend on outcomes

#: Ways to go on after a first charge, each in ever smaller parts until the ledger takes no more.
CONTINUATIONS = (GDP(0.1), ZCDP(0.004), PureDP(0.05), ApproxDP(0.1, 1e-8))


def continued(budget: Event, first: Event, event: Event) -> Composed:
    """All that a ledger takes of ``event`` after ``first``."""
    ledger = MemoryLedger(budget)
    ledger.reserve(first)
    for _ in range(200):
        try:
            ledger.reserve(event)
        except BudgetExceeded:
            break
    return ledger.spent


@pytest.mark.parametrize("first", [GDP(0.1), ZCDP(0.005), PureDP(0.1), ApproxDP(0.2, 1e-8)], ids=repr)
def test_whoever_chooses_after_an_outcome_meets_one_bound(first: Event) -> None:
    """One bound holds for all ways to go on: the larger of two deltas, averaged over outcomes, would exceed both."""
    budget = ApproxDP(1.0, 1e-6)
    totals = [continued(budget, first, event) for event in CONTINUATIONS]
    went_on = [total for total in totals if len(total.parts) > 1]
    mu_limit = budget.gaussian_mu * (1 + CLOSE)
    by_mu = all(total.mu <= mu_limit for total in went_on)
    rho_limit = 1e-6 * (1 + CLOSE)
    by_rho = all(
        pure_epsilon(total) <= 1 or (math.isfinite(total.rho) and ZCDP(total.rho).delta(1.0) <= rho_limit)
        for total in went_on
    )
    by_sums = all(
        math.fsum(part.epsilon0 for part in total.parts if isinstance(part, ApproxDP | PureDP)) <= 1 + CLOSE
        and all(isinstance(part, ApproxDP | PureDP) for part in total.parts)
        for total in went_on
    )
    assert went_on, "a ledger goes on with charges of its first kind"
    assert by_mu or by_rho or by_sums, went_on


@pytest.mark.parametrize("first", [GDP(0.1), ZCDP(0.005), ApproxDP(0.2, 1e-8)], ids=repr)
def test_a_charge_without_what_a_ledger_adds_up_is_refused(first: Event) -> None:
    """The message says what is added up, and the mend; a reservation with an (epsilon, delta) promise follows suit."""
    other = ApproxDP(0.1, 1e-8) if not isinstance(first, ApproxDP) else ZCDP(0.001)
    ledger = MemoryLedger(ApproxDP(1.0, 1e-6))
    reservation = MemoryLedger(ApproxDP(1.0, 1e-6)).reserve(ApproxDP(1.0, 1e-6))
    ledger.reserve(first)
    reservation.draw(first)
    with pytest.raises(BudgetExceeded, match=r"this ledger adds up .* open a separate budget"):
        ledger.reserve(other)
    with pytest.raises(BudgetExceeded):
        reservation.draw(other)
