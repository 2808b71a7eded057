"""Fisher scoring on rows that need no protection: public rows, and non-private fits for comparison."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.models import Family

#: Steps, and the relative length of one below which they end.
_STEPS, _CONVERGED = 50, 1e-14
#: A step ends where its slope is 0 if at its end the slope has turned by more than this share; but not before this part
#: of it if it leads beyond the end of a link, where slopes of identity and inverse links have no limit.
_TURNED, _LEAST_PART = 0.1, 0.25


def fisher_scoring(
    x: Matrix,
    y: Vector,
    family: Family,
    start: Vector,
    *,
    penalty: Matrix | None = None,
    offset: Vector | None = None,
    begin: Vector | None = None,
) -> Vector:
    """Coefficients that maximise the log-likelihood less ``(b - start)' penalty (b - start) / 2``; minimum-norm steps.

    No step changes a linear predictor by more than the longest step of the link. Where the link is not canonical, the
    expected information may be much less than the observed one, and a step leads too far: it is shortened to where the
    log-likelihood along it has no slope, by a secant.

    Parameters
    ----------
    x : ndarray of shape (m, p)
    y : ndarray of shape (m,)
    family : Family
    start : ndarray of shape (p,)
    penalty : ndarray of shape (p, p), optional
    offset : ndarray of shape (m,), optional
        Added to the predictors.
    begin : ndarray of shape (p,), optional
        Where the first step is made. Default: ``start``.

    Returns
    -------
    coef : ndarray of shape (p,)
    """
    coef = (start if begin is None else begin).copy()
    penalty = np.zeros((len(coef), len(coef))) if penalty is None else penalty
    offset = np.zeros(len(x)) if offset is None else offset

    def gradient(at: Vector, eta: Vector) -> Vector:
        return np.asarray(x.T @ ((y - family.mean(eta)) * family.factor(eta)) - penalty @ (at - start))

    for _ in range(_STEPS):
        eta = x @ coef + offset
        score = gradient(coef, eta)
        information = (x * family.information(eta)[:, None]).T @ x + penalty
        step = np.linalg.lstsq(information, score, rcond=None)[0]
        along = x @ step
        part = min(1.0, family.link.longest / max(float(np.abs(along).max()), 1e-300))
        step *= part
        if not family.canonical:
            end = eta + part * along
            before, after = float(step @ score), float(step @ gradient(coef + step, end))
            least = 0.0 if family.inside(end).all() else _LEAST_PART
            step *= max(before / (before - after), least) if after < -_TURNED * before else 1.0
        moved = coef + step
        still, coef = bool(np.linalg.norm(step) <= _CONVERGED * np.linalg.norm(moved)), moved
        if still:
            break
    return coef
