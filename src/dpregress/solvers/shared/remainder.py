r"""The released remainder of a score: what row weights and clips took from it, and so from the coefficients.

A score with weights and clips has the root of the ordinary score only if the model holds. Elsewhere the root moves. The
remainder ``mean u`` at a fit b (:class:`~dpregress.queries.ScoreRemainder`) says by how much: with J the slope of the
ordinary score, coefficients that explain the clipped scores are moved by ``J^{-1} (mean u - expected)``, where what the
model itself expects is subtracted. Few rows have a remainder at all, so that its bound K, and with it the noise, can be
small. What K takes in turn is estimated by surrogate rows (:mod:`.truncation`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import sandwich
from dpregress.queries import (
    Ask,
    ClassRemainder,
    ClippedGradient,
    ClippedScore,
    MultinomialScore,
    ScoreRemainder,
    noise_in_mean,
    remainder_of,
)
from dpregress.solvers.shared.explained import Evidence
from dpregress.solvers.shared.truncation import LIKELY, Truncation

#: Its share of mu^2.
_SHARE = 0.05
#: The standard deviation of what a model misses of the mean response, in those of the residuals: a convention for what
#: is reported.
MISSED = 0.1
#: So many standard deviations of a mean square stand out.
_LIMIT = 2.0
#: The noise of the second bound where linear models have far rows, in standard deviations of a mean score's sampling
#: error; and that bound at least, in times the first.
_WIDER, _LEAST_WIDER = 6.0, 2.0
#: A wider remainder beyond so many deviations of its noise says how the remainder grows with the bound; and how many
#: times as wide a bound might be that includes all of it.
_CLEAR, _FURTHER = 2.0, 4.0
#: What lies beyond the bound is at least this share of what such a model loses there.
_LEAST_BEYOND = 0.2


#: Scores that have a remainder, and what asks for it.
Scored = ClippedScore | ClippedGradient | MultinomialScore
Asked = ScoreRemainder | ClassRemainder


def _sure(order: int) -> float:
    """A mean of ``order`` squares of standard normal numbers that stands out."""
    return 1 + _LIMIT * math.sqrt(2 / order)


def remainder_share(space: WhitenedSpace) -> float:
    """The share of mu^2; 0 without features."""
    return _SHARE if space.order > space.intercept else 0.0


@dataclass(frozen=True, eq=False)
class Untruncated:
    """The ordinary score, without weights and clips, by the model.

    Attributes
    ----------
    slope : ndarray of shape (p, p)
        J.
    expected : callable
        What weights and clips take from it at the fit where these coefficients are the true ones.
    """

    slope: Matrix
    expected: Callable[[Vector], Vector]


class Move(NamedTuple):
    """A move of coefficients, and its covariance due to noise and to what it is shrunk by."""

    value: Vector
    covariance: Matrix

    @classmethod
    def none(cls, order: int) -> Move:
        """Coefficients that stay as they are."""
        return cls(np.zeros(order), np.zeros((order, order)))


class Answer(NamedTuple):
    """A released remainder.

    Attributes
    ----------
    query : ScoreRemainder or ClassRemainder
    value : ndarray of shape (p,)
    variance : float
        Of the noise of an entry.
    lost : ndarray of shape (p, p)
        The second moment of what is beyond the bound, by surrogate rows.
    doubted : ndarray of shape (p, p)
        The same of what may be there.
    expected : ndarray of shape (p, p)
        The second moment of all that weights and clips take from scores, by surrogate rows.
    likely : float
        The mean square to which the value is compared, for intervals.
    n : int
        Private rows.
    """

    query: Asked
    value: Vector
    variance: float
    lost: Matrix
    doubted: Matrix
    expected: Matrix
    likely: float
    n: int


@dataclass(frozen=True, eq=False)
class Remainder:
    r"""A released remainder, which is followed as far as it stands out from its noise.

    A model that misses a fifth of the residuals' standard deviation has a remainder ``N(0, T)``, with T a twenty-fifth
    of the second moment of what surrogate rows lose; T is scaled down to the size of the remainder itself (empirical
    Bayes). The remainder is believed with the gain ``G = T (T + s^2 I)^{-1}``. What both cannot explain shows that the
    model is worse, or that surrogate rows are unlike the private ones. It is not followed, and remains a doubt.

    For intervals, a size that exceeds T is added to it in all directions, and the move itself is a doubt as well: what
    the bound took may be as much as what it left.

    Where far rows were counted, or a remainder stands out, surrogate rows need not reach as far as private ones, and T
    says nothing. Predictions do not follow the remainder then. Intervals follow it where it stands out from its noise,
    and along its direction a second one with a wider bound. What the wider bound adds is a doubt, since a still wider
    one may add as much again.

    Attributes
    ----------
    answer : Answer
    score : Untruncated
    wide : Answer, optional
        With the wider bound.
    wide_score : Untruncated, optional
        The ordinary score where the last score was asked, if the wider remainder is that of the last score: the sum of
        both is the ordinary score then, of whatever model.
    """

    answer: Answer
    score: Untruncated
    wide: Answer | None = None
    wide_score: Untruncated | None = None

    def beyond(self, coef: Vector) -> Matrix:
        """The covariance of what the bound cuts off, as likely anywhere up to what such a model loses there.

        What may be lost is scaled as T is, and up to all of it if what the bound left is more than noise and T explain;
        but a share of what surrogate rows lose is doubted in any case.
        """
        found = self.answer.value - self.score.expected(coef)
        likely, sure = max(LIKELY**2 * self.answer.likely, 1e-300), _sure(len(coef))
        clear = float(found @ found) / len(found) - sure * self.answer.variance  # beyond what noise explains
        scale = min(self._size(found, sure) / likely, max(clear / likely, 1.0))
        doubted, least = min(scale * LIKELY**2, 1.0) * self.answer.doubted, _LEAST_BEYOND * LIKELY**2 * self.answer.lost
        larger = doubted if float(np.trace(doubted)) >= float(np.trace(least)) else least
        return sandwich(self.score.slope, larger) / 3

    def _size(self, found: Vector, sure: float) -> float:
        """The mean square of a remainder beyond its noise, of which ``sure`` times as much is possible."""
        return max(float(found @ found) / len(found) * sure - self.answer.variance, 0.0)

    def stands_out(self, coef: Vector, n: int) -> bool:
        """Whether neither noise nor the sampling error of n rows explains it at these coefficients."""
        found, order = self.answer.value - self.score.expected(coef), len(coef)
        chance = self.answer.variance + float(np.trace(self.answer.expected)) / (n * order)
        return float(found @ found) > order * _sure(order) * chance

    def move(self, coef: Vector, *, last: Evidence | None = None, penalty: Matrix | float = 0.0) -> Move:
        """From coefficients that explain the clipped scores to those that explain the ordinary one.

        Parameters
        ----------
        coef : ndarray of shape (p,)
        last : Evidence, optional
            The last score, for intervals: T is then scaled to an upper limit of the
            size, rather than to the likely size.
        penalty : ndarray of shape (p, p), optional
            The penalty per row of a penalised fit.
        """
        order, variance = len(coef), self.answer.variance
        found = self.answer.value - self.score.expected(coef)
        if self.wide is not None:
            return Move.none(order) if last is None else self._widened(coef, found, self.wide, last)
        sure, upper = _sure(order), last is not None
        size, expected = self._size(found, sure if upper else 1.0), self.answer.expected
        likely = LIKELY**2 * float(np.trace(expected)) / order
        usual = min(size / max(likely, 1e-300), 1.0) * LIKELY**2 * expected
        if upper:  # what T does not explain may have any direction
            usual = usual + max(size - likely, 0.0) * np.eye(order)
        known = np.linalg.inv(usual + variance * np.eye(order))
        gain = usual @ known
        whole, moved = np.linalg.solve(self.score.slope + penalty, np.column_stack([found, gain @ found])).T
        square = float(found @ known @ found) / order
        doubt = (1 - 1 / math.sqrt(square) if square > sure else 0.0) * (whole - moved)
        covariance = sandwich(self.score.slope, variance * gain) + np.outer(doubt, doubt)
        return Move(moved, covariance + np.outer(moved, moved) if upper else covariance)

    def _widened(self, coef: Vector, found: Vector, wide: Answer, last: Evidence) -> Move:
        """The first remainder, and along its direction, or that of the wider one, what the wider bound adds.

        Along this direction the model is wrong, and with it the changes of scores that were released elsewhere: there
        the last score and its remainder decide alone.
        """
        order = len(found)
        wider = wide.value - (self.wide_score or self.score).expected(coef)
        near, far = (float(each @ each) for each in (found, wider))
        if max(near / self.answer.variance, far / wide.variance) <= order * _sure(order):
            return Move.none(order)
        axis = found / math.sqrt(near) if near * wide.variance > far * self.answer.variance else wider / math.sqrt(far)
        first, second = float(axis @ found), float(axis @ wider)
        doubt = max(abs(second - first), self._beyond_wide(first, second, wide))
        variance, added = wide.variance + doubt**2 + self._few(first, second), second - first
        if self.wide_score is not None:
            variance, added = variance + last.variance, added + float(axis @ (last.value - last.change(coef)))
        moved = np.linalg.solve(self.score.slope, found + added * axis)
        return Move(
            np.asarray(moved),
            sandwich(self.score.slope, self.answer.variance * np.eye(order) + variance * np.outer(axis, axis)),
        )

    def _beyond_wide(self, first: float, second: float, wide: Answer) -> float:
        """What a bound several times as wide may add, if the remainder goes on growing with the bound as it did.

        Of a tail that is a power law, it grows by a power of the bound, at most in proportion.
        """
        if abs(second) <= _CLEAR * math.sqrt(wide.variance) or abs(second) <= abs(first):
            return 0.0
        power = math.log(max(abs(second) / self._seen(first), 1.0)) / math.log(
            wide.query.bound / self.answer.query.bound
        )
        return float(abs(second) * (_FURTHER ** min(power, 1.0) - 1))

    def _few(self, first: float, second: float) -> float:
        """The sampling variance of the remainder of far rows, which are at most as many as their remainder says."""
        return second**2 * self.answer.query.bound / (self._seen(first) * self.answer.n)

    def _seen(self, first: float) -> float:
        """The first remainder, or the noise in it if that is larger."""
        return max(abs(first), math.sqrt(self.answer.variance))


def ask_remainder(ask: Ask, score: Scored, truncation: Truncation, spend: GDP, n: int) -> Answer:
    """What weights and clips take from this score.

    Parameters
    ----------
    ask : Ask
    score : ClippedScore, ClippedGradient or MultinomialScore
    truncation : Truncation
        Of the same score, by surrogate rows.
    spend : GDP
    n : int
        Private rows.
    """
    return _answer(ask, score, truncation, truncation.best_bound(score.contribution(), spend, n), spend, n)


def ask_wider(
    ask: Ask,
    score: Scored,
    truncation: Truncation,
    spend: GDP,
    n: int,
    *,
    narrow: float,
    noise: float = _WIDER,
    most: float = math.inf,
) -> Answer:
    """The same with a bound that includes more far rows: as many as noise allows that leaves intervals of some use.

    Parameters
    ----------
    ask : Ask
    score, truncation, spend, n
        As in :func:`ask_remainder`.
    narrow : float
        The bound of the one that was asked.
    noise : float, default=6
        In standard deviations of a mean score's sampling error.
    most : float, optional
        The largest bound.
    """
    bound = noise * truncation.spread / math.sqrt(n) / noise_in_mean(ScoreRemainder.largest_change(1.0), spend, n)
    return _answer(ask, score, truncation, min(max(bound, _LEAST_WIDER * narrow), most), spend, n)


def _answer(ask: Ask, score: Scored, truncation: Truncation, bound: float, spend: GDP, n: int) -> Answer:
    query = remainder_of(score, bound)
    variance = query.noise(spend, n) ** 2
    value, lost, doubted = ask(query, spend).mean, truncation.lost(bound), truncation.doubted
    beyond = lost if doubted is truncation else doubted.lost(bound)
    likely = float(np.trace(doubted.likely(bound))) / len(lost)
    return Answer(query, value, variance, lost, beyond, truncation.whole, likely, n)
