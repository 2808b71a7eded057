"""What a paid diagnosis of a model releases: sums by bins of the prediction, deviances, and a count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates.svec import Matrix, Vector
from dpregress.releases.noise import Isotropic
from dpregress.releases.release import Release


@dataclass(frozen=True, eq=False, repr=False)
class BinnedSums(Release):
    """Noisy sums by bins of the linear predictor, bin after bin; ``edges`` are the inner ends of the bins."""

    edges: Vector

    @property
    def table(self) -> Matrix:
        """The sums, of shape (bins, cells)."""
        return np.asarray(self.total.reshape(len(self.edges) + 1, -1))

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise in each sum."""
        assert isinstance(self.noise, Isotropic)
        return self.noise.sigma


@dataclass(frozen=True, eq=False, repr=False)
class LikelihoodSums(Release):
    """Noisy sums of deviances and log-likelihoods, in units of their ``bounds``."""

    bounds: Mapping[str, tuple[float, float]]

    def sum_of(self, part: str, rows: float) -> tuple[float, float] | None:
        """The sum over so many rows of one part, and the standard deviation of its noise; None where it was not asked.

        Parameters
        ----------
        part : {"deviance", "null", "saturated"}
        rows : float
            Usable rows: each adds at least the lower bound.
        """
        if part not in self.bounds:
            return None
        assert isinstance(self.noise, Isotropic)
        low, high = self.bounds[part]
        place = list(self.bounds).index(part)
        return low * rows + (high - low) * float(self.total[place]), (high - low) * self.noise.sigma
