"""The margins of the one-shot release: the number of rows, sums of numbers, and one-way tables that agree with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpregress.accounting import GDP, Event
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.queries import Ask, Blocks
from dpregress.releases import Clique, Tables
from dpregress.solvers.marginals.tables import SMALLEST_COUNT, project
from dpregress.solvers.shared.within_ends import shares_within

#: Of one-way tables beside sums: those of numbers only shape the mixture.
_TABLE_WEIGHT, _NUMBER_WEIGHT = 1.0, 0.5
#: The fourth power of the target's weight, and that of the number of rows, over the number of attributes.
_TARGET_SHARE = 3.0


@dataclass(frozen=True, eq=False)
class Margins:
    """Released sums, and tables.

    Parameters
    ----------
    domain : Domain
    count : float
        The number of rows; at least 1.
    sums : dict of int to ndarray of shape (2,)
        Of every number e the sums of e and of ``e^2 - 1/2``.
    tables : dict of int to ndarray
        Of every attribute the counts of its levels.
    sigmas : dict of clique to float
        Standard deviations of the noise: of the number of rows ``()``, of a class's counts and of a number's sum
        ``(j,)``, and of its other sum ``(j, j)``.
    table_sigmas : dict of int to float
        Of the counts of levels.
    events : tuple of Event
    """

    domain: Domain
    count: float
    sums: dict[int, Vector]
    tables: dict[int, Vector]
    sigmas: dict[Clique, float]
    table_sigmas: dict[int, float]
    events: tuple[Event, ...]

    @classmethod
    def asked(cls, ask: Ask, domain: Domain, spend: GDP, target: int | None = None) -> Margins:
        """In one question, in which the target and the number of rows count for more.

        Parameters
        ----------
        ask : Ask
        domain : Domain
        spend : GDP
        target : int, optional
        """
        more = (_TARGET_SHARE * len(domain.attributes)) ** 0.25
        weights: dict[Clique, float] = {(): more}
        for j, attribute in enumerate(domain.attributes):
            weight = more if j == target else 1.0
            weights[(j,)] = weight * (_NUMBER_WEIGHT if attribute.numeric else _TABLE_WEIGHT)
            if attribute.numeric:
                weights[j, j] = weight
        return cls._of(ask(Blocks(domain, list(weights), list(weights.values())), spend), domain)

    @classmethod
    def _of(cls, released: Tables, domain: Domain) -> Margins:
        sums = {j: released.blocks[j, j] for j, _ in domain.own_pairs}
        sigmas: dict[Clique, float] = {(): released.sigmas[()]} | {(j, j): released.sigmas[j, j] for j in sums}
        sigmas |= {(j,): released.sigmas[(j, j) if j in sums else (j,)] for j in range(len(domain.attributes))}
        count = max(float(released.blocks[()][0]), SMALLEST_COUNT)
        tables = {j: released.blocks[(j,)] for j in range(len(domain.attributes))}
        scales = {j: released.sigmas[(j,)] for j in tables}
        return cls(domain, count, sums, tables, sigmas, scales, released.events)

    def own(self, attribute: int) -> Clique:
        """What tells the mean of an attribute: the sums of a number, the table of a class."""
        return (attribute, attribute) if attribute in self.sums else (attribute,)

    def measured_again(self, again: Tables) -> Margins:
        """With what was measured a second time of the attributes' own."""
        sums, tables, sigmas, scales = dict(self.sums), dict(self.tables), dict(self.sigmas), dict(self.table_sigmas)
        for j in tables:
            own = self.own(j)
            if own not in again.blocks:
                continue
            held = sums if j in sums else tables
            first, second = sigmas[own] ** -2.0, again.sigmas[own] ** -2.0
            held[j] = (first * held[j] + second * again.blocks[own]) / (first + second)
            sigmas[own] = sigmas[(j,)] = (first + second) ** -0.5
            if j not in sums:
                scales[j] = sigmas[own]
        return replace(self, sums=sums, tables=tables, sigmas=sigmas, table_sigmas=scales)

    @cached_property
    def chances(self) -> list[Vector]:
        """Probabilities of each attribute's levels: of numbers tables that agree with the sums, of classes what noise

        lets expect of counts that are not negative.
        """
        found = []
        for j, sigma in self.table_sigmas.items():
            table = self._agreeing[j] / self.count
            found.append(project(table) if j in self.sums else shares_within(table, sigma / self.count))
        return found

    @property
    def level_error(self) -> Vector:
        """Standard deviation of each level's noisy count."""
        return np.repeat(list(self.table_sigmas.values()), self.domain.sizes)

    def proportions(self) -> tuple[dict[Clique, Vector], dict[Clique, float]]:
        """The tables and their noise as proportions, as a mixture is fitted to them."""
        tables: dict[Clique, Vector] = {
            (j,): self._agreeing[j] / self.count if j in self.sums else self.chances[j] for j in self.tables
        }
        return tables, {(j,): sigma / self.count for j, sigma in self.table_sigmas.items()}

    @cached_property
    def independent(self) -> dict[Clique, Matrix]:
        """Blocks of all pairs as if attributes were independent, in the encoding of [-1, 1]."""
        means = [self._mean(j) for j in range(len(self.domain.attributes))]
        return {(j, k): self.count * np.outer(means[j], means[k]) for j, k in self.domain.pairs}

    @property
    def expected(self) -> Margins:
        """With what is expected of the counts of classes, which are not negative."""
        tables = {j: table if j in self.sums else self.count * self.chances[j] for j, table in self.tables.items()}
        return replace(self, tables=tables)

    def moments(self, blocks: Mapping[Clique, Matrix]) -> Matrix:
        """Second moments of the design columns, in counts, with these blocks of all pairs."""
        domain = self.domain
        gram = np.zeros((domain.width, domain.width))
        gram[0, 0] = self.count
        for j, counts in self.tables.items():
            own = domain.columns_of(j)
            first, second = (counts, np.diag(counts)) if j not in self.sums else self._moments_of(j)
            gram[0, own] = gram[own, 0] = first
            gram[own, own] = second
        for pair in domain.pairs:
            left, right = (domain.columns_of(attribute) for attribute in pair)
            gram[left, right], gram[right, left] = blocks[pair], blocks[pair].T
        return gram

    def _moments_of(self, number: int) -> tuple[float, float]:
        first, second = self.sums[number]
        return float(first), float(second) + self.count / 2

    def _mean(self, attribute: int) -> Vector:
        if attribute in self.sums:
            return np.clip(self.sums[attribute][:1] / self.count, -1.0, 1.0)
        return self.chances[attribute]

    @cached_property
    def _agreeing(self) -> list[Vector]:
        """Noisy counts of each attribute given the number of rows and the sums."""
        return [self._given_sums(j) for j in self.tables]

    def _given_sums(self, attribute: int) -> Vector:
        """Those with the least squared changes, in noises."""
        encoding, table = self.domain.attributes[attribute].encoding, self.tables[attribute]
        known, wanted, noise = [np.ones(len(table))], [self.count], [self.sigmas[()]]
        if attribute in self.sums:
            score = encoding[:, 0]
            known, wanted = [*known, score, score**2 - 0.5], [*wanted, *self.sums[attribute]]
            noise = [*noise, *[self.sigmas[attribute, attribute]] * 2]
        rows, sigma = np.array(known), self.table_sigmas[attribute]
        system = sigma**2 * rows @ rows.T + np.diag(np.array(noise) ** 2)
        return np.asarray(table + sigma**2 * rows.T @ np.linalg.solve(system, np.array(wanted) - rows @ table))
