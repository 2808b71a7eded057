"""Public rows given to a model or a command, as moments of its columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from dpregress.display import how_many
from dpregress.errors import InvalidInput
from dpregress.inputs.formula import (
    called,
    check_numeric,
    check_public_exposure,
    names_files,
    open_public,
    public_moments,
    read_columns,
)
from dpregress.public import Numeric, PublicMoments, Schema
from dpregress.rows import Encoder
from dpregress.rows.readers.files import FilesReader, is_table, to_table
from dpregress.rows.readers.locations import FileState, Location, paths_of


def is_public(given: Any) -> bool:
    """Whether this is something that tells of public rows: moments, a table, or files of rows or of moments."""
    return names_files(given) or isinstance(given, PublicMoments | FilesReader) or is_table(given)


def opened_apart(source: Any, public: Any) -> Any:
    """The public side, its files opened (see :func:`open_public`), once it is known not to be the private one.

    Raises
    ------
    InvalidInput
        For the same object in both places, or one of the same files.
    """
    check_apart(source, public)
    return open_public(public)


def check_apart(source: Any, public: Any) -> None:
    """Refuse private rows in the place of public ones."""
    if public is None or isinstance(public, PublicMoments):
        return
    private = {FileState.of(path).file for path in _files(source)}
    shared = [str(path) for path in _files(public) if FileState.of(path).file in private]
    if shared or public is source:
        what = shared[0] if shared else "public="
        raise InvalidInput(f"{what} is the private table itself: give rows that are public already")


def _files(given: Any) -> tuple[Location, ...]:
    """The files that these are; none for what is no file."""
    if isinstance(given, FilesReader):
        return given.paths
    parts = given if isinstance(given, list | tuple) else [given]
    return paths_of(given) if all(isinstance(part, str | Location) for part in parts) else ()


def public_columns(public: Any, *others: str | None) -> tuple[str, ...]:
    """Names of the columns of public rows without the target and others, or of moments, which hold features only."""
    public = open_public(public)
    if isinstance(public, PublicMoments):
        return public.names
    names = (to_table(public) if is_table(public) else public).schema.names
    return tuple(name for name in names if name not in others)


def left_out_note(rows: int) -> str:
    """That public rows with gaps were left out; they may be counted aloud."""
    return f"{how_many(rows, 'public row')} with missing cells {'was' if rows == 1 else 'were'} left out"


def beyond_note(rows: int) -> str:
    """That public rows were left out whose response is no measurement."""
    said = "a response far beyond its bounds was" if rows == 1 else "responses far beyond their bounds were"
    return f"{how_many(rows, 'public row')} with {said} left out"


def say_left_out(rows: int, note: Callable[[int], str] = left_out_note, frames: int = 5) -> None:
    """Warn of public rows that were left out, because of gaps if nothing else is said."""
    if rows:
        warnings.warn(note(rows), UserWarning, stacklevel=frames)


def moments_of(
    public: Any,
    columns: Sequence[str],
    target: str | None,
    schema: Schema | None,
    classes: tuple[str, ...] = (),
    exposure: str | None = None,
) -> tuple[PublicMoments, int]:
    """Moments of the design columns that the schema makes of these, and how many public rows were left out.

    Rows that hold the target are labelled, and need its exposure where there is one; those with a missing cell that
    the schema does not provide for are left out.

    Raises
    ------
    InvalidInput
        For public rows without one of the columns, with text that is no level, or without a usable row.
    """
    public = open_public(public)
    if isinstance(public, PublicMoments):
        return public.select(Encoder.of(columns, None, schema).features), 0
    names = public_columns(public)
    labels = [target] if target is not None and target not in columns and target in names else []
    if labels:
        check_public_exposure(public, names, exposure)
    beside = exposure if labels else None
    where = called(public)
    table = read_columns(public, (*columns, *labels, *([beside] if beside is not None else [])), where)
    check_numeric(table.drop_columns(labels if classes else []), schema, where)
    encoder = Encoder.of(columns, target if labels else None, schema, classes if labels else (), beside)
    encoder.check_types(table.schema)
    return public_moments(table, encoder, where)


def columns_behind(features: Sequence[str], public: Any, schema: Schema | None) -> tuple[str, ...]:
    """The columns of public rows that these design columns are made of; of moments the design columns."""
    if isinstance(open_public(public), PublicMoments):
        return tuple(features)
    declared = {name: (schema.column(name) if schema else None) or Numeric() for name in public_columns(public)}
    return tuple(name for name, column in declared.items() if {*column.design(name)} & {*features})
