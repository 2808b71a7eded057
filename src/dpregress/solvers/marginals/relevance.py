r"""Regression on released moments, each attribute shrunk as far as the noise asks: empirical Bayes.

Coefficients b solve ``c = s(b)``: ``s(b) = H b`` for least squares, ``E x m(x'b)`` over a released mixture for
counts. The error ``c - s(b)`` at the true coefficients is noise whose
covariance S the noise law knows (of ``N g``, ``g = (w b, -1)``), plus sampling. With ``b_j ~ N(0, tau_j^2 I)``
for the design columns of attribute j, and s linearised, ``s(b) = H b + const``, the posterior mean is
``P H' (H P H' + S)^{-1} c~``. The tau_j maximise the marginal likelihood (EM), each as if its attribute had one more
column, of the mean size of all: an attribute whose moments are noise alone nearly drops out, the others keep
their size, and noise in many attributes is not taken for a few that matter. S and H are renewed as b moves.

Source: MacKay (1992), Tipping (2001), automatic relevance determination; docs/methods/marginals.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit, logit

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.releases import Moments

_UPDATES = 8
_FIRST_VARIANCE, _LEAST_VARIANCE = 0.004, 1e-7
_LEAST_RESIDUAL = 1e-6
_JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class Linearised:
    """``s(b) = H b + const`` near some coefficients.

    Attributes
    ----------
    slope : ndarray of shape (p, p)
        H, symmetric.
    working : ndarray of shape (p,)
        ``c - s(b) + H b``.
    weight : float
        By how much noise in the features' second moments counts: 1 for least squares.
    residual : float
        The mean squared residual.
    """

    slope: Matrix
    working: Vector
    weight: float
    residual: float


class Equations(ABC):
    """The estimating equations of a model."""

    #: How often H and S are renewed.
    rounds: int
    #: Prior variances of the intercept, and to begin with of the slopes.
    intercept_variance: float = 1.0
    slope_variance: float = _FIRST_VARIANCE

    @abstractmethod
    def start(self, moments: Moments) -> Vector:
        """Coefficients of the model without slopes."""

    @abstractmethod
    def linearise(self, moments: Moments, coef: Vector) -> Linearised:
        """Near these coefficients."""


class LeastSquares(Equations):
    """``c = H b`` with the released Gram matrix."""

    rounds = 4

    def start(self, moments: Moments) -> Vector:
        coef = np.zeros(moments.space.order)
        coef[0] = moments.cross[0]
        return coef

    def linearise(self, moments: Moments, coef: Vector) -> Linearised:
        gram, cross = moments.gram, moments.cross
        residual = float(moments.response_second - 2 * coef @ cross + coef @ gram @ coef)
        return Linearised(gram, cross, 1.0, residual)


class _Sampled(Equations):
    """``c = E x m(x'b)`` over design rows that stand for the released mixture."""

    rounds = 12
    slope_variance = 0.4

    def __init__(self, design: Matrix) -> None:
        self.design = design

    @abstractmethod
    def means(self, predictors: Vector) -> tuple[Vector, Vector]:
        """``m`` and ``m'`` at the predictors."""

    def linearise(self, moments: Moments, coef: Vector) -> Linearised:
        mean, slope = self.means(self.design @ coef)
        rows = len(self.design)
        information = (self.design * slope[:, None]).T @ self.design / rows
        score = moments.cross - self.design.T @ mean / rows
        return Linearised(information, score + information @ coef, float(slope.mean()), float(slope.mean()))


class Counts(_Sampled):
    """``m = exp(eta)``; the response is not negative, in the units of ``centre + scale y``."""

    intercept_variance = 100.0
    #: Predictors that no count of a public domain needs to leave.
    _REACH = 30.0

    def __init__(self, design: Matrix, centre: float, scale: float) -> None:
        super().__init__(design)
        self._centre, self._scale = centre, scale

    def start(self, moments: Moments) -> Vector:
        coef = np.zeros(moments.space.order)
        coef[0] = np.log(max(self._centre + self._scale * moments.cross[0], 1e-3))
        return coef

    def means(self, predictors: Vector) -> tuple[Vector, Vector]:
        mean = np.exp(np.clip(predictors, -self._REACH, np.log(self._centre + self._scale) + 1))
        return (mean - self._centre) / self._scale, np.maximum(mean / self._scale, 1e-9)


class Chances(_Sampled):
    """``m = expit(eta)``, the probability of the second of two classes."""

    intercept_variance = 25.0

    def start(self, moments: Moments) -> Vector:
        coef = np.zeros(moments.space.order)
        coef[0] = logit(np.clip(moments.cross[0], 1e-3, 1 - 1e-3))
        return coef

    def means(self, predictors: Vector) -> tuple[Vector, Vector]:
        mean = expit(predictors)
        return mean, np.maximum(mean * (1 - mean), 1e-6)


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Posterior mean and covariance of whitened coefficients, and the variance found for each group."""

    coef: Vector
    covariance: Matrix
    privacy: Matrix
    variances: Vector


def solve_by_relevance(moments: Moments, groups: Sequence[int], equations: Equations | None = None) -> Shrunk:
    """Coefficients of ``moments``, whose columns after the constant belong to these groups.

    Parameters
    ----------
    moments : Moments
        In a plain space with an intercept: design columns in [-1, 1], the response too.
    groups : sequence of int
        0, 1, .. for every design column but the constant.
    equations : Equations, optional
        Default: least squares.
    """
    equations = LeastSquares() if equations is None else equations
    group = np.array([-1, *groups])
    if len(group) != moments.space.order or not moments.space.intercept:
        raise InvalidInput("every design column but the constant needs a group")
    count = np.bincount(group[1:])
    variances = np.full(len(count), equations.slope_variance)
    coef = equations.start(moments)
    for _ in range(equations.rounds):
        near = equations.linearise(moments, coef)
        noise = equation_noise(moments, near, coef)
        for _ in range(_UPDATES):
            prior = np.append(equations.intercept_variance, variances[group[1:]])
            half, coef = _posterior(near.slope, near.working, prior, noise.total)
            left = prior - np.einsum("ij,ij->j", half, half)
            grown = np.bincount(group[1:], weights=(coef**2 + left)[1:])
            common = float(count @ np.sqrt(grown / count) / count.sum()) ** 2
            variances = np.maximum((grown + common) / (count + 1), _LEAST_VARIANCE)
    covariance, privacy = _spread(near.slope, prior, noise)
    return Shrunk(coef, covariance, privacy, variances)


def at_mode(moments: Moments, near: Linearised, coef: Vector, prior: Vector) -> Shrunk:
    """Coefficients found elsewhere, with the covariances of the posterior of these moments near them.

    Parameters
    ----------
    moments : Moments
    near : Linearised
        At ``coef``.
    coef, prior : ndarray of shape (p,)
        The prior variances of the coefficients.
    """
    covariance, privacy = _spread(near.slope, prior, equation_noise(moments, near, coef))
    return Shrunk(coef, covariance, privacy, prior[1:])


class ErrorLaw(NamedTuple):
    """Covariances of the error of the equations: by privacy noise, and by sampling."""

    privacy: Matrix
    sampling: Matrix

    @property
    def total(self) -> Matrix:
        """Of both."""
        return self.privacy + self.sampling


def equation_noise(moments: Moments, near: Linearised, coef: Vector) -> ErrorLaw:
    """What noise does to the equations near some coefficients."""
    private = moments.noise.product_covariance(np.append(near.weight * coef, -1.0))[:-1, :-1] / moments.n**2
    spread = np.clip(np.diagonal(moments.gram), 1e-9, None)
    return ErrorLaw(private, np.diag(max(near.residual, _LEAST_RESIDUAL) / moments.n * spread))


def _spread(slope: Matrix, prior: Vector, noise: ErrorLaw) -> tuple[Matrix, Matrix]:
    """The posterior covariance, and what of it is privacy noise."""
    half, _ = _posterior(slope, np.zeros(len(prior)), prior, noise.total)
    gain = np.linalg.solve(slope @ (prior[:, None] * slope) + noise.total, slope * prior)
    return np.diag(prior) - half.T @ half, np.asarray(gain.T @ noise.privacy @ gain)


def _posterior(slope: Matrix, working: Vector, prior: Vector, noise: Matrix) -> tuple[Matrix, Vector]:
    """``L^{-1} H P`` with ``L L' = H P H' + S``, and the posterior mean."""
    scaled = slope * prior
    system = scaled @ slope + noise
    system[np.diag_indices_from(system)] += _JITTER * float(np.mean(np.diagonal(system)))
    root = cholesky(system, lower=True, check_finite=False)
    half = solve_triangular(root, scaled, lower=True, check_finite=False)
    return half, np.asarray(half.T @ solve_triangular(root, working, lower=True, check_finite=False))
