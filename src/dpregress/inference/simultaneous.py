r"""Intervals that hold after any selection of columns: simultaneously for every coefficient of every submodel.

In a submodel M the coefficient of column j is a linear function of the estimates, and its ratio to its error is ``u'z``
with z standard normal in d dimensions and u the unit vector along what the other columns of M leave of column j.
Intervals with the critical value K, the quantile of ``max |u'z|`` over all M and j, hold for every choice of M, however
it was made. Source: Berk, Brown, Buja, Zhang, Zhao (2013). ``z = r v`` with a uniform direction v and a chi-distributed
length r, so that ``P(max |u'z| <= K)`` is the mean over v of ``P(r <= K / max |u'v|)``; directions are quasi-random,
and nothing is drawn. With more than twelve columns K is Scheffe's ``sqrt(d F_d)``, which is larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtr, chdtri, fdtr, fdtri

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import symmetric_power
from dpregress.coordinates.quasi_random import quasi_normal
from dpregress.display import ShownInShort

#: With more columns there are too many submodels.
_MOST_COLUMNS = 12
_DIRECTIONS_LOG2, _AT_ONCE = 11, 256
#: From here on an F distribution is a chi-square to all digits that matter.
_NORMAL = 1e8


@dataclass(frozen=True, eq=False, repr=False)
class Simultaneous(ShownInShort):
    """The law of the largest ratio over all submodels.

    Parameters
    ----------
    columns : int
        d.
    df : float
        Degrees of freedom of the estimated variance; infinite for a known one.
    largest : ndarray of shape (directions,)
        ``max |u'v|`` for each direction; 1 for Scheffe's bound.
    """

    columns: int
    df: float
    largest: Vector

    @classmethod
    def of(cls, covariance: Matrix, df: float) -> Simultaneous:
        """Of all submodels of estimates with this covariance, of shape (d, d)."""
        d = len(covariance)
        if not 1 < d <= _MOST_COLUMNS:
            return cls(d, df, np.ones(1))
        scale = np.sqrt(np.diag(covariance))
        axes = _axes(symmetric_power(covariance / np.outer(scale, scale), -0.5, smallest=1e-12))
        v = quasi_normal(d, _DIRECTIONS_LOG2)
        v = v[np.linalg.norm(v, axis=1) > 0]
        v /= np.linalg.norm(v, axis=1)[:, None]
        parts = [np.abs(v[i : i + _AT_ONCE] @ axes.T).max(axis=1) for i in range(0, len(v), _AT_ONCE)]
        return cls(d, df, np.concatenate(parts))

    @property
    def exact(self) -> bool:
        """Whether all submodels were enumerated; otherwise the value is Scheffe's bound."""
        return len(self.largest) > 1 or self.columns == 1

    def chance(self, ratio: float) -> float:
        """``P(max |u'z| <= ratio)``."""
        squared = (ratio / self.largest) ** 2
        if self.df > _NORMAL:
            return float(np.mean(chdtr(self.columns, squared)))
        return float(np.mean(fdtr(self.columns, self.df, squared / self.columns)))

    def critical(self, level: float) -> float:
        """K for intervals of this level."""
        d = self.columns
        most = chdtri(d, 1 - level) if self.df > _NORMAL else d * fdtri(d, self.df, level)
        scheffe = math.sqrt(float(most))
        return float(brentq(lambda ratio: self.chance(ratio) - level, 1e-6, scheffe * (1 + 1e-9), xtol=1e-8))


def _axes(design: Matrix) -> Matrix:
    """The unit vectors of all coefficients of all submodels, of shape (d 2^(d-1), d)."""
    d = len(design)
    left = {0: design}
    for chosen in range(1, 1 << d):
        last = chosen.bit_length() - 1
        before = left[chosen ^ (1 << last)]
        unit = before[:, last] / max(float(np.linalg.norm(before[:, last])), 1e-300)
        left[chosen] = before - np.outer(unit, unit @ before)
    found = [
        columns[:, [j for j in range(d) if not chosen >> j & 1]].T
        for chosen, columns in left.items()
        if chosen + 1 < 1 << d
    ]
    axes = np.concatenate(found)
    return np.asarray(axes / np.maximum(np.linalg.norm(axes, axis=1), 1e-300)[:, None])
