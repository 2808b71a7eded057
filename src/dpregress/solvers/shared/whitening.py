"""A better whitening from a private second moment, if there are few public rows or none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms, refined_radius
from dpregress.queries import Ask, Counted, SecondMoment, noise_in_mean
from dpregress.releases import Moments
from dpregress.solvers.shared.repair import gram_floor

#: Share of mu^2 of a private second moment to whiten by.
REFINE = 0.10
#: With more noise in it, in spectral norm, bounds are no better a start than public rows, few and skewed as they are.
_TOO_NOISY = 2.0


def planned_start(facts: PublicFacts, budget: GDP) -> PublicFacts:
    """The facts with the start that suits the budget: from bounds, or from public rows that may mislead."""
    instead = facts.start.instead
    if instead is None:
        return facts
    change = SecondMoment.largest_change(instead.space.radius) / math.sqrt(REFINE)
    noise = math.sqrt(2 * instead.space.order) * noise_in_mean(change, budget, facts.n)
    return replace(facts, start=instead) if noise <= _TOO_NOISY else facts


def refinements(facts: PublicFacts) -> tuple[str, ...]:
    """Names of the private second moments to whiten by."""
    return tuple(f"refine {turn}" for turn in range(facts.start.refinements))


@dataclass(frozen=True, eq=False)
class Rewhitened:
    """A better space, whose radius is the median norm of rows, and the distribution of norms in it."""

    space: WhitenedSpace
    norms: RowNorms


def refined(ask: Ask, space: WhitenedSpace, spend: GDP) -> Rewhitened:
    """``W <- A^{-1/2} W`` with A a private second moment in the first space."""
    second = ask(Counted(SecondMoment(space.with_response(None))), spend)
    return rewhitened(space, second, gram_floor(second))


def rewhitened(space: WhitenedSpace, second: Moments, floor: float) -> Rewhitened:
    """The same from a released second moment, with eigenvalues raised to at least ``floor``."""
    root = symmetric_power(second.gram, -0.5, smallest=floor)
    better = space.rewhitened(root, 1.0)
    norms = RowNorms.normal(better, refined_radius(better, float(np.trace(root @ second.gram @ root))))
    return Rewhitened(better.rewhitened(np.eye(better.order), norms.median), norms)
