"""Exponential families with their canonical links, as the queries and solvers need them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit

from dpregress.releases import Vector


class Family(ABC):
    """A generalised linear model with cumulant b: mean ``b'(eta)``, variance ``b''(eta)``."""

    @abstractmethod
    def mean(self, eta: Vector) -> Vector:
        """``b'(eta)``, elementwise."""

    @abstractmethod
    def variance(self, eta: Vector) -> Vector:
        """``b''(eta)``, elementwise."""

    @property
    @abstractmethod
    def largest_variance(self) -> float:
        """The maximum of ``b''`` over the real line."""


class Gaussian(Family):
    """``b(eta) = eta^2 / 2``: linear regression."""

    def mean(self, eta: Vector) -> Vector:
        return eta

    def variance(self, eta: Vector) -> Vector:
        return np.ones_like(eta)

    @property
    def largest_variance(self) -> float:
        return 1.0


class Binomial(Family):
    """``b(eta) = log(1 + exp(eta))``: logistic regression, y in {0, 1}."""

    def mean(self, eta: Vector) -> Vector:
        return np.asarray(expit(eta))

    def variance(self, eta: Vector) -> Vector:
        return np.asarray(expit(eta) * expit(-eta))

    @property
    def largest_variance(self) -> float:
        return 0.25
