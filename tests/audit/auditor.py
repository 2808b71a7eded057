"""An empirical lower bound on mu, from what an attacker who knows all other rows sees of one release.

The attacker knows two neighbouring data sets and asks, of many releases of each, whether the projection on the
direction between the exact answers passes the middle. If a mechanism is mu-GDP, then for every test
``power <= Phi(Phi^{-1}(level) + mu)``, so exact confidence limits of level and power bound mu from below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.stats import beta, norm

from dpregress.accounting import GDP, MemoryLedger
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import SeededSampler
from dpregress.mechanisms.base import exact_total
from dpregress.queries import Query
from dpregress.rows import RawRows
from tests import registry
from tests.registry import SPACES, QueryEntry, TrustEntry

MU = 1.0
#: Probability that the bound exceeds the true mu of a correct mechanism.
FAILURE = 1e-7
DRAWS = 100_000


class Repeated(SeededSampler):
    """A source that draws many noises where it is asked for one, and keeps all the answers.

    The value and the scale are those that the mechanism handed over, and every draw goes through the source's own
    guards and sampler: this only saves computing the exact answer again.
    """

    def __init__(self, generator: np.random.Generator, draws: int) -> None:
        super().__init__(generator)
        self.draws = draws
        self.answers: list[Matrix] = []

    def add_gaussian(self, value: Vector, sigma: float, *, apart: int = 0) -> Vector:  # noqa: ARG002
        many = super().add_gaussian(np.tile(value, self.draws), sigma).reshape(self.draws, len(value))
        self.answers.append(many)
        return many[0]


def lower_bound(without: Vector, having: Vector, threshold: float, failure: float) -> float:
    """A bound on mu from one number a release: how often each side passes the threshold (Clopper, Pearson 1934)."""
    level = beta.isf(failure / 2, (without > threshold).sum() + 1, (without <= threshold).sum())
    power = beta.ppf(failure / 2, (having > threshold).sum(), (having <= threshold).sum() + 1)
    return float(norm.ppf(power) - norm.ppf(level))


def furthest(query: Query[Any]) -> tuple[RawRows, RawRows]:
    """Two rows that lie furthest apart, among those that the row map brings to the edge."""
    rows = registry.extremal_rows(query)
    single = [registry.taken(rows, slice(i, i + 1)) for i in range(len(rows.x))]
    values = np.array([exact_total(query, registry.private(row)) for row in single])
    one, other = np.unravel_index(np.argmax(squareform(pdist(values))), (len(single),) * 2)
    return single[one], single[other]


def audited(trust: TrustEntry, query: Query[Any], seed: int, draws: int = DRAWS) -> float:
    """The lower bound for one trust model and query, on data sets of one row: what one user's message protects."""
    rng = np.random.default_rng(seed)
    pair = [registry.private(row) for row in furthest(query)]
    exact = [exact_total(query, rows) for rows in pair]
    direction = exact[1] - exact[0]
    seen = []
    for rows in pair:
        source = Repeated(rng, draws)
        reservation = MemoryLedger(GDP(MU)).reserve(GDP(MU))
        trust.make().release(rows, query, GDP(MU), source=source, reservation=reservation)
        seen.append(source.answers[0] @ direction)
    middle = float((exact[0] + exact[1]) @ direction) / 2
    return lower_bound(seen[0], seen[1], middle, FAILURE)


def check_audit(trust: TrustEntry, entry: QueryEntry, seed: int, space: str = "plain") -> None:
    """The bound never exceeds the claim, and comes within a fifth of it where the sensitivity is tight."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    found = audited(trust, query, seed)
    assert found <= MU, f"an attacker shows mu >= {found:.3f}, the claim is {MU}"
    if query.tight:
        assert found >= 0.8 * MU, f"the claim is {MU}, an attacker shows only {found:.3f}: too much noise"
