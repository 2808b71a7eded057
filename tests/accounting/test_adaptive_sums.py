"""Budgets whose first charge is (epsilon, delta): nothing but sums of epsilons and deltas counts."""

from __future__ import annotations

import pytest

from dpregress import ApproxDP, MemoryLedger, PureDP
from dpregress.errors import BudgetExceeded


def test_small_pure_charges_add_up_after_an_approximate_one() -> None:
    """The smaller of the rho curve and the sums was taken before: about 1,900 of these charges fitted in."""
    ledger = MemoryLedger(ApproxDP(1.0, 1e-6))
    ledger.reserve(ApproxDP(0.01, 1e-7))
    for _ in range(198):
        ledger.reserve(PureDP(0.005))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(PureDP(0.005))
