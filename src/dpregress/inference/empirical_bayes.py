"""How far estimates are from 0, judged by themselves: empirical Bayes."""

from __future__ import annotations

import math

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen

#: Candidate variances, relative to what the estimates would show without noise: octaves down to nothing.
_OCTAVES = 40
_PER_OCTAVE = 4


def prior_variance(estimate: Vector, covariance: Matrix) -> float:
    """The variance v that maximises the likelihood of ``estimate ~ N(0, covariance + v I)``.

    Parameters
    ----------
    estimate : ndarray of shape (d,)
    covariance : ndarray of shape (d, d)

    Examples
    --------
    >>> round(prior_variance(np.full(100, 3.0), np.eye(100)), 1)
    7.6
    """
    if not (np.isfinite(covariance).all() and np.isfinite(estimate).all()):
        return 0.0
    noise, vectors = eigen(covariance)
    with np.errstate(over="ignore"):
        squares, noise = (vectors.T @ estimate) ** 2, np.maximum(noise, 1e-300)
    largest = float(squares.max())
    if not math.isfinite(largest):
        return 0.0
    candidates = np.append(0.0, largest * 2.0 ** -np.arange(0, _OCTAVES, 1 / _PER_OCTAVE))
    total = noise + candidates[:, None]
    return float(candidates[np.argmin(np.sum(np.log(total) + squares / total, axis=1))])
