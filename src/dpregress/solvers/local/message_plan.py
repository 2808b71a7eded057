"""The question that every user of a study is asked, with its price, and the rows that stand for the users' rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpregress.accounting import Event, PureDP
from dpregress.accounting.caps import best_cap
from dpregress.coordinates import Matrix, Vector, Weighting, WhitenedSpace
from dpregress.display import ShownInShort
from dpregress.public.facts import PublicFacts
from dpregress.queries import CrossMoment, RowQuery, SecondMoment
from dpregress.solvers.shared.surrogate import surrogate_rows

#: The factor of slopes' coordinates at which users are asked for the mean alone, and the largest one that counts as it.
#: Its square stays above what solvers add to singular matrices.
MEAN_ALONE, _NEARLY_ALONE = 2.0**-10, 2.0**-6
#: The assumed variance of columns whose bounds are mapped to -1 and 1, and the distance of their means from 0.
_SPREAD, _ASIDE = 0.1, 0.4


@dataclass(frozen=True, eq=False, repr=False)
class MessagePlan(ShownInShort):
    """One question to every user, its price, and the predicted squared error of the whitened coefficients.

    Parameters
    ----------
    query : Query
        A :class:`~dpregress.queries.ClippedScore`, :class:`~dpregress.queries.CrossMoment` or
        :class:`~dpregress.queries.SecondMoment`.
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

    def _in_short(self) -> str:
        return f"{type(self.query).__name__} for {self.spend}"

    @property
    def space(self) -> WhitenedSpace:
        """The coordinates of the messages."""
        return self.query.space

    def entry_variance(self, n: int) -> float:
        """The variance of an entry of the mean message over n users, by everything that varies."""
        if isinstance(self.spend, PureDP):
            unit = self.query.contribution() / best_cap(self.spend.epsilon0, self.query.size).gain
            return unit**2 / self.query.size / n
        return self.noise(n) ** 2

    def noise(self, n: int) -> float:
        """The standard deviation of Gaussian noise in each entry of the mean over n users."""
        return self.query.noise(self.spend, 1) * math.sqrt(self.collectors or n) / n


def public_rows(facts: PublicFacts, space: WhitenedSpace) -> Matrix:
    """Whitened public rows, or normal rows with the second moment that is known or assumed; unweighted."""
    if facts.public is not None and facts.public.rows is not None:
        return space.whiten(facts.public.rows)
    return normal_rows(space, assumed_gram(facts, space))


def normal_rows(space: WhitenedSpace, gram: Matrix) -> Matrix:
    """Normal rows with this second moment, unweighted."""
    return surrogate_rows(replace(space, response=None, radius=math.inf), None, gram).x


def assumed_gram(facts: PublicFacts, space: WhitenedSpace) -> Matrix:
    """The second moment of rows before anything is released: that of public facts, else of columns within bounds."""
    start = facts.start.space
    moment = np.eye(start.order) if facts.public is not None else np.eye(start.order) * _SPREAD
    if start.intercept:
        mean = np.append(1.0, np.full(start.order - 1, 0.0 if facts.public is not None else _ASIDE))
        moment[0, 0] = 0.0
        moment += np.outer(mean, mean)
    turn = space.whitening @ np.linalg.inv(start.whitening)
    return np.asarray(turn @ moment @ turn.T)


def asks_for_the_mean(facts: PublicFacts, query: RowQuery[Any]) -> bool:
    """Whether a message plan leaves nothing from which slopes could be computed.

    Either no Gram matrix is known or asked, or slopes count so little in the messages that their noise is about a
    million times that of a plan that asks for them.
    """
    if facts.public is None and not products_factor(query):
        return True
    start, space = facts.start.space, query.space
    if not space.intercept or space.order == 1:
        return False
    return float(np.abs(np.diag(space.whitening @ np.linalg.inv(start.whitening))[1:]).max()) < _NEARLY_ALONE


def products_factor(query: RowQuery[Any]) -> float:
    """The factor of products of a row with itself in a message; 0 where users do not tell the Gram matrix."""
    return query.parts.gram if isinstance(query, CrossMoment) else float(isinstance(query, SecondMoment))


def equation_weights(space: WhitenedSpace, rows: Matrix) -> Vector:
    """What a row counts in the released equations: s where y is left as it is, s^2 where it is weighted too."""
    weight = space.weights(rows)
    return weight if space.weighting is Weighting.FEATURES else np.asarray(weight**2)


def weighted_gram(rows: Matrix, weights: Vector) -> Matrix:
    """``mean k x~ x~'``, of shape (p, p)."""
    return np.asarray((rows * weights[:, None]).T @ rows / len(rows))


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows that stand for those of the users in the coordinates of a message, of shape (m, p), without weights."""

    rows: Matrix
    space: WhitenedSpace

    @cached_property
    def weights(self) -> Vector:
        """By which the equations count them, of shape (m,)."""
        return equation_weights(self.space, self.rows)

    @cached_property
    def kept(self) -> float:
        """The mean weight."""
        return float(np.mean(self.weights))

    @cached_property
    def values(self) -> Vector:
        """Eigenvalues of the weighted second moment of slopes about their mean."""
        gram = weighted_gram(self.rows, self.weights)
        if not self.space.intercept:
            return np.asarray(np.linalg.eigvalsh(gram))
        return np.asarray(np.linalg.eigvalsh(gram[1:, 1:] - np.outer(gram[1:, 0], gram[0, 1:]) / gram[0, 0]))

    @cached_property
    def lost(self) -> float:
        """How uneven the weights are: the share of the effective second moment of slopes that they take."""
        slopes = self.rows[:, int(self.space.intercept) :]
        squares = np.einsum("ij,ij->i", slopes, slopes)
        plain, once, twice = (float(np.mean(weight * squares)) for weight in (1.0, self.weights, self.weights**2))
        return 1 - once**2 / (plain * twice)


def is_share(space: WhitenedSpace) -> bool:
    """Whether responses are between 0 and 1, as those of two classes are."""
    assert space.response is not None
    return (space.response.centre, space.response.scale) == (0.5, 0.5)
