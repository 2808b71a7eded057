"""Fits without any privacy: the non-private and the public-only answer, and the trivial predictor.

On private rows these are **not private**. They are for comparison with a private fit in demonstrations and benchmarks
and must not be published.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.models import Family
from dpregress.solvers.shared.scoring import fisher_scoring


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Coefficients of shape (d,) and an intercept."""

    coef: Vector
    intercept: float

    def predict(self, x: Matrix) -> Vector:
        """``x @ coef + intercept``, of shape (m,)."""
        return np.asarray(x @ self.coef + self.intercept)


def least_squares(x: Matrix, y: Vector) -> LinearFit:
    """Ordinary least squares with an intercept (minimum norm if it is not unique).

    Parameters
    ----------
    x : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    """
    centre = x.mean(axis=0)
    coef = np.linalg.lstsq(x - centre, y - y.mean(), rcond=None)[0]
    return LinearFit(coef, float(y.mean() - centre @ coef))


def scored_fit(x: Matrix, y: Vector, family: Family) -> LinearFit:
    """Maximum likelihood of a generalised linear model with an intercept, by Fisher scoring.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    family : Family
    """
    spread = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    centre = x.mean(axis=0)
    design = np.column_stack([np.ones(len(x)), (x - centre) / spread])
    start = np.zeros(design.shape[1])
    start[0] = family.link.predictor(float(y.mean()))
    coef = fisher_scoring(design, y, family, start)
    slopes = coef[1:] / spread
    return LinearFit(slopes, float(coef[0] - centre @ slopes))


def mean_only(x: Matrix, y: Vector) -> LinearFit:
    """The mean of y for everybody."""
    return LinearFit(np.zeros(x.shape[1]), float(y.mean()))
