r"""Rows far beyond the radius: they hardly count in a fit, but it predicts for them.

Where a response does not follow its slopes to the far rows, such as one that saturates, their predictions are wrong by
as much as they are far out, and a few rows make a fit worse than the mean for everybody. Noise forbids a radius that
includes them in all directions. In the one direction of the fit itself it does not: if a count says that there are far
rows, half of the last step's budget pays for the second moment of the predictions ``eta``, about their mean, and for
their correlation with the residuals ``r``. Both are asked in coordinates that are stretched along the fit, with a
radius of many standard deviations. They tell by which factor the slopes predict best,

.. math:: t - 1 = E[\eta r] / E[\eta^2],

and the slopes are shortened by it unless noise explains it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space

from dpregress.accounting import GDP, split
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import GaussianFamily
from dpregress.queries import Ask, ClippedScore, SecondMoment, ShortenedRows, noise_in_mean

#: A row is far at so many times the root mean squared norm; this share of all rows is to stand out by so many noise
#: deviations.
_TIMES, _RARE, _SURE = 5.0, 0.005, 3.0
#: The least and the largest share of mu^2 for their number; where more would be needed, it is not asked.
_LEAST, _MOST = 0.005, 0.05
#: Fewer far rows, as a share of all, do not matter; a correlation is believed if it is so many noise deviations long.
_FEWEST, _BELIEVED = 0.001, 2.5
#: Shares of the last step: of the factor of the slopes, and of the wider remainder; the share of the second moment in
#: the first.
_OF_STEP, _WIDER, _OF_MOMENT = 1 / 2, 1 / 6, 1 / 4
#: The noise of the second moment that a radius may lead to, in variances of predictions, and the least and largest
#: radius, in their standard deviations.
_NOISE, _NEAREST, _FURTHEST = 0.6, 8.0, 64.0
#: How small the other directions are made.
_NEGLIGIBLE = 1e-6
#: A standard deviation of predictions, relative to the coefficients, below which they are rounding.
_ROUNDING = 1e-9


class Kept(NamedTuple):
    """What is kept of the last step where there are far rows: for :func:`rescaling`, and for the wider remainder."""

    factor: GDP
    wider: GDP


def count_share(n: int, budget: GDP) -> float:
    """The share of mu^2 with which a few far rows stand out; 0 where that costs too much."""
    share = (_SURE / (_RARE * n * budget.mu)) ** 2
    return max(share, _LEAST) if share <= _MOST else 0.0


def held_back(ask: Ask, space: WhitenedSpace, gram: Matrix, spend: GDP | None, step: GDP) -> tuple[GDP, Kept | None]:
    """What is left of the last step, and what is kept of it if there are far rows.

    Parameters
    ----------
    ask : Ask
    space : WhitenedSpace
        Of the fit, with its response.
    gram : ndarray of shape (p, p)
        The second moment of rows within the radius.
    spend : GDP or None
        Of the count; None if it is not asked.
    step : GDP
        Of the last step.
    """
    if spend is None:
        return step, None
    beyond = _TIMES * math.sqrt(float(np.trace(gram)))
    count = ask(ShortenedRows(space.rewhitened(np.eye(space.order), beyond)), spend)
    if float(count.total[0]) < max(_SURE / spend.mu, _FEWEST * count.n):
        return step, None
    left, *kept = split(step, (1 - _OF_STEP - _WIDER, _OF_STEP, _WIDER))
    return left, Kept(*kept)


def rescaling(ask: Ask, space: WhitenedSpace, coef: Vector, gram: Matrix, n: int, spend: GDP) -> Vector:
    """The move along the fit's own slopes to the factor in [0, 1] that predicts best; 0 if noise explains it.

    Parameters
    ----------
    ask : Ask
    space : WhitenedSpace
    coef : ndarray of shape (p,)
        Whitened.
    gram : ndarray of shape (p, p)
        Of the rows within the radius.
    n : int
        Usable rows.
    spend : GDP

    Returns
    -------
    move : ndarray of shape (p,)
    """
    slopes = _about_the_mean(space, coef, gram)
    size = math.sqrt(max(float(slopes @ gram @ slopes), 0.0))
    of_moment, of_score = split(spend, (_OF_MOMENT, 1 - _OF_MOMENT))
    per_square = noise_in_mean(SecondMoment.largest_change(1.0), of_moment, n)
    radius = min(max(math.sqrt(_NOISE / per_square), _NEAREST), _FURTHEST)
    if size <= _ROUNDING * float(np.abs(coef).max()):  # any direction, for questions that are paid
        slopes, size = _about_the_mean(space, null_space(space.along_constant)[:, 0], gram), 0.0
    scale = size or 1.0
    turn = _along(space, slopes / math.sqrt(float(slopes @ gram @ slopes)))
    stretched = space.rewhitened(turn, radius)
    square = float(ask(SecondMoment(stretched.with_response(None)), of_moment).gram[0, 0])
    query = ClippedScore(stretched, GaussianFamily, np.asarray(np.linalg.solve(turn.T, coef)), radius * scale)
    told = float(ask(query, of_score).mean[0])
    if size == 0 or told > -_BELIEVED * query.noise(of_score, n):
        return np.zeros_like(coef)
    return np.asarray(max(told / size / max(square, per_square * radius**2, 1.0), -1.0) * slopes)


def _about_the_mean(space: WhitenedSpace, coef: Vector, gram: Matrix) -> Vector:
    """The coefficients less the mean prediction."""
    if not space.intercept:
        return coef
    return np.asarray(coef - float(space.mean_row(gram) @ coef) * space.constant)


def _along(space: WhitenedSpace, direction: Vector) -> Matrix:
    """Coordinates that are the prediction along a direction, the constant, and next to nothing."""
    first = np.stack([direction, space.constant] if space.intercept else [direction])
    return np.vstack([first, _NEGLIGIBLE * null_space(first).T])
