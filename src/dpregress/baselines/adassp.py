r"""AdaSSP: perturbed sufficient statistics with a ridge chosen from a private smallest eigenvalue."""

from __future__ import annotations

import math

import numpy as np

from dpregress.coordinates import Matrix, Vector, svec

#: Probability that the ridge is smaller than the noise.
_RHO = 0.05


def bounded(x: Matrix, y: Vector, radius: float, bound: float) -> tuple[Matrix, Vector]:
    """Rows of norm at most ``radius`` and responses within ``+-bound``, each clipped on its own."""
    norms = np.maximum(np.linalg.norm(x, axis=1), 1e-300)
    return x * np.minimum(1.0, radius / norms)[:, None], np.clip(y, -bound, bound)


def adassp(x: Matrix, y: Vector, *, mu: float, radius: float, bound: float, rng: np.random.Generator) -> Vector:
    r"""Coefficients ``(X'X + N + lam I)^{-1} (X'y + e)``; mu-GDP for replacing one row.

    Three releases at ``mu/sqrt 3`` each, with the exact Gaussian calibration: the smallest eigenvalue (sensitivity
    ``R^2``), svec of X'X (``sqrt 2 R^2``) and X'y (``2 R C``). ``lam`` makes up for what the smallest eigenvalue lacks
    of the noise's spectral norm.

    Parameters
    ----------
    x : ndarray of shape (n, p)
        With a column of ones where there is to be an intercept; whiten before for the whitened variant.
    y : ndarray of shape (n,)
    mu : float
    radius, bound : float
        Public bounds on the norm of a row and on a response; what lies beyond is clipped.
    rng : numpy Generator
        For simulations: whoever knows its seed can take the noise off.

    References
    ----------
    Wang (2018), Revisiting differentially private linear regression, Algorithm 2.
    """
    x, y = bounded(x, y, radius, bound)
    p = x.shape[1]
    part = mu / math.sqrt(3)
    eigen_sigma, gram_sigma, cross_sigma = radius**2 / part, math.sqrt(2) * radius**2 / part, 2 * radius * bound / part
    gram = x.T @ x
    smallest = float(np.linalg.eigvalsh(gram)[0]) + eigen_sigma * rng.normal()
    smallest = max(smallest - eigen_sigma * math.sqrt(2 * math.log(1 / _RHO)), 0.0)
    # spectral norm of a Gaussian orthogonal ensemble with off-diagonal variance sigma^2 / 2
    norm = gram_sigma / math.sqrt(2) * math.sqrt(p * math.log(2 * p**2 / _RHO))
    noisy = gram + svec.unsvec(rng.normal(0.0, gram_sigma, svec.length(p)), p) + max(norm - smallest, 0.0) * np.eye(p)
    return np.asarray(np.linalg.solve(noisy, x.T @ y + rng.normal(0.0, cross_sigma, p)))
