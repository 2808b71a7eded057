"""What a ledger calls the table of a fit."""

from __future__ import annotations

from os import PathLike
from typing import Any

from dpregress.display import shown
from dpregress.rows import SQLQuery
from dpregress.rows.readers.base import Reader


def described_table(table: Any) -> str:
    """What a ledger calls a table: its files or its query without credentials, else its type. Its size is not told."""
    if isinstance(table, SQLQuery):
        return repr(table)
    if isinstance(table, str | PathLike):
        return shown(table)
    if isinstance(table, Reader):
        return table.name
    if isinstance(table, list | tuple) and table and all(isinstance(part, str | PathLike) for part in table):
        return ", ".join(map(shown, table))
    return f"{type(table).__module__.partition('.')[0]} {type(table).__name__}"
