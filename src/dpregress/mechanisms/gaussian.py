"""The Gaussian mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpregress.accounting import GDP, Relation
from dpregress.errors import UnsafeNoise
from dpregress.mechanisms.base import Mechanism, float_sensitivity, public_count, unrounded_answer
from dpregress.mechanisms.randomness import GRID_SHARE, Sampler, check_sigma
from dpregress.queries.base import Norm, Query, R
from dpregress.releases import Isotropic
from dpregress.rows import PrivateRows


@dataclass(frozen=True)
class Gaussian(Mechanism):
    r"""``q(D) + N(0, (Delta / mu)^2 I)``, which is mu-GDP for an L2 sensitivity Delta.

    Sums have no rounding (docs/privacy/floating-point.md). They are moved to the sampler's grid, which adds
    ``2^-40 sigma``, so sigma solves ``mu sigma = Delta + 2^-40 sigma``.

    Parameters
    ----------
    spend : GDP
        The cost of one release.
    contributors : int
        The number of independent draws that add up in the released total: 1 for a curator, n if each of n users adds
        noise to their own row. The sum of n draws is one draw of scale ``sqrt(n) sigma``.

    References
    ----------
    Dong, Roth, Su (2022), Theorem 1; Balle, Wang (2018) for (epsilon, delta).
    """

    norm: ClassVar[Norm] = Norm.L2
    spend: GDP
    contributors: int = 1

    def event(self) -> GDP:
        return self.spend

    def refuse(self, query: Query[R], rows: PrivateRows, relation: Relation) -> None:  # noqa: ARG002
        check_sigma(self.sigma(query, relation))

    def sigma(self, query: Query[R], relation: Relation) -> float:
        """The scale of the noise, from public numbers only."""
        remaining = self.spend.mu - GRID_SHARE
        if remaining <= 0:
            raise UnsafeNoise(f"mu = {self.spend.mu} is smaller than the sampler's grid requires: spend more")
        draws = 1 if query.kept_apart else self.contributors
        return float_sensitivity(query, relation) / remaining * math.sqrt(draws)

    def release(self, query: Query[R], rows: PrivateRows, sampler: Sampler, relation: Relation) -> R:
        sigma = self.sigma(query, relation)
        noisy = sampler.add_gaussian(unrounded_answer(query, rows), sigma, apart=query.apart)
        return query.read(noisy, n=public_count(rows, relation), noise=Isotropic(sigma), events=(self.spend,))
