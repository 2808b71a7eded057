"""Public rows given to a model or a command, as moments of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpregress.estimators._formula import check_numeric, opened, public_moments, read_columns
from dpregress.public import Numeric, PublicMoments, Schema
from dpregress.rows import Encoder
from dpregress.rows.files import is_table, names_of, to_table


def is_public(given: Any) -> bool:
    """Whether this is something that tells of public rows: moments, a table, or files of rows or of moments."""
    if isinstance(given, list | tuple):
        return all(isinstance(part, str | Path) for part in given)
    return isinstance(given, PublicMoments | str | Path) or is_table(given)


def public_columns(public: Any, target: str | None = None) -> tuple[str, ...]:
    """Names of the columns of public rows without the target, or of moments, which hold features only."""
    public = opened(public)
    if isinstance(public, PublicMoments):
        return public.names
    names = to_table(public).schema.names if is_table(public) else names_of(public)
    return tuple(name for name in names if name != target)


def moments_of(
    public: Any, columns: Sequence[str], target: str | None, schema: Schema | None, classes: tuple[str, ...] = ()
) -> tuple[PublicMoments, int]:
    """Moments of the design columns that the schema makes of these, and how many public rows were left out.

    Rows that hold the target are labelled; those with a missing cell that the schema does not provide for are left
    out.

    Raises
    ------
    InvalidInput
        For public rows without one of the columns, with text that is no level, or without a usable row.
    """
    public = opened(public)
    if isinstance(public, PublicMoments):
        return public.select(Encoder.of(columns, None, schema).features), 0
    labels = [target] if target is not None and target not in columns and target in public_columns(public) else []
    table = read_columns(public, (*columns, *labels))
    where = public if isinstance(public, str | Path) else "the public rows"
    check_numeric(table.drop_columns(labels if classes else []), schema, where)
    encoder = Encoder.of(columns, target if labels else None, schema, classes if labels else ())
    encoder.check_types(table.schema)
    return public_moments(table, encoder, where)


def columns_behind(features: Sequence[str], public: Any, schema: Schema | None) -> tuple[str, ...]:
    """The columns of public rows that these design columns are made of; of moments the design columns."""
    if isinstance(opened(public), PublicMoments):
        return tuple(features)
    declared = {name: (schema.column(name) if schema else None) or Numeric() for name in public_columns(public)}
    return tuple(name for name, column in declared.items() if {*column.design(name)} & {*features})
