"""Declarations of columns: numbers with bounds, classes with levels."""

from __future__ import annotations

import math
import numbers
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dpregress.errors import SchemaError, one_line, type_of
from dpregress.public.toml import toml_key

#: The largest magnitude of a bound; its inverse is the smallest width.
_LARGEST = 1e90


#: The largest number of codes; a column with more is a number, or an error.
_MOST_CODES = 1_000_000


#: The ending of the name of the design column that is 1 where a cell is missing.
MISSING = "missing"


#: The rule by which missing and undeclared cells form a separate level.
OWN_LEVEL = "level"


NumericRule = Literal["mean", "indicator"]


@dataclass(frozen=True)
class Numeric:
    """A numeric column, with public bounds where they are known.

    A cell that is missing, not finite or not a number is replaced by ``fill`` if that is given, otherwise by the public
    mean of the column, otherwise by the middle of its bounds. A cell beyond the bounds is kept, and its row is shrunk.

    Parameters
    ----------
    lower, upper : float or None
        Give both or neither. Take them from a data dictionary or from regulations, never from the private rows.
    unit : str
        The unit of measurement, for readers: "years", "USD".
    missing : {"mean", "indicator"}
        ``"indicator"`` adds the design column ``name=missing``, 1 where the cell is missing and 0 elsewhere.
    fill : float or None
        Replaces missing cells in place of the public mean, or of the middle of the bounds; within the bounds.

    Raises
    ------
    SchemaError
        If the bounds are not an interval, or a parameter has another type.
    """

    lower: float | None = None
    upper: float | None = None
    unit: str = ""
    missing: NumericRule = "mean"
    fill: float | None = None

    def __post_init__(self) -> None:
        for what, value in (("lower", self.lower), ("upper", self.upper), ("fill", self.fill)):
            _check_number(what, value)
        if not isinstance(self.unit, str) or not is_plain(self.unit):
            raise SchemaError('unit must be text without line breaks, such as "years"')
        if self.missing not in get_args(NumericRule):
            raise SchemaError(f'missing must be "mean" or "indicator" for a number, not {one_line(self.missing)}')
        if (self.lower is None) != (self.upper is None):
            raise SchemaError("give both bounds of a column, or neither")
        if self.lower is not None and self.upper is not None:
            finite = math.isfinite(self.lower) and math.isfinite(self.upper)
            if not (finite and self.lower < self.upper):
                raise SchemaError(
                    f"bounds {self.lower}, {self.upper} are not an interval: lower must be less than upper, and both "
                    "finite"
                )
            if max(abs(self.lower), abs(self.upper)) > _LARGEST or self.upper - self.lower < 1 / _LARGEST:
                raise SchemaError(f"bounds {self.lower}, {self.upper} are too large or too close: change the unit")
        if self.fill is not None:
            lower, upper = self.bounds or (-_LARGEST, _LARGEST)
            if not lower <= self.fill <= upper:
                raise SchemaError(f"fill {self.fill} must be a number within the bounds")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """``(lower, upper)``, or None."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    def design(self, name: str) -> tuple[str, ...]:
        """Names of the design columns of a column with this name."""
        return (name, f"{name}={MISSING}") if self.missing == "indicator" else (name,)

    @property
    def _entries(self) -> dict[str, Any]:
        rule = None if self.missing == "mean" else self.missing
        given = {
            "lower": self.lower,
            "upper": self.upper,
            "unit": self.unit or None,
            "missing": rule,
            "fill": self.fill,
        }
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class Categorical:
    """A categorical column with a declared list of levels; the first is the reference.

    Each level but the first becomes an indicator, the design column ``name=level``.

    Parameters
    ----------
    levels : tuple of str
        At least two, all different.
    missing : str or None
        The level assigned to a cell that is missing or holds an undeclared level: a declared level (None: the first),
        or ``"level"``: a separate last level, with the design column ``name=missing``.
    ordered : bool
        Whether the levels are steps of a number: marginals then take the column as a number.

    Raises
    ------
    SchemaError
        If the levels are not distinct texts, or ``missing`` names no declared level.
    """

    levels: tuple[str, ...]
    missing: str | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        levels: Any = self.levels  # users pass what they like
        if isinstance(levels, str) or not isinstance(levels, Sequence):
            raise SchemaError('levels must be a list of texts, such as ["no", "yes"]')
        object.__setattr__(self, "levels", tuple(self.levels))
        if not all(isinstance(level, str) and level and is_plain(level) for level in self.levels):
            raise SchemaError(
                "levels must be text that is not empty, without line breaks or control characters: "
                "write numbers as they stand in the table, such as '1'"
            )
        if len(self.levels) < 2 or len(set(self.levels)) != len(self.levels):
            raise SchemaError("a categorical column needs at least two different levels")
        if self.missing is not None and self.missing not in (*self.levels, OWN_LEVEL):
            raise SchemaError(f'missing must be one of the levels or "{OWN_LEVEL}", not {one_line(self.missing)}')
        if self.missing == OWN_LEVEL and {OWN_LEVEL, MISSING} & set(self.levels):
            raise SchemaError(
                f'missing = "{OWN_LEVEL}" is ambiguous with a level "{OWN_LEVEL}" or "{MISSING}": '
                f'give a declared level, such as missing = "{self.levels[-1]}"'
            )

    @property
    def all_levels(self) -> tuple[str, ...]:
        """The declared levels, followed by the separate level of missing cells if there is one."""
        return (*self.levels, MISSING) if self.missing == OWN_LEVEL else self.levels

    @property
    def stand_in(self) -> int:
        """Position in :attr:`all_levels` of the level assigned to missing and undeclared cells."""
        if self.missing is None:
            return 0
        return len(self.levels) if self.missing == OWN_LEVEL else self.levels.index(self.missing)

    def design(self, name: str) -> tuple[str, ...]:
        """Names of the design columns of a column with this name."""
        return tuple(f"{name}={level}" for level in self.all_levels[1:])

    @property
    def _entries(self) -> dict[str, Any]:
        rule = {} if self.missing is None else {"missing": self.missing}
        return {"levels": list(self.levels)} | rule | ({"ordered": True} if self.ordered else {})


Column = Numeric | Categorical


def is_plain(text: str) -> bool:
    """Whether a text can stand in one line of a file: no control characters, line breaks or lone surrogates."""
    return text.isprintable() or not {unicodedata.category(mark) for mark in text} & {"Cc", "Cs", "Zl", "Zp"}


def _check_number(what: str, value: Any) -> None:
    if value is None:
        return
    if type(value) is bool or not isinstance(value, numbers.Real):
        given = "text" if isinstance(value, str) else type_of(value)
        raise SchemaError(f"{what} must be a number, not {given}")
    try:
        if math.isnan(value):
            raise SchemaError(f"{what} must be a number, not nan")
    except OverflowError as error:  # an integer that no float can hold
        raise SchemaError(f"{what} is too large: change the unit") from error


def read_column(name: str, table: Any) -> Column:
    if not isinstance(table, dict):
        raise SchemaError(f"schema entry {name!r} is not a table: write [{toml_key(name)}] with lower, upper or levels")
    known = ("levels", "missing", "ordered") if "levels" in table else ("lower", "upper", "unit", "missing", "fill")
    unknown = [key for key in table if key not in known]
    if unknown:
        kind = "with levels" if "levels" in table else "of numbers"
        raise SchemaError(f"schema column {name!r}: a column {kind} takes {', '.join(known)}, not {unknown[0]!r}")
    try:
        if "levels" not in table:
            return Numeric(**table)
        levels = table["levels"]
        if not isinstance(levels, list):
            raise SchemaError('levels must be a list, such as ["no", "yes"]')
        rule = table.get("missing")
        ordered = table.get("ordered", False)
        if not isinstance(ordered, bool):
            raise SchemaError("ordered must be true or false")
        return Categorical(tuple(map(_level, levels)), None if rule is None else _level(rule), ordered)
    except SchemaError as error:
        raise SchemaError(f"schema column {name!r}: {error}") from error


def _level(value: Any) -> str:
    """A level as tables write it: booleans in lower case, whole numbers without a decimal point."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, numbers.Integral) and abs(int(value)) < 2**64:
        return str(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    raise SchemaError(f"levels must be texts or finite numbers, not {type_of(value)}")


def coded_column(name: str, codes: Any, *, ordered: bool) -> Column:
    try:
        if isinstance(codes, numbers.Integral):
            if not 2 <= int(codes) <= _MOST_CODES:
                raise SchemaError(f"the number of codes of a column must be between 2 and {_MOST_CODES:,}")
            codes = range(int(codes))
        if isinstance(codes, str) or not isinstance(codes, Iterable):
            raise SchemaError("give its codes as a list, or their number")
        values = list(codes)
        if ordered and all(isinstance(value, numbers.Integral) for value in values):
            values.sort()  # steps of a number, in whatever order they were listed
        return Categorical(tuple(_level(value) for value in values), ordered=ordered)
    except SchemaError as error:
        raise SchemaError(f"schema column {name!r}: {error}") from error
