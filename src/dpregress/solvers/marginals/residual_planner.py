r"""ResidualPlanner: all pair tables from independent residuals, with the least total variance for the budget.

``R_0 = n``, ``R_j = P_j T_j`` and ``R_jk = P_j T_jk P_k``, ``P_j = I - 11'/k_j``, carry separate information; with
noise of scale s each, ``mu^2 = 1/s_0^2 + sum p_j/s_j^2 + sum p_j p_k/s_jk^2`` (``p_j = 1 - 1/k_j``). A pair table is
``R_0/(k_j k_k) 11' + R_j 1'/k_k + 1 R_k'/k_j + R_jk``: unbiased, consistent, with an exact covariance.
"""

from __future__ import annotations

import math

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.queries import Ask, CentredTables
from dpregress.releases import Clique, Marginals, Mixture, Tables
from dpregress.releases.residual_noise import ResidualNoise
from dpregress.solvers.marginals.mixture import MixtureFit
from dpregress.solvers.marginals.tables import TableSolver, project


class ResidualPlanner(TableSolver):
    """One question, in the proportions that give the pair tables the least total variance.

    Parameters
    ----------
    domain : Domain
    budget : GDP
    target : int, optional
        An attribute whose pairs count three times.

    References
    ----------
    Xiao, Ding, Zhang, Kifer (2023), An optimal and scalable matrix mechanism for noisy marginals.
    """

    def __init__(self, domain: Domain, budget: GDP, target: int | None = None) -> None:
        self.domain = domain
        self.budget = budget
        self.sigmas = planned(domain, target)

    @property
    def rounds(self) -> int:
        return 1

    def estimate(self, ask: Ask) -> Marginals:
        domain = self.domain
        released = ask(CentredTables(domain, self.sigmas), self.budget)
        count = max(float(released.blocks[()][0]), 1.0)
        tables = reconstructed(domain, released)
        gram = np.zeros((domain.width, domain.width))
        gram[0, 0] = released.blocks[()][0]
        for j, attribute in enumerate(domain.attributes):
            own = domain.columns_of(j)
            gram[own, own] = attribute.encoding.T @ (tables[(j,)][:, None] * attribute.encoding)
            gram[0, own] = gram[own, 0] = attribute.encoding.T @ tables[(j,)]
        for j, k in domain.pairs:
            left, right = domain.attributes[j].encoding, domain.attributes[k].encoding
            block = left.T @ tables[j, k] @ right
            gram[domain.columns_of(j), domain.columns_of(k)] = block
            gram[domain.columns_of(k), domain.columns_of(j)] = block.T
        noise = ResidualNoise(domain, released.sigmas, tuple(range(domain.width)))
        chances = [project(tables[(j,)] / count) for j in range(len(domain.attributes))]
        scales = {clique: released.sigmas[clique] / count for clique in tables}
        proportions = {clique: table / count for clique, table in tables.items()}
        mixture = MixtureFit(domain.nominal, chances).fit(proportions, scales)
        mixture = Mixture(domain, mixture.chances)
        errors = self._level_error(released)
        return Marginals(domain, count, gram, noise, mixture, released.events, errors, (gram, noise))

    def _level_error(self, released: Tables) -> Vector:
        """``t_j = s_0 z_0 / k_j + s_j P_j z_j`` in every level."""
        sigmas, sizes = released.sigmas, self.domain.sizes
        errors = [math.hypot(sigmas[()] / k, sigmas[(j,)] * math.sqrt(1 - 1 / k)) for j, k in enumerate(sizes)]
        return np.repeat(errors, sizes)


def planned(domain: Domain, target: int | None = None) -> dict[Clique, float]:
    """Relative scales of the residuals' noise: ``s_A^2 ~ sqrt(p_A / v_A)``.

    ``v_A`` is what a unit of variance in residual A adds to the weighted variances of all pair tables.
    """
    sizes = np.array(domain.sizes, dtype=np.float64)
    importance: dict[Clique, float] = {(): 0.0, **{(j,): 0.0 for j in range(len(sizes))}}
    for j, k in domain.pairs:
        weight = 3.0 if target in (j, k) else 1.0
        importance[()] += weight / (sizes[j] * sizes[k])
        importance[(j,)] += weight * (sizes[j] - 1) / sizes[k]
        importance[(k,)] += weight * (sizes[k] - 1) / sizes[j]
        importance[j, k] = weight * (sizes[j] - 1) * (sizes[k] - 1)
    cost = {clique: math.prod(1 - 1 / sizes[j] for j in clique) for clique in importance}
    return {clique: (cost[clique] / importance[clique]) ** 0.25 for clique in importance}


def reconstructed(domain: Domain, released: Tables) -> dict[Clique, Matrix]:
    """One-way and pair tables from residuals, in counts."""
    count, sizes = released.blocks[()][0], domain.sizes
    tables: dict[Clique, Matrix] = {(j,): count / size + released.blocks[(j,)] for j, size in enumerate(sizes)}
    for j, k in domain.pairs:
        tables[j, k] = (
            released.blocks[j, k]
            + released.blocks[(j,)][:, None] / sizes[k]
            + released.blocks[(k,)][None, :] / sizes[j]
            + count / (sizes[j] * sizes[k])
        )
    return tables
