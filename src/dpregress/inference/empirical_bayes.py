"""How far estimates are from 0, judged by themselves: empirical Bayes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen

#: Candidate variances, relative to what the estimates would show without noise: octaves down to nothing.
_OCTAVES = 40
_PER_OCTAVE = 4


def likely_priors(estimates: Sequence[Vector], covariance: Matrix, odds: Sequence[float]) -> list[tuple[float, float]]:
    """How likely each of several centres is, with the variance v at which ``estimate ~ N(centre, covariance + v I)``.

    Parameters
    ----------
    estimates : sequence of ndarray of shape (d,)
        The estimates about each centre.
    covariance : ndarray of shape (d, d)
    odds : sequence of float
        Of the centres beforehand.

    Returns
    -------
    priors : list of (float, float)
        Weights, which sum to 1, and the variances that maximise the likelihood.

    Examples
    --------
    >>> [(weight, variance)] = likely_priors([np.full(100, 3.0)], np.eye(100), [1.0])
    >>> weight, round(variance, 1)
    (1.0, 7.6)
    """
    if not (np.isfinite(covariance).all() and np.isfinite(estimates).all()):
        return [(share / sum(odds), 0.0) for share in odds]
    noise, vectors = eigen(covariance)
    noise = np.maximum(noise, 1e-300)
    found = [_likeliest_variance(vectors.T @ estimate, noise) for estimate in estimates]
    fits = np.array([fit for fit, _ in found])
    weights = np.asarray(odds) * np.exp(-(fits - fits.min()) / 2)
    return list(zip((weights / weights.sum()).tolist(), [variance for _, variance in found], strict=True))


@np.errstate(over="ignore", invalid="ignore")
def _likeliest_variance(estimate: Vector, noise: Vector) -> tuple[float, float]:
    """Minus twice the largest log-likelihood, up to a constant, and the variance at which it is."""
    squares = estimate**2
    largest = float(squares.max())
    if not math.isfinite(largest):
        return math.inf, 0.0
    candidates = np.append(0.0, largest * 2.0 ** -np.arange(0, _OCTAVES, 1 / _PER_OCTAVE))
    total = noise + candidates[:, None]
    fits = np.sum(np.log(total) + squares / total, axis=1)
    place = int(np.argmin(fits))
    return float(fits[place]), float(candidates[place])
