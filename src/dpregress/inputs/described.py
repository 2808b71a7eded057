"""What a ledger and a report call the table of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from dpregress.display import how_many, shown
from dpregress.errors import type_of
from dpregress.rows import SQLQuery
from dpregress.rows.readers.base import Reader


def described_table(table: Any) -> str:
    """What a ledger calls a table: its files or its query without credentials, else its type. Its size is not told."""
    if isinstance(table, SQLQuery):
        return repr(table)
    if isinstance(table, Reader):
        return table.name
    if paths := _paths(table):
        return ", ".join(map(shown, paths))
    return f"{type(table).__module__.partition('.')[0]} {type(table).__name__}"


def published_name(table: Any) -> str:
    """What a report calls a table: the name of a file without its folder, or the kind of object."""
    if isinstance(table, SQLQuery):
        return f"a query to {shown(table.url).rpartition('/')[2]}"
    if isinstance(table, Reader):
        return published_name(table.name)
    if paths := _paths(table):
        first, more = shown(paths[0]).rstrip("/").rpartition("/")[2], len(paths) - 1
        return first + (f" and {how_many(more, 'other file')}" if more else "")
    return "an array in memory" if isinstance(table, np.ndarray) else f"{type_of(table)} in memory"


def _paths(table: Any) -> Sequence[str | PathLike[str]]:
    """The paths that a table is given by; none for other tables."""
    given = table if isinstance(table, list | tuple) else [table]
    return given if all(isinstance(part, str | PathLike) for part in given) else ()
