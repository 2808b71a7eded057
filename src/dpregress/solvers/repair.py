"""Repairs of noisy moments: free, since they only see what was released."""

from __future__ import annotations

import math

import numpy as np

from dpregress.releases import Entrywise, Isotropic, Matrix, Moments
from dpregress.releases.matrices import symmetric_power

#: A whitened Gram matrix has eigenvalues near 1; below this share only the noise makes them.
_SMALLEST = 0.2
#: An eigenvalue of this many noises is believed: the floor then vanishes with the noise.
_NOISES = 8.0


def noise_norm(moments: Moments) -> float:
    """The expected spectral norm of the noise in ``moments.gram``: ``sqrt(2 p) sigma / n``.

    Isotropic noise on svec is a Gaussian orthogonal ensemble with variance sigma^2 on the diagonal. Entries of
    their own scales give about twice the largest root of a row's summed variances (Bandeira, van Handel 2016).
    """
    if isinstance(moments.noise, Entrywise):
        sigma = moments.noise.sigma[: moments.frame.order, : moments.frame.order]
        return 2 * float(np.linalg.norm(sigma, axis=1).max()) / moments.n
    if not isinstance(moments.noise, Isotropic):
        raise TypeError(f"no spectral norm is known for {moments.noise}")
    return math.sqrt(2 * moments.frame.order) * moments.noise.sigma / moments.n


def floored(gram: Matrix, floor: float) -> Matrix:
    """The matrix with its eigenvalues raised to at least ``floor``."""
    return symmetric_power(gram, 1.0, smallest=floor)


def gram_floor(moments: Moments) -> float:
    """The floor for a whitened Gram matrix: eight noises, at most 0.2, and never below the noise itself.

    Rare indicators have small eigenvalues that are real, so the floor has to go to zero with the noise.
    """
    noise = noise_norm(moments)
    return max(noise, min(_SMALLEST, _NOISES * noise))
