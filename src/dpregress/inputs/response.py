"""The kind of the response, a number or classes, from its type, the schema and the call; cells have no influence."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpregress.errors import InvalidInput, UnboundedData
from dpregress.models.families import FAMILIES
from dpregress.public import Categorical, Numeric, Schema
from dpregress.rows import StreamSource, TableSource
from dpregress.rows.design.encoder import is_text, is_untyped, readable, to_numbers, value_type
from dpregress.rows.readers.files import in_memory, to_table
from dpregress.rows.sources import reader_of

#: The default classes, if neither the call, the schema nor a boolean type determines them.
USUAL = (0, 1)
_TEXT = pa.large_string()
#: Names of text types in pandas and Polars.
_TEXTS = ("str", "categorical", "enum", "binary")


def type_of_column(source: Any, target: str) -> pa.DataType | None:
    """The type of a table's or file's column; None where it has none (CSV, SQLite, columns of objects)."""
    schema = (to_table(source, [target]) if in_memory(source) else reader_of(source)).schema
    if schema.names.count(target) != 1:
        return None  # which is refused elsewhere
    return _known_type(schema, target)


def type_of_array(y: Any) -> pa.DataType | None:
    """The same of an array: text, booleans, integers or floats; None for objects and for lists.

    A list of nothing but text is one of text: that is its type, as it would be that of the array made of it.
    """
    if isinstance(y, list | tuple):
        return _TEXT if y and all(isinstance(cell, str) for cell in y) else None
    if isinstance(y, pa.Array | pa.ChunkedArray):
        return value_type(y.type)
    dtype = getattr(y, "dtype", None)
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)  # of a pandas categorical
    if isinstance(arrow := getattr(dtype, "pyarrow_dtype", None), pa.DataType):  # pandas' columns of Arrow
        return value_type(arrow)
    if getattr(dtype, "kind", None) in ("U", "S") or str(dtype).lower().startswith(_TEXTS):
        return _TEXT
    kinds = {"b": pa.bool_(), "i": pa.int64(), "u": pa.uint64(), "f": pa.float64()}
    return kinds.get(getattr(dtype, "kind", ""))


def check_number(target: str, kind: pa.DataType | None, schema: Schema | None) -> None:
    """Refuse text where a number is needed, unless the schema declares it one: no cell may be read before the charge.

    Raises
    ------
    InvalidInput
    """
    if kind is not None and is_text(kind) and (schema is None or schema.column(target) is None):
        raise InvalidInput(
            f"column {target!r} is text ({kind}) and this model needs a number: fit its classes (--family binomial or "
            "multinomial with --classes; DPLogisticRegression), declare it a number in the schema, or choose another"
        )


def check_features(X: Any, names: Sequence[str], schema: Schema | None) -> None:
    """Refuse columns of text in an array, or in a list of rows, that the schema does not declare to be numbers.

    Raises
    ------
    InvalidInput
    """
    rows = isinstance(X, list | tuple) and all(isinstance(row, list | tuple) and len(row) == len(names) for row in X)
    for place, name in enumerate(names):
        kind = type_of_array([row[place] for row in X]) if rows else type_of_array(X)
        if kind is not None and is_text(kind) and (schema is None or schema.column(name) is None):
            raise InvalidInput(
                f"column {name!r} of X is text: give a data frame and declare the levels of the column in the schema, "
                "or declare it a number if its text is one"
            )


def check_declared(columns: Sequence[str], table: Any, schema: Schema | None) -> None:
    """Refuse features of a text type that nothing declares; arrays have no types of columns.

    Raises
    ------
    UnboundedData
    """
    kinds = table.schema if isinstance(table, TableSource | StreamSource) else pa.schema([])
    for name in columns:
        kind = _known_type(kinds, name) if kinds.names.count(name) == 1 else None
        if kind is not None and is_text(kind) and (schema is None or schema.column(name) is None):
            raise UnboundedData(f"column {name!r} is text: declare its levels in the schema, or leave it out")


def check_exposed(name: str, kind: pa.DataType | None, schema: Schema | None) -> None:
    """Refuse exposures of a text type, unless the schema declares them: where none is a number, no row would count.

    Raises
    ------
    InvalidInput
    """
    if kind is not None and is_text(kind) and (schema is None or schema.column(name) is None):
        raise InvalidInput(
            f"exposure {name!r} is text ({kind}) and exposures are positive numbers: declare it a number in the schema "
            "if its text is one, or choose another"
        )


def check_response(schema: pa.Schema, target: str, classes: Sequence[str], declared: Schema | None) -> None:
    """The same of a table's column, where the response is no class."""
    if not classes:
        check_number(target, _known_type(schema, target), declared)


