"""A charged part of a ledger, drawn down release by release."""

from __future__ import annotations

import threading

from dpregress.accounting.events import Composed, Event, Relation
from dpregress.errors import BudgetExceeded


class Reservation:
    """Budget that the ledger has already counted as spent.

    Only a ledger makes one. Every release draws its event first; what has been drawn can never exceed
    what was promised, so a run may adapt to what it released and still never reads rows unpaid.

    Parameters
    ----------
    promise : Event
        What the ledger was charged.
    relation : Relation
        Which neighbours the promise is about.
    recorded : str or None
        Where the charge is kept, for the privacy statement.
    """

    def __init__(self, promise: Event, relation: Relation, recorded: str | None = None) -> None:
        self.promise = promise
        self.relation = relation
        self.recorded = recorded
        self._drawn: tuple[Event, ...] = ()
        self._lock = threading.Lock()

    @property
    def drawn(self) -> Composed:
        """Everything drawn so far."""
        return Composed.of(self._drawn)

    def draw(self, event: Event) -> None:
        """Take ``event`` from the promise.

        Raises
        ------
        BudgetExceeded
            When the promise would not cover it; nothing is drawn then.
        """
        with self._lock:
            after = Composed.of((*self._drawn, event))
            if not self.promise.covers(after):
                raise BudgetExceeded(f"the reservation of {self.promise} does not cover a further {event}")
            self._drawn = (*self._drawn, event)
