"""Closed forms against another library's numerical accountants."""

from __future__ import annotations

from typing import Any

import pytest

from dpregress.accounting import GDP, ZCDP, PureDP

pytestmark = pytest.mark.filterwarnings("ignore")  # the other library's imports warn about their own future

EPSILONS = (0.1, 1.0, 4.0)


@pytest.fixture(scope="module")
def other() -> Any:
    dp_accounting = pytest.importorskip("dp_accounting")
    pytest.importorskip("dp_accounting.rdp")
    pytest.importorskip("dp_accounting.pld")
    return dp_accounting


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_gdp_is_the_privacy_loss_distribution_of_a_gaussian(other: Any, mu: float) -> None:
    distribution = other.pld.privacy_loss_distribution.from_gaussian_mechanism(
        standard_deviation=1 / mu, value_discretization_interval=1e-3
    )
    for epsilon in EPSILONS:
        # theirs is discretised and rounded up: a slightly larger delta at the same epsilon
        theirs = distribution.get_delta_for_epsilon(epsilon)
        ours = GDP(mu).delta(epsilon)
        assert ours <= theirs * (1 + 1e-9) + 1e-12
        assert theirs <= GDP(mu).delta(epsilon - 1e-3) + 1e-9


def test_composed_gdp_is_the_composed_privacy_loss_distribution(other: Any) -> None:
    distribution = other.pld.privacy_loss_distribution.from_gaussian_mechanism(
        standard_deviation=2.0, value_discretization_interval=1e-3
    )
    composed = GDP(0.5) * 9
    for epsilon in EPSILONS:
        theirs = distribution.self_compose(9).get_delta_for_epsilon(epsilon)
        assert composed.delta(epsilon) <= theirs * (1 + 1e-9) + 1e-12
        assert theirs <= composed.delta(epsilon - 9e-3) + 1e-9


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_renyi_accounting_is_looser(other: Any, mu: float) -> None:
    accountant = other.rdp.RdpAccountant()
    accountant.compose(other.GaussianDpEvent(1 / mu))
    theirs = accountant.get_epsilon(1e-6)
    assert GDP(mu).epsilon(1e-6) <= ZCDP(mu**2 / 2).epsilon(1e-6) <= theirs * (1 + 1e-9)
    assert theirs <= 1.2 * GDP(mu).epsilon(1e-6)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_composed_pure_events_cost_at_least_the_composed_loss_of_randomised_response(other: Any, times: int) -> None:
    """Their distribution of losses is rounded down here: no claim of ours may lie below it, and the sums agree."""
    distribution = other.pld.privacy_loss_distribution.from_privacy_parameters(
        other.pld.common.DifferentialPrivacyParameters(0.4, 0.0), value_discretization_interval=1e-3
    ).self_compose(times)
    composed = PureDP(0.4) * times
    assert composed.delta(0.4 * times) == 0.0
    assert distribution.get_epsilon_for_delta(1e-15) == pytest.approx(0.4 * times, abs=times * 1e-3)
    for epsilon in (0.1, 0.3, 0.35 * times):
        assert composed.delta(epsilon) >= distribution.get_delta_for_epsilon(epsilon + times * 1e-3) - 1e-12
