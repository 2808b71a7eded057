"""What both kinds of score steps do before they look at a response: coordinates, radius and one private Gram matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dpregress.accounting import GDP
from dpregress.coordinates import WhitenedSpace
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms
from dpregress.queries import Ask, Counted, SecondMoment, noise_in_mean
from dpregress.solvers.shared.budget import joint_budget
from dpregress.solvers.shared.gram import MixedGram, entrywise_mixed_gram
from dpregress.solvers.shared.radius_plan import CLEAR_GRAM, CLIP, plan_unlabelled
from dpregress.solvers.shared.whitening import REFINE, Rewhitened, refined_in_turn, refinements

#: Share of mu^2 of the Gram matrix.
_GRAM = 0.15
#: The radius of a noisy Gram matrix beside scores of whole rows, in times the usual one.
_SHORTER = 0.7


class ReleasedDesign(NamedTuple):
    """A space, the Gram matrix of the usable rows in it, and how many there are."""

    space: WhitenedSpace
    gram: MixedGram
    n: int


def design_shares(facts: PublicFacts) -> dict[str, float]:
    """The shares of the budget that :func:`released_design` spends."""
    return {**dict.fromkeys(refinements(facts), REFINE), "gram": _GRAM}


def released_design(
    ask: Ask,
    facts: PublicFacts,
    spend: Mapping[str, GDP],
    scores: Sequence[GDP],
    norms: RowNorms | None = None,
    clip: float = CLIP,
    *,
    whole: bool = False,
) -> ReleasedDesign:
    """Release the design.

    Parameters
    ----------
    ask : Ask
    facts : PublicFacts
    spend : mapping of str to GDP
        With the keys of :func:`design_shares`.
    scores : sequence of GDP
        What the scores will cost: the radius is weighed against their noise.
    norms : RowNorms, optional
        Of new rows in the first space. Default: by the public rows.
    clip : float
        The expected clip of residuals, in units of their standard deviation.
    whole : bool, default=False
        Whether scores are of whole rows, so that nothing but the Gram matrix rests on the radius. It is shorter then
        where this matrix is noisy.
    """
    space = facts.start.space
    rounds = refinements(facts)
    norms = RowNorms.of(facts.public, space, refined=bool(rounds)) if norms is None else norms
    better = refined_in_turn(ask, Rewhitened(space, norms), [spend[turn] for turn in rounds], facts.schema)
    space, norms = better.space, better.norms
    plan = plan_unlabelled(norms, space.order, n=facts.n, scores=joint_budget(scores), gram=spend["gram"], clip=clip)
    radius = plan.radius
    if whole:
        noise = space.order * noise_in_mean(SecondMoment.largest_change(radius), spend["gram"], facts.n) ** 2
        radius *= min(max((CLEAR_GRAM / max(noise, 1e-300)) ** 0.25, _SHORTER), 1.0)
    space = better.truncated(radius)
    second = ask(Counted(SecondMoment(space.with_response(None))), spend["gram"])
    known = facts.known_rows
    return ReleasedDesign(space, entrywise_mixed_gram(second, None if known is None else space.whiten(known)), second.n)
