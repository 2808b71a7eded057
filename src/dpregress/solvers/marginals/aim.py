r"""AIM: an adaptive, iterative choice of marginals to measure, as published, over all pairs.

All one-way tables first; then up to 16 m rounds, each of which chooses by the exponential mechanism the table
that the present model gets most wrong, measures it with Gaussian noise, and fits the model anew. A tenth of the
zCDP budget is for choosing. A round that changed the model by less than its noise halves the noise of the rounds
that follow; the last takes what is left.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from dpregress.accounting import GDP, ZCDP, Event
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.queries import Ask, Blocks, ModelErrors
from dpregress.releases import Clique, Entrywise, Marginals, Mixture
from dpregress.solvers.marginals.mixture import COMPONENTS, MixtureFit
from dpregress.solvers.marginals.tables import TableSolver, moments_of_tables, project

_ROUNDS_PER_ATTRIBUTE = 16
_MEASURE_SHARE = 0.9
_MEAN_ABS = math.sqrt(2 / math.pi)
#: Steps of the built-in estimator after a round, and at the end.
_ROUND_STEPS, _LAST_STEPS = 30, 500
#: Components of the last fit: at most, and times the squared width of the domain.
_LAST_COMPONENTS, _LAST_WORK = 1000, 1e8
#: A rounding's worth of the budget stays unspent, so that sums of prices never exceed it.
_UNSPENT = 1e-9


class TableEstimator(ABC):
    """Estimates a whole table from noisy one-way and pair tables."""

    @abstractmethod
    def fit(self, tables: Mapping[Clique, Matrix], sigmas: Mapping[Clique, float], *, last: bool) -> None:
        """Fit anew to all measurements so far, in counts."""

    @abstractmethod
    def table(self, clique: Clique) -> Matrix:
        """Estimated counts."""

    @abstractmethod
    def size(self, cliques: list[Clique]) -> float:
        """The size in MB of a model of these cliques."""

    @abstractmethod
    def mixture(self) -> Mixture:
        """The estimate as a mixture of products, to draw rows from."""


class MixtureEstimator(TableEstimator):
    """The built-in estimator: a mixture of products, whose size does not grow with what is measured.

    The rounds have the components of :class:`MixtureFit`'s default. The last fit begins anew with more of them: a
    hundred do not hold a table in which one attribute determines another, together with all the other tables.

    Parameters
    ----------
    domain : Domain
    components : int
        Of the last fit; fewer of wide domains.
    """

    def __init__(self, domain: Domain, components: int = _LAST_COMPONENTS) -> None:
        self.domain = domain.nominal
        self.components = components
        self.count = 1.0
        self._fit: MixtureFit | None = None
        self._mixture: Mixture | None = None

    def fit(self, tables: Mapping[Clique, Matrix], sigmas: Mapping[Clique, float], *, last: bool) -> None:
        singles = [clique for clique in tables if len(clique) == 1]
        precision = np.array([1 / (len(tables[c]) * sigmas[c] ** 2) for c in singles])
        self.count = max(float(precision @ [tables[c].sum() for c in singles] / precision.sum()), 1.0)
        proportions = {clique: table / self.count for clique, table in tables.items()}
        if self._fit is None or last:
            starts: list[Vector] = [project(proportions[(j,)]) for j in range(len(self.domain.attributes))]
            self._fit = MixtureFit(self.domain, starts, self._most() if last else COMPONENTS)
        scales = {clique: sigma / self.count for clique, sigma in sigmas.items()}
        self._mixture = self._fit.fit(proportions, scales, steps=_LAST_STEPS if last else _ROUND_STEPS)

    def _most(self) -> int:
        affordable = max(COMPONENTS, int(_LAST_WORK / self.domain.width**2))
        return min(self.components, affordable)

    def table(self, clique: Clique) -> Matrix:
        found = self.mixture()
        return self.count * (found.one_way(clique[0]) if len(clique) == 1 else found.pair(*clique))

    def size(self, cliques: list[Clique]) -> float:
        return sum(math.prod(self.domain.sizes[j] for j in clique) for clique in cliques) * 8 / 2**20

    def mixture(self) -> Mixture:
        assert self._mixture is not None
        return self._mixture


class AIM(TableSolver):
    """The published rounds around an estimator.

    Parameters
    ----------
    domain : Domain
    budget : ZCDP
    estimator : TableEstimator, optional
        Default: the built-in mixture.
    size_limit : float
        Of the model, in MB; a round may use the part of it that the budget spent by its end is of the whole.

    References
    ----------
    McKenna, Mullins, Sheldon, Miklau (2022), AIM, Algorithms 2 to 4; Ferrando, Sheldon (2024), section 5.
    """

    def __init__(
        self, domain: Domain, budget: ZCDP, estimator: TableEstimator | None = None, size_limit: float = 200.0
    ) -> None:
        self.domain = domain
        self.budget = budget
        self.estimator = MixtureEstimator(domain) if estimator is None else estimator
        self.size_limit = size_limit
        self._limit = _ROUNDS_PER_ATTRIBUTE * len(domain.attributes)
        self._singles: list[Clique] = [(j,) for j in range(len(domain.attributes))]
        self._tables: dict[Clique, Matrix] = {}
        self._sigmas: dict[Clique, float] = {}
        self._events: list[Event] = []

    @property
    def rounds(self) -> int:
        return 1 + 2 * (self._limit + 1)

    def estimate(self, ask: Ask) -> Marginals:
        self._tables, self._sigmas, self._events = {}, {}, []
        rho = self.budget.rho * (1 - _UNSPENT)
        sigma = math.sqrt(self._limit / (2 * _MEASURE_SHARE * rho))
        epsilon = math.sqrt(8 * (1 - _MEASURE_SHARE) * rho / self._limit)
        spent = self._measure(ask, self._singles, sigma)
        self.estimator.fit(self._tables, self._sigmas, last=False)
        last = False
        while not last:
            left = rho - spent
            if left < 2 * (0.5 / sigma**2 + epsilon**2 / 8):
                last = True
                sigma, epsilon = math.sqrt(0.5 / (_MEASURE_SHARE * left)), math.sqrt(8 * (1 - _MEASURE_SHARE) * left)
            price = 0.5 / sigma**2 + epsilon**2 / 8
            chosen = self._choose(ask, sigma, epsilon, (spent + price) / rho)
            before = self.estimator.table(chosen)
            spent += epsilon**2 / 8 + self._measure(ask, [chosen], sigma)
            self.estimator.fit(self._tables, self._sigmas, last=last)
            moved = float(np.abs(self.estimator.table(chosen) - before).sum())
            if moved <= _MEAN_ABS * sigma * before.size:
                sigma, epsilon = sigma / 2, epsilon * 2
        return self._marginals()

    def _measure(self, ask: Ask, cliques: list[Clique], sigma: float) -> float:
        """Ask for these tables at one price each; what was measured before is averaged by precision."""
        query = Blocks(self.domain.nominal, cliques)
        released = ask(query, GDP(query.contribution() / sigma))
        self._events.extend(released.events)
        for clique in cliques:
            table, new = released.blocks[clique], released.sigmas[clique]
            if clique in self._tables:
                old = self._sigmas[clique]
                share = old**2 / (old**2 + new**2)
                table = share * table + (1 - share) * self._tables[clique]
                new = old * new / math.hypot(old, new)
            self._tables[clique], self._sigmas[clique] = table, new
        return len(cliques) * 0.5 / sigma**2

    def _choose(self, ask: Ask, sigma: float, epsilon: float, share: float) -> Clique:
        measured = [clique for clique in self._tables if len(clique) == 2]
        candidates = [
            clique
            for clique in (*self._singles, *self.domain.pairs)
            if len(clique) == 1
            or clique in self._tables
            or self.estimator.size([*measured, clique]) <= share * self.size_limit
        ]
        models = {clique: self.estimator.table(clique) for clique in candidates}
        attributes = len(self._singles)
        # how much of the workload, all pairs, a table touches: its overlaps with them
        weights = [float(len(clique) * (attributes - 1)) for clique in candidates]
        penalties = [_MEAN_ABS * sigma * models[clique].size for clique in candidates]
        found = ask(ModelErrors(self.domain, models, weights, penalties), ZCDP(epsilon**2 / 8))
        self._events.extend(found.events)
        return candidates[found.chosen]

    def _marginals(self) -> Marginals:
        """The model's moments; of unmeasured blocks the working variance is that of the noisiest measured one."""
        domain = self.domain
        mixture = Mixture(domain, self.estimator.mixture().chances)
        variance = np.zeros((domain.width, domain.width))
        variance[0, 0] = min(self._sigmas[clique] ** 2 for clique in self._singles)
        largest = max(self._sigmas.values())
        spreads = [np.mean(attribute.encoding**2, axis=0) for attribute in domain.attributes]
        for j, attribute in enumerate(domain.attributes):
            own = domain.columns_of(j)
            spread = self._sigmas[(j,)] ** 2 * np.sum(attribute.encoding**2, axis=0)
            variance[0, own] = variance[own, 0] = spread
            variance[np.arange(own.start, own.stop), np.arange(own.start, own.stop)] = spread
        for j, k in domain.pairs:
            entries = [a.size if a.numeric else 1 for a in (domain.attributes[j], domain.attributes[k])]
            scale = self._sigmas.get((j, k), largest) ** 2 * math.prod(entries)
            number = [spreads[i] if domain.attributes[i].numeric else np.ones(len(spreads[i])) for i in (j, k)]
            block = scale * np.outer(number[0], number[1])
            variance[domain.columns_of(j), domain.columns_of(k)] = block
            variance[domain.columns_of(k), domain.columns_of(j)] = block.T
        gram = model_moments(domain, self.estimator)
        errors = np.repeat([self._sigmas[clique] for clique in self._singles], domain.sizes)
        return Marginals(domain, float(gram[0, 0]), gram, Entrywise(variance), mixture, tuple(self._events), errors)


def model_moments(domain: Domain, estimator: TableEstimator) -> Matrix:
    """Second moments of the design columns, from the model's own tables.

    Rows that are drawn from the model would add an error of sampling.
    """
    blocks: dict[Clique, Matrix] = {(j,): estimator.table((j,)) for j in range(len(domain.attributes))}
    count = float(np.mean([table.sum() for table in blocks.values()]))
    for first, second in domain.pairs:
        left, right = (domain.attributes[j].encoding for j in (first, second))
        blocks[first, second] = left.T @ estimator.table((first, second)) @ right
    return moments_of_tables(domain, count, blocks)
