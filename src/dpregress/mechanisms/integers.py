r"""The message of one user in integers: discrete Gaussian noise on a public grid.

A value is truncated towards zero on the grid ``2^-g``, which cannot increase its norm, and exact integer noise is
added. Sums of messages are then exact in any order. With s the noise's scale and Delta the sensitivity, both in
units of the grid, a message is ``Delta^2 / (2 s^2)``-zCDP (Canonne, Kamath, Steinke 2020, Theorem 14), and within
``0.0202 p / s^2`` in total variation of a release that is ``Delta / s``-GDP (docs/privacy/local-messages.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import GDP
from dpregress.accounting.calibrate import SMALLEST_INTEGER_SCALE
from dpregress.coordinates import Vector
from dpregress.errors import UnsafeNoise
from dpregress.mechanisms.base import ARITHMETIC
from dpregress.mechanisms.randomness import Sampler
from dpregress.queries.base import Query

#: The scale of the noise is at most 2^24 grid steps; 60 times that, plus the value, fits into 32 bits.
_SCALE_BITS = 24
#: The range of a message, in scales of the noise, in addition to its value.
_NOISES = 60
_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class IntegerGaussian:
    """A grid and a scale of noise on it.

    Parameters
    ----------
    bits : int
        g: a step of the grid is 2^-g.
    scale : int
        Of the noise, in steps.
    """

    bits: int
    scale: int

    @classmethod
    def for_query(cls, query: Query[Any], spend: GDP) -> IntegerGaussian:
        """The finest grid on which a message fits into 32 bits, with the noise that ``spend`` requires on it.

        Raises
        ------
        UnsafeNoise
            If mu is so large that the noise would be small relative to the grid.
        """
        sigma = query.replacement() / spend.mu
        room = query.contribution() + _NOISES * sigma
        bits = math.floor(min(_SCALE_BITS - math.log2(sigma), 31 - math.log2(room)))
        scale = math.ceil(sensitivity(query, bits) / spend.mu * (1 + 1e-12))
        if scale < SMALLEST_INTEGER_SCALE:
            raise UnsafeNoise(
                f"mu = {spend.mu:g} leaves no room for safe noise in a message of 32-bit numbers: spend less"
            )
        return cls(bits, scale)

    def message(self, value: Vector, sampler: Sampler) -> NDArray[np.int32]:
        """The value on the grid with noise; numbers beyond 32 bits are clipped, which is post-processing."""
        noisy = sampler.add_integer_gaussian(self.steps(value), self.scale)
        return np.clip(noisy, _INT32.min, _INT32.max).astype(np.int32)

    def steps(self, value: Vector) -> NDArray[np.int64]:
        """The value on the grid, truncated towards zero, without noise. It must not leave the user's device."""
        return np.trunc(np.ldexp(value, self.bits)).astype(np.int64)

    def noise(self, length: int, sampler: Sampler) -> NDArray[np.int64]:
        """Noise of the scale by itself, for a sum of values on the grid that is known modulo 2^64 alone."""
        return sampler.add_integer_gaussian(np.zeros(length, dtype=np.int64), self.scale)

    def largest_sum(self, query: Query[Any], n: int, draws: int) -> int:
        """A bound on every entry of the sum of n values with so many draws of noise, in steps."""
        return n * math.ceil(math.ldexp(query.contribution(), self.bits)) + draws * _NOISES * self.scale


def sensitivity(query: Query[Any], bits: int) -> float:
    """The largest distance of two users' values on the grid, in steps.

    Truncation changes an entry by less than a step and never outwards, so the distance is at most ``Delta + sqrt(p)``
    and at most twice the largest norm. Rounding of the values and of this bound is covered.
    """
    apart = math.ldexp(query.replacement(), bits) + math.sqrt(query.size)
    return ARITHMETIC * min(apart, 2 * math.ldexp(query.contribution(), bits))
