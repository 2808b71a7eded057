"""What a ledger holds: the terms of a budget, and the charges with who asked for them and what for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from dpregress.accounting.convert import LARGEST_EPSILON, is_positive
from dpregress.accounting.events import ApproxDP, Event, PureDP, Relation
from dpregress.accounting.names import check_line, check_name
from dpregress.accounting.unit import RECORD, Unit
from dpregress.accounting.wording import describe, describe_asked
from dpregress.errors import InvalidInput, PolicyViolation, one_line, type_of


@dataclass(frozen=True)
class Request:
    """Who asks for a charge, and what for. Every field is a single line of text, empty where it is not known.

    Parameters
    ----------
    analyst : str
        The person who asks. The ledger records the name; it does not verify it.
    purpose : str
    formula : str
        The model, such as ``visits ~ age + smoker``.
    source : str
        The rows: a file, a URL without credentials, or the type of a table in memory.
    output : str
        Where the results are written.

    Raises
    ------
    InvalidInput
        For a field that is not a single printable line.
    """

    analyst: str = ""
    purpose: str = ""
    formula: str = ""
    source: str = ""
    output: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            check_line(value, f"the {field.name} of a charge")
            if field.name == "analyst" and value:
                check_name(value, "the name of an analyst")

    def over(self, other: Request | None) -> Request:
        """This request, with the fields of the other where this one has none."""
        known = {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)}
        return self if other is None else replace(other, **known)


@dataclass(frozen=True)
class Policy:
    """Rules that a ledger enforces for every charge. They are stored with the budget and never change.

    Parameters
    ----------
    max_epsilon_per_fit : float, optional
        The largest epsilon of one charge, at the delta of the ledger's budget.
    analysts : sequence of str
        Who may charge the budget; empty: anyone. Names are recorded, not verified.
    require_unit : bool, default=False
        Every charge must name the ledger's unit, so that no release is made for single records.

    Raises
    ------
    InvalidInput

    Examples
    --------
    >>> from dpregress import ApproxDP, GDP, MemoryLedger, Policy
    >>> ledger = MemoryLedger(ApproxDP(3.0, 1e-6), policy=Policy(max_epsilon_per_fit=1.0, analysts=["ann"]))
    >>> _ = ledger.on_behalf(analyst="ann").reserve(GDP(0.2))
    """

    max_epsilon_per_fit: float | None = None
    analysts: tuple[str, ...] = ()
    require_unit: bool = False

    def __post_init__(self) -> None:
        if self.max_epsilon_per_fit is not None and not is_positive(self.max_epsilon_per_fit):
            raise InvalidInput(
                f"max_epsilon_per_fit must be a positive number, not {one_line(self.max_epsilon_per_fit)}"
            )
        if self.max_epsilon_per_fit is not None and self.max_epsilon_per_fit > LARGEST_EPSILON:
            raise InvalidInput(
                f"max_epsilon_per_fit = {self.max_epsilon_per_fit:g} gives no protection: 1 is a common choice"
            )
        if not isinstance(self.analysts, tuple | list):
            raise InvalidInput(f"analysts= takes a list of names such as ['ann'], not {type_of(self.analysts)}")
        object.__setattr__(
            self, "analysts", tuple(dict.fromkeys(check_name(name, "the name of an analyst") for name in self.analysts))
        )
        if not isinstance(self.require_unit, bool):
            raise InvalidInput(f"require_unit= takes True or False, not {one_line(self.require_unit)}")

    def check_terms(self, budget: Event, unit: str) -> None:
        """Refuse a policy that cannot be kept for a budget of this kind and unit.

        Raises
        ------
        InvalidInput
        """
        if self.max_epsilon_per_fit is not None and not isinstance(budget, ApproxDP | PureDP):
            raise InvalidInput(
                "a largest epsilon for each fit goes with a budget ApproxDP(epsilon, delta) or PureDP(epsilon)"
            )
        if self.require_unit and unit == RECORD.name:
            raise InvalidInput("a required unit goes with a ledger that counts one: give unit=, the column of ids")

    def check(self, account: Account, event: Event, *, analyst: str, unit: Unit | None, asked: Event | None) -> None:
        """Refuse a charge that breaks the rules.

        Raises
        ------
        PolicyViolation
        """
        whose = f"the policy of the ledger for {account.dataset!r}"
        if self.analysts and analyst not in self.analysts:
            who = f"{analyst!r} is not one of them" if analyst else "none is given"
            raise PolicyViolation(
                f"{whose} allows the analysts {', '.join(self.analysts)}, and {who}: give analyst=, as in "
                "ledger.on_behalf(analyst='NAME')"
            )
        if self.require_unit and (unit is None or unit.name != account.unit):
            raise PolicyViolation(f"{whose} requires the unit {account.unit!r}: fit with unit={account.unit!r}")
        largest = self.largest(account.budget)
        if largest is not None and not largest.covers(event):
            raise PolicyViolation(
                f"{whose} allows {describe(largest)} for each fit, "
                f"not {describe_asked(event, asked, account.budget)}: ask for less"
            )

    def largest(self, budget: Event) -> Event | None:
        """What one charge of this budget may be at most; None where there is no such rule."""
        most = self.max_epsilon_per_fit
        if most is None:
            return None
        return ApproxDP(most, budget.delta0) if isinstance(budget, ApproxDP) else PureDP(most)

    def describe(self) -> str:
        """The rules in one line; empty where there are none."""
        rules = []
        if self.max_epsilon_per_fit is not None:
            rules.append(f"at most epsilon = {self.max_epsilon_per_fit:g} for each fit")
        if self.analysts:
            rules.append(f"analysts {', '.join(self.analysts)} only")
        if self.require_unit:
            rules.append("fits must name the unit")
        return "; ".join(rules)

    def encode(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "max_epsilon_per_fit": self.max_epsilon_per_fit,
            "analysts": list(self.analysts),
            "require_unit": self.require_unit,
        }

    @classmethod
    def decode(cls, record: Mapping[str, Any]) -> Policy:
        """Read back what :meth:`encode` wrote; a rule that this program does not know is refused, not ignored.

        Raises
        ------
        InvalidInput
        """
        if not isinstance(record, dict) or set(record) != {field.name for field in fields(cls)}:
            raise InvalidInput("its policy has rules that this program does not know")
        return cls(**record)


@dataclass(frozen=True)
class Charge:
    """One line of a ledger.

    Attributes
    ----------
    event : Event
    note : str
        What it paid for, in the words of the library.
    charged : str
        The time (UTC, ISO 8601). Charges are ordered as they were made, whatever the clock said.
    seeded : bool or None
        True if the noise came from a seed, so that the release has no privacy. None in lines written before ledgers
        recorded it.
    request : Request
        Who asked for it, and what for.
    software : str or None
        The version that charged it; None in lines written before ledgers recorded it.
    """

    event: Event
    note: str
    charged: str
    seeded: bool | None = False
    request: Request = Request()
    software: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.note, str) and isinstance(self.charged, str)):
            raise InvalidInput("the note of a charge and its time must be text")
        if not isinstance(self.software, str | None):
            raise InvalidInput("the software of a charge must be text")


@dataclass(frozen=True)
class Account:
    """A data set's budget, with the neighbouring relation and the unit in which it is counted, and its policy."""

    dataset: str
    budget: Event
    relation: Relation
    unit: str
    policy: Policy = Policy()

    def __post_init__(self) -> None:
        if not (isinstance(self.dataset, str) and isinstance(self.unit, str)):
            raise InvalidInput("the names of a data set and of a unit must be text")
        if not isinstance(self.budget, Event):
            raise InvalidInput(
                f"the budget of a ledger must be an event such as ApproxDP(1.0, 1e-6), not {type_of(self.budget)}"
            )
        if not isinstance(self.policy, Policy):
            raise InvalidInput(f"policy= takes a Policy such as Policy(require_unit=True), not {type_of(self.policy)}")
        self.policy.check_terms(self.budget, self.unit)
