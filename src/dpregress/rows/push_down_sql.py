r"""The sums of products of joint rows as one SQL statement, which repeats :class:`OrderedRows` operation by operation.

Each step of the row map is a subquery of the next: cells, whitened rows, norms, weights, integers, the check of the
integers against their bounds, and sums of products. The statement is written in one dialect and translated by sqlglot.
The rows themselves are a query in the dialect of the database, which is not translated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from dpregress.coordinates.exact import Integers
from dpregress.errors import InvalidInput
from dpregress.rows.ordered import FINITE, LARGEST, ROUNDER, SMALLEST, OrderedRows
from dpregress.rows.readers.base import quoted
from dpregress.rows.readers.sqlite import NUMBER
from dpregress.rows.row_kernel import LOW_BITS, Numbers

#: Dialects in which statements can be written.
DIALECTS = ("duckdb", "postgres", "sqlite", "snowflake", "bigquery", "databricks")
#: Those whose planner would put a subquery into the next, and compute it again for every mention.
_FENCED = ("postgres", "sqlite")
#: Those in which a sum of 64-bit integers fails where it exceeds 64 bits.
_NARROW = ("bigquery", "databricks")
#: Rows whose products, below 2^42 each, add up to less than 2^63.
_SHORT = 1 << 20
#: Stands for the rows while the statement is translated.
_ROWS = "dpregress_rows_of_the_query"
_WRITTEN_IN = "postgres"


@dataclass(frozen=True)
class JointSums:
    """What a database adds up: products of the integers of joint rows (x, y), and the number of usable rows.

    Parameters
    ----------
    rows : OrderedRows
    features : tuple of str
        Columns of the table, in the order of the space.
    target : str or None
        The column of the response; rows without one do not count, whether the space has a response or not.
    n : int
        The number of rows, which decides on the width of sums.
    """

    rows: OrderedRows
    features: tuple[str, ...]
    target: str | None
    n: int

    @property
    def numbers(self) -> Numbers:
        """Public numbers of the space."""
        return self.rows.numbers

    @property
    def order(self) -> int:
        """Columns of joint rows."""
        return self.rows.space.order + (self.rows.space.response is not None)

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
        try:
            import sqlglot
        except ImportError as error:
            raise InvalidInput("sqlglot is not installed: pip install 'dpregress[push-down]'") from error
        translated: str = sqlglot.transpile(_Written(self, dialect).text, read=_WRITTEN_IN, write=dialect, pretty=True)[
            0
        ]
        return translated.replace(_ROWS, source)

    def words(self, dialect: str) -> int:
        """Columns of each sum: two where a database adds 64-bit integers only, and there are many rows."""
        return 2 if dialect == "sqlite" and self.n > _SHORT else 1

    def read(self, row: Sequence[Any]) -> tuple[Integers, int, int]:
        """Of the one row that the statement gives: the sums of products, the usable rows, and all rows."""
        *sums, usable, n = (int(value) for value in row)
        width = len(sums) // (self.order * (self.order + 1) // 2)
        words = zip(*(sums[word::width] for word in range(width)), strict=True)
        products = [each[0] if width == 1 else (each[0] << LOW_BITS) + each[1] for each in words]
        joint = np.zeros((self.order, self.order), dtype=object)
        joint[np.triu_indices(self.order)] = products
        return joint + np.triu(joint, 1).T, usable, n

    def of_words(self, parts: Iterable[pa.RecordBatch | pa.Table]) -> tuple[Integers, int, int]:
        """The same, of the rows that :func:`~dpregress.rows.row_kernel.summed` yields."""
        joint, usable, n = np.zeros((self.order, self.order), dtype=object), 0, 0
        for part in parts:
            for row in part.to_pylist():
                for word, place in (("high", LOW_BITS), ("low", 0)):
                    numbers = np.frombuffer(row[word], dtype=np.int64).reshape(joint.shape).astype(object)
                    joint = joint + numbers * (1 << place)
                usable, n = usable + row["usable"], n + row["n"]
        return joint, usable, n


@dataclass(frozen=True)
class _Written:
    """The parts of the statement."""

    sums: JointSums
    dialect: str

    @property
    def text(self) -> str:
        table = f"SELECT {', '.join(self._cells)} FROM {_ROWS}"
        for columns in (self._bounded, self._whitened, self._norms, self._shrunk, self._integers, self._checked):
            table = f"SELECT {', '.join(columns)} FROM ({table}{self._fence}) AS t"
        return f"SELECT {', '.join(self._totals)} FROM ({table}{self._fence}) AS t"

    @property
    def _fence(self) -> str:
        return " OFFSET 0" if self.dialect in _FENCED else ""

    @property
    def _d(self) -> int:
        return len(self.sums.features)

    @property
    def _p(self) -> int:
        return self.sums.rows.space.order

    @cached_property
    def _of_y(self) -> bool:
        return self.sums.rows.space.response is not None and self.sums.target is not None

    @property
    def _joint(self) -> list[str]:
        """Names of the integers of a joint row."""
        return [f"u{i}" for i in range(self._p)] + (["v"] if self.sums.rows.space.response is not None else [])

    @property
    def _cells(self) -> list[str]:
        named = [(name, f"c{j}") for j, name in enumerate(self.sums.features)]
        if self.sums.target is not None:
            named.append((self.sums.target, "y"))
        cell = NUMBER if self.dialect == "sqlite" else "CAST({0} AS DOUBLE PRECISION)"
        return [f"{cell.format(quoted([name]))} AS {alias}" for name, alias in named]

    @property
    def _bounded(self) -> list[str]:
        """Cells within their limits, and whether a row counts."""
        cells = [f"{self._clipped(f'c{j}', fill)} AS c{j}" for j, fill in enumerate(self.sums.rows.fill)]
        if self._of_y:
            cells.append(f"{self._clipped('y', 0.0)} AS y")
        usable = "1"
        if self.sums.target is not None:
            finite = self._literal(FINITE)
            usable = f"CASE WHEN y >= -{finite} AND y <= {finite} THEN 1 ELSE 0 END"
        return [*cells, f"{usable} AS k"]

    def _clipped(self, name: str, fill: float) -> str:
        finite, most, least = (self._literal(limit) for limit in (FINITE, LARGEST, SMALLEST))
        return (
            f"CASE WHEN {name} > -{least} AND {name} < {least} THEN {self._literal(0.0)} "
            f"WHEN {name} >= -{most} AND {name} <= {most} THEN {name} "
            f"WHEN {name} > {most} AND {name} <= {finite} THEN {most} "
            f"WHEN {name} < -{most} AND {name} >= -{finite} THEN -{most} ELSE {self._literal(fill)} END"
        )

    @property
    def _whitened(self) -> list[str]:
        columns = [f"c{j}" for j in range(self._d)]
        if self.sums.rows.space.intercept:
            columns.insert(0, "")
        found = []
        for i, row in enumerate(self.sums.rows.entries):
            terms = [
                f"{name} * {self._literal(entry)}" if name else self._literal(entry)
                for name, entry in zip(columns, row, strict=True)
                if entry != 0
            ]
            found.append(f"{' + '.join(terms) or self._literal(0.0)} AS z{i}")
        return [*found, *self._kept]

    @property
    def _kept(self) -> list[str]:
        return ["y", "k"] if self._of_y else ["k"]

    @property
    def _norms(self) -> list[str]:
        columns = [f"z{i}" for i in range(self._p)]
        return [*columns, f"SQRT({' + '.join(f'{z} * {z}' for z in columns)}) AS r", *self._kept]

    @property
    def _shrunk(self) -> list[str]:
        rows = self.sums.rows
        limit, steps = self._literal(rows.limit), self._literal(rows.steps)
        columns = [f"z{i}" for i in range(self._p)]
        columns.append(f"CASE WHEN r > {limit} THEN {steps} / r ELSE {self._literal(rows.steps / rows.limit)} END AS s")
        if self._of_y:
            one = self._literal(1.0)
            columns.append(f"{f'CASE WHEN r > {limit} THEN {limit} / r ELSE {one} END' if rows.weighted else one} AS w")
        return [*columns, *self._kept]

    @property
    def _integers(self) -> list[str]:
        found = [f"{self._rounded(f'z{i} * s')} AS u{i}" for i in range(self._p)]
        response = self.sums.rows.space.response
        if response is not None and self._of_y:
            step, most = self.sums.rows.grid_of(response).step, float(self.sums.rows.most_of(response))
            public = (self.sums.rows.centre_of(response), 1 / response.scale, 1 / step, most)
            centre, factor, steps, largest = (self._literal(each) for each in public)
            scaled = f"(y - {centre}) * {factor} * w * {steps}"
            found.append(f"{self._rounded(f'LEAST(GREATEST({scaled}, -{largest}), {largest})')} AS v")
        elif response is not None:
            found.append("CAST(0 AS BIGINT) AS v")
        return [*found, "k"]

    @property
    def _checked(self) -> list[str]:
        """The integers of rows that count and keep their bounds, and 0 for others: what the guarantee rests on."""
        rows, response = self.sums.rows, self.sums.rows.space.response
        kept = f"k = 1 AND {' + '.join(f'u{i} * u{i}' for i in range(self._p))} <= {rows.most}"
        if response is not None:
            kept += f" AND v >= -{rows.most_of(response)} AND v <= {rows.most_of(response)}"
        return [*(f"CASE WHEN {kept} THEN {name} ELSE 0 END AS {name}" for name in self._joint), "k"]

    @property
    def _totals(self) -> list[str]:
        names = self._joint
        products = [f"{one} * {other}" for i, one in enumerate(names) for other in names[i:]]
        sums = [part for product in products for part in self._sum(product)]
        return [*(f"{total} AS s{i}" for i, total in enumerate(sums)), "SUM(k) AS usable", "COUNT(*) AS n"]

    def _sum(self, product: str) -> list[str]:
        if self.dialect == "postgres":
            return [f"CAST(SUM({product}) AS TEXT)"]  # of any length; the driver has no type for it
        if self.dialect in _NARROW:
            return [f"SUM(CAST({product} AS DECIMAL(20, 0)))"]
        if self.sums.words(self.dialect) == 2:
            return [f"SUM(({product}) >> {LOW_BITS})", f"SUM(({product}) & {(1 << LOW_BITS) - 1})"]
        return [f"SUM({product})"]

    def _rounded(self, number: str) -> str:
        rounder = self._literal(ROUNDER)
        return f"CAST(({number} + {rounder}) - {rounder} AS BIGINT)"

    def _literal(self, value: float) -> str:
        return literal(value, self.dialect)


def literal(value: float, dialect: str) -> str:
    """A float in this dialect, exactly."""
    if dialect != "sqlite":
        return f"CAST({value:.16e} AS DOUBLE PRECISION)"
    return _from_integers(value)  # SQLite's reading of decimal fractions may be off by a bit


def written(table: pa.Table, dialect: str) -> str:
    """Public rows of numbers as a table of a statement."""
    names = [quoted([name]) for name in table.schema.names]
    rows = []
    for row in table.to_pylist():
        cells = ("NULL" if cell is None else literal(cell, dialect) for cell in row.values())
        columns = (f"CAST({cell} AS DOUBLE PRECISION) AS {name}" for cell, name in zip(cells, names, strict=True))
        rows.append(f"SELECT {', '.join(columns)}")
    return f"({' UNION ALL '.join(rows)}) AS dpregress_tests"


def _from_integers(value: float) -> str:
    """A float as a whole number times powers of two, which have no rounding."""
    fraction, exponent = math.frexp(value)
    whole, exponent = int(math.ldexp(fraction, 53)), exponent - 53
    while whole and whole % 2 == 0:
        whole, exponent = whole // 2, exponent + 1
    text = f"CAST({whole} AS DOUBLE PRECISION)"
    while whole and exponent:
        places = min(abs(exponent), 52)
        text += f" {'*' if exponent > 0 else '/'} CAST({1 << places} AS DOUBLE PRECISION)"
        exponent -= places if exponent > 0 else -places
    return f"({text})"
