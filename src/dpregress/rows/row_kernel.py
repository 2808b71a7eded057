"""Programs: what is computed of each row in a fixed order of operations, and which sums of integers are taken.

A program is data. :mod:`~dpregress.rows.push_down_sql` writes it as SQL, and :func:`summed` runs it with NumPy. Spark
sends this module to its workers by value, so it imports nothing of the package.
:class:`~dpregress.rows.ordered.OrderedRows` says which operations are used and why their order is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Rows whose products float64 adds exactly, and bits of the lower word of a sum.
BLOCK, LOW_BITS = 2048, 32
#: Adding and subtracting it rounds numbers below 2^51 to integers, half to even.
ROUNDER = 1.5 * 2.0**52
#: What :func:`summed` yields: the two words of the sums, row by row, as 64-bit integers.
SCHEMA = "high binary, low binary, usable bigint, n bigint"


@dataclass(frozen=True, eq=False)
class RowExpression:
    """An operation on columns and public numbers.

    Parameters
    ----------
    operation : str
        ``name``, ``number``, ``whole`` (an integer), ``missing``, ``+ - * /``, ``sqrt``, ``round`` (to an integer),
        ``float`` (of an integer), ``clip``, ``case``, ``bin``, ``place`` (of a text), ``truth``, ``and``, or a
        comparison.
    parts : tuple
        Expressions, or the value of a leaf.
    """

    operation: str
    parts: tuple[Any, ...]

    def __add__(self, other: RowExpression | float) -> RowExpression:
        return RowExpression("+", (self, term(other)))

    def __sub__(self, other: RowExpression | float) -> RowExpression:
        return RowExpression("-", (self, term(other)))

    def __mul__(self, other: RowExpression | float) -> RowExpression:
        return RowExpression("*", (self, term(other)))

    def __truediv__(self, other: RowExpression | float) -> RowExpression:
        return RowExpression("/", (self, term(other)))

    def __lt__(self, other: RowExpression | float) -> RowExpression:
        return RowExpression("<", (self, term(other)))

    def __le__(self, other: RowExpression | float) -> RowExpression:
        return RowExpression("<=", (self, term(other)))

    def __gt__(self, other: RowExpression | float) -> RowExpression:
        return RowExpression(">", (self, term(other)))

    def __ge__(self, other: RowExpression | float) -> RowExpression:
        return RowExpression(">=", (self, term(other)))

    def equals(self, other: float) -> RowExpression:
        """Whether it is this number."""
        return RowExpression("=", (self, term(other)))

    def __and__(self, other: RowExpression) -> RowExpression:
        return RowExpression("and", (self, other))

    @property
    def names(self) -> frozenset[str]:
        """The columns that it mentions."""
        if self.operation == "name":
            return frozenset(self.parts)
        return frozenset().union(*(part.names for part in self.parts if isinstance(part, RowExpression)))


def term(value: RowExpression | float) -> RowExpression:
    """A public number, if it is not an expression already; integers are whole numbers."""
    if isinstance(value, RowExpression):
        return value
    return RowExpression("whole" if isinstance(value, int) else "number", (value,))


MISSING = RowExpression("missing", ())


def name(column: str) -> RowExpression:
    """A column."""
    return RowExpression("name", (column,))


def sqrt(of: RowExpression) -> RowExpression:
    """The square root."""
    return RowExpression("sqrt", (of,))


def rounded(of: RowExpression) -> RowExpression:
    """The nearest integer of a number below 2^51."""
    return RowExpression("round", (of,))


def floated(of: RowExpression) -> RowExpression:
    """An integer as a float."""
    return RowExpression("float", (of,))


def clipped(of: RowExpression, lower: float, upper: float) -> RowExpression:
    """The nearest number between two public ones."""
    return RowExpression("clip", (of, term(lower), term(upper)))


def case(*branches: RowExpression | float) -> RowExpression:
    """``case(condition, value, condition, value, .., otherwise)``: the value of the first condition that holds."""
    return RowExpression("case", tuple(map(term, branches)))


def binned(of: RowExpression, edges: Sequence[float]) -> RowExpression:
    """How many of the increasing edges a column is not below."""
    return RowExpression("bin", (of, tuple(edges)))


def place_of_text(of: RowExpression, levels: Sequence[str]) -> RowExpression:
    """The place of a text among levels as a float, missing if it is none of them; texts are compared by their bytes."""
    return RowExpression("place", (of, tuple(levels)))


def truth(of: RowExpression) -> RowExpression:
    """1.0 or 0.0 for a truth value."""
    return RowExpression("truth", (of,))


def added(terms: Iterable[RowExpression]) -> RowExpression:
    """The sum of terms, from the first to the last; 0.0 for none."""
    listed = list(terms)
    return reduce(lambda total, each: total + each, listed) if listed else term(0.0)


def multiplied(factors: Iterable[RowExpression]) -> RowExpression:
    """The product of factors, from the first to the last."""
    return reduce(lambda product, each: product * each, factors)


#: Columns that are computed at once from those of the stage before.
Stage = Mapping[str, RowExpression]


def threaded(stages: Sequence[Stage], needed: Collection[str]) -> tuple[Stage, ...]:
    """Stages of which each has what is needed later, and nothing else."""
    kept: list[Stage] = []
    for stage in reversed(stages):
        columns = {column: stage.get(column, name(column)) for column in sorted(needed)}
        kept.insert(0, columns)
        needed = set().union(*(each.names for each in columns.values()))
    return tuple(kept)


class Program(NamedTuple):
    """Stages, and what is added up: products of every left and every right column, or the left ones alone.

    The columns at the start are ``c0``, ``c1``, .. for the features, ``y``, and ``exposed`` for an exposure; missing
    cells are not a number. Texts are an argument of ``place`` alone, and truth values one of ``truth``. Each stage has
    only the columns that a later one uses. ``k`` is 1 for rows that count, and 0 for others.

    Attributes
    ----------
    stages : tuple of mappings
    left, right : tuple of str
        Of integers below 2^21, or 2^42 where there are no right ones.
    bins : int
        If it is not 0, rows are counted by the left column: an integer below ``bins``, or -1 for no bin.
    """

    stages: tuple[Stage, ...]
    left: tuple[str, ...]
    right: tuple[str, ...] = ()
    bins: int = 0

    @classmethod
    def of(cls, stages: Sequence[Stage], left: Sequence[str], right: Sequence[str] = (), bins: int = 0) -> Program:
        """A program in which each stage has what is needed later, and nothing else."""
        return cls(threaded(stages, {*left, *right, "k"}), tuple(left), tuple(right), bins)

    def extended(
        self, stages: Sequence[Stage], left: Sequence[str], right: Sequence[str] = (), bins: int = 0
    ) -> Program:
        """One that goes on from the sums' columns of this one."""
        return self.of((*self.stages, *stages), left, right, bins)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sums."""
        if self.bins:
            return (self.bins,)
        return (len(self.left), len(self.right)) if self.right else (len(self.left),)

    @property
    def symmetric(self) -> bool:
        """Whether the sums form a symmetric matrix."""
        return self.left == self.right


class UnitCap(NamedTuple):
    """At most ``most`` rows of each unit count (docs/privacy/units.md).

    After these stages and before those of a program, rows with the same id are numbered in the order of the digest of
    the id and ``m``, then of ``columns``. The column ``counts`` is 1 for rows with an id and a number up to ``most``,
    and 0 for others.

    Attributes
    ----------
    ids : str
        The column of the table.
    most : int
    stages : tuple of mappings
        From cells of the table to ``columns`` and ``m``.
    columns : tuple of str
        Numbers of a row: all that the program reads.
    """

    ids: str
    most: int
    stages: tuple[Stage, ...]
    columns: tuple[str, ...]


# ---------------------------------------------------------------- by NumPy

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "and": np.logical_and,
    "sqrt": np.sqrt,
    "round": lambda a: (a + ROUNDER) - ROUNDER,
    "float": lambda a: a,
    "truth": lambda a: a,
    "clip": lambda a, lower, upper: np.minimum(np.maximum(a, lower), upper),
}


def evaluated(expression: RowExpression, columns: Mapping[str, Any]) -> Any:
    """The value for all rows, or one for all of them; integers are floats."""
    operation, parts = expression.operation, expression.parts
    if operation == "name":
        return columns[parts[0]]
    if operation == "missing":
        return np.nan
    if operation in ("number", "whole"):
        return np.float64(parts[0])
    if operation == "bin":
        return np.searchsorted(np.array(parts[1]), evaluated(parts[0], columns), side="right").astype(np.float64)
    if operation == "place":
        return _places(evaluated(parts[0], columns), parts[1])
    values = [evaluated(part, columns) for part in parts]
    if operation != "case":
        return _OPERATIONS[operation](*values)
    found = values[-1]
    for place in range(len(values) - 3, -1, -2):
        found = np.where(values[place], values[place + 1], found)
    return found


def _places(texts: Any, levels: Sequence[str]) -> Any:
    """The places of Arrow texts among levels, as floats."""
    known = pa.array([level.encode() for level in levels], pa.large_binary())
    found = pc.index_in(pc.cast(texts, pa.large_binary()), value_set=known)
    return pc.fill_null(pc.cast(found, pa.float64()), np.nan).to_numpy(zero_copy_only=False)


def run_stages(stages: Sequence[Stage], columns: Mapping[str, Any], rows: int) -> Mapping[str, Any]:
    """The columns after the last stage, each of shape (rows,)."""
    with np.errstate(all="ignore"):
        for stage in stages:
            columns = {
                column: np.broadcast_to(evaluated(expression, columns), (rows,)) for column, expression in stage.items()
            }
    return columns


def cells(columns: Sequence[Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    """The columns at the start of a program: features, and what is beside them by its name."""
    return {**{f"c{j}": column for j, column in enumerate(columns)}, **beside}


def summed(batches: Iterable[pa.RecordBatch], program: Program, beside: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The sums over all batches, in one row. Columns are the features, then those that a program calls ``beside``."""
    shape = program.shape if len(program.shape) == 2 else (*program.shape, 1)
    high, low = np.zeros((2, *shape), dtype=np.int64)
    usable = n = 0
    for batch in batches:
        found = run_stages(program.stages, _given(batch.columns, beside), batch.num_rows)
        for products in _sums(program, found, batch.num_rows):
            high += products >> LOW_BITS
            low += products & ((1 << LOW_BITS) - 1)
        usable += int(found["k"].sum())
        n += batch.num_rows
    yield pa.RecordBatch.from_pydict(
        {
            "high": pa.array([high.tobytes()], pa.binary()),
            "low": pa.array([low.tobytes()], pa.binary()),
            "usable": pa.array([usable], pa.int64()),
            "n": pa.array([n], pa.int64()),
        }
    )


