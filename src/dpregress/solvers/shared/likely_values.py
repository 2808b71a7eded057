r"""The distribution of a response by a noisy histogram, where noise may hide every single bin.

Few rows or a small budget leave no bin above the noise, though all bins together tell where the values lie. Counts
``c_j`` with noise of standard deviation sigma are compared with what n rows of a candidate distribution would give,

.. math:: \log L(p) = -\tfrac12 \sum_j (c_j - n p_j)^2 / \sigma^2,

and the candidates, normal distributions of the bins' places with any centre and width, some with an atom in the first
bin, are averaged with these weights. Everything here is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dpregress.coordinates import Matrix, Vector
from dpregress.releases import Histogram, Isotropic
from dpregress.solvers.shared.magnitudes import Magnitudes

#: Widths of the candidates, in bins: from less than one to all of them; and centres for each bin.
_WIDTHS, _NARROWEST, _CENTRES = 12, 0.3, 2
#: Candidates that are less likely than this share of the likeliest one are left out: they may lie far away.
_UNLIKELY = 0.02
#: Weights of an atom in the first bin.
_ATOMS = np.append(0.0, np.linspace(0.05, 0.95, 10))


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
    def of(cls, histogram: Histogram, value: Vector, *, atom: bool = False) -> LikelyValues:
        """From a released histogram whose bins stand for these values.

        Parameters
        ----------
        histogram : Histogram
        value : ndarray of shape (bins,)
        atom : bool, default=False
            Whether many rows may share the first bin.
        """
        assert isinstance(histogram.noise, Isotropic)
        shares = _candidates(len(value), atom)
        misfit = np.sum((histogram.total - histogram.n * shares) ** 2, axis=1) / histogram.noise.sigma**2
        weight = np.exp(-(misfit - misfit.min()) / 2)
        weight = np.where(weight < _UNLIKELY, 0.0, weight)
        weight /= weight.sum()
        means, share = shares @ value, weight @ shares
        return cls(value, share, float(weight @ (means - share @ value) ** 2))

    @property
    def mean(self) -> float:
        """The expected mean."""
        return float(self.share @ self.value)

    def sizes(self, centre: float, width: Vector) -> Magnitudes:
        """Distances from a centre, of values that are spread over bins of these widths."""
        return Magnitudes(np.sqrt((self.value - centre) ** 2 + width**2 / 12), self.share)


def _candidates(bins: int, atom: bool) -> Matrix:
    """Shares of the bins by all candidates, of shape (candidates, bins)."""
    centre = np.linspace(0, bins, _CENTRES * bins + 1)[:, None]
    width = np.geomspace(_NARROWEST, bins, _WIDTHS)[:, None, None]
    within = np.diff(ndtr((np.arange(bins + 1) - centre) / width), axis=-1).reshape(-1, bins)
    within /= within.sum(axis=1, keepdims=True)
    if not atom:
        return np.asarray(within)
    first = np.eye(bins)[0]
    return np.concatenate([share * first + (1 - share) * within for share in _ATOMS])
