r"""One user's message as integers: the discrete Gaussian on a public grid.

A value is truncated towards zero on the grid ``2^-g``, so its norm cannot grow, and exact integer noise is added;
sums of messages are then exact whatever their order. With s the noise's scale and Delta the sensitivity, both in
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
from dpregress.mechanisms.randomness import Sampler
from dpregress.queries.base import Query
from dpregress.rows import Engine

#: The noise's scale is at most 2^24 grid steps: 60 of them, and the value, fit into 32 bits.
_SCALE_BITS = 24
#: Noises that a message has room for beside its value.
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
        """The finest grid on which a message fits into 32 bits, and the noise that ``spend`` asks for on it.

        Raises
        ------
        UnsafeNoise
            For a mu so large that the noise would be coarse beside its own grid.
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
        """The value on the grid with noise; what does not fit is cut off, as post-processing."""
        steps = np.trunc(np.ldexp(value, self.bits)).astype(np.int64)
        noisy = sampler.add_integer_gaussian(steps, self.scale)
        return np.clip(noisy, _INT32.min, _INT32.max).astype(np.int32)


def sensitivity(query: Query[Any], bits: int) -> float:
    """How far two users' values lie apart on the grid, in steps.

    Truncation moves an entry by less than a step and never outwards, so the distance is at most
    ``Delta + sqrt(p)`` and at most twice the largest norm; rounding of the floats before is added.
    """
    rounding = 1 + 2 * Engine.rounding(1, query.columns)
    apart = math.ldexp(query.replacement(), bits) + math.sqrt(query.size)
    return rounding * min(apart, 2 * math.ldexp(query.contribution(), bits))
