"""Dividing budgets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregress.accounting import GDP, ZCDP, ApproxDP, Composed, PureDP, gaussian_promise, split
from dpregress.errors import InvalidInput
from tests.rows.properties import untimed


@given(st.floats(1e-3, 1e3), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12))
@untimed
def test_shares_add_up_to_the_budget(mu: float, shares: list[float]) -> None:
    parts = split(GDP(mu), shares)
    assert GDP(mu).covers(Composed.of(parts))
    assert Composed.of(parts).mu == pytest.approx(mu, rel=1e-12)
    for part, share in zip(parts, shares, strict=True):
        assert part.mu**2 == pytest.approx(mu**2 * share / math.fsum(shares))


@pytest.mark.parametrize("shares", [[], [0.0], [1.0, 0.0], [1.0, -1.0], [math.nan], [1.0, math.nan], [math.inf]])
def test_bad_shares_are_refused(shares: list[float]) -> None:
    with pytest.raises(InvalidInput, match="shares of a budget"):
        split(GDP(1.0), shares)


def test_the_promise_of_a_budget_is_its_gaussian_mu() -> None:
    assert gaussian_promise(GDP(0.7)) == GDP(0.7)
    assert gaussian_promise(ZCDP(0.5)) == GDP(1.0)
    assert gaussian_promise(ApproxDP(1.0, 1e-6)).delta(1.0) == pytest.approx(1e-6)


def test_no_gaussian_mechanism_keeps_a_pure_budget() -> None:
    with pytest.raises(InvalidInput, match="pure epsilon"):
        gaussian_promise(PureDP(1.0))


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), ZCDP(0.5), GDP(0.7)])
def test_a_budget_covers_its_promise(budget: ApproxDP | ZCDP | GDP) -> None:
    assert budget.covers(gaussian_promise(budget))
