r"""Rows far beyond the radius: they hardly count in a fit, but it predicts for them.

Where a response does not follow its slopes to the far rows, such as one that saturates, their predictions are wrong by
as much as they are far out, and a few rows make a fit worse than the mean for everybody. Noise forbids a radius that
includes them. But far rows can vote: the response of each is nearer to the fit or to the mean, and a count has little
noise. If public rows are far out, or a count says that private ones are, part of the last step's budget pays for the
votes of rows whose prediction ``eta`` is far from its mean. With F votes for the fit and M for the mean, of rows with
about the squared prediction ``q`` in variances of eta, the slopes are multiplied by

.. math:: t = \frac{n + \sum q F}{n + \sum q (F + M)},

which minimises the squared error if a response is either as predicted or the mean. That costs all other rows, so that
predictions are rather kept within ``5 t`` deviations of their mean, and t is closer to 1, where that leaves less error.
Votes for the mean that noise explains do not count.

Where far rows are too few to vote, predictions go twice as far from their mean as those of normal rows, or as far as
the tail of the public rows goes, unless one of these is far and nothing says that its response does not follow: a code
for a missing value, such as 9999, would else be predicted as if it were measured.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space

from dpregress.accounting import GDP, split
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.public.facts import PublicFacts
from dpregress.queries import Ask, FarVotes, ShortenedRows, noise_in_mean
from dpregress.releases import ANYWHERE

#: A row is far at so many times the root mean squared norm. If this share of all rows is, they are to stand out by so
#: many noise deviations; if twice the share is, at least at the largest cost.
_TIMES, _RARE, _SURE = 5.0, 0.005, 3.0
#: The least and the largest share of mu^2 for their number; fewer, as a share of all rows, do not matter.
_LEAST, _MOST, _FEWEST = 0.005, 0.05, 0.001
#: Predictions vote from so many of their standard deviations on; those so many times as far out are counted apart.
#: Their squares, in variances.
_VOTING, _FARTHER, _SQUARES = 5.0, 2.0, np.array([50.0, 900.0])
#: Votes for the mean are believed beyond so many noise deviations. Half of the far rows are to stand out by more, or at
#: least by so many that they say which votes are more. Votes for the mean limit predictions if they are more by these.
_BELIEVED, _CLEAR, _TELLING, _MORE = 4.0, 10.0, 1.25, 1.0
#: The largest share of votes: of mu^2 if public rows are far, of the last step if private ones are; and the share of
#: the last step for the wider remainder.
_OF_ALL, _OF_STEP, _WIDER = 0.3, 2 / 3, 1 / 6
#: How small the directions are made that are neither the prediction nor the constant.
_NEGLIGIBLE = 1e-6
#: A standard deviation of predictions, relative to the coefficients, below which they are rounding.
_ROUNDING = 1e-9
#: Predictions that no votes confirm go so many times as far from their mean as the farthest normal number.
_BEYOND = 2.0
#: Public rows that tell the tail of predictions.
_ENOUGH = 100

Bounds = tuple[float, float]


class Kept(NamedTuple):
    """What is kept of the last step where there are far rows: for :func:`confirmed`, and for the wider remainder."""

    votes: GDP
    wider: GDP


def far_share(n: int, budget: GDP, public: float = 0.0, *, labelled: bool = False) -> float:
    """The share of mu^2 that tells of far rows: of their votes if public rows are far, else of their number.

    0 where noise would hide them.

    Parameters
    ----------
    n : int
    budget : GDP
    public : float
        The share of far rows among public ones.
    labelled : bool
        Whether their responses say whether they follow.
    """
    if public >= _RARE:
        return _votes_share(public * n, budget, _OF_ALL, _BELIEVED if labelled else _TELLING)
    share = (_SURE / (_RARE * n * budget.mu)) ** 2
    return min(max(share, _LEAST), _MOST) if share <= 4 * _MOST else 0.0


def _votes_share(far: float, budget: GDP, most: float, least: float = _TELLING) -> float:
    """The share of a budget with which the votes of half of so many far rows stand out; 0 if they do not."""
    noise = noise_in_mean(FarVotes.largest_change(), budget, 1) / (far / 2)
    return min((_CLEAR * noise) ** 2, most) if (least * noise) ** 2 <= most else 0.0


def held_back(
    ask: Ask, space: WhitenedSpace, gram: Matrix, spend: GDP | None, step: GDP, *, n: int, public: float = 0.0
) -> tuple[GDP, Kept | None]:
    """What is left of the last step, and what is kept for the votes and intervals if there are far rows.

    Parameters
    ----------
    ask : Ask
    space : WhitenedSpace
        Of the fit, with its response.
    gram : ndarray of shape (p, p)
        The second moment of rows within the radius.
    spend : GDP or None
        Of the votes if public rows are far, else of the number of far rows; None if neither is asked.
    step : GDP
        Of the last step.
    n : int
        Private rows.
    public : float
        The share of far rows among public ones.
    """
    if spend is None:
        return step, None
    if public >= _RARE:
        left, wider = split(step, (1 - _WIDER, _WIDER))
        return left, Kept(spend, wider)
    beyond = _TIMES * math.sqrt(float(np.trace(gram)))
    far = float(ask(ShortenedRows(space.rewhitened(np.eye(space.order), beyond)), spend).total[0])
    if far < max(_SURE / spend.mu, _FEWEST * n):
        return step, None
    votes = _votes_share(far, step, _OF_STEP)
    if votes == 0:
        return step, None
    left, *kept = split(step, (1 - votes - _WIDER, votes, _WIDER))
    return left, Kept(*kept)


class Confirmed(NamedTuple):
    """What votes leave of a fit.

    Attributes
    ----------
    unlimited : ndarray of shape (p,)
        The move along the fit's own slopes that predicts best without a limit: estimates follow it.
    move : ndarray of shape (p,)
        The same with the limit: predictions follow it.
    farthest : float
        Predictions are kept within so much of their mean.
    """

    unlimited: Vector
    move: Vector
    farthest: float


def confirmed(ask: Ask, space: WhitenedSpace, coef: Vector, gram: Matrix, spend: GDP) -> Confirmed:
    """The factor of the slopes in [0, 1], and the reach of predictions, that predict best by the votes.

    Parameters
    ----------
    ask : Ask
    space : WhitenedSpace
    coef : ndarray of shape (p,)
        Whitened.
    gram : ndarray of shape (p, p)
        Of the rows within the radius.
    spend : GDP
    """
    slopes = _about_the_mean(space, coef, gram)
    size = math.sqrt(max(float(slopes @ gram @ slopes), 0.0))
    flat = size <= _ROUNDING * float(np.abs(coef).max())
    if flat:  # any direction, for a question that is paid
        slopes, size = _about_the_mean(space, null_space(space.along_constant)[:, 0], gram), 1.0
    turn = _along(space, slopes / math.sqrt(float(slopes @ gram @ slopes)))
    stretched = space.rewhitened(turn, _VOTING)
    query = FarVotes(stretched, np.asarray(np.linalg.solve(turn.T, coef)), size, _FARTHER)
    votes = ask(query, spend)
    fit, mean = votes.total[1::2], votes.total[2::2]
    noise, far = query.noise(spend, 1), np.sqrt(_SQUARES)
    against = float(far @ (mean - fit)) > _MORE * noise * math.sqrt(2 * float(_SQUARES.sum()))
    fit, mean, nothing = np.maximum(fit, 0), np.where(mean > _BELIEVED * noise, mean, 0.0), np.zeros_like(coef)
    if flat or not mean.any():
        return Confirmed(nothing, nothing, _VOTING * size if against and not flat else math.inf)
    rows = max(float(votes.total.sum()), 1.0)  # n may be a sum of survey weights
    plain = float((rows + _SQUARES @ fit) / (rows + _SQUARES @ (fit + mean)))
    factor, deviations = _least_error(plain, rows, fit, mean)
    return Confirmed(np.asarray((plain - 1) * slopes), np.asarray((factor - 1) * slopes), deviations * size)


def _least_error(plain: float, rows: float, fit: Vector, mean: Vector) -> tuple[float, float]:
    """The factor of predictions, and their reach in deviations: the plain one, or a limit if that has less error."""
    far = np.sqrt(_SQUARES)
    limited = min((rows + _VOTING * far @ fit) / (rows + _VOTING**2 * (fit + mean).sum()), 1.0)

    def error(factor: float, moved: Vector) -> float:
        return float(rows * (1 - factor) ** 2 + fit @ (far - factor * moved) ** 2 + mean @ (factor * moved) ** 2)

    if error(limited, np.full(len(far), _VOTING)) < error(plain, far):
        return limited, _VOTING * limited
    return plain, math.inf


def confirmed_reach(
    facts: PublicFacts, space: WhitenedSpace, coef: Vector, gram: Matrix, votes: Confirmed | None,
    bounds: Bounds | None, *, counted: bool,
) -> Bounds:  # fmt: skip
    """What predictions are kept between: these bounds of the response, and what votes or public rows confirm.

    Public rows say nothing where no count says that few private ones are far, or declared bounds are contradicted.

    Parameters
    ----------
    facts : PublicFacts
    space : WhitenedSpace
        With its response.
    coef : ndarray of shape (p,)
        Whitened.
    gram : ndarray of shape (p, p)
        Of the rows within the radius.
    votes : Confirmed or None
    bounds : (float, float) or None
        Those that are believed.
    counted : bool
        Whether far rows were counted.
    """
    assert space.response is not None
    rows = None if facts.public is None else facts.public.rows
    low, high = bounds or ANYWHERE
    if votes is not None:
        farthest = votes.farthest
    elif rows is None or not counted or (bounds is None and facts.response_bounds is not None):
        return low, high
    else:
        slopes, x, labels = _about_the_mean(space, coef, gram), space.whiten(rows), facts.trusted_labels
        residuals = None if labels is None else labels - space.response.centre - x @ coef
        farthest = _unconfirmed(x @ slopes, float(slopes @ gram @ slopes), residuals, facts.n)
    mean = space.response.centre + (float(space.mean_row(gram) @ coef) if space.intercept else 0.0)
    return float(max(mean - farthest, low)), float(min(mean + farthest, high))


def _unconfirmed(moved: Vector, variance: float, residuals: Vector | None, n: int) -> float:
    """How far from their mean predictions are kept that no votes confirm, by those of public rows.

    That is ``_BEYOND`` times as far as the farthest of n normal numbers with their variance, or as far as n rows go
    with the tail of the public rows: beyond their largest tenth, it falls as a power, whose exponent is that of Hill
    (1975). Predictions are not limited if public rows are few or all are far, as from another population, or if the
    predictions of some are as far as those that vote, and no residuals say that most of their responses are nearer to
    the mean than to the fit.
    """
    deviation = math.sqrt(max(variance, 0.0))
    far = np.abs(moved) > _VOTING * deviation
    if len(moved) < _ENOUGH or far.all():
        return math.inf
    if far.any() and (residuals is None or _follow(residuals[far], moved[far])):
        return math.inf
    return max(_BEYOND * math.sqrt(2 * math.log(max(n, 2))) * deviation, _of_tail(np.abs(moved[~far]), n))


def _follow(residuals: Vector, moved: Vector) -> bool:
    """Whether most responses of far rows are nearer to the fit than to the mean."""
    return bool(np.mean(np.abs(residuals) < np.abs(residuals + moved)) > 1 / 2)


def _of_tail(sizes: Vector, n: int) -> float:
    """The size that one of n exceeds, by the tail of these."""
    largest = np.sort(sizes)[-max(len(sizes) // 10, 1) :]
    if largest[0] <= 0:
        return 0.0
    exponent = float(np.mean(np.log(largest / largest[0])))
    return float(largest[0] * max(n * len(largest) / len(sizes), 1.0) ** exponent)


def _about_the_mean(space: WhitenedSpace, coef: Vector, gram: Matrix) -> Vector:
    """The coefficients less the mean prediction."""
    if not space.intercept:
        return coef
    return np.asarray(coef - float(space.mean_row(gram) @ coef) * space.constant)


def _along(space: WhitenedSpace, direction: Vector) -> Matrix:
    """Coordinates that are the prediction along a direction, the constant, and next to nothing."""
    first = np.stack([direction, space.constant] if space.intercept else [direction])
    return np.vstack([first, _NEGLIGIBLE * null_space(first).T])
