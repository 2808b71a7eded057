r"""The distribution of a response by a noisy histogram, where noise may hide every single bin.

Few rows or a small budget leave no bin above the noise, though all bins together tell where the values lie. Counts
``c_j`` with noise of standard deviation sigma are compared with what n rows of a candidate distribution would give,

.. math:: \log L(p) = -\tfrac12 \sum_j (c_j - n p_j)^2 / \sigma^2,

and the candidates are averaged with these weights: normal distributions of the bins' places with any centre and width,
and, less likely beforehand, the same with an atom of any weight in any bin. Counts of bins that stand out of the noise,
or fall short of the average by more than noise can explain, are taken as they are. Everything here is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpregress.coordinates import Matrix, Vector
from dpregress.releases import Histogram, Isotropic
from dpregress.solvers.shared.magnitudes import Magnitudes, visible_count

#: Widths of the candidates, in bins: from less than one to all of them; and centres for each bin.
_WIDTHS, _NARROWEST, _CENTRES = 12, 0.3, 2
#: Candidates that are less likely than this share of the likeliest one are left out: they may lie far away.
_UNLIKELY = 0.02
#: Weights of an atom, those of rare values too, and the prior probability that there is one.
_ATOMS, _ATOM = np.linspace(0.1, 0.9, 9), 0.05
_RARE_ATOMS = np.array([0.02, 0.05, *_ATOMS, 0.95, 0.98])
#: A bin counts if a row is expected there, and in any case with this share of the commonest one.
_RARE = 0.1
#: Standard deviations of noise by which fewer values than rows must be counted: others have none.
_MISSING = 3.0


@dataclass(frozen=True, eq=False)
class LikelyValues:
    """Values with their expected shares.

    Attributes
    ----------
    value, share : ndarray of shape (bins,)
    variance : float
        Of the mean of all values, by what the histogram leaves open.
    """

    value: Vector
    share: Vector
    variance: float

    @classmethod
    def of(cls, histogram: Histogram, value: Vector, *, rare: bool = False) -> LikelyValues:
        """From a released histogram whose bins stand for these values.

        Parameters
        ----------
        histogram : Histogram
            Of n rows, some of which may have no value.
        value : ndarray of shape (bins,)
        rare : bool, default=False
            Whether an atom may have or leave a few hundredths of the rows. Noise finds such values far away as well.
        """
        assert isinstance(histogram.noise, Isotropic)
        normal, atoms = _normal(len(value)), _RARE_ATOMS if rare else _ATOMS
        rows, noise = float(histogram.n), histogram.noise.sigma
        counted = float(histogram.total.sum())
        if 0 < counted < rows - _MISSING * noise * math.sqrt(len(value)):
            rows = counted
        whole, added = _weights(normal, atoms, histogram.total / rows, noise / rows)
        left = whole + (added @ (1 - atoms)).sum(axis=1)  # the weight of each normal distribution, in total
        share = left @ normal + (added @ atoms).sum(axis=0)
        mean, centres = float(share @ value), normal @ value
        mixed = centres[:, None, None] * (1 - atoms) + value[:, None] * atoms
        variance = float(np.sum(whole * (centres - mean) ** 2) + np.sum(added * (mixed - mean) ** 2))
        shown = _seen(share, histogram.total / rows, visible_count(histogram) / rows, 1 / rows)
        return cls(value, shown, variance)

    @property
    def mean(self) -> float:
        """The expected mean."""
        return float(self.share @ self.value)

    def sizes(self, centre: float, width: Vector) -> Magnitudes:
        """Distances from a centre, of values that are spread over bins of these widths."""
        return Magnitudes(np.sqrt((self.value - centre) ** 2 + width**2 / 12), self.share)

    def largest_sizes(self, centre: float, width: float) -> Magnitudes:
        """Distances from a centre, of values that may all lie at one end of bins of this width."""
        return Magnitudes(np.abs(self.value - centre) + width / 2, self.share)


def _normal(bins: int) -> Matrix:
    """Shares of the bins by normal distributions, of shape (candidates, bins)."""
    centre = np.linspace(0, bins, _CENTRES * bins + 1)[:, None]
    width = np.geomspace(_NARROWEST, bins, _WIDTHS)[:, None, None]
    within = np.diff(ndtr((np.arange(bins + 1) - centre) / width), axis=-1).reshape(-1, bins)
    return np.asarray(within / within.sum(axis=1, keepdims=True))


def _weights(normal: Matrix, atom: Vector, counts: Vector, noise: float) -> tuple[Vector, NDArray[np.float64]]:
    """The weights of the candidates: of shape (normal,), and with atoms (normal, bins, weights of an atom).

    Parameters
    ----------
    normal : ndarray of shape (candidates, bins)
    atom : ndarray of shape (weights,)
    counts : ndarray of shape (bins,)
        As shares of all rows.
    noise : float
        Their standard deviation.
    """
    along, square = normal @ counts, np.sum(normal**2, axis=1)
    rest = 1 - atom
    joint = rest * along[:, None, None] + atom * counts[:, None]
    norm = rest**2 * square[:, None, None] + 2 * rest * atom * normal[:, :, None] + atom**2
    plain, mixed = square - 2 * along, norm - 2 * joint  # misfits but for |c|^2
    least = min(float(plain.min()), float(mixed.min()))
    whole = np.exp((least - plain) / (2 * noise**2))
    added = _ATOM / (1 - _ATOM) * np.exp((least - mixed) / (2 * noise**2)) / (len(counts) * len(atom))
    most = max(float(whole.max()), float(added.max()))
    whole, added = (np.where(weight < _UNLIKELY * most, 0.0, weight) for weight in (whole, added))
    total = float(whole.sum() + added.sum())
    return whole / total, added / total


def _seen(share: Vector, counts: Vector, visible: float, least: float) -> Vector:
    """Shares, but in bins whose counts are visible, or fall visibly short: there those, and what is left elsewhere.

    Less than the least share, that of a row, is none where others have much more.
    """
    clear = np.maximum(counts, share - counts) > visible
    own = np.where(clear, np.maximum(counts, 0.0), 0.0)
    left, others = max(1 - float(own.sum()), 0.0), np.where(clear, 0.0, share)
    found = own + others * (left / max(float(others.sum()), 1e-300))
    found = np.where(found < min(least * float(found.sum()), _RARE * float(found.max())), 0.0, found)
    return np.asarray(found / found.sum())
