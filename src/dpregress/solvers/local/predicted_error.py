"""The predicted error of the fits to what users may be asked, by public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpregress.public.facts import PublicFacts
from dpregress.queries import CrossMoment, RowQuery, SecondMoment
from dpregress.solvers.local.message_plan import MessagePlan, WeightedRows, asks_for_the_mean, is_share, products_factor
from dpregress.solvers.shared.budget import has_prior

#: The assumed variances of the mean response and of the response, in squares of h: bounds of numbers are wide.
_SIGNAL, _VARIANCE = 0.02, 0.01
#: The same for responses between 0 and 1.
_UNIT_SIGNAL, _UNIT_VARIANCE = 0.1, 0.5
#: The assumed squared distance of the mean from the middle of the bounds, in squares of h.
_OFFSET = 0.1
#: The assumed squared distance between the means of public and private rows, in variances of a column.
SHIFT = 0.1
#: Responses are assumed within this distance of their centre, in half-ranges.
_ACROSS = 0.3
#: Shares below which an eigenvalue or a variance counts as this share.
_UNSEEN = 1e-6
#: Squared bias for weights that halve the effective second moment, in squares of h (measured on real tables).
_BIAS = 0.15


def rated(facts: PublicFacts, asked: MessagePlan, rows: WeightedRows) -> MessagePlan:
    """The plan with the predicted error of its fit: of the mean, and of slopes by noise, moments and weights.

    Parameters
    ----------
    facts : PublicFacts
    asked : MessagePlan
    rows : WeightedRows
        That stand for those of the users.
    """
    known, noise = _known(facts, asked.query), cross_variance(asked, facts.n)
    mean_error = noise / rows.kept**2 if asked.space.intercept else 0.0
    mean_error = mean_error * known.doubt / (mean_error + known.doubt)
    if asks_for_the_mean(facts, asked.query):
        return replace(asked, predicted=mean_error + known.signal, mean_error=mean_error, told=0.0)
    each, scale = known.signal / len(rows.values), float(rows.values.mean())
    noise += known.offset * _mean_variance(facts, asked, scale)
    error = noise / np.maximum(rows.values, _UNSEEN * scale) + known.fitted * gram_error(facts, asked, scale)
    left = float(np.sum(each * error / (each + error)))
    told = 1 - left / known.signal
    predicted = mean_error + left + _BIAS * (rows.lost * told) ** 2
    return replace(asked, predicted=predicted, mean_error=mean_error, told=told)


def cross_variance(asked: MessagePlan, n: int) -> float:
    """The variance of an entry of the mean cross moment, if responses vary as is assumed."""
    entry = asked.entry_variance(n)
    if isinstance(
        asked.query, SecondMoment
    ):  # entries beside the diagonal have half of it, and hold u times the moment
        assert asked.space.response is not None
        return entry / (2 * asked.space.response.cross**2)
    if not isinstance(asked.query, CrossMoment) or not asked.query.parts.nodes:
        return entry
    parts = asked.query.parts
    apart = 2 / (parts.nodes - 1)
    across = (2 * _ACROSS / apart + 2) * (_ACROSS + apart / 2) ** 2 / 3 / parts.hat**2
    return entry * across / (across + 1)


@dataclass(frozen=True)
class _Known:
    """What is assumed of responses, or what labels tell of them, in squares of h.

    Attributes
    ----------
    signal : float
        What slopes may explain beyond public facts.
    doubt : float
        The variance of the mean, given public facts.
    fitted : float
        What an error of the Gram matrix falsifies.
    offset : float
        The squared distance of the mean from the middle of the bounds.
    """

    signal: float
    doubt: float
    fitted: float
    offset: float


def _known(facts: PublicFacts, query: RowQuery[Any]) -> _Known:
    if not has_prior(facts):
        signal = _UNIT_SIGNAL if is_share(query.space) else _SIGNAL
        return _Known(signal, 1.0, signal, _OFFSET)
    labels, response = facts.trusted_labels, query.space.response
    assert labels is not None
    assert response is not None
    scaled = (labels - response.centre) / response.scale
    error = max(float(np.var(scaled)) / len(labels), _UNSEEN)
    slopes = query.space.order - query.space.intercept
    return _Known(error * slopes, error, float(np.var(scaled)), float(np.mean(scaled)) ** 2)


def assumed_variance(query: RowQuery[Any]) -> float:
    """Of responses, in squares of h, without labels."""
    return _UNIT_VARIANCE if is_share(query.space) else _VARIANCE


def gram_error(facts: PublicFacts, asked: MessagePlan, scale: float) -> float:
    """Variance of a relative entry of the Gram matrix: ``1/m`` of public rows, less where users tell one as well.

    Parameters
    ----------
    facts : PublicFacts
    asked : MessagePlan
    scale : float
        Mean eigenvalue of the weighted Gram matrix.
    """
    rows, factor = 0.0 if facts.public is None else float(facts.public.n), products_factor(asked.query)
    if factor:
        rows += 1 / (1 / facts.n + asked.entry_variance(facts.n) / (2 * (factor * scale) ** 2))
    return 1 / rows if rows else math.inf


def _mean_variance(facts: PublicFacts, asked: MessagePlan, scale: float) -> float:
    """Of an entry of the mean of the rows: by public rows of a population that may be shifted, and by users."""
    known, told = 0.0, 2 * products_factor(asked.query) ** 2
    if facts.public is not None:
        known = 1 / (scale / facts.public.n + SHIFT * scale / len(facts.start.space.features))
    if isinstance(asked.query, CrossMoment):
        parts = asked.query.parts
        told += parts.first**2 + (parts.hat**2 / parts.nodes if parts.nodes else 0.0)
    return 1 / (known + (1 / (scale / facts.n + asked.entry_variance(facts.n) / told) if told else 0.0))
