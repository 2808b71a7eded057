"""Fisher scoring on rows that need no protection: public rows, and non-private fits for comparison."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.models import Family

_STEPS = 50


def fisher_scoring(
    x: Matrix, y: Vector, family: Family, start: Vector, *, ridge: float = 0.0, offset: Vector | None = None
) -> Vector:
    """Coefficients that maximise the log-likelihood minus ``ridge / 2 ||b - start||^2``, by minimum-norm steps.

    No step changes a linear predictor by more than the longest step of the link.

    Parameters
    ----------
    x : ndarray of shape (m, p)
    y : ndarray of shape (m,)
    family : Family
    start : ndarray of shape (p,)
    ridge : float
    offset : ndarray of shape (m,), optional
        Added to the predictors.

    Returns
    -------
    coef : ndarray of shape (p,)
    """
    coef = start.copy()
    offset = np.zeros(len(x)) if offset is None else offset
    for _ in range(_STEPS):
        eta = x @ coef + offset
        score = x.T @ ((y - family.mean(eta)) * family.factor(eta)) - ridge * (coef - start)
        information = (x * family.information(eta)[:, None]).T @ x + ridge * np.eye(len(coef))
        step = np.linalg.lstsq(information, score, rcond=None)[0]
        coef = coef + step * min(1.0, family.link.longest / max(float(np.abs(x @ step).max()), 1e-300))
    return coef
