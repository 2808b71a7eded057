"""What users pass to ``fit`` and ``predict``, as sources; private cells are mapped, never judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import check_array, column_or_1d

from dpregress.errors import InvalidInput
from dpregress.public import PublicMoments, Schema
from dpregress.releases import Matrix, Vector
from dpregress.rows import ArraySource, Encoder, Source, TableSource
from dpregress.rows.files import is_table, names_of, read, to_table


def training_source(
    X: Any, y: Any, *, target: str, schema: Schema | None, public: PublicMoments | None
) -> tuple[Source, tuple[str, ...]]:
    """Rows with their responses, and the names of their design columns.

    Raises
    ------
    InvalidInput
        For another shape than (n, d) and (n,), missing columns, or no response.
    """
    if y is None:
        raise InvalidInput("this estimator requires y to be passed, but the target y is None")
    response = numbers(y)
    if is_table(X):
        table = to_table(X)
        encoder = Encoder.of(table.schema.names, None, schema)
        encoder.check_types(table.schema)
        if table.num_rows != len(response):
            raise InvalidInput(f"X has {table.num_rows} rows, y has {len(response)}")
        name = _unused(target, table.schema.names)
        source: Source = TableSource(table.append_column(name, [response]), Encoder(encoder.columns, name))
        features = encoder.features
    else:
        x = matrix(X)
        if len(x) != len(response):
            raise InvalidInput(f"X has {len(x)} rows, y has {len(response)}")
        source, features = ArraySource(x, response), array_names(x.shape[1], public)
    if not features:
        raise InvalidInput("X has 0 feature(s), while a minimum of 1 is required")
    return source, features


def training_table(
    source: Any, target: str, features: Sequence[str] | None, schema: Schema | None
) -> tuple[pa.Table, Encoder]:
    """The needed columns of a file or table, and their encoder."""
    in_memory = is_table(source)
    names = to_table(source).schema.names if in_memory else names_of(source)
    if features is None:
        features = [name for name in names if name != target]
    if target in features:
        raise InvalidInput(f"target {target!r} is among the features: leave it out")
    encoder = Encoder.of(features, target, schema)
    table = to_table(source, encoder.needed) if in_memory else read(source, encoder.needed)
    encoder.check_types(table.schema)
    return table, encoder


def design(X: Any, *, schema: Schema | None, features: Sequence[str]) -> Matrix:
    """Rows to predict for, of shape (m, d), in the order of the fitted design columns."""
    if is_table(X):
        table = to_table(X)
        encoder = Encoder.of(table.schema.names, None, schema)
        encoder.check_types(table.schema)
        names = encoder.features
        absent = [name for name in features if name not in names]
        if absent:
            raise InvalidInput(f"no column {absent[0]!r} in the rows to predict for")
        return encoder.x(table)[:, [names.index(name) for name in features]]
    return matrix(X)


def array_names(width: int, public: PublicMoments | None) -> tuple[str, ...]:
    """Names for the columns of an array: the public table's where their number agrees."""
    if public is not None and len(public.names) == width:
        return public.names
    return tuple(f"x{i}" for i in range(width))


def matrix(X: ArrayLike) -> Matrix:
    """A float64 matrix; a cell of an object array that is not a number becomes NaN."""
    values = _array(X)
    if isinstance(values, np.ndarray) and values.dtype.kind in "OUS":
        values = numbers_of_objects(values)
    return np.asarray(check_array(values, dtype=np.float64, ensure_all_finite=False))


def numbers(y: Any) -> Vector:
    """A float64 vector; cells that are not numbers become NaN."""
    values = _array(y)
    if values.dtype.kind in "OUS":
        values = numbers_of_objects(values)
    return np.asarray(column_or_1d(values, dtype=np.float64, warn=True))


def _array(values: Any) -> Any:
    """An array; lists become arrays of objects, so that no cell decides how another is read. Sparse stays sparse."""
    if issparse(values):
        return values
    return np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)


def numbers_of_objects(values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Every cell as a number, or NaN where it is none."""
    flat = [_number(cell) for cell in values.ravel()]
    return np.array(flat, dtype=np.float64).reshape(values.shape)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "'"
    return name
