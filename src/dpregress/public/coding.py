"""From a schema to the domain of coded tables: every column gets a public list of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpregress.coordinates import Attribute, Domain
from dpregress.coordinates.domain import LARGEST_WHOLE, whole_bins
from dpregress.errors import InvalidInput, UnboundedData, one_line
from dpregress.public.columns import Categorical, Numeric
from dpregress.public.schema import Schema

#: The largest number of levels; with more, tables would be mostly noise.
LARGEST = 1024
#: The largest number of cells of all pair tables together: half a gigabyte of counts.
_MOST_CELLS = 2**26


def domain_of(
    schema: Schema, names: Sequence[str] | None = None, *, bins: int = 32, count: str | None = None
) -> Domain:
    """The domain of these columns: declared levels, or equal bins between the public bounds of a number.

    Parameters
    ----------
    schema : Schema
    names : sequence of str, optional
        Default: all columns of the schema.
    bins : int
        The number of bins of a numeric column.
    count : str, optional
        A column of whole numbers: none of them lies in two bins, and a bin stands for the middle of those in it.

    Raises
    ------
    UnboundedData
        For a numeric column without bounds.
    InvalidInput
        For a column that is not declared, more than 1,024 levels, or more cells than fit in memory.
    """
    if type(bins) is bool or not (isinstance(bins, int | np.integer) and 2 <= bins <= LARGEST):
        raise InvalidInput(f"bins must be a whole number from 2 to {LARGEST}, not {one_line(bins)}")
    names = list(schema.columns) if names is None else list(names)
    if len(names) < 2:
        raise InvalidInput("marginals need at least two columns")
    domain = Domain(tuple(_attribute(name, schema, bins, name == count) for name in names))
    sizes = np.array(domain.sizes, dtype=np.float64)
    cells = (sizes.sum() ** 2 - (sizes**2).sum()) / 2
    if cells > _MOST_CELLS:
        raise InvalidInput(
            f"the pair tables of {len(names)} columns have {cells:,.0f} cells, more than {_MOST_CELLS:,}: "
            "choose columns, merge levels, or take fewer bins"
        )
    return domain


def _attribute(name: str, schema: Schema, bins: int, whole: bool) -> Attribute:
    column = schema.column(name)
    if column is None:
        raise InvalidInput(f"column {name!r} is not in the schema: declare its levels, or its bounds")
    if isinstance(column, Numeric):
        if column.bounds is None:
            raise UnboundedData(f"no public bounds for {name!r}: declare lower and upper in the schema")
        edges = column.bounds
        if whole and max(map(abs, edges)) <= LARGEST_WHOLE:
            first, last = math.ceil(edges[0]), math.floor(edges[1])
            if last <= first:
                raise InvalidInput(
                    f"the bounds of {name!r} hold fewer than two whole numbers, as counts are: widen them"
                )
            length, bins = whole_bins(last - first + 1, bins)
            edges = first - 0.5, first - 0.5 + length
        return Attribute.binned(name, edges, bins, fill=column.fill, limits=column.bounds)
    if len(column.levels) > LARGEST:
        raise InvalidInput(
            f"column {name!r} has {len(column.levels):,} levels, more than {LARGEST:,}: merge rare ones, "
            "declare it a number with bounds, or leave the column out"
        )
    if column.ordered and len(column.all_levels) > len(column.levels):
        raise InvalidInput(
            f"column {name!r} is a number and cannot have a separate level for missing cells: "
            f'name a level, such as missing = "{column.levels[0]}", or leave ordered out'
        )
    stand_in = None if column.missing is None else column.stand_in
    return Attribute(name, column.all_levels, _values(column) if column.ordered else (), stand_in=stand_in)


def _values(column: Categorical) -> tuple[float, ...]:
    """The numbers that the texts of ordered levels denote, if these increase; otherwise their positions."""
    try:
        values = tuple(float(level) for level in column.levels)
    except ValueError:
        values = ()
    increasing = bool(values) and all(map(math.isfinite, values)) and all(np.diff(values) > 0)
    return values if increasing else tuple(float(i) for i in range(len(column.levels)))
