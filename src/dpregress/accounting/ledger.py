"""Ledgers: how much of a data set's budget has been spent. Append-only, charged before any noise is drawn."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from dpregress.accounting.adaptive import covers_adaptive, is_counted, sum_of
from dpregress.accounting.events import GDP, ApproxDP, Composed, Event, Relation
from dpregress.accounting.names import check_name, check_note
from dpregress.accounting.reservation import Reservation
from dpregress.accounting.unit import Unit
from dpregress.display import html_table
from dpregress.errors import BudgetExceeded, ChargedBefore, InvalidInput, LedgerError, type_of


@dataclass(frozen=True)
class Charge:
    """One line of a ledger: the event, a note on its purpose, and the time (UTC, ISO 8601).

    ``seeded`` is True if the noise came from a seed, so that the release has no privacy. It is None in lines written
    before ledgers recorded it.
    """

    event: Event
    note: str
    charged: str
    seeded: bool | None = False

    def __post_init__(self) -> None:
        if not (isinstance(self.note, str) and isinstance(self.charged, str)):
            raise InvalidInput("the note of a charge and its time must be text")


@dataclass(frozen=True)
class Account:
    """A data set's budget, with the neighbouring relation and the unit in which it is counted."""

    dataset: str
    budget: Event
    relation: Relation
    unit: str

    def __post_init__(self) -> None:
        if not (isinstance(self.dataset, str) and isinstance(self.unit, str)):
            raise InvalidInput("the names of a data set and of a unit must be text")
        if not isinstance(self.budget, Event):
            raise InvalidInput(
                f"the budget of a ledger must be an event such as ApproxDP(1.0, 1e-6), not {type_of(self.budget)}"
            )


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger(ABC):
    """The budget of one data set and everything charged to it.

    ``copy``, ``deepcopy`` and scikit-learn's ``clone`` return the same ledger, so that the k fits of a
    cross-validation are k charges.
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
        """Check and append in one atomic step; otherwise raise :class:`BudgetExceeded` and leave no trace.

        With ``once``, also check that no earlier charge has this note.
        """

    @property
    @abstractmethod
    def location(self) -> str | None:
        """The file that holds the charges; None for a ledger that ends with the process."""

    @property
    def spent(self) -> Composed:
        """The composition of every charge."""
        return Composed.of(charge.event for charge in self.charges)

    def check(self, event: Event, *, relation: Relation = Relation.REPLACE_ONE, unit: Unit | None = None) -> None:
        """Refuse what :meth:`reserve` would refuse now; nothing is charged.

        For a release that charges several ledgers: all are checked before the first is charged.

        Raises
        ------
        BudgetExceeded, LedgerError
        """
        self._check_account(relation, unit)
        self._refuse_if_over(self.charges, event)

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
        """Charge ``event`` now, and return the right to draw releases from it.

        With a ``unit``, the event is the guarantee for all rows of one unit, and draws are counted accordingly. With
        ``once``, each note is charged at most once, even across threads and processes. ``seeded`` records
        that the noise comes from a seed: the charge counts nevertheless, and the ledger shows it.

        Raises
        ------
        InvalidInput
            For a note that is not a single line of text.
        BudgetExceeded
            When the remaining budget does not cover the event. Nothing is charged then.
        LedgerError
            When the ledger counts another neighbouring relation or another unit.
        ChargedBefore
            With ``once``, when an earlier charge has the same note. Nothing is charged then.
        """
        self._check_account(relation, unit)
        check_note(note)
        self._append(event, note, once=once, seeded=bool(seeded))
        return Reservation(event, relation, self.location, 1 if unit is None else unit.most)

    def describe(self) -> str:
        """The budget, and how much of it is spent, in one line."""
        account = self.account
        return (
            f"{account.dataset}: {describe(account.budget)} for {account.relation.value} neighbours, "
            f"one {account.unit}; {describe_spent(self.spent, account.budget)} spent"
        )

    def _repr_html_(self) -> str:
        return html_table(CHARGE_COLUMNS, charge_rows(self.charges), self.describe())

    def _check_account(self, relation: Relation, unit: Unit | None) -> None:
        if relation is not self.account.relation:
            raise LedgerError(
                f"ledger for {self.account.dataset!r} counts {self.account.relation.value} neighbours, "
                f"this release has {relation.value} neighbours: open a separate budget for it"
            )
        if unit is not None:
            unit.check(self.account.unit)

    def _refuse_if_over(self, charges: Iterable[Charge], event: Event) -> None:
        account = self.account
        spent = [charge.event for charge in charges]
        if not covers_adaptive(account.budget, (*spent, event)):
            already = describe_spent(Composed.of(spent), account.budget)
            raise BudgetExceeded(
                f"the budget of {account.dataset!r} is {describe(account.budget)}, {already} is spent; "
                f"what is left does not cover {describe(event)}: {_mend(account.budget, spent, event)}"
            )

    def _refuse_if_noted(self, charges: Iterable[Charge], note: str) -> None:
        if any(charge.note == note for charge in charges):
            raise ChargedBefore(f"the ledger for {self.account.dataset!r} has been charged for {note!r} before")

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
        Whose data differ between neighbouring data sets.

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
        # a fit without a ledger makes one, whose unit has the name that the table gives it
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
            self._refuse_if_over(self._charges, event)
            self._charges.append(Charge(event, note, now(), seeded))

    def __reduce__(self) -> Any:
        raise TypeError(
            "a ledger in memory cannot be sent to another process, where its charges would be lost: use SQLiteLedger"
        )


#: What a charge bought: seeded noise gives no protection from those who know the seed.
_NOISE = {False: "secure", True: "SEEDED: no protection", None: "not recorded"}
CHARGE_COLUMNS = ("charged (UTC)", "for", "event", "noise")


def charge_rows(charges: Iterable[Charge]) -> list[list[str]]:
    """Charges as rows of a table with the columns ``CHARGE_COLUMNS``."""
    return [[charge.charged, charge.note, describe(charge.event), _NOISE[charge.seeded]] for charge in charges]


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


def _mend(budget: Event, spent: Sequence[Event], event: Event) -> str:
    """What a user can do about a refused charge."""
    if isinstance(budget, ApproxDP) and not spent:
        return "ask for less"
    added = sum_of(spent[0] if isinstance(budget, ApproxDP) else budget)
    if is_counted(event, added):
        return "ask for less"
    return f"this ledger adds up {added}, which this charge does not have: open a separate budget for it"
