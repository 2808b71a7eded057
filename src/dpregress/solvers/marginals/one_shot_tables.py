r"""The one-shot release of pair tables: margins, which pairs matter, then those pairs, in three questions.

1. .15 of mu^2: the number of rows, all one-way tables, and the sum and the sum of squares of every number. Tables are
   made to agree with the sums, and projected on the simplex at the released count.
2. .05: of every pair the noisy L1 distance of its block from independence, independence built from the
   *released* margins alone. A pair of numeric attributes has a block of one entry, its cross moment.
3. The rest: blocks chosen, and given their shares, in closed form. With q entries, weight w and budget b a
   measured block has the expected L1 error ``q sqrt(2/pi) / sqrt b``; the least weighted sum over a set of blocks
   gives each ``b ~ y = (w q sqrt(2/pi))^{2/3}``, and blocks join in the order of ``w e / y`` while
   ``sum w e - (sum y)^{3/2} / sqrt B`` grows. The sums of a target, or the table of a class, are measured once more.

A mixture of products is fitted to everything; what the measured blocks say beyond it is added back, shrunk after
James and Stein. The sum may be indefinite: the regressions that follow know the size of its noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.queries import Ask, Blocks, PairDistances, noise_in_mean
from dpregress.queries.pair_tables import largest_norm
from dpregress.releases import Clique, Entrywise, Marginals, Mixture, PairScores
from dpregress.releases.block_noise import variances_between
from dpregress.releases.moment_noise import MomentNoise
from dpregress.solvers.marginals.margins import Margins
from dpregress.solvers.marginals.mixture import MixtureFit
from dpregress.solvers.marginals.tables import TableSolver

_SHARES = (0.15, 0.05, 0.8)
#: Pairs with the target, and all others.
_TARGET_WEIGHT = 10.0
#: The target's own sums or table, once more.
_OWN_WEIGHT = 30.0
#: Noises by which a pair must be away from independence to count as dependent.
_FAR = 2.0
_MEAN_ABS = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class BlockPlan:
    """The blocks to measure and the share of the budget of each."""

    cliques: tuple[Clique, ...]
    shares: tuple[float, ...]


class OneShotTables(TableSolver):
    """Three questions, and a mixture.

    Parameters
    ----------
    domain : Domain
    budget : GDP
        All of it is drawn.
    target : int, optional
        An attribute whose pairs count for more; None for all alike.
    """

    def __init__(self, domain: Domain, budget: GDP, target: int | None = None) -> None:
        self.domain = domain
        self.target = target
        self.margins, self.distances, self.measured = split(budget, _SHARES)

    @property
    def rounds(self) -> int:
        return 3

    def estimate(self, ask: Ask) -> Marginals:
        domain = self.domain
        margins = Margins.asked(ask, domain, self.margins, self.target)
        scores = ask(PairDistances(domain, margins.independent), self.distances)
        plan = self._plan(scores, margins)
        blocks = ask(Blocks(domain, plan.cliques, [math.sqrt(share) for share in plan.shares]), self.measured)
        margins = margins.measured_again(blocks)
        measured = {pair: blocks.blocks[pair] for pair in domain.pairs if pair in blocks.blocks}
        sigmas = {pair: blocks.sigmas[pair] for pair in measured}
        tables, scales = margins.proportions()
        left = self._left_out(scores)
        # a pair that shows no distance from independence is taken for independent: the mixture must not make up any
        near = [pair for pair, far in zip(scores.pairs, scores.total > _FAR * scores.sigmas, strict=True) if not far]
        known = {pair: margins.independent[pair] for pair in near} | measured
        known_sigmas = {pair: left[pair] for pair in near} | sigmas
        tables |= {clique: block / margins.count for clique, block in known.items()}
        scales |= {clique: sigma / margins.count for clique, sigma in known_sigmas.items()}
        mixture = MixtureFit(domain, margins.chances).fit(tables, scales)
        gram = margins.count * (mixture.design_moment + self._residual(mixture, margins, known, known_sigmas))
        noise = Entrywise(self._variance(margins, left | sigmas))
        exact = MomentNoise(domain, margins.sigmas | left | sigmas, tuple(range(domain.width)))
        plain = margins.moments(margins.independent | measured)
        events = (*margins.events, *scores.events, *blocks.events)
        return Marginals(domain, margins.count, gram, noise, mixture, events, margins.level_error, (plain, exact))

    def _plan(self, scores: PairScores, margins: Margins) -> BlockPlan:
        domain, pairs = self.domain, scores.pairs
        entries = [math.prod(len(domain.attributes[j].columns) for j in pair) for pair in pairs]
        weights = [_TARGET_WEIGHT if self.target in pair else 1.0 for pair in pairs]
        errors = np.maximum(scores.total, 0)
        if self.target is not None:
            own = margins.own(self.target)
            pairs, entries, weights = (own, *pairs), [1, *entries], [_OWN_WEIGHT, *weights]
            errors = np.append(_MEAN_ABS * margins.sigmas[own], errors)
        return plan_blocks(pairs, errors, np.array(entries), np.array(weights), self.measured)

    def _residual(
        self, mixture: Mixture, margins: Margins, blocks: dict[Clique, Matrix], sigmas: Mapping[Clique, float]
    ) -> Matrix:
        """What the released moments say beyond the mixture, each shrunk towards it, as proportions."""
        domain, moment, count = self.domain, mixture.design_moment, margins.count
        residual = np.zeros_like(moment)
        released = margins.expected.moments(margins.independent | blocks) / count - moment
        for j, attribute in enumerate(domain.attributes):
            own, places = domain.columns_of(j), np.arange(domain.columns_of(j).start, domain.columns_of(j).stop)
            if attribute.numeric:
                beyond = shrunk(released[[0, own.start], own.start], margins.sigmas[(j,)] / count)
            else:
                beyond = np.tile(shrunk(released[0, own], margins.sigmas[(j,)] / count), (2, 1))
            residual[0, own] = residual[own, 0] = beyond[0]
            residual[places, places] = beyond[1]
        for clique in blocks:
            first, second = (domain.columns_of(attribute) for attribute in clique)
            beyond = shrunk(released[first, second], sigmas[clique] / count)
            residual[first, second], residual[second, first] = beyond, beyond.T
        return residual

    def _left_out(self, scores: PairScores) -> dict[Clique, float]:
        """Typical distance of an entry from independence, by the noisy distance of its block or that one's noise."""
        found = {}
        for pair, distance, noise in zip(scores.pairs, scores.total, scores.sigmas, strict=True):
            entries = math.prod(len(self.domain.attributes[j].columns) for j in pair)
            found[pair] = max(float(distance), float(noise)) / entries / _MEAN_ABS
        return found

    def _variance(self, margins: Margins, sigmas: Mapping[Clique, float]) -> Matrix:
        """Working variances of the matrix's entries: of measured blocks their noise, of others their distance."""
        domain = self.domain
        variance = variances_between(domain, sigmas)
        variance[0, 0] = margins.sigmas[()] ** 2
        for j in range(len(domain.attributes)):
            own = domain.columns_of(j)
            places = np.arange(own.start, own.stop)
            variance[0, own] = variance[own, 0] = variance[places, places] = margins.sigmas[(j,)] ** 2
        return variance


