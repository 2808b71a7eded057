"""Reservations: what has been drawn never exceeds what was promised."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dpregress.accounting import GDP, ApproxDP, MemoryLedger, PureDP, Relation, Reservation
from dpregress.accounting.events import Composed
from dpregress.errors import BudgetExceeded, InvalidInput


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_reservation_is_not_copied(copied: Callable[[Reservation], Reservation]) -> None:
    """Two copies would each cover the whole promise."""
    with pytest.raises(InvalidInput, match="spent once"):
        copied(Reservation(GDP(1.0), Relation.REPLACE_ONE))


@pytest.mark.parametrize("event", [0.5, None, "GDP(0.5)", Composed(())])
def test_what_is_no_cost_is_not_charged(event: Any) -> None:
    ledger = MemoryLedger(GDP(1.0))
    with pytest.raises(InvalidInput, match="cost"):
        ledger.reserve(event)
    assert not ledger.charges


def test_draws_up_to_the_promise() -> None:
    reservation = Reservation(GDP(1.0), Relation.REPLACE_ONE)
    reservation.draw(GDP(0.6))
    reservation.draw(GDP(0.8))
    assert reservation.drawn == GDP(0.6) + GDP(0.8)
    assert reservation.drawn.mu == pytest.approx(1.0)


def test_a_refused_draw_leaves_no_trace() -> None:
    reservation = Reservation(GDP(1.0), Relation.REPLACE_ONE)
    reservation.draw(GDP(0.6))
    for event in (GDP(0.9), ApproxDP(0.1, 1e-9), PureDP(2.0)):
        with pytest.raises(BudgetExceeded, match="does not cover"):
            reservation.draw(event)
    assert reservation.drawn == GDP(0.6) * 1
    reservation.draw(GDP(0.8))


def test_threads_cannot_draw_more_than_there_is() -> None:
    reservation = Reservation(GDP(10.0), Relation.REPLACE_ONE)

    def attempt(_: int) -> bool:
        try:
            reservation.draw(GDP(1.0))
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(200))) == 100
    assert len(reservation.drawn.parts) == 100


def test_a_reservation_says_what_it_came_from() -> None:
    reservation = MemoryLedger(GDP(1.0)).reserve(GDP(0.5))
    assert (reservation.promise, reservation.relation, reservation.recorded) == (
        GDP(0.5),
        Relation.REPLACE_ONE,
        None,
    )
