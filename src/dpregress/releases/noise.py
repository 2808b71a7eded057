"""Noise laws: what inference and repair may know about the noise in a release."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dpregress.errors import InvalidInput
from dpregress.releases.svec import Matrix


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """The distribution of the noise in a release's vector of totals."""

    @abstractmethod
    def __add__(self, other: NoiseLaw) -> NoiseLaw:
        """The law of the sum of two independent noises."""


@dataclass(frozen=True)
class Isotropic(NoiseLaw):
    """Independent normal noise of one standard deviation on every entry.

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


@dataclass(frozen=True)
class UnitMessages(NoiseLaw):
    """A sum of randomised unit vectors: sampling and privacy noise together have one second moment on every entry.

    Parameters
    ----------
    sigma : float
        Root of that second moment, in the units of the total. It is the average over directions, and that of
        every entry where the messages point in all directions alike.
    private : float
        The share of ``sigma^2`` that is privacy noise; the rest is what the messages themselves vary.
    """

    sigma: float
    private: float

    def __add__(self, other: NoiseLaw) -> UnitMessages:
        if not isinstance(other, UnitMessages):
            return NotImplemented
        squared = self.sigma**2 + other.sigma**2
        share = (self.private * self.sigma**2 + other.private * other.sigma**2) / squared
        return UnitMessages(math.sqrt(squared), share)


@dataclass(frozen=True, eq=False)
class Entrywise(NoiseLaw):
    """Independent noise on every entry of a symmetric matrix, each with a standard deviation of its own.

    Parameters
    ----------
    sigma : ndarray of shape (p, p)
        Symmetric, in the units of the total.
    """

    sigma: Matrix

    def __post_init__(self) -> None:
        if not (np.isfinite(self.sigma).all() and (self.sigma >= 0).all() and (self.sigma == self.sigma.T).all()):
            raise InvalidInput("standard deviations of a symmetric matrix are symmetric, finite and not negative")

    def __add__(self, other: NoiseLaw) -> Entrywise:
        if not isinstance(other, Entrywise) or other.sigma.shape != self.sigma.shape:
            return NotImplemented
        return Entrywise(np.hypot(self.sigma, other.sigma))
