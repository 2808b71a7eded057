"""Public knowledge about a table: types, bounds, levels and missing-value rules of its columns."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpregress.display import html_table, shown
from dpregress.errors import SchemaError, UnboundedData, abridged, reason
from dpregress.public.columns import Categorical, Column, Numeric, coded_column, is_plain, read_column
from dpregress.public.toml import toml_key, toml_value


@dataclass(frozen=True)
class Schema:
    """Public knowledge about a table's columns.

    Parameters
    ----------
    columns : mapping of str to Numeric or Categorical

    Raises
    ------
    SchemaError
        If a column is neither, or if two columns would have design columns with the same name.

    Examples
    --------
    >>> from dpregress import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 110, "years"), "smoker": Categorical(("no", "yes"), missing="level")})
    >>> schema.columns["age"].bounds
    (0, 110)
    >>> print(schema.to_toml())
    [age]
    lower = 0
    upper = 110
    unit = "years"
    <BLANKLINE>
    [smoker]
    levels = ["no", "yes"]
    missing = "level"
    <BLANKLINE>
    """

    columns: Mapping[str, Column]
    _indicators: Mapping[str, tuple[str, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise SchemaError('a schema maps names to columns: Schema({"age": Numeric(0, 110)})')
        made: set[str] = set()
        for name, column in self.columns.items():
            if not isinstance(name, str) or not is_plain(name):
                raise SchemaError(
                    f"the name of a column must be text without line breaks or control characters, not {name!r}"
                )
            if not isinstance(column, Numeric | Categorical):
                raise SchemaError(
                    f"column {name!r} of a schema must be a Numeric or a Categorical, not {type(column).__name__}"
                )
            for design in column.design(name):
                if design in made:
                    raise SchemaError(
                        f"column {name!r} would give the design column {design!r} twice: rename the column"
                    )
                made.add(design)
        object.__setattr__(self, "_indicators", _indicators(self.columns))

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read a schema file: one table per column, a number (``lower``, ``upper``, ..) or ``levels``.

        Raises
        ------
        SchemaError
            For a file that is not TOML, or a column that is neither.
        """
        try:
            text = Path(path).read_bytes().decode()
        except (ValueError, OSError, TypeError) as error:  # Unicode errors are ValueErrors
            raise SchemaError(f"cannot read {shown(path)} as a schema: {reason(error)}") from error
        return cls.from_text(text, shown(path))

    @classmethod
    def from_text(cls, text: str, where: str = "this text") -> Schema:
        """Read what :meth:`to_toml` wrote; messages call its origin ``where``.

        Raises
        ------
        SchemaError
        """
        try:
            tables = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # TOML errors are ValueErrors
            raise SchemaError(f"cannot read {where} as a schema: {reason(error)}") from error
        return cls({name: read_column(name, table) for name, table in tables.items()})

    @classmethod
    def from_levels(cls, levels: Mapping[str, int | Sequence[int | str]], numeric: Iterable[str] = ()) -> Schema:
        """The schema of a table of codes: every column with its levels, those in ``numeric`` ordered.

        Parameters
        ----------
        levels : mapping of str to int or sequence
            The codes of a column as they stand in the table, or their number: ``3`` means ``0, 1, 2``.
        numeric : iterable of str
            Columns whose levels are steps of a number.

        Raises
        ------
        SchemaError
            If a numeric column is not among the levels, or the codes are not a list.

        Examples
        --------
        >>> from dpregress import Schema
        >>> schema = Schema.from_levels({"sex": ["f", "m"], "age": 3}, numeric=["age"])
        >>> schema.columns["age"]
        Categorical(levels=('0', '1', '2'), missing=None, ordered=True)
        """
        if isinstance(numeric, str):
            raise SchemaError(f"numeric takes a list of column names: [{numeric!r}]")
        steps = set(numeric)
        absent = sorted(steps - set(levels))
        if absent:
            raise SchemaError(f"numeric column {absent[0]!r} is not among the levels: give its codes there")
        return cls({name: coded_column(name, codes, ordered=name in steps) for name, codes in levels.items()})

    def to_toml(self) -> str:
        """The text that :meth:`from_toml` reads back as this schema."""
        return "\n".join(
            f"[{toml_key(name)}]\n"
            + "".join(f"{key} = {toml_value(value)}\n" for key, value in column._entries.items())
            for name, column in self.columns.items()
        )

    def _repr_html_(self) -> str:
        rows = [
            [name, type(column).__name__, *(f"{key}: {abridged(value)}" for key, value in column._entries.items())]
            for name, column in self.columns.items()
        ]
        rows = [[*row[:2], "; ".join(row[2:])] for row in rows]
        return html_table(("column", "kind", "declared"), rows, f"{len(rows)} declared columns")

    def save(self, path: str | Path) -> None:
        """Write :meth:`to_toml` to a file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def of_columns(self, names: Iterable[str]) -> Schema:
        """The schema restricted to those of these columns that it declares."""
        return Schema({name: self.columns[name] for name in names if name in self.columns})

    def column(self, name: str) -> Column | None:
        """The declaration of a column, or None."""
        return self.columns.get(name)

    def bounds_of(self, name: str) -> tuple[float, float]:
        """The bounds of a design column: the declared ones for a number, [0, 1] for an indicator.

        Raises
        ------
        UnboundedData
            If it has none.
        """
        column = self.columns.get(name)
        if isinstance(column, Numeric) and column.bounds is not None:
            return column.bounds
        if name in self._indicators:
            return 0.0, 1.0
        raise UnboundedData(f"no public bounds for {name!r}: declare lower and upper in the schema")

    def scale_of(self, name: str) -> tuple[float, float]:
        r"""Centre and scale of a design column.

        For a number, the middle and half the width of its range. For the indicator of one of L levels, ``1/L`` and
        ``1/sqrt L``: if the levels are equally frequent, the second moment is then close to the identity, and every
        level is as close to the centre as if each indicator had the range ``[-1, 1]``.

        Raises
        ------
        UnboundedData
            If it has no bounds.
        """
        if name in self._indicators:
            _, levels = self._indicators[name]
            return 1 / levels, 1 / math.sqrt(levels)
        lower, upper = self.bounds_of(name)
        return lower / 2 + upper / 2, upper / 2 - lower / 2

    def fill_of(self, name: str) -> float | None:
        """The declared replacement for missing cells of a number, or None."""
        column = self.columns.get(name)
        return column.fill if isinstance(column, Numeric) else None

    def bounds_all(self, names: Iterable[str]) -> bool:
        """Whether every one of these design columns has bounds."""
        try:
            return all(self.bounds_of(name) for name in names)
        except UnboundedData:
            return False

    def indicator_places(self, names: Sequence[str]) -> dict[str, list[int]]:
        """Places among design columns of the indicators of each categorical column."""
        found: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            of = self.indicates(name)
            if of is not None:
                found.setdefault(of, []).append(place)
        return found

    def indicates(self, name: str) -> str | None:
        """What this design column indicates, or None. Mutually exclusive indicators have the same value."""
        return self._indicators.get(name, (None, 0))[0]

    def is_indicator(self, name: str) -> bool:
        """Whether this design column indicates something, or is a number between 0 and 1."""
        column = self.columns.get(name)
        return name in self._indicators or (isinstance(column, Numeric) and column.bounds == (0, 1))


def _indicators(columns: Mapping[str, Column]) -> dict[str, tuple[str, int]]:
    """Of each indicator, of what, and one of how many levels; a number's missing cells are one of two."""
    found: dict[str, tuple[str, int]] = {}
    for name, column in columns.items():
        if isinstance(column, Categorical):
            found |= dict.fromkeys(column.design(name), (name, len(column.all_levels)))
        else:
            found |= {design: (design, 2) for design in column.design(name)[1:]}
    return found
