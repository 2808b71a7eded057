"""A generalised linear model on public rows: the prior of a private fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpregress.public import PublicMoments
from dpregress.queries import Family
from dpregress.releases import Frame, Matrix, Vector
from dpregress.solvers.scoring import fisher_scoring

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
    x = frame.whiten(public.rows)
    y = public.labels
    start = np.zeros(frame.order)
    if frame.intercept:
        level = family.link.predictor(float(np.mean(y)) * 0.98 + 0.01 * float(np.ptp(y)))
        start = level * frame.constant
    coef = fisher_scoring(x, y, family, start, ridge=_RIDGE)
    eta = x @ coef
    residuals = (y - family.mean(eta)) * family.factor(eta)
    freedom = max(len(y) - frame.order, 1)
    pearson = float(np.sum(residuals**2 / np.maximum(family.information(eta), 1e-12)) / freedom)
    information = (x * family.information(eta)[:, None]).T @ x + _RIDGE * np.eye(frame.order)
    dispersion = max(pearson, 1.0) if family.distribution.fixed_dispersion else pearson
    covariance = np.asarray(dispersion * len(y) / freedom * np.linalg.inv(information))
    return PublicFit(coef, covariance, dispersion, residuals, frame.weights(x))
