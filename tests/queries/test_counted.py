"""The count of usable rows that goes along with another answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpregress import GDP, MemoryLedger
from dpregress.accounting import Relation
from dpregress.errors import InvalidInput
from dpregress.mechanisms import Sampler, SeededSampler
from dpregress.models import GaussianFamily
from dpregress.queries import Counted, MeanResidual, Query, ResponseHistogram, SecondMoment
from dpregress.releases import Moments
from dpregress.rows import ArraySource, PrivateRows
from dpregress.trust import Central, Session
from tests.laws.spies import Silent
from tests.registry import SPACES

N, GAPS = 2_000, 300


def table(seed: int, gaps: int = GAPS) -> PrivateRows:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=N)
    y[:gaps] = np.nan
    return PrivateRows(ArraySource(rng.normal(size=(N, 3)), y))


def ask(query: Query[Any], rows: PrivateRows, mu: float, sampler: Sampler) -> Any:
    return Session(Central(), rows, sampler, MemoryLedger(GDP(mu)).reserve(GDP(mu)))(query, GDP(mu))


def moment(seed: int) -> SecondMoment:
    return SecondMoment(SPACES["intercept"](np.random.default_rng(seed)).with_response(None))


def test_the_count_is_exact_without_noise(seed: int) -> None:
    counted = ask(Counted(moment(seed)), table(seed), 1e12, Silent())
    assert isinstance(counted, Moments)
    assert counted.n == N - GAPS
    assert np.array_equal(counted.total, ask(moment(seed), table(seed), 1e12, Silent()).total)


def test_the_count_costs_nothing(seed: int) -> None:
    """The same sensitivity to replacing a row, so with a seed the same noise on everything else."""
    query = moment(seed)
    assert Counted(query).sensitivity(Relation.REPLACE_ONE) == query.sensitivity(Relation.REPLACE_ONE)
    rows, sources = table(seed, 0), [SeededSampler(np.random.default_rng(seed)) for _ in range(2)]
    for _ in range(2):  # also what is asked afterwards
        one, other = (
            ask(asked, rows, 1.0, sampler) for asked, sampler in zip((query, Counted(query)), sources, strict=True)
        )
        np.testing.assert_allclose(one.total, other.total, rtol=0, atol=1e-10 * np.abs(one.total).max())


def test_the_noise_of_the_count(seed: int) -> None:
    """Estimates of a true gap have the stated noise; each of the two bounds fails with probability 1e-7."""
    query = Counted(moment(seed))
    rows, sampler = table(seed), SeededSampler(np.random.default_rng(seed))
    mu, draws = 0.2, 400
    found = np.array([ask(query, rows, mu, sampler).n for _ in range(draws)])
    sigma = query.replacement() / mu / query.unit
    assert 10 * sigma < GAPS  # so that every count is believed
    limit = -norm.ppf(5e-8)
    assert abs(found.mean() - (N - GAPS)) < limit * sigma / math.sqrt(draws) + 0.5
    assert abs(found.var() / sigma**2 - 1) < limit * math.sqrt(2 / draws) * 1.3


def test_noise_alone_leaves_n_as_it_is(seed: int) -> None:
    """Fails with probability 100 * 3.2e-5 for a count, and n may differ in 5 of them: below 1e-12."""
    sampler = SeededSampler(np.random.default_rng(seed))
    found = [ask(Counted(moment(seed)), table(seed, 0), 0.01, sampler).n for _ in range(100)]
    assert sum(n != N for n in found) <= 5


def test_a_count_is_at_least_one(seed: int) -> None:
    rows = table(seed, N)
    assert ask(Counted(moment(seed)), rows, 1e12, Silent()).n == 1


def test_rows_are_counted_beside_other_queries_too(seed: int) -> None:
    space = SPACES["intercept"](np.random.default_rng(seed))
    query = Counted(MeanResidual(space, GaussianFamily, np.zeros(space.order), -1.0, 1.0))
    assert ask(query, table(seed), 1e12, Silent()).n == N - GAPS
    with pytest.raises(InvalidInput, match="replacement sensitivity"):
        Counted(MeanResidual(space, GaussianFamily, np.zeros(space.order), 0.0, 1.0))
    with pytest.raises(InvalidInput, match="survey weights"):
        Counted(ResponseHistogram(space, np.arange(4.0)))
