"""Data frames of pandas as Arrow tables: typed columns as they are, anything else cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpregress.rows.design.encoder import text_of, untyped


def from_pandas(data: Any, columns: Sequence[str] | None) -> pa.Table:
    """Typed columns as they are; a column of objects cell by cell, so that no cell decides how another is read."""
    fields, arrays = [], []
    for position, label in enumerate(data.columns):
        if columns is None or str(label) in columns:
            series = data.iloc[:, position]
            arrays.append(from_series(series))
            kind = arrays[-1].type
            fields.append(untyped(str(label), kind) if series.dtype == object else pa.field(str(label), kind))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def from_series(series: Any) -> pa.Array:
    """A typed column as it is; objects, texts and categories one by one, whatever they hold."""
    if str(series.dtype) == "category":
        codes = pa.array(series.cat.codes.tolist(), pa.int64())
        codes = pc.if_else(pc.less(codes, 0), None, codes)
        categories = series.cat.categories
        if categories.dtype.kind == "f":  # a type that ids may not have: it stays in sight
            return pc.take(pa.array(categories.to_numpy(dtype="float64", na_value=float("nan")), pa.float64()), codes)
        return pc.take(pa.array([text_of(level) for level in categories.tolist()], pa.large_string()), codes)
    if series.dtype == object or str(series.dtype).startswith("str"):
        return pa.array([text_of(cell) for cell in series.tolist()], pa.large_string())
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        if series.dtype.kind == "f":  # sparse, say: it stays in sight
            return pa.array(series.astype("float64").to_numpy())
        return pa.array([text_of(cell) for cell in series.tolist()], pa.large_string())


def is_pandas(data: Any) -> bool:
    """Whether this is a data frame of pandas, or of a library that builds on it, such as GeoPandas."""
    kinds = type(data).__mro__
    return any(kind.__module__.split(".", 1)[0] == "pandas" and kind.__name__ == "DataFrame" for kind in kinds)
