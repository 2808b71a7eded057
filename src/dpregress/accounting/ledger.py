"""Ledgers: how much of a data set's budget is gone. Append-only, charged before any noise is drawn."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from dpregress.accounting.events import GDP, ApproxDP, Composed, Event, Relation
from dpregress.accounting.names import check_name, check_note
from dpregress.accounting.reservation import Reservation
from dpregress.accounting.unit import Unit
from dpregress.errors import BudgetExceeded, ChargedBefore, InvalidInput, LedgerError, type_of


@dataclass(frozen=True)
class Charge:
    """One line of a ledger: what was charged, for what, when (UTC, ISO 8601).

    ``seeded`` is True where the noise came from a seed, so that the charge bought no privacy; None in lines that
    were written before ledgers recorded it.
    """

    event: Event
    note: str
    charged: str
    seeded: bool | None = False

    def __post_init__(self) -> None:
        if not (isinstance(self.note, str) and isinstance(self.charged, str)):
            raise InvalidInput("a charge is noted in text")


@dataclass(frozen=True)
class Account:
    """A data set's budget and the terms it is counted in."""

    dataset: str
    budget: Event
    relation: Relation
    unit: str

    def __post_init__(self) -> None:
        if not (isinstance(self.dataset, str) and isinstance(self.unit, str)):
            raise InvalidInput("a data set and a unit are named in text")
        if not isinstance(self.budget, Event):
            raise InvalidInput(f"the budget of a ledger is such as ApproxDP(1.0, 1e-6), not {type_of(self.budget)}")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger(ABC):
    """The budget of one data set and everything charged to it.

    A copy of a ledger is the same ledger: ``copy``, ``deepcopy`` and scikit-learn's ``clone`` share it,
    so that k fits in a cross-validation are k charges.
    """

    @property
    @abstractmethod
    def account(self) -> Account:
        """The data set's name, budget, neighbouring relation and unit."""

    @property
    @abstractmethod
    def charges(self) -> tuple[Charge, ...]:
        """Every charge so far, oldest first."""

    @abstractmethod
    def _append(self, event: Event, note: str, *, once: bool = False, seeded: bool = False) -> None:
        """Check and append in one atomic step; raise :class:`BudgetExceeded` and leave no trace otherwise.

        With ``once`` the check is also that no charge bears this note.
        """

    @property
    @abstractmethod
    def location(self) -> str | None:
        """Where charges are kept; None for a ledger that ends with the process."""

    @property
    def spent(self) -> Composed:
        """The composition of every charge."""
        return Composed.of(charge.event for charge in self.charges)

    def reserve(
        self,
        event: Event,
        *,
        relation: Relation = Relation.REPLACE_ONE,
        unit: Unit | None = None,
        note: str = "",
        once: bool = False,
        seeded: bool = False,
    ) -> Reservation:
        """Charge ``event`` now and hand out the right to draw it.

        With a ``unit`` the event is what everything of one unit may cost, and each row's part of it is drawn.
        With ``once`` a note is charged a single time, whatever other threads and processes do. ``seeded`` records
        that the noise comes from a seed: the charge counts all the same, and the ledger shows it.

        Raises
        ------
        InvalidInput
            For a note that is no text of one line.
        BudgetExceeded
            When what is left does not cover the event. Nothing is charged then.
        LedgerError
            When the event is about other neighbours, or another unit, than the ledger counts.
        ChargedBefore
            With ``once``, when a charge bears the same note. Nothing is charged then.
        """
        if relation is not self.account.relation:
            raise LedgerError(
                f"ledger for {self.account.dataset!r} counts {self.account.relation.value} neighbours, "
                f"this release is about {relation.value}: open a budget of its own for it"
            )
        if unit is not None:
            unit.check(self.account.unit)
        check_note(note)
        self._append(event, note, once=once, seeded=bool(seeded))
        return Reservation(event, relation, self.location, 1 if unit is None else unit.most)

    def _refuse_if_over(self, spent: Composed, event: Event) -> None:
        account = self.account
        if not account.budget.covers(Composed.of((*spent.parts, event))):
            already = describe_spent(spent, account.budget)
            raise BudgetExceeded(
                f"the budget of {account.dataset!r} is {describe(account.budget)}, {already} is spent; "
                f"what is left does not cover {describe(event)}: ask for less"
            )

    def _refuse_if_noted(self, charges: Iterable[Charge], note: str) -> None:
        if any(charge.note == note for charge in charges):
            raise ChargedBefore(f"the ledger for {self.account.dataset!r} was charged before for {note!r}")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class MemoryLedger(Ledger):
    """A ledger that lives as long as the process; safe between threads. It does not pickle.

    Parameters
    ----------
    budget : Event
        ``GDP(mu)``, ``ApproxDP(epsilon, delta)`` or ``ZCDP(rho)``.
    dataset : str
    relation : Relation
    unit : str
        Whose data one neighbouring step changes.

    Examples
    --------
    >>> from dpregress import GDP, MemoryLedger
    >>> ledger = MemoryLedger(GDP(1.0))
    >>> _ = ledger.reserve(GDP(0.6)), ledger.reserve(GDP(0.8))
    >>> round(ledger.spent.mu, 6)
    1.0
    """

    def __init__(
        self,
        budget: Event,
        dataset: str = "data",
        *,
        relation: Relation = Relation.REPLACE_ONE,
        unit: str = "record",
    ) -> None:
        # a fit without a ledger makes one whose unit is called as the table calls it
        self._account = Account(check_name(dataset, "the name of a data set"), budget, relation, unit)
        self._charges: list[Charge] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def account(self) -> Account:
        return self._account

    @property
    def charges(self) -> tuple[Charge, ...]:
        return tuple(self._charges)

    @property
    def location(self) -> str | None:
        return None

    def _append(self, event: Event, note: str, *, once: bool = False, seeded: bool = False) -> None:
        if os.getpid() != self._process:
            raise LedgerError("a ledger in memory cannot be charged from another process: use SQLiteLedger")
        with self._lock:
            if once:
                self._refuse_if_noted(self._charges, note)
            self._refuse_if_over(self.spent, event)
            self._charges.append(Charge(event, note, now(), seeded))

    def __reduce__(self) -> Any:
        raise TypeError(
            "a ledger in memory cannot be sent to another process, where its charges would be lost: use SQLiteLedger"
        )


def describe(event: Event) -> str:
    """An event in the words of its own parameters: ``epsilon = 1, delta = 1e-06``."""
    if isinstance(event, Composed):
        return " + ".join(describe(part) for part in event.parts) or "nothing"
    return ", ".join(f"{name} = {value:g}" for name, value in event.parameters().items())


def describe_spent(spent: Composed, budget: Event) -> str:
    """What is spent, in the currency of the budget."""
    if not spent.parts:
        return "nothing"
    if isinstance(budget, ApproxDP):
        return f"epsilon = {spent.epsilon(budget.delta0):.4g} at delta = {budget.delta0:g}"
    return f"mu = {spent.mu:.4g}" if isinstance(budget, GDP) else f"rho = {spent.rho:.4g}"
