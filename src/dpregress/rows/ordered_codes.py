r"""The coding of rows in a fixed order of operations, for databases that count them.

The code of a cell is that of :class:`~dpregress.rows.codes.LevelRows` exactly, because comparisons decide on it. Levels
are found as :mod:`~dpregress.rows.ordered_levels` says: in text by their spelling alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from dpregress.coordinates import Attribute, Domain
from dpregress.coordinates.whitened import FARTHEST
from dpregress.rows.codes import declared
from dpregress.rows.design.encoder import is_number, value_type
from dpregress.rows.ordered import FINITE, cell, check_range
from dpregress.rows.ordered_levels import PushedColumn
from dpregress.rows.row_kernel import Program, RowExpression, Stage, added, binned, case, name, term


def coded_columns(domain: Domain, schema: pa.Schema) -> tuple[PushedColumn, ...]:
    """The columns of a domain in a table, refused where a database cannot code them.

    Raises
    ------
    InvalidInput
        For numbers in text, levels in bytes, and bounds of bins that lie far out.
    """
    columns = []
    for attribute in domain.attributes:
        levels, kind = () if attribute.edges else declared(attribute), schema.field(attribute.name).type
        if is_number(value_type(kind)) and levels == tuple(map(str, range(len(levels)))):
            levels = ()  # numbers that are codes already
        columns.append(PushedColumn(attribute.name, kind, levels))
        columns[-1].check()
        if attribute.edges:
            lower, upper = attribute.edges
            check_range(upper - lower, *(abs(edge) for edge in attribute.edges if edge))
    return tuple(columns)


def _level(column: str, attribute: Attribute) -> RowExpression:
    """The code of a place, as one of a few constants, or that of cells without a level."""
    places = range(len(declared(attribute)))
    return case(*(part for at in places for part in (name(column).equals(float(at)), at)), attribute.unknown)


def _bin(column: str, attribute: Attribute) -> RowExpression:
    """The bin of a number; those beyond the bounds are in the nearest one."""
    (lower, upper), bins = attribute.ends, len(declared(attribute))
    place = (name(f"b{column}") - lower) / (upper - lower) * float(bins)
    inside = (name(column) >= -FINITE) & (name(column) <= FINITE)
    return case(inside, binned(place, [float(edge) for edge in range(1, bins)]), attribute.unknown)


def _reach(attribute: Attribute) -> float:
    """Far beyond all bins."""
    return math.ldexp(FARTHEST, math.frexp(max(map(abs, attribute.edges), default=1.0))[1])


def _codes(domain: Domain, places: Sequence[int]) -> tuple[Stage, Stage]:
    """The codes ``h0``, ``h1``, .. of some attributes."""
    cells: dict[str, RowExpression] = {"k": term(1)}
    codes: dict[str, RowExpression] = {}
    for j in places:
        attribute, column = domain.attributes[j], f"c{j}"
        cells |= {column: name(column), f"b{column}": cell(column, 0.0, _reach(attribute))}
        codes[f"h{j}"] = _bin(column, attribute) if attribute.edges else _level(column, attribute)
    return cells, codes


def counting(domain: Domain, joint: Sequence[int]) -> Program:
    """Counts of the joint table of some attributes, flattened row by row; cells are places of levels, or numbers.

    Parameters
    ----------
    domain : Domain
        Its columns are accepted by :func:`coded_columns`.
    joint : sequence of int
        Positions of attributes.
    """
    size, terms = 1, []
    for j in reversed(joint):
        terms.append(name(f"h{j}") * size if size > 1 else name(f"h{j}"))
        size *= domain.sizes[j]
    return Program.of((*_codes(domain, joint), {"h": added(terms)}), ("h",), bins=size)
