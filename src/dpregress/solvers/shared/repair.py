"""Repairs of noisy moments: free, since they only see what was released."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.releases import Moments

#: A whitened Gram matrix has eigenvalues near 1; below this share only the noise makes them.
_SMALLEST = 0.2
#: An eigenvalue of this many noises is believed: the floor then vanishes with the noise.
_NOISES = 8.0
#: The same where steps follow. Noise moves an eigenvalue above three noises by a third of itself at most, so that each
#: step leaves a third of its way at most. A higher floor shortens steps along eigenvalues that are known well enough.
STEPS_FOLLOW = 3.0
#: Ratios of an information to the Gram matrix, in medians, that count as this much in their mean.
_ANY = 10.0
#: Share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-15
#: Beside a whitened Gram matrix a penalty of this trace leaves no slope worth a digit; more would drown the intercept.
_ENDLESS = 1e10


def noise_norm(moments: Moments) -> float:
    """The expected spectral norm of the noise in ``moments.gram``: ``sqrt(2 p) sigma / n`` for isotropic noise."""
    return moments.noise.spectral_norm(moments.space.order) / moments.n


def floored(gram: Matrix, floor: float) -> Matrix:
    """The matrix with its eigenvalues raised to at least ``floor``."""
    return symmetric_power(gram, 1.0, smallest=floor)


def gram_floor(moments: Moments, noises: float = _NOISES) -> float:
    """The floor for a whitened Gram matrix: this many noises, at most 0.2, and never below the noise itself.

    Rare indicators have small eigenvalues that are real, so the floor has to go to zero with the noise.
    """
    noise = noise_norm(moments)
    return max(noise, min(_SMALLEST, noises * noise))


def ridge_penalty(space: WhitenedSpace, alpha: float, n: int) -> Matrix:
    """``(alpha / n) Wx Wx'``, the penalty ``alpha ||b||^2`` whitened; no larger than can be solved with."""
    slopes = space.slopes
    shape = slopes @ slopes.T
    return np.asarray(min(alpha / n, _ENDLESS / max(float(np.trace(shape)), 1e-300)) * shape)


def floor_information(information: Matrix, gram: Matrix, share: float) -> Matrix:
    """The information with its eigenvalues relative to the Gram matrix floored: the same in any coordinates."""
    root = np.linalg.cholesky(gram)
    relative = np.linalg.solve(root, np.linalg.solve(root, information).T)
    values = np.linalg.eigvalsh(relative)
    usual = float(np.mean(np.minimum(values, _ANY * np.median(values))))  # directions that no row takes have any ratio
    return np.asarray(root @ floored(relative, share * usual) @ root.T)


def solvable(system: Matrix) -> Matrix:
    """The system with its eigenvalues kept apart from rounding: by now the budget is spent, and it must be solved."""
    return symmetric_power(system, 1.0, smallest=_DIGITS * 100 * float(np.trace(system)))
