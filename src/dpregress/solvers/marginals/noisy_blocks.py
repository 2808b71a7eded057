"""Gaussian noise on every one-way table and every block of a pair: the simple, data-independent baseline."""

from __future__ import annotations

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Domain
from dpregress.queries import Ask, Blocks
from dpregress.releases import Clique, Entrywise, Marginals
from dpregress.releases.block_noise import BlockNoise
from dpregress.solvers.marginals.mixture import MixtureFit
from dpregress.solvers.marginals.tables import OneWays, TableSolver, moments_of_tables


class NoisyBlocks(TableSolver):
    r"""One question: all blocks of ``Z'Z`` at one scale, ``sqrt(m (m + 1) / 2) / mu`` for m attributes.

    Parameters
    ----------
    domain : Domain
    budget : GDP
    """

    def __init__(self, domain: Domain, budget: GDP) -> None:
        self.domain = domain
        self.budget = budget

    @property
    def rounds(self) -> int:
        return 1

    def estimate(self, ask: Ask) -> Marginals:
        domain = self.domain
        singles: list[Clique] = [(j,) for j in range(len(domain.attributes))]
        released = ask(Blocks(domain, [*singles, *domain.pairs]), self.budget)
        margins = OneWays(released, domain)
        gram = moments_of_tables(domain, margins.count, released.blocks)
        variance = np.zeros_like(gram)
        variance[0, 0] = margins.sigma**2
        for j, attribute in enumerate(domain.attributes):
            own, encoding, sigma = domain.columns_of(j), attribute.encoding, released.sigmas[(j,)]
            places = np.arange(own.start, own.stop)
            variance[places, places] = sigma**2 * np.sum(encoding**4, axis=0)
            variance[0, own] = variance[own, 0] = sigma**2 * np.sum(encoding**2, axis=0)
        for pair in domain.pairs:
            first, second = (domain.columns_of(attribute) for attribute in pair)
            variance[first, second] = variance[second, first] = released.sigmas[pair] ** 2
        proportions = {clique: block / margins.count for clique, block in released.blocks.items()}
        scales = {clique: sigma / margins.count for clique, sigma in released.sigmas.items()}
        mixture = MixtureFit(domain, margins.chances).fit(proportions, scales)
        exact = BlockNoise(domain, released.sigmas, tuple(range(domain.width)))
        return Marginals(
            domain, margins.count, gram, Entrywise(variance), mixture, released.events, margins.level_error(domain),
            (gram, exact),
        )  # fmt: skip
