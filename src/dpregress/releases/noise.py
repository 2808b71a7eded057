"""Noise laws: what inference and repair may know about the noise in a release."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass


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
