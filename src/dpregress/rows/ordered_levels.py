r"""Columns of levels, truth values and missing cells in a fixed order of operations, for databases.

A database sees a cell of text as the place of the level with the same spelling, byte by byte. A cell of numbers or
truth values is compared by value. Which values stand for a level is found by the encoder's own rule
(:func:`~dpregress.rows.design.encoder.to_codes`). Comparisons decide only on the numbers that are whitened, or on the
bin in which a row is counted, so that a row keeps its bounds however a database compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from dpregress.errors import InvalidInput
from dpregress.public import Categorical, Numeric
from dpregress.rows.design.encoder import TOLD_APART, is_number, is_text, to_codes, to_numbers, value_type
from dpregress.rows.ordered import FINITE
from dpregress.rows.row_kernel import MISSING, RowExpression, Stage, case, name, place_of_text, term, truth

#: Spellings of Arrow for floats that no comparison finds in every database.
_NO_NUMBERS = {"nan", "inf", "-inf"}
_NUMBER = Numeric()


@dataclass(frozen=True)
class PushedColumn:
    """A column of a table in a database.

    Parameters
    ----------
    name : str
    kind : pyarrow.DataType
        As its reader has it.
    levels : tuple of str
        Declared levels, or classes; empty for a column of numbers.
    declared : Numeric or Categorical
        What its design columns are; of no meaning for a response.
    """

    name: str
    kind: pa.DataType
    levels: tuple[str, ...] = ()
    declared: Numeric | Categorical = _NUMBER

    @classmethod
    def of(cls, name: str, kind: pa.DataType, declared: Numeric | Categorical) -> PushedColumn:
        """A column of features."""
        return cls(name, kind, declared.levels if isinstance(declared, Categorical) else (), declared)

    @property
    def text(self) -> bool:
        """Whether its cells are texts."""
        return is_text(value_type(self.kind))

    @property
    def uncast(self) -> bool:
        """Whether its cells are not selected as numbers."""
        return self.text or self._true

    @property
    def _true(self) -> bool:
        return bool(pa.types.is_boolean(value_type(self.kind)))

    @property
    def width(self) -> int:
        """The number of its design columns."""
        return len(self.declared.design(self.name))

    def check(self) -> None:
        """Refuse what a database cannot compute of this column.

        Raises
        ------
        InvalidInput
            For numbers in text, levels in bytes, and levels of numbers that floats cannot tell apart.
        """
        kind = value_type(self.kind)
        known = self._true or is_number(kind)
        if not self.levels and not known:
            raise InvalidInput(
                f"column {self.name!r} is not one of numbers alone: write it in the query as CAST(.. AS DOUBLE "
                "PRECISION), with CASE within for words, or give no engine"
            )
        if self.levels and not (known or (self.text and not of_bytes(kind))):
            raise InvalidInput(
                f"a database finds levels in text, numbers and truth values, and column {self.name!r} is of type "
                f"{kind}: compute its text in the query, or give no engine"
            )
        if self.levels and is_number(kind) and not all(map(_comparable, self.levels)):
            raise InvalidInput(
                f"a database compares column {self.name!r} with its levels as floats, and a level is not finite, or is "
                "2^53 or larger: cast the column to text in the query, or give no engine"
            )

    def shortened(self, most: int) -> PushedColumn:
        """The same with its first levels alone."""
        if not isinstance(self.declared, Categorical):
            return self
        return self.of(self.name, self.kind, Categorical(self.levels[:most]))

    def cell(self, column: str) -> RowExpression:
        """Its cell as a number: the place of a text among the levels, 1 or 0 for a truth value."""
        if self.text:
            return place_of_text(name(column), self.levels)
        return truth(name(column)) if self._true else name(column)

    def design(self, column: str) -> list[RowExpression]:
        """Its design columns, from :meth:`cell`; for a class or a level that is counted, its place."""
        if isinstance(self.declared, Categorical):
            return [self._indicator(column, at, self.declared.stand_in) for at in range(1, self.width + 1)]
        value = name(column)
        if self.levels:
            return [value if self.text else self._chosen(column, [(a, float(b)) for a, b in self.numbers], MISSING)]
        missing = case((value >= -FINITE) & (value <= FINITE), 0.0, 1.0)
        return [value, missing][: self.width]

    def _indicator(self, column: str, at: int, stand_in: int) -> RowExpression:
        """1 for the level at this place, which stands for missing and undeclared cells where it is ``stand_in``."""
        if at == stand_in:
            return self._chosen(column, [(value, 0.0) for value, other in self.numbers if other != at], 1.0)
        return self._chosen(column, [(value, 1.0) for value, other in self.numbers if other == at], 0.0)

    @staticmethod
    def _chosen(column: str, chosen: Sequence[tuple[float, float]], otherwise: RowExpression | float) -> RowExpression:
        """What is chosen for the value of a cell; a level that no cell can hold has no branch."""
        branches = (part for value, result in chosen for part in (name(column).equals(value), result))
        return case(*branches, otherwise) if chosen else term(otherwise)

    @property
    def trials(self) -> tuple[Any, ...]:
        """Cells of test rows, if it is not one of numbers: levels, also in another case and padded, and others."""
        if self._true:
            return True, False, None
        if not self.text:
            return (*(value for value, _ in self.numbers[:5]), None, 0.5) if self.levels else ()
        first = self.levels[0]
        found = (first, self.levels[-1], first.swapcase(), None, f"{first} ", *self.levels[1:4])
        return tuple(cell for cell in found if cell is None or "\0" not in cell)  # PostgreSQL holds no NUL

    @cached_property
    def numbers(self) -> tuple[tuple[float, int], ...]:
        """The values of :meth:`cell` that are levels, each with the place of its level."""
        if self.text:
            return tuple((float(at), at) for at in range(len(self.levels)))
        cells = pa.array([False, True]) if self._true else _cells(value_type(self.kind), self.levels)
        places = zip(to_numbers(cells).tolist(), to_codes(cells, self.levels).tolist(), strict=True)
        return tuple({value: int(at) for value, at in places if at >= 0}.items())


def opening(columns: Sequence[PushedColumn], target: PushedColumn | None) -> tuple[Stage, ...]:
    """From the columns of a table to numbers, and to design columns and places of classes; nothing for numbers."""
    response = {} if target is None else {"y": target}
    named = {f"c{i}": column for i, column in enumerate(columns)} | response
    cells = {alias: column.cell(alias) for alias, column in named.items()}
    made = [each for i, column in enumerate(columns) for each in column.design(f"c{i}")]
    design = {f"c{j}": each for j, each in enumerate(made)}
    design |= {alias: column.design(alias)[0] for alias, column in response.items()}
    return tuple(stage for stage in (cells, design) if any(each.operation != "name" for each in stage.values()))


def of_bytes(kind: pa.DataType) -> bool:
    """Whether a type of text holds bytes, whose characters are not known."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _number(level: str) -> float:
    return float(to_numbers(pa.array([level], pa.large_string()))[0])


def _comparable(level: str) -> bool:
    """Whether every cell of numbers that matches a level is a float that no other number is rounded to."""
    value = _number(level)
    return abs(value) < TOLD_APART if np.isfinite(value) else level not in _NO_NUMBERS


def _cells(kind: pa.DataType, levels: Sequence[str]) -> pa.Array:
    """The cells of a column of numbers that may be levels."""
    found = []
    for level in levels:
        value = _number(level)
        if np.isfinite(value):
            try:
                found.append(pa.array([_of_kind(level, value, kind)], kind))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                continue  # the type holds no such number
    return pa.concat_arrays(found) if found else pa.array([], kind)


def _of_kind(level: str, value: float, kind: pa.DataType) -> object:
    """A number as Arrow takes it for a type."""
    if pa.types.is_integer(kind):
        return int(value) if value.is_integer() else value
    if pa.types.is_decimal(kind):
        return Decimal(int(value)) if value.is_integer() else Decimal(level.strip(" \t")).normalize()
    return np.float16(value) if pa.types.is_float16(kind) else value
