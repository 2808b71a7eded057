"""How a solver by private steps divides its budget, and whether public labels give it a prior to begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.public.facts import PublicFacts

#: Labels that differ by less are taken for one.
_ALIKE = 1e-90


def has_prior(facts: PublicFacts) -> bool:
    """Whether there are labelled public rows enough for a fit of their own: 30, and twice the columns.

    Labels that are all alike say nothing of slopes, and too much of how sure one may be.
    """
    if facts.public is None or facts.public.rows is None or facts.trusted_labels is None:
        return False
    if float(np.ptp(facts.trusted_labels)) <= _ALIKE:
        return False
    return facts.public.n >= 2 * facts.start.space.order


def allocate_budget(
    budget: GDP, shares: Mapping[str, float], steps: Sequence[float]
) -> tuple[dict[str, GDP], tuple[GDP, ...]]:
    """What each question with a share of mu^2 gets, and each step of what is left, by its weight."""
    rest = (1 - sum(shares.values())) / sum(steps)
    asked = [name for name, share in shares.items() if share > 0]
    parts = split(budget, [*(shares[name] for name in asked), *(rest * weight for weight in steps)])
    return dict(zip(asked, parts, strict=False)), parts[len(asked) :]
