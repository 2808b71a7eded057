"""A generalised linear model on public rows: the prior of a private fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpregress.public import PublicMoments
from dpregress.queries import Family
from dpregress.releases import Frame, Matrix, Vector

_STEPS = 50
#: Penalty on whitened slopes, in rows: public rows are few.
_RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class PublicFit:
    """Whitened coefficients, their covariance, the dispersion, and the scores' sizes of the public rows."""

    coef: Vector
    covariance: Matrix
    dispersion: float
    residuals: Vector
    weight: Vector


def fit_public(public: PublicMoments, frame: Frame, family: Family) -> PublicFit:
    """Penalised scoring on labelled public rows.

    Parameters
    ----------
    public : PublicMoments
        Labelled, with rows.
    frame : Frame
    family : Family
    """
    assert public.rows is not None
    assert public.labels is not None
    x = public.rows @ frame.slopes.T + (0.0 if frame.shift is None else frame.shift)
    y = public.labels
    penalty = _RIDGE * np.eye(frame.order)
    coef = np.zeros(frame.order)
    if frame.intercept:
        start = family.link.predictor(float(np.mean(y)) * 0.98 + 0.01 * float(np.ptp(y)))
        coef = start * np.linalg.solve(frame.whitening.T, np.eye(frame.order)[0])
    centre = coef.copy()
    for _ in range(_STEPS):
        eta = x @ coef
        score = x.T @ ((y - family.mean(eta)) * family.factor(eta)) - penalty @ (coef - centre)
        information = (x * family.information(eta)[:, None]).T @ x + penalty
        step = np.linalg.solve(information, score)
        coef = coef + step * min(1.0, family.link.longest / max(float(np.abs(x @ step).max()), 1e-300))
    eta = x @ coef
    residuals = (y - family.mean(eta)) * family.factor(eta)
    freedom = max(len(y) - frame.order, 1)
    pearson = float(np.sum(residuals**2 / np.maximum(family.information(eta), 1e-12)) / freedom)
    information = (x * family.information(eta)[:, None]).T @ x + penalty
    weight = np.minimum(1.0, frame.radius / np.maximum(np.linalg.norm(x, axis=1), 1e-300))
    dispersion = max(pearson, 1.0) if family.distribution.fixed_dispersion else pearson
    covariance = np.asarray(dispersion * len(y) / freedom * np.linalg.inv(information))
    return PublicFit(coef, covariance, dispersion, residuals, weight)
