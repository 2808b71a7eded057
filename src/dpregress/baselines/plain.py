"""Fits without any privacy: the non-private and the public-only answer, and the trivial predictor.

On private rows these are **not private**; they stand beside a private fit in demonstrations and
benchmarks, never in a publication.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpregress.releases import Matrix, Vector


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Coefficients of shape (d,) and an intercept."""

    coef: Vector
    intercept: float

    def predict(self, x: Matrix) -> Vector:
        """``x @ coef + intercept``, of shape (m,)."""
        return np.asarray(x @ self.coef + self.intercept)


def least_squares(x: Matrix, y: Vector) -> LinearFit:
    """Ordinary least squares with an intercept (minimum norm where it is not unique).

    Parameters
    ----------
    x : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    """
    centre = x.mean(axis=0)
    coef = np.linalg.lstsq(x - centre, y - y.mean(), rcond=None)[0]
    return LinearFit(coef, float(y.mean() - centre @ coef))


def mean_only(x: Matrix, y: Vector) -> LinearFit:
    """The mean of y for everybody."""
    return LinearFit(np.zeros(x.shape[1]), float(y.mean()))
