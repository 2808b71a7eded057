"""What users pass to a model with a formula, as sources and public moments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, Vector
from dpregress.display import shown
from dpregress.errors import InvalidInput
from dpregress.inputs.names import check_unit
from dpregress.inputs.response import check_exposure_column, check_number, check_response, type_of_array
from dpregress.inputs.tables import encoded, held, numbers
from dpregress.public import Categorical, PublicMoments, Schema
from dpregress.rows import Encoder, FormulaEncoder, Source, TableSource
from dpregress.rows.design.encoder import is_text, to_numbers, undictionaried
from dpregress.rows.readers.base import Reader
from dpregress.rows.readers.files import is_table, read, read_files, to_table


def formula_source(
    rows: Any,
    y: Any,
    encoder: FormulaEncoder,
    unit: str | None = None,
    schema: Schema | None = None,
    weights: str | None = None,
) -> Source:
    """Rows of files, a query or a table as a source; with ``y`` a table in which the response is not.

    Raises
    ------
    InvalidInput
        For what is no table, a missing column, or responses of another number.
    """
    (target,) = encoder.response.columns
    if y is None:
        _not_array(rows)
        check_unit(unit, encoder.sources, encoder.response.columns)
        source = encoded(rows, encoder, unit, weights, schema)
        check_response(source.schema, target, encoder.table.classes, schema)
        check_exposure_column(source.schema, encoder.table.exposed, schema)
        return source
    check_number(target, type_of_array(y), schema)
    response = numbers(y)
    table = read_columns(held(rows), encoder.sources, declared=() if schema is None else schema.columns)
    encoder.right.check_types(table.schema)
    if table.num_rows != len(response):
        raise InvalidInput(f"X has {table.num_rows} rows, y has {len(response)}")
    return TableSource(table.append_column(target, [response]), encoder.plain)


def read_columns(
    rows: Any, columns: tuple[str, ...], where: str = "the table", declared: Iterable[str] = ()
) -> pa.Table:
    """These columns of a file, or of a table in memory, called so in messages; an array has none.

    Messages suggest ``declared`` names in place of columns that are not there.
    """
    if is_table(rows):
        return to_table(rows, columns, where, declared)
    _not_array(rows)
    return read(rows, columns)


def _not_array(rows: Any) -> None:
    if isinstance(rows, np.ndarray) or (isinstance(rows, list | tuple) and not names_files(rows)):
        raise InvalidInput(f"a formula names columns, and a {type(rows).__name__} has none: give a data frame or file")


def names_files(given: Any) -> bool:
    """Whether this is a path or a list of paths."""
    return all(isinstance(part, str | Path) for part in (given if isinstance(given, list | tuple) else [given]))


def open_public(public: Any) -> Any:
    """A file of moments (JSON) as moments, files of rows as a reader that knows their columns; others as they are."""
    if isinstance(public, str | Path) and str(public).lower().endswith(".json"):
        return PublicMoments.load(public)
    return read_files(public) if names_files(public) else public


def called(public: Any) -> str:
    """What public rows are called in messages."""
    return shown(public.name) if isinstance(public, Reader) else "the public table"


def formula_moments(
    public: Any, encoder: FormulaEncoder, schema: Schema | None, labelled: bool = True
) -> tuple[PublicMoments, int]:
    """Moments of the design columns, of public rows or as they are, and how many rows were left out.

    Left out are rows with a missing cell, or one outside a function's domain. Rows with the response's column are
    labelled, unless its labels are not wanted.

    Raises
    ------
    InvalidInput
        For moments of other columns, or public rows without a usable one.
    """
    public = open_public(public)
    if isinstance(public, PublicMoments):
        absent = [name for name in encoder.features if name not in public.names]
        if absent:
            raise InvalidInput(
                f"the public moments have no column {absent[0]!r} of the formula: give the public rows themselves"
            )
        moments = public.select(encoder.features)
        return (moments if labelled else moments.unlabelled()), 0
    names = (to_table(public) if is_table(public) else public).schema.names
    (target,) = encoder.response.columns
    if labelled := labelled and target in names:
        check_public_exposure(public, names, encoder.table.exposed)
    design = encoder if labelled else encoder.right
    table = read_columns(public, design.needed, called(public))
    design.check_types(table.schema)
    where = called(public)
    check_numeric(table.drop_columns([target] if design.table.classes else []), schema, where)
    return public_moments(table, design, where)


def public_moments(table: pa.Table, design: Encoder | FormulaEncoder, where: object) -> tuple[PublicMoments, int]:
    """Moments of public rows without missing cells that nothing provides for, and how many others were left out."""
    x, y, exposure = design.x(table), design.y(table), design.exposure(table)
    if isinstance(design, Encoder):
        x = _mended(x, design)
    coded = design if isinstance(design, Encoder) else design.table
    if y is not None and coded.classes:
        _check_labels(y, table[str(coded.target)], coded.classes, where)
    whole = np.isfinite(x).all(axis=1) & (np.isfinite(y) if y is not None else True)
    if exposure is not None:
        whole &= np.isfinite(exposure) & (exposure > 0)
    if not whole.any():
        raise InvalidInput(f"no row of {where} is free of missing cells: mend the public table")
    moments = PublicMoments.from_rows(
        x[whole],
        None if y is None else y[whole],
        names=design.features,
        exposure=None if exposure is None else exposure[whole],
    )
    return moments, int((~whole).sum())


def _check_labels(codes: Vector, column: pa.ChunkedArray, classes: Sequence[str], where: object) -> None:
    """Refuse public responses that are others than the classes, such as 1 and 2 where the classes are 0 and 1.

    If public rows hold every class, others are codes for missing responses.
    """
    there = np.isfinite(codes)
    others = ~_left_empty(column) & ~there
    absent = [name for place, name in enumerate(classes) if not (codes == place).any()]
    if absent and others.any():
        none = f"none {absent[0]}" if there.any() else "none one of these"
        raise InvalidInput(
            f"rows of {where} hold other responses than the classes {', '.join(classes[:12])}, and {none}: name the "
            "classes that they hold (classes=), or empty these cells"
        )


def _left_empty(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Cells without a value: null, NaN, and the blank text of data frames, which in files is null already."""
    column = undictionaried(column)
    if is_text(column.type):
        blank = pc.match_substring_regex(pc.cast(column, pa.large_binary()), r"^\s*$")
        return np.asarray(pc.fill_null(blank, True))
    return np.asarray(pc.is_null(column, nan_is_null=True))


