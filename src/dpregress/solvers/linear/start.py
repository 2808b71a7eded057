"""Where a residual fit without labels starts: the mean response and the sizes of residuals from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import ResponseScale, Vector, WhitenedSpace
from dpregress.models import GaussianFamily
from dpregress.public.response import OUTSIDE
from dpregress.queries import Ask, Counted, MeanResidual, ResponseHistogram, noise_in_mean
from dpregress.releases import Histogram
from dpregress.solvers.linear.residual_sizes import Sizes
from dpregress.solvers.shared.likely_tail import all_the_same, nearly_same
from dpregress.solvers.shared.likely_values import LikelyValues
from dpregress.solvers.shared.magnitudes import EDGES, HALF_BIN, Magnitudes, visible_count

#: Bins between the bounds of a response in which its values are looked for.
_PLACES = 64
#: Residuals are looked for within so many root mean squared distances from the mean.
_WITHIN = 4.0
#: How far below the lower bound places are measured from, in widths.
_BELOW = 4.0
#: A response within this share of the reach of its bounds is much narrower than they are.
_NARROW = 0.1
#: Standard deviations by which a released mean may be off.
_DEVIATIONS = 3.0
#: The upper bound itself is no value beyond it.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Places:
    """A released histogram of places.

    Attributes
    ----------
    histogram : Histogram
    value : ndarray of shape (bins,)
        The places.
    width : float
        Of a bin.
    likely : LikelyValues
        What it tells.
    """

    histogram: Histogram
    value: Vector
    width: float
    likely: LikelyValues

    def tail(self, centre: float, n: int) -> Sizes | None:
        """Distances from the centre where nearly all of n responses are the same, and others stand out together."""
        total = self.histogram.total
        if not nearly_same(np.where(total > visible_count(self.histogram), total, 0.0), n):
            return None
        distance = np.sqrt((self.value - centre) ** 2 + self.width**2 / 12)
        order = np.argsort(distance)
        seen = Sizes(Magnitudes(distance[order], self.likely.share[order]))
        found = seen.with_tail(replace(self.histogram, total=total[order], n=n))
        return found if found.tail else None


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
    places : Places or None
        Of responses, if these were looked for.
    zero : bool
        Whether no response but 0 is seen, without bounds.
    """

    centre: float
    reach: float
    sizes: Sizes | None = None
    largest: Magnitudes | None = None
    mean: float = 0.0
    doubt: float = 0.0
    outside: bool = False
    places: Places | None = None
    zero: bool = False

    @property
    def same(self) -> bool:
        """Whether responses seem to be nearly all the same."""
        return self.places is not None and nearly_same(self.places.likely.share, 1.0)

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
        farthest = self.reach + abs(self.mean) + _DEVIATIONS * self.doubt**0.5
        return self.outside or sizes.levels.largest > HALF_BIN * farthest

    def shows_others(self, seen: Sequence[Sizes]) -> bool:
        """Whether responses are known to vary, also by these sizes of residuals."""
        return not self.zero and not all_the_same(seen, located=self.same)

    def looked(
        self, ask: Ask, space: WhitenedSpace, coef: Vector, spend: GDP, most: float, before: Sizes, *, declared: bool
    ) -> Sizes:
        """Sizes of residuals at these coefficients, of at most this size (declared or not), given the latest ones."""
        if self.sizes and not self.outside and not before.bulk:
            return Sizes.likely(ask, space, coef, self.reach, spend, same=self.same)
        declared = declared and not self.outside
        return Sizes.asked(ask, space, coef, self.reach, spend, most=most, before=before, declared=declared)

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
        told = replace(self, mean=gain * float(found.mean[0]), doubt=gain * noise)
        tail = None if self.places is None else self.places.tail(self.centre, found.n)
        if tail is None:
            return told
        return replace(told, sizes=tail, doubt=told.doubt + tail.levels.cut(clip) ** 2)


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
    counts = ask(ResponseHistogram(found, edges), spend)
    likely = LikelyValues.of(counts, value)
    centre = likely.mean if space.intercept else 0.0
    levels, most = likely.sizes(centre, np.full(len(value), inner[1])), likely.largest_sizes(centre, float(inner[1]))
    if likely.share[-1] + (likely.share[0] if below else 0.0) > OUTSIDE:
        farthest = max(lower + width - centre, centre - lower)
        return ResponseStart(centre, farthest, Sizes(levels), most, doubt=farthest**2 / 3, outside=True)
    doubt = likely.variance + float(inner[1]) ** 2 / 12  # that of a place within its bin too
    sizes, places = Sizes(levels), Places(counts, value, float(inner[1]), likely)
    return ResponseStart(centre, _WITHIN * levels.root_mean_square, sizes, most, doubt=doubt, places=places)


def _unbounded(ask: Ask, space: WhitenedSpace, target: str, spend: GDP) -> ResponseStart:
    """Twice the largest size of a response without bounds."""
    unscaled = space.with_response(ResponseScale(target))
    counts = ask(ResponseHistogram(unscaled, EDGES), spend)
    seen = Magnitudes.of_histogram(counts)
    largest = seen.largest
    return ResponseStart(0.0, 2.0 * HALF_BIN * largest, zero=largest < EDGES[1])
