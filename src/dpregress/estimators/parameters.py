"""What parameters of an estimator may be: one check of their types, whoever holds the rows."""

from __future__ import annotations

import numbers
from typing import Any

from dpregress.accounting import Event, Ledger
from dpregress.errors import InvalidInput, type_of
from dpregress.public import Schema

#: The type of each parameter, and what to give.
_KINDS: dict[str, tuple[type[Any], str]] = {
    "privacy": (Event, "a budget such as ApproxDP(epsilon=1.0, delta=1e-6)"),
    "schema": (Schema, "a Schema such as Schema({'age': Numeric(0, 110)})"),
    "formula": (str, "text such as 'visits ~ age'"),
    "ledger": (Ledger, "a ledger such as SQLiteLedger('budget.db', 'claims')"),
    "row_bound": (numbers.Real, "a number"),
}


def checked_budget(privacy: Any) -> Event:
    """The budget, once it is known to be one.

    Raises
    ------
    InvalidInput
        Without a budget, or for another type.
    """
    if privacy is None:
        raise InvalidInput("privacy= is not set: say how much may be spent, such as ApproxDP(1.0, 1e-6)")
    _check("privacy", privacy)
    budget: Event = privacy
    return budget


def checked_privacy(model: Any, *others: str) -> Event:
    """The budget of an estimator, once it and these parameters have the documented type, or are None.

    Parameters
    ----------
    model : estimator
    *others : str
        Any of schema, formula, ledger and row_bound.

    Raises
    ------
    InvalidInput
        For a parameter of another type, or without a budget.
    """
    budget = checked_budget(model.privacy)
    for name in others:
        _check(name, getattr(model, name))
    return budget


def _check(name: str, value: Any) -> None:
    kind, wanted = _KINDS[name]
    if value is not None and not isinstance(value, kind):
        raise InvalidInput(f"{name}= takes {wanted}, not {type_of(value)}")
