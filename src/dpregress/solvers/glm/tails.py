"""Laws of counts and of amounts with given means: what lies beyond a bound, and what a clip leaves of a change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaincc

from dpregress.coordinates import Vector

#: Shapes of gamma distributions are kept within these: beyond them nothing is cut off, or the mean is 0.
_SHAPES = (1e-6, 1e8)
#: Rates that vary less do not vary, as far as floats tell.
_LEAST_VARIED = 1e-8


class Tail(ABC):
    """The law of responses, one for each of m rows."""

    @abstractmethod
    def beyond(self, bound: Vector) -> Vector:
        """``E (y - bound)+``, of shape (m,)."""

    @abstractmethod
    def below(self, bound: Vector) -> Vector:
        """What responses up to this bound have of the derivative of ``E y`` by the logarithm of the mean."""

    def kept(self, low: Vector, high: Vector) -> Vector:
        """The derivative of ``E min(max(y, low), high)`` by the mean, of shape (m,), where ``low >= 0``."""
        return self.below(high) - np.where(low > 0, self.below(low), 0.0)


@dataclass(frozen=True, eq=False)
class AmountTail(Tail):
    """Gamma distributions: where the mean changes, each response does in proportion."""

    mean: Vector
    shape: Vector

    @classmethod
    def of(cls, mean: Vector, variance: Vector) -> AmountTail:
        """With these means and variances."""
        return cls(mean, np.clip(mean**2 / np.maximum(variance, 1e-300), *_SHAPES))

    def beyond(self, bound: Vector) -> Vector:
        at = self.shape * bound / self.mean
        return np.asarray(self.mean * gammaincc(self.shape + 1, at) - bound * gammaincc(self.shape, at))

    def below(self, bound: Vector) -> Vector:
        return np.asarray(1 - gammaincc(self.shape + 1, self.shape * bound / self.mean))


@dataclass(frozen=True, eq=False)
class CountTail(Tail):
    """Negative binomial distributions of variance ``m + k m^2``: Poisson counts whose rates have gamma distributions.

    Where the mean changes, so do rates, and ``y`` becomes ``y + 1`` with a probability in proportion to the expected
    rate of rows with the count y, ``(y + 1/k) / (m + 1/k)``.
    """

    mean: Vector
    varied: float

    def _at_most(self, count: Vector, added: int = 0) -> Vector:
        """The probability of counts up to these; ``added`` times weighted by the count and taken one lower."""
        above = np.maximum(count, 0.0) + 1
        if self.varied < _LEAST_VARIED:
            usual = gammaincc(above, self.mean)
        else:
            usual = betainc(1 / self.varied + added, above, 1 / (1 + self.varied * self.mean))
        return np.where(count >= 0, usual, 0.0)

    def beyond(self, bound: Vector) -> Vector:
        last = np.floor(bound)
        return self.mean * (1 - self._at_most(last - 1, 1)) - bound * (1 - self._at_most(last))

    def below(self, bound: Vector) -> Vector:
        last = np.floor(bound)
        inner = self._moved(last - 1)
        return inner + (bound - last) * (self._moved(last) - inner)

    def _moved(self, count: Vector) -> Vector:
        """``E (y + 1/k) / (m + 1/k)`` over counts up to these."""
        rates = self.varied * self.mean / (1 + self.varied * self.mean)
        return rates * self._at_most(count - 1, 1) + (1 - rates) * self._at_most(count)
