"""Noise laws: the distribution of the noise in a release, which inference and repair use."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates.svec import Matrix, Vector
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """The distribution of the noise in a release's vector of totals."""

    @abstractmethod
    def __add__(self, other: NoiseLaw) -> NoiseLaw:
        """The law of the sum of two independent noises."""

    @abstractmethod
    def product_covariance(self, vector: Vector) -> Matrix:
        """The covariance of ``N v``, where N is the symmetric noise matrix in released second moments."""

    @abstractmethod
    def cut(self, places: Sequence[int]) -> NoiseLaw:
        """The law of the noise in these rows and columns of N."""

    def spectral_norm(self, order: int) -> float:
        """Approximate expected spectral norm of the first ``order`` rows and columns of N.

        ``2 sqrt(E |N v|^2)`` at the unit vector with equal entries: exact to leading order for isotropic noise.
        """
        covariance = self.cut(range(order)).product_covariance(np.full(order, order**-0.5))
        return 2 * math.sqrt(float(np.trace(covariance)))


@dataclass(frozen=True)
class Isotropic(NoiseLaw):
    """Independent normal noise with the same standard deviation in every entry.

    Parameters
    ----------
    sigma : float
        In the units of the total (not of the mean).
    """

    sigma: float

    def __add__(self, other: NoiseLaw) -> Isotropic:
        if not isinstance(other, Isotropic):
            return NotImplemented
        return Isotropic(math.hypot(self.sigma, other.sigma))

    def product_covariance(self, vector: Vector) -> Matrix:
        """``sigma^2 / 2 (|v|^2 I + v v')``: noise of one scale on svec is a Gaussian orthogonal ensemble."""
        scale = self.sigma**2 / 2
        return np.asarray(scale * (float(vector @ vector) * np.eye(len(vector)) + np.outer(vector, vector)))

    def cut(self, places: Sequence[int]) -> Isotropic:  # noqa: ARG002 - every part of it looks alike
        """The same law."""
        return self

    def spectral_norm(self, order: int) -> float:
        """``sqrt(2 p) sigma``."""
        return math.sqrt(2 * order) * self.sigma


@dataclass(frozen=True)
class UnitMessages(NoiseLaw):
    """A sum of randomised unit vectors. Sampling and privacy noise together have the same second moment in every entry.

    Parameters
    ----------
    sigma : float
        Root of that second moment, in the units of the total. It is an average over directions, and exact for every
        entry if the messages are uniformly distributed over directions.
    private : float
        The share of ``sigma^2`` that is privacy noise; the rest is the variation of the messages themselves.
    """

    sigma: float
    private: float

    def __add__(self, other: NoiseLaw) -> UnitMessages:
        if not isinstance(other, UnitMessages):
            return NotImplemented
        squared = self.sigma**2 + other.sigma**2
        share = (self.private * self.sigma**2 + other.private * other.sigma**2) / squared
        return UnitMessages(math.sqrt(squared), share)

    def product_covariance(self, vector: Vector) -> Matrix:
        """The same as for isotropic noise with this second moment."""
        return Isotropic(self.sigma).product_covariance(vector)

    def cut(self, places: Sequence[int]) -> UnitMessages:  # noqa: ARG002 - every part of it looks alike
        """The same law."""
        return self

    def spectral_norm(self, order: int) -> float:
        """The same as for isotropic noise with this second moment."""
        return Isotropic(self.sigma).spectral_norm(order)


@dataclass(frozen=True)
class DiscreteLaplaceNoise(NoiseLaw):
    """Independent integer noise in every entry: k with probability proportional to ``exp(-|k| / b)``.

    Parameters
    ----------
    scales : tuple of float
        The scale b of each noise that was added: one for each release that was summed.
    """

    scales: tuple[float, ...]

    @property
    def sigma(self) -> float:
        """The standard deviation of an entry. Each noise has variance ``2 q / (1 - q)^2`` with ``q = exp(-1/b)``."""
        return math.sqrt(math.fsum(1 / (2 * math.sinh(min(1 / (2 * b), 300.0)) ** 2) for b in self.scales))

    def __add__(self, other: NoiseLaw) -> DiscreteLaplaceNoise:
        if not isinstance(other, DiscreteLaplaceNoise):
            return NotImplemented
        return DiscreteLaplaceNoise(self.scales + other.scales)

    def product_covariance(self, vector: Vector) -> Matrix:
        """The same as for isotropic noise with this variance."""
        return Isotropic(self.sigma).product_covariance(vector)

    def cut(self, places: Sequence[int]) -> DiscreteLaplaceNoise:  # noqa: ARG002 - every part of it looks alike
        """The same law."""
        return self

    def spectral_norm(self, order: int) -> float:
        """The same as for isotropic noise with this variance."""
        return Isotropic(self.sigma).spectral_norm(order)


@dataclass(frozen=True, eq=False, repr=False)
class Entrywise(ShownInShort, NoiseLaw):
    """Independent normal noise on a symmetric matrix; every entry on and above the diagonal has its own variance.

    Parameters
    ----------
    variance : ndarray of shape (p, p)
        Symmetric, in the units of the total squared.
    """

    variance: Matrix

    def __post_init__(self) -> None:
        known = np.isfinite(self.variance).all() and (self.variance >= 0).all()
        if not (known and (self.variance == self.variance.T).all()):
            raise InvalidInput("the variances must form a symmetric matrix of finite, non-negative numbers")

    @classmethod
    def of_scales(cls, sigma: Matrix) -> Entrywise:
        """From the standard deviations of the entries."""
        if (sigma < 0).any():
            raise InvalidInput("standard deviations must not be negative")
        return cls(sigma**2)

    @property
    def sigma(self) -> Matrix:
        """Standard deviations of the entries."""
        return np.sqrt(self.variance)

    def __add__(self, other: NoiseLaw) -> Entrywise:
        if not isinstance(other, Entrywise) or other.variance.shape != self.variance.shape:
            return NotImplemented
        return Entrywise(self.variance + other.variance)

    def product_covariance(self, vector: Vector) -> Matrix:
        """``V_ab v_a v_b`` off the diagonal, ``sum_b V_ab v_b^2`` on it."""
        covariance = self.variance * np.outer(vector, vector)
        np.fill_diagonal(covariance, self.variance @ vector**2)
        return np.asarray(covariance)

    def spectral_norm(self, order: int) -> float:
        """Twice the square root of the largest row sum of variances (Bandeira, van Handel 2016, to leading order)."""
        return 2 * math.sqrt(float(self.variance[:order, :order].sum(axis=1).max()))

    def cut(self, places: Sequence[int]) -> Entrywise:
        """The law of the noise in these rows and columns."""
        return Entrywise(self.variance[np.ix_(places, places)])
