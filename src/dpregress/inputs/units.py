"""Whose rows are bounded: ids beside the rows, and how many rows of one may count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dpregress.accounting import RECORD, UNNAMED, Unit
from dpregress.errors import InvalidInput
from dpregress.rows import CappedSource, Source, StreamSource, TableSource
from dpregress.rows.units import ids_of


def bounded_units(source: Source, ids: Any, most: Any, *, in_place: bool = False) -> tuple[Source, Unit]:
    """The source with bounded contributions, and whom that protects: records where there are no ids.

    ``ids`` are ids, or of a table the name of their column, which is not read if the rows stay ``in_place``.

    Raises
    ------
    InvalidInput
        For ids without a bound or a bound without ids, another number of ids than rows, or rows in no fixed order.
    """
    if ids is None and most is None:
        return source, RECORD
    if ids is None:
        raise InvalidInput("max_rows_per_unit goes with unit: say whose rows are counted")
    if most is None:
        raise InvalidInput("unit goes with max_rows_per_unit: say how many rows of one may count")
    most = int(most) if isinstance(most, np.integer) else most
    if isinstance(ids, str) and isinstance(source, TableSource | StreamSource):
        unit = Unit(ids, most)
        read = _once_asked(source, ids) if in_place else source.column(ids)
        return CappedSource(source, read, unit.most, ids if in_place else None), unit
    unit, column = Unit(str(getattr(ids, "name", None) or UNNAMED), most), ids_of(ids)
    if len(column) != source.n:
        raise InvalidInput(f"X has {source.n} rows, unit has {len(column)}")
    return CappedSource(source, [column], unit.most), unit


def _once_asked(source: TableSource | StreamSource, ids: str) -> Iterator[Any]:
    """The column of ids, refused only when it is first asked for: a database never asks."""
    yield from source.column(ids)