def shrunk(residual: Matrix, sigma: float) -> Matrix:
    """The residual after James and Stein: towards 0 by as much of it as its noise explains."""
    noise = max(residual.size - 2, 1) * sigma**2
    return np.asarray(max(0.0, 1 - noise / max(float(np.sum(residual**2)), 1e-300)) * residual)


def plan_blocks(pairs: tuple[Clique, ...], errors: Vector, entries: Vector, weights: Vector, budget: GDP) -> BlockPlan:
    """The set of blocks, and their shares, with the least expected weighted L1 error.

    Parameters
    ----------
    pairs : tuple of pairs
    errors : ndarray
        What leaving a block out costs: its distance from independence, in counts.
    entries, weights : ndarray
    budget : GDP
    """
    price = (weights * entries * _MEAN_ABS) ** (2 / 3)
    order = np.argsort(-weights * errors / price, kind="stable")
    noise = noise_in_mean(Blocks.largest_addition(1.0), budget, 1)
    gain = np.cumsum((weights * errors)[order]) - np.cumsum(price[order]) ** 1.5 * noise
    chosen = order[: int(np.argmax(gain)) + 1]
    shares = price[chosen] / price[chosen].sum()
    shares /= [largest_norm(pairs[i]) ** 2 for i in chosen]
    return BlockPlan(tuple(pairs[i] for i in chosen), tuple(shares.tolist()))
