"""Events in words: what was spent and what is asked for, in the units of the budget."""

from __future__ import annotations

import math

from dpregress.accounting.events import GDP, ApproxDP, Composed, Event

#: A charge of another kind than the budget counts.
_NO_VALUE = ("epsilon = inf", "mu = inf", "rho = inf")


def describe(event: Event) -> str:
    """An event in the words of its own parameters: ``epsilon = 1, delta = 1e-06``."""
    if isinstance(event, Composed):
        return " + ".join(describe(part) for part in event.parts) or "nothing"
    return ", ".join(f"{name} = {value:g}" for name, value in event.parameters().items())


def describe_spent(spent: Composed, budget: Event) -> str:
    """What is spent, in the currency of the budget."""
    return in_units(spent, budget) if spent.parts else "nothing"


def in_units(event: Event, budget: Event) -> str:
    """An event in the units of a budget: ``epsilon = 0.9 at delta = 1e-06`` where the budget is (epsilon, delta)."""
    if isinstance(budget, ApproxDP):
        return at_delta(event.epsilon(budget.delta0), budget.delta0)
    return f"mu = {event.mu:.4g}" if isinstance(budget, GDP) else f"rho = {event.rho:.4g}"


def at_delta(epsilon: float, delta: float) -> str:
    """An epsilon with the delta at which it holds."""
    return f"epsilon = {epsilon:.4g} at delta = {delta:g}"


def describe_asked(event: Event, asked: Event | None, budget: Event) -> str:
    """A charge in the units in which it was asked for, and in those of the ledger's budget where they differ."""
    given = event if asked is None else asked
    if type(given) is type(budget) or isinstance(given, Composed):
        return describe(given)
    counted = in_units(event, budget)
    return describe(given) if counted.startswith(_NO_VALUE) else f"{describe(given)} ({counted})"


def rounded_down(value: float) -> str:
    """Four significant digits that never say more than there is."""
    if value <= 0 or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.floor(value / unit * (1 + 1e-9)) * unit:.4g}"
