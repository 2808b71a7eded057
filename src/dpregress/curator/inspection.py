"""Checks that the curator can make before a fit. Their output is not protected, and no fit uses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpregress.coordinates import Vector
from dpregress.public import Categorical, Numeric, Schema
from dpregress.rows.design.encoder import is_text, readable, to_codes, to_numbers


@dataclass(frozen=True)
class ColumnCheck:
    """The numbers of cells in one column that a fit would replace, and of those beyond bounds.

    Attributes
    ----------
    name, kind : str
    missing, not_a_number, not_finite, undeclared, out_of_bounds : int
    impossible : int
        Responses that the family cannot have.
    """

    name: str
    kind: str
    missing: int
    not_a_number: int = 0
    not_finite: int = 0
    undeclared: int = 0
    out_of_bounds: int = 0
    impossible: int = 0

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """The five counts in order."""
        return self.missing, self.not_a_number, self.not_finite, self.undeclared, self.out_of_bounds


def inspect_rows(table: pa.Table, schema: Schema | None) -> list[ColumnCheck]:
    """Count the cells of each column that cannot be used as they are."""
    return [
        _inspect(name, column, schema.column(name) if schema else None)
        for name, column in zip(table.schema.names, table.columns, strict=True)
    ]


def inspect_response(
    table: pa.Table,
    target: str,
    schema: Schema | None,
    classes: tuple[str, ...],
    possible: Callable[[Vector], NDArray[np.bool_]],
) -> ColumnCheck:
    """Count the responses that cannot be used as they are, such as undeclared classes.

    Parameters
    ----------
    table : pyarrow.Table
    target : str
    schema : Schema or None
    classes : tuple of str
        Empty for a response that is a number.
    possible : callable
        Which numbers the family can have.
    """
    column = table.column(target)
    if classes and readable(column.type):
        missing = int(column.null_count)
        unknown = int(np.isnan(to_codes(column, classes)).sum())
        return ColumnCheck(target, "class", missing, undeclared=unknown - missing)
    found = _inspect(target, column, schema.column(target) if schema else None)
    if found.kind == "not read":
        return found
    values = to_numbers(column)
    outside = np.isfinite(values) & ~possible(values)
    return replace(found, kind="response", impossible=int(outside.sum()))


def _inspect(name: str, column: pa.ChunkedArray, declared: Numeric | Categorical | None) -> ColumnCheck:
    missing = int(column.null_count)
    if not readable(column.type):
        return ColumnCheck(name, "not read", missing)
    if isinstance(declared, Categorical):
        unknown = int(np.isnan(to_codes(column, declared.levels)).sum())
        return ColumnCheck(name, "level", missing, undeclared=unknown - missing)
    values = to_numbers(column)
    valid = np.asarray(pc.is_valid(column))
    not_a_number = int((valid & np.isnan(values)).sum()) if is_text(column.type) else 0
    not_finite = int((valid & ~np.isfinite(values)).sum()) - not_a_number
    outside = 0
    if declared is not None and declared.bounds is not None:
        lower, upper = declared.bounds
        outside = int((np.isfinite(values) & ((values < lower) | (values > upper))).sum())
    return ColumnCheck(name, "number", missing, not_a_number, not_finite, out_of_bounds=outside)


def _centre(declared: Numeric) -> str:
    if declared.bounds is None:
        return "the public mean"
    lower, upper = declared.bounds
    return f"the public mean, else {lower / 2 + upper / 2:g}"


def stand_in(declared: Numeric | Categorical) -> str:
    """The replacement for a missing or unusable cell of a feature, in words."""
    if isinstance(declared, Categorical):
        own = declared.stand_in == len(declared.levels)
        return "a level of its own" if own else f"level {declared.levels[declared.stand_in]}"
    value = _centre(declared) if declared.fill is None else f"{declared.fill:g}"
    return f"{value}, and an indicator" if declared.missing == "indicator" else value
