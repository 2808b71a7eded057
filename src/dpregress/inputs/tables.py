"""What users pass to ``fit`` and ``predict``, as sources; private cells are mapped, never judged."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, SelectedRowsWarning
from dpregress.inputs.names import (
    check_default_target,
    check_exposure,
    check_named,
    check_target,
    check_unit,
    check_weights_column,
    listed,
)
from dpregress.inputs.response import (
    check_exposure_column,
    check_features,
    check_number,
    check_response,
    type_of_array,
)
from dpregress.public import Categorical, Schema
from dpregress.rows import ArraySource, Design, Encoder, Source, SQLQuery, StreamSource, TableSource
from dpregress.rows.design.encoder import labels_of, present, readable, text_of, to_codes, to_numbers
from dpregress.rows.readers.base import Reader
from dpregress.rows.readers.files import in_memory, is_table, to_table
from dpregress.rows.sources import reader_of
from dpregress.rows.units import check_ids

#: How the types of pandas begin whose cells NumPy takes for objects.
_NO_NUMBERS = ("date", "time", "duration", "period", "interval")


class Inputs(NamedTuple):
    """What scikit-learn keeps of X: how many columns it has and, where it has any, their names.

    Columns of a table are found ``by_name`` in rows to predict for; those of X are to be the same, in the same order.
    """

    width: int
    names: NDArray[Any] | None
    by_name: bool = False

    @classmethod
    def of(cls, estimator: Any, X: Any) -> Self:
        """Those of X, by scikit-learn's own check; the estimator stays as it is."""
        probe = copy(estimator)
        validate_data(probe, X, skip_check_array=True)
        return cls(probe.n_features_in_, getattr(probe, "feature_names_in_", None))

    @classmethod
    def named(cls, names: Sequence[str]) -> Self:
        """Those of a table."""
        return cls(len(names), np.array(names, dtype=object), by_name=True)

    def keep(self, estimator: Any) -> None:
        """Set the attributes of a fitted estimator."""
        estimator.n_features_in_, estimator._by_name = self.width, self.by_name
        if self.names is not None:
            estimator.feature_names_in_ = self.names
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_


def training_source(
    X: Any, y: Any, *, target: str, schema: Schema | None, public: Sequence[str] | None
) -> tuple[Source, tuple[str, ...]]:
    """Rows with their responses, and the names of their columns; of an array these are the ``public`` ones.

    Raises
    ------
    InvalidInput
        For another shape than (n, d) and (n,), missing columns, or no response.
    """
    if y is None:
        raise InvalidInput("this estimator requires y to be passed, but the target y is None")
    check_number(target, type_of_array(y), schema)
    response = numbers(y)
    if is_table(X):
        table = to_table(held(X))
        encoder = Encoder.of(table.schema.names, None, schema)
        encoder.check_types(table.schema)
        if table.num_rows != len(response):
            raise InvalidInput(f"X has {table.num_rows} rows, y has {len(response)}")
        name = _unused(target, table.schema.names)
        source: Source = TableSource(table.append_column(name, [response]), Encoder(encoder.columns, name))
        features = tuple(table.schema.names)
    else:
        x = matrix(X)
        if len(x) != len(response):
            raise InvalidInput(f"X has {len(x)} rows, y has {len(response)}")
        source, features = ArraySource(x, response), array_names(x.shape[1], public)
        if public is None:  # public rows say which columns are numbers
            check_features(X, features, schema)
        for name, declared in () if schema is None else schema.columns.items():
            if name in features and declared.design(name) != (name,):
                raise InvalidInput(f"the schema makes indicators of column {name!r}: give a data frame, not an array")
    return source, features


