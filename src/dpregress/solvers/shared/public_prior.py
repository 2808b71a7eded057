r"""What labelled public rows tell about a linear model: how large slopes are, and which.

Given odds omega of explained variance, slopes are ``N(0, (s^2 omega / d) T^{-1})`` with one of the shapes T of
:mod:`.slope_shapes`, and errors have the variance s^2. How likely odds and shapes are, labels say in two ways, by their
marginal likelihood and by how well rows are predicted that are left out: the first knows more if the model holds, the
second also holds if not. Their logarithms are averaged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import definite_inverse, eigen, symmetric_power
from dpregress.public.root import FEWEST_UNLIKE, unlike_most
from dpregress.solvers.shared.slope_shapes import slope_shapes, standardised_shape

#: Odds of explained variance that are considered, for each of the d slopes together.
_ODDS = np.logspace(-3, 6, 91)
#: The weight of rows that are left out beside the marginal likelihood.
_LEFT_OUT = 0.5
#: If few rows differ from its commonest value, a column has at least this share of its deviation in the space.
_LEAST_DEVIATION = 0.3
#: How likely it is beforehand, beside each other shape, that such a column is as narrow as the few rows say.
_NARROW = 0.3
#: The smallest relative size of residuals: after a perfect public fit, private residuals are still not 0.
_SMALLEST = 1e-4
#: The share of the largest eigenvalue below which public rows are taken not to vary in a direction.
_UNSEEN = 1e-9
#: The share of a matrix's trace below which an eigenvalue is rounding, and that for a sum of squares.
_DIGITS, _NO_DIGITS = 1e-15, 1e-12
#: The largest leverage of a row that is left out: rows that are fitted exactly are not predicted exactly.
_LARGEST_LEVERAGE = 1 - 1e-9


class Odds(NamedTuple):
    """A shape and, for each of the odds that are considered, how likely both are, variance of errors, and of a slope.

    The share of explained variance is log-uniform beforehand.
    """

    shape: Matrix
    log_weight: Vector
    dispersion: Vector
    slope: Vector


@dataclass(frozen=True, eq=False)
class PublicLabels:
    """Whitened public rows with responses.

    Attributes
    ----------
    x : ndarray of shape (m, p)
    y : ndarray of shape (m,)
    shapes : tuple of ndarray of shape (p, p)
        Precisions of slopes, 0 along the constant; the first is the projection on slopes.
    penalty : ndarray of shape (p, p)
        The penalty that the user asked for, per row.
    narrow : ndarray of shape (p, p) or None
        A shape in which columns that few rows show are as narrow as these say, which labels have to tell.
    """

    x: Matrix
    y: Vector
    shapes: tuple[Matrix, ...]
    penalty: Matrix
    narrow: Matrix | None = None

    @classmethod
    def of(cls, space: WhitenedSpace, rows: Matrix, y: Vector, penalty: Matrix) -> PublicLabels:
        """The labels, with shapes of a prior by the rows.

        Parameters
        ----------
        space : WhitenedSpace
        rows : ndarray of shape (m, d)
            In original units.
        y : ndarray of shape (m,)
            Centred as in the space.
        penalty : ndarray of shape (p, p)
        """
        x = space.whiten(rows)
        gram, found = x.T @ x / len(x), rows.std(axis=0)
        least = _LEAST_DEVIATION * space.deviations(np.eye(space.order))
        wider = np.where(unlike_most(rows) < FEWEST_UNLIKE, np.maximum(found, least), found)
        shapes = slope_shapes(space, gram, wider)
        if not (wider > found).any():
            return cls(x, y, shapes, penalty)
        narrow = standardised_shape(space, gram, np.where(found > 0, found, least))
        return cls(x, y, shapes, penalty, narrow)

    @property
    def _intercept(self) -> bool:
        """Whether there is a direction that is no slope."""
        return float(np.trace(self.shapes[0])) < len(self.shapes[0]) - 0.5

    def rows(self, shape: Matrix) -> Matrix:
        """Rows for slopes that have variance 1 by this shape, centred beside an intercept; of shape (m, p)."""
        slopes = self.shapes[0]
        whole = shape + (np.eye(len(slopes)) - slopes)
        back = slopes @ symmetric_power(whole, -0.5, smallest=_DIGITS * float(np.trace(whole)))
        rows = self.x @ back
        return np.asarray(rows - rows.mean(axis=0) if self._intercept else rows)

    @property
    def least(self) -> float:
        """The least variance of errors."""
        return (_SMALLEST * (float(np.std(self.y)) or abs(float(np.mean(self.y))) or 1.0)) ** 2

    @cached_property
    def second(self) -> Matrix:
        """The sum of squared rows, of shape (p, p)."""
        return np.asarray(self.x.T @ self.x)

    def update(self, coef: Vector, precision: Matrix, dispersion: float) -> tuple[Vector, Matrix]:
        """Coefficients and precision after the labels, given the variance of errors."""
        m = len(self.y)
        whole = precision + (self.second + m * self.penalty) / dispersion
        pull = self.x.T @ (self.y - self.x @ coef) - m * self.penalty @ coef
        return coef + definite_inverse(whole, _DIGITS) @ pull / dispersion, np.asarray(whole)

    @cached_property
    def odds(self) -> tuple[Odds, ...]:
        """What labels say of each of the odds, with each shape."""
        found = [self._odds(shape) for shape in self.shapes]
        if self.narrow is not None:
            narrow = self._odds(self.narrow)
            found.append(narrow._replace(log_weight=narrow.log_weight + math.log(_NARROW)))
        return tuple(found)

    def _odds(self, shape: Matrix) -> Odds:
        rows, y = self.rows(shape), self.y - self.y.mean() * self._intercept
        m, d, free = len(y), max(float(np.trace(self.shapes[0])), 1.0), self._intercept / len(y)
        values, vectors = eigen(rows.T @ rows)
        varies = values > max(_NO_DIGITS * float(values[-1]), _NO_DIGITS**2 * float(np.sum(self.x**2)))
        values, axes = values[varies], rows @ vectors[:, varies] / np.sqrt(values[varies])
        along, leverage = axes.T @ y, axes**2
        rest = max(float(y @ y) - float(along @ along), 0.0)
        likelihood, dispersion = np.empty(len(_ODDS)), np.empty(len(_ODDS))
        for at, each in enumerate((_ODDS / d).tolist()):
            gain = values / (values + 1 / each)
            residuals = y - axes @ (gain * along)
            left = 1 - np.minimum(leverage @ gain + free, _LARGEST_LEVERAGE)
            relative = 1 + each * values
            marginal = (float(np.sum(along**2 / relative)) + rest) / m
            out = float(np.mean((residuals / left) ** 2))
            by_errors = math.log(max(marginal, self.least)) * m + float(np.sum(np.log(relative)))
            by_rows = math.log(max(out, self.least)) * m
            likelihood[at] = -((1 - _LEFT_OUT) * by_errors + _LEFT_OUT * by_rows) / 2 - math.log1p(_ODDS[at])
            dispersion[at] = max(float(np.mean(residuals**2 / left)), self.least)
        return Odds(shape, likelihood, dispersion, dispersion * _ODDS / d)


@dataclass(frozen=True, eq=False)
class PublicPrior:
    """The fit of labelled public rows alone, in whitened coordinates.

    Attributes
    ----------
    coef : ndarray of shape (p,)
    covariance : ndarray of shape (p, p)
        The covariance of the coefficients that the same fit to the whole population would give.
    dispersion : float
        Residual variance.
    residuals : ndarray of shape (m,)
        Leave-one-out residuals.
    unseen : bool
        Whether there are directions in which the rows, enough of them, do not vary.
    """

    coef: Vector
    covariance: Matrix
    dispersion: float
    residuals: Vector
    unseen: bool = False

    @classmethod
    def of(cls, labels: PublicLabels, coef: Vector, covariance: Matrix, dispersion: float) -> PublicPrior:
        """From the posterior by labels alone."""
        x, (m, p) = labels.x, labels.x.shape
        leverage = np.einsum("ij,ij->i", x @ covariance, x) / dispersion
        residuals = (labels.y - x @ coef) / np.maximum(1 - leverage, 1 - _LARGEST_LEVERAGE)
        small = math.sqrt(labels.least)
        values = np.linalg.eigvalsh(labels.second)
        unseen = m >= p and bool(values[0] <= _UNSEEN * values[-1])
        return cls(coef, covariance, dispersion, np.where(np.abs(residuals) < small, small, residuals), unseen)
