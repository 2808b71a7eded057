"""Fisher scoring on rows that need no protection: public rows, and non-private fits for comparison."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.models import Family

#: Steps, and the relative length of one below which they end.
_STEPS, _CONVERGED = 50, 1e-14


def fisher_scoring(
    x: Matrix, y: Vector, family: Family, start: Vector, *, penalty: Matrix | None = None, offset: Vector | None = None
) -> Vector:
    """Coefficients that maximise the log-likelihood less ``(b - start)' penalty (b - start) / 2``; minimum-norm steps.

    No step changes a linear predictor by more than the longest step of the link.

    Parameters
    ----------
    x : ndarray of shape (m, p)
    y : ndarray of shape (m,)
    family : Family
    start : ndarray of shape (p,)
    penalty : ndarray of shape (p, p), optional
    offset : ndarray of shape (m,), optional
        Added to the predictors.

    Returns
    -------
    coef : ndarray of shape (p,)
    """
    coef = start.copy()
    penalty = np.zeros((len(coef), len(coef))) if penalty is None else penalty
    offset = np.zeros(len(x)) if offset is None else offset
    for _ in range(_STEPS):
        eta = x @ coef + offset
        score = x.T @ ((y - family.mean(eta)) * family.factor(eta)) - penalty @ (coef - start)
        information = (x * family.information(eta)[:, None]).T @ x + penalty
        step = np.linalg.lstsq(information, score, rcond=None)[0]
        moved = coef + step * min(1.0, family.link.longest / max(float(np.abs(x @ step).max()), 1e-300))
        still, coef = bool(np.linalg.norm(moved - coef) <= _CONVERGED * np.linalg.norm(moved)), moved
        if still:
            break
    return coef
