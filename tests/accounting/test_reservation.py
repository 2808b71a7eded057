"""Reservations: what has been drawn never exceeds what was promised."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from dpregress.accounting import GDP, ApproxDP, MemoryLedger, PureDP, Relation, Reservation
from dpregress.errors import BudgetExceeded


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
