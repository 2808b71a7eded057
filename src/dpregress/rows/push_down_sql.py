r"""Programs of rows as SQL statements, which give sums of integers alone.

Each stage of a :class:`~dpregress.rows.row_kernel.Program` is a subquery of the next: cells, whitened rows, norms,
weights, integers, and the check of the integers against their bounds. The last query adds up. Every part is written in
one dialect and translated by sqlglot. The rows themselves are a query in the dialect of the database, which is not
translated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa

from dpregress.coordinates.exact import Integers
from dpregress.errors import InvalidInput
from dpregress.rows.design.encoder import is_text
from dpregress.rows.push_down_text import id_text, length_of_id, level_case, text_literal, unit_and_digest
from dpregress.rows.readers.base import quoted, unused
from dpregress.rows.readers.sqlite import NUMBER
from dpregress.rows.row_kernel import LOW_BITS, ROUNDER, Program, RowExpression, Stage, UnitCap

#: Dialects in which statements can be written.
DIALECTS = ("duckdb", "postgres", "sqlite", "snowflake", "bigquery", "databricks")
#: Those whose planner would put a subquery into the next, and compute it again for every mention.
_FENCED = ("postgres", "sqlite")
#: Those in which a sum of 64-bit integers fails where it exceeds 64 bits.
_NARROW = ("bigquery", "databricks")
#: Rows whose terms, below 2^42 each, add up to less than 2^63.
_SHORT = 1 << 20
_WRITTEN_IN = "postgres"
#: Names of the type of floats that differ from DOUBLE.
_FLOATS = {"postgres": "DOUBLE PRECISION", "sqlite": "REAL", "bigquery": "FLOAT64"}
#: How tightly operators bind.
_BINDING = {"and": 1, "<": 2, "<=": 2, ">": 2, ">=": 2, "=": 2, "+": 3, "-": 3, "*": 4, "/": 4}
_ATOM = 5


@dataclass(frozen=True)
class RowSums:
    """What a database adds up of a table, and the number of usable rows.

    Parameters
    ----------
    program : Program
    features : tuple of str
        Columns of the table, in the order of the program.
    target : str or None
        The column of the response.
    n : int
        The number of rows, which decides on the width of sums.
    uncast : frozenset of str
        Columns of text and truth values, which the program itself turns into numbers.
    exposed : str, optional
        The column of exposures.
    cap : UnitCap, optional
        Which rows count; the program then begins with its columns and ``counts``.
    """

    program: Program
    features: tuple[str, ...]
    target: str | None
    n: int
    uncast: frozenset[str] = frozenset()
    exposed: str | None = None
    cap: UnitCap | None = None

    @property
    def beside(self) -> Mapping[str, str]:
        """The columns of the table that are no features, by their names in the program."""
        named = {"y": self.target, "exposed": self.exposed}
        return {column: name for column, name in named.items() if name is not None}

    @property
    def given(self) -> tuple[str, ...]:
        """What the program finds beside features."""
        return (*self.beside, *(() if self.cap is None else ("counts",)))

    def statement(self, source: str, dialect: str) -> str:
        """The SELECT statement.

        Parameters
        ----------
        source : str
            The rows: a query in parentheses with a name after it, or the name of a table, as the database reads it.
        dialect : str
            One of :data:`DIALECTS`.

        Raises
        ------
        InvalidInput
            If sqlglot is not installed.
        """
        return _Written(self, dialect, source).text

    def words(self, dialect: str) -> int:
        """Columns of each sum: two where a database adds 64-bit integers only, and there are many rows."""
        return 2 if dialect == "sqlite" and self.n > _SHORT and not self.program.bins else 1

    def read(self, rows: Iterable[Sequence[Any]]) -> tuple[Integers, int, int]:
        """Of what the statement gives: the sums, the usable rows, and all rows."""
        if self.program.bins:
            return self._counted(rows)
        (row,) = rows
        *sums, usable, n = (int(value) for value in row)
        width = len(sums) // self._count
        words = zip(*(sums[word::width] for word in range(width)), strict=True)
        totals = [each[0] if width == 1 else (each[0] << LOW_BITS) + each[1] for each in words]
        if not self.program.symmetric:
            return _objects(totals).reshape(self.program.shape), usable, n
        joint = np.zeros(self.program.shape, dtype=object)
        joint[np.triu_indices(len(joint))] = totals
        return joint + np.triu(joint, 1).T, usable, n

    def _counted(self, rows: Iterable[Sequence[Any]]) -> tuple[Integers, int, int]:
        """Of rows (place, usable rows, all rows)."""
        whole, usable, n = _objects([0] * self.program.bins), 0, 0
        for place, counted, all_rows in rows:
            if int(place) >= 0:
                whole[int(place)] += int(counted)
            usable, n = usable + int(counted), n + int(all_rows)
        return whole, usable, n

    @property
    def _count(self) -> int:
        order = len(self.program.left)
        return order * (order + 1) // 2 if self.program.symmetric else math.prod(self.program.shape)

    def of_words(self, parts: Iterable[pa.RecordBatch | pa.Table]) -> tuple[Integers, int, int]:
        """The same, of the rows that :func:`~dpregress.rows.row_kernel.summed` yields."""
        shape = self.program.shape
        whole, usable, n = np.zeros(shape, dtype=object), 0, 0
        for part in parts:
            for row in part.to_pylist():
                for word, place in (("high", LOW_BITS), ("low", 0)):
                    numbers = np.frombuffer(row[word], dtype=np.int64).reshape(shape).astype(object)
                    whole = whole + numbers * (1 << place)
                usable, n = usable + row["usable"], n + row["n"]
        return whole, usable, n


def _objects(numbers: Sequence[int]) -> Integers:
    """Integers of any size."""
    found: Integers = np.empty(len(numbers), dtype=object)
    found[:] = numbers
    return found


@dataclass(frozen=True)
class _Written:
    """The parts of the statement."""

    sums: RowSums
    dialect: str
    source: str
    held: list[str] = field(default_factory=list)

    def _name(self, name: str) -> str:
        """A name of the statement's own, which neither the rows nor their columns have."""
        ids = "" if self.sums.cap is None else self.sums.cap.ids
        return unused(name, f"{self.source} {self.sums.features} {self.sums.beside} {ids}")

    @cached_property
    def rows(self) -> str:
        """Stands for the rows while a part is translated."""
        return self._name("dpregress_rows_of_the_query")

    @cached_property
    def before(self) -> str:
        """Stands for the stage before meanwhile."""
        return self._name("dpregress_before")

    @cached_property
    def stage(self) -> str:
        """What names of stages begin with."""
        return self._name("dpregress_stage")

    @cached_property
    def number(self) -> str:
        """What names begin with that stand for numbers and levels, so that parts are translated only once."""
        return self._name("dpregress_number")

    @property
    def text(self) -> str:
        fence = " OFFSET 0" if self.dialect in _FENCED else ""
        stages = (*self._numbered, *(self._columns(stage) for stage in self.sums.program.stages))
        grouped = " GROUP BY place" if self.sums.program.bins else ""
        parts = [
            f"SELECT {', '.join(self._cells)} FROM {self.rows}{fence}",
            *(f"SELECT {', '.join(columns)} FROM {self.before} AS t{fence}" for columns in stages),
            f"SELECT {', '.join(self._totals)} FROM {self.before} AS t{grouped}",
        ]
        translated = [self._translated(part) for part in parts]
        whole = self._listed(translated) if self.dialect == "sqlite" else self._nested(translated)
        return whole.replace(self.rows, self.source)

    def _nested(self, parts: Sequence[str]) -> str:
        """Each part as a subquery of the next."""
        return reduce(lambda inner, outer: outer.replace(self.before, f"({inner})"), parts)

    def _listed(self, parts: Sequence[str]) -> str:
        """Each part by a name of its own: SQLite's parser takes only a few subqueries within each other."""
        named = [part.replace(self.before, f"{self.stage}_{i - 1}") for i, part in enumerate(parts)]
        stages = (f"{self.stage}_{i} AS ({part})" for i, part in enumerate(named[:-1]))
        return f"WITH {', '.join(stages)} {named[-1]}"

    def _translated(self, text: str) -> str:
        held = re.compile(rf"\b{self.number}_(\d+)\b", re.IGNORECASE | re.ASCII)  # a long s is not an s
        found = _transpiled(text, self.dialect)
        return held.sub(lambda number: self.held[int(number[1])], found)

    @property
    def _cells(self) -> list[str]:
        """The columns of the table, as numbers where they are."""
        named = [(column, f"c{j}") for j, column in enumerate(self.sums.features)]
        named += [(column, alias) for alias, column in self.sums.beside.items()]
        cell = NUMBER if self.dialect == "sqlite" else "CAST({0} AS DOUBLE PRECISION)"
        uncast = self.sums.uncast
        cells = [
            f"{quoted([column]) if column in uncast else self._cell(cell.format(quoted([column])))} AS {alias}"
            for column, alias in named
        ]
        return cells if self.sums.cap is None else [*cells, f"{quoted([self.sums.cap.ids])} AS unit"]

    def _cell(self, cell: str) -> str:
        """A number, or nothing where it is not finite.

        DuckDB takes comparisons for true that hold at the ends of a Parquet file's statistics, in which NaN has no
        part: a single infinite cell would decide where all others without a number count.
        """
        if self.dialect != "duckdb":
            return cell
        return self._held(f"CASE WHEN ISFINITE({cell}) THEN {cell} END")

    @property
    def _numbered(self) -> list[list[str]]:
        """Stages at the end of which ``counts`` says which rows of a unit count; none without a cap."""
        cap = self.sums.cap
        if cap is None:
            return []
        compared, digest = map(self._held, unit_and_digest("unit", "m", self.dialect))
        order = f"PARTITION BY {compared} ORDER BY {', '.join(['digest', *cap.columns])}"
        known = f"{self._held(length_of_id('unit', self.dialect))} > 0"
        counts = f"CASE WHEN {known} AND ROW_NUMBER() OVER ({order}) <= {cap.most} THEN 1 ELSE 0 END AS counts"
        first, *others = [[*self._columns(stage), "unit"] for stage in cap.stages]
        first[-1] = f"{self._held(id_text('unit', self.dialect))} AS unit"
        return [first, *others, [*cap.columns, "unit", f"{digest} AS digest"], [*cap.columns, counts]]

    def _columns(self, stage: Stage) -> list[str]:
        columns = [
            column if expression.operation == "name" and expression.parts == (column,)
            else f"{self._text(expression)} AS {column}"
            for column, expression in stage.items()
        ]  # fmt: skip
        return columns or ["1 AS nothing"]  # where no cell matters, such as those of levels that a column cannot hold

    @property
    def _totals(self) -> list[str]:
        """The sums of a program, and the numbers of rows."""
        program = self.sums.program
        if program.bins:
            (place,) = program.left
            return [f"{place} AS place", "SUM(k) AS usable", "COUNT(*) AS n"]
        terms = list(program.left)
        if program.right:
            rows = range(len(program.left))
            pairs = ((i, j) for i in rows for j in range(i if program.symmetric else 0, len(program.right)))
            terms = [f"{program.left[i]} * {program.right[j]}" for i, j in pairs]
        sums = [part for each in terms for part in self._sum(each)]
        return [*(f"{total} AS s{i}" for i, total in enumerate(sums)), "SUM(k) AS usable", "COUNT(*) AS n"]

    def _sum(self, product: str) -> list[str]:
        if self.dialect == "postgres":
            return [f"CAST(SUM({product}) AS TEXT)"]  # of any length; the driver has no type for it
        if self.dialect in _NARROW:
            return [f"SUM(CAST({product} AS DECIMAL(20, 0)))"]
        if self.sums.words(self.dialect) == 2:
            return [f"SUM(({product}) >> {LOW_BITS})", f"SUM(({product}) & {(1 << LOW_BITS) - 1})"]
        return [f"SUM({product})"]

    # ---------------------------------------------------------------- expressions

    def _text(self, expression: RowExpression, binding: int = 0) -> str:
        """An expression, in parentheses if what is around it binds more tightly."""
        operation, parts = expression.operation, expression.parts
        if operation in _BINDING:
            own = _BINDING[operation]
            sign = "AND" if operation == "and" else operation
            text = f"{self._text(parts[0], own)} {sign} {self._text(parts[1], own + (operation != 'and'))}"
            return f"({text})" if own < binding else text
        if operation == "number":
            return self._number(parts[0])
        if operation == "place":
            write = partial(literal, dialect=self.dialect)
            return self._held(level_case(self._text(parts[0]), parts[1], self.dialect, write))
        if operation == "truth":
            return self._truth(self._text(parts[0]))
        if operation == "missing":
            return "CAST(NULL AS DOUBLE PRECISION)"
        if operation in ("name", "whole"):
            return str(parts[0])
        if operation == "bin":
            return self._bin(self._text(parts[0], _ATOM), parts[1], 0)
        if operation == "case":
            return self._case(parts)
        if operation == "round":
            rounder = self._number(ROUNDER)
            return f"CAST(({self._text(parts[0])} + {rounder}) - {rounder} AS BIGINT)"
        inner = ", ".join(self._text(part) for part in parts)
        if operation == "float":
            return f"CAST({inner} AS DOUBLE PRECISION)"
        if operation == "clip":
            given, lower, upper = (self._text(part) for part in parts)
            return f"LEAST(GREATEST({given}, {lower}), {upper})"
        return f"{operation.upper()}({inner})"

    def _held(self, text: str) -> str:
        """A name that stands for a text in the dialect of the database."""
        self.held.append(text)
        return f"{self.number}_{len(self.held) - 1}"

    def _number(self, value: float) -> str:
        return self._held(literal(value, self.dialect))

    def _truth(self, column: str) -> str:
        return f"CASE WHEN {column} = TRUE THEN {self._number(1.0)} WHEN {column} = FALSE THEN {self._number(0.0)} END"

    def _case(self, parts: Sequence[RowExpression]) -> str:
        branches = (
            f"WHEN {self._text(condition)} THEN {self._text(value)}"
            for condition, value in zip(parts[:-1:2], parts[1::2], strict=True)
        )
        return f"CASE {' '.join(branches)} ELSE {self._text(parts[-1])} END"

    def _bin(self, column: str, edges: Sequence[float], below: int) -> str:
        """The number of edges that a number is not below, by halving."""
        if not edges:
            return str(below)
        half = len(edges) // 2
        lower, upper = self._bin(column, edges[:half], below), self._bin(column, edges[half + 1 :], below + half + 1)
        return f"CASE WHEN {column} < {self._number(edges[half])} THEN {lower} ELSE {upper} END"


