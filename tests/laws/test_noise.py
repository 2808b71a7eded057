"""The noise of every release has the scale that its sensitivity and its price ask for.

Each test draws many releases of the same rows, takes the exact answer off and compares the sum of squares with
its chi-square law. It fails with probability 1e-7 at most, whatever the seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from dpregress.accounting import GDP, MemoryLedger, Relation
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import Sampler, SecureSampler, SeededSampler
from dpregress.queries import Query
from dpregress.releases import Isotropic, Release
from dpregress.rows import PrivateRows
from tests import registry
from tests.laws.spies import Silent
from tests.registry import MECHANISMS, QUERIES, SPACES, TRUST, MechanismEntry, QueryEntry, TrustEntry

MU = 0.8
ROWS = 20
FAILURE = 1e-7

Answer = Callable[[Query[Any], PrivateRows, Sampler], Release]


def answer_of_mechanism(entry: MechanismEntry) -> Answer:
    mechanism = entry.make(GDP(MU))
    return lambda query, rows, source: mechanism.release(query, rows, source, Relation.REPLACE_ONE)


def answer_of_trust(entry: TrustEntry) -> Answer:
    def answer(query: Query[Any], rows: PrivateRows, source: Sampler) -> Release:
        reservation = MemoryLedger(GDP(MU)).reserve(GDP(MU))
        return entry.make().release(rows, query, GDP(MU), source=source, reservation=reservation)

    return answer


def check_noise(
    entry: QueryEntry,
    space: str,
    answer: Answer,
    source: Sampler,
    seed: int,
    *,
    draws: int = 1,
    releases: int = 400,
) -> None:
    """``(release - exact) mu / sensitivity`` is standard normal in every independent entry."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    rows = registry.private(registry.tame_rows(rng, query.space, ROWS))
    draws = 1 if query.kept_apart else draws
    sigma = math.sqrt(draws) * query.sensitivity(Relation.REPLACE_ONE) / MU
    exact = answer(query, rows, Silent()).total
    released = [answer(query, rows, source) for _ in range(releases)]
    for release in released:
        assert isinstance(release.noise, Isotropic)
        assert math.isclose(release.noise.sigma, sigma, rel_tol=1e-6), "the stated noise law is another"
        assert release.events == (GDP(MU),)
        assert query.apart or release.n == ROWS  # a counted query's n is an answer too: tests/queries/test_counted.py
    noise = np.array([entry.layout(release.total) - entry.layout(exact) for release in released]) / sigma
    diagonal = _diagonal(exact)
    check_squares(noise, FAILURE / 3)
    check_squares(noise[:, diagonal], FAILURE / 3)
    check_squares(noise[:, ~diagonal], FAILURE / 3)


def check_squares(noise: Matrix, failure: float) -> None:
    """The sum of squares of standard normals lies between the tails of its law."""
    if noise.size:
        low, high = chi2.ppf(failure / 2, noise.size), chi2.isf(failure / 2, noise.size)
        total = float(np.sum(noise**2))
        assert low < total < high, f"{noise.size} squares add to {total:.0f}, not between {low:.0f} and {high:.0f}"


def check_matrix_entries(source: Sampler, seed: int, releases: int = 2000) -> None:
    """In a released second moment the diagonal has variance sigma^2, every entry beside it sigma^2 / 2."""
    rng = np.random.default_rng(seed)
    query = QUERIES[0].make(SPACES["plain"](rng), rng)
    rows = registry.private(registry.tame_rows(rng, query.space, ROWS))
    answer = answer_of_mechanism(MECHANISMS[0])
    exact = answer(query, rows, Silent()).total
    sigma = query.sensitivity(Relation.REPLACE_ONE) / MU
    noise = np.array([answer(query, rows, source).total - exact for _ in range(releases)]) / sigma
    row, column = np.triu_indices(len(exact), 1)
    on, off = np.diagonal(noise, axis1=1, axis2=2), noise[:, row, column]
    check_squares(on, FAILURE / 2)
    check_squares(off * math.sqrt(2), FAILURE / 2)


def _diagonal(total: Vector | Matrix) -> np.ndarray:
    """Which independent entries of a release lie on the diagonal; of a vector, none."""
    if total.ndim == 1:
        return np.zeros(len(total), dtype=bool)
    row, column = np.triu_indices(len(total))
    return row == column


@pytest.mark.parametrize("space", ["plain", "intercept", "small ball"])
@pytest.mark.parametrize("entry", QUERIES, ids=str)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_mechanism(mechanism: MechanismEntry, entry: QueryEntry, space: str, seed: int) -> None:
    """Fails with probability 1e-7."""
    source = SeededSampler(np.random.default_rng(seed))
    check_noise(entry, space, answer_of_mechanism(mechanism), source, seed)


@pytest.mark.parametrize("entry", QUERIES, ids=str)
@pytest.mark.parametrize("trust", TRUST, ids=str)
def test_trust_model(trust: TrustEntry, entry: QueryEntry, seed: int) -> None:
    """Fails with probability 1e-7."""
    source = SeededSampler(np.random.default_rng(seed))
    check_noise(entry, "plain", answer_of_trust(trust), source, seed, draws=trust.draws(ROWS))


@pytest.mark.nightly
@pytest.mark.parametrize("entry", QUERIES[:-1], ids=str)
def test_secure_source(entry: QueryEntry, seed: int) -> None:
    """The operating system's noise, not a seed's. Fails with probability 1e-7."""
    check_noise(entry, "plain", answer_of_mechanism(MECHANISMS[0]), SecureSampler(), seed)


def test_matrix_entries(seed: int) -> None:
    """Fails with probability 1e-7."""
    check_matrix_entries(SeededSampler(np.random.default_rng(seed)), seed)
