r"""Rows far beyond the radius: they hardly count in a fit, but it predicts for them.

Where a response does not follow its slopes to the far rows, such as one that saturates, their predictions are wrong by
as much as they are far out, and a few rows make a fit worse than the mean for everybody. Noise forbids a radius that
includes them. But far rows can vote: the response of each is nearer to the fit or to the mean, and a count has little
noise. If public rows are far out, or a count says that private ones are, part of the last step's budget pays for the
votes of rows whose prediction ``eta`` is far from its mean. With F votes for the fit and M for the mean, of rows with
about the squared prediction ``q`` in variances of eta, the slopes are multiplied by

.. math:: t = \frac{n + \sum q F}{n + \sum q (F + M)},

which minimises the squared error if a response is either as predicted or the mean. Votes for the mean that noise
explains do not count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space

from dpregress.accounting import GDP, split
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.queries import Ask, FarVotes, ShortenedRows, noise_in_mean

#: A row is far at so many times the root mean squared norm. If this share of all rows is, they are to stand out by so
#: many noise deviations; if twice the share is, at least at the largest cost.
_TIMES, _RARE, _SURE = 5.0, 0.005, 3.0
#: The least and the largest share of mu^2 for their number; fewer, as a share of all rows, do not matter.
_LEAST, _MOST, _FEWEST = 0.005, 0.05, 0.001
#: Predictions vote from so many of their standard deviations on; those so many times as far out are counted apart.
#: Their squares, in variances.
_VOTING, _FARTHER, _SQUARES = 5.0, 2.0, np.array([50.0, 900.0])
#: Votes for the mean are believed beyond so many noise deviations. Half of the far rows are to stand out by more.
_BELIEVED, _CLEAR = 4.0, 10.0
#: The largest share of votes: of mu^2 if public rows are far, of the last step if private ones are; and the share of
#: the last step for the wider remainder.
_OF_ALL, _OF_STEP, _WIDER = 0.3, 2 / 3, 1 / 6
#: How small the directions are made that are neither the prediction nor the constant.
_NEGLIGIBLE = 1e-6
#: A standard deviation of predictions, relative to the coefficients, below which they are rounding.
_ROUNDING = 1e-9


class Kept(NamedTuple):
    """What is kept of the last step where there are far rows: for :func:`rescaling`, and for the wider remainder."""

    votes: GDP
    wider: GDP


def far_share(n: int, budget: GDP, public: float = 0.0) -> float:
    """The share of mu^2 that tells of far rows: of their votes if public rows are far, else of their number.

    0 where noise would hide them.

    Parameters
    ----------
    n : int
    budget : GDP
    public : float
        The share of far rows among public ones.
    """
    if public >= _RARE:
        return _votes_share(public * n, budget, _OF_ALL)
    share = (_SURE / (_RARE * n * budget.mu)) ** 2
    return min(max(share, _LEAST), _MOST) if share <= 4 * _MOST else 0.0


def _votes_share(far: float, budget: GDP, most: float) -> float:
    """The share of a budget with which the votes of half of so many far rows stand out; 0 if they do not."""
    noise = noise_in_mean(FarVotes.largest_change(), budget, 1) / (far / 2)
    return min((_CLEAR * noise) ** 2, most) if (_BELIEVED * noise) ** 2 <= most else 0.0


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


def rescaling(ask: Ask, space: WhitenedSpace, coef: Vector, gram: Matrix, spend: GDP) -> Vector:
    """The move along the fit's own slopes to the factor in [0, 1] that predicts best; 0 if noise explains it.

    Parameters
    ----------
    ask : Ask
    space : WhitenedSpace
    coef : ndarray of shape (p,)
        Whitened.
    gram : ndarray of shape (p, p)
        Of the rows within the radius.
    spend : GDP

    Returns
    -------
    move : ndarray of shape (p,)
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
    fit, mean = np.maximum(votes.total[1::2], 0), votes.total[2::2]
    mean = np.where(mean > _BELIEVED * query.noise(spend, 1), mean, 0.0)
    rows = max(float(votes.total.sum()), 1.0)  # n may be a sum of survey weights
    factor = (rows + _SQUARES @ fit) / (rows + _SQUARES @ (fit + mean))
    return np.zeros_like(coef) if flat else np.asarray((factor - 1) * slopes)


def _about_the_mean(space: WhitenedSpace, coef: Vector, gram: Matrix) -> Vector:
    """The coefficients less the mean prediction."""
    if not space.intercept:
        return coef
    return np.asarray(coef - float(space.mean_row(gram) @ coef) * space.constant)


def _along(space: WhitenedSpace, direction: Vector) -> Matrix:
    """Coordinates that are the prediction along a direction, the constant, and next to nothing."""
    first = np.stack([direction, space.constant] if space.intercept else [direction])
    return np.vstack([first, _NEGLIGIBLE * null_space(first).T])
