"""The session of a method: it reserves the budget, asks the questions and states the guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpregress.accounting import (
    RECORD,
    Event,
    Ledger,
    MemoryLedger,
    PrivacyStatement,
    Relation,
    Request,
    Reservation,
    Unit,
    check_delta_confirmed,
)
from dpregress.coordinates import Ranges
from dpregress.mechanisms import Sampler, noise_sampler
from dpregress.queries.base import Query, R
from dpregress.rows import PrivateRows, RangedSource
from dpregress.trust.base import TrustModel
from dpregress.trust.central import Central
from dpregress.trust.unrecorded import note_unrecorded_fit


@dataclass(frozen=True, repr=False)
class Session:
    """A trust model bound to rows, a sampler and a reservation: the ``ask`` of one fit.

    Parameters
    ----------
    trust : TrustModel
    rows : PrivateRows
    sampler : Sampler
    reservation : Reservation
    budget : Event, optional
        The budget that the caller gave, for the statement; default: the reserved promise.
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
        request: Request | None = None,
        sampler: Sampler | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Self:
        """Charge the whole promise before anything is read or drawn.

        The order is fixed. The trust model refuses a method with too many questions, a delta above 1/n is refused
        unless it is confirmed, the sampler is made, the ledger refuses another unit or other neighbours, and then the
        ledger is charged.

        Parameters
        ----------
        rows : PrivateRows
        promise : Event
            The event to charge, for one unit.
        trust : TrustModel, optional
            Default: a curator.
        rounds : int
            The number of questions of the method.
        budget : Event, optional
            The budget that the caller gave; default: the promise.
        ledger : Ledger, optional
            Default: a temporary ledger whose budget is the promise.
        unit, relation, note, once, request
            As in :meth:`Ledger.reserve`.
        sampler : Sampler, optional
            Default: made from ``random_state``.
        random_state : None, int, Generator or RandomState

        Raises
        ------
        NotAnswered
            If the method asks more questions than the trust model answers; nothing is charged.
        InvalidInput
            For a delta above 1/n that is not confirmed; nothing is charged.
        BudgetExceeded, PolicyViolation, LedgerError, ChargedBefore
            As in :meth:`Ledger.reserve`; nothing is charged.
        """
        trust = Central() if trust is None else trust
        trust.accept(rounds)
        asked = promise if budget is None else budget
        check_delta_confirmed(asked, rows.n, relation)
        sampler = noise_sampler(random_state, stacklevel=4) if sampler is None else sampler
        if ledger is None:
            ledger = MemoryLedger(promise, relation=relation, unit=unit.name)
            if not sampler.seeded:
                note_unrecorded_fit()
        reservation = ledger.reserve(
            promise,
            relation=relation,
            unit=unit,
            note=note,
            once=once,
            seeded=sampler.seeded,
            asked=asked,
            request=request,
        )
        return cls(trust, rows, sampler, reservation, asked, unit)

    def __call__(self, query: Query[R], spend: Event) -> R:
        """A release of ``query`` at the cost of ``spend``, drawn from the reservation first."""
        return self.trust.release(self.rows, query, spend, sampler=self.sampler, reservation=self.reservation)

    def within(self, ranges: Ranges) -> Session:
        """The same session about the rows with their cells in public or released ranges."""
        return replace(self, rows=replace(self.rows, source=RangedSource(self.rows.source, ranges)))

    def statement(self, assumed_public: Sequence[str] = ()) -> PrivacyStatement:
        """The guarantee of the fit, with the events drawn so far.

        Parameters
        ----------
        assumed_public : sequence of str
            What the method assumes to be public; the bound on rows of a unit is added.
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
