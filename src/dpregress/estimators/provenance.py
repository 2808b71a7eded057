"""Where the rows of a fit came from, in the words of a report."""

from __future__ import annotations

from datetime import UTC, datetime
from os import PathLike
from typing import Any

import numpy as np

from dpregress.display import shown
from dpregress.errors import type_of
from dpregress.reports import Provenance
from dpregress.rows.readers.sql import SQLQuery


def origin_of(table: Any) -> str:
    """A table in a few words: the name of a file without its folder, or the kind of object."""
    if isinstance(table, str | PathLike):
        return shown(table).rstrip("/").rpartition("/")[2]
    if isinstance(table, SQLQuery):
        return f"a query to {shown(table.url).rpartition('/')[2]}"
    if isinstance(table, list | tuple) and table and all(isinstance(path, str | PathLike) for path in table):
        more = len(table) - 1
        return origin_of(table[0]) + (f" and {more} other file(s)" if more else "")
    return "an array in memory" if isinstance(table, np.ndarray) else f"{type_of(table)} in memory"


def made_now(origin: str) -> Provenance:
    """The provenance of a fit that ends now."""
    return Provenance(origin, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))
