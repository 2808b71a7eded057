"""The mean response, where the scores of a fit without labels begin."""

from __future__ import annotations

from typing import NamedTuple


class Rate(NamedTuple):
    """A mean response, such as the rate of the second of two classes away from 0 and 1, and its variance."""

    value: float
    variance: float

    @classmethod
    def of(cls, found: float, noise: float, n: int) -> Rate:
        """A released rate, or that of n labels without noise."""
        rarest = min(max(2 * noise, 1 / n), 0.5)
        value = min(max(found, rarest), 1 - rarest)
        return cls(value, noise**2 + max(value - found, 0) ** 2)

    @property
    def evenness(self) -> float:
        """The variance of a class of this rate, over that of even classes."""
        return 4 * self.value * (1 - self.value)