def joined_table(X: Any, y: Any, target: str) -> pa.Table:
    """X and y as one table in memory, for estimators that read the response by the name of its column.

    Parameters
    ----------
    X : array-like or table of shape (n, d)
        The columns of an array are x0, x1, ..
    y : array-like of shape (n,)
    target : str
        What the response is called.

    Raises
    ------
    InvalidInput
        For another shape, no response, or a response that X holds already.
    """
    if y is None:
        raise InvalidInput("this estimator requires y to be passed, but the target y is None")
    table = to_table(held(X)) if is_table(X) else array_table(X)
    if target in table.schema.names:
        raise InvalidInput(f"target {target!r} is among the features: leave it out")
    response = y
    if hasattr(y, "to_frame"):  # a Series of pandas or Polars
        response = to_table(y.to_frame("y")).column(0)
    elif not isinstance(y, pa.Array | pa.ChunkedArray):
        response = _cells(_one_column(np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)))
    if table.num_rows != len(response):  # without the numbers: under add-or-remove neighbours they are private
        raise InvalidInput("X and y have different numbers of rows: give one response for each row")
    return table.append_column(target, response)


def array_table(X: Any, names: Sequence[str] | None = None) -> pa.Table:
    """An array, which may have no rows, as a table whose columns are called by these names or x0, x1, ..

    Raises
    ------
    InvalidInput
        For another shape than (n, d), or than the names are for.
    """
    values = np.asarray(X, dtype=object if isinstance(X, list | tuple) else None)
    if values.ndim != 2 or values.shape[1] < 1:
        raise InvalidInput(f"Expected 2D array with columns, got {values.ndim}D array instead: its shape is (n, d)")
    names = array_names(values.shape[1], None) if names is None else names
    if len(names) != values.shape[1]:
        raise InvalidInput(f"X has {values.shape[1]} features, but {len(names)} are expected")
    return pa.table({name: _cells(values[:, place]) for place, name in enumerate(names)})


def _cells(values: NDArray[Any]) -> pa.Array:
    """A column of an array for a schema to read. Objects become text, so that no cell decides how another is read."""
    if values.dtype.kind in "biuf":
        kind = np.dtype(np.float64) if values.dtype.kind == "f" else values.dtype.newbyteorder("=")
        return pa.array(np.ascontiguousarray(values, dtype=kind))
    if values.dtype.kind not in "OUST":
        raise InvalidInput(f"an array of type {values.dtype}: numbers, booleans or text are read")
    return pa.array([text_of(cell) for cell in values.tolist()], pa.large_string())


def held(X: Any) -> Any:
    """The same, if it is no query that is run when it is read: responses and ids go by the order of the rows."""
    if is_table(X) and not in_memory(X):
        raise InvalidInput(
            f"{type(X).__name__} may give its rows in any order, and y goes by it: use fit_table, or a table in memory"
        )
    return X


def read_once(X: Any) -> Any:
    """Rows to predict for, of which several columns are read in turn: a stream or query as a table in memory.

    A stream would have no rows the second time, and a query may give them in another order.
    """
    return to_table(X) if is_table(X) and not in_memory(X) else X


def training_table(
    source: Any,
    target: str,
    features: Sequence[str] | None,
    schema: Schema | None,
    classes: tuple[str, ...],
    unit: str | None = None,
    exposure: str | None = None,
    weights: str | None = None,
) -> tuple[Source, Encoder]:
    """Rows of files, a query or a table, and the encoder of their columns; nothing is read yet but types."""
    source = opened_table(source)
    features = feature_columns(source, target, features, unit, exposure, weights, schema)
    encoder = Encoder.of(features, target, schema, classes, exposure)
    check_classes(target, classes, schema)
    rows = encoded(source, encoder, unit, weights)
    check_response(rows.schema, target, classes, schema)
    check_exposure_column(rows.schema, exposure, schema)
    return rows, encoder


def feature_columns(
    table: Any,
    target: str,
    features: Sequence[str] | None,
    unit: Any = None,
    exposure: Any = None,
    weights: Any = None,
    schema: Schema | None = None,
) -> list[str]:
    """The columns of an opened table to regress on: those asked for, else all but target, unit and exposure.

    Raises
    ------
    InvalidInput
        For a column that the table does not have, or one that has two roles.
    """
    check_target(target)
    check_named(unit=unit, exposure=exposure, weights=weights)
    features = None if features is None else listed(features)
    where = table.name if isinstance(table, Reader) else "the table"
    names = column_names(table)
    others = [name for name in (target, unit, exposure, weights) if name is not None]
    chosen = [name for name in names if name not in others] if features is None else features
    check_unit(unit, chosen, (target,))
    if target in chosen:
        raise InvalidInput(f"target {target!r} is among the features: leave it out")
    check_exposure(exposure, chosen, (target,), unit)
    check_weights_column(weights, (*chosen, target, unit, exposure))
    check_default_target(target, names, where)
    return present([*chosen, *others], names, where, () if schema is None else schema.columns)[: len(chosen)]


