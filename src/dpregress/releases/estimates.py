"""Estimates for inference: not shrunk, with the covariances of sampling and of privacy noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates.svec import Matrix, Vector

#: How the sampling covariance was found: from a release of squared scores, or from the model alone.
CovarianceType = Literal["robust", "model"]

#: The name of the intercept among coefficients.
INTERCEPT = "(intercept)"


@dataclass(frozen=True, eq=False)
class Estimates:
    """Coefficients in original units on which intervals and tests are centred.

    Predictions are made with :class:`Coefficients`, which are shrunk towards what is known beside the private rows.

    Parameters
    ----------
    names : tuple of str
        The intercept first, if there is one, then the features; for several classes ``"class: name"``, class by class.
    estimate : ndarray of shape (k,)
    sampling, privacy : ndarray of shape (k, k)
        Covariances due to the sampling of rows, and due to privacy noise.
    identified : ndarray of bool, of shape (k,)
        Whether released and public facts determine the coefficient; no interval is offered for others.
    shift : ndarray of shape (k,)
        How far row weights and clips may move the coefficient from that of the unweighted population, if the model
        misses the mean response by a tenth of the residuals' standard deviation.
    df : float
        Degrees of freedom of the sampling covariance; infinite if it is the model's.
    cov_type : {"robust", "model"}
    dispersion : float or None
        The variance of a response about its mean over that which the family gives it (the residual variance of a
        linear model), if it was released.
    spread : ndarray of shape (d, d) or None
        The released covariance of the features in original units.
    """

    names: tuple[str, ...]
    estimate: Vector
    sampling: Matrix
    privacy: Matrix
    identified: NDArray[np.bool_]
    shift: Vector
    df: float
    cov_type: CovarianceType
    dispersion: float | None = None
    spread: Matrix | None = None

    @property
    def covariance(self) -> Matrix:
        """Of sampling and privacy noise together, of shape (k, k)."""
        return np.asarray(self.sampling + self.privacy)

    @property
    def degrees_of_freedom(self) -> Vector:
        """Of each ratio, of shape (k,): only the sampling part of a variance is estimated (Satterthwaite 1946)."""
        variance, sampling = np.diag(self.covariance), np.diag(self.sampling)
        share = np.divide(sampling, variance, out=np.ones(len(variance)), where=variance > 0)
        return np.asarray(self.df / np.maximum(share, 1e-12) ** 2)
