"""Ledgers: how much of a data set's budget has been spent. Append-only, charged before any noise is drawn."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from dpregress.accounting.adaptive import covers_adaptive, is_counted, sum_of
from dpregress.accounting.entries import Account, Charge, Policy, Request
from dpregress.accounting.events import ApproxDP, Composed, Event, Relation, parts_of
from dpregress.accounting.names import check_line, check_name
from dpregress.accounting.remaining import describe_left
from dpregress.accounting.reservation import Reservation
from dpregress.accounting.unit import Unit
from dpregress.accounting.wording import describe, describe_asked, describe_spent
from dpregress.display import html_table, plain
from dpregress.errors import BudgetExceeded, ChargedBefore, InvalidInput, LedgerError, type_of
from dpregress.version import __version__

#: What a ledger records as the software of a charge.
SOFTWARE = f"dpregress {__version__}"


class Rehearsed(Exception):
    """Raised by a ledger's rehearsal in place of a charge: every check has passed, and nothing was charged.

    Attributes
    ----------
    charge : Charge
        What would have been charged.
    asked : Event
        The budget in the user's own units.
    ledger : Ledger
    """

    def __init__(self, charge: Charge, asked: Event, ledger: Ledger) -> None:
        super().__init__(f"{charge.note or 'this release'} would be charged")
        self.charge = charge
        self.asked = asked
        self.ledger = ledger


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

    #: Who asks for the charges of this handle, and what for.
    request: Request = Request()
    _rehearses: bool = False

    @abstractmethod
    def _append(
        self, charge: Charge, *, unit: Unit | None = None, asked: Event | None = None, once: bool = False
    ) -> None:
        """Check and append in one atomic step; otherwise raise as :meth:`_refuse` does and leave no trace."""

    @property
    @abstractmethod
    def location(self) -> str | None:
        """The file that holds the charges; None for a ledger that ends with the process."""

    @property
    @abstractmethod
    def _identity(self) -> object:
        """Equal for handles of one budget."""

    def shares(self, other: Ledger) -> bool:
        """Whether both are handles of one budget."""
        return self._identity == other._identity

    @property
    def spent(self) -> Composed:
        """The composition of every charge."""
        return Composed.of(charge.event for charge in self.charges)

    def on_behalf(self, *, analyst: str = "", purpose: str = "", source: str = "", output: str = "") -> Self:
        """The same ledger, whose charges name an analyst and a purpose.

        Parameters
        ----------
        analyst : str
            The name is recorded and compared with the policy; it is not verified.
        purpose : str
        source : str, optional
            The rows; default: what the fit knows of them, such as the name of their file.
        output : str, optional
            Where the results are written.

        Raises
        ------
        InvalidInput
            For a field that is not a single line of text.

        Examples
        --------
        >>> from dpregress import GDP, MemoryLedger
        >>> ledger = MemoryLedger(GDP(1.0))
        >>> _ = ledger.on_behalf(analyst="ann", purpose="pilot study").reserve(GDP(0.1))
        >>> ledger.charges[0].request.analyst
        'ann'
        """
        return self._handle(request=Request(analyst, purpose, "", source, output).over(self.request))

    def rehearsal(self) -> Self:
        """The same ledger, on which a fit makes every check and raises :class:`Rehearsed` in place of its charge."""
        return self._handle(_rehearses=True)

    def check(
        self,
        event: Event,
        *,
        relation: Relation = Relation.REPLACE_ONE,
        unit: Unit | None = None,
        asked: Event | None = None,
        times: int = 1,
    ) -> None:
        """Refuse what :meth:`reserve` would refuse now for this event, charged so many times; nothing is charged.

        For a release that charges several ledgers: all are checked before the first is charged.

        Raises
        ------
        BudgetExceeded, PolicyViolation, LedgerError
        """
        self._check_account(relation, unit)
        charges = self.charges
        self._refuse(charges, Charge(event, "", "", request=self.request), unit=unit, asked=asked)
        if times > 1:
            self._refuse_if_over(charges, event * times)

    def reserve(
        self,
        event: Event,
        *,
        relation: Relation = Relation.REPLACE_ONE,
        unit: Unit | None = None,
        note: str = "",
        once: bool = False,
        seeded: bool = False,
        asked: Event | None = None,
        request: Request | None = None,
    ) -> Reservation:
        """Charge ``event`` now, and return the right to draw releases from it.

        With a ``unit``, the event is the guarantee for all rows of one unit, and draws are counted accordingly. With
        ``once``, each note is charged at most once, even across threads and processes. ``seeded`` records
        that the noise comes from a seed: the charge counts nevertheless, and the ledger shows it. ``asked`` is the
        budget in the user's own units, for messages. ``request`` says what the charge is for; what
        :meth:`on_behalf` was given takes precedence.

        Raises
        ------
        InvalidInput
            For a note that is not a single line of text, and for what is no cost or none at all.
        BudgetExceeded
            When the remaining budget does not cover the event. Nothing is charged then.
        PolicyViolation
            When the policy does not allow the charge. Nothing is charged then.
        LedgerError
            When the ledger counts another neighbouring relation or another unit.
        ChargedBefore
            With ``once``, when an earlier charge has the same note. Nothing is charged then.
        """
        _check_cost(event)
        self._check_account(relation, unit)
        check_line(note, "the note of a charge")
        charge = Charge(event, note, now(), bool(seeded), self.request.over(request), SOFTWARE)
        if self._rehearses:
            self._refuse(self.charges, charge, unit=unit, asked=asked, once=once)
            raise Rehearsed(charge, event if asked is None else asked, self)
        self._append(charge, unit=unit, asked=asked, once=once)
        return Reservation(event, relation, self.location, 1 if unit is None else unit.most)

    def _handle(self, **changed: Any) -> Self:
        """Another object for the same budget and charges."""
        handle = object.__new__(type(self))
        handle.__dict__.update(self.__dict__, **changed)
        return handle

    def describe(self) -> str:
        """The budget, and how much of it is spent, in one line."""
        account, spent = self.account, [charge.event for charge in self.charges]
        return (
            f"{account.dataset}: {describe(account.budget)} for {account.relation.value} neighbours, "
            f"one {account.unit}; {describe_spent(Composed.of(spent), account.budget)} spent, "
            f"{describe_left(account.budget, spent)} left{_how_added(account.budget, spent)}"
        )

    def __repr__(self) -> str:
        try:
            said = self.describe()
        except LedgerError as error:  # of a file that is no longer there
            said = str(error)
        except AttributeError:  # its opening failed
            said = "not open"
        return f"<{type(self).__name__} {plain(said)}>"

    def _repr_html_(self) -> str:
        columns, rows = charge_table(self.charges, self.account.budget)
        return html_table(columns, rows, self.describe())

    def _check_account(self, relation: Relation, unit: Unit | None) -> None:
        if relation is not self.account.relation:
            raise LedgerError(
                f"ledger for {self.account.dataset!r} counts {self.account.relation.value} neighbours, "
                f"this release has {relation.value} neighbours: open a separate budget for it"
            )
        if unit is not None:
            unit.check(self.account.unit)

    def _refuse(
        self,
        charges: Iterable[Charge],
        charge: Charge,
        *,
        unit: Unit | None = None,
        asked: Event | None = None,
        once: bool = False,
    ) -> None:
        """Refuse a charge that is not allowed beside those that are there.

        Raises
        ------
        ChargedBefore, PolicyViolation, BudgetExceeded
        """
        if once:
            self._refuse_if_noted(charges, charge.note)
        account = self.account
        account.policy.check(account, charge.event, analyst=charge.request.analyst, unit=unit, asked=asked)
        self._refuse_if_over(charges, charge.event, asked)

    def _refuse_if_over(self, charges: Iterable[Charge], event: Event, asked: Event | None = None) -> None:
        account = self.account
        spent = [charge.event for charge in charges]
        if not covers_adaptive(account.budget, (*spent, event)):
            already = describe_spent(Composed.of(spent), account.budget) + (" is already" if spent else " is")
            raise BudgetExceeded(
                f"the budget of {account.dataset!r} is {describe(account.budget)}, of which {already} spent; what is "
                f"left does not cover {describe_asked(event, asked, account.budget)}: "
                f"{_mend(account.budget, spent, event)}"
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
    policy : Policy, optional
        Rules that every charge must keep.

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
        policy: Policy | None = None,
    ) -> None:
        # a fit without a ledger makes one, whose unit has the name that the table gives it
        self._account = Account(
            check_name(dataset, "the name of a data set"), budget, relation, unit, policy or Policy()
        )
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

    @property
    def _identity(self) -> object:
        return id(self._charges)

    def _append(
        self, charge: Charge, *, unit: Unit | None = None, asked: Event | None = None, once: bool = False
    ) -> None:
        if os.getpid() != self._process:
            raise LedgerError("a ledger in memory cannot be charged from another process: use SQLiteLedger")
        with self._lock:
            self._refuse(self._charges, charge, unit=unit, asked=asked, once=once)
            self._charges.append(charge)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a ledger in memory cannot be sent to another process, where its charges would be lost: use SQLiteLedger"
        )


#: What a charge bought: seeded noise gives no protection from those who know the seed.
_NOISE = {False: "secure", True: "SEEDED: no protection", None: "not recorded"}


def _check_cost(event: object) -> None:
    """Refuse what is no cost, and one of no parts: it would fix what the ledger adds up, and pay for nothing."""
    if not isinstance(event, Event):
        raise InvalidInput(f"a ledger is charged with a cost such as GDP(0.5), not {type_of(event)}")
    if not any(True for _ in parts_of(event)):
        raise InvalidInput("a charge needs a cost: this one has no parts")


def charge_table(charges: Iterable[Charge], budget: Event) -> tuple[list[str], list[list[str]]]:
    """The header and rows of a table of charges, without the columns that are empty."""
    amount = f"epsilon at delta = {budget.delta0:g}" if isinstance(budget, ApproxDP) else "charge"
    fixed = ("charged (UTC)", "for", amount, "noise")
    records = [_record(charge, budget, amount) for charge in charges]
    names = [name for name in (records[0] if records else fixed) if name in fixed or any(r[name] for r in records)]
    return names, [[record[name] for name in names] for record in records]


def _record(charge: Charge, budget: Event, amount: str) -> dict[str, str]:
    """Everything that a ledger holds about one charge, in words."""
    request = charge.request
    return {
        "charged (UTC)": charge.charged.replace("T", " ").removesuffix("+00:00"),
        "analyst": request.analyst,
        "purpose": request.purpose,
        "for": charge.note,
        "formula": request.formula,
        "source": request.source,
        "output": request.output,
        amount: f"{charge.event.epsilon(budget.delta0):.4g}"
        if isinstance(budget, ApproxDP)
        else describe(charge.event),
        "noise": _NOISE[charge.seeded],
        "software": charge.software or "",
    }


def _how_added(budget: Event, spent: Sequence[Event]) -> str:
    """Why the epsilons of charges are no sum, where they are not."""
    added = sum_of(spent[0]) if spent and isinstance(budget, ApproxDP) else "epsilons"
    return "" if "epsilon" in added else f" (epsilons do not add up: costs are added as {added})"


def _mend(budget: Event, spent: Sequence[Event], event: Event) -> str:
    """What a user can do about a refused charge."""
    added = sum_of(spent[0] if spent and isinstance(budget, ApproxDP) else budget)
    if (spent or not isinstance(budget, ApproxDP)) and not is_counted(event, added):
        return f"this ledger adds up {added}, which this charge does not have: open a separate budget for it"
    left = describe_left(budget, spent, like=event)
    return "open a new budget" if left == "nothing" else f"ask for at most {left}"
