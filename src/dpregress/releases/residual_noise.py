"""The exact noise law of tables that are sums of independent noisy residuals; tables are then correlated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpregress.coordinates.svec import Matrix, Vector
from dpregress.releases.block_noise import TableNoise


@dataclass(frozen=True, eq=False)
class ResidualNoise(TableNoise):
    r"""The noise in second moments of design columns that were computed from noisy residuals.

    With ``P_j = I - 11'/k_j`` and independent standard normal z, ``n`` has the noise ``s_0 z_0``, one-way tables
    ``t_j = s_0 z_0 1/k_j + s_j P_j z_j``, pair tables ``s_0 z_0 11'/(k_j k_k) + s_j P_j z_j 1'/k_k
    + 1 (s_k P_k z_k)'/k_j + s_jk P_j Z P_k``.

    Parameters
    ----------
    domain : Domain
    sigmas : mapping of clique to float
        Standard deviations for n (the empty tuple), attributes and pairs.
    kept : tuple of int
        Positions of the design columns that are kept.
    """

    def product_covariance(self, vector: Vector) -> Matrix:
        """The covariance of ``N v``, as a sum over residuals (docs/methods/marginals.md)."""
        domain = self.domain
        full = np.zeros(domain.width)
        full[list(self.kept)] = vector
        levels = [a.encoding @ full[domain.columns_of(j)] for j, a in enumerate(domain.attributes)]
        encoder = np.zeros((1 + domain.levels, domain.width))
        encoder[0, 0] = 1.0
        for j, attribute in enumerate(domain.attributes):
            own = domain.levels_of(j)
            encoder[own.start + 1 : own.stop + 1, domain.columns_of(j)] = attribute.encoding
        return self._seen(encoder[:, list(self.kept)], float(full[0]), levels)

    @cached_property
    def own(self) -> Matrix:
        """The variance of every entry in the constant's row, and in an attribute's own block; 0 elsewhere."""
        variance = np.zeros((self.domain.width, self.domain.width))
        variance[0, 0] = self.sigmas[()] ** 2
        for j, attribute in enumerate(self.domain.attributes):
            own, encoding = self.domain.columns_of(j), attribute.encoding
            products = np.einsum("li,lj->lij", encoding, encoding)
            for place, entries in (((0, own), encoding), ((own, own), products)):
                spread = entries.var(axis=0) * attribute.size
                variance[place] = self.sigmas[()] ** 2 * entries.mean(axis=0) ** 2 + self.sigmas[(j,)] ** 2 * spread
            variance[own, 0] = variance[0, own]
        return variance

    @cached_property
    def between(self) -> Matrix:
        """The variance of every entry between two attributes; 0 elsewhere."""
        domain, sigmas = self.domain, self.sigmas
        variance = np.zeros((domain.width, domain.width))
        # of each design column the square of the mean over levels, and the sum of squares about it
        means = [np.mean(attribute.encoding, axis=0) ** 2 for attribute in domain.attributes]
        spreads = [np.var(attribute.encoding, axis=0) * attribute.size for attribute in domain.attributes]
        for j, k in domain.pairs:
            block = sigmas[()] ** 2 * np.outer(means[j], means[k]) + sigmas[j, k] ** 2 * np.outer(
                spreads[j], spreads[k]
            )
            block += sigmas[(j,)] ** 2 * np.outer(spreads[j], means[k])
            block += sigmas[(k,)] ** 2 * np.outer(means[j], spreads[k])
            variance[domain.columns_of(j), domain.columns_of(k)] = block
            variance[domain.columns_of(k), domain.columns_of(j)] = block.T
        return variance

    def _seen(self, kept: Matrix, constant: float, levels: list[Vector]) -> Matrix:
        """``K' C K``, C the covariance for one-hot rows after a constant; ``levels`` are the vector's parts."""
        sizes = np.array(self.domain.sizes)
        own = [slice(1 + self.domain.levels_of(j).start, 1 + self.domain.levels_of(j).stop) for j in range(len(sizes))]
        means = np.array([part.mean() for part in levels])
        inverse = np.concatenate([[1.0], np.repeat(1 / sizes, sizes)])
        # of n: the constant meets every level's mean, and a level its own entry in place of its attribute's mean
        count = inverse * (constant + means.sum())
        parts, centred = [], np.zeros(len(inverse))
        for j, place in enumerate(own):
            centred[place] = levels[j] - means[j]
            count[place] += centred[place] / sizes[j]
            spread = np.outer(kept.T @ inverse - kept[place].T @ inverse[place], centred[place])
            spread += kept[place].T * (levels[j] + constant + means.sum() - means[j])
            parts.append(self.sigmas[(j,)] * (spread - spread.mean(axis=1, keepdims=True)))
        seen = np.column_stack([self.sigmas[()] * kept.T @ count, *parts])
        variance = np.zeros((len(sizes), len(sizes)))
        for (j, k), sigma in ((clique, sigma) for clique, sigma in self.sigmas.items() if len(clique) == 2):
            variance[j, k] = variance[k, j] = sigma**2
        turned = np.column_stack([kept[place].T @ centred[place] for place in own])
        along = variance @ [float(centred[place] @ centred[place]) for place in own]
        for size, place, length in zip(sizes, own, along, strict=True):
            beside = kept[place] - kept[place].sum(axis=0) / size
            seen = np.column_stack([seen, np.sqrt(length) * beside.T])
        return np.asarray(seen @ seen.T + turned @ variance @ turned.T)
