r"""Standard errors of linear coefficients that count the privacy noise."""

from __future__ import annotations

import numpy as np

from dpregress.releases import Entrywise, Frame, Isotropic, Matrix, Moments, Vector
from dpregress.releases.matrices import sandwich


def privacy_covariance(moments: Moments, coef: Vector, system: Matrix) -> Matrix:
    r"""Covariance that the noise of the moments gives whitened coefficients, to first order.

    The noise of ``c - H b`` is ``N g`` with N the joint noise matrix and ``g = (b, -1/u)``. Isotropic noise
    on svec makes N a Gaussian orthogonal ensemble, so ``Cov(N g) = sigma^2 / 2 (|g|^2 I + b b')``, and the
    coefficients' covariance is ``A^{-1} Cov A^{-1} / n^2`` with A the solved system. Independent entries with
    scales of their own give ``Cov(N g) = diag(sum_j s_ij^2 g_j^2) + (s_ij^2 b_i b_j)`` off the diagonal.

    Parameters
    ----------
    moments : Moments
        With isotropic or entrywise noise and a response.
    coef : ndarray of shape (p,)
    system : ndarray of shape (p, p)

    Source: first-order propagation; docs/inference.md derives it.
    """
    assert moments.frame.response is not None
    cross = 1 / moments.frame.response.cross
    if isinstance(moments.noise, Entrywise):
        variance = (moments.noise.sigma / moments.n) ** 2
        columns = variance[:-1, :-1]
        noise = np.diag(columns @ coef**2 + variance[:-1, -1] * cross**2)
        off_diagonal = columns * np.outer(coef, coef)
        np.fill_diagonal(off_diagonal, 0.0)
        return sandwich(system, noise + off_diagonal)
    assert isinstance(moments.noise, Isotropic)
    size = float(coef @ coef) + cross**2
    scale = (moments.noise.sigma / moments.n) ** 2 / 2
    noise = scale * (size * np.eye(len(coef)) + np.outer(coef, coef))
    return sandwich(system, noise)


def sampling_covariance(moments: Moments, coef: Vector, system: Matrix) -> Matrix:
    """Covariance from sampling, ``s^2 A^{-1} / n``: homoscedastic, and generous where there is a penalty."""
    gram = moments.gram
    residual = max(float(moments.response_second - 2 * coef @ moments.cross + coef @ gram @ coef), 0.0)
    return residual / moments.n * sandwich(system, system)


def in_original_units(covariance: Matrix, frame: Frame) -> Vector:
    """Standard deviations of the d slopes in original units, from a covariance of whitened coefficients."""
    scale = frame.response.scale if frame.response is not None else 1.0
    variance = np.einsum("ki,kl,li->i", frame.slopes, covariance, frame.slopes)
    return np.asarray(scale * np.sqrt(np.maximum(variance, 0)))
