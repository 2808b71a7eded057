"""Sizes of residuals of a linear fit, on which clips are planned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpregress.accounting import GDP
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.models import GaussianFamily
from dpregress.public.root import FEWEST_UNLIKE, unlike_most
from dpregress.queries import Ask, ResidualHistogram
from dpregress.releases import Histogram, Isotropic
from dpregress.solvers.shared.likely_tail import (
    NEARLY_SAME,
    Looked,
    bulk_of,
    likely_tail,
    with_lacking_rows,
    with_tail_beside,
)
from dpregress.solvers.shared.likely_values import LikelyValues
from dpregress.solvers.shared.magnitudes import HALF_BIN, Magnitudes, credible, pooled_above, visible_count

#: Chance that an empty bin between known bounds is taken for a full one, in all bins together.
_FALSE_BIN = 0.01
#: Bins above the next lower one that is seen from which a bin must be clear.
_GAP = 6
#: The number of standard deviations of a bin's noise that may be hidden above the largest size observed.
_HIDDEN_NOISES = 2.0
#: Residual histograms reach twenty octaves down from the largest residual, and forty above it: bounds may be wrong.
_DOWN, _ABOVE = 20, 40
#: A bin with a larger share of the rows is no tail.
_HELD = 1e-3


@dataclass(frozen=True, eq=False)
class Sizes(Looked):
    """Released sizes of residuals between known bounds; ``blind`` if no bin exceeded the noise."""

    blind: bool = False

    @classmethod
    def asked(
        cls,
        ask: Ask,
        space: WhitenedSpace,
        coef: Vector,
        reach: float,
        spend: GDP,
        *,
        most: float,
        before: Sizes,
        declared: bool = False,
    ) -> Sizes:
        """Of residuals at these coefficients, which are expected to be at most twice the reach.

        Where residuals are nearly all of one size, or were before, a tail is looked for up to ``most``; one that was
        found before stays. Declared bounds of the response may leave no larger one.
        """
        edges = 2 * reach * 2.0 ** (np.arange(-2 * _DOWN, 2 * _ABOVE + 1) / 2)
        found = ask(ResidualHistogram(space, GaussianFamily, coef, edges), spend)
        found = credible(found, most) if declared else found
        sizes = cls.of_histogram(found, reach, most=most, before=before)
        return before if before.tail and not sizes.tail else sizes

    @classmethod
    def likely(cls, ask: Ask, space: WhitenedSpace, coef: Vector, reach: float, spend: GDP, *, same: bool) -> Sizes:
        """Of residuals that are at most as large as the reach, where noise may hide every bin.

        Where responses are nearly all the same, a tail is looked for.
        """
        edges = reach * 2.0 ** (np.arange(-2 * _DOWN, 1) / 2)
        sizes = np.sqrt(edges[:-1] * edges[1:])
        found = ask(ResidualHistogram(space, GaussianFamily, coef, edges), spend)
        seen = cls(Magnitudes(sizes, LikelyValues.of(found, sizes).share, HALF_BIN))
        return seen.with_tail(found) if same else seen

    @classmethod
    def of_labels(cls, levels: Magnitudes, labels: Vector) -> Sizes:
        """Of residuals of public labels; where most of these are the same, sizes without the others would mislead.

        They are blind where hardly any label differs from the commonest one.
        """
        unlike = float(unlike_most(labels[:, None])[0])
        same = unlike < (1 - NEARLY_SAME) * len(labels)
        return cls(levels, bulk=levels.median if same else 0.0, tail=same, blind=unlike < FEWEST_UNLIKE)

    @classmethod
    def unknown(cls, reach: float) -> Sizes:
        """The reach itself."""
        return cls(Magnitudes(np.array([reach]), np.ones(1)), blind=True)

    @classmethod
    def of_histogram(
        cls, histogram: Histogram, reach: float, *, most: float = 0.0, before: Looked | None = None
    ) -> Sizes:
        """Bins that exceed the noise, plus a tail that may be hidden in it; the reach itself if no bin does.

        Sizes beyond twice the reach are not expected, so there a bin counts only if noise cannot explain it.
        """
        assert isinstance(histogram.noise, Isotropic)
        noise, edges = histogram.noise.sigma, histogram.edges
        expected = edges[1:] <= 2 * reach * (1 + 1e-9)
        inside, visible = int(expected.sum()), visible_count(histogram)
        threshold = -noise * float(ndtri(_FALSE_BIN / max(inside, 1)))
        seen = histogram.total > np.where(expected, threshold, visible)
        seen = _with_company(histogram.total, seen, visible)
        size = np.sqrt(edges[:-1] * edges[1:])
        if not seen.any():
            return cls.unknown(reach)
        counts = np.where(seen, histogram.total, 0.0)
        bulk = bulk_of(counts, size, histogram.n, before)
        longer = with_tail_beside(counts, size, histogram, bulk, most)
        if longer is not None:
            return cls(replace(longer, size=np.minimum(longer.size, most)), bulk=bulk, tail=True)
        lacking = with_lacking_rows(counts, size, histogram, bulk, most)
        if lacking is not None:
            return cls(lacking, bulk=bulk)
        counts[:inside] += pooled_above(histogram.total[:inside], seen[:inside], noise)
        levels = Magnitudes(size, counts / counts.sum(), HALF_BIN).with_hidden_tail(
            _HIDDEN_NOISES * noise / histogram.n
        )
        largest = max(2 * reach, float(edges[1:][seen].max()))
        return cls(replace(levels, size=np.minimum(levels.size, largest)), bulk=bulk)

    def with_tail(self, histogram: Histogram) -> Sizes:
        """The same with a tail that noise hides bin by bin, if there is one; bins are in the order of their sizes."""
        assert isinstance(histogram.noise, Isotropic)
        counts, size = self.levels.share * histogram.n, self.levels.size
        held = np.arange(len(counts)) <= np.flatnonzero(counts > _HELD * histogram.n)[-1]
        tail = likely_tail(histogram.total, size, held, histogram.noise.sigma, histogram.n)
        if not tail.any():
            return self
        counts += tail
        levels = replace(self.levels, share=counts / counts.sum())
        return replace(self, levels=levels, bulk=float(size[held].max()), tail=True)


def _with_company(total: Vector, seen: NDArray[np.bool_], clear: float) -> NDArray[np.bool_]:
    """Bins that are seen, but those far above the commonest and the next lower one only if their counts are clear.

    A false one far above ruins a clip.
    """
    kept, last = seen.copy(), int(np.argmax(total))
    for place in (last + 1 + np.flatnonzero(seen[last + 1 :])).tolist():
        kept[place] = place - last <= _GAP or total[place] > clear
        last = place if kept[place] else last
    return kept
