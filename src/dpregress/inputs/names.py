"""Names of columns that users give. Whatever else they give, and private rows above all, messages name by its type."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from dpregress.errors import InvalidInput, one_line, type_of


def listed(names: Any, what: str = "features", *, places: bool = False) -> list[Any]:
    """The columns of a list.

    Parameters
    ----------
    names : iterable of str
        A column of a table is none, though it may hold text.
    what : str
        The parameter.
    places : bool
        Whether whole numbers are taken too.

    Raises
    ------
    InvalidInput
        For one name, or anything that is no list of names.
    """
    if isinstance(names, str | bytes | Mapping) or _holds_cells(names) or not isinstance(names, Iterable):
        raise InvalidInput(f"{what} takes a list of column names, such as ['age', 'income'], not {one_line(names)}")
    found = list(names)
    kinds = (str, int, np.integer) if places else (str,)
    others = [each for each in found if not isinstance(each, kinds)]
    if others:
        raise InvalidInput(
            f"{what} takes a list of column names, such as ['age', 'income'], and {type_of(others[0])} in it is no name"
        )
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{twice!r} is in {what} more than once: name each column once")
    return found


def _holds_cells(given: Any) -> bool:
    """Whether this is of a type of tables or of their columns; an index and a plain array hold names."""
    array = isinstance(given, np.ndarray) and given.ndim != 1
    return array or isinstance(given, pa.Array | pa.ChunkedArray) or type(given).__name__ in ("Series", "DataFrame")


#: What each role of a column of a table is called.
_ROLES = {"unit": "the ids", "exposure": "the exposures", "weights": "the weights"}


def check_named(**given: Any) -> None:
    """Refuse anything but the name of a column as the unit, the exposure or the weights of ``fit_table``.

    Raises
    ------
    InvalidInput
    """
    for role, name in given.items():
        if name is not None and not isinstance(name, str):
            raise InvalidInput(
                f"{role}= of fit_table takes the name of the column of {_ROLES[role]}, not {type_of(name)}: "
                "fit(X, y) takes arrays"
            )


def check_target(target: Any) -> None:
    """Refuse anything but a name as the response of ``fit_table``.

    Raises
    ------
    InvalidInput
    """
    if not isinstance(target, str):
        raise InvalidInput(f"fit_table takes the name of the response, not {type_of(target)}: fit(X, y) takes arrays")


def check_default_target(target: str, names: Collection[str], where: str = "the table") -> None:
    """Ask for the response where none is named and no column is called y, or where a formula stands in its place.

    Raises
    ------
    InvalidInput
    """
    if "~" in target and target not in names:
        formula = one_line(target)
        raise InvalidInput(
            f"{formula} is a formula: make the model by from_formula({formula}, ..), and fit it to the table"
        )
    if target == "y" and target not in names:
        raise InvalidInput(f"no column 'y' in {where}: name the response, as in fit_table(table, 'cost')")


def check_unit(unit: str | None, features: Collection[str], target: Collection[str]) -> None:
    """Refuse ids that the model reads as a column."""
    check_named(unit=unit)
    if unit is not None and (unit in target or unit in features):
        role = "the target" if unit in target else "among the features"
        raise InvalidInput(f"unit {unit!r} is {role}: it takes the name of another column, that of the ids")


def check_exposure(
    exposure: str | None, features: Collection[str], target: Collection[str], unit: str | None = None
) -> None:
    """Refuse an exposure that the model reads as another column."""
    check_named(exposure=exposure)
    for role, taken in (("the target", target), ("among the features", features), ("the unit", (unit,))):
        if exposure is not None and exposure in taken:
            raise InvalidInput(f"exposure {exposure!r} is {role}: it takes the name of another column")


def check_weights_column(weights: str | None, taken: Collection[str | None]) -> None:
    """Refuse weights that have another role."""
    check_named(weights=weights)
    if weights is not None and weights in taken:
        raise InvalidInput(f"weights={weights!r} has another role too: weights take the name of a column of their own")
