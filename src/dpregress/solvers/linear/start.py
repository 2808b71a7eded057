"""Where a residual fit without labels starts: the mean response and the sizes of residuals from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.models import GaussianFamily
from dpregress.queries import Ask, Counted, MeanResidual, ResponseHistogram, noise_in_mean
from dpregress.solvers.linear.residual_plan import Sizes
from dpregress.solvers.shared.likely_values import LikelyValues
from dpregress.solvers.shared.magnitudes import EDGES, HALF_BIN, Magnitudes

#: Bins between the bounds of a response in which its values are looked for.
_PLACES = 64
#: Residuals are looked for within so many root mean squared distances from the mean.
_WITHIN = 4.0
#: How far below the lower bound places are measured from, in widths; and the share of values beyond
#: bounds from which these are not believed.
_BELOW, _OUTSIDE = 4.0, 0.2
#: A response within this share of the reach of its bounds is much narrower than they are.
_NARROW = 0.1
#: Standard deviations by which a released mean may be off.
_DEVIATIONS = 3.0
#: The upper bound itself is no value beyond it.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ResponseStart:
    """What is known about a response.

    Attributes
    ----------
    centre, reach : float
        The middle of what is possible, and the largest distance from there.
    sizes : Sizes or None
        Of distances from the centre, if the response was looked for.
    largest : Magnitudes or None
        The same, if all values lie at one end of their bins.
    mean, doubt : float
        The mean about the centre, and its variance. A mean may lie anywhere within reach if nothing is released.
    outside : bool
        Whether many values are beyond a bound: then a mean may lie anywhere within reach.
    """

    centre: float
    reach: float
    sizes: Sizes | None = None
    largest: Magnitudes | None = None
    mean: float = 0.0
    doubt: float = 0.0
    outside: bool = False

    @classmethod
    def of(
        cls, ask: Ask, space: WhitenedSpace, target: str, declared: ResponseScale | None, spend: Mapping[str, GDP]
    ) -> ResponseStart:
        """Before its mean is released: between bounds, where histograms of values or sizes say, or what is declared.

        Parameters
        ----------
        ask : Ask
        space : WhitenedSpace
        target : str
        declared : ResponseScale or None
            By the bounds of the schema.
        spend : mapping of str to GDP
            "scale" if there are no bounds, and "where" if the response is looked for between them. Where sizes of
            residuals at the mean are asked ("levels 0"), what is found only counts if it is narrow.
        """
        if declared is None:
            return _unbounded(ask, space, target, spend["scale"])
        plain = cls(declared.centre, declared.scale * declared.bound)
        if "where" not in spend:
            return plain
        found = _located(ask, space, target, declared, spend["where"])
        if "levels 0" not in spend:
            return found
        return replace(found, sizes=None) if found.reach <= _NARROW * plain.reach else plain

    def shows_beyond(self, sizes: Sizes) -> bool:
        """Whether many values lie beyond bounds, also by the sizes of residuals at the mean."""
        seen, farthest = sizes.levels.seen, self.reach + abs(self.mean) + _DEVIATIONS * self.doubt**0.5
        return self.outside or float(seen.size[seen.share > 0].max()) > HALF_BIN * farthest

    def averaged(self, ask: Ask, space: WhitenedSpace, spend: GDP, n: int) -> ResponseStart:
        """With the released mean response, shrunk towards the centre; ``space`` is centred there."""
        clip, cut, known = self.reach, 0.0, self.reach**2 / 3
        if self.largest is not None and not self.outside:
            known, unit = self.doubt, noise_in_mean(MeanResidual.largest_change(-1.0, 1.0), spend, n)
            clip = self.largest.best_clip(lambda bound: unit * bound)
            cut = self.largest.cut(clip)
        query = Counted(MeanResidual(space, GaussianFamily, np.zeros(space.order), -clip, clip))
        found = ask(query, spend)
        noise = query.noise(spend, found.n) ** 2 + cut**2
        gain = known / (known + noise) if known else 0.0
        return replace(self, mean=gain * float(found.mean[0]), doubt=gain * noise)


def _located(ask: Ask, space: WhitenedSpace, target: str, declared: ResponseScale, spend: GDP) -> ResponseStart:
    """Where a response lies between its bounds, by a histogram of its places there, and of those beyond a bound.

    Places are measured from far below the lower bound, so that values below it are not taken for others.
    """
    reach = declared.scale * declared.bound
    lower, width = (declared.centre - reach, 2 * reach) if space.intercept else (0.0, reach)
    below = _BELOW * width if space.intercept else 0.0
    inner = np.linspace(0.0, width, _PLACES + 1)
    inner[-1] *= 1 + _ROUNDING
    edges = np.concatenate([[0.0] if below else [], below + inner, [below + 2 * width]])
    value = lower + np.concatenate([[0.0] if below else [], (inner[:-1] + inner[1:]) / 2, [width]])
    found = space.with_response(ResponseScale(target, lower - below))
    likely = LikelyValues.of(ask(ResponseHistogram(found, edges), spend), value)
    centre = likely.mean if space.intercept else 0.0
    levels, most = likely.sizes(centre, np.full(len(value), inner[1])), likely.largest_sizes(centre, float(inner[1]))
    if likely.share[-1] + (likely.share[0] if below else 0.0) > _OUTSIDE:
        farthest = max(lower + width - centre, centre - lower)
        return ResponseStart(centre, farthest, Sizes(levels, blind=False), most, doubt=farthest**2 / 3, outside=True)
    doubt = likely.variance + float(inner[1]) ** 2 / 12  # that of a place within its bin too
    return ResponseStart(centre, _WITHIN * levels.root_mean_square, Sizes(levels, blind=False), most, doubt=doubt)


def _unbounded(ask: Ask, space: WhitenedSpace, target: str, spend: GDP) -> ResponseStart:
    """Twice the largest size of a response without bounds."""
    unscaled = space.with_response(ResponseScale(target))
    seen = Magnitudes.of_histogram(ask(ResponseHistogram(unscaled, EDGES), spend))
    return ResponseStart(0.0, 2.0 * 2**0.25 * float(seen.size[seen.share > 0].max()))
