"""Sizes of values, from a public sample or a released histogram, and the best clip for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpregress.coordinates import Vector
from dpregress.public.response import OUTSIDE
from dpregress.releases import Histogram, Isotropic

#: Half-octave bins from 2^-100 to 2^100, for scales of any unit.
EDGES = 2.0 ** np.arange(-100, 100.5, 0.5)
#: From the geometric middle of a half-octave bin to its ends.
HALF_BIN = 2**0.25
#: Of a larger sample so many of the largest sizes are kept, and the others in as many groups.
_KEPT = 1_000
#: The probability, over all bins, that an empty bin is taken for a non-empty one.
_FALSE_BIN = 1e-8
#: Bins of a tail that are taken together, up to how many bins above the largest size seen, and the standard deviations
#: of the noise beyond which they count.
_POOLED, _FAR_ABOVE, _CLEAR = (2, 4, 8), 24, 4.5
#: There is no long tail where the bins that exceed the noise hold this share of the rows.
_NEARLY_ALL = 0.85


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """Sizes ``|r|`` with their shares, which sum to 1; each represents sizes of up to ``most`` times itself.

    The last ``hidden`` of them are a tail that nobody saw.
    """

    size: Vector
    share: Vector
    most: float = 1.0
    hidden: int = 0

    @classmethod
    def of_sample(cls, values: Vector) -> Magnitudes:
        """From a public sample; of a large one neighbours are taken together, with their root mean square."""
        size, n = np.abs(values), len(values)
        if n <= 2 * _KEPT:
            return cls(size, np.full(n, 1 / n))
        size = np.sort(size)
        first = np.linspace(0, n - _KEPT, _KEPT, endpoint=False, dtype=int)
        count = np.diff(first, append=n - _KEPT)
        grouped = np.sqrt(np.add.reduceat(size[: n - _KEPT] ** 2, first) / count)
        return cls(np.append(grouped, size[n - _KEPT :]), np.append(count, np.ones(_KEPT)) / n)

    @classmethod
    def of_histogram(cls, histogram: Histogram, *, pooled: bool = False) -> Magnitudes:
        """From released counts, at the geometric centres of the bins that exceed the noise.

        The threshold is one that empty bins exceed only once in 10^8 fits, because a single empty bin at the far end
        would ruin a mean.

        Parameters
        ----------
        histogram : Histogram
        pooled : bool, default=False
            Whether a long tail is looked for in several bins together.
        """
        threshold = visible_count(histogram)
        seen = histogram.total > threshold
        counts = np.where(seen, histogram.total, 0.0)
        if pooled and float(counts.sum()) < _NEARLY_ALL * histogram.n:
            assert isinstance(histogram.noise, Isotropic)
            counts += pooled_above(histogram.total, seen, histogram.noise.sigma)
        if not counts.any():
            counts[int(np.argmax(histogram.total))] = 1.0
        return cls(np.sqrt(histogram.edges[:-1] * histogram.edges[1:]), counts / counts.sum(), HALF_BIN)

    def with_hidden_tail(self, hidden: float, half_octaves: int = 4) -> Magnitudes:
        """With what may lie above the largest size seen: half of ``hidden`` (a share) half an octave up, and so on.

        Parameters
        ----------
        hidden : float
            The share of rows that could lie there without being seen: 1/m for a sample of m, the threshold
            over n for a histogram.
        half_octaves : int, default=4
            How far above.
        """
        top = float(self.size[self.share > 0].max())
        steps = np.arange(1, half_octaves + 1)
        size = np.concatenate([self.size, top * 2 ** (steps / 2)])
        share = np.concatenate([self.share, hidden * 0.5**steps])
        return Magnitudes(size, share / share.sum(), self.most, half_octaves)

    @property
    def seen(self) -> Magnitudes:
        """Without the tail that may be hidden."""
        if not self.hidden:
            return self
        share = self.share[: -self.hidden]
        return Magnitudes(self.size[: -self.hidden], share / share.sum(), self.most)

    @property
    def mean(self) -> float:
        """``E |r|``."""
        return float(self.share @ self.size)

    @property
    def median(self) -> float:
        """The size that half of the values do not exceed."""
        return float(self.quantiles(np.array([0.5]))[0])

    @property
    def root_mean_square(self) -> float:
        """``sqrt(E r^2)``."""
        return float(np.sqrt(self.share @ self.size**2))

    @property
    def largest(self) -> float:
        """The largest size that is seen."""
        seen = self.seen
        return float(seen.size[seen.share > 0].max())

    @property
    def logarithm(self) -> tuple[float, float]:
        """Mean and standard deviation of ``log |r|``."""
        logs = np.log(self.size)
        mean = float(self.share @ logs)
        return mean, float(np.sqrt(self.share @ (logs - mean) ** 2))

    def quantiles(self, at: NDArray[np.floating[Any]]) -> Vector:
        """The sizes below which these shares lie, of the same shape."""
        order = np.argsort(self.size)
        place = np.searchsorted(np.cumsum(self.share[order]), at)
        return np.asarray(self.size[order][np.minimum(place, len(order) - 1)])

    def cut(self, bound: float) -> float:
        """``E (|r| - bound)+``, the mean amount that a clip removes."""
        return float(self.share @ np.maximum(self.size - bound, 0))

    def above(self, bound: float) -> float:
        """The share of sizes above a bound."""
        return float(self.share @ (self.size > bound))

    def square_within(self, bound: float) -> float:
        """``E min(|r|, bound)^2``."""
        return float(self.share @ np.minimum(self.size, bound) ** 2)

    def share_within(self, bound: float) -> float:
        """The same as a share of ``E r^2``; 1 if there are no sizes but 0."""
        whole = self.root_mean_square**2
        return self.square_within(bound) / whole if whole > 0 else 1.0

    def beyond(self, bound: float) -> float:
        """The share of ``E r^2`` that a clip there removes, ``E (|r| - bound)+^2 / E r^2``."""
        return float(self.share @ np.maximum(self.size - bound, 0) ** 2) / max(self.root_mean_square**2, 1e-300)

    def nearly_all(self, share: float) -> float:
        """The least size beyond which no more than this share of ``E r^2`` is cut off."""
        sizes = np.unique(self.size[self.share > 0])
        most = share * self.root_mean_square**2
        low, high = 0, len(sizes) - 1
        while low < high:
            middle = (low + high) // 2
            cut = float(self.share @ np.maximum(self.size - sizes[middle], 0) ** 2)
            low, high = (low, middle) if cut <= most else (middle + 1, high)
        return float(sizes[high]) * self.most

    def best_clip(
        self,
        noise: Callable[[Vector], Vector],
        *,
        cut_weight: float = 1.0,
        least: float = 0.0,
        tolerated: float = 0.0,
    ) -> float:
        """The size, from the median up, that minimises the squared noise plus the square of what a clip there removes.

        Parameters
        ----------
        noise : callable
            The root mean squared noise for each of several clips.
        cut_weight : float
            The weight of what is removed; more than 1 if larger sizes than those known are likely.
        least : float
            The answer is no less.
        tolerated : float
            The answer is the largest size whose squared error exceeds the smallest by no more.
        """
        order = np.argsort(self.size)
        size, share = self.size[order], self.share[order]
        bound = size * self.most
        rows, total = (sums_from(of)[1:] for of in (share, share * size))  # that lie above
        cut = np.maximum(total - rows * bound, 0)
        usable = (np.cumsum(share) >= 0.5) & (share > 0) & (size > 0)
        if not usable.any():
            return 1.0
        loss = np.where(usable, noise(bound) ** 2 + (cut_weight * cut) ** 2, np.inf)
        return max(float(bound[loss <= loss.min() + tolerated].max()), least)


def sums_from(values: Vector) -> Vector:
    """The sum of each value and all after it, and 0 at the end."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def pooled_above(total: Vector, seen: NDArray[np.bool_], noise: float) -> Vector:
    """Counts of the bins above the largest one that is seen, where several together stand out of the noise.

    A long tail is spread over many bins, each of which noise may hide. What two, four or eight of them have together is
    theirs in proportion to their counts above 0.

    Parameters
    ----------
    total : ndarray of shape (bins,)
    seen : ndarray of bool of shape (bins,)
    noise : float
        The standard deviation of the noise of a bin.
    """
    found, bins = np.zeros(len(total)), np.flatnonzero(seen)
    if not bins.size:
        return found
    place, last = int(bins[-1]) + 1, min(int(bins[-1]) + 1 + _FAR_ABOVE, len(total))
    while place < last:
        for width in _POOLED:
            group = slice(place, min(place + width, last))
            count, above = float(total[group].sum()), np.maximum(total[group], 0.0)
            if count > _CLEAR * noise * math.sqrt(len(above)):
                found[group], place = count * above / above.sum(), place + width
                break
        else:
            place += _POOLED[0]
    return found


def credible(histogram: Histogram, most: float) -> Histogram:
    """Without sizes that declared bounds rule out, unless so many are seen that these are not believed.

    A code for a missing response, such as 9999, would set means and clips.
    """
    beyond = histogram.edges[:-1] >= most
    seen = np.where(beyond & (histogram.total > visible_count(histogram)), histogram.total, 0.0)
    if not seen.any() or float(seen.sum()) > OUTSIDE * float(histogram.total.sum()):
        return histogram
    kept = max(int(np.argmax(beyond)), 1)
    left = max(histogram.n - round(float(seen.sum())), 1)
    return replace(histogram, total=histogram.total[:kept], edges=histogram.edges[: kept + 1], n=left)


def visible_count(histogram: Histogram) -> float:
    """The noisy count that an empty bin of the histogram reaches with probability 1e-8."""
    assert isinstance(histogram.noise, Isotropic)
    return -histogram.noise.sigma * float(ndtri(_FALSE_BIN / len(histogram.total)))
