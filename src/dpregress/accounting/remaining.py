"""What a budget has left, by the rule that refuses charges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpregress.accounting.adaptive import covers_adaptive, sum_of
from dpregress.accounting.calibrate import gaussian_promise, zcdp_promise
from dpregress.accounting.events import GDP, ZCDP, ApproxDP, Event, PureDP, parts_of
from dpregress.accounting.wording import rounded_down

#: A smaller part of the whole budget is the rounding that budgets tolerate.
_NEGLIGIBLE = 1e-5
_STEPS = 60


def largest_charge(budget: Event, spent: Sequence[Event], like: Event | None = None) -> Event | None:
    """The largest further charge that the budget covers, of the kind of the last one; None if nothing is left.

    The first is a Gaussian mechanism, ``GDP(mu)``, wherever the budget can pay for one. A budget of ``ZCDP`` or
    ``PureDP`` has charges of its own kind.

    Parameters
    ----------
    budget : Event
    spent : sequence of Event
    like : Event, optional
        Whose kind the charge has instead.

    Examples
    --------
    >>> round(largest_charge(GDP(1.0), [GDP(0.6)]).mu, 3)
    0.8
    """
    make, most = _kind(budget, spent, like or (spent[-1] if spent else None))
    if make is None:
        return None
    low, high = 0.0, most
    if covers_adaptive(budget, (*spent, make(high))):
        return make(high)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if covers_adaptive(budget, (*spent, make(middle))):
            low = middle
        else:
            high = middle
    return make(low) if low > _NEGLIGIBLE * most else None


def describe_left(
    budget: Event, spent: Sequence[Event], delta: float | None = None, *, like: Event | None = None
) -> str:
    """The largest further charge in words, rounded down: ``epsilon = 1.2 at delta = 1e-06``, or ``nothing``.

    Parameters
    ----------
    budget : Event
    spent : sequence of Event
    delta : float, optional
        Where to state epsilon; default: the delta of the budget, if it has one.
    like : Event, optional
        Whose kind the charge has, instead of the last one's.
    """
    found = largest_charge(budget, spent, like)
    if found is None:
        return "nothing"
    if isinstance(found, ApproxDP):
        return f"epsilon = {rounded_down(found.epsilon0)} at delta = {found.delta0:g}"
    if delta is None and isinstance(budget, ApproxDP):
        delta = budget.delta0
    if delta is not None:
        return f"epsilon = {rounded_down(found.epsilon(delta))} at delta = {delta:g}"
    return ", ".join(f"{name} = {rounded_down(value)}" for name, value in found.parameters().items())


def fit_of(epsilon: float, delta: float, spent: Sequence[Event] = ()) -> Event:
    """What one more fit with a budget of (epsilon, delta) charges, if it is of the kind of the last charge."""
    last = sum_of(spent[-1]) if spent else "mu"
    if last == "epsilons":
        return PureDP(epsilon)
    return zcdp_promise(ApproxDP(epsilon, delta)) if last == "rho" else gaussian_promise(ApproxDP(epsilon, delta))


def _kind(budget: Event, spent: Sequence[Event], like: Event | None) -> tuple[Callable[[float], Event] | None, float]:
    """How the next charge is made from one number, and the largest such number."""
    if isinstance(budget, PureDP):
        return PureDP, budget.epsilon0
    if isinstance(budget, ZCDP):
        return ZCDP, budget.rho
    if isinstance(budget, ApproxDP) and like is not None:
        added = sum_of(like)
        if added == "epsilons":
            return PureDP, budget.epsilon0
        if added == "rho":
            return ZCDP, zcdp_promise(budget).rho
        if added == "epsilons and deltas":
            left = budget.delta0 - math.fsum(part.delta0 for event in spent for part in _simple(event))
            return ((lambda epsilon: ApproxDP(epsilon, left)) if left > 0 else None), budget.epsilon0
    return (GDP, budget.gaussian_mu) if budget.gaussian_mu > 0 else (None, 0.0)


def _simple(event: Event) -> list[ApproxDP]:
    return [part for part in parts_of(event) if isinstance(part, ApproxDP)]
