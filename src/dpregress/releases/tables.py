"""Released tables over coded rows: noisy one-way and two-way blocks, and noisy choices."""

from __future__ import annotations

from dataclasses import dataclass

from dpregress.coordinates.svec import Matrix, Vector
from dpregress.releases.release import Release

#: One attribute, or a pair of them.
Clique = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Tables(Release):
    """Noisy blocks of counts, unbiased, each with the standard deviation of its entries' independent noise.

    Attributes
    ----------
    blocks : dict of clique to ndarray
        Of an attribute its counts of shape (k,), of a pair its block of shape (columns, columns).
    sigmas : dict of clique to float
    """

    blocks: dict[Clique, Matrix]
    sigmas: dict[Clique, float]


@dataclass(frozen=True, eq=False, repr=False)
class PairScores(Release):
    """One noisy number for every pair of attributes."""

    pairs: tuple[Clique, ...]
    sigmas: Vector


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Release):
    """A candidate that was chosen privately.

    Attributes
    ----------
    chosen : int
        Its position among the candidates.
    """

    chosen: int
