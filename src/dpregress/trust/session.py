"""The spine of every method: reserve its budget, ask its questions, state its guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpregress.accounting import RECORD, Event, Ledger, MemoryLedger, PrivacyStatement, Relation, Reservation, Unit
from dpregress.mechanisms import Sampler, noise_sampler
from dpregress.queries.base import Query, R
from dpregress.rows import PrivateRows
from dpregress.trust.base import TrustModel
from dpregress.trust.central import Central


@dataclass(frozen=True)
class Session:
    """A trust model bound to its rows, its noise and its reservation: the ``ask`` of one fit.

    Parameters
    ----------
    trust : TrustModel
    rows : PrivateRows
    sampler : Sampler
    reservation : Reservation
    budget : Event, optional
        What the caller allowed, for the statement; default: the reserved promise.
    unit : Unit
    """

    trust: TrustModel
    rows: PrivateRows
    sampler: Sampler
    reservation: Reservation
    budget: Event | None = None
    unit: Unit = RECORD

    @classmethod
    def reserve(
        cls,
        rows: PrivateRows,
        promise: Event,
        *,
        trust: TrustModel | None = None,
        rounds: int = 1,
        budget: Event | None = None,
        ledger: Ledger | None = None,
        unit: Unit = RECORD,
        relation: Relation = Relation.REPLACE_ONE,
        note: str = "",
        once: bool = False,
        sampler: Sampler | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Self:
        """Charge the whole promise, before anything is read or drawn.

        The order is fixed: the trust model refuses a method that asks too often, the sampler is made, the ledger
        refuses another unit or other neighbours, and then it is charged.

        Parameters
        ----------
        rows : PrivateRows
        promise : Event
            What is charged, for one unit.
        trust : TrustModel, optional
            Default: a curator.
        rounds : int
            How often the method asks.
        budget : Event, optional
            What the caller allowed; default: the promise.
        ledger : Ledger, optional
            Default: one of exactly the promise, which ends with the session.
        unit, relation, note, once
            As in :meth:`Ledger.reserve`.
        sampler : Sampler, optional
            Default: made from ``random_state``.
        random_state : None, int, Generator or RandomState

        Raises
        ------
        NotAnswered
            When the method asks more often than the trust model answers; nothing is charged.
        BudgetExceeded, LedgerError, ChargedBefore
            As :meth:`Ledger.reserve`; nothing is charged.
        """
        trust = Central() if trust is None else trust
        trust.accept(rounds)
        sampler = noise_sampler(random_state, stacklevel=4) if sampler is None else sampler
        ledger = MemoryLedger(promise, relation=relation, unit=unit.name) if ledger is None else ledger
        reservation = ledger.reserve(promise, relation=relation, unit=unit, note=note, once=once, seeded=sampler.seeded)
        return cls(trust, rows, sampler, reservation, promise if budget is None else budget, unit)

    def __call__(self, query: Query[R], spend: Event) -> R:
        """A release of ``query`` at the cost of ``spend``, drawn from the reservation first."""
        return self.trust.release(self.rows, query, spend, sampler=self.sampler, reservation=self.reservation)

    def statement(self, assumed_public: Sequence[str] = ()) -> PrivacyStatement:
        """The guarantee for what has been drawn so far.

        Parameters
        ----------
        assumed_public : sequence of str
            What the method took as known; the unit's own bound is added.
        """
        promise = self.reservation.promise
        return PrivacyStatement(
            budget=promise if self.budget is None else self.budget,
            promise=promise,
            events=self.reservation.drawn,
            relation=self.reservation.relation,
            unit=self.unit.name,
            max_rows_per_unit=self.unit.rows,
            assumed_public=(*assumed_public, *self.unit.assumed_public()),
            seeded=self.sampler.seeded,
            recorded=self.reservation.recorded,
        )
