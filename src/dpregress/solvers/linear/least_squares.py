r"""Ridge and least squares from released moments."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.releases import Moments
from dpregress.solvers.shared.repair import floored, gram_floor, ridge_penalty


def solve_moments(moments: Moments, *, alpha: float) -> tuple[Vector, Matrix]:
    r"""Whitened coefficients ``b~ = (H + (alpha/n) Wx Wx')^{-1} c`` and the matrix that was inverted.

    H is the released Gram matrix with floored eigenvalues, c the released cross moment, and the penalty
    is ``alpha ||b||^2`` on the slopes in original units (not the intercept), as in scikit-learn's Ridge.

    Parameters
    ----------
    moments : Moments
        With a response.
    alpha : float
        Not negative.

    Returns
    -------
    coef : ndarray of shape (p,)
    system : ndarray of shape (p, p)
    """
    system = floored(moments.gram, gram_floor(moments)) + ridge_penalty(moments.space, alpha, moments.n)
    return np.asarray(np.linalg.solve(system, moments.cross)), system