@lru_cache(maxsize=64)
def _transpiled(text: str, dialect: str) -> str:
    """A part in another dialect; a fit asks for the same parts with other numbers in them."""
    try:
        import sqlglot
    except ImportError as error:
        raise InvalidInput("sqlglot is not installed: pip install 'dpregress[push-down]'") from error
    translated: list[str] = sqlglot.transpile(text, read=_WRITTEN_IN, write=dialect, pretty=True)
    return translated[0]


def literal(value: float, dialect: str) -> str:
    """A float in this dialect, exactly."""
    if dialect == "sqlite":
        return _from_integers(value)  # its reading of decimal fractions may be off by a bit
    if dialect == "duckdb":
        return f"{value:.16e}"  # with an exponent it is no decimal, and is planned faster than a cast
    return f"CAST({value:.16e} AS {_FLOATS.get(dialect, 'DOUBLE')})"


def written(table: pa.Table, dialect: str) -> str:
    """Public rows of numbers, texts and truth values as a table of a statement."""
    columns = [quoted([name]) for name in table.schema.names]
    kinds = [_sql_type(kind) for kind in table.schema.types]
    rows = []
    for row in table.to_pylist():
        cells = (_cell(cell, dialect) for cell in row.values())
        typed = (f"CAST({cell} AS {kind}) AS {name}" for cell, kind, name in zip(cells, kinds, columns, strict=True))
        rows.append(f"SELECT {', '.join(typed)}")
    return f"({' UNION ALL '.join(rows)}) AS dpregress_tests"


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "BOOLEAN"
    return "VARCHAR" if is_text(kind) else "DOUBLE PRECISION"


def _cell(cell: bool | float | str | None, dialect: str) -> str:
    if cell is None or isinstance(cell, bool):
        return "NULL" if cell is None else str(cell).upper()
    return text_literal(cell, dialect) if isinstance(cell, str) else literal(cell, dialect)


def _from_integers(value: float) -> str:
    """A float as a whole number times powers of two, which have no rounding."""
    fraction, exponent = math.frexp(value)
    whole, exponent = int(math.ldexp(fraction, 53)), exponent - 53
    while whole and whole % 2 == 0:
        whole, exponent = whole // 2, exponent + 1
    text = f"CAST({whole} AS REAL)"
    while whole and exponent:
        places = min(abs(exponent), 52)
        text += f" {'*' if exponent > 0 else '/'} CAST({1 << places} AS REAL)"
        exponent -= places if exponent > 0 else -places
    return f"({text})"
