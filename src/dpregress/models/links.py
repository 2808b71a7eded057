"""Links of generalised linear models, defined by their inverses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, ndtr, ndtri

from dpregress.coordinates import Vector

_SMALLEST = 1e-10


class Link(ABC):
    """A link, defined by its inverse on a range of linear predictors."""

    name: ClassVar[str]
    lower: ClassVar[float]
    upper: ClassVar[float]
    #: The largest change of a linear predictor in one step of a fit; unlimited where the mean is linear.
    longest: ClassVar[float] = 3.0

    @abstractmethod
    def mean(self, eta: Vector) -> Vector:
        """The inverse link."""

    @abstractmethod
    def slope(self, eta: Vector) -> Vector:
        """Its derivative."""

    @abstractmethod
    def predictor(self, mean: float) -> float:
        """The link itself, for a starting value."""


@dataclass(frozen=True)
class IdentityLink(Link):
    """``eta = m``."""

    name: ClassVar[str] = "identity"
    lower: ClassVar[float] = -1e75
    upper: ClassVar[float] = 1e75
    longest: ClassVar[float] = np.inf

    def mean(self, eta: Vector) -> Vector:
        return eta

    def slope(self, eta: Vector) -> Vector:
        return np.ones_like(eta)

    def predictor(self, mean: float) -> float:
        return mean


@dataclass(frozen=True)
class PositiveIdentityLink(IdentityLink):
    """``eta = m``, eta > 0: for means that cannot be 0."""

    lower: ClassVar[float] = 1e-6

    def predictor(self, mean: float) -> float:
        return max(mean, self.lower)


@dataclass(frozen=True)
class LogLink(Link):
    """``eta = log m``."""

    name: ClassVar[str] = "log"
    lower: ClassVar[float] = -30.0
    upper: ClassVar[float] = 30.0

    def mean(self, eta: Vector) -> Vector:
        return np.asarray(np.exp(eta))

    def slope(self, eta: Vector) -> Vector:
        return np.asarray(np.exp(eta))

    def predictor(self, mean: float) -> float:
        return float(np.log(max(mean, _SMALLEST)))


@dataclass(frozen=True)
class LogitLink(Link):
    """``eta = log(m / (1 - m))``."""

    name: ClassVar[str] = "logit"
    lower: ClassVar[float] = -30.0
    upper: ClassVar[float] = 30.0

    def mean(self, eta: Vector) -> Vector:
        return np.asarray(expit(eta))

    def slope(self, eta: Vector) -> Vector:
        return np.asarray(expit(eta) * expit(-eta))

    def predictor(self, mean: float) -> float:
        mean = min(max(mean, _SMALLEST), 1 - _SMALLEST)
        return float(np.log(mean / (1 - mean)))


@dataclass(frozen=True)
class ProbitLink(Link):
    """``m = Phi(eta)``."""

    name: ClassVar[str] = "probit"
    lower: ClassVar[float] = -5.0
    upper: ClassVar[float] = 5.0

    def mean(self, eta: Vector) -> Vector:
        return np.asarray(ndtr(eta))

    def slope(self, eta: Vector) -> Vector:
        return np.asarray(np.exp(-(eta**2) / 2) / np.sqrt(2 * np.pi))

    def predictor(self, mean: float) -> float:
        return float(ndtri(min(max(mean, _SMALLEST), 1 - _SMALLEST)))


@dataclass(frozen=True)
class InverseLink(Link):
    """``m = 1 / eta``, eta > 0."""

    name: ClassVar[str] = "inverse"
    lower: ClassVar[float] = 1e-6
    upper: ClassVar[float] = 1e75

    def mean(self, eta: Vector) -> Vector:
        return np.asarray(1 / eta)

    def slope(self, eta: Vector) -> Vector:
        return np.asarray(-1 / eta**2)

    def predictor(self, mean: float) -> float:
        return 1 / max(mean, _SMALLEST)
