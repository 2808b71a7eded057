r"""Rows that stand in for the private ones: public or normal rows with the private Gram matrix.

Fisher informations at any coefficients, and mean predictions, are averages over them: the private Gram
matrix is released once and the weights of every Newton step come from here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from dpregress.public import PublicMoments
from dpregress.queries import Family
from dpregress.releases import Frame, Matrix, Vector
from dpregress.releases.matrices import symmetric_power

_PSEUDO_ROWS_LOG2 = 12
#: Smallest eigenvalue of the public rows' weighted Gram matrix that recolouring may stretch.
_SMALLEST = 1e-3


@dataclass(frozen=True, eq=False)
class StandIns:
    """Weighted whitened rows ``s x~`` of shape (m, p) and their weights s, of shape (m,)."""

    x: Matrix
    weight: Vector

    def predictor(self, coef: Vector) -> Vector:
        """``x~'b`` of the rows before their weights."""
        return np.asarray(self.x @ coef / self.weight)

    def information(self, family: Family, coef: Vector) -> Matrix:
        """``mean s^2 x~ x~' m'^2 / V`` at these coefficients."""
        weighted = self.x * family.information(self.predictor(coef))[:, None]
        return np.asarray(weighted.T @ self.x / len(self.x))


def stand_ins(frame: Frame, public: PublicMoments | None, gram: Matrix) -> StandIns:
    """Public rows recoloured to a private Gram matrix; normal rows where there are no public rows.

    Parameters
    ----------
    frame : Frame
    public : PublicMoments or None
    gram : ndarray of shape (p, p)
        Positive definite: the repaired ``mean s^2 x~ x~'``.
    """
    if public is None or public.rows is None:
        return _normal(frame, gram)
    whitened = frame.whiten(public.rows)
    weight = frame.weights(whitened)
    rows = whitened * weight[:, None]
    plain = symmetric_power(rows.T @ rows / len(rows), -0.5, smallest=_SMALLEST)
    return StandIns(rows @ plain @ symmetric_power(gram, 0.5), weight)


def _normal(frame: Frame, gram: Matrix) -> StandIns:
    """Quasi-random normal rows with the mean and covariance that the Gram matrix implies in original units."""
    back = np.linalg.inv(frame.whitening)
    second = back @ gram @ back.T
    degrees = len(frame.features)
    points = qmc.Sobol(degrees, scramble=False).random_base2(_PSEUDO_ROWS_LOG2)
    normal = ndtri(points * (1 - 2.0**-_PSEUDO_ROWS_LOG2) + 2.0 ** -(_PSEUDO_ROWS_LOG2 + 1))
    if not frame.intercept:
        rows = normal @ np.linalg.cholesky(second).T
        return StandIns(rows @ frame.whitening.T, np.ones(len(rows)))
    share = float(second[0, 0])  # E s^2: the constant's own second moment
    mean = second[1:, 0] / share
    covariance = second[1:, 1:] / share - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    x = mean + normal @ (vectors * np.sqrt(np.maximum(values, 0))).T
    rows = np.column_stack([np.ones(len(x)), x]) @ frame.whitening.T
    return StandIns(rows * np.sqrt(share), np.full(len(x), np.sqrt(share)))
