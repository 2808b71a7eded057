"""Trust models: who holds the rows, who adds the noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from dpregress.accounting import Event, Relation, Reservation
from dpregress.errors import NotAnswered
from dpregress.mechanisms import Mechanism, MechanismTable, Sampler
from dpregress.queries.base import Query, R
from dpregress.rows import PrivateRows


class TrustModel(ABC):
    """Answers queries within a reservation. The order refuse, draw, release is written here, once."""

    #: How often it can be asked in one run; None for any number.
    rounds: ClassVar[int | None]
    #: Whether it can keep the number of rows to itself, as add-or-remove neighbours ask.
    hides_count: ClassVar[bool] = False

    @property
    @abstractmethod
    def mechanisms(self) -> MechanismTable:
        """Which mechanism answers a query of a norm for a kind of event."""

    def accept(self, rounds: int) -> None:
        """Refuse a solver that asks more often than this model can be asked; called before any charge.

        Raises
        ------
        NotAnswered
        """
        if self.rounds is not None and rounds > self.rounds:
            raise NotAnswered(f"{type(self).__name__} answers {self.rounds} time(s), this method asks {rounds} times")

    def mechanism(self, query: Query[R], spend: Event, rows: PrivateRows) -> Mechanism:
        """The mechanism for a query of this norm that spends this event under this model.

        Raises
        ------
        NotAnswered
            Where the model has none.
        """
        maker = self.mechanisms.get((query.norm, type(spend)))
        if maker is None:
            offered = ", ".join(f"{norm.name} with {event.__name__}" for norm, event in self.mechanisms)
            raise NotAnswered(
                f"{type(self).__name__} answers queries of norm {offered}, "
                f"not {type(query).__name__} of norm {query.norm.name} with {type(spend).__name__}"
            )
        return maker(spend, rows.n)

    def release(
        self,
        rows: PrivateRows,
        query: Query[R],
        spend: Event,
        *,
        sampler: Sampler,
        reservation: Reservation,
    ) -> R:
        """Answer one query: refuse what cannot be answered, draw from the reservation, then add noise.

        Raises
        ------
        NotAnswered
            Nothing was drawn.
        BudgetExceeded
            The reservation does not cover it; no statistic was computed.
        """
        self.accept(len(reservation.drawn.parts) + 1)
        if reservation.relation is not Relation.REPLACE_ONE and not (self.hides_count and query.exact):
            # noise that covers rounding depends on n, which is private under add-or-remove
            raise NotAnswered(f"this question is answered for {Relation.REPLACE_ONE.value} neighbours only")
        if query.kept_apart and rows.source.capped:
            # its sensitivity is about a row that changes in its place
            raise NotAnswered(
                f"{type(query).__name__} depends on the position of each row: it cannot protect all rows of a unit"
            )
        mechanism = self.mechanism(query, spend, rows)
        mechanism.check(query, rows, reservation.relation)
        reservation.draw(mechanism.event())
        return mechanism.release(query, rows, sampler, reservation.relation)
