"""The Gram matrix that steps are solved with: a private one, mixed with that of public rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpregress.coordinates import Matrix
from dpregress.coordinates.matrices import eigen
from dpregress.releases import Isotropic, Moments
from dpregress.solvers.shared.repair import NOISES, STEPS_FOLLOW, floored, gram_floor, noise_norm

#: Eigenvalues of private rows below this share of the public rows' are not due to sampling.
_FAR = 0.2
#: The ratio of squared differences to variances above which both matrices are not from one population.
_ALIKE = 3.0
#: The highest floor of eigenvalues of a Gram matrix that is mixed with the public rows'.
_PUBLIC_FLOOR = 0.2
#: The share of the largest eigenvalue below which public rows are taken not to vary in a direction.
_UNSEEN = 1e-9
#: The share of a trace below which an eigenvalue is due to rounding.
_DIGITS = 1e-12


class MixedGram(NamedTuple):
    """A Gram matrix with which steps are solved.

    Attributes
    ----------
    matrix : ndarray of shape (p, p)
        Positive definite.
    variance : float
        Variance of an entry, as an estimate of the exact matrix of the private rows.
    floor : float
        The eigenvalues below it were raised to it.
    off : float
        A bound on the error in spectral norm: three times the norm of the noise, or the floor of the eigenvalues if
        that is larger.
    """

    matrix: Matrix
    variance: float
    floor: float
    off: float

    @classmethod
    def of(cls, matrix: Matrix, floor: float, variance: float) -> MixedGram:
        """The matrix with its eigenvalues floored."""
        noise = spectral_noise(variance, len(matrix))
        floor = max(floor, _DIGITS * float(np.trace(matrix)))
        return cls(floored(matrix, floor), variance, floor, max(STEPS_FOLLOW * noise, floor))

    @property
    def noise(self) -> float:
        """That in spectral norm, relative to the mean eigenvalue."""
        return spectral_noise(self.variance, len(self.matrix)) / float(np.mean(np.diag(self.matrix)))


def spectral_noise(variance: float, order: int) -> float:
    """The expected spectral norm of symmetric noise whose entries have this variance."""
    return 2 * math.sqrt(order * variance)


def mixed_gram(moments: Moments, public: Matrix | None, noises: float = NOISES) -> MixedGram:
    """The released Gram matrix and that of public rows, weighted by the variances of their entries.

    Parameters
    ----------
    moments : Moments
        Without a response.
    public : ndarray of shape (m, p) or None
        Whitened public rows.
    noises : float
        Eigenvalues are floored at so many noise norms, at most, where there are public rows.
    """
    assert isinstance(moments.noise, Isotropic)
    private = (moments.noise.sigma / moments.n) ** 2 / 2
    if public is None:
        return MixedGram.of(moments.gram, gram_floor(moments, STEPS_FOLLOW), private)
    rows = public * moments.space.weights(public)[:, None]
    gram = rows.T @ rows / len(rows)
    fourth = float(np.mean(np.einsum("ij,ij->i", rows, rows) ** 2))
    sampled = max((fourth - float(np.sum(gram**2))) / len(rows[0]) ** 2, 1e-300) / len(rows)
    apart = float(np.mean((moments.gram - gram) ** 2))
    if apart > _ALIKE * (private + sampled):
        sampled = apart - private
    share = private / (private + sampled)
    mixture = (1 - share) * moments.gram + share * gram
    return MixedGram.of(mixture, min(gram_floor(moments, noises), _PUBLIC_FLOOR), sampled * share)


def far_apart(moments: Moments, public: Matrix) -> bool:
    """Whether private rows, even given the noise, hardly vary in some direction in which public rows do.

    The coordinates are then unsuitable: eigenvalues are floored, and the noise is not distributed as the rows are.

    Parameters
    ----------
    moments : Moments
        Without a response.
    public : ndarray of shape (m, p)
        Whitened public rows.
    """
    rows = public * moments.space.weights(public)[:, None]
    gram = rows.T @ rows / len(rows)
    values, vectors = eigen(gram)
    root = vectors / np.sqrt(np.where(values > _UNSEEN * values[-1], values, 1.0))  # a schema scales what is unseen
    private = moments.gram + noise_norm(moments) * np.eye(len(gram))
    return bool(np.linalg.eigvalsh(root.T @ private @ root)[0] < _FAR)
