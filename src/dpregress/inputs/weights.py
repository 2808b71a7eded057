"""Survey weights of private rows, with a public bound."""

from __future__ import annotations

from typing import Any

from dpregress.errors import InvalidInput, UnboundedData
from dpregress.inputs.response import check_weights
from dpregress.inputs.tables import numbers
from dpregress.public import Numeric, Schema
from dpregress.rows import Source, StreamSource, TableSource, WeightedSource


def weight_bound(name: str, schema: Schema | None) -> float:
    """The public upper bound of the weights, which the schema declares.

    Raises
    ------
    UnboundedData
    """
    column = None if schema is None else schema.column(name)
    bounds = column.bounds if isinstance(column, Numeric) else None
    if bounds is None or not 0 < bounds[1] < 1e100:
        raise UnboundedData(
            f"weights {name!r} need a public bound: declare an upper bound of the column in the schema, such as "
            f"Schema({{{name!r}: Numeric(0, 5)}}); larger weights count as that"
        )
    return float(bounds[1])


def weighted(source: Source, weights: Any, name: str, schema: Schema | None, table: Source) -> Source:
    """The source with the weights of its rows.

    Parameters
    ----------
    source : Source
    weights : array-like of shape (n,) or str
        A name is that of a column of the table.
    name : str
        Under which the schema declares the bound.
    schema : Schema or None
    table : Source
        The rows of files or of a table in memory, whose column is read.

    Raises
    ------
    InvalidInput
        For another number of weights than rows, and for a column of a type that holds no numbers.
        Text that the schema declares a number is read as one.
    UnboundedData
    """
    bound = weight_bound(name, schema)
    if isinstance(weights, str):
        if not isinstance(table, TableSource | StreamSource):
            raise InvalidInput(f"weights={weights!r} is a name: fit takes a weight for each row, fit_table the name")
        check_weights(weights, table.schema)
        return WeightedSource(source, table.column(weights), bound)
    found = numbers(weights, "weights")
    if len(found) != source.n:
        raise InvalidInput(f"X has {source.n} rows, weights has {len(found)}")
    return WeightedSource(source, found, bound)
