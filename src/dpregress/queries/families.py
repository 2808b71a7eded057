"""Generalised linear models: a distribution and a link, as queries and solvers need them.

With mean ``m(eta)``, slope ``m'(eta)`` and variance function V, the score of a row is
``x (y - m) f`` with ``f = m' / V(m)`` (1 for canonical links), and its Fisher information ``x x' m'^2 / V(m)``.
Linear predictors are kept where all of these are finite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri, xlogy

from dpregress.errors import InvalidInput
from dpregress.releases import Vector

_SMALLEST = 1e-10


class Distribution(ABC):
    """The variance function and deviance of an exponential dispersion model."""

    name: ClassVar[str]
    #: Which responses it can have, in words.
    support: ClassVar[str]
    #: Whether the dispersion is 1 by assumption (Binomial, Poisson) or estimated.
    fixed_dispersion: ClassVar[bool]

    @abstractmethod
    def possible(self, y: Vector) -> NDArray[np.bool_]:
        """Which finite responses it can have, elementwise."""

    @abstractmethod
    def variance(self, mean: Vector) -> Vector:
        """``V(mean)``, elementwise."""

    @abstractmethod
    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        """Twice the log-likelihood lost by ``mean`` against a perfect fit, elementwise."""


class Link(ABC):
    """A link through its inverse, on the range of linear predictors where that makes sense."""

    name: ClassVar[str]
    lower: ClassVar[float]
    upper: ClassVar[float]
    #: Largest change of a predictor that a step of a fit may make: where the mean is linear, any.
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
class GaussianDistribution(Distribution):
    """V = 1."""

    name: ClassVar[str] = "gaussian"
    support: ClassVar[str] = "any number"
    fixed_dispersion: ClassVar[bool] = False

    def possible(self, y: Vector) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(y))

    def variance(self, mean: Vector) -> Vector:
        return np.ones_like(mean)

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        return np.asarray((y - mean) ** 2)


@dataclass(frozen=True)
class BinomialDistribution(Distribution):
    """V = m (1 - m), y in {0, 1}."""

    name: ClassVar[str] = "binomial"
    support: ClassVar[str] = "0 <= y <= 1"
    fixed_dispersion: ClassVar[bool] = True

    def possible(self, y: Vector) -> NDArray[np.bool_]:
        return np.asarray((y >= 0) & (y <= 1))

    def variance(self, mean: Vector) -> Vector:
        return np.asarray(mean * (1 - mean))

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        mean = np.clip(mean, _SMALLEST, 1 - _SMALLEST)
        return np.asarray(2 * (xlogy(y, y / mean) + xlogy(1 - y, (1 - y) / (1 - mean))))


@dataclass(frozen=True)
class PoissonDistribution(Distribution):
    """V = m, y >= 0."""

    name: ClassVar[str] = "poisson"
    support: ClassVar[str] = "y >= 0"
    fixed_dispersion: ClassVar[bool] = True

    def possible(self, y: Vector) -> NDArray[np.bool_]:
        return np.asarray(y >= 0)

    def variance(self, mean: Vector) -> Vector:
        return mean

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        mean = np.maximum(mean, _SMALLEST)
        return np.asarray(2 * (xlogy(y, y / mean) - y + mean))


@dataclass(frozen=True)
class GammaDistribution(Distribution):
    """V = m^2, y > 0."""

    name: ClassVar[str] = "gamma"
    support: ClassVar[str] = "y > 0"
    fixed_dispersion: ClassVar[bool] = False

    def possible(self, y: Vector) -> NDArray[np.bool_]:
        return np.asarray(y > 0)

    def variance(self, mean: Vector) -> Vector:
        return np.asarray(mean**2)

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        ratio = np.maximum(y, _SMALLEST) / np.maximum(mean, _SMALLEST)
        return np.asarray(2 * (ratio - 1 - np.log(ratio)))


@dataclass(frozen=True)
class Identity(Link):
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
class PositiveIdentity(Identity):
    """``eta = m``, eta > 0: for means that cannot be 0."""

    lower: ClassVar[float] = 1e-6

    def predictor(self, mean: float) -> float:
        return max(mean, self.lower)


@dataclass(frozen=True)
class Log(Link):
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
class Logit(Link):
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
class Probit(Link):
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
class Inverse(Link):
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


@dataclass(frozen=True)
class Family:
    """A distribution with a link.

    Parameters
    ----------
    distribution : Distribution
    link : Link
    """

    distribution: Distribution
    link: Link

    def within(self, eta: Vector) -> Vector:
        """Linear predictors kept where the link makes sense."""
        return np.clip(eta, self.link.lower, self.link.upper)

    def inside(self, eta: Vector) -> NDArray[np.bool_]:
        """Which linear predictors lie where the link makes sense."""
        return np.asarray((eta > self.link.lower) & (eta < self.link.upper))

    def mean(self, eta: Vector) -> Vector:
        """``m(eta)``, elementwise."""
        return self.link.mean(self.within(eta))

    def slope(self, eta: Vector) -> Vector:
        """``m'(eta)``, elementwise."""
        return self.link.slope(self.within(eta))

    def factor(self, eta: Vector) -> Vector:
        """``m' / V(m)``: what a residual counts in the score."""
        eta = self.within(eta)
        return np.asarray(self.link.slope(eta) / self.distribution.variance(self.link.mean(eta)))

    def information(self, eta: Vector) -> Vector:
        """``m'^2 / V(m)``: what a row counts in the Fisher information; ``b''`` for canonical links."""
        eta = self.within(eta)
        return np.asarray(self.link.slope(eta) ** 2 / self.distribution.variance(self.link.mean(eta)))


Gaussian = Family(GaussianDistribution(), Identity())
Binomial = Family(BinomialDistribution(), Logit())
Poisson = Family(PoissonDistribution(), Log())
Gamma = Family(GammaDistribution(), Log())

#: The families by name; the first link is the default.
_OFFERED: Mapping[str, tuple[Family, ...]] = {
    offered[0].distribution.name: offered
    for offered in (
        (Gaussian, Family(GaussianDistribution(), Log())),
        (Binomial, Family(BinomialDistribution(), Probit())),
        (Poisson, Family(PoissonDistribution(), PositiveIdentity())),
        (Gamma, Family(GammaDistribution(), Inverse())),
    )
}


def family_of(name: str, link: str | None = None) -> Family:
    """The family of a name, with a link or its default.

    Raises
    ------
    InvalidInput
        For a name or a combination that is not offered.
    """
    if not isinstance(name, str) or name not in _OFFERED:
        raise InvalidInput(f"family must be one of {', '.join(_OFFERED)}, not {name!r}")
    links = {family.link.name: family for family in _OFFERED[name]}
    if link is None:
        return _OFFERED[name][0]
    if not isinstance(link, str) or link not in links:
        raise InvalidInput(f"link of {name} must be one of {', '.join(links)}, not {link!r}")
    return links[link]