def check_public_exposure(public: Any, names: Sequence[str], exposure: str | None) -> None:
    """Refuse public rows that hold the target without its exposure."""
    if exposure is not None and exposure not in names:
        raise InvalidInput(
            f"no exposure {exposure!r} beside the target in {called(public)}: "
            "add the column, or leave the target out (on the command line by --ignore-public-labels)"
        )


def _mended(x: Matrix, encoder: Encoder) -> Matrix:
    """Public rows whose gaps the schema provides for: filled with what it declares, or beside an indicator the mean."""
    x = x.copy()
    for name, column in encoder.columns:
        if isinstance(column, Categorical) or (column.fill is None and column.missing == "mean"):
            continue
        cells = x[:, encoder.features.index(name)]
        gaps = ~np.isfinite(cells)
        if gaps.any() and not (gaps.all() and column.fill is None):
            cells[gaps] = cells[~gaps].mean() if column.fill is None else column.fill
    return x


def check_numeric(table: pa.Table, schema: Schema | None, where: object) -> None:
    """Refuse a public column with text in it whose levels are not declared."""
    for name in table.schema.names:
        if schema is not None and isinstance(schema.column(name), Categorical):
            continue
        column = table[name]
        if not is_text(column.type):
            continue
        text = np.asarray(pc.is_valid(column)) & ~np.isfinite(to_numbers(column))
        if text.any():
            raise InvalidInput(
                f"column {name!r} of {where} holds text: declare its levels in a schema, name its classes if it is the "
                "response (--classes), or leave it out of the model"
            )
