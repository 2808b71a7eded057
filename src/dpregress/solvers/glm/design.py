"""What both kinds of score steps do before they look at a response: coordinates, radius and one private Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import WhitenedSpace
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms
from dpregress.queries import Ask, Counted, SecondMoment, noise_in_mean
from dpregress.solvers.linear.residual_plan import MixedGram, mixed_gram, plan_unlabelled
from dpregress.solvers.shared.whitening import refined

#: Shares of mu^2: of each private second moment to whiten by, and of the Gram matrix.
_REFINE, _GRAM = 0.10, 0.15
#: Spectral norms of their noise with which one tells nothing, and with which others after it do not.
_BLIND, _DIM = 1.0, 0.3


class Design(NamedTuple):
    """A space, the Gram matrix of the usable rows in it, and how many there are."""

    space: WhitenedSpace
    gram: MixedGram
    n: int


def design_shares(facts: PublicFacts, budget: GDP) -> dict[str, float]:
    """The shares of the budget that :func:`released_design` spends."""
    return {**dict.fromkeys(_refinements(facts, budget), _REFINE), "gram": _GRAM}


def released_design(ask: Ask, facts: PublicFacts, spend: Mapping[str, GDP], scores: Sequence[GDP]) -> Design:
    """Release the design.

    Parameters
    ----------
    ask : Ask
    facts : PublicFacts
    spend : mapping of str to GDP
        With the keys of :func:`design_shares`.
    scores : sequence of GDP
        What the scores will cost: the radius is weighed against their noise.
    """
    space = facts.start.space
    rounds = [name for name in spend if name.startswith("refine")]
    norms = RowNorms.of(facts.public, space, refined=bool(rounds))
    for turn in rounds:
        better = refined(ask, space, spend[turn])
        space, norms = better.space, better.norms
    together = GDP(math.hypot(*(each.mu for each in scores)))
    plan = plan_unlabelled(norms, space.order, n=facts.n, scores=together, gram=spend["gram"])
    space = space.rewhitened(np.eye(space.order), plan.radius)
    second = ask(Counted(SecondMoment(space.with_response(None))), spend["gram"])
    known = None if facts.public is None or rounds else facts.public.rows
    return Design(space, mixed_gram(second, None if known is None else space.whiten(known)), second.n)


def _refinements(facts: PublicFacts, budget: GDP) -> tuple[str, ...]:
    """Private second moments to whiten by, as many as tell something.

    Bounds alone say so little of scales that each sees only so far.
    """
    if not facts.start.refinements:
        return ()
    space = facts.start.space
    change = SecondMoment.largest_change(space.radius) / math.sqrt(_REFINE)
    noise = math.sqrt(2 * space.order) * noise_in_mean(change, budget, facts.n)
    if noise > _BLIND:
        return ()
    rounds = 1 if noise > _DIM else facts.start.refinements
    return tuple(f"refine {turn}" for turn in range(rounds))
