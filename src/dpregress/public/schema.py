"""What is known of a table without looking at it: types, bounds and levels of its columns."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpregress.errors import SchemaError, UnboundedData

#: Bounds lie within it, and are further apart than its inverse.
_LARGEST = 1e90


@dataclass(frozen=True)
class Numeric:
    """A number, with public bounds where they are known.

    Parameters
    ----------
    lower, upper : float or None
        Both or neither. They come from a dictionary or the law, never from the private rows.
    unit : str
        For people: "years", "USD".
    """

    lower: float | None = None
    upper: float | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        if (self.lower is None) != (self.upper is None):
            raise SchemaError("give both bounds of a column, or neither")
        if self.lower is not None and self.upper is not None:
            finite = math.isfinite(self.lower) and math.isfinite(self.upper)
            if not (finite and self.lower < self.upper):
                raise SchemaError(f"bounds {self.lower}, {self.upper} are not an interval: give lower < upper, finite")
            if max(abs(self.lower), abs(self.upper)) > _LARGEST or self.upper - self.lower < 1 / _LARGEST:
                raise SchemaError(f"bounds {self.lower}, {self.upper} are beyond what can be computed: change the unit")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """``(lower, upper)``, or None."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)


@dataclass(frozen=True)
class Categorical:
    """One of a declared list of levels; the first is the reference.

    A cell that is missing or holds an undeclared level counts as the reference level.

    Parameters
    ----------
    levels : tuple of str
        At least two, all different.
    ordered : bool
        Whether the levels are steps of a number: marginals then take their position, scaled to [-1, 1].
    """

    levels: tuple[str, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        if not all(isinstance(level, str) and level.isprintable() for level in self.levels):
            raise SchemaError("levels must be printable text: write numbers as they stand in the table, such as '1'")
        if len(self.levels) < 2 or len(set(self.levels)) != len(self.levels):
            raise SchemaError("a categorical column needs at least two different levels")


Column = Numeric | Categorical


@dataclass(frozen=True)
class Schema:
    """Public knowledge of a table's columns.

    Parameters
    ----------
    columns : mapping of str to Numeric or Categorical

    Examples
    --------
    >>> from dpregress import Numeric, Schema
    >>> Schema({"age": Numeric(0, 110, "years")}).columns["age"].bounds
    (0, 110)
    """

    columns: Mapping[str, Column]

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read a schema file: one table per column, ``lower`` and ``upper``, or ``levels``.

        Raises
        ------
        SchemaError
            For a file that is not TOML, or a column that is neither.
        """
        try:
            with Path(path).open("rb") as file:
                tables = tomllib.load(file)
        except (ValueError, OSError, RecursionError) as error:  # TOML and Unicode errors are ValueErrors
            raise SchemaError(f"cannot read {path} as a schema: {error}") from error
        return cls({name: _column(name, table) for name, table in tables.items()})

    @classmethod
    def from_levels(cls, levels: Mapping[str, Sequence[int | str]], numeric: Sequence[str] = ()) -> Schema:
        """A schema of coded columns: each with its levels, those in ``numeric`` ordered.

        Parameters
        ----------
        levels : mapping of str to sequence of int or str
            Of every column, as they stand in the table.
        numeric : sequence of str
            Columns whose levels are steps of a number.

        Raises
        ------
        SchemaError
            For a column in ``numeric`` without levels.

        Examples
        --------
        >>> Schema.from_levels({"age": range(3), "sex": ["f", "m"]}, numeric=["age"]).columns["age"]
        Categorical(levels=('0', '1', '2'), ordered=True)
        """
        unknown = [name for name in numeric if name not in levels]
        if unknown:
            raise SchemaError(f"numeric column {unknown[0]!r} has no levels: add it to the mapping")
        return cls(
            {
                name: Categorical(tuple(str(level) for level in found), ordered=name in numeric)
                for name, found in levels.items()
            }
        )

    def column(self, name: str) -> Column | None:
        """What is declared of a column, or None."""
        return self.columns.get(name)

    def bounds_of(self, name: str) -> tuple[float, float]:
        """The bounds of a design column: declared for a number, [0, 1] for the indicator of a level.

        Raises
        ------
        UnboundedData
            When there are none.
        """
        column = self.columns.get(name)
        if isinstance(column, Numeric) and column.bounds is not None:
            return column.bounds
        if column is None and self._is_indicator(name):
            return 0.0, 1.0
        raise UnboundedData(f"no public bounds for {name!r}: declare lower and upper in the schema")

    def bounds_all(self, names: Iterable[str]) -> bool:
        """Whether every one of these design columns has bounds."""
        try:
            return all(self.bounds_of(name) for name in names)
        except UnboundedData:
            return False

    def _is_indicator(self, name: str) -> bool:
        return any(
            name == f"{column}={level}"
            for column, declared in self.columns.items()
            if isinstance(declared, Categorical)
            for level in declared.levels
        )


def _column(name: str, table: Any) -> Column:
    if not isinstance(table, dict):
        raise SchemaError(f"schema entry {name!r} is not a table: write [{name}] with lower, upper or levels")
    unknown = set(table) - {"lower", "upper", "unit", "levels", "ordered"}
    if unknown or ("levels" in table and set(table) - {"levels", "ordered"}):
        raise SchemaError(f"schema column {name!r} takes lower, upper and unit, or levels and ordered")
    if "levels" in table:
        levels = table["levels"]
        if not isinstance(levels, list) or not all(isinstance(level, str | int | float) for level in levels):
            raise SchemaError(f"levels of {name!r} must be a list of texts or numbers")
        # a truth value is written as tables write it in text
        texts = tuple(str(level).lower() if isinstance(level, bool) else str(level) for level in levels)
        return Categorical(texts, ordered=bool(table.get("ordered", False)))
    try:
        lower, upper = (None if table.get(key) is None else float(table[key]) for key in ("lower", "upper"))
        unit = table.get("unit", "")
        if not isinstance(unit, str):
            raise SchemaError(f"unit of {name!r} must be text")
        return Numeric(lower, upper, unit)
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"schema column {name!r}: {error}") from error
