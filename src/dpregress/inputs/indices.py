"""Data frames and series whose rows go by position, although their indices say otherwise."""

from __future__ import annotations

import sys
from typing import Any

from dpregress.errors import InvalidInput


def check_aligned(X: Any, **beside: Any) -> None:
    """Refuse what stands beside the rows of X, such as responses, if its index is another or in another order.

    Rows are paired by position. An index holds names of rows that whoever calls has chosen, as public as their number;
    messages name none all the same. What pandas does not hold has no index, and another number of rows is refused
    elsewhere.

    Raises
    ------
    InvalidInput
    """
    rows = _index(X)
    if rows is None:
        return
    for name, given in beside.items():
        other = _index(given)
        if other is not None and len(rows) == len(other) and not rows.equals(other):
            raise InvalidInput(
                f"X and {name} have different indices, and rows go by position: give {name}.loc[X.index], "
                f"or {name}.to_numpy() if they are in one order already"
            )


def _index(given: Any) -> Any:
    """The index of a data frame or a series of pandas; None of anything else."""
    pandas = sys.modules.get("pandas")  # without pandas imported, nothing is of it
    return given.index if pandas is not None and isinstance(given, pandas.DataFrame | pandas.Series) else None