def capped_numbers(batches: Iterable[pa.RecordBatch], cap: UnitCap, beside: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns of a cap, ``m`` and ids; ids are the last column of a batch, after those of :func:`summed`."""
    for batch in batches:
        *given, ids = batch.columns
        found = run_stages(cap.stages, _given(given, beside), batch.num_rows)
        numbers = {column: pa.array(np.ascontiguousarray(found[column]), pa.float64()) for column in cap.columns}
        yield pa.RecordBatch.from_pydict({**numbers, "m": pa.array(found["m"].astype(np.int64)), "unit": ids})


def _given(columns: Sequence[pa.Array], beside: Sequence[str]) -> dict[str, Any]:
    """The columns at the start of a program."""
    found = [_cells_of(column) for column in columns]
    features = len(found) - len(beside)
    return cells(found[:features], dict(zip(beside, found[features:], strict=True)))


def _cells_of(column: pa.Array) -> Any:
    """Numbers as floats, and texts as they are."""
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if text or pa.types.is_string_view(column.type):
        return column
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _sums(program: Program, found: Mapping[str, Any], rows: int) -> Iterator[Any]:
    """Exact sums over blocks of rows."""
    if program.bins:
        places = found[program.left[0]].astype(np.int64)
        yield np.bincount(places[places >= 0], minlength=program.bins).astype(np.int64)[:, None]
        return
    left = np.column_stack([found[column] for column in program.left])
    right = np.column_stack([found[column] for column in program.right]) if program.right else np.ones((rows, 1))
    for first in range(0, rows, BLOCK):
        block = slice(first, first + BLOCK)
        yield (left[block].T @ right[block]).astype(np.int64)


def kernel(program: Program, beside: Sequence[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """:func:`summed` as a function of batches alone."""

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from summed(batches, program, beside)

    return of_batches


def numbering(cap: UnitCap, beside: Sequence[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """:func:`capped_numbers` as a function of batches alone."""

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from capped_numbers(batches, cap, beside)

    return of_batches
