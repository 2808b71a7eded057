"""The choice of the question that users are asked, before anybody answers."""

from __future__ import annotations

import math
from typing import get_args

from dpregress.accounting import ApproxDP
from dpregress.accounting.caps import LARGEST_EPSILON, LARGEST_ORDER
from dpregress.coordinates import ResponseScale
from dpregress.errors import InvalidInput, check_choice
from dpregress.public.facts import PublicFacts
from dpregress.solvers.local.message_plan import MessagePlan, products_factor
from dpregress.solvers.local.messages import SMALLEST_EPSILON, MessageRecipe, offered_messages
from dpregress.solvers.local.predicted_error import assumed_variance, rated
from dpregress.solvers.shared.budget import has_prior

#: The largest error of the mean that slopes are worth, as a share of the variance of the response.
_MEAN_SHARE = 0.01
#: Slopes of which less is predicted to be told are not asked: with public rows, and without.
_LEAST_TOLD, _LEAST_ALONE = 0.4, 0.6
#: Without public facts on x, the error of the mean that slopes are worth is so many times as large.
_WORTH = 5.0
#: Products of rows are asked beside public rows if that lowers the predicted error by more than this factor.
_PRODUCTS = 1.1
#: By how much an error of the mean, which is certain, counts more than slopes, which are assumed.
_CERTAIN = 20.0
#: The largest predicted squared error of the mean, in squares of h; beyond it, or the assumed variance of responses, a
#: study is refused.
_TOLD = 0.25


def plan_messages(
    facts: PublicFacts,
    budget: ApproxDP,
    bounds: tuple[float, float],
    recipe: MessageRecipe = "auto",
    *,
    collectors: int = 0,
) -> MessagePlan:
    """The message plan with the smallest predicted variance.

    Parameters
    ----------
    facts : PublicFacts
    budget : ApproxDP
        Of one user.
    bounds : tuple of float
        Public bounds of the response.
    recipe : {"auto", "unit-vector", "gaussian", "joint"}
    collectors : int
        How many collectors add noise to shares of the sum; 0 where every user adds noise to a message.

    Raises
    ------
    InvalidInput
        If the bounds are not valid, these facts do not allow the recipe, or no column of the public rows varies.
    """
    check_choice("recipe", recipe, get_args(MessageRecipe))
    lower, upper = bounds
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise InvalidInput(f"bounds of the response must be finite and in order, not {lower}, {upper}")
    rows = None if facts.public is None else facts.public.rows
    if rows is not None and not (rows - rows[0] if facts.start.space.intercept else rows).any():
        raise InvalidInput("no column of the public rows varies: give other public rows, or leave public= out")
    response = ResponseScale(facts.target, (lower + upper) / 2, (upper - lower) / 2, bound=1.0)
    messages = offered_messages(facts, budget, response, recipe, collectors)
    offered = [rated(facts, each.plan, each.rows) for each in messages]
    if not offered:
        raise InvalidInput(_refusal(facts, budget, recipe))
    if has_prior(facts):
        return min(offered, key=lambda each: _worth(facts, each))
    least = _LEAST_ALONE if facts.public is None else _LEAST_TOLD
    telling = [each for each in offered if each.told == 0 or each.told >= least]
    sure = [each for each in telling if each.mean_error <= _mean_limit(facts, each)]
    best = min(sure or telling or offered, key=lambda each: _worth(facts, each) + (_CERTAIN - 1) * each.mean_error)
    most = min(_TOLD, assumed_variance(best.query))
    if best.mean_error > most:
        raise InvalidInput(
            f"at this budget n_samples={facts.n} users do not tell even the mean of {facts.target!r}: ask about "
            f"{math.ceil(facts.n * best.mean_error / most)} users, or spend a larger epsilon"
        )
    return best


def _worth(facts: PublicFacts, message_plan: MessagePlan) -> float:
    """The predicted error, a little more if users tell what public rows tell too.

    Without products of rows it is known how far dishonest users can move the fit.
    """
    beside = facts.public is not None and products_factor(message_plan.query) > 0
    return message_plan.predicted * (_PRODUCTS if beside else 1.0)


def _mean_limit(facts: PublicFacts, message_plan: MessagePlan) -> float:
    """The largest squared error of the mean that the slopes of a plan are worth, in squares of h."""
    limit = _MEAN_SHARE * assumed_variance(message_plan.query)
    return limit * _WORTH if facts.public is None and message_plan.told > 0 else limit


def _refusal(facts: PublicFacts, budget: ApproxDP, recipe: str) -> str:
    if facts.public is None and recipe == "gaussian":
        return 'recipe="gaussian" takes the Gram matrix from public rows: give public=, or another recipe'
    if recipe != "unit-vector":
        return (
            f"delta = {budget.delta0:g} does not cover what integer messages add to it at epsilon = "
            f"{budget.epsilon0:g}: spend a smaller epsilon, or a larger delta"
        )
    return (
        f"unit vectors take an epsilon from {SMALLEST_EPSILON:g} to {LARGEST_EPSILON:g} and up to {LARGEST_ORDER} "
        f'columns, not {budget.epsilon0:g} and {facts.start.space.order}: use recipe="gaussian"'
    )
