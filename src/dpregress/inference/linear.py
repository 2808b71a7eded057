r"""Standard errors of linear coefficients, including privacy noise."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import sandwich
from dpregress.releases import Moments


def privacy_covariance(moments: Moments, coef: Vector, system: Matrix) -> Matrix:
    r"""The covariance of whitened coefficients due to the noise in the moments, to first order.

    The noise of ``c - H b`` is ``N g`` with N the joint noise matrix and ``g = (b, -1/u)``. The noise law gives
    ``Cov(N g)``, and the covariance of the coefficients is ``A^{-1} Cov A^{-1} / n^2`` with A the solved system.

    Parameters
    ----------
    moments : Moments
        With a response.
    coef : ndarray of shape (p,)
    system : ndarray of shape (p, p)

    Source: first-order propagation; docs/inference.md derives it.
    """
    assert moments.space.response is not None
    joint = np.append(coef, -1 / moments.space.response.cross)
    noise = moments.noise.product_covariance(joint)[: len(coef), : len(coef)]
    return sandwich(system, noise / moments.n**2)


def sampling_covariance(moments: Moments, coef: Vector, system: Matrix) -> Matrix:
    """The sampling covariance ``s^2 A^{-1} / n``: homoscedastic, and conservative if there is a penalty."""
    gram = moments.gram
    residual = max(float(moments.response_second - 2 * coef @ moments.cross + coef @ gram @ coef), 0.0)
    return residual / moments.n * sandwich(system, system)


def in_original_units(covariance: Matrix, space: WhitenedSpace) -> Vector:
    """Standard deviations of the d slopes in original units, from a covariance of whitened coefficients."""
    scale = space.response.scale if space.response is not None else 1.0
    variance = np.einsum("ki,kl,li->i", space.slopes, covariance, space.slopes)
    return np.asarray(scale * np.sqrt(np.maximum(variance, 0)))