def column_names(table: Any) -> list[str]:
    """The columns of an opened table."""
    return list((to_table(table) if in_memory(table) else table).schema.names)


def check_classes(target: str, classes: tuple[str, ...], schema: Schema | None) -> None:
    """Refuse classes that the schema's levels of the response do not hold: no row would have them."""
    column = None if schema is None else schema.column(target)
    if not isinstance(column, Categorical):
        return
    found = to_codes(pa.array(column.levels, pa.large_string()), classes)
    absent = [name for position, name in enumerate(classes) if position not in found]
    if absent:
        raise InvalidInput(
            f"{absent[0]!r} is a class of {target!r} but no level of it in the schema, which has "
            f"{', '.join(column.levels[:12])}: give the classes as they are spelt there"
        )


def encoded(
    source: Any, design: Design, unit: str | None, weights: str | None = None, schema: Schema | None = None
) -> TableSource | StreamSource:
    """Rows of files, a query or a table as this design has them, with units and weights beside it.

    Messages suggest columns that the schema declares in place of those that are not there.
    """
    needed = (*design.needed, *(name for name in (unit, weights) if name is not None))
    known = () if schema is None else schema.columns
    found: TableSource | StreamSource
    if in_memory(source):
        found = TableSource(to_table(source, needed, known=known), design)
    else:
        reader = opened_table(source)
        present(needed, reader.schema.names, reader.name, known)
        found = StreamSource(reader, design)
    design.check_types(found.schema)
    if unit is not None:
        check_ids(found.schema.field(unit).type, unit)
    if isinstance(found, StreamSource):
        found.reader.check(needed)
    return found


def opened_table(source: Any) -> Any:
    """A table in memory as it is; of all others the reader, which is opened once and then handed on.

    It warns of a query that selects rows: n is taken as public, and so would be how many rows it selects.
    """
    if in_memory(source):
        return source
    found = source.selects if isinstance(source, SQLQuery) else None
    if found is not None:
        warnings.warn(
            f"the query selects rows ({found}) and their exact number is published: if that depends on private cells, "
            "keep every row and leave the response of the others empty, as in CASE WHEN age >= 30 THEN cost END",
            SelectedRowsWarning,
            stacklevel=2,
        )
    return reader_of(source)


def design(X: Any, *, schema: Schema | None, features: Sequence[str]) -> Matrix:
    """Rows to predict for, of shape (m, d), in the order of the fitted design columns."""
    if is_table(X):
        table = to_table(X)
        encoder = Encoder.of([name for name in table.schema.names if feeds(name, features, schema)], None, schema)
        encoder.check_types(table.schema)
        names = encoder.features
        absent = [name for name in features if name not in names]
        if absent:
            of = None if schema is None else schema.indicates(absent[0])
            raise InvalidInput(f"no column {absent[0] if of is None else of!r} in the rows to predict for")
        return encoder.x(table)[:, [names.index(name) for name in features]]
    if X is None or isinstance(X, Mapping):
        raise InvalidInput(f"rows to predict for are one array, data frame or Arrow table, not a {type(X).__name__}")
    return matrix(X)


def feeds(column: str, features: Sequence[str], schema: Schema | None) -> bool:
    """Whether design columns of a model come from this column."""
    return any(column == name or (schema is not None and schema.indicates(name) == column) for name in features)


def array_names(width: int, public: Sequence[str] | None) -> tuple[str, ...]:
    """Names for the columns of an array: the public table's, or x0, x1, ..

    Raises
    ------
    InvalidInput
        When the public table has another number of columns.
    """
    if public is None:
        return tuple(f"x{i}" for i in range(width))
    if len(public) != width:
        raise InvalidInput(f"X has {width} columns, the public rows have {len(public)}: give the same ones")
    return tuple(public)


