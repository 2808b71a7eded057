"""The exact noise law of second moments whose numbers were summed, and whose classes were counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpregress.coordinates.svec import Matrix, Vector
from dpregress.releases.block_noise import TableNoise, variances_between


@dataclass(frozen=True, eq=False)
class MomentNoise(TableNoise):
    r"""The noise in second moments of design columns that were released as sums.

    Everything is independent: the noise ``s_0 z`` of the number of rows; of a number j that of its sum, of scale
    ``s_j``, and that of its sum of ``e^2 - 1/2``, of scale ``s_jj`` (so that its sum of squares has half the noise of
    the number of rows, too); of a class that of its counts, of scale ``s_j``; and that of a pair's block, ``s_jk``.

    Parameters
    ----------
    domain : Domain
    sigmas : mapping of clique to float
        Standard deviations for the number of rows ``()``, all attributes ``(j,)``, numbers with themselves ``(j, j)``
        and pairs.
    kept : tuple of int
        Positions of the design columns that are kept.
    """

    def product_covariance(self, vector: Vector) -> Matrix:
        """The covariance of ``N v``, as a sum over what was released."""
        domain, full = self.domain, np.zeros(self.domain.width)
        np.add.at(full, list(self.kept), vector)
        count = np.zeros(domain.width)
        count[0] = full[0]
        along, beside, own = np.zeros(domain.width), np.zeros(domain.width), np.zeros(domain.width)
        for j, attribute in enumerate(domain.attributes):
            places, sigma = domain.columns_of(j), self.sigmas[(j,)]
            along[places] = sigma * full[places]
            if attribute.numeric:
                count[places] = full[places] / 2
                beside[places], own[places] = sigma * full[0], self.sigmas[j, j] * full[places]
            else:
                beside[places] = sigma * (full[0] + full[places])
        found = np.diag(beside**2 + own**2) + self.sigmas[()] ** 2 * np.outer(count, count)
        found[0, 0] += float(along @ along)
        found[0] += along * beside
        found[:, 0] += along * beside
        found += self.between * np.outer(full, full) + np.diag(self.between @ full**2)
        return found[np.ix_(self.kept, self.kept)]

    @cached_property
    def own(self) -> Matrix:
        """The variance of every entry in the constant's row, and in an attribute's own block; 0 elsewhere."""
        variance = np.zeros((self.domain.width, self.domain.width))
        variance[0, 0] = self.sigmas[()] ** 2
        for j, attribute in enumerate(self.domain.attributes):
            own, square = self.domain.columns_of(j), self.sigmas[(j,)] ** 2
            variance[0, own] = variance[own, 0] = square
            if attribute.numeric:
                square = self.sigmas[j, j] ** 2 + variance[0, 0] / 4
            variance[own, own] = square * np.eye(own.stop - own.start)
        return variance

    @cached_property
    def between(self) -> Matrix:
        """The variance of every entry between two attributes; 0 elsewhere."""
        return variances_between(self.domain, self.sigmas)
