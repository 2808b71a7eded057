"""Whether charges that depend on earlier outcomes are within a budget: one bound for all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from dpregress.accounting.events import SLACK, ZCDP, ApproxDP, Composed, Event, PureDP, parts_of, pure_epsilon

#: What charges add up to.
Sum = Literal["mu", "rho", "epsilons", "epsilons and deltas"]


def covers_adaptive(budget: Event, spent: Sequence[Event]) -> bool:
    r"""Whether ``spent``, each chosen after the outcomes of those before it, is within the budget.

    An (epsilon, delta) budget judges all by one bound, which the first event fixes: the sum of rho for a purely
    private event, otherwise the sum of ``mu^2``, of rho, or of epsilons and deltas, whichever it has first. The
    smaller of two bounds would not do, since whoever chooses between them after an outcome can exceed both. The sum
    of pure epsilons is the exception: docs/privacy/accounting.md has the proof.

    References
    ----------
    Smith, Thakurta (2022), Fully adaptive composition for Gaussian differential privacy, for mu; Whitehouse, Ramdas,
    Rogers, Wu (2023), Fully-adaptive composition in differential privacy, for rho, epsilons and deltas.
    """
    total = Composed.of(spent)
    if not isinstance(budget, ApproxDP) or len(spent) < 2:
        return budget.covers(total)
    epsilon = budget.epsilon0 * (1 + SLACK)
    if pure_epsilon(total) <= epsilon:
        return True
    added = sum_of(spent[0])
    if not is_counted(total, "rho" if added == "epsilons" else added):
        return False
    if added == "mu":
        return total.mu <= budget.gaussian_mu * (1 + SLACK)
    if added == "epsilons and deltas":
        return _within_sums(budget, total)
    return ZCDP(total.rho).delta(epsilon) <= budget.delta0 * (1 + SLACK)


def _within_sums(budget: ApproxDP, total: Event) -> bool:
    """Whether the sums of epsilons and of deltas are within the budget; no other curve may be chosen after outcomes."""
    parts = [part for part in parts_of(total) if isinstance(part, ApproxDP | PureDP)]
    epsilons = math.fsum(part.epsilon0 for part in parts)
    deltas = math.fsum(part.delta0 for part in parts if isinstance(part, ApproxDP))
    return epsilons <= budget.epsilon0 * (1 + SLACK) and deltas <= budget.delta0 * (1 + SLACK)


def sum_of(event: Event) -> Sum:
    """What adds up in a budget of this kind, or in an (epsilon, delta) budget whose first charge is this event."""
    if math.isfinite(pure_epsilon(event)):
        return "epsilons"
    if math.isfinite(event.mu):
        return "mu"
    return "rho" if math.isfinite(event.rho) else "epsilons and deltas"


def is_counted(event: Event, added: Sum) -> bool:
    """Whether the event has what adds up."""
    simple = ApproxDP | PureDP if added == "epsilons and deltas" else PureDP
    finite = {"mu": event.mu, "rho": event.rho}
    return math.isfinite(finite[added]) if added in finite else all(isinstance(one, simple) for one in parts_of(event))
