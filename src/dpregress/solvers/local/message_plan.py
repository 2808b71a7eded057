r"""The question that every user of a study is asked, chosen from public facts before anybody answers.

A message is the centred cross moment ``s x~ (y - c) / h`` of one user's row, y in ``[c - h, c + h]``. Three kinds
of messages are compared, each at several radii R, and the one with the smallest predicted variance of the coefficients
is chosen (docs/methods/local.md):

* a unit vector at pure epsilon;
* the cross moment with Gaussian noise for the whole budget;
* the joint second moment of ``(x~, u y~)`` at ``u = R``: its cross moment has the same noise as the previous
  one, so the private Gram matrix costs only a longer message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from dpregress.accounting import ApproxDP, Event, PureDP, integer_gaussian_promise
from dpregress.accounting.caps import LARGEST_EPSILON, LARGEST_ORDER, best_cap
from dpregress.coordinates import Matrix, ResponseScale, Vector, Weighting, WhitenedSpace
from dpregress.errors import InvalidInput, check_choice
from dpregress.models import GaussianFamily
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import positive
from dpregress.queries import ClippedScore, RowQuery, SecondMoment
from dpregress.solvers.shared.budget import has_prior
from dpregress.solvers.shared.surrogate import surrogate_rows

MessageRecipe = Literal["auto", "unit-vector", "gaussian", "joint"]
#: Quantiles of the public rows' norms that are candidates for the radius.
_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
#: Factors of slopes' coordinates beside the constant: the smaller, the better the mean is told, and the worse slopes.
#: At the last one users are asked for the mean alone. Its square stays above what solvers add to singular matrices.
_MEAN_ALONE = 2.0**-10
_TILTS = (1.0, 0.5, 0.25, _MEAN_ALONE)
#: The assumed variances of the mean response and of the response, in squares of h: bounds of numbers are wide.
_SIGNAL, _VARIANCE = 0.02, 0.01
#: The same for responses between 0 and 1.
_UNIT_SIGNAL, _UNIT_VARIANCE = 0.1, 0.5
#: The largest error of the mean that slopes are worth, as a share of the variance of the response.
_MEAN_SHARE = 0.01
#: Without public facts on x, slopes of which this share is predicted to be told are worth so many times as much.
_WELL, _WORTH = 0.5, 5.0
#: By how much an error of the mean, which is certain, counts more than slopes, which are assumed.
_CERTAIN = 5.0
#: The assumed squared distance of the mean from the middle of the bounds, in squares of h.
_OFFSET = 0.1
#: The assumed second moment of columns whose bounds are mapped to -1 and 1.
_SPREAD = 0.1
#: The largest predicted squared error of the mean, in squares of h; beyond it a study is refused.
_TOLD = 0.25
#: Shares below which an eigenvalue or a variance counts as this share.
_UNSEEN = 1e-6
#: Squared bias for weights that halve the effective second moment, in squares of h (measured on real tables).
_BIAS = 0.15
#: Below this epsilon a unit vector's rounding slack would count.
_SMALLEST_EPSILON = 1e-2


@dataclass(frozen=True, eq=False)
class MessagePlan:
    """One question to every user, its price, and the predicted squared error of the whitened coefficients.

    Parameters
    ----------
    query : Query
        A :class:`~dpregress.queries.ClippedScore` or :class:`~dpregress.queries.SecondMoment`.
    spend : PureDP or GDP
        The cost of an answer to its user.
    predicted : float
        In squares of the response's half-range.
    mean_error : float
        The part of it that is due to the intercept.
    told : float
        The share of the assumed squares of slopes that is predicted to be told.
    collectors : int
        How many collectors add noise to shares of the sum, once each; 0 where every user adds noise to a message.
    """

    query: RowQuery[Any]
    spend: Event
    predicted: float
    mean_error: float = math.nan
    told: float = math.nan
    collectors: int = 0

    @property
    def space(self) -> WhitenedSpace:
        """The coordinates of the messages."""
        return self.query.space

    def noise(self, n: int) -> float:
        """The standard deviation of Gaussian noise in each entry of the mean over n users."""
        return self.query.noise(self.spend, 1) * math.sqrt(self.collectors or n) / n


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
    rated = _offered(facts, budget, response, recipe, collectors)
    offered = [each for each in rated if recipe in ("auto", _name(each))]
    if not offered:
        raise InvalidInput(_refusal(facts, budget, recipe))
    if has_prior(facts):
        return min(offered, key=lambda each: each.predicted)
    sure = [each for each in offered if each.mean_error <= _mean_limit(facts, each)]
    best = min(sure or offered, key=lambda each: each.predicted + (_CERTAIN - 1) * each.mean_error)
    if best.mean_error > _TOLD:
        raise InvalidInput(
            f"{facts.n} users at this budget do not tell even the mean of {facts.target!r}: ask about "
            f"{math.ceil(facts.n * best.mean_error / _TOLD)} users, or spend a larger epsilon"
        )
    return best


def public_rows(facts: PublicFacts, space: WhitenedSpace) -> Matrix:
    """Whitened public rows, or normal rows with the second moment that is known or assumed; unweighted."""
    if facts.public is not None and facts.public.rows is not None:
        return space.whiten(facts.public.rows)
    return normal_rows(space, assumed_gram(facts, space))


def normal_rows(space: WhitenedSpace, gram: Matrix) -> Matrix:
    """Normal rows with this second moment, unweighted."""
    rows = surrogate_rows(replace(space, response=None), None, gram)
    return np.asarray(rows.x / rows.weight[:, None])


def assumed_gram(facts: PublicFacts, space: WhitenedSpace) -> Matrix:
    """The second moment of rows before anything is released: that of public facts, else of columns within bounds."""
    start = facts.start.space
    moment = np.eye(start.order) if facts.public is not None else np.eye(start.order) * _SPREAD
    if start.intercept:
        moment[0, 0] = 1.0
    turn = space.whitening @ np.linalg.inv(start.whitening)
    return np.asarray(turn @ moment @ turn.T)


def asks_for_the_mean(facts: PublicFacts, query: RowQuery[Any]) -> bool:
    """Whether a message plan leaves nothing from which slopes could be computed.

    Either no Gram matrix is known or asked, or slopes count so little in the messages that their noise is about a
    million times that of a plan that asks for them.
    """
    if facts.public is None and not isinstance(query, SecondMoment):
        return True
    start, space = facts.start.space, query.space
    if not space.intercept or space.order == 1:
        return False
    tilt = float(np.abs(np.diag(space.whitening @ np.linalg.inv(start.whitening))[1:]).max())
    return tilt < math.sqrt(_MEAN_ALONE * _TILTS[-2])


def equation_weights(space: WhitenedSpace, rows: Matrix) -> Vector:
    """What a row counts in the released equations: s where y is left as it is, s^2 where it is weighted too."""
    weight = space.weights(rows)
    return weight if space.weighting is Weighting.FEATURES else np.asarray(weight**2)


def _offered(
    facts: PublicFacts, budget: ApproxDP, response: ResponseScale, recipe: MessageRecipe, collectors: int
) -> Iterator[MessagePlan]:
    start = replace(facts.start.space, response=response)
    tilts = _TILTS if start.intercept and not has_prior(facts) else (1.0,)
    for tilt in tilts:
        turn = np.diag([1.0] * start.intercept + [tilt] * len(start.features))
        plain = start.rewhitened(turn, 1.0)
        rows = public_rows(facts, plain)
        norms = positive(np.linalg.norm(rows, axis=1))
        radii = sorted({float(np.quantile(norms, level)) for level in _LEVELS})
        if facts.public is None:
            radii = [math.sqrt(1 + tilt**2 * (start.radius**2 - 1)) if start.intercept else start.radius]
        for radius in radii:
            space = plain.rewhitened(np.eye(plain.order), radius)
            alone = recipe == "auto" and start.intercept and tilt == min(tilts)
            if not collectors and (facts.public is not None or alone):
                yield from _cross_moments(facts, budget, space, rows)
            joint = SecondMoment(space.with_response(replace(response, cross=radius)))
            gaussian = integer_gaussian_promise(budget, joint.size)
            if gaussian is not None:
                # its entries beside the diagonal have half of the variance, and hold the cross moment u = R times
                asked = MessagePlan(joint, gaussian, math.nan, collectors=collectors)
                yield _rated(facts, asked, rows, asked.noise(facts.n) ** 2 / (2 * radius**2))


def _cross_moments(facts: PublicFacts, budget: ApproxDP, space: WhitenedSpace, rows: Matrix) -> Iterator[MessagePlan]:
    features = replace(space, weighting=Weighting.FEATURES)
    cross = ClippedScore(features, GaussianFamily, np.zeros(space.order), 1.0)
    if _SMALLEST_EPSILON <= budget.epsilon0 <= LARGEST_EPSILON and space.order <= LARGEST_ORDER:
        unit = space.radius / best_cap(budget.epsilon0, space.order).gain
        asked = MessagePlan(cross, PureDP(budget.epsilon0), math.nan)
        yield _rated(facts, asked, rows, unit**2 / space.order / facts.n)
    gaussian = integer_gaussian_promise(budget, cross.size)
    if gaussian is not None:
        asked = MessagePlan(cross, gaussian, math.nan)
        yield _rated(facts, asked, rows, asked.noise(facts.n) ** 2)


def _rated(facts: PublicFacts, asked: MessagePlan, rows: Matrix, noise: float) -> MessagePlan:
    """A plan with its predictions; ``noise`` is the variance of each coordinate of the mean cross moment."""
    query = asked.query
    along = int(query.space.intercept)
    weights = equation_weights(query.space, rows)
    gram = (rows * weights[:, None]).T @ rows / len(rows)
    values = np.linalg.eigvalsh(gram[along:, along:])
    mean_error = noise / float(gram[0, 0]) ** 2 if along else 0.0
    slopes = rows[:, along:]
    plain, squared = (float(np.mean(power * np.einsum("ij,ij->i", slopes, slopes))) for power in (1.0, weights**2))
    lost = 1 - float(values.sum()) ** 2 / (plain * squared)

    unknown, doubt, fitted = _signal(facts, query)
    mean_error = mean_error * doubt / (mean_error + doubt)
    if asks_for_the_mean(facts, query):
        return replace(asked, predicted=mean_error + unknown, mean_error=mean_error, told=0.0)
    each = unknown / len(values)
    scale = float(values.mean())
    error = noise / np.maximum(values, _UNSEEN * scale) + fitted * gram_error(facts, asked, scale)
    left = float(np.sum(each * error / (each + error)))
    told = 1 - left / unknown
    predicted = mean_error + left + _BIAS * (lost * told) ** 2
    return replace(asked, predicted=predicted, mean_error=mean_error, told=told)


def _signal(facts: PublicFacts, query: RowQuery[Any]) -> tuple[float, float, float]:
    """What slopes may explain beyond public facts, the variance of the mean given them, and the square of a response.

    All in squares of h.
    """
    if not has_prior(facts):
        signal = _assumed(query)[0]
        return signal, 1.0, signal + _OFFSET
    labels, response = facts.trusted_labels, query.space.response
    assert labels is not None
    assert response is not None
    scaled = (labels - response.centre) / response.scale
    error = max(float(np.var(scaled)) / len(labels), _UNSEEN)
    return error * (query.space.order - query.space.intercept), error, float(np.mean(scaled**2))


def _assumed(query: RowQuery[Any]) -> tuple[float, float]:
    """Variances of the mean response and of the response that are assumed without labels, in squares of h."""
    response = query.space.response
    assert response is not None
    unit = (response.centre, response.scale) == (0.5, 0.5)
    return (_UNIT_SIGNAL, _UNIT_VARIANCE) if unit else (_SIGNAL, _VARIANCE)


def _mean_limit(facts: PublicFacts, message_plan: MessagePlan) -> float:
    """The largest squared error of the mean that the slopes of a plan are worth, in squares of h."""
    limit = _MEAN_SHARE * _assumed(message_plan.query)[1]
    return limit * _WORTH if facts.public is None and message_plan.told > _WELL else limit


def gram_error(facts: PublicFacts, asked: MessagePlan, scale: float) -> float:
    """Variance of a relative entry of the Gram matrix: ``1/m`` of public rows, less where users send one as well.

    Parameters
    ----------
    facts : PublicFacts
    asked : MessagePlan
    scale : float
        Mean eigenvalue of the weighted Gram matrix.
    """
    rows = 0.0 if facts.public is None else float(facts.public.n)
    if isinstance(asked.query, SecondMoment):
        rows += 1 / (1 / facts.n + asked.noise(facts.n) ** 2 / (2 * scale**2))
    return 1 / rows


def _name(message_plan: MessagePlan) -> str:
    if isinstance(message_plan.spend, PureDP):
        return "unit-vector"
    return "joint" if isinstance(message_plan.query, SecondMoment) else "gaussian"


def _refusal(facts: PublicFacts, budget: ApproxDP, recipe: str) -> str:
    if facts.public is None and recipe in ("unit-vector", "gaussian"):
        return f'recipe="{recipe}" takes the Gram matrix from public rows: give public=, or recipe="joint"'
    if recipe != "unit-vector":
        return (
            f"delta = {budget.delta0:g} does not cover what integer messages add to it at epsilon = "
            f"{budget.epsilon0:g}: spend a smaller epsilon, or a larger delta"
        )
    return (
        f"unit vectors take an epsilon from {_SMALLEST_EPSILON:g} to {LARGEST_EPSILON:g} and up to {LARGEST_ORDER} "
        f'columns, not {budget.epsilon0:g} and {facts.start.space.order}: use recipe="gaussian"'
    )
