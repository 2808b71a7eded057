r"""Linear regression on noisy moments, each attribute shrunk as far as the noise asks: empirical Bayes.

With ``H = X'X/n + N`` and ``c = X'y/n + e`` the equation error ``c - H b`` of the true coefficients is the noise
``N g``, ``g = (b, -1)``, whose covariance S the noise law knows, plus sampling. Under ``b_j ~ N(0, tau_j^2 I)``
for the design columns of attribute j the posterior mean is ``P H' (H P H' + S)^{-1} c``; the tau_j maximise the
marginal likelihood of c (EM, with a weak prior towards 0), so that attributes whose moments are noise alone drop
out and the others keep their size. S depends on b and is renewed a few times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from dpregress.releases import Matrix, Moments, Vector

_ROUNDS, _UPDATES = 4, 8
_FIRST_VARIANCE, _LEAST_VARIANCE = 0.01, 1e-6
_INTERCEPT_VARIANCE = 1.0
_LEAST_RESIDUAL = 1e-6
_JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Posterior mean and covariance of whitened coefficients, and the variance found for each group."""

    coef: Vector
    covariance: Matrix
    variances: Vector


def solve_by_relevance(moments: Moments, groups: Sequence[int]) -> Shrunk:
    """Coefficients of ``moments``, whose columns after the constant belong to these groups.

    Parameters
    ----------
    moments : Moments
        In a plain frame with an intercept: design columns in [-1, 1], the response too.
    groups : sequence of int
        0, 1, .. for every design column but the constant.
    """
    gram, cross = moments.gram, moments.cross
    group = np.array([-1, *groups])
    spread = np.clip(np.diagonal(gram), 1e-9, None)
    count = np.bincount(group[1:])
    variances = np.full(len(count), _FIRST_VARIANCE)
    coef = np.zeros(len(cross))
    coef[0] = cross[0]
    covariance = np.zeros_like(gram)
    for _ in range(_ROUNDS):
        noise = _equation_noise(moments, coef, spread)
        for _ in range(_UPDATES):
            prior = np.append(_INTERCEPT_VARIANCE, variances[group[1:]])
            half, coef = _posterior(gram, cross, prior, noise)
            left = prior - np.einsum("ij,ij->j", half, half)
            grown = np.bincount(group[1:], weights=(coef**2 + left)[1:])
            variances = np.maximum((grown + 2 * _LEAST_VARIANCE) / (count + 2), _LEAST_VARIANCE / 100)
    covariance = np.diag(prior) - half.T @ half
    return Shrunk(coef, covariance, variances)


def _equation_noise(moments: Moments, coef: Vector, spread: Vector) -> Matrix:
    """Covariance of ``c - H b``: privacy noise at these coefficients, and sampling, per row."""
    joint = np.append(coef, -1.0)
    noise = moments.noise.product_covariance(joint)[:-1, :-1] / moments.n**2
    residual = float(moments.response_second - 2 * coef @ moments.cross + coef @ moments.gram @ coef)
    return np.asarray(noise + np.diag(max(residual, _LEAST_RESIDUAL) / moments.n * spread))


def _posterior(gram: Matrix, cross: Vector, prior: Vector, noise: Matrix) -> tuple[Matrix, Vector]:
    """``L^{-1} H P`` with ``L L' = H P H' + S``, and the posterior mean."""
    scaled = gram * prior
    system = scaled @ gram + noise
    system[np.diag_indices_from(system)] += _JITTER * float(np.mean(np.diagonal(system)))
    root = cholesky(system, lower=True, check_finite=False)
    half = solve_triangular(root, scaled, lower=True, check_finite=False)
    return half, np.asarray(half.T @ solve_triangular(root, cross, lower=True, check_finite=False))
