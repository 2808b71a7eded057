"""Repairs of noisy moments: free, since they only see what was released."""

from __future__ import annotations

import math

import numpy as np

from dpregress.releases import Isotropic, Matrix, Moments

#: Smallest eigenvalue of a whitened Gram matrix that is believed.
_SMALLEST = 0.05


def noise_norm(moments: Moments) -> float:
    """The expected spectral norm of the noise in ``moments.gram``: ``sqrt(2 p) sigma / n``.

    Isotropic noise on svec is a Gaussian orthogonal ensemble with variance sigma^2 on the diagonal.
    """
    if not isinstance(moments.noise, Isotropic):
        raise TypeError(f"no spectral norm is known for {moments.noise}")
    return math.sqrt(2 * moments.frame.order) * moments.noise.sigma / moments.n


def floored(gram: Matrix, floor: float) -> Matrix:
    """The matrix with its eigenvalues raised to at least ``floor``."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def gram_floor(moments: Moments) -> float:
    """The floor for a whitened Gram matrix: the noise's own size, and never below 0.05."""
    return max(_SMALLEST, noise_norm(moments))