def matrix(X: Any) -> Matrix:
    """A float64 matrix; a cell that is not a number becomes NaN. Its shape and type are judged, its cells are not.

    Messages name shapes and types only: those of scikit-learn's own check print the array.

    Raises
    ------
    InvalidInput
        For another shape than (n, d) with n, d >= 1, complex or sparse data.
    """
    if isinstance(X, str | PathLike):
        raise InvalidInput("a text is not rows: give an array or a table; fit_table reads files")
    values = _numeric(X)
    if values.ndim != 2:
        raise InvalidInput(
            f"Expected 2D array, got {values.ndim}D array instead. Reshape your data: array.reshape(-1, 1) "
            "if it has a single feature, array.reshape(1, -1) if it is a single sample"
        )
    if values.shape[0] < 1:
        raise InvalidInput(f"Found array with 0 sample(s) (shape={values.shape}) while a minimum of 1 is required.")
    if values.shape[1] < 1:
        raise InvalidInput(f"Found array with 0 feature(s) (shape={values.shape}) while a minimum of 1 is required.")
    return values


def numbers(y: Any, name: str = "y") -> Vector:
    """A float64 vector; a cell that is not a number becomes NaN. A column of shape (n, 1) is taken, with a warning."""
    return _one_column(_numeric(y), name)


def _one_column(values: NDArray[Any], name: str = "y") -> NDArray[Any]:
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected: use ravel()",
            DataConversionWarning,
            stacklevel=6,
        )
        values = values.ravel()
    if values.ndim != 1:
        # not its shape: the number of rows is private where neighbours differ by one row
        got = f"{values.shape[1]} columns" if values.ndim == 2 else f"{values.ndim} dimensions"
        raise InvalidInput(f"{name} should be a 1d array, not one of {got}: give one number a row")
    return values


def _numeric(values: Any) -> NDArray[np.float64]:
    """Any array as float64. Lists become arrays of objects, so that no cell decides how another is read."""
    if issparse(values):
        raise InvalidInput("Sparse data was passed, but dense data is required: use toarray()")
    if isinstance(values, pa.Array | pa.ChunkedArray):
        if not readable(values.type):
            raise InvalidInput(f"an array of type {values.type} holds no numbers")
        return to_numbers(values)
    if str(getattr(values, "dtype", "")).startswith(_NO_NUMBERS):  # NumPy would get objects, and of these their text
        raise InvalidInput(f"an array of type {values.dtype} holds no numbers")
    array = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # a cell beyond float64 becomes infinite, which is no number; no word of it
            return np.ascontiguousarray(array, dtype=np.float64)
    if array.dtype.kind == "c":
        raise InvalidInput("Complex data not supported")
    if array.dtype.kind in "OUST":
        text = pa.array([text_of(cell) for cell in array.ravel().tolist()], pa.large_string())
        return to_numbers(text).reshape(array.shape)
    raise InvalidInput(f"an array of type {array.dtype} holds no numbers")


def response_name(y: Any, X: Any) -> str:
    """What a response is called: as its series, unless a column of X has that name, as a sum of columns may; else y."""
    columns = X.schema.names if isinstance(X, pa.Table | pa.RecordBatch) else getattr(X, "columns", [])
    taken = [str(name) for name in columns] if is_table(X) else []
    name = str(getattr(y, "name", None) or "y")
    return name if name not in taken else _unused("y", taken)


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "'"
    return name


def coded(y: Any, classes: tuple[str, ...]) -> Vector:
    """Positions of labels among the classes, of shape (n,); NaN for a label that is none of them."""
    array = _one_column(np.asarray(y, dtype=object if isinstance(y, list | tuple) else None))
    if array.dtype.kind == "c":
        raise InvalidInput("Complex data not supported")
    if array.dtype.kind not in "biufOUST":
        raise InvalidInput(f"labels of type {array.dtype}: they are numbers, booleans or text")
    return to_codes(labels_of(array), classes)
