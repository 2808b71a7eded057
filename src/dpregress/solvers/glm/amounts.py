"""The mean of counts or amounts, and sizes of residuals from there, where noise hides the bins of a histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import ResponseScale, Vector, WhitenedSpace
from dpregress.models import Family, GaussianFamily
from dpregress.public.facts import PublicFacts
from dpregress.queries import Ask, Counted, MeanResidual, ResponseHistogram, noise_in_mean
from dpregress.solvers.glm.mean_step import TAIL
from dpregress.solvers.glm.rare_counts import hidden_share, may_be_none, with_hidden
from dpregress.solvers.shared.likely_tail import NEARLY_SAME, Looked, nearly_same
from dpregress.solvers.shared.likely_values import LikelyValues
from dpregress.solvers.shared.magnitudes import Magnitudes

#: The n mu between which responses are looked for between their bounds, and the share of that in the start.
_BLIND, _PLAIN, LOOK = 40.0, 500.0, 0.5
#: Counts up to so many are looked for up to this n mu: their bins are few, and a mean of rare events is easily missed.
_FEW, _PLAIN_OF_FEW = 20.0, 2000.0
#: Half octaves below the upper bound that amounts may lie, the most and the fewest; and the most bins of counts.
_DEEPEST, _LEAST_DEEP, _COUNTS = 40, 12, 40
#: The ratio of bounds below which they say more than half octaves.
_OCTAVE = 2.0
#: The mean by the histogram alone is off by this share of itself.
ROUGH = 0.5
#: Others are seen from so many times the commonest amount, and may be hidden up to more than so many times a clip.
_APART, _ROOM = 8.0, 4.0
#: A mean is no smaller than this share of the upper bound.
_SMALLEST = 1e-12


def between(facts: PublicFacts, family: Family, mu: float) -> tuple[float, float] | None:
    """Bounds of a positive response between which it is looked for; None if it has none, or n mu is large or tiny."""
    if facts.response_bounds is None:
        return None
    lower, upper = facts.response_bounds
    few = upper <= _FEW if may_be_none(family) else upper < _OCTAVE * lower
    plain = _PLAIN_OF_FEW if few else _PLAIN
    return (max(lower, 0.0), upper) if upper > 0 and _BLIND <= facts.n * mu < plain else None


def _of_amounts(lower: float, upper: float) -> tuple[Vector, Vector, Vector]:
    """Edges, middles and widths of bins of half octaves below the upper bound, or of equal ones within an octave."""
    if upper < _OCTAVE * lower:
        edges = np.linspace(lower, upper, _DEEPEST + 1)
        return edges, edges[:-1] / 2 + edges[1:] / 2, np.diff(edges)
    least = max(lower, upper * 2.0 ** (-_DEEPEST / 2))
    bins = max(math.ceil(2 * math.log2(upper / least)), _LEAST_DEEP) if upper > least else _LEAST_DEEP
    edges = upper * 2.0 ** (np.arange(-bins, 1) / 2)
    return edges, np.sqrt(edges[:-1] * edges[1:]), np.diff(edges)


def of_counts(lower: float, upper: float) -> tuple[Vector, Vector, Vector]:
    """The same of whole numbers: the least, and then as many together as half an octave has.

    A bin that no count can be in has noise alone, which moves means and clips.
    """
    ratio = max(math.sqrt(2), (2 * upper) ** (1 / _COUNTS))
    least = math.ceil(lower)
    edges = [max(least - 0.5, 0.0), least + 0.5, least + 1.5]
    while edges[-1] < upper:
        edges.append(max(edges[-1] + 1, math.floor(edges[-1] * ratio) + 0.5))
    first, last = np.array(edges[1:-1]) + 0.5, np.minimum(np.array(edges[2:]) - 0.5, max(math.floor(upper), least + 1))
    return np.array(edges), np.append(float(least), np.sqrt(first * last)), np.append(0.0, last - first)


@dataclass(frozen=True, eq=False)
class Amounts:
    """What is known about a positive response.

    Attributes
    ----------
    value, variance : float
        The mean, and its variance.
    values : LikelyValues
    width : ndarray of shape (bins,)
    counts : bool
        Whether the response may be 0.
    hides : bool
        Whether noise may hide amounts that decide on the mean: nearly all are the same, and bounds leave far more.
    """

    value: float
    variance: float
    values: LikelyValues
    width: Vector
    counts: bool
    hides: bool

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
        plain = replace(space, exposure=None).with_response(ResponseScale(facts.target))
        edges, value, width = of_counts(lower, upper) if counts and upper >= 1 else _of_amounts(lower, upper)
        seen = ask(ResponseHistogram(plain, edges), look)
        values = LikelyValues.of(seen, value, rare=counts and upper <= _FEW)
        if counts and value[0] == 0:
            values = with_hidden(values, hidden_share(seen))
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
        commonest = int(np.argmax(values.share))
        alone = not counts and values.share[commonest] > NEARLY_SAME and clip < _APART * value[commonest]
        variance = gain * noise + max(least - mean, 0.0) ** 2
        return cls(max(mean, least), variance, values, width, counts, alone and upper > _ROOM * clip)

    def sizes(self, factor: float) -> Looked:
        """Distances from the mean, times the factor of a score there."""
        found = self.values.sizes(self.value, self.width)
        levels = replace(found, size=abs(factor) * found.size)
        same = not self.counts and nearly_same(self.values.share, 1.0)
        return Looked(levels, levels.root_mean_square if same else 0.0, hides=self.hides)
