"""What parameters of an estimator may be: one check of their types, whoever holds the rows."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from dpregress.accounting import Event, Ledger
from dpregress.errors import InvalidInput, check_choice, one_line, type_of
from dpregress.public import Schema
from dpregress.public.whitening import check_row_bound
from dpregress.releases import CovarianceType

#: Sampling covariances that an estimator may have.
COV_TYPES: tuple[str, ...] = get_args(CovarianceType)
#: Covariances by the names of statsmodels.
_OF_STATSMODELS = {"nonrobust": "model", **{f"HC{kind}": "robust" for kind in range(4)}}
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
    check_kind("privacy", privacy)
    budget: Event = privacy
    return budget


def checked_privacy(model: Any, *, by_party: Sequence[str] = ()) -> Event:
    """The budget of an estimator, once its parameters have the documented type, or are None.

    Parameters
    ----------
    model : estimator
    by_party : sequence of str
        Parameters of this estimator that are mappings by the name of a party; they are checked with the parties.

    Raises
    ------
    InvalidInput
        For a parameter of another type, or without a budget.
    """
    budget = checked_budget(model.privacy)
    for name in _KINDS:
        if name not in by_party:
            check_kind(name, getattr(model, name, None))
    if getattr(model, "row_bound", None) is not None:
        check_row_bound(model.row_bound)
    return budget


def checked_bounds(name: str, given: Any) -> tuple[float, float]:
    """The two numbers of a parameter.

    Raises
    ------
    InvalidInput
    """
    try:
        lower, upper = map(float, given if isinstance(given, tuple | list | np.ndarray) else ())
        return lower, upper
    except (TypeError, ValueError, OverflowError):
        pass  # its text shows what was given
    raise InvalidInput(f"{name}= takes two numbers such as (0, 1), not {one_line(given)}")


def checked_robust(cov_type: Any) -> bool:
    """Whether the type of a covariance is "robust"; the other is "model".

    Raises
    ------
    InvalidInput
        For anything else.
    """
    check_choice("cov_type", cov_type, COV_TYPES, _OF_STATSMODELS)
    return bool(cov_type == "robust")


def check_kind(name: str, value: Any) -> None:
    """Refuse a parameter of another type than documented; None passes.

    Raises
    ------
    InvalidInput
    """
    kind, wanted = _KINDS[name]
    if value is not None and not isinstance(value, kind):
        raise InvalidInput(f"{name}= takes {wanted}, not {type_of(value)}")
