"""A charged part of a ledger, drawn down release by release."""

from __future__ import annotations

import threading

from dpregress.accounting.events import Composed, Event, Relation, group
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
    rows : int
        k, the rows of one unit that count. Mechanisms draw what hides one row; k-fold of it is taken.
    """

    def __init__(self, promise: Event, relation: Relation, recorded: str | None = None, rows: int = 1) -> None:
        self.promise = promise
        self.relation = relation
        self.recorded = recorded
        self.rows = rows
        self._drawn: tuple[Event, ...] = ()
        self._lock = threading.Lock()

    @property
    def drawn(self) -> Composed:
        """Everything drawn so far, as it counts for one unit."""
        return Composed.of(self._drawn)

    def draw(self, event: Event) -> None:
        """Take ``event``, which hides one row, from the promise; of a unit with k rows k-fold.

        Raises
        ------
        BudgetExceeded
            When the promise would not cover it; nothing is drawn then.
        """
        if self.rows > 1:
            event = group(event, self.rows)
        with self._lock:
            after = Composed.of((*self._drawn, event))
            if not self.promise.covers(after):
                raise BudgetExceeded(f"the reservation of {self.promise} does not cover a further {event}")
            self._drawn = (*self._drawn, event)
