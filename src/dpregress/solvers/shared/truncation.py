"""What row weights and clips take from scores, by surrogate rows, and the bound with which it is asked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.queries import ScoreRemainder, noise_in_mean
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.surrogate import SurrogateRows

#: What a model misses of the mean response is likely to have this standard deviation, in those of the residuals.
LIKELY = 0.2
#: Bounds of remainders that are considered, in products of radius and clip.
_BOUNDS = 2.0 ** np.arange(-5, 5.25, 0.25)
#: The noise has at least this share of the standard deviation of the sampling error, in the geometric mean over
#: directions, since private rows may have longer tails than surrogate rows.
_LEAST_NOISE = 0.4
#: The share of the sampling errors' trace that is rounding.
_ROUNDING = 1e-12
#: Points at which the sizes of residuals are taken, and the share of the largest ones.
_POINTS, _RAREST = 64, 1e-6


class Truncation(ABC):
    """What row weights and a clip take from scores."""

    @abstractmethod
    def lost(self, bound: float) -> Matrix:
        """The second moment of what lies beyond this bound of the remainder, of shape (q, q)."""

    @cached_property
    def whole(self) -> Matrix:
        """The second moment of all that they take, of shape (q, q)."""
        return self.lost(0.0)

    def likely(self, bound: float) -> Matrix:  # noqa: ARG002
        """The second moment to which a released remainder with this bound is compared, of shape (q, q)."""
        return self.whole

    @property
    def doubted(self) -> Truncation:
        """What they may take, for intervals."""
        return self

    @property
    @abstractmethod
    def scores(self) -> Matrix:
        """The second moment of ordinary scores, of shape (q, q)."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """The standard deviation of an entry of an ordinary score."""

    def best_bound(self, contribution: float, spend: GDP, n: int) -> float:
        """The bound with the shortest intervals, in the geometric mean over coefficients, or one with little noise.

        Sampling, noise and what may lie beyond the bound are added. The bound is a multiple of that of the score, its
        largest ``contribution``.
        """
        sampling = self.scores / n
        bounds = contribution * _BOUNDS
        noise = (noise_in_mean(ScoreRemainder.largest_change(1.0), spend, n) * bounds) ** 2
        values = np.maximum(np.linalg.eigvalsh(sampling), max(_ROUNDING * float(np.trace(sampling)), 1e-300))
        with np.errstate(over="ignore"):  # rows of zeros have no sampling error
            longer = np.mean(np.log1p(noise[:, None] / values), axis=1)
        quiet = np.flatnonzero((longer <= math.log1p(_LEAST_NOISE**2)) & (_BOUNDS <= 1))
        least = int(quiet.max(initial=0))  # bounds rise, and the noise with them
        bounds, noise = bounds[least:], noise[least:]
        slopes = np.eye(len(sampling))
        found = [
            np.linalg.slogdet(sampling + variance * slopes + LIKELY**2 * self.lost(bound))[1]
            for variance, bound in zip(noise.tolist(), bounds.tolist(), strict=True)
        ]
        return float(bounds[np.argmin(found)])


@dataclass(frozen=True, eq=False)
class ResidualTruncation(Truncation):
    """What weights and clips take from the scores of surrogate rows with residuals of these sizes.

    Attributes
    ----------
    rows : SurrogateRows
    sizes : Magnitudes
        Of weighted residuals.
    clip : float or ndarray of shape (m,)
        Of these times ``longer``, for all rows or for each.
    longer : float or ndarray of shape (m,)
        The score before the clip, over that of the row as it is weighted.
    """

    rows: SurrogateRows
    sizes: Magnitudes
    clip: float | Vector
    longer: float | Vector = 1.0

    @cached_property
    def _length(self) -> Vector:
        """Norms of weighted rows, of shape (m,)."""
        return np.asarray(np.maximum(np.linalg.norm(self.rows.x, axis=1), 1e-300))

    @property
    def _larger(self) -> Vector:
        """Sizes of residuals of each row, over those of all, of shape (m,)."""
        return np.ones(len(self.rows.x))

    @cached_property
    def _taken(self) -> tuple[Matrix, Vector]:
        """Of the weighted row x, what is taken for residuals of some sizes, of shape (m, sizes), and their shares."""
        survival = np.geomspace(1.0, _RAREST, _POINTS + 1)
        shares = -np.diff(survival)
        sizes = self.sizes.quantiles(1 - np.sqrt(survival[1:] * survival[:-1])) * self._larger[:, None]
        clip, longer = (np.broadcast_to(each, len(self.rows.x))[:, None] for each in (self.clip, self.longer))
        kept = np.minimum(longer * sizes, clip)
        taken = sizes / self.rows.shortening[:, None] ** 2 - kept
        return np.asarray(taken), shares / shares.sum()

    def lost(self, bound: float) -> Matrix:
        taken, shares = self._taken
        with np.errstate(over="ignore"):  # rows of zeros lose nothing
            least = bound / self._length
        hit = taken[:, -1] > least  # the largest size; most rows lose nothing
        mean = np.maximum(taken[hit] - least[hit, None], 0.0) ** 2 @ shares
        x = self.rows.x[hit]
        return np.asarray((x * mean[:, None]).T @ x / len(hit))

    @cached_property
    def _unweighted(self) -> Matrix:
        """The second moment of rows without weights."""
        return self.rows.unweighted.gram

    @property
    def weighted(self) -> Matrix:
        """What the weights take from the second moment of rows."""
        return self._unweighted - self.rows.gram

    @property
    def scores(self) -> Matrix:
        return self.sizes.root_mean_square**2 * self._unweighted

    @property
    def spread(self) -> float:
        return self.sizes.root_mean_square
