r"""What a user can be asked in one message, and what an answer costs.

A message is about one user's row ``s x~``, shrunk into a ball of radius R, and the response ``y~ = (y - c) / h``, y in
``[c - h, c + h]``:

* a unit vector at pure epsilon, whose noise is the same in every entry, however many there are: of the cross moment
  ``s x~ y~``, with the mean ``s x~``, hat functions of the response, and products ``s^2 x~ x~'`` in any combination;
* the cross moment with Gaussian noise for the whole budget;
* the joint second moment of ``(s x~, u s y~)`` at ``u = R`` with Gaussian noise: its cross moment has the noise of the
  cross moment alone.

Each is offered at several radii, and with slopes that count less beside the constant (docs/methods/local.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dpregress.accounting import ApproxDP, PureDP, integer_gaussian_promise
from dpregress.accounting.caps import LARGEST_EPSILON, LARGEST_ORDER
from dpregress.coordinates import ResponseScale, Weighting, WhitenedSpace, svec
from dpregress.models import GaussianFamily
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import positive
from dpregress.queries import ClippedScore, CrossMoment, RowQuery, SecondMoment
from dpregress.releases import MessageParts
from dpregress.solvers.local.message_plan import MEAN_ALONE, MessagePlan, WeightedRows, is_share, public_rows
from dpregress.solvers.shared.budget import has_prior

MessageRecipe = Literal["auto", "unit-vector", "gaussian", "joint"]
#: Quantiles of the public rows' norms that are candidates for the radius.
_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
#: Factors of slopes' coordinates beside the constant: the smaller, the better the mean is told, and the worse slopes.
_TILTS = (1.0, 0.5, 0.25)
#: What the mean of the rows may count beside the cross moment, and beside hats.
_MEANS, _MEAN_BESIDE_HATS = (0.25, 0.5, 1.0), 0.5
#: What hats of the response count beside rows, and where the mean is asked alone.
_HAT, _HAT_ALONE = 0.5, 1.0
#: The most nodes of hats, and the fewest.
_NODES, _FEWEST_NODES = 17, 5
#: Below this epsilon a unit vector's rounding slack would count.
SMALLEST_EPSILON = 1e-2


@dataclass(frozen=True, eq=False)
class OfferedMessage:
    """A message plan that is not rated yet, and rows that stand for those of the users."""

    plan: MessagePlan
    rows: WeightedRows


def offered_messages(
    facts: PublicFacts, budget: ApproxDP, response: ResponseScale, recipe: MessageRecipe, collectors: int
) -> Iterator[OfferedMessage]:
    """All that a recipe may ask within the budget.

    Parameters
    ----------
    facts : PublicFacts
    budget : ApproxDP
        Of one user.
    response : ResponseScale
    recipe : {"auto", "unit-vector", "gaussian", "joint"}
    collectors : int
        How many collectors add noise to shares of the sum: they ask for joint second moments.
    """
    start = replace(facts.start.space, response=response)
    tilts = _TILTS if start.intercept and not has_prior(facts) else (1.0,)
    alone = (MEAN_ALONE,) if len(tilts) > 1 and recipe == "auto" else ()
    for tilt in (*tilts, *alone):
        turn = np.diag([1.0] * start.intercept + [tilt] * len(start.features))
        plain = start.rewhitened(turn, 1.0)
        rows = public_rows(facts, plain)
        norms = positive(np.linalg.norm(rows, axis=1))
        for radius in sorted({float(np.quantile(norms, level)) for level in _LEVELS}):
            space = plain.rewhitened(np.eye(plain.order), radius)
            weighted = {each: WeightedRows(rows, replace(space, weighting=each)) for each in Weighting}
            if not collectors and recipe in ("auto", "unit-vector"):
                for query in _unit_vectors(facts, budget, space, tilt == MEAN_ALONE):
                    yield OfferedMessage(
                        MessagePlan(query, PureDP(budget.epsilon0), math.nan), weighted[query.space.weighting]
                    )
            asked: list[RowQuery[Any]] = []
            if not collectors and facts.public is not None and recipe in ("auto", "gaussian"):
                asked.append(_plain(space))
            if recipe in ("auto", "joint"):
                asked.append(SecondMoment(space.with_response(replace(response, cross=radius))))
            for query in asked:
                gaussian = integer_gaussian_promise(budget, query.size)
                if gaussian is not None:
                    plan = MessagePlan(query, gaussian, math.nan, collectors=collectors)
                    yield OfferedMessage(plan, weighted[query.space.weighting])


def _plain(space: WhitenedSpace) -> ClippedScore:
    """The cross moment alone, of rows of which only x is shrunk."""
    return ClippedScore(_unweighted(space), GaussianFamily, np.zeros(space.order), 1.0)


def _unweighted(space: WhitenedSpace) -> WhitenedSpace:
    return replace(space, weighting=Weighting.FEATURES)


def _unit_vectors(facts: PublicFacts, budget: ApproxDP, space: WhitenedSpace, alone: bool) -> Iterator[RowQuery[Any]]:
    """What unit vectors can tell; the cross moment by itself only where nothing else fits into a message."""
    if not SMALLEST_EPSILON <= budget.epsilon0 <= LARGEST_EPSILON:
        return
    found: list[RowQuery[Any]] = [] if alone else [CrossMoment(space, parts) for parts in _with_products(space)]
    if alone or facts.public is not None:
        features = _unweighted(space)
        told = [CrossMoment(features, parts) for parts in _without_products(space, alone)]
        fitting = [query for query in told if query.size <= LARGEST_ORDER]
        found += fitting or [_plain(space)]
    yield from (query for query in found if query.size <= LARGEST_ORDER)


def _without_products(space: WhitenedSpace, alone: bool) -> list[MessageParts]:
    """What is asked of rows and responses where the Gram matrix is known, or not needed."""
    if not space.intercept:  # the mean of the rows helps to tell slopes from an intercept
        return []
    found = [] if alone else [MessageParts(first=mean) for mean in _MEANS]
    nodes = _nodes(space, LARGEST_ORDER // space.order - 2)
    if nodes and alone:
        found.append(MessageParts(hat=_HAT_ALONE, nodes=nodes))
    elif nodes:
        found.append(MessageParts(first=_MEAN_BESIDE_HATS, hat=_HAT, nodes=nodes))
    return found


def _with_products(space: WhitenedSpace) -> list[MessageParts]:
    """The same with the products of a row, which weigh about as much as the row."""
    gram, left = 2.0 ** math.floor(-math.log2(space.radius)), LARGEST_ORDER - svec.length(space.order) - space.order
    if gram > 1:
        return []
    nodes = _nodes(space, left // space.order)
    return [MessageParts(gram=gram), *([MessageParts(hat=_HAT, nodes=nodes, gram=gram)] if nodes else [])]


def _nodes(space: WhitenedSpace, most: int) -> int:
    """An odd number of nodes, so that one is in the middle; 0 where too few would fit, and for two classes."""
    return 0 if is_share(space) or most < _FEWEST_NODES else min(_NODES, most - 1 + most % 2)
