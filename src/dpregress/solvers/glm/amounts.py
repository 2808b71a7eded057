"""The mean of counts or amounts, and sizes of residuals from there, where noise hides the bins of a histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import ResponseScale, Vector, WhitenedSpace
from dpregress.models import GaussianFamily
from dpregress.public.facts import PublicFacts
from dpregress.queries import Ask, Counted, MeanResidual, ResponseHistogram, noise_in_mean
from dpregress.solvers.glm.mean_step import TAIL
from dpregress.solvers.shared.likely_values import LikelyValues
from dpregress.solvers.shared.magnitudes import Magnitudes

#: The n mu between which responses are looked for between their bounds, and the share of that in the start.
_BLIND, _PLAIN, LOOK = 40.0, 500.0, 0.5
#: Half octaves below the upper bound that sizes may lie; those of counts reach down to one.
_DEEPEST, _LEAST_DEEP, _COUNT = 40, 12, 2**-0.5
#: The mean by the histogram alone is off by this share of itself.
ROUGH = 0.5
#: A mean is no smaller than this share of the upper bound.
_SMALLEST = 1e-12


def between(facts: PublicFacts, mu: float) -> tuple[float, float] | None:
    """Bounds of a positive response between which it is looked for; None if it has none, or n mu is large or tiny."""
    if not _BLIND <= facts.n * mu < _PLAIN or facts.response_bounds is None:
        return None
    lower, upper = facts.response_bounds
    return (max(lower, 0.0), upper) if upper > 0 else None


@dataclass(frozen=True, eq=False)
class Amounts:
    """What is known about a positive response.

    Attributes
    ----------
    value, variance : float
        The mean, and its variance.
    values : LikelyValues
    width : ndarray of shape (bins,)
    """

    value: float
    variance: float
    values: LikelyValues
    width: Vector

    @classmethod
    def released(
        cls,
        ask: Ask,
        space: WhitenedSpace,
        facts: PublicFacts,
        bounds: tuple[float, float],
        look: GDP,
        spend: GDP,
        *,
        counts: bool,
    ) -> Amounts:
        """From a histogram of sizes, and from the mean up to the clip that it suggests.

        Parameters
        ----------
        ask : Ask
        space : WhitenedSpace
        facts : PublicFacts
        bounds : (float, float)
        look, spend : GDP
            Of the histogram and of the mean.
        counts : bool
            Whether the response may be 0.
        """
        lower, upper = bounds
        least = max(lower, upper * 2.0 ** (-_DEEPEST / 2), _COUNT if counts else 0.0)
        bins = max(math.ceil(2 * math.log2(upper / least)), _LEAST_DEEP) if upper > least else _LEAST_DEEP
        edges = upper * 2.0 ** (np.arange(-bins, 1) / 2)
        plain = replace(space, exposure=None).with_response(ResponseScale(facts.target))
        value, width = np.sqrt(edges[:-1] * edges[1:]), np.diff(edges)
        if counts:
            value[0], width[0] = 0.0, 0.0
        values = LikelyValues.of(ask(ResponseHistogram(plain, edges), look), value)
        unit = noise_in_mean(MeanResidual.largest_change(0.0, 1.0), spend, facts.n)
        sizes = Magnitudes(value, values.share)
        clip = sizes.best_clip(lambda bound: unit * bound, cut_weight=TAIL)
        half = clip / 2
        centred = plain.with_response(ResponseScale(facts.target, half))
        query = Counted(MeanResidual(centred, GaussianFamily, np.zeros(plain.order), -half, half))
        found = ask(query, spend)
        noise = query.noise(spend, found.n) ** 2 + sizes.cut(clip) ** 2
        rough = values.variance + (ROUGH * values.mean) ** 2
        gain = rough / (rough + noise)
        mean = values.mean + gain * (half + float(found.mean[0]) + sizes.cut(clip) - values.mean)
        least = max(math.sqrt(gain * noise), _SMALLEST * upper)
        return cls(max(mean, least), gain * noise + max(least - mean, 0.0) ** 2, values, width)

    def sizes(self, factor: float) -> Magnitudes:
        """Distances from the mean, times the factor of a score there."""
        found = self.values.sizes(self.value, self.width)
        return replace(found, size=abs(factor) * found.size)
