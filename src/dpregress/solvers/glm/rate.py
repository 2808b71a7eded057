"""The mean response, where the scores of a fit without labels begin, and what it may cost."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import WhitenedSpace
from dpregress.public.facts import PublicFacts
from dpregress.queries import ClippedScore, MeanResidual, ResponseHistogram, noise_in_mean

#: The least share of the mean response.
START = 0.05
#: For planning it: the variance of a response, the scores' share of the rest, and the deviance that slopes explain.
_VARIANCE, _STEPS_OF_REST, _SIGNAL = 0.1, 0.7, 0.2
#: The least share of the scores for which a rate is asked again.
_AGAIN = 0.2


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


def mean_start_share(facts: PublicFacts, budget: GDP, classes: int = 2) -> float:
    """The share of the mean response: small where noise is small, nearly all where slopes would drown in it.

    The expected deviance of a response of classes is weighed, with the variance of a rare one.
    """
    share = np.linspace(START, 0.9, 86)
    slopes = (classes - 1) * _slopes(facts.start.space, budget, facts.n)
    drowned = slopes / (_STEPS_OF_REST * (1 - share)) / _VARIANCE
    change = MeanResidual.largest_change(-0.5, 0.5) if classes == 2 else ResponseHistogram.largest_change()
    mean = (classes - 1) * noise_in_mean(change, budget, facts.n) ** 2 / share / _VARIANCE
    return float(share[np.argmin(mean + _SIGNAL * drowned / (_SIGNAL + drowned))])


def again_share(space: WhitenedSpace, scores: GDP, n: int, rate: Rate, noise: float) -> float:
    """The share of the scores' budget for the rate of two classes once more; 0 if that is worth little.

    The same deviance is weighed with the variance that classes of the released rate have; slopes explain less of it.

    Parameters
    ----------
    space : WhitenedSpace
    scores : GDP
        Of all scores.
    n : int
    rate : Rate
    noise : float
        The standard deviation of its noise.
    """
    share, variance, signal = np.linspace(0, 0.9, 91), rate.value * (1 - rate.value), _SIGNAL * rate.evenness
    drowned = _slopes(space, scores, n) / (1 - share) / variance
    once = noise_in_mean(MeanResidual.largest_change(-0.5, 0.5), scores, n)
    mean = 1 / (1 / noise**2 + share / once**2) / variance
    best = float(share[np.argmin(mean + signal * drowned / (signal + drowned))])
    return best if best >= _AGAIN else 0.0


def _slopes(space: WhitenedSpace, budget: GDP, n: int) -> float:
    """The squared noise of a score that has the whole budget."""
    radius = min(space.radius, math.sqrt(2 * space.order))
    return space.order * noise_in_mean(ClippedScore.largest_change(radius, 1.0), budget, n) ** 2