def check_exposure_column(schema: pa.Schema, exposure: str | None, declared: Schema | None) -> None:
    """Refuse a table's column of exposures that is text."""
    if exposure is not None:
        check_exposed(exposure, _known_type(schema, exposure), declared)


def check_weights(name: str, schema: pa.Schema) -> None:
    """Refuse a table's column of weights of a type that holds neither numbers nor text, such as a date.

    Raises
    ------
    InvalidInput
    """
    if schema.names.count(name) == 1 and not readable(schema.field(name).type):
        kind = schema.field(name).type
        raise InvalidInput(
            f"weights {name!r} are of type {kind}: weights are numbers, choose another column or cast it"
        )


def _known_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    field = schema.field(name)
    return None if is_untyped(field) else value_type(field.type)


def default_classes(target: str, kind: pa.DataType | None, schema: Schema | None) -> Sequence[Any]:
    """The classes of a response: its levels in the schema, else False and True of booleans, else 0 and 1.

    Declared bounds that hold another whole number than 0 and 1 contradict these.

    Levels that are numbers have the type of the column, so that predictions compare with what it holds.

    Raises
    ------
    InvalidInput
        For text without declared levels, and for bounds of other numbers.
    """
    column = None if schema is None else schema.column(target)
    boolean = kind is not None and pa.types.is_boolean(kind)
    if not isinstance(column, Categorical):
        if kind is not None and is_text(kind) and column is None:
            raise InvalidInput(
                f"column {target!r} is text ({kind}), not 0 and 1: name its classes (classes=, on the command line "
                "--classes), declare its levels in a schema, or choose another column"
            )
        if not boolean:
            _check_usual(target, column)
        return (False, True) if boolean else USUAL
    values = to_numbers(pa.array(column.levels, _TEXT))
    if kind is None or is_text(kind) or not np.isfinite(values).all():
        return column.levels
    if boolean:
        return tuple(bool(value) for value in values)
    return tuple(float(value) if pa.types.is_floating(kind) else int(value) for value in values)


def _check_usual(target: str, column: Numeric | None) -> None:
    """Refuse 0 and 1 as the classes of a response whose declared bounds say that it has others."""
    if column is None or column.bounds is None:
        return
    lower, upper = column.bounds
    if not (-1 < lower <= 0 and 1 <= upper < 2):
        raise InvalidInput(
            f"the schema declares {target!r} between {lower:g} and {upper:g}, and the classes are 0 and 1, so that "
            "others would count as missing: name its classes (classes=), or fit a number"
        )


def check_support(target: str, schema: Schema | None, family: str) -> None:
    """Refuse declared bounds of a response that its family cannot have, and warn of those of which it has a part.

    Raises
    ------
    InvalidInput
    """
    column = None if schema is None else schema.column(target)
    bounds = column.bounds if isinstance(column, Numeric) else None
    if bounds is None or family not in FAMILIES:
        return
    distribution = FAMILIES[family][0].distribution
    ends = distribution.possible(np.array(bounds))
    declared = f"the schema declares {target!r} between {bounds[0]:g} and {bounds[1]:g}, and {family} responses have"
    if not ends[1] or (bounds[1] <= 0 and not distribution.signed):
        raise InvalidInput(f"{declared} {distribution.support}: choose another family, or correct the bounds")
    if bounds[0] < 0 and not ends[0]:
        warnings.warn(
            f"{declared} {distribution.support}: a response below 0 counts as it stands and biases the fit; recode "
            "such responses as missing, or choose family='gaussian'",
            UserWarning,
            stacklevel=5,
        )
