"""Generalised linear models: distributions, links and the quantities that queries and solvers need.

With mean ``m(eta)``, slope ``m'(eta)`` and variance function V, the score of a row is
``x (y - m) f`` with ``f = m' / V(m)`` (1 for canonical links), and its Fisher information ``x x' m'^2 / V(m)``.
Linear predictors are clipped to a range in which all of these are finite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from dpregress.coordinates import Vector
from dpregress.errors import check_choice
from dpregress.models.links import IdentityLink, InverseLink, Link, LogitLink, LogLink, PositiveIdentityLink, ProbitLink

_SMALLEST = 1e-10
#: A larger count has its log-likelihood by Stirling's formula, whose error is below 1e-9 there.
_LARGE_COUNT = 1e8


class Distribution(ABC):
    """The variance function and deviance of an exponential dispersion model."""

    name: ClassVar[str]
    #: The range of the response, in words.
    support: ClassVar[str]
    #: Whether the dispersion is 1 by assumption (Binomial, Poisson) or estimated.
    fixed_dispersion: ClassVar[bool]

    @abstractmethod
    def possible(self, y: Vector) -> NDArray[np.bool_]:
        """Whether a finite response is possible, elementwise."""

    @property
    def signed(self) -> bool:
        """Whether a response may be negative."""
        return bool(self.possible(-np.ones(1))[0])

    @abstractmethod
    def variance(self, mean: Vector) -> Vector:
        """``V(mean)``, elementwise."""

    @abstractmethod
    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        """Twice the log-likelihood of a perfect fit minus that of ``mean``, at dispersion 1, elementwise."""

    @abstractmethod
    def saturated(self, y: Vector, dispersion: float) -> Vector:
        """The log-likelihood of a perfect fit at this dispersion, elementwise."""


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

    def saturated(self, y: Vector, dispersion: float) -> Vector:
        return np.full_like(y, -0.5 * np.log(2 * np.pi * dispersion))


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

    def saturated(self, y: Vector, dispersion: float) -> Vector:  # noqa: ARG002  # of a class
        return np.zeros_like(y)


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

    def saturated(self, y: Vector, dispersion: float) -> Vector:  # noqa: ARG002  # it is 1
        stirling = -0.5 * np.log(2 * np.pi * np.maximum(y, 1.0))  # the terms of the exact one cancel where y is large
        return np.asarray(np.where(y > _LARGE_COUNT, stirling, xlogy(y, y) - y - gammaln(y + 1)))


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

    def saturated(self, y: Vector, dispersion: float) -> Vector:
        shape = 1 / dispersion
        constant = shape * np.log(shape) - shape - gammaln(shape)
        return np.asarray(constant - np.log(np.maximum(y, _SMALLEST)))


@dataclass(frozen=True)
class InverseGaussianDistribution(Distribution):
    """V = m^3, y > 0."""

    name: ClassVar[str] = "inverse-gaussian"
    support: ClassVar[str] = "y > 0"
    fixed_dispersion: ClassVar[bool] = False

    def possible(self, y: Vector) -> NDArray[np.bool_]:
        return np.asarray(y > 0)

    def variance(self, mean: Vector) -> Vector:
        return np.asarray(mean**3)

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        y, mean = np.maximum(y, _SMALLEST), np.maximum(mean, _SMALLEST)
        return np.asarray((y - mean) ** 2 / (y * mean**2))

    def saturated(self, y: Vector, dispersion: float) -> Vector:
        return np.asarray(-0.5 * np.log(2 * np.pi * dispersion * np.maximum(y, _SMALLEST) ** 3))


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
        """Linear predictors, clipped to the range of the link."""
        return np.clip(eta, self.link.lower, self.link.upper)

    def inside(self, eta: Vector) -> NDArray[np.bool_]:
        """Whether linear predictors lie inside the range of the link, elementwise."""
        return np.asarray((eta > self.link.lower) & (eta < self.link.upper))

    def mean(self, eta: Vector) -> Vector:
        """``m(eta)``, elementwise."""
        return self.link.mean(self.within(eta))

    def slope(self, eta: Vector) -> Vector:
        """``m'(eta)``, elementwise."""
        return self.link.slope(self.within(eta))

    def factor(self, eta: Vector) -> Vector:
        """``m' / V(m)``: the weight of a residual in the score."""
        eta = self.within(eta)
        return np.asarray(self.link.slope(eta) / self.distribution.variance(self.link.mean(eta)))

    def factor_size(self, eta: Vector) -> Vector:
        """``|m' / V(m)|``; 1 where only the sign differs, and for identity links, beyond whose end it has no limit."""
        return np.ones_like(eta) if self.plain else np.abs(self.factor(eta))

    @cached_property
    def plain(self) -> bool:
        """Whether :meth:`factor_size` is 1 for every predictor."""
        return self.link.name == "identity" or _all_ones(np.abs(self._some_factors))

    @cached_property
    def canonical(self) -> bool:
        """Whether the factor is 1 for every predictor, so that the score is ``x (y - m)``."""
        return _all_ones(self._some_factors)

    @property
    def _some_factors(self) -> Vector:
        return self.factor(np.linspace(-3.0, 3.0, 7))

    def information(self, eta: Vector) -> Vector:
        """``m'^2 / V(m)``: the weight of a row in the Fisher information; ``b''`` for canonical links."""
        eta = self.within(eta)
        return np.asarray(self.link.slope(eta) ** 2 / self.distribution.variance(self.link.mean(eta)))


def _all_ones(values: Vector) -> bool:
    return bool(np.allclose(values, 1.0, rtol=1e-12, atol=0.0))


GaussianFamily = Family(GaussianDistribution(), IdentityLink())
BinomialFamily = Family(BinomialDistribution(), LogitLink())
PoissonFamily = Family(PoissonDistribution(), LogLink())
GammaFamily = Family(GammaDistribution(), LogLink())

#: Every family by its name, with the links that are offered; the first is the default. Add a new family here.
FAMILIES: Mapping[str, tuple[Family, ...]] = {
    offered[0].distribution.name: offered
    for offered in (
        (GaussianFamily, Family(GaussianDistribution(), LogLink())),
        (BinomialFamily, Family(BinomialDistribution(), ProbitLink())),
        (PoissonFamily, Family(PoissonDistribution(), PositiveIdentityLink())),
        (GammaFamily, Family(GammaDistribution(), InverseLink())),
        (Family(InverseGaussianDistribution(), LogLink()),),
    )
}


#: The family of a response with several classes, which are not numbers.
MULTINOMIAL = "multinomial"


def family_names() -> tuple[str, ...]:
    """The names of all families."""
    return (*FAMILIES, MULTINOMIAL)


def family_of(name: str, link: str | None = None) -> Family:
    """The family with this name and link, or with its default link.

    Raises
    ------
    InvalidInput
        For a name or a combination that is not offered.
    """
    check_choice("family", name, FAMILIES)
    links = {family.link.name: family for family in FAMILIES[name]}
    if link is None:
        return FAMILIES[name][0]
    check_choice(f"link of {name}", link, links)
    return links[link]
