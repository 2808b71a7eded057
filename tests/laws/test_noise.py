"""The noise of every release has the law that its sensitivity and its price ask for.

Each test draws many releases of the same rows, takes the exact answer off and compares what is left with the law on
the mechanism's line in the registry. It fails with probability 1e-7 at most, whatever the seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpregress.accounting import GDP, ZCDP, Event, MemoryLedger, PureDP, Relation
from dpregress.errors import NotAnswered
from dpregress.mechanisms import Sampler, SecureSampler, SeededSampler
from dpregress.queries import Query
from dpregress.releases import Release
from dpregress.rows import PrivateRows
from tests import registry
from tests.laws.noise_laws import Case, check_squares
from tests.laws.spies import Remembering, Silent, watched
from tests.registry import (
    CODED_QUERIES,
    DOMAINS,
    MECHANISMS,
    QUERIES,
    SPACES,
    TRUST,
    MechanismEntry,
    QueryEntry,
    TrustEntry,
    gaussian,
)

MU = 0.8
ROWS = 20
FAILURE = 1e-7

Answer = Callable[[Query[Any], PrivateRows, Sampler], Release]


def answer_of_mechanism(entry: MechanismEntry) -> Answer:
    mechanism = entry.make(MU)
    return lambda query, rows, sampler: mechanism.release(query, rows, sampler, Relation.REPLACE_ONE)


def answer_of_trust(entry: TrustEntry, mechanism: MechanismEntry) -> Answer:
    """Through the trust model, which picks the mechanism itself."""

    def answer(query: Query[Any], rows: PrivateRows, sampler: Sampler) -> Release:
        spend = mechanism.spend(MU)
        reservation = MemoryLedger(spend).reserve(spend)
        return entry.make().release(rows, query, spend, sampler=sampler, reservation=reservation)

    return answer


def check_noise(
    entry: QueryEntry,
    space: str,
    mechanism: MechanismEntry,
    sampler: Sampler,
    seed: int,
    *,
    answer: Answer | None = None,
    draws: int = 1,
) -> None:
    """The mechanism's law holds of releases of this query."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    rows = replace(registry.private(registry.tame_rows(rng, query.space, ROWS)), engine=Remembering())
    answer = answer_of_mechanism(mechanism) if answer is None else answer
    released = [answer(query, rows, sampler) for _ in range(mechanism.releases)]
    draws = 1 if query.kept_apart else draws
    mechanism.law(Case(query, rows, mechanism.spend(MU), released, layout=entry.layout, draws=draws), FAILURE)


def check_matrix_entries(sampler: Sampler, seed: int, releases: int = 2000) -> None:
    """In a released second moment the diagonal has variance sigma^2, every entry beside it sigma^2 / 2."""
    rng = np.random.default_rng(seed)
    query = QUERIES[0].make(SPACES["plain"](rng), rng)
    rows = replace(registry.private(registry.tame_rows(rng, query.space, ROWS)), engine=Remembering())
    answer = answer_of_mechanism(gaussian())
    exact = answer(query, rows, Silent()).total
    sigma = query.sensitivity(Relation.REPLACE_ONE) / MU
    noise = np.array([answer(query, rows, sampler).total - exact for _ in range(releases)]) / sigma
    row, column = np.triu_indices(len(exact), 1)
    on, off = np.diagonal(noise, axis1=1, axis2=2), noise[:, row, column]
    check_squares(on, FAILURE / 2)
    check_squares(off * math.sqrt(2), FAILURE / 2)


def _answered(mechanisms: tuple[MechanismEntry, ...] = MECHANISMS) -> list[Any]:
    """Every mechanism with every query over rows that it does not refuse."""
    pairs = [(mechanism, entry) for mechanism in mechanisms for entry in QUERIES if mechanism.answers(entry)]
    return [pytest.param(*pair, id=f"{pair[0]} {pair[1]}") for pair in pairs]


@pytest.mark.parametrize(
    "space", ["intercept", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("plain", "small ball"))]
)
@pytest.mark.parametrize(("mechanism", "entry"), _answered())
def test_mechanism(mechanism: MechanismEntry, entry: QueryEntry, space: str, seed: int) -> None:
    """Fails with probability 1e-7."""
    sampler = SeededSampler(np.random.default_rng(seed))
    check_noise(entry, space, mechanism, sampler, seed)


def test_every_query_has_a_mechanism() -> None:
    """And every mechanism a query: none of them is without a law."""
    rng = np.random.default_rng(0)
    coded = {entry.make(DOMAINS["mixed"], rng).norm for entry in CODED_QUERIES}
    for mechanism in MECHANISMS:
        assert mechanism.kind.norm in coded or any(mechanism.answers(entry) for entry in QUERIES)
    for entry in QUERIES:
        assert any(mechanism.answers(entry) for mechanism in MECHANISMS)
    assert coded <= {mechanism.kind.norm for mechanism in MECHANISMS}


@pytest.mark.parametrize("entry", QUERIES, ids=str)
@pytest.mark.parametrize("kind", [GDP, PureDP, ZCDP], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("trust", TRUST, ids=str)
def test_trust_model(trust: TrustEntry, kind: type[Event], entry: QueryEntry, seed: int) -> None:
    """The model's table picks a mechanism, whose law holds, or nothing is drawn. Fails with probability 1e-7."""
    rng = np.random.default_rng(seed)
    query, sampler = entry.make(SPACES["plain"](rng), rng), SeededSampler(rng)
    rows = registry.private(registry.tame_rows(rng, query.space, ROWS))
    spends = {type(mechanism.spend(MU)): mechanism for mechanism in MECHANISMS}
    if (query.norm, kind) in trust.make().mechanisms:
        picked = trust.make().mechanism(query, spends[kind].spend(MU), rows)
        (mechanism,) = (each for each in MECHANISMS if each.kind is type(picked))
        if mechanism.answers(entry):
            answer, draws = answer_of_trust(trust, mechanism), trust.draws(ROWS)
            check_noise(entry, "plain", mechanism, sampler, seed, answer=answer, draws=draws)
            return
    with watched() as steps, pytest.raises(NotAnswered):
        answer_of_trust(trust, spends[kind])(query, rows, sampler)
    assert steps == ["charge"], f"what was refused drew or read: {steps}"


@pytest.mark.nightly
@pytest.mark.parametrize(("mechanism", "entry"), _answered())
def test_secure_source(mechanism: MechanismEntry, entry: QueryEntry, seed: int) -> None:
    """The operating system's noise, not a seed's. Fails with probability 1e-7."""
    check_noise(entry, "plain", mechanism, SecureSampler(), seed)


def test_matrix_entries(seed: int) -> None:
    """Fails with probability 1e-7."""
    check_matrix_entries(SeededSampler(np.random.default_rng(seed)), seed)
