"""Trust models: who holds the rows, who adds the noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from dpregress.accounting import Event, Relation, Reservation
from dpregress.display import how_many
from dpregress.errors import NotAnswered
from dpregress.mechanisms import Mechanism, MechanismTable, Sampler
from dpregress.queries.base import Query, R
from dpregress.rows import PrivateRows


class TrustModel(ABC):
    """Answers queries within a reservation, in the order refuse, draw, release."""

    #: The largest number of questions in one run; None for no limit.
    rounds: ClassVar[int | None]
    #: Whether it can keep the number of rows private, as add-or-remove neighbours require.
    hides_count: ClassVar[bool] = False

    @property
    @abstractmethod
    def mechanisms(self) -> MechanismTable:
        """The mechanism for each norm of a query and each kind of event."""

    def accept(self, rounds: int) -> None:
        """Refuse a solver that asks more questions than this model answers; called before any charge.

        Raises
        ------
        NotAnswered
        """
        if self.rounds is not None and rounds > self.rounds:
            raise NotAnswered(
                f"{type(self).__name__} answers {how_many(self.rounds, 'time')}, this method asks "
                f"{how_many(rounds, 'time')}"
            )

    def mechanism(self, query: Query[R], spend: Event, rows: PrivateRows) -> Mechanism:
        """The mechanism of this model for a query of this norm and an event of this kind.

        Raises
        ------
        NotAnswered
            If the model has none.
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
        """Answer one query: refuse what cannot be answered, draw from the reservation, then release.

        Raises
        ------
        NotAnswered
            For a query that cannot be answered; nothing is drawn.
        BudgetExceeded
            If the reservation does not cover the cost; no statistic is computed.
        """
        self.accept(len(reservation.drawn.parts) + 1)
        if reservation.relation is not Relation.REPLACE_ONE and not (self.hides_count and query.free_of_n):
            # the grid of its sums depends on n, which is private under add-or-remove
            raise NotAnswered(f"this query is answered only for {Relation.REPLACE_ONE.value} neighbours")
        if query.kept_apart and rows.source.capped:
            # its sensitivity refers to a row that changes in place
            raise NotAnswered(
                f"{type(query).__name__} depends on the position of each row: it cannot protect all rows of a unit"
            )
        mechanism = self.mechanism(query, spend, rows)
        mechanism.check(query, rows, reservation.relation)
        reservation.draw(mechanism.event())
        return mechanism.release(query, rows, sampler, reservation.relation)
