"""Factors of a formula's terms: numbers, splines, and indicators of declared levels."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix
from dpregress.errors import InvalidInput
from dpregress.public import Categorical, Schema
from dpregress.rows.design.expressions import (
    Column,
    Expression,
    Interval,
    expression_of,
    finite,
    parse_expression,
    parse_with,
)
from dpregress.rows.design.splines import Spline, spline_of


class Factor(ABC):
    """One factor of a term: its columns with all levels (``full``) or without the first."""

    @abstractmethod
    def names(self, full: bool) -> tuple[str, ...]:
        """Names of the columns."""

    @abstractmethod
    def values(self, cells: Mapping[str, Matrix], full: bool) -> Matrix:
        """Columns, of shape (m, k)."""

    @abstractmethod
    def intervals(self, bounds: Mapping[str, Interval], full: bool) -> Sequence[Interval]:
        """Bounds of each column."""

    @property
    @abstractmethod
    def columns(self) -> frozenset[str]:
        """Columns of the table that it reads."""

    @property
    @abstractmethod
    def term(self) -> str:
        """What the term of this factor alone is called."""


@dataclass(frozen=True)
class Computed(Factor):
    """A number."""

    label: str
    expression: Expression

    def names(self, full: bool) -> tuple[str, ...]:  # noqa: ARG002  # a number has no levels
        return (self.label,)

    def values(self, cells: Mapping[str, Matrix], full: bool) -> Matrix:  # noqa: ARG002
        numbers = {name: cells[name][:, 0] for name in self.columns}
        return np.asarray(finite(self.expression.values(numbers))[:, None])

    def intervals(self, bounds: Mapping[str, Interval], full: bool) -> Sequence[Interval]:  # noqa: ARG002
        return (self.expression.interval(bounds),)

    @property
    def columns(self) -> frozenset[str]:
        return self.expression.columns

    @property
    def term(self) -> str:
        return self.label


@dataclass(frozen=True)
class FactorLevels(Factor):
    """Indicators of declared levels, all or without the reference."""

    column: str
    levels: tuple[str, ...]
    reference: str

    def names(self, full: bool) -> tuple[str, ...]:
        return tuple(f"{self.column}={level}" for level in self.levels if full or level != self.reference)

    def values(self, cells: Mapping[str, Matrix], full: bool) -> Matrix:
        others = cells[self.column]
        left_out = self.levels.index(self.reference)
        if not full and left_out == 0:
            return others
        every = np.column_stack([1 - others.sum(axis=1), others])
        return every if full else np.delete(every, left_out, axis=1)

    def intervals(self, bounds: Mapping[str, Interval], full: bool) -> Sequence[Interval]:  # noqa: ARG002
        return [(0.0, 1.0)] * len(self.names(full))

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column})

    @property
    def term(self) -> str:
        return self.column


@dataclass(frozen=True)
class Splined(Factor):
    """The columns of a spline, called ``bs(...)[1]`` and so on."""

    label: str
    spline: Spline

    @property
    def sums_to_one(self) -> bool:
        return self.spline.kind == "cr"

    def names(self, full: bool) -> tuple[str, ...]:  # noqa: ARG002
        return tuple(f"{self.label}[{position + 1}]" for position in range(self.spline.width))

    def values(self, cells: Mapping[str, Matrix], full: bool) -> Matrix:  # noqa: ARG002
        return self.spline.values({name: cells[name][:, 0] for name in self.columns})

    def intervals(self, bounds: Mapping[str, Interval], full: bool) -> Sequence[Interval]:  # noqa: ARG002
        return self.spline.intervals(bounds)

    @property
    def columns(self) -> frozenset[str]:
        return self.spline.argument.columns

    @property
    def term(self) -> str:
        return self.label


def factor_of(text: str, schema: Schema | None) -> Factor:
    """Read one factor; a categorical column is one whose levels the schema declares.

    Raises
    ------
    InvalidInput
        For what reads data, levels that are not declared, and what is no factor.
    """
    column = parse_with(text, _categorical)
    if column is not None:
        return _levels(*column, schema)
    spline = parse_with(text, spline_of)
    factor = computed(text) if spline is None else Splined(text, spline)
    if isinstance(factor, Computed) and isinstance(factor.expression, Column):
        declared = None if schema is None else schema.column(factor.label)
        if isinstance(declared, Categorical):
            return FactorLevels(factor.label, declared.all_levels, declared.all_levels[0])
    if not factor.columns:
        raise InvalidInput(f"{text} is a number: a term needs a column; the intercept is 1")
    for name in sorted(factor.columns):
        if schema is not None and isinstance(schema.column(name), Categorical):
            raise InvalidInput(f"{name!r} has levels: it can stand alone or in interactions, not in {text}")
    return factor


def computed(text: str) -> Computed:
    """A factor of one column of numbers."""
    expression = parse_expression(text)
    return Computed(expression.name if isinstance(expression, Column) else text, expression)


def _categorical(node: ast.expr, quoted: Mapping[str, str]) -> tuple[Expression, str | None] | None:
    """What stands in C() or factor(), and the reference of its Treatment; None for other calls and coding."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("C", "factor")):
        return None
    if not node.args:
        raise InvalidInput(f"{node.func.id}() is not arithmetic: it takes one column")
    treatment = node.args[1:]
    if node.keywords or len(treatment) > 1 or (treatment and _reference(treatment[0]) is None):
        return None  # refused with what is offered
    return expression_of(node.args[0], quoted), _reference(treatment[0]) if treatment else None


def _reference(node: ast.expr) -> str | None:
    """``b`` of ``Treatment(reference="b")`` or ``Treatment("b")``."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Treatment"):
        return None
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "reference")]
    if len(given) != 1 or len(node.args) + len(node.keywords) != 1 or not isinstance(given[0], ast.Constant):
        return None
    return str(given[0].value)


def _levels(column: Expression, reference: str | None, schema: Schema | None) -> FactorLevels:
    if not isinstance(column, Column):
        raise InvalidInput("C() takes one column, nothing computed: as in C(plan)")
    declared = None if schema is None else schema.column(column.name)
    if not isinstance(declared, Categorical):
        raise InvalidInput(
            f"levels of {column.name!r} are not declared: write [{column.name}] with levels in the schema; "
            "they are never read from private rows"
        )
    if reference is not None and reference not in declared.all_levels:
        raise InvalidInput(f"the reference {reference!r} of {column.name!r} is none of its levels in the schema")
    return FactorLevels(column.name, declared.all_levels, reference or declared.all_levels[0])
