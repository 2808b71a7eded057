"""A delta above 1/n is refused before the charge, unless it is confirmed."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from dpregress import GDP, ApproxDP, DPRidge, MarginalsRegression, MemoryLedger, Numeric, Schema
from dpregress.accounting import Relation, check_delta_confirmed, decode
from dpregress.errors import InvalidInput
from tests.laws.spies import watched

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(300, 2)), RNG.uniform(size=300)
SCHEMA = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1), "y": Numeric(0, 1)})


@pytest.mark.parametrize(
    ("delta", "n", "relation", "refused"),
    [
        (1e-3, 1000, REPLACE, False),
        (1e-3, 1001, REPLACE, True),
        (0.5, 1, REPLACE, False),
        (1e-5, 10**9, ADD, False),
        (1.1e-5, 77, ADD, True),
    ],
)
def test_the_rule(delta: float, n: int, relation: Relation, refused: bool) -> None:
    """Where n is private the outcome does not depend on it."""
    check_delta_confirmed(ApproxDP(1.0, delta, confirm_delta=True), n, relation)
    check_delta_confirmed(GDP(1.0), n, relation)
    if not refused:
        check_delta_confirmed(ApproxDP(1.0, delta), n, relation)
        return
    with pytest.raises(InvalidInput, match="confirm_delta=True") as caught:
        check_delta_confirmed(ApproxDP(1.0, delta), n, relation)
    assert "\n" not in str(caught.value)
    assert str(n) not in str(caught.value) or relation is REPLACE


def test_a_fit_is_refused_before_it_charges_or_reads() -> None:
    ledger = MemoryLedger(ApproxDP(9.0, 1e-2))
    with watched() as steps, pytest.raises(InvalidInput, match="above 1/n"):
        DPRidge(ApproxDP(1.0, 1e-2), schema=SCHEMA, ledger=ledger).fit(X, Y)
    assert not steps
    DPRidge(ApproxDP(1.0, 1e-2, confirm_delta=True), schema=SCHEMA, ledger=ledger).fit(X, Y)
    assert len(ledger.charges) == 1


def test_marginals_are_refused_by_a_rule_without_n() -> None:
    """Of a table of 5 rows and of 300 rows alike."""
    for rows in (5, 300):
        model = MarginalsRegression(ApproxDP(1.0, 1e-4), schema=SCHEMA, bins=4)
        with watched() as steps, pytest.raises(InvalidInput, match="is above 1e-05") as caught:
            model.fit(X[:rows], Y[:rows])
        assert not steps
        assert "300" not in str(caught.value)


def test_a_confirmation_is_no_part_of_the_budget() -> None:
    budget = ApproxDP(1.0, 1e-2, confirm_delta=True)
    assert budget == ApproxDP(1.0, 1e-2)
    assert hash(budget) == hash(ApproxDP(1.0, 1e-2))
    assert "confirm" not in str(budget.encode()) + repr(budget)
    assert not decode(budget.encode()).confirmed  # type: ignore[attr-defined]
    for copied in (copy.deepcopy(budget), pickle.loads(pickle.dumps(budget))):
        assert copied.confirmed
