r"""Noisy gradient descent for least squares with adaptively clipped gradients."""

from __future__ import annotations

import math

import numpy as np

from dpregress.coordinates import Matrix, Vector

_STEPS = 16
#: The share of mu^2 for the counts that adapt the clip, its target quantile and its rate.
_COUNT_SHARE, _QUANTILE, _RATE = 0.05, 0.7, 0.7


def dp_gd(
    x: Matrix, y: Vector, *, mu: float, start_clip: float, rng: np.random.Generator, steps: int = _STEPS
) -> Vector:
    r"""Coefficients after full-batch steps ``b += mean of clipped x (y - x'b) + noise``; mu-GDP for replacing one row.

    Every step spends ``mu^2 / steps``: a share of it on the number of gradients within the clip (sensitivity 1), the
    rest on their sum (sensitivity ``2 C``). The clip follows the 70% quantile, ``C <- C exp(-rate (count/n - .7))``.

    Parameters
    ----------
    x : ndarray of shape (n, p)
        Whitened, so that a step of length 1 suits every direction.
    y : ndarray of shape (n,)
    mu : float
    start_clip : float
        The first clip, a public number.
    rng : numpy Generator
        For simulations: anyone who knows the seed can subtract the noise.
    steps : int

    References
    ----------
    Andrew, Thakkar, McMahan, Ramaswamy (2021), Differentially private learning with adaptive clipping.
    """
    n, p = x.shape
    lengths = np.linalg.norm(x, axis=1)
    coef, clip = np.zeros(p), start_clip
    part = mu / math.sqrt(steps)
    for _ in range(steps):
        residual = y - x @ coef
        size = np.maximum(np.abs(residual) * lengths, 1e-300)
        total = (residual * np.minimum(1.0, clip / size)) @ x
        sigma = 2 * clip / (part * math.sqrt(1 - _COUNT_SHARE))
        coef = coef + (total + rng.normal(0.0, sigma, p)) / n
        count = float(np.sum(size <= clip)) + rng.normal() / (part * math.sqrt(_COUNT_SHARE))
        clip *= math.exp(-_RATE * (min(max(count / n, 0.0), 1.0) - _QUANTILE))
    return coef
