r"""Where the values of a column lie, by a noisy histogram, and the range in which they are best told.

Public bounds are often much wider than the values between them, and noise is in proportion to the range. A noisy
histogram with noise of standard deviation sigma shows where values lie, even if no bin stands out: the counts
``c_j`` are compared with what n rows of a candidate would give,

.. math:: \log L(p) = -\tfrac12 \sum_j (c_j - n p_j)^2 / \sigma^2,

for normal, Student's t (2 degrees of freedom) and log-normal distributions, these with tails to either side, of any
place and width. Their average with these weights, with the counts that stand out of the noise as they are, is what is
known of the values x. With ``h = (b - a) / 2``, s the standard deviation of x within the range ``[a, b]`` and S that of
all x, the range is that with the least

.. math:: \frac{(\nu h)^2 + \max(E (x - b)_+, E (a - x)_+)^2}{S^2} + \frac{1}{10} \frac{r^2}{1 + r^2},
          \qquad r = \frac{2 \nu h^2}{s^2}:

what noise adds to a mean and what the ends take from it, and what noise takes from a slope, nu being the noise of a
mean of numbers in [-1, 1]. Tails are as heavy as the counts in them show together, and as the histogram before showed
them: values that filled one of its bins may be lost in the noise of many finer ones. Values beyond a range count as its
ends.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from dpregress.coordinates import Matrix, Vector

#: Of a budget: what the ranges take, and what is left.
RANGE_SHARES = (0.07, 0.93)
#: How often histograms are asked for, each within the ranges by the one before; and their bins.
RANGE_ROUNDS, BINS = 2, 64
#: The noise of a mean, and that of a mean square, are taken for these shares of that of a histogram.
_MEAN_NOISE, _SLOPE_NOISE = 0.1, 0.2
#: What a slope explains, as a share of the variance of a response.
_AT_STAKE = 0.1
#: Widths of the candidates, in bins: from less than one to half of them; and centres for each bin.
_WIDTHS, _NARROWEST, _CENTRES = 10, 0.3, 2
#: Noises by which a count differs from what is expected to be taken as it is; once in 10^8 without a difference.
_CLEAR = 5.5
#: Noises of a sum of counts that it may exceed what it counts by; and of sums that stand out of so many noises.
_LEAST, _LEAST_OF_CLEAR, _CLEAR_SUM = 3.0, 1.0, 3.8
#: Missing cells that stand out of the noise by so many standard deviations are not rows of the histogram.
_SEEN = 4.0
#: An edge that is less than this share of a bin away from 0 is 0, and not what rounding left.
_ZERO = 1e-6
#: Bins are no narrower than this share of their edges: floats would not tell them apart.
_FINEST = 1e-9


class Values(NamedTuple):
    """What is known of the values of a column.

    Attributes
    ----------
    share : ndarray of shape (bins,)
    below, above : ndarray of shape (bins + 1,)
        The least shares that lie below and above the edges of the bins, by counts that add up.
    noise : float
        Of a share.
    lower, upper : float
        The outer edges.
    """

    share: Vector
    below: Vector
    above: Vector
    noise: float
    lower: float = 0.0
    upper: float = 1.0

    @classmethod
    def of_column(cls, counts: Vector, sigma: float, rows: float) -> Values:
        """From noisy counts of about so many rows, the last of which is that of missing cells."""
        missing = float(counts[-1])
        return cls.of(counts[:-1], sigma, max(rows - (missing if missing > _SEEN * sigma else 0.0), 1.0))

    @classmethod
    def of(cls, counts: Vector, sigma: float, rows: float) -> Values:
        """From noisy counts of about so many rows."""
        candidates, found, noise = _candidates(len(counts)), counts / rows, sigma / rows
        misfit = np.sum(candidates**2, axis=1) - 2 * candidates @ found
        likelihood = np.exp((misfit.min() - misfit) / (2 * noise**2))
        share = likelihood @ candidates / likelihood.sum()
        clear = np.maximum(found, share - found) > _CLEAR * noise
        own, others = np.where(clear, np.maximum(found, 0.0), 0.0), np.where(clear, 0.0, share)
        shown = own + others * (max(1 - float(own.sum()), 0.0) / max(float(others.sum()), 1e-300))
        if shown.any():  # not so if all counts stand out, and none above 0: nobody is there
            share = shown
        return cls(share / share.sum(), _least(found, noise), _least(found[::-1], noise)[::-1], noise)

    @property
    def range(self) -> tuple[int, int]:
        """The first bin of the best range, and the first one after it."""
        edges, middles = np.arange(len(self.share) + 1.0), np.arange(len(self.share)) + 0.5
        length, noise = edges - edges[:, None], min(self.noise, 1.0)
        kept = np.clip(middles, edges[:, None, None], np.maximum(edges[:, None], edges)[..., None])
        variance = np.maximum(kept**2 @ self.share - (kept @ self.share) ** 2, 0.0) + 1 / 12
        slope = (_SLOPE_NOISE * noise * (length / 2) ** 2 / variance) ** 2
        mean = (_MEAN_NOISE * noise * length / 2) ** 2 + self._beyond**2
        loss = mean / float(variance[0, -1]) + _AT_STAKE * slope / (1 + slope)
        first, after = np.unravel_index(int(np.argmin(np.where(length > 0, loss, np.inf))), loss.shape)
        return int(first), int(after)

    def between(self, lower: float, upper: float, before: Values | None) -> Values:
        """The same with these outer edges, and what the histogram before showed of tails."""
        found = self._replace(lower=lower, upper=upper)
        if before is None:
            return found
        edges, known = found.edges, before.edges
        below = [np.max(before.below[known <= edge], initial=0.0) for edge in edges]
        above = [np.max(before.above[known >= edge], initial=0.0) for edge in edges]
        return found._replace(below=np.maximum(found.below, below), above=np.maximum(found.above, above))

    @property
    def edges(self) -> Vector:
        """Of the bins."""
        return np.linspace(self.lower, self.upper, len(self.share) + 1)

    def ends(self, bins: int) -> tuple[float, float] | None:
        """The best range; None if floats would not tell so many bins in it."""
        width = (self.upper - self.lower) / len(self.share)
        places = (self.lower + end * width for end in self.range)
        first, after = (place if abs(place) > _ZERO * width else 0.0 for place in places)
        coarse = after - first >= _FINEST * bins * max(abs(first), abs(after))
        return (first, after) if coarse else None

    @property
    def _beyond(self) -> Matrix:
        """The mean distance of values from each range, on the side where it is larger; of shape (first, after)."""
        below = np.maximum(np.append(0.0, np.cumsum(self.share)), self.below)
        above = np.maximum(np.append(np.cumsum(self.share[::-1])[::-1], 0.0), self.above)
        under = np.append(0.0, np.cumsum((below[:-1] + below[1:]) / 2))
        over = np.append(np.cumsum(((above[:-1] + above[1:]) / 2)[::-1])[::-1], 0.0)
        return np.asarray(np.maximum(over, under[:, None]))

    @property
    def mean(self) -> float:
        """Of the values."""
        middles = (np.arange(len(self.share)) + 0.5) / len(self.share)
        return self.lower + float(self.share @ middles) * (self.upper - self.lower)


def _least(found: Vector, noise: float) -> Vector:
    """The least shares below each edge: what bins up to there have together, less so many noises of their sum.

    Some of these bins, next to one another, may stand out, as those of a second cluster do.
    """
    sums, bins = np.append(0.0, np.cumsum(found)), np.arange(len(found) + 1)
    from_edge = sums - _LEAST * noise * np.sqrt(bins)
    between, error = np.triu(sums - sums[:, None]), noise * np.sqrt(np.abs(bins - bins[:, None]))
    clear = np.where(between > _CLEAR_SUM * error, between - _LEAST_OF_CLEAR * error, 0.0)
    return np.asarray(np.maximum.accumulate(np.maximum(from_edge, clear.max(axis=0)).clip(0.0)))


@cache
def _candidates(bins: int) -> Matrix:
    """Shares of the bins by all candidates; the outer bins hold everything beyond."""
    centre = np.linspace(0, bins, _CENTRES * bins + 1)[:, None]
    width = np.geomspace(_NARROWEST, bins / 2, _WIDTHS)[:, None, None]
    place = (np.arange(1, bins) - centre) / width
    right, left = (ndtr(np.log(np.maximum(side, 1e-300))) for side in (place, -place))
    below = [ndtr(place), 0.5 + place / (2 * np.sqrt(2 + place**2)), right, 1 - left]
    shares = [np.diff(each, axis=-1, prepend=0.0, append=1.0) for each in below]
    return np.concatenate(shares).reshape(-1, bins)
