r"""The coding of rows in a fixed order of operations, for databases that count them.

The code of a cell is that of :class:`~dpregress.rows.codes.LevelRows` exactly, because comparisons decide on it. Only
columns of numbers can be coded, whose levels are whole numbers or bins: databases compare texts by rules of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from dpregress.coordinates import Attribute, Domain
from dpregress.coordinates.whitened import FARTHEST
from dpregress.errors import InvalidInput
from dpregress.rows.codes import declared
from dpregress.rows.design.encoder import whole_numbers
from dpregress.rows.ordered import FINITE, cell, check_range
from dpregress.rows.row_kernel import Program, RowExpression, Stage, added, binned, case, name, term


def check_coded(domain: Domain, schema: pa.Schema) -> None:
    """Refuse columns that a database cannot code.

    Raises
    ------
    InvalidInput
        For columns of text, levels that are no whole numbers, and bounds of bins that lie far out.
    """
    for attribute in domain.attributes:
        kind = schema.field(attribute.name).type
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not number or not (attribute.edges or whole_numbers(declared(attribute)) is not None):
            raise InvalidInput(
                f"a database codes numbers only, and column {attribute.name!r} or its levels are none: compute whole "
                "numbers in the query, as CAST(CASE .. END AS INTEGER), or give no engine"
            )
        if attribute.edges:
            lower, upper = attribute.edges
            check_range(upper - lower, *(abs(edge) for edge in attribute.edges if edge))


def _levels(column: str, levels: Sequence[int], unknown: int) -> RowExpression:
    """The place of a level, or that of cells without one."""
    places = (part for place, level in enumerate(levels) for part in (name(column).equals(float(level)), place))
    return case(*places, unknown)


def _bin(column: str, attribute: Attribute) -> RowExpression:
    """The bin of a number; those beyond the bounds are in the nearest one."""
    lower, upper = attribute.edges
    place = (name(f"b{column}") - lower) / (upper - lower) * float(attribute.size)
    inside = (name(column) >= -FINITE) & (name(column) <= FINITE)
    return case(inside, binned(place, [float(edge) for edge in range(1, attribute.size)]), attribute.unknown)


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
        levels = () if attribute.edges else whole_numbers(declared(attribute))
        assert levels is not None
        known = [int(level) for level in levels]
        codes[f"h{j}"] = _bin(column, attribute) if attribute.edges else _levels(column, known, attribute.unknown)
    return cells, codes


def counting(domain: Domain, joint: Sequence[int]) -> Program:
    """Counts of the joint table of some attributes, flattened row by row.

    Parameters
    ----------
    domain : Domain
        Accepted by :func:`check_coded`.
    joint : sequence of int
        Positions of attributes.
    """
    size, terms = 1, []
    for j in reversed(joint):
        terms.append(name(f"h{j}") * size if size > 1 else name(f"h{j}"))
        size *= domain.sizes[j]
    return Program.of((*_codes(domain, joint), {"h": added(terms)}), ("h",), bins=size)
