r"""Responses that are nearly all the same, and the tail of the others, which noise hides bin by bin.

Of costs that most people do not have, a histogram shows the commonest value and little else, though the others decide
the mean and the slopes. Bins above it are compared with tails of several shapes p, together with the rows that are
lacking below (``s`` of n, by noisy counts of k bins),

.. math:: \hat w = \frac{\sum_j c_j p_j + s / k}{n (\sum_j p_j^2 + 1 / k)},

which is least squares for the share w. Shapes are averaged with their likelihoods as weights, the nearer
the more likely. Everything here is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpregress.coordinates import Matrix, Vector
from dpregress.releases import Histogram, Isotropic
from dpregress.solvers.shared.magnitudes import HALF_BIN, Magnitudes

#: The share of rows in two bins side by side from which responses are nearly all the same.
NEARLY_SAME = 0.6
#: Widths of a tail, in bins; the deviations of noise by which one has to stand out, and where others are seen; the
#: power of its size by which a shape is less likely beforehand; and the least weight of one, as a share of the largest.
_WIDTHS, _CLEAR, _CLEARER, _NEARER, _UNLIKELY = (1.0, 2.0, 4.0), 3.5, 4.5, 0.5, 0.02
#: A tail is more than so many times as long as the largest size that is seen; what is seen reaches as far below the
#: least as this.
_FLANK, _BELOW = 2.0, 16.0
#: The share of a size of residuals to which that falls from look to look where nothing holds it; and of their root mean
#: square where others were seen.
_SHRUNK, _LOST = 0.7, 0.5
#: Where the largest size that is seen is so many times the median, others are seen.
_SPREAD = 4.0
#: Noises of a bin by which the rows of those that are seen are too few; and half octaves that others may lie above.
_LACKING, FAR = 2.0, 12


@dataclass(frozen=True, eq=False)
class Looked:
    """Sizes of residuals as a histogram shows them.

    Attributes
    ----------
    levels : Magnitudes
    bulk : float
        The largest size of nearly all residuals where these are of one size, or were at first; otherwise 0.
    tail : bool
        Whether there is a tail beside it, which stands out of the noise in all bins together.
    hides : bool
        Whether noise may hide others that decide on the mean, and no later look tells of them.
    coded : bool
        Whether sizes were seen that declared bounds rule out.
    """

    levels: Magnitudes
    bulk: float = 0.0
    tail: bool = False
    hides: bool = False
    coded: bool = False


def all_the_same(looks: Sequence[Looked], *, located: bool = False) -> bool:
    """Whether residuals shrink from look to look, as of responses that are all the same: noise hides the others.

    A model then fits the commonest value ever better, and what it says of the others is nothing.

    Parameters
    ----------
    looks : sequence of Looked
    located : bool, default=False
        Whether responses were found to be nearly all the same before the first look.
    """
    if len(looks) < 2 or not (located or looks[0].bulk) or any(look.tail for look in looks[:-1]):
        return False
    before, last = looks[-2].levels, looks[-1].levels
    shrunk = last.root_mean_square / before.root_mean_square
    if looks[0].bulk > _SPREAD * looks[0].levels.median:  # others are seen; the first look is about the mean
        return len(looks) > 2 and shrunk < _LOST
    return min(last.median / before.median, shrunk) < _SHRUNK


def nearly_same(counts: Vector, n: float) -> bool:
    """Whether two bins side by side hold most of n rows."""
    return float(np.max(counts[:-1] + counts[1:], initial=0.0)) > NEARLY_SAME * n


def bulk_of(counts: Vector, size: Vector, n: int, before: Looked | None) -> float:
    """The largest size of nearly all residuals, of bins with these counts, where these are of one size, or were."""
    if before is not None and before.bulk:
        return before.bulk
    return float(size[counts > 0].max()) if nearly_same(counts, n) else 0.0


def with_tail_beside(
    counts: Vector, size: Vector, histogram: Histogram, bulk: float, most: float, least: float = 0.0
) -> Magnitudes | None:
    """Sizes with a tail beside the bulk, up to the size ``most``; None without a bulk, or if noise may explain a tail.

    Where others are seen, it has to stand out more clearly: noise in far bins is most of what is found there.

    Parameters
    ----------
    counts : ndarray of shape (bins,)
        Of what is seen; others are 0.
    size : ndarray of shape (bins,)
        In increasing order.
    histogram : Histogram
    bulk, most : float
    least : float, default=0
        A tail has no smaller sizes.
    """
    if not 0 < bulk < most:
        return None
    assert isinstance(histogram.noise, Isotropic)
    seen = size[counts > 0]
    others = float(seen.max()) > _SPREAD * Magnitudes(size, counts / counts.sum()).median
    held = (size >= seen.min() / _BELOW) & (size <= max(bulk, _FLANK * float(seen.max())))
    possible = (size < most) & (held | (size >= least))
    inside = histogram.total[possible], size[possible], held[possible]
    tail = likely_tail(*inside, histogram.noise.sigma, histogram.n, clear=_CLEARER if others else _CLEAR)
    if not tail.any():
        return None
    found = counts.copy()
    found[possible] += tail
    return Magnitudes(size, found / found.sum(), HALF_BIN)


def with_lacking_rows(
    counts: Vector, size: Vector, histogram: Histogram, bulk: float, most: float
) -> Magnitudes | None:
    """Sizes with the rows that are lacking: above those seen, fewer with every half octave; None if none are.

    Of others that have many sizes noise hides the rarer ones bin by bin, but not that they are lacking.

    Parameters
    ----------
    counts, size, histogram, bulk, most
        As in :func:`with_tail_beside`.
    """
    assert isinstance(histogram.noise, Isotropic)
    noise, seen = histogram.noise.sigma, counts > 0
    lacking = histogram.n - float(counts.sum()) - noise * math.sqrt(float(seen.sum()))
    if not 0 < bulk < most or lacking <= _LACKING * noise:
        return None
    found = Magnitudes(size, counts / counts.sum(), HALF_BIN).with_hidden_tail(lacking / histogram.n, FAR)
    return replace(found, size=np.minimum(found.size, most), hidden=0)


def likely_tail(
    total: Vector, size: Vector, held: NDArray[np.bool_], noise: float, n: int, *, clear: float = _CLEAR
) -> Vector:
    """Expected counts of the bins above those that are held; all 0 if noise may explain them.

    Parameters
    ----------
    total : ndarray of shape (bins,)
        Noisy counts.
    size : ndarray of shape (bins,)
        In increasing order.
    held : ndarray of bool of shape (bins,)
        Bins that have all other rows.
    noise : float
        The standard deviation of a count.
    n : int
        The number of all rows.
    clear : float
        Standard deviations of noise by which a tail stands out.
    """
    found, places = np.zeros(len(total)), np.flatnonzero(held)
    first = int(places[-1]) + 1 if places.size else 0
    above = total[first:]
    if not places.size or not above.size:
        return found
    shapes, exactness = _shapes(len(above)), 1 / float(held.sum())
    lacking = n - float(total[held].sum())
    information = np.sum(shapes**2, axis=1) + exactness
    evidence = shapes @ above + lacking * exactness
    deviations = evidence / (noise * np.sqrt(information))
    best = float(deviations.max())
    if best < clear:
        return found
    likely = np.exp((np.maximum(deviations, 0.0) ** 2 - best**2) / 2)
    weight = likely * (shapes @ (size[first:] / size[first])) ** -_NEARER
    weight = np.where(weight < _UNLIKELY * weight.max(), 0.0, weight)
    found[first:] = (weight * evidence / information) @ shapes / float(weight.sum())
    found[found < 1.0] = 0.0
    return found


def _shapes(bins: int) -> Matrix:
    """Shares of the bins by normal distributions of their places, of shape (shapes, bins)."""
    centre = (np.arange(bins) + 0.5)[:, None]
    width = np.array(_WIDTHS)[:, None, None]
    within = np.diff(ndtr((np.arange(bins + 1) - centre) / width), axis=-1).reshape(-1, bins)
    return np.asarray(within / within.sum(axis=1, keepdims=True))
