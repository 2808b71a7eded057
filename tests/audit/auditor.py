"""An empirical lower bound on mu or epsilon, from what an attacker who knows all other rows sees of one release.

The attacker knows two neighbouring data sets and asks, of many releases of each, whether the projection on the
direction between the exact answers passes the middle. If a mechanism is mu-GDP, then for every test
``power <= Phi(Phi^{-1}(level) + mu)``, and if it is epsilon-DP, ``power <= e^epsilon level``: exact confidence limits
of level and power bound mu or epsilon from below.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from scipy.stats import beta, norm

from dpregress.accounting import GDP, Event, MemoryLedger
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import SeededSampler
from dpregress.mechanisms.base import exact_answer
from dpregress.queries import Query
from dpregress.rows import PrivateRows, RawRows
from dpregress.trust import Central, TrustModel
from tests import registry
from tests.registry import DOMAINS, METRICS, SPACES, CodedEntry, MechanismEntry, QueryEntry, TrustEntry, gaussian

MU = 1.0
#: Probability that the bound exceeds the true mu of a correct mechanism.
FAILURE = 1e-7
DRAWS = 100_000
#: Of choices.
FEWER_DRAWS = 10_000
#: Of mechanisms that are asked anew for every answer: an attacker shows .5 to .8 of a claim of 1.
ASKED_ANEW = 4_000


class Repeated(SeededSampler):
    """A sampler that draws many noises where it is asked for one, and keeps all the answers.

    The value and the scale are those that the mechanism handed over, and every draw goes through the sampler's own
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

    def add_discrete_laplace(self, value: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        many = super().add_discrete_laplace(np.tile(value, self.draws), scale).reshape(self.draws, len(value))
        self.answers.append(many.astype(float))
        return many[0]

    def choose(self, scores: Vector, scale: float) -> int:
        many = [super(Repeated, self).choose(scores, scale) for _ in range(self.draws)]
        self.answers.append(np.array(many, dtype=float)[:, None])
        return many[0]


def lower_bound(without: Vector, having: Vector, threshold: float, failure: float) -> float:
    """A bound on mu from one number a release: how often each side passes the threshold (Clopper, Pearson 1934)."""
    level = beta.isf(failure / 2, (without > threshold).sum() + 1, (without <= threshold).sum())
    power = beta.ppf(failure / 2, (having > threshold).sum(), (having <= threshold).sum() + 1)
    return float(norm.ppf(power) - norm.ppf(level))


def epsilon_bound(without: Vector, having: Vector, thresholds: Vector, failure: float) -> float:
    """A bound on epsilon from how often each side passes some threshold, chosen from other releases."""
    found = []
    for threshold in thresholds:
        passed, other = having > threshold, without > threshold
        for one, two in ((passed, other), (~other, ~passed)):
            level = beta.isf(failure / 4 / len(thresholds), two.sum() + 1, (~two).sum())
            power = beta.ppf(failure / 4 / len(thresholds), one.sum(), (~one).sum() + 1)
            found.append(np.log(power / level) if power > 0 else -np.inf)
    return float(max(found))


def furthest(query: Query[Any], rows: RawRows | list[RawRows]) -> tuple[RawRows, RawRows]:
    """The two rows that lie furthest apart in the query's norm."""
    single = rows if isinstance(rows, list) else [registry.taken(rows, slice(i, i + 1)) for i in range(len(rows.x))]
    values = np.array([exact_answer(query, registry.private(row)) for row in single])
    one, other = np.unravel_index(np.argmax(squareform(pdist(values, METRICS[query.norm]))), (len(single),) * 2)
    return single[one], single[other]


def remembering(query: Query[Any]) -> Query[Any]:
    """The same query, which computes what its one row contributes only once: the noise is drawn anew each time."""
    found = copy(query)
    values: list[Matrix] = []

    def once(rows: Any) -> Matrix:
        if not values:
            values.append(query.each(rows))
        return values[0]

    object.__setattr__(found, "each", once)
    return found


def answers(
    trust: TrustModel, query: Query[Any], spend: Event, rows: PrivateRows, rng: np.random.Generator, draws: int
) -> Matrix:
    """Many answers to one question, each paid for by itself or by a sampler that repeats its draw."""
    sampler, query = Repeated(rng, draws), remembering(query)
    found = []
    while not sampler.answers and len(found) < draws:
        reservation = MemoryLedger(spend).reserve(spend)
        found.append(trust.release(rows, query, spend, sampler=sampler, reservation=reservation).total)
    return sampler.answers[0] if sampler.answers else np.array(found)


def audited(trust: TrustEntry, mechanism: MechanismEntry, entry: QueryEntry, space: str, seed: int) -> float:
    """The lower bound for one trust model and query, on data sets of one row: what one user's message protects."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    pair = [registry.private(row) for row in furthest(query, entry.extremes(query))]
    exact = [exact_answer(query, rows) for rows in pair]
    direction, middle = exact[1] - exact[0], (exact[0] + exact[1]) / 2
    spend = mechanism.spend(MU)
    draws = DRAWS if mechanism.additive else ASKED_ANEW
    seen = [answers(trust.make(), query, spend, rows, rng, draws) for rows in pair]
    if not mechanism.additive:  # totals as they are released, on the scale of the answer
        seen = [np.array([entry.layout(total) for total in each]) for each in seen]
    projected = [each @ direction for each in seen]
    if isinstance(spend, GDP):
        return lower_bound(*projected, float(middle @ direction), FAILURE)
    aim = np.concatenate([each[: draws // 10] for each in projected])
    thresholds = np.quantile(aim, np.linspace(0.1, 0.9, 9))
    return epsilon_bound(*(each[draws // 10 :] for each in projected), thresholds, FAILURE)


def check_audit(
    trust: TrustEntry, entry: QueryEntry, seed: int, space: str = "plain", mechanism: MechanismEntry | None = None
) -> None:
    """The bound never exceeds the claim, and comes within a fifth of it where noise and sensitivity are tight."""
    mechanism = gaussian() if mechanism is None else mechanism
    found = audited(trust, mechanism, entry, space, seed)
    assert found <= MU, f"an attacker shows {found:.3f}, the claim is {MU}"
    query = entry.make(SPACES[space](np.random.default_rng(seed)), np.random.default_rng(seed))
    if query.tight and mechanism.additive:
        assert found >= 0.8 * MU, f"the claim is {MU}, an attacker shows only {found:.3f}: too much noise"


def check_choice(entry: CodedEntry, mechanism: MechanismEntry, seed: int) -> None:
    """Of two tables of one row each, between which a quality moves furthest: the bound never exceeds the claim."""
    rng = np.random.default_rng(seed)
    query = entry.make(DOMAINS["classes"], rng)
    single = [RawRows(row[None], None) for row in registry.coded_rows(rng, DOMAINS["classes"], 60).x]
    pair = [registry.private(row) for row in furthest(query, single)]
    direction = np.subtract(*(exact_answer(query, rows) for rows in reversed(pair)))
    spend = mechanism.spend(MU)
    seen = [direction[answers(Central(), query, spend, rows, rng, FEWER_DRAWS)[:, 0].astype(int)] for rows in pair]
    found = epsilon_bound(*seen, np.unique(direction)[:-1], FAILURE)
    assert found <= MU, f"an attacker shows epsilon >= {found:.3f}, the claim is {MU}"
