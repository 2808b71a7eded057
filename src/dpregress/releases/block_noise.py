"""The exact noise law of second moments that were computed from noisy one-way tables and blocks of pairs."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from dpregress.coordinates.domain import Domain
from dpregress.coordinates.svec import Matrix, Vector
from dpregress.releases.noise import NoiseLaw
from dpregress.releases.tables import Clique


def count_shares(domain: Domain, sigmas: Mapping[Clique, float]) -> Vector:
    """The weight of each attribute's total in the number of rows: in proportion to its precision."""
    precision = np.array([1 / (size * sigmas[(j,)] ** 2) for j, size in enumerate(domain.sizes)])
    return np.asarray(precision / precision.sum())


@dataclass(frozen=True, eq=False)
class TableNoise(NoiseLaw):
    """The law of the noise in moments that were computed from tables of a domain.

    Parameters
    ----------
    domain : Domain
    sigmas : mapping of clique to float
        Standard deviations of the noise of what was released.
    kept : tuple of int
        Positions of the design columns that are kept.
    """

    domain: Domain
    sigmas: Mapping[Clique, float]
    kept: tuple[int, ...]

    def __add__(self, other: NoiseLaw) -> Self:
        if type(other) is not type(self) or (self.domain, self.kept) != (other.domain, other.kept):
            return NotImplemented
        sigmas = {clique: math.hypot(sigma, other.sigmas[clique]) for clique, sigma in self.sigmas.items()}
        return replace(self, sigmas=sigmas)

    def cut(self, places: Sequence[int]) -> Self:
        """The law of the noise in these rows and columns."""
        return replace(self, kept=tuple(self.kept[place] for place in places))

    @property
    @abstractmethod
    def between(self) -> Matrix:
        """The variance of every entry between two attributes, of shape (width, width); 0 elsewhere."""

    @property
    @abstractmethod
    def own(self) -> Matrix:
        """The variance of every entry in the constant's row, and in an attribute's own block; 0 elsewhere."""


def variances_between(domain: Domain, sigmas: Mapping[Clique, float]) -> Matrix:
    """Of the entries of blocks of pairs, of shape (width, width); 0 elsewhere."""
    variance = np.zeros((domain.width, domain.width))
    for j, k in domain.pairs:
        first, second = domain.columns_of(j), domain.columns_of(k)
        variance[first, second] = variance[second, first] = sigmas[j, k] ** 2
    return variance


@dataclass(frozen=True, eq=False)
class BlockNoise(TableNoise):
    r"""The noise in second moments of design columns that were computed from one-way tables and blocks.

    The noise e_j of attribute j's levels, independent with scale s_j, stands in the constant's row as ``E_j' e_j``, in
    the attribute's own block as ``E_j' diag(e_j) E_j``, and in the number of rows as ``w_j 1'e_j``. The entries of a
    pair's block have independent noise of scale s_jk.

    Parameters
    ----------
    domain : Domain
    sigmas : mapping of clique to float
        Standard deviations for all attributes and pairs.
    kept : tuple of int
        Positions of the design columns that are kept.
    """

    def __add__(self, other: NoiseLaw) -> Self:
        if isinstance(other, BlockNoise) and self.domain == other.domain:
            first, second = (count_shares(self.domain, law.sigmas) for law in (self, other))
            if not np.allclose(first, second):
                return NotImplemented  # the numbers of rows are other sums of the noise of levels
        return super().__add__(other)

    def product_covariance(self, vector: Vector) -> Matrix:
        """The covariance of ``N v``, as a sum over tables."""
        domain, full = self.domain, np.zeros(self.domain.width)
        np.add.at(full, list(self.kept), vector)
        found = np.zeros((domain.width, domain.width))
        shares = count_shares(domain, self.sigmas)
        for j, attribute in enumerate(domain.attributes):
            own, encoding = domain.columns_of(j), attribute.encoding
            along = encoding @ full[own]
            moved = np.vstack([along + shares[j] * full[0], (encoding * (full[0] + along)[:, None]).T])
            places = [0, *range(own.start, own.stop)]
            found[np.ix_(places, places)] += self.sigmas[(j,)] ** 2 * moved @ moved.T
        found += self.between * np.outer(full, full) + np.diag(self.between @ full**2)
        return found[np.ix_(self.kept, self.kept)]

    @cached_property
    def between(self) -> Matrix:
        """The variance of every entry between two attributes; 0 elsewhere."""
        return variances_between(self.domain, self.sigmas)

    @cached_property
    def own(self) -> Matrix:
        """The variance of every entry in the constant's row, and in an attribute's own block; 0 elsewhere."""
        variance = np.zeros((self.domain.width, self.domain.width))
        variance[0, 0] = 1 / sum(1 / (size * self.sigmas[(j,)] ** 2) for j, size in enumerate(self.domain.sizes))
        for j, attribute in enumerate(self.domain.attributes):
            own, squares = self.domain.columns_of(j), self.sigmas[(j,)] ** 2 * attribute.encoding**2
            variance[0, own] = variance[own, 0] = squares.sum(axis=0)
            variance[own, own] = squares.T @ attribute.encoding**2
        return variance
