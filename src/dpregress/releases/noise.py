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
