r"""Splines of one column with public knots: B-splines, natural splines, and cubic splines by their values at the knots.

Because knots and bounds are written in the formula, the columns of a row depend on this row only:

- ``bs``: the B-spline basis of a degree (3) on the knots between the bounds, without its first column, as in R, patsy
  and formulaic;
- ``ns``: the part of the cubic B-spline basis whose second derivative is zero at both bounds, in the coordinates that
  R's ``splines::ns`` gives it;
- ``cr``: the natural cubic splines that are 1 at one of bounds and knots and 0 at the others, as in mgcv, patsy and
  formulaic. They sum to 1.

A cell beyond the bounds is set to the bound. Sources: de Boor, A Practical Guide to Splines (1978); Wood, Generalized
Additive Models (2006), section 4.1.2.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import BSpline, CubicSpline, PPoly

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.rows.design.expressions import SPLINES, Expression, Interval, expression_of

_MOST_KNOTS = 100
_LARGEST_DEGREE = 5
_BOUNDS = {"lower": "lower", "lower_bound": "lower", "upper": "upper", "upper_bound": "upper"}


@dataclass(frozen=True)
class Spline:
    """The columns of a spline of one expression.

    Parameters
    ----------
    kind : {"bs", "ns", "cr"}
    argument : Expression
    knots : tuple of float
        Between the bounds, increasing.
    lower, upper : float
    degree : int
        Of ``bs``; the others are cubic.
    """

    kind: str
    argument: Expression
    knots: tuple[float, ...]
    lower: float
    upper: float
    degree: int = 3

    @property
    def width(self) -> int:
        """Number of columns."""
        return {"bs": len(self.knots) + self.degree, "ns": len(self.knots) + 1, "cr": len(self.knots) + 2}[self.kind]

    def values(self, columns: Mapping[str, Vector]) -> Matrix:
        """Of shape (m, width), NaN where the argument is missing."""
        x = self.argument.values(columns)
        known = np.isfinite(x)
        found = self._basis(np.clip(np.where(known, x, self.lower), self.lower, self.upper))
        return np.where(known[:, None], found, np.nan)

    def intervals(self, bounds: Mapping[str, Interval]) -> tuple[Interval, ...]:
        """The least and the greatest value of each column: at the ends, at a knot, or where its derivative is zero."""
        ends = np.clip(self.argument.interval(bounds), self.lower, self.upper)
        places = np.concatenate([self.knots, *(column.derivative().roots() for column in self._columns())])
        inside = places[(places > ends[0]) & (places < ends[1])]  # of pieces that are constant the roots are NaN
        values = self._basis(np.concatenate([ends, inside]))
        return tuple(zip(values.min(axis=0).tolist(), values.max(axis=0).tolist(), strict=True))

    def _columns(self) -> list[PPoly]:
        """Each column as polynomials between the knots."""
        basis = self._basis
        if isinstance(basis, CubicSpline):
            return [PPoly(basis.c[:, :, column], basis.x) for column in range(self.width)]
        return [PPoly.from_spline((basis.t, basis.c[:, column], basis.k)) for column in range(self.width)]

    @cached_property
    def _basis(self) -> BSpline | CubicSpline:
        if self.kind == "cr":
            places = np.array([self.lower, *self.knots, self.upper])
            return CubicSpline(places, np.eye(len(places)), bc_type="natural")
        edges = self.degree + 1
        places = np.array([*[self.lower] * edges, *self.knots, *[self.upper] * edges])
        coefficients = np.eye(len(places) - edges)[:, 1:]
        if self.kind == "ns":
            curved = BSpline(places, coefficients, self.degree).derivative(2)(np.array([self.lower, self.upper]))
            coefficients = coefficients @ np.linalg.qr(curved.T, mode="complete").Q[:, 2:]
        return BSpline(places, coefficients, self.degree)


def spline_of(node: ast.expr, quoted: Mapping[str, str]) -> Spline | None:
    """The spline that a call of ``bs``, ``ns`` or ``cr`` with knots writes; None for anything else.

    Raises
    ------
    InvalidInput
        If knots or bounds are not given, or are not valid.
    """
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SPLINES):
        return None
    name, given = node.func.id, {str(keyword.arg): keyword.value for keyword in node.keywords}
    if "knots" not in given:
        return None  # refused as what reads data
    usage = f"write {name}(x, knots=[40, 60], lower=18, upper=90)"
    knots = given.pop("knots")
    named = {_BOUNDS[key]: given.pop(key) for key in list(given) if key in _BOUNDS}
    degree = _constant(given.pop("degree")) if name == "bs" and "degree" in given else 3.0
    if given:
        raise InvalidInput(f"{name}() takes no {next(iter(given))}=: {usage}")
    if len(named) < 2:
        raise InvalidInput(f"{name}() without lower= and upper= would read private data: {usage}")
    if len(node.args) != 1 or not isinstance(knots, ast.List | ast.Tuple):
        raise InvalidInput(f"{name}() takes one column and a list of knots: {usage}")
    places = tuple(_constant(each) for each in knots.elts)
    lower, upper = _constant(named["lower"]), _constant(named["upper"])
    if len(places) > _MOST_KNOTS or not np.all(np.diff([lower, *places, upper]) > 0):
        raise InvalidInput(f"knots increase from lower to upper, and are at most {_MOST_KNOTS}: {usage}")
    if degree not in range(1, _LARGEST_DEGREE + 1):
        raise InvalidInput(f"the degree of bs() is a whole number from 1 to {_LARGEST_DEGREE}")
    return Spline(name, expression_of(node.args[0], quoted), places, lower, upper, int(degree))


def _constant(node: ast.expr) -> float:
    number = expression_of(node, {})
    value = float(number.values({})) if not number.columns else np.nan
    if not np.isfinite(value):
        raise InvalidInput(f"{ast.unparse(node)} is no public number: write one")
    return value
