r"""A weakly informative prior: no column changes a predictor by much more than five units of the link.

Some directions of the features are known to nobody: public rows do not vary there, and the released Gram matrix has
nothing but noise. Two columns that determine each other in nearly all rows leave one, a level that few rows have
another. A likelihood lets coefficients slide there, and the few rows that such a direction tells apart are then
predicted with certainty, and wrongly. The prior has the precision

.. math:: P = W_x S^2 W_x' / \tau^2

of whitened coefficients: that of independent slopes in original units with standard deviations ``tau / S_j``. It is
that of Gelman, Jakulin, Pittau and Su (2008), wider and with normal tails: S_j is the range of column j in the schema,
but at most five standard deviations if that is a number whose bounds may be far too wide, and ``tau`` is 5. Between 0
and 1 it is not: of an indicator of a rare level five standard deviations are next to nothing. Where estimated slopes b
are larger as a whole, as between classes that a plane separates, the prior is as wide as they are: its variance is
multiplied by four times the mean square of ``z = sqrt(P) b``. In the eigenvectors of the covariance V of z without the
prior, a square counts by ``1 / (1 + v)``, with v its eigenvalue, or as what exceeds ``9 v`` if that is more: noise
along a direction that nobody knows does not widen the prior that is to hold it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import definite_inverse, eigen
from dpregress.models import Family
from dpregress.public.schema import Schema
from dpregress.solvers.shared.explained import Known, Prior

#: The standard deviation of a column's effect over its range, in units of the link.
_EFFECT = 5.0
#: The range is at most so many standard deviations of the column: declared bounds may be far too wide.
_SPREADS = 5.0
#: The variance is so many times the mean square of slopes where that is more.
_GENEROUS = 4.0
#: What exceeds so many variances of a slope is no noise.
_CERTAIN = 9.0
#: The share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-13


@dataclass(frozen=True, eq=False)
class WeakPrior:
    """Of all slopes; the intercept is free.

    Attributes
    ----------
    root : ndarray of shape (q, d)
        Whitened coefficients to slopes in standard deviations of the prior: ``P = root root'``.
    """

    root: Matrix

    @cached_property
    def precision(self) -> Matrix:
        """Of whitened coefficients, of shape (q, q)."""
        return np.asarray(self.root @ self.root.T)

    @classmethod
    def of(cls, space: WhitenedSpace, gram: Matrix, schema: Schema | None) -> Self:
        """From the whitened Gram matrix, which tells the standard deviations of columns, and the schema's ranges."""
        reach = _SPREADS * space.deviations(gram)
        if schema is not None:
            reach = np.array([_reach(schema, name, most) for name, most in zip(space.features, reach, strict=True)])
        return cls(np.asarray(space.slopes * (reach / _EFFECT)))

    def repeated(self, times: int) -> WeakPrior:
        """The same for each of so many contrasts of classes, in neighbouring coefficients."""
        return WeakPrior(np.asarray(np.kron(self.root, np.eye(times))))

    def width(self, coef: Vector, known: Matrix) -> float:
        """What the variance is multiplied by at these coefficients, at least 1.

        Parameters
        ----------
        coef : ndarray of shape (q,)
        known : ndarray of shape (q, q)
            Their precision without this prior.
        """
        variance, axes = eigen(self.root.T @ definite_inverse(known, _DIGITS) @ self.root)
        squares = (axes.T @ (self.root.T @ coef)) ** 2
        variance = np.maximum(variance, 0)
        counted = np.maximum(squares / (1 + variance), squares - _CERTAIN * variance)
        return max(1.0, _GENEROUS * float(np.mean(counted)))

    def beside(self, prior: Prior, width: float) -> Prior:
        """Another prior and this one, around the other's coefficients."""
        return _Joined(prior, self.precision / width)


@dataclass(frozen=True, eq=False)
class _Joined(Prior):
    """A prior and more precision, around where its first score is asked."""

    prior: Prior
    more: Matrix

    @property
    def coef(self) -> Vector:  # type: ignore[override]  # of the prior
        return self.prior.coef

    def known(self, told: Vector, scores: Matrix) -> Known:
        mean, precision = self.prior.known(told, scores)
        whole = precision + self.more
        return Known(mean + definite_inverse(whole, _DIGITS) @ self.more @ (self.coef - mean), whole)


def has_scale(family: Family) -> bool:
    """Whether five units of its link are much, whatever the response: not where predictors have the response's unit."""
    return math.isfinite(family.link.longest)


def _reach(schema: Schema, name: str, most: float) -> float:
    """Between the bounds of a design column: all of it for an indicator, and for what is declared between 0 and 1."""
    if not schema.bounds_all([name]):
        return most
    lower, upper = schema.bounds_of(name)
    whole = schema.indicates(name) or (upper - lower == 1 and lower == round(lower))
    return upper - lower if whole else min(upper - lower, most)
