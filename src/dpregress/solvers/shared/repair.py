"""Repairs of noisy moments, which are post-processing of releases."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.releases import Moments

#: The highest floor: a whitened Gram matrix has eigenvalues near 1, and smaller ones are mostly noise.
LARGEST_FLOOR = 0.2
#: The floor in noise norms: larger eigenvalues are used as they are, and the floor vanishes with the noise.
NOISES = 8.0
#: The same if steps follow. Noise changes an eigenvalue above three noise norms by at most a third, so that each step
#: leaves at most a third of its way. A higher floor would shorten steps along eigenvalues that are known well enough.
STEPS_FOLLOW = 3.0
#: Ratios of an information to the Gram matrix, in medians, that count as this much in their mean.
_ANY = 10.0
#: The share of a matrix's trace below which an eigenvalue is due to rounding.
_DIGITS = 1e-15
#: Penalty on what standardised columns do not vary in, as a share of the mean one on their slopes.
_NEARLY_FREE = 0.001
#: Beside a whitened Gram matrix a penalty of this trace leaves no slope worth a digit; more would drown the intercept.
_ENDLESS = 1e10


def noise_norm(moments: Moments) -> float:
    """The expected spectral norm of the noise in ``moments.gram``: ``sqrt(2 p) sigma / n`` for isotropic noise."""
    return moments.noise.spectral_norm(moments.space.order) / moments.n


def floored(gram: Matrix, floor: float) -> Matrix:
    """The matrix with its eigenvalues raised to at least ``floor``."""
    return symmetric_power(gram, 1.0, smallest=floor)


def gram_floor(moments: Moments, noises: float = NOISES) -> float:
    """The floor for a whitened Gram matrix: this many noise norms, at most 0.2, and never below one noise norm.

    Rare indicators have small eigenvalues that are real, so the floor must vanish with the noise.
    """
    noise = noise_norm(moments)
    return max(noise, min(LARGEST_FLOOR, noises * noise))


def ridge_penalty(space: WhitenedSpace, alpha: float, n: int) -> Matrix:
    """``(alpha / n) Wx Wx'``, the penalty ``alpha ||b||^2`` in whitened coordinates, limited to solvable size."""
    slopes = space.slopes
    shape = slopes @ slopes.T
    return np.asarray(min(alpha / n, _ENDLESS / max(float(np.trace(shape)), 1e-300)) * shape)


def standardised_penalty(space: WhitenedSpace, deviations: Vector) -> Matrix:
    """The penalty of one row on slopes of standardised columns, in whitened coordinates.

    What the columns do not vary in has a thousandth of the mean, in whatever units the coordinates are.

    Parameters
    ----------
    space : WhitenedSpace
    deviations : ndarray of shape (d,)
        Standard deviations of the columns, in original units.
    """
    standard = space.slopes * deviations
    penalty = np.asarray(standard @ standard.T)
    usual = float(np.trace(penalty)) / max(len(deviations), 1)
    return penalty + _NEARLY_FREE * (usual or 1.0) * np.eye(space.order)


def floor_information(information: Matrix, gram: Matrix, share: float) -> Matrix:
    """The information with a floor on its eigenvalues relative to the Gram matrix; invariant to coordinates."""
    root = np.linalg.cholesky(gram)
    relative = np.linalg.solve(root, np.linalg.solve(root, information).T)
    values = np.linalg.eigvalsh(relative)
    usual = float(
        np.mean(np.minimum(values, _ANY * np.median(values)))
    )  # the ratio is arbitrary in directions without rows
    return np.asarray(root @ floored(relative, share * usual) @ root.T)


def solvable(system: Matrix) -> Matrix:
    """The system with eigenvalues raised above rounding: the budget is already spent, so it must be solved."""
    return symmetric_power(system, 1.0, smallest=_DIGITS * 100 * float(np.trace(system)))
