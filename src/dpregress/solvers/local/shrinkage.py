r"""A linear fit to a noisy moment whose slopes are shrunk until they are predicted to help.

A study releases ``T = E[k x~ (y - c)]`` with known noise, and the Gram matrix ``G = E[k x~ x~']`` is known from public
rows or released with noise. The intercept follows from the first entry of T. Slopes are ``b = M g`` with
``M = (G + a I)^{-1}``, both centred by the constant, and a is chosen by an unbiased estimate (Stein's) of what the
slopes explain beyond the mean,

    2 b'g - b'Gb - 2 tr(M Sigma) - sigma^2 (|b|^2 tr M + b'Mb),

where Sigma is the covariance of g and ``sigma^2`` the variance of a diagonal entry of the noise in G. Only an a counts
whose gain is two errors above 0, and whose slopes explain no more than a response can vary: without noise
``b'Gb <= b'g <= sqrt(b'Gb E[k (y - c)^2])``. If there is none, the slopes are 0 and everybody is predicted the mean.
All of this is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen

#: Ridge parameters that are tried, as multiples of the mean eigenvalue, and the number of them.
_SMALLEST, _LARGEST, _TRIED = 1e-6, 1e3, 60
#: By how many of its standard deviations the estimated gain is lowered before slopes are told.
_DOUBT = 2.0
#: Eigenvalues below this share of the mean one are directions without rows, and count as the mean one.
_UNSEEN = 1e-6
#: The share of the trace of a Gram matrix below which its centred part is rounding.
_DIGITS = 1e-15
#: Slopes may explain this much more than the bound on the variance of the response: rounding.
_ROUNDING = 1e-6
#: Signal that noise hides: this many standard deviations of a chi-square.
_HIDDEN = 2.0


@dataclass(frozen=True, eq=False)
class LinearMoments:
    """Moments of one population with the law of their noise.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        ``E[k x~ x~']``, symmetric; not necessarily positive definite.
    cross : ndarray of shape (p,)
        ``E[k x~ (y - c)]``.
    noise : ndarray of shape (p, p)
        Covariance of the cross moment: privacy and sampling.
    spread : float
        Variance of a diagonal entry of the noise in the Gram matrix; other entries have half of it. Infinite where
        nothing is known of the Gram matrix of slopes, so that they cannot be told.
    beside : float
        Variance of an entry beside the constant.
    limit : float
        A bound on the variance of the response.
    intercept : bool
    """

    gram: Matrix
    cross: Vector
    noise: Matrix
    spread: float
    beside: float
    limit: float
    intercept: bool


@dataclass(frozen=True, eq=False)
class ShrunkFit:
    """A linear fit ``coef = linear @ cross``, and the covariance of its bias.

    ``told`` is False where all slopes are 0 because the noise hides them.
    """

    coef: Vector
    linear: Matrix
    bias: Matrix
    told: bool


def shrunk_fit(moments: LinearMoments) -> ShrunkFit:
    """The fit with the largest estimated gain over the mean, or the mean where that is in doubt.

    Parameters
    ----------
    moments : LinearMoments
    """
    along, tellable = int(moments.intercept), math.isfinite(moments.spread)
    ratio = moments.gram[along:, 0] / moments.gram[0, 0] if along else np.zeros(len(moments.gram))
    mean = moments.cross[0] / moments.gram[0, 0] if along else 0.0
    centred = moments.gram[along:, along:] - (np.outer(ratio, moments.gram[0, 1:]) if along else 0.0)
    identity = np.eye(len(centred))
    through = np.column_stack([-ratio, identity]) if along else identity
    slopes = np.vstack([-ratio, identity]) if along else identity
    beside = moments.beside * mean**2 if tellable else 0.0
    noise = through @ moments.noise @ through.T + beside * identity

    values, vectors = eigen((centred + centred.T) / 2)
    usual = max(float(values.mean()), _DIGITS * float(np.trace(moments.gram)), 1e-300)
    values = np.where(np.abs(values) < _UNSEEN * usual, usual, values)
    turned, turned_noise = vectors.T @ through @ moments.cross, vectors.T @ noise @ vectors
    misplaced = moments.beside / float(moments.gram[0, 0]) if along and tellable else 0.0
    shaken = math.sqrt(2 * len(values) * moments.spread) if tellable else 0.0
    lowest = max(shaken - values[0], 0.0) + _SMALLEST * usual
    best, chosen = 0.0, math.inf
    for ridge in np.geomspace(lowest, _LARGEST * max(usual, lowest), _TRIED if tellable else 0):
        gain, error = _gain(values, turned, turned_noise, moments.spread, float(ridge))
        gain -= misplaced * float(np.sum((turned / (values + ridge)) ** 2))
        explained = float(np.maximum(values, 0) @ (turned / (values + ridge)) ** 2)
        if explained <= (1 + _ROUNDING) * moments.limit and gain > max(best, _DOUBT * error):
            best, chosen = gain, float(ridge)
    told = math.isfinite(chosen)
    inverse = (vectors / (values + chosen)) @ vectors.T if told else np.zeros_like(centred)
    shortfall = (vectors * (chosen / (values + chosen))) @ vectors.T if told else identity
    linear = slopes @ inverse @ through
    if along:
        linear[0, 0] += 1 / moments.gram[0, 0]
    floor = np.maximum(values, max(shaken, _UNSEEN * usual))
    hidden = min(best + _HIDDEN * _spread_of_noise(turned_noise, floor), moments.limit) / len(values)
    prior = (vectors * (hidden / floor)) @ vectors.T
    bias = slopes @ shortfall @ prior @ shortfall.T @ slopes.T
    return ShrunkFit(linear @ moments.cross, linear, np.asarray(bias), told)


def _gain(values: Vector, score: Vector, noise: Matrix, spread: float, ridge: float) -> tuple[float, float]:
    """What slopes are estimated to explain with this ridge parameter, and the error of that; among eigenvectors."""
    inverse = 1 / (values + ridge)
    coef = inverse * score
    size = float(coef @ coef)
    known = 2 * float(coef @ score) - float(values @ coef**2)
    optimism = 2 * float(inverse @ np.diag(noise)) + spread * (size * float(inverse.sum()) + float(inverse @ coef**2))
    doubt = 4 * float(coef @ noise @ coef) + spread * size**2
    return known - optimism, math.sqrt(max(doubt, 0.0))


def _spread_of_noise(noise: Matrix, values: Vector) -> float:
    """Standard deviation of ``g'G^{-1}g`` where g is noise: signals below it cannot be seen."""
    scaled = noise / np.sqrt(np.outer(values, values))
    return math.sqrt(2 * float(np.sum(scaled**2)))
