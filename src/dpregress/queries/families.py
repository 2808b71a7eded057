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
from scipy.special import expit, ndtr, ndtri, xlogy

from dpregress.errors import InvalidInput
from dpregress.releases import Vector

_SMALLEST = 1e-10


class Distribution(ABC):
    """The variance function and deviance of an exponential dispersion model."""

    name: ClassVar[str]
    #: Whether the dispersion is 1 by assumption (Binomial, Poisson) or estimated.
    fixed_dispersion: ClassVar[bool]

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

    @abstractmethod
    def mean(self, eta: Vector) -> Vector:
        """The inverse link."""

    @abstractmethod
    def slope(self, eta: Vector) -> Vector:
        """Its derivative."""

    @abstractmethod
    def predictor(self, mean: float) -> float:
        """The link itself, for a starting value."""


class GaussianDistribution(Distribution):
    """V = 1."""

    name: ClassVar[str] = "gaussian"
    fixed_dispersion: ClassVar[bool] = False

    def variance(self, mean: Vector) -> Vector:
        return np.ones_like(mean)

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        return np.asarray((y - mean) ** 2)


class BinomialDistribution(Distribution):
    """V = m (1 - m), y in {0, 1}."""

    name: ClassVar[str] = "binomial"
    fixed_dispersion: ClassVar[bool] = True

    def variance(self, mean: Vector) -> Vector:
        return np.asarray(mean * (1 - mean))

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        mean = np.clip(mean, _SMALLEST, 1 - _SMALLEST)
        return np.asarray(2 * (xlogy(y, y / mean) + xlogy(1 - y, (1 - y) / (1 - mean))))


class PoissonDistribution(Distribution):
    """V = m, y >= 0."""

    name: ClassVar[str] = "poisson"
    fixed_dispersion: ClassVar[bool] = True

    def variance(self, mean: Vector) -> Vector:
        return mean

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        mean = np.maximum(mean, _SMALLEST)
        return np.asarray(2 * (xlogy(y, y / mean) - y + mean))


class GammaDistribution(Distribution):
    """V = m^2, y > 0."""

    name: ClassVar[str] = "gamma"
    fixed_dispersion: ClassVar[bool] = False

    def variance(self, mean: Vector) -> Vector:
        return np.asarray(mean**2)

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        ratio = np.maximum(y, _SMALLEST) / np.maximum(mean, _SMALLEST)
        return np.asarray(2 * (ratio - 1 - np.log(ratio)))


class Identity(Link):
    """``eta = m``."""

    name: ClassVar[str] = "identity"
    lower: ClassVar[float] = -1e75
    upper: ClassVar[float] = 1e75

    def mean(self, eta: Vector) -> Vector:
        return eta

    def slope(self, eta: Vector) -> Vector:
        return np.ones_like(eta)

    def predictor(self, mean: float) -> float:
        return mean


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
        return float(np.log(mean / (1 - mean)))


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
        return float(ndtri(mean))


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

    def mean(self, eta: Vector) -> Vector:
        """``m(eta)``, elementwise."""
        return self.link.mean(self.within(eta))

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

_DISTRIBUTIONS: Mapping[str, Distribution] = {
    found.name: found
    for found in (GaussianDistribution(), BinomialDistribution(), PoissonDistribution(), GammaDistribution())
}
_LINKS: Mapping[str, Link] = {found.name: found for found in (Identity(), Log(), Logit(), Probit(), Inverse())}
#: The links each distribution may have; the first is the default.
_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "gaussian": ("identity", "log"),
    "binomial": ("logit", "probit"),
    "poisson": ("log", "identity"),
    "gamma": ("log", "inverse"),
}


def family_of(name: str, link: str | None = None) -> Family:
    """The family of a name, with a link or its default.

    Raises
    ------
    InvalidInput
        For a name or a combination that is not offered.
    """
    if name not in _ALLOWED:
        raise InvalidInput(f"family must be one of {', '.join(_ALLOWED)}, not {name!r}")
    chosen = _ALLOWED[name][0] if link is None else link
    if chosen not in _ALLOWED[name]:
        raise InvalidInput(f"link of {name} must be one of {', '.join(_ALLOWED[name])}, not {link!r}")
    return Family(_DISTRIBUTIONS[name], _LINKS[chosen])
