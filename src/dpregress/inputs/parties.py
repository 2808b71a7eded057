"""What users pass for several parties: their tables, and parameters, by the names of the parties."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from dpregress.coordinates import Matrix
from dpregress.errors import InvalidInput, did_you_mean, one_line, type_of
from dpregress.inputs.indices import check_aligned
from dpregress.inputs.names import listed
from dpregress.inputs.response import check_number, check_response, type_of_array
from dpregress.inputs.tables import joined_table, matrix, numbers
from dpregress.public import Schema
from dpregress.rows import Source, StreamSource, TableSource
from dpregress.rows.readers.files import is_table, to_table

#: The parties' tables: by name, or in order.
Parties = Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True, repr=False)
class LabelledArray:
    """An array whose last column is the response, under this name."""

    columns: Matrix
    target: str


def named_parties(parties: Parties) -> dict[str, Any]:
    """Parties by their names; those without are called party0, party1, ..

    Raises
    ------
    InvalidInput
        For anything but a mapping, a list or a tuple.
    """
    if isinstance(parties, Mapping):
        return {str(name): party for name, party in parties.items()}
    if not isinstance(parties, list | tuple):
        raise InvalidInput("give at least two parties, as a list of tables or a mapping of party name to table")
    return {f"party{place}": party for place, party in enumerate(parties)}


def by_party(parameter: str, given: Any, parties: Collection[str], kind: type[Any]) -> Mapping[str, Any]:
    """What a parameter states about parties by their names.

    Raises
    ------
    InvalidInput
        For anything but a mapping to values of this kind, or a party that is not there.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{parameter}= takes a mapping of party name to {kind.__name__}, not {type_of(given)}")
    for name, value in given.items():
        if name not in parties:
            raise InvalidInput(f"{parameter}= names {name!r}, which is none of the parties {', '.join(parties)}")
        if not isinstance(value, kind):
            raise InvalidInput(f"{parameter}= of {name} takes a {kind.__name__}, not {type_of(value)}")
    return given


def joined_parties(X: Any, features: Sequence[str], columns: Sequence[str]) -> Any:
    """Rows to predict for in one table or array; those of several parties are set side by side.

    Parameters
    ----------
    X : array-like, table, or mapping or sequence of tables or of arrays of shape (m, d_j)
        A sequence of anything else is the rows of an array.
    features : sequence of str
        Of the model; columns of arrays have their order.
    columns : sequence of str
        Of the joint table.

    Raises
    ------
    InvalidInput
        For different numbers of rows, rows in another order by their index, a column that two parties hold, tables
        beside arrays, or arrays of a model whose features are not in the order of the parties.
    """
    several = isinstance(X, Mapping) or (isinstance(X, list | tuple) and all(map(_is_party, X)))
    if is_table(X) or not several or not X:
        return X
    parties = list(named_parties(X).values())
    tables = [is_table(party) for party in parties]
    if not any(tables):
        places = [list(columns).index(name) for name in features]
        if places != sorted(places):
            raise InvalidInput("the features are not in the order of the parties: give tables, or one array")
        arrays = [matrix(party) for party in parties]
        check_row_counts([len(each) for each in arrays])
        return np.column_stack(arrays)
    if not all(tables):
        raise InvalidInput("give tables of all parties, or arrays of all")
    found = [to_table(party) for party in parties]
    check_row_counts([each.num_rows for each in found])
    _check_order(parties)
    names = [name for each in found for name in each.schema.names]
    check_different(names)
    return pa.Table.from_arrays([column for each in found for column in each.columns], names=names)


def _is_party(value: Any) -> bool:
    """Whether this is a table or an array of two dimensions, not a row."""
    return is_table(value) or (isinstance(value, np.ndarray) and value.ndim == 2)


def check_row_counts(counts: Sequence[int]) -> None:
    """Refuse parties with different numbers of rows.

    Raises
    ------
    InvalidInput
    """
    if len(set(counts)) != 1:
        told = ", ".join(map(str, counts))
        raise InvalidInput(f"parties hold {told} rows: align them on the same people first")


def _check_order(parties: Sequence[Any]) -> None:
    """Refuse rows that have the same labels in another order, where tables have an index."""
    indexes: list[Any] = [getattr(party, "index", None) for party in parties]
    indexes = [index for index in indexes if hasattr(index, "equals")]
    for other in indexes[1:]:
        if not indexes[0].equals(other) and set(indexes[0]) == set(other):
            raise InvalidInput("the parties' rows have the same index in another order: give them in one order")


def check_different(names: Sequence[str]) -> None:
    """Refuse a column that two parties hold.

    Raises
    ------
    InvalidInput
    """
    if len(set(names)) != len(names):
        repeated = next(name for name in names if list(names).count(name) > 1)
        raise InvalidInput(f"two parties hold a column {repeated!r}: rename one")


def with_response(party: Any, y: ArrayLike, target: str) -> Any:
    """A party's columns with the response as one more.

    Raises
    ------
    InvalidInput
        For another number of rows or another index, or a response of an array that is text.
    """
    check_aligned(party, y=y)
    if is_table(party):
        return joined_table(party, y, target)
    check_number(target, type_of_array(y), None)
    x, response = matrix(party), numbers(y)
    if len(x) != len(response):
        raise InvalidInput(f"X has {len(x)} rows, y has {len(response)}")
    return LabelledArray(np.column_stack([x, response]), target)


def party_columns(
    names: Sequence[str], target: int | str, features: Sequence[int | str] | None
) -> tuple[str, list[str]]:
    """Names of the response and of the features, by default all others.

    Raises
    ------
    InvalidInput
        For columns that are not there.
    """
    response = _column_named(names, target)
    if features is None:
        return response, [name for name in names if name != response]
    return response, [_column_named(names, feature) for feature in listed(features, places=True)]


def _column_named(names: Sequence[str], column: int | str) -> str:
    """The name of a column given by place or name."""
    if isinstance(column, str):
        if column not in names:
            held = f"the parties hold {', '.join(names)}"
            raise InvalidInput(f"no column {column!r}: {did_you_mean(column, names, held)}")
        return column
    if isinstance(column, bool) or not isinstance(column, int | np.integer):
        raise InvalidInput(f"a column is given by its name or its place, not by {one_line(column)}")
    if not -len(names) <= column < len(names):
        raise InvalidInput(f"no column {column}: the parties hold {len(names)}")
    return names[column]


def check_party_columns(names: Sequence[str], target: str, features: Sequence[str]) -> None:
    """Refuse columns that cannot be regressed.

    Raises
    ------
    InvalidInput
    """
    check_different(names)
    if not features or target in features or len(set(features)) != len(features):
        raise InvalidInput("features are different columns, at least one, and not the target")


def check_party_response(source: Source, target: str, schema: Schema | None) -> None:
    """Refuse a response of text, where a party holds it in a table: all its cells would count as missing.

    Raises
    ------
    InvalidInput
    """
    if isinstance(source, TableSource | StreamSource) and target in source.schema.names:
        check_response(source.schema, target, (), schema)
