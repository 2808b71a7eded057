"""The discrete Laplace mechanism: the scale is never below ``Delta / epsilon``, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpregress.accounting import GDP, MemoryLedger, PureDP, Relation
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import BudgetExceeded, NotAnswered, UnsafeNoise
from dpregress.mechanisms import DiscreteLaplace, Sampler, SecureSampler, SeededSampler
from dpregress.queries import SecondMoment, UsableRowCount
from dpregress.rows import RawRows
from dpregress.trust import Central, Session
from tests import registry
from tests.laws.spies import watched

SPACE = WhitenedSpace(("x0",), np.eye(1), 1.0, np.zeros(1), response=ResponseScale("y", bound=1.0))
ROWS = registry.private(RawRows(np.ones((7, 1)), np.array([1.0, np.nan, 2.0, -3.0, np.inf, 0.0, 5.0])))


def test_rounding_never_lowers_the_scale(seed: int) -> None:
    """In exact fractions ``Delta / b <= epsilon``: deterministic."""
    for epsilon in 10 ** np.random.default_rng(seed).uniform(-6, 1.5, size=300):
        scale = DiscreteLaplace(PureDP(float(epsilon)))._scale(UsableRowCount(SPACE), Relation.ADD_REMOVE)
        assert 1 / Fraction(scale) <= Fraction(float(epsilon))
        assert scale * epsilon == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(
    "sampler", [SecureSampler(), SeededSampler(np.random.default_rng(0))], ids=["secure", "seeded"]
)
def test_a_count_under_both_relations(sampler: Sampler, relation: Relation) -> None:
    """Five of seven rows have a response. At epsilon 40 the noise is not 0 with probability 2 e^-40 < 1e-16."""
    session = Session.reserve(ROWS, PureDP(40.0), relation=relation, sampler=sampler)
    release = session(UsableRowCount(SPACE), PureDP(40.0))
    assert release.count == 5
    assert release.n == (7 if relation is Relation.REPLACE_ONE else 0)
    assert (release + release).count == 10
    statement = session.statement(["that there are people"])
    assert statement.promise == statement.budget == PureDP(40.0)
    assert statement.events.parts == (PureDP(40.0),)
    assert statement.assumed_public == ("that there are people",)
    assert statement.seeded is sampler.seeded
    with pytest.raises(BudgetExceeded):
        session(UsableRowCount(SPACE), PureDP(0.1))


def test_refusals() -> None:
    """Nothing is drawn for what it does not answer."""
    laplace = DiscreteLaplace(PureDP(1.0))
    with pytest.raises(NotAnswered, match="is in L2, DiscreteLaplace needs one in L1"):
        laplace.check(SecondMoment(SPACE), ROWS, Relation.REPLACE_ONE)
    for epsilon in (1e-20, 1e6):
        with pytest.raises(UnsafeNoise, match="outside the range"):
            DiscreteLaplace(PureDP(epsilon)).check(UsableRowCount(SPACE), ROWS, Relation.REPLACE_ONE)
    for scale in (0.0, -1.0, np.nan, np.inf, 2.0**60):
        with pytest.raises(UnsafeNoise):
            SecureSampler().add_discrete_laplace(np.array([1]), scale)
    ledger = MemoryLedger(GDP(1.0))
    with watched() as steps, pytest.raises(BudgetExceeded):
        Session.reserve(ROWS, PureDP(100.0), ledger=ledger)
    assert not steps
    session = Session(Central(), ROWS, SecureSampler(), MemoryLedger(GDP(1.0)).reserve(GDP(1.0)))
    with watched() as steps, pytest.raises(NotAnswered, match="UsableRowCount of norm L1 with GDP"):
        session(UsableRowCount(SPACE), GDP(1.0))
    assert not steps
