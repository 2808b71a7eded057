"""Arithmetic of numeric columns, one row at a time: values, and the bounds that follow from bounds.

Python evaluates nothing: an expression is parsed into a few kinds of nodes, and any other node is refused. A cell
outside the domain of a function and a result that is not finite are missing (NaN). No cell raises an error or a
warning, and none affects how another is computed.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput

T = TypeVar("T")
Interval = tuple[float, float]
EVERYTHING: Interval = (-math.inf, math.inf)

#: Functions of one number by name, with the lower end of their domain; all except abs are increasing.
FUNCTIONS: dict[str, tuple[Callable[[Vector], Vector], float]] = {
    "log": (np.log, 0.0),
    "log10": (np.log10, 0.0),
    "log1p": (np.log1p, -1.0),
    "exp": (np.exp, -math.inf),
    "sqrt": (np.sqrt, 0.0),
    "abs": (np.abs, -math.inf),
}
#: Functions of two or more numbers of one row.
EXTREMES: dict[str, Callable[[Vector, Vector], Vector]] = {"min": np.minimum, "max": np.maximum}
SPLINES = ("bs", "ns", "cr")
_CENTRED = "use a public number, as in I(x - 50)"
_SCALED = "use public numbers, as in I((x - 50) / 10)"
_KNOTS = "use public knots and bounds, as in {}(x, knots=[40, 60], lower=18, upper=90)"
_CUT = "use public numbers, as in I(x > 50)"
#: Functions of formula languages that depend on the whole column, and what to write instead.
_READ_DATA = {
    **dict.fromkeys(("center", "centre", "demean", "mean"), _CENTRED),
    **dict.fromkeys(("scale", "standardize", "standardise", "std"), _SCALED),
    **dict.fromkeys(("cs", "cc", "te"), _KNOTS.format("bs")),
    **{name: _KNOTS.format(name) for name in SPLINES},
    **{name: f"use a public number, as in {name}(x, 50)" for name in EXTREMES},
    **dict.fromkeys(("cut", "qcut", "rank"), _CUT),
    "poly": "use powers, as in x + I(x ** 2)",
    "hashed": "declare levels in the schema",
}
_SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_OFFERED = "I(...), C(...), " + ", ".join(f"{name}(...)" for name in (*FUNCTIONS, *EXTREMES, *SPLINES))


class Expression(ABC):
    """A number computed from the numbers of one row."""

    @property
    @abstractmethod
    def columns(self) -> frozenset[str]:
        """Columns it reads."""

    @abstractmethod
    def values(self, columns: Mapping[str, Vector]) -> Vector:
        """Values of shape (m,), NaN where a cell is missing or outside the domain."""

    @abstractmethod
    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        """Bounds of the values that are not missing, by interval arithmetic; infinite where there are none."""


@dataclass(frozen=True)
class Column(Expression):
    """A numeric column."""

    name: str

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.name})

    def values(self, columns: Mapping[str, Vector]) -> Vector:
        return columns[self.name]

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        return bounds.get(self.name, EVERYTHING)


@dataclass(frozen=True)
class Number(Expression):
    """A constant."""

    value: float

    @property
    def columns(self) -> frozenset[str]:
        return frozenset()

    def values(self, columns: Mapping[str, Vector]) -> Vector:  # noqa: ARG002  # the same for every row
        return np.array(self.value)

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:  # noqa: ARG002
        return self.value, self.value


@dataclass(frozen=True)
class Call(Expression):
    """One of :data:`FUNCTIONS`, applied to an expression."""

    function: str
    argument: Expression

    @property
    def columns(self) -> frozenset[str]:
        return self.argument.columns

    def values(self, columns: Mapping[str, Vector]) -> Vector:
        compute, least = FUNCTIONS[self.function]
        x = self.argument.values(columns)
        return _inside(compute, x, x >= least)

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        compute, least = FUNCTIONS[self.function]
        lower, upper = self.argument.interval(bounds)
        if self.function == "abs":
            return _magnitude(lower, upper)
        with np.errstate(all="ignore"):
            ends = compute(np.maximum([lower, upper], least))
        return float(ends[0]), float(ends[1])


@dataclass(frozen=True)
class Operation(Expression):
    """``left + right``, ``-``, ``*`` or ``/``."""

    symbol: str
    left: Expression
    right: Expression

    @property
    def columns(self) -> frozenset[str]:
        return self.left.columns | self.right.columns

    def values(self, columns: Mapping[str, Vector]) -> Vector:
        left, right = self.left.values(columns), self.right.values(columns)
        operation = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[self.symbol]
        with np.errstate(all="ignore"):
            return finite(operation(left, right))

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        (a, b), (c, d) = self.left.interval(bounds), self.right.interval(bounds)
        if self.symbol == "+":
            return a + c, b + d
        if self.symbol == "-":
            return a - d, b - c
        return product((a, b), (c, d) if self.symbol == "*" else _reciprocal(c, d))


@dataclass(frozen=True)
class Power(Expression):
    """``base ** exponent`` with a constant exponent; negative bases require a whole exponent."""

    base: Expression
    exponent: float

    @property
    def columns(self) -> frozenset[str]:
        return self.base.columns

    def values(self, columns: Mapping[str, Vector]) -> Vector:
        x = self.base.values(columns)
        domain = np.isfinite(x) if self.exponent.is_integer() else x >= 0
        return _inside(lambda base: np.power(base, self.exponent), x, domain & ((x != 0) | (self.exponent >= 0)))

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        lower, upper = self.base.interval(bounds)
        if not self.exponent.is_integer():
            lower, upper = max(lower, 0.0), max(upper, 0.0)
        elif self.exponent % 2 == 0:
            lower, upper = _magnitude(lower, upper)
        with np.errstate(all="ignore"):
            ends = np.power([lower, upper], abs(self.exponent))
        powers = float(ends[0]), float(ends[1])
        return powers if self.exponent >= 0 else _reciprocal(*powers)


@dataclass(frozen=True)
class Extreme(Expression):
    """The minimum or maximum of some numbers of a row; missing if any of them is missing."""

    function: str
    arguments: tuple[Expression, ...]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(*(argument.columns for argument in self.arguments))

    def values(self, columns: Mapping[str, Vector]) -> Vector:
        return reduce(EXTREMES[self.function], [finite(argument.values(columns)) for argument in self.arguments])

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        choose = min if self.function == "min" else max
        lower, upper = zip(*(argument.interval(bounds) for argument in self.arguments), strict=True)
        return choose(lower), choose(upper)


@dataclass(frozen=True)
class Compared(Expression):
    """1 if the comparison holds, 0 if not; missing if either side is missing."""

    symbol: str
    left: Expression
    right: Expression

    @property
    def columns(self) -> frozenset[str]:
        return self.left.columns | self.right.columns

    def values(self, columns: Mapping[str, Vector]) -> Vector:
        left, right = finite(self.left.values(columns)), finite(self.right.values(columns))
        holds = {
            "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
            "!=": np.not_equal,
        }[self.symbol](left, right)  # fmt: skip
        return np.where(np.isnan(left) | np.isnan(right), np.nan, holds)

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        (a, b), (c, d) = self.left.interval(bounds), self.right.interval(bounds)
        always, never = {
            "<": (b < c, a >= d),
            "<=": (b <= c, a > d),
            ">": (a > d, b <= c),
            ">=": (a >= d, b < c),
            "==": (a == b == c == d, b < c or a > d),
            "!=": (b < c or a > d, a == b == c == d),
        }[self.symbol]
        return float(always), float(not never)


def product(one: Interval, other: Interval) -> Interval:
    """Bounds of a product; an infinite bound times 0 is 0, because infinite values are missing."""
    ends = [0.0 if 0.0 in (a, b) else a * b for a in one for b in other]
    return min(ends), max(ends)


def finite(values: Vector) -> Vector:
    """The values with NaN for those that are not finite."""
    return np.where(np.isfinite(values), values, np.nan)


def parse_expression(text: str) -> Expression:
    """Parse arithmetic of columns; a name in backticks may hold any character.

    Raises
    ------
    InvalidInput
        For anything but numbers, columns, ``+ - * / **``, comparisons and the functions offered.
    """
    return parse_with(text, expression_of)


def parse_with(text: str, read: Callable[[ast.expr, Mapping[str, str]], T]) -> T:
    """The result of ``read`` on the syntax tree and on the names in backticks, which have placeholders in the tree.

    Raises
    ------
    InvalidInput
        If the text is not an expression, or ``read`` refuses it.
    """
    quoted: dict[str, str] = {}

    def remember(found: re.Match[str]) -> str:
        return quoted.setdefault(found[1], f"_quoted_{len(quoted)}_")

    plain = re.sub("`([^`]*)`", remember, text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(plain.strip(), mode="eval").body
        return read(tree, {mark: name for name, mark in quoted.items()})
    except InvalidInput:
        raise
    except RecursionError as error:
        raise InvalidInput("it is nested too deeply: simplify it") from error
    except (SyntaxError, ValueError, OverflowError, MemoryError) as error:
        raise InvalidInput(f"{text!r} is not arithmetic of columns") from error


def expression_of(node: ast.expr, quoted: Mapping[str, str]) -> Expression:
    if isinstance(node, ast.Name):
        return Column(quoted.get(node.id, node.id))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _number(float(node.value))  # type: ignore[arg-type]  # the line above has looked
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = expression_of(node.operand, quoted)
        return Operation("-", Number(0.0), inner) if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp) and type(node.op) in _SYMBOLS:
        return Operation(_SYMBOLS[type(node.op)], expression_of(node.left, quoted), expression_of(node.right, quoted))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        exponent = expression_of(node.right, quoted)
        if exponent.columns:
            raise InvalidInput(f"the exponent of {ast.unparse(node)!r} must be a number: write exp(...) instead")
        return Power(expression_of(node.left, quoted), _number(float(exponent.values({}))).value)
    if isinstance(node, ast.Compare):
        return _comparison(node, quoted)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call(node, node.func.id, quoted)
    if isinstance(node, ast.Call | ast.Attribute):
        named = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        raise InvalidInput(f"{named} is not offered: write {_OFFERED}; a column name with a dot goes in backticks")
    raise InvalidInput(f"{ast.unparse(node)!r} is not arithmetic: + - * / **, comparisons, numbers and {_OFFERED} are")


def _comparison(node: ast.Compare, quoted: Mapping[str, str]) -> Expression:
    symbol = _COMPARED.get(type(node.ops[0]))
    if len(node.ops) != 1 or symbol is None:
        raise InvalidInput(f"{ast.unparse(node)!r} is not arithmetic: write I((x > 18) * (x < 65))")
    return Compared(symbol, expression_of(node.left, quoted), expression_of(node.comparators[0], quoted))


def _call(node: ast.Call, name: str, quoted: Mapping[str, str]) -> Expression:
    if name in EXTREMES and len(node.args) > 1 and not node.keywords:
        return Extreme(name, tuple(expression_of(argument, quoted) for argument in node.args))
    if name in SPLINES and any(keyword.arg == "knots" for keyword in node.keywords):
        raise InvalidInput(f"{name}() is several columns: it stands alone or in interactions, not in a function")
    if name in _READ_DATA:
        raise InvalidInput(f"{name}() would read private data: {_READ_DATA[name]}")
    if name in ("lag", "lead", "diff", "cumsum"):
        raise InvalidInput(f"{name}() would mix the rows of different people: compute such a column beforehand")
    if name == "Q":
        raise InvalidInput("Q() is not offered: put the column's name in backticks")
    if name in ("C", "factor"):
        raise InvalidInput(
            f"{name}() stands alone and takes one column, as in C(plan) or C(plan, Treatment(reference='gold')): "
            "no other contrasts, nothing around it"
        )
    if name not in FUNCTIONS and name != "I":
        raise InvalidInput(f"unknown function {name}(): offered are {_OFFERED}")
    if len(node.args) != 1 or node.keywords:
        raise InvalidInput(f"{name}() takes one column or expression")
    argument = expression_of(node.args[0], quoted)
    return argument if name == "I" else Call(name, argument)


def _number(value: float) -> Number:
    if not math.isfinite(value):
        raise InvalidInput("a number in it is too large, or not a number")
    return Number(value)


def _inside(compute: Callable[[Vector], Vector], x: Vector, domain: NDArray[np.bool_]) -> Vector:
    """A function on its domain; other cells are replaced by 1, so that they do not affect how cells are computed."""
    domain = domain & np.isfinite(x)
    with np.errstate(all="ignore"):
        return finite(np.where(domain, compute(np.where(domain, x, 1.0)), np.nan))


def _magnitude(lower: float, upper: float) -> Interval:
    least = 0.0 if lower <= 0 <= upper else min(abs(lower), abs(upper))
    return least, max(abs(lower), abs(upper))


def _reciprocal(lower: float, upper: float) -> Interval:
    return EVERYTHING if lower <= 0 <= upper else (1 / upper, 1 / lower)
