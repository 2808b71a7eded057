"""Polynomials that stand for a log-likelihood, so that second moments suffice."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput


def chebyshev_coefficients(degree: int, radius: float) -> Vector:
    """Monomial coefficients of the interpolant of ``-log(1 + exp(-s))`` at Chebyshev nodes of ``[-radius, radius]``.

    Parameters
    ----------
    degree : int
        At least 1.
    radius : float
        Positive.

    Returns
    -------
    coefficients : ndarray of shape (degree + 1,)
        ``b`` of ``b0 + b1 s + b2 s^2 + ..``.

    Examples
    --------
    >>> chebyshev_coefficients(2, 6.0).round(5).tolist()
    [-0.69315, 0.5, -0.07076]
    """
    if degree < 1 or not (np.isfinite(radius) and radius > 0):
        raise InvalidInput(f"degree must be at least 1 and radius positive, not {degree} and {radius}")
    found = Chebyshev.interpolate(lambda s: -np.logaddexp(0, -s), degree, domain=[-radius, radius])
    coefficients = found.convert(kind=Polynomial, domain=[-1, 1]).coef
    return np.pad(coefficients, (0, degree + 1 - len(coefficients)))
