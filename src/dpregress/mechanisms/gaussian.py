"""The Gaussian mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpregress.accounting import GDP, Relation
from dpregress.errors import UnsafeNoise
from dpregress.mechanisms.base import Mechanism, exact_answer, float_sensitivity, public_count
from dpregress.mechanisms.randomness import GRID_SHARE, Sampler, check_sigma
from dpregress.queries.base import Norm, Query, R
from dpregress.releases import Isotropic
from dpregress.rows import PrivateRows


@dataclass(frozen=True)
class Gaussian(Mechanism):
    r"""``q(D) + N(0, (Delta / mu)^2 I)``, which is mu-GDP for an L2 sensitivity Delta.

    Delta includes the rounding of the float sum, and the sampler's grid takes a 2^-40 part of sigma
    (docs/privacy/floating-point.md), so sigma solves ``mu sigma = Delta + 2^-40 sigma``.

    Parameters
    ----------
    spend : GDP
        What one release costs.
    contributors : int
        How many independent draws add up in the released total: 1 for a curator, n where each of n
        users adds noise to their own row (the sum of n draws is one draw of sqrt(n) sigma).

    References
    ----------
    Dong, Roth, Su (2022), Theorem 1; Balle, Wang (2018) for (epsilon, delta).
    """

    norm: ClassVar[Norm] = Norm.L2
    spend: GDP
    contributors: int = 1

    def event(self) -> GDP:
        return self.spend

    def refuse(self, query: Query[R], rows: PrivateRows, relation: Relation) -> None:
        check_sigma(self.sigma(query, rows, relation))

    def sigma(self, query: Query[R], rows: PrivateRows, relation: Relation) -> float:
        """The scale of the noise, from public numbers alone: of the rows it asks how many there are."""
        remaining = self.spend.mu - GRID_SHARE
        if remaining <= 0:
            raise UnsafeNoise(f"mu = {self.spend.mu} is less than the sampler's grid takes: spend more")
        draws = 1 if query.kept_apart else self.contributors
        return float_sensitivity(query, rows, relation) / remaining * math.sqrt(draws)

    def release(self, query: Query[R], rows: PrivateRows, sampler: Sampler, relation: Relation) -> R:
        sigma = self.sigma(query, rows, relation)
        noisy = sampler.add_gaussian(exact_answer(query, rows), sigma, apart=query.apart)
        return query.read(noisy, n=public_count(rows, relation), noise=Isotropic(sigma), events=(self.spend,))
