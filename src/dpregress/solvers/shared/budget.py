"""The budget of solvers with private steps, and whether public labels provide a prior."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpregress.accounting import GDP, Composed, split
from dpregress.public.facts import PublicFacts

#: Labels that differ by less count as equal.
_ALIKE = 1e-90
#: The share of mu^2 that steps keep, however many other questions there are.
_LEAST_STEPS = 0.30


def has_labels(facts: PublicFacts) -> bool:
    """Whether there are labelled public rows, at least 30.

    Labels that are all equal do not count: they carry no information on slopes and would suggest false certainty.
    """
    if facts.public is None or facts.public.rows is None or facts.trusted_labels is None:
        return False
    return float(np.ptp(facts.trusted_labels)) > _ALIKE


def has_prior(facts: PublicFacts) -> bool:
    """Whether there are enough labelled public rows for a fit of their own: also twice the number of columns."""
    return has_labels(facts) and facts.public is not None and facts.public.n >= 2 * facts.start.space.order


def leaving_steps(shares: Mapping[str, float], whole: float) -> dict[str, float]:
    """Shares of ``whole`` that leave steps enough of it: scaled down together if they would not."""
    total = math.fsum(shares.values())
    scale = min(1.0, (1 - _LEAST_STEPS) * whole / total) if total else 1.0
    return {name: share * scale for name, share in shares.items()}


def joint_budget(spends: Sequence[GDP]) -> GDP:
    """The budget that several budgets make up."""
    return GDP(Composed.of(spends).mu)


def allocate_budget(
    budget: GDP, shares: Mapping[str, float], steps: Sequence[float]
) -> tuple[dict[str, GDP], tuple[GDP, ...]]:
    """The budgets of the questions, by shares of mu^2, and of the steps, which divide the rest by weight."""
    rest = (1 - sum(shares.values())) / sum(steps)
    asked = [name for name, share in shares.items() if share > 0]
    parts = split(budget, [*(shares[name] for name in asked), *(rest * weight for weight in steps)])
    return dict(zip(asked, parts, strict=False)), parts[len(asked) :]
