"""Events: what composes, what covers what, and what files may say."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregress.accounting import GDP, ZCDP, ApproxDP, Composed, Event, PureDP, decode, group
from dpregress.errors import InvalidInput
from tests.reference import accounting as reference
from tests.rows.properties import untimed

sizes = st.floats(1e-3, 50.0)
deltas = st.floats(1e-12, 0.1)
simple = st.one_of(
    sizes.map(GDP), sizes.map(ZCDP), sizes.map(PureDP), st.builds(ApproxDP, sizes, st.floats(1e-12, 1e-3))
)

MU = ApproxDP(1.0, 1e-6).gaussian_mu


@pytest.mark.parametrize("kind", [GDP, ZCDP, PureDP, lambda value: ApproxDP(value, 1e-6)])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_parameters_are_positive_and_finite(kind: Any, value: float) -> None:
    with pytest.raises(InvalidInput, match="must be positive and finite"):
        kind(value)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_delta_lies_between_zero_and_one(delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta must lie"):
        ApproxDP(1.0, delta)


def test_events_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        GDP(1.0).anything = 2.0  # type: ignore[attr-defined]


@pytest.mark.parametrize("event", [GDP(1.5), ZCDP(0.25), PureDP(2.0), ApproxDP(1.0, 1e-6)])
def test_events_print_as_they_are_made(event: Event) -> None:
    names = {kind.__name__: kind for kind in (GDP, ZCDP, PureDP, ApproxDP)}
    assert eval(repr(event), names) == event


# ------------------------------------------------------------------ composition


@given(simple, st.integers(1, 6))
@untimed
def test_n_fold_is_n_times(event: Event, times: int) -> None:
    one_by_one = event
    for _ in range(times - 1):
        one_by_one = one_by_one + event
    many = event * times
    assert many == Composed.of([one_by_one])
    assert many.parts == (event,) * times
    assert many.mu == pytest.approx(math.sqrt(times) * event.mu, rel=1e-12)
    assert many.rho == pytest.approx(times * event.rho, rel=1e-12)


@given(st.lists(sizes, min_size=1, max_size=6), deltas)
@untimed
def test_pure_events_cost_at_most_the_sum_of_their_epsilons(epsilons: list[float], delta: float) -> None:
    """Basic composition; in the exact arithmetic of the sum."""
    total = math.fsum(epsilons)
    composed = Composed.of(map(PureDP, epsilons))
    assert composed.epsilon(delta) <= total
    assert composed.delta(total) == 0.0


@pytest.mark.parametrize("event", [PureDP(1e308), GDP(1.6e154)])
def test_totals_beyond_floats_are_infinite(event: Event) -> None:
    twice = event * 2
    assert twice.rho == math.inf
    assert twice.delta(1.0) == pytest.approx(1.0)
    assert not ApproxDP(1.0, 1e-6).covers(twice)
    assert not PureDP(1.0).covers(twice)


@given(st.lists(simple, min_size=1, max_size=4), deltas)
@untimed
def test_more_events_cost_more(events: list[Event], delta: float) -> None:
    whole, part = Composed.of(events), Composed.of(events[:-1])
    assert whole.mu >= part.mu
    assert whole.rho >= part.rho
    assert whole.epsilon(delta) >= part.epsilon(delta) - 1e-9


@given(simple, deltas)
@untimed
def test_one_event_composes_to_at_least_itself(event: Event, delta: float) -> None:
    """Equality but for events with several curves, of which a composition may know fewer."""
    alone = Composed.of([event])
    assert alone.mu == pytest.approx(event.mu)
    assert alone.rho == pytest.approx(event.rho)
    assert alone.epsilon(delta) >= event.epsilon(delta) * (1 - 1e-9)
    if not isinstance(event, PureDP):
        assert alone.epsilon(delta) == pytest.approx(event.epsilon(delta))


def test_nothing_costs_nothing() -> None:
    nothing = Composed.of([])
    assert (nothing.mu, nothing.rho, nothing.epsilon(1e-6), nothing.delta(0.0)) == (0.0, 0.0, 0.0, 0.0)


def test_gaussian_parts_compose_by_their_squares() -> None:
    assert (GDP(3.0) + GDP(4.0)).mu == 5.0
    assert (GDP(3.0) + GDP(4.0)).epsilon(1e-6) == GDP(5.0).epsilon(1e-6)


def test_parts_without_a_curve_add_up() -> None:
    mixed = GDP(1.0) + ApproxDP(0.5, 1e-7) + ApproxDP(0.25, 2e-7)
    assert mixed.epsilon(1e-6) == pytest.approx(0.75 + GDP(1.0).epsilon(7e-7))
    assert mixed.epsilon(3e-7) == math.inf
    assert mixed.delta(2.0) == pytest.approx(3e-7 + GDP(1.0).delta(1.25))
    assert mixed.delta(0.7) == 1.0


def test_a_mixed_total_takes_the_better_curve() -> None:
    mixed = GDP(1.0) + PureDP(0.1)
    by_mu, by_rho = GDP(mixed.mu), ZCDP(mixed.rho)
    assert mixed.epsilon(1e-6) == min(by_mu.epsilon(1e-6), by_rho.epsilon(1e-6))
    assert (GDP(1.0) + ZCDP(0.5)).epsilon(1e-6) == ZCDP(1.0).epsilon(1e-6)


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_pure_events_never_claim_less_than_randomised_response_costs(epsilon0: float, times: int) -> None:
    """k answers of randomised response have a known delta at every epsilon; no claim may lie below it."""
    keep = 1 / (1 + math.exp(-epsilon0))
    for epsilon in (0.0, 0.5, 1.0, 2.5, 7.0):
        exact = math.fsum(
            math.comb(times, lies)
            * keep ** (times - lies)
            * (1 - keep) ** lies
            * max(0.0, 1 - math.exp(epsilon - (times - 2 * lies) * epsilon0))
            for lies in range(times + 1)
        )
        assert (PureDP(epsilon0) * times).delta(epsilon) >= exact * (1 - 1e-12)


@pytest.mark.parametrize("epsilons", [[2.0], [0.5, 1.5], [0.1] * 7, [3.0, 0.2, 0.2]])
def test_different_pure_events_never_claim_less_than_randomised_response_costs(epsilons: list[float]) -> None:
    """Against all outcomes, in 60 digits. The sum of epsilons is exact where delta is 0."""
    composed, total = Composed.of(map(PureDP, epsilons)), math.fsum(epsilons)
    for epsilon in (0.0, 0.2 * total, 0.7 * total, 0.99 * total):
        assert composed.delta(epsilon) >= reference.pure_delta(epsilons, epsilon) * (1 - 1e-12) > 0
    assert composed.delta(total) == 0.0
    for delta in (1e-12, 1e-6, 1e-2):
        assert reference.pure_delta(epsilons, composed.epsilon(delta)) <= delta


# ------------------------------------------------------------------ one kind at a time


@pytest.mark.parametrize("epsilon0", [1e-3, 1.0, 30.0, 800.0, 5e4])
def test_pure_epsilon_and_delta_undo_each_other(epsilon0: float) -> None:
    event = PureDP(epsilon0)
    for delta in (1e-300, 1e-9, 1e-3):
        if delta < event.delta(0.0):
            rounding = 4 * math.ulp(epsilon0)  # of the epsilon on the way
            assert event.delta(event.epsilon(delta)) == pytest.approx(delta, rel=1e-6, abs=rounding)
    assert event.epsilon(1e-300) == pytest.approx(epsilon0)
    assert event.delta(0.0) == pytest.approx(math.tanh(epsilon0 / 2))
    assert event.delta(epsilon0) == 0.0


def test_pure_epsilon_stops_at_zero() -> None:
    assert PureDP(0.1).epsilon(0.5) == 0.0


@pytest.mark.parametrize("event", [GDP(1.0), ZCDP(0.5), PureDP(1.0), ApproxDP(1.0, 1e-6), GDP(1.0) + PureDP(1.0)])
def test_delta_at_a_very_large_epsilon(event: Event) -> None:
    """What the event promises at least: nothing overflows on the way."""
    assert event.delta(1e4) <= 1e-6


def test_very_large_mu_does_not_overflow() -> None:
    assert GDP(1e200).rho == math.inf
    assert (GDP(1e200) * 2).mu == pytest.approx(math.sqrt(2) * 1e200)


def test_approximate_events_know_one_point() -> None:
    event = ApproxDP(1.0, 1e-6)
    assert (event.epsilon(1e-6), event.epsilon(1e-7), event.delta(1.0), event.delta(0.9)) == (1.0, math.inf, 1e-6, 1.0)
    assert (event.mu, event.rho) == (math.inf, math.inf)


def test_gaussian_mu_of_each_kind() -> None:
    assert GDP(0.7).gaussian_mu == 0.7
    assert ZCDP(0.5).gaussian_mu == 1.0
    assert PureDP(1.0).gaussian_mu == 0.0
    assert GDP(MU).delta(1.0) == pytest.approx(1e-6)
    assert Composed.of([GDP(0.7), ZCDP(0.02)]).gaussian_mu == pytest.approx(0.2)


# ------------------------------------------------------------------ covers

COVERED = [
    (GDP(1.0), GDP(1.0)),
    (GDP(1.0), GDP(0.6) + GDP(0.8)),
    (GDP(1.0), GDP(0.1) * 100),
    (GDP(1.0), PureDP(0.5)),
    (GDP(1.0), PureDP(0.5) + GDP(0.7)),
    (ZCDP(0.5), GDP(1.0)),
    (ZCDP(0.5), ZCDP(0.2) + ZCDP(0.3)),
    (ZCDP(0.5), PureDP(1.0)),
    (ZCDP(0.5), GDP(0.6) + ZCDP(0.32)),
    (PureDP(1.0), PureDP(0.4) + PureDP(0.6)),
    (PureDP(1.0), PureDP(0.1) * 10),
    (ApproxDP(1.0, 1e-6), GDP(MU)),
    (ApproxDP(1.0, 1e-6), GDP(MU * 0.6) + GDP(MU * 0.8)),
    (ApproxDP(1.0, 1e-6), ApproxDP(1.0, 1e-6)),
    (ApproxDP(1.0, 1e-6), ApproxDP(0.5, 5e-7) * 2),
    (ApproxDP(0.3, 3e-6), ApproxDP(0.1, 1e-6) * 3),
    (ApproxDP(1.0, 1e-6), PureDP(1.0)),
    (ApproxDP(1.0, 1e-6), Composed.of([PureDP(1.0)])),
    (ApproxDP(1.0, 1e-6), PureDP(0.4) + PureDP(0.6)),
    (ApproxDP(1.0, 1e-6), PureDP(0.1) * 10),
    (ApproxDP(1.0, 1e-6), ZCDP(0.015)),
    (ApproxDP(1.0, 1e-6), GDP(0.1) + ApproxDP(0.4, 4e-7)),
    (ApproxDP(1.0, 1e-6), ZCDP(0.005) + PureDP(0.15)),
    (GDP(1.0) + PureDP(0.5), PureDP(0.5) + GDP(1.0)),
    (GDP(1.0) + PureDP(0.5), GDP(1.0)),
    (GDP(1.0), Composed.of([])),
    (PureDP(1.0), Composed.of([])),
]
TOO_MUCH = [
    (GDP(1.0), GDP(1.0 + 1e-9)),
    (GDP(1.0), GDP(0.6) + GDP(0.8) + GDP(1e-3)),
    (GDP(1.0), PureDP(1.0)),
    (GDP(1.0), ZCDP(1e-6)),
    (GDP(1.0), ApproxDP(1e-3, 1e-9)),
    (ZCDP(0.5), GDP(1.001)),
    (ZCDP(0.5), PureDP(1.001)),
    (ZCDP(0.5), ApproxDP(1e-3, 1e-9)),
    (PureDP(1.0), PureDP(0.4) + PureDP(0.601)),
    (PureDP(1.0), GDP(1e-3)),
    (PureDP(1.0), ZCDP(1e-3)),
    (PureDP(1.0), ApproxDP(1e-3, 1e-9)),
    (ApproxDP(1.0, 1e-6), GDP(MU * (1 + 1e-9))),
    (ApproxDP(1.0, 1e-6), ApproxDP(0.5, 6e-7) * 2),
    (ApproxDP(1.0, 1e-6), ApproxDP(0.6, 1e-7) * 2),
    (ApproxDP(1.0, 1e-6), PureDP(1.001)),
    (ApproxDP(1.0, 1e-6), PureDP(0.4) + PureDP(0.601)),
    (ApproxDP(1.0, 1e-6), PureDP(1.0) + GDP(MU)),
    (ApproxDP(1.0, 1e-6), PureDP(1.0) + ApproxDP(1e-3, 1e-9)),
    (ApproxDP(1.0, 1e-6), ZCDP(0.03)),
    (ApproxDP(1.0, 1e-6), GDP(MU) + ApproxDP(0.1, 1e-9)),
    (ApproxDP(1.0, 1e-6), GDP(MU) + ZCDP(1e-4)),
    (GDP(1.0) + PureDP(0.5), GDP(1.0) * 2),
    (GDP(1.0) + PureDP(0.5), GDP(0.9)),
]


@pytest.mark.parametrize(("budget", "spent"), COVERED, ids=repr)
def test_budget_covers(budget: Event, spent: Event) -> None:
    assert budget.covers(spent)


@pytest.mark.parametrize(("budget", "spent"), TOO_MUCH, ids=repr)
def test_budget_does_not_cover(budget: Event, spent: Event) -> None:
    assert not budget.covers(spent)


@given(st.builds(ApproxDP, sizes, st.floats(1e-12, 1e-3)), st.lists(simple, min_size=1, max_size=3))
@untimed
def test_covered_means_the_promise_is_kept(budget: ApproxDP, spent: list[Event]) -> None:
    total = Composed.of(spent)
    if budget.covers(total):
        assert total.delta(budget.epsilon0 * (1 + 1e-9)) <= budget.delta0 * (1 + 1e-6)


# ------------------------------------------------------------------ groups


def test_a_group_of_k_rows_costs_k_mu() -> None:
    assert group(GDP(0.5), 3) == GDP(1.5)
    assert group(GDP(0.3) + GDP(0.4), 2).mu == pytest.approx(1.0)
    assert group(PureDP(1.0), 1).mu == PureDP(1.0).mu


@pytest.mark.parametrize("rows", [0, -1])
def test_a_group_has_rows(rows: int) -> None:
    with pytest.raises(InvalidInput, match="at least one row"):
        group(GDP(1.0), rows)


@pytest.mark.parametrize("event", [ZCDP(1.0), ApproxDP(1.0, 1e-6), GDP(1.0) + ZCDP(1.0)])
def test_a_group_needs_a_finite_mu(event: Event) -> None:
    with pytest.raises(InvalidInput, match="finite mu"):
        group(event, 2)


# ------------------------------------------------------------------ files


@given(st.recursive(simple, lambda inner: st.lists(inner, max_size=3).map(lambda parts: Composed(tuple(parts)))))
@untimed
def test_events_come_back_from_json(event: Event) -> None:
    assert decode(json.loads(json.dumps(event.encode()))) == event


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"kind": "gdp"},
        {"kind": "gdp", "mu": -1},
        {"kind": "gdp", "mu": "much"},
        {"kind": "gdp", "mu": None},
        {"kind": "gdp", "mu": math.nan},
        {"kind": "gdp", "mu": 1.0, "rho": 2.0},
        {"kind": "os.system", "mu": 1.0},
        {"kind": ["gdp"], "mu": 1.0},
        {"kind": "approx", "epsilon": 1.0},
        {"kind": "approx", "epsilon": 1.0, "delta": 2.0},
        {"kind": "composed"},
        {"kind": "composed", "parts": 3},
        {"kind": "composed", "parts": [3]},
        {"kind": "composed", "parts": [{"kind": "gdp", "mu": 0}]},
        [],
        [1, 2],
        "gdp",
        3,
        None,
    ],
    ids=repr,
)
def test_anything_else_is_refused(record: Any) -> None:
    with pytest.raises(InvalidInput, match="not a privacy event"):
        decode(record)
