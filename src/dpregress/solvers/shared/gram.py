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
#: The highest floor of eigenvalues of a Gram matrix that is mixed with the public rows', or its ratio to their mean.
_PUBLIC_FLOOR = 0.2
#: The share of the largest eigenvalue, or of the squared radius, below which public rows are taken not to vary.
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
    """The released Gram matrix and that of public rows, with one weight for all entries.

    Parameters
    ----------
    moments : Moments
        Without a response.
    public : ndarray of shape (m, p) or None
        Whitened public rows.
    noises : float
        Eigenvalues are floored at so many noise norms, at most, where there are public rows.
    """
    private = _private_variance(moments)
    if public is None:
        return MixedGram.of(moments.gram, gram_floor(moments, STEPS_FOLLOW), private)
    rows, gram = _weighted(moments, public)
    fourth = float(np.mean(np.einsum("ij,ij->i", rows, rows) ** 2))
    sampled = max((fourth - float(np.sum(gram**2))) / len(gram) ** 2, 1e-300) / len(rows)
    sampled = _unlike(moments.gram - gram, private, sampled)
    share = private / (private + sampled)
    mixture = (1 - share) * moments.gram + share * gram
    return MixedGram.of(mixture, min(gram_floor(moments, noises), _PUBLIC_FLOOR), sampled * share)


def entrywise_mixed_gram(moments: Moments, public: Matrix | None) -> MixedGram:
    """The same with a weight for each entry, in the eigenvectors of the public rows' Gram matrix.

    What m public rows leave open of an entry is the variance of their products over m, and no less than that of normal
    rows, where eigenvalues below that of the mean row in one of m rows count as this. Small eigenvalues are
    then known from public rows, however much noise the released matrix has, and those that a few rows decide are not.
    Floors are relative to the mean eigenvalue, which is small if rows are shortened much. Parameters are those of
    :func:`mixed_gram`.
    """
    if public is None:
        return mixed_gram(moments, None)
    rows, gram = _weighted(moments, public)
    usual = float(np.mean(np.diag(gram)))
    if usual <= _UNSEEN * moments.space.radius**2:
        return mixed_gram(moments, public)
    private = _private_variance(moments)
    values, axes = eigen(gram)
    squares = (rows @ axes) ** 2
    likely = np.maximum(values, usual * len(gram) / len(rows))
    sampled = squares.T @ squares / len(rows) - np.diag(values**2)
    sampled = np.maximum(sampled, np.outer(likely, likely)) / len(rows)
    apart = axes.T @ moments.gram @ axes - np.diag(values)
    sampled *= _unlike(apart, private, float(np.mean(sampled))) / float(np.mean(sampled))
    share = sampled / (sampled + private)
    mixture = axes @ (np.diag(values) + share * apart) @ axes.T
    floor = min(gram_floor(moments), _PUBLIC_FLOOR * usual)
    return MixedGram.of(mixture, floor, private * float(np.mean(share)))


def _weighted(moments: Moments, public: Matrix) -> tuple[Matrix, Matrix]:
    """Whitened public rows with the weights of private ones, and their Gram matrix."""
    rows = public * moments.space.weights(public)[:, None]
    return rows, rows.T @ rows / len(rows)


def _private_variance(moments: Moments) -> float:
    """The variance of the noise in an entry of the released matrix."""
    assert isinstance(moments.noise, Isotropic)
    return (moments.noise.sigma / moments.n) ** 2 / 2


def _unlike(apart: Matrix, private: float, sampled: float) -> float:
    """The variance of an entry of the public matrix: by sampling, or their distance if rows are of two populations."""
    distance = float(np.mean(apart**2))
    return distance - private if distance > _ALIKE * (private + sampled) else sampled


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
    _, gram = _weighted(moments, public)
    values, vectors = eigen(gram)
    root = vectors / np.sqrt(np.where(values > _UNSEEN * values[-1], values, 1.0))  # a schema scales what is unseen
    private = moments.gram + noise_norm(moments) * np.eye(len(gram))
    return bool(np.linalg.eigvalsh(root.T @ private @ root)[0] < _FAR)
