"""A charge of a ledger, from which releases are drawn."""

from __future__ import annotations

import threading
from typing import NoReturn

from dpregress.accounting.adaptive import covers_adaptive
from dpregress.accounting.events import Composed, Event, Relation, group
from dpregress.errors import BudgetExceeded, InvalidInput


class Reservation:
    """Budget that the ledger has already counted as spent.

    Only a ledger makes reservations. Every release first draws its event, and the total of all draws can never exceed
    the promise. A fit may therefore adapt to its own releases and still never reads rows that are not paid for.

    Parameters
    ----------
    promise : Event
        What the ledger was charged.
    relation : Relation
        Which neighbours the promise is about.
    recorded : str or None
        Where the charge is kept, for the privacy statement.
    rows : int
        k, the number of rows of one unit that count. Mechanisms draw the event for one row; k times that is taken.
    """

    def __init__(self, promise: Event, relation: Relation, recorded: str | None = None, rows: int = 1) -> None:
        self.promise = promise
        self.relation = relation
        self.recorded = recorded
        self.rows = rows
        self._drawn: tuple[Event, ...] = ()
        self._lock = threading.Lock()

    def __copy__(self) -> NoReturn:
        raise InvalidInput("a reservation cannot be copied: what it covers is spent once")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise InvalidInput("a reservation cannot be copied: what it covers is spent once")

    @property
    def drawn(self) -> Composed:
        """Everything drawn so far, as it counts for one unit."""
        return Composed.of(self._drawn)

    def draw(self, event: Event) -> None:
        """Take ``event``, the cost for one row, from the promise; for a unit with k rows, k times that.

        Raises
        ------
        BudgetExceeded
            When the promise does not cover it; nothing is drawn then.
        """
        if self.rows > 1:
            event = group(event, self.rows)
        with self._lock:
            if not covers_adaptive(self.promise, (*self._drawn, event)):
                raise BudgetExceeded(f"the reservation of {self.promise} does not cover a further {event}")
            self._drawn = (*self._drawn, event)
