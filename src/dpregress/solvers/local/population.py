"""Rows that stand for those of the users, and the linear problem that their messages state."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.errors import InvalidInput
from dpregress.public.facts import PublicFacts
from dpregress.releases import CrossMoments, Isotropic, Moments, Release, UnitMessages
from dpregress.solvers.local.message_plan import (
    MessagePlan,
    asks_for_the_mean,
    equation_weights,
    public_rows,
    weighted_gram,
)
from dpregress.solvers.local.predicted_error import SHIFT, gram_error
from dpregress.solvers.local.reading import LEAST_KEPT, MeanOfRows, entry_variance, told_cross, told_mean, uncentred
from dpregress.solvers.local.shrinkage import LinearMoments
from dpregress.solvers.shared.repair import floored


@dataclass(frozen=True, eq=False)
class Population:
    """Rows that stand for the private ones with their weights, and the moments in units of y.

    Attributes
    ----------
    rows : ndarray of shape (m, p)
    weights : ndarray of shape (m,)
    centre : float
        About which responses are counted.
    ends : (float, float)
        The bounds of responses about it.
    error : float
        Variance of a relative entry of the Gram matrix.
    moments : LinearMoments
    privacy : ndarray of shape (p, p)
        The part of their noise that is due to privacy.
    """

    rows: Matrix
    weights: Vector
    centre: float
    ends: tuple[float, float]
    error: float
    moments: LinearMoments
    privacy: Matrix


def population_of(message_plan: MessagePlan, release: Release, facts: PublicFacts) -> Population:
    """Public rows, moved and recoloured to what users told of the mean and the Gram matrix of theirs."""
    space, query = message_plan.space, message_plan.query
    assert space.response is not None
    half, along = space.response.scale, int(space.intercept)
    rows = public_rows(facts, space)
    weights = equation_weights(space, rows)
    gram = weighted_gram(rows, weights)
    scale = float(np.trace(gram[along:, along:])) / max(len(gram) - along, 1)
    error = math.inf if asks_for_the_mean(facts, query) else gram_error(facts, message_plan, scale)
    mean = _mean_of_rows(facts, release, rows, weights, scale)
    centred = told_cross(release, mean) if along else uncentred(release)
    cross, told = centred.cross, release.gram if isinstance(release, Moments | CrossMoments) else None
    if told is not None:
        share = 0.0 if facts.public is None else min(facts.public.n * error, 1.0)
        gram = share * gram + (1 - share) * told
        if along:
            gram[0] = gram[:, 0] = mean.mean
        if along and facts.public is None:
            gram[0, 0] = np.clip(gram[0, 0], LEAST_KEPT, 1.0)
        rows, weights = _recoloured(space, rows, weights, gram, _gram_floor(release))
    elif along:
        rows, weights = moved_rows(rows, weights, mean.mean)
        gram = weighted_gram(rows, weights)
    users = sampling(release, rows, weights)
    noise = half**2 * (np.diag(centred.noise + centred.leaning**2 * mean.variance) + users)
    private = release.noise.private if isinstance(release.noise, UnitMessages) else 1.0
    beside = float(np.mean(mean.variance[along:])) if len(mean.variance) > along else 0.0
    limit = half**2 * (1 - centred.centre**2)  # the largest variance of responses within the bounds with this mean
    moments = LinearMoments(gram, half * cross, noise, 2 * error * scale**2, beside, limit, space.intercept)
    privacy = half**2 * private * np.diag(centred.noise)
    ends = (half * (-1 - centred.centre), half * (1 - centred.centre))
    return Population(rows, weights, space.response.centre + half * centred.centre, ends, error, moments, privacy)


def _mean_of_rows(facts: PublicFacts, release: Release, rows: Matrix, weights: Vector, scale: float) -> MeanOfRows:
    """The mean of the weighted rows by public rows and by users, as far as these differ by more than noise."""
    here, told = weights @ rows / len(rows), told_mean(release)
    if facts.public is None:
        return MeanOfRows(here, np.zeros(len(here))) if told is None else told
    spread = np.append(float(np.var(weights)), np.full(len(here) - 1, scale / max(len(here) - 1, 1)))
    sampled = np.append(spread[0], np.full(len(here) - 1, scale)) / facts.public.n
    known = sampled + SHIFT * spread
    if told is None:
        return MeanOfRows(here, known)
    away, apart = told.mean - here, np.empty(len(here))
    for part in (slice(0, 1), slice(1, None)):
        beyond = away[part] ** 2 - told.variance[part] - known[part]
        apart[part] = known[part] + max(float(np.mean(beyond)) if len(beyond) else 0.0, 0.0)
    share = apart / np.maximum(apart + told.variance, 1e-300)
    return MeanOfRows(here + share * away, share * told.variance)


def moved_rows(rows: Matrix, weights: Vector, mean: Vector) -> tuple[Matrix, Vector]:
    """Rows and weights whose weighted mean is this one; the constant of rows stays."""
    here = weights @ rows / len(rows)
    kept = max(float(mean[0]), LEAST_KEPT * float(here[0]))
    shift = mean / kept - here / here[0]
    shift[0] = 0.0
    return rows + shift, weights * (kept / here[0])


def _recoloured(
    space: WhitenedSpace, rows: Matrix, weights: Vector, gram: Matrix, floor: float
) -> tuple[Matrix, Vector]:
    """Rows with this Gram matrix: with an intercept they have its mean, and about that what noise lets them vary."""
    if not space.intercept:
        return _turned(rows, weights, floored(gram, floor)), weights
    rows, weights = moved_rows(rows, weights, gram[0])
    kept, mean = gram[0, 0], gram[0, 1:] / gram[0, 0]
    about = gram[1:, 1:] - kept * np.outer(mean, mean)
    away = _turned(rows[:, 1:] - mean, weights, floored((about + about.T) / 2, floor))
    return np.column_stack([rows[:, 0], away + mean]), weights


def _turned(rows: Matrix, weights: Vector, gram: Matrix) -> Matrix:
    plain = symmetric_power(weighted_gram(rows, weights), -0.5, smallest=1e-6)
    return np.asarray(rows @ plain @ symmetric_power(gram, 0.5))


def _gram_floor(release: Release) -> float:
    """The least eigenvalue that is taken as it is: the noise of a direction."""
    factor = release.parts.gram if isinstance(release, CrossMoments) else 1.0
    return float(np.sqrt(entry_variance(release))) / factor


def sampling(release: Release, rows: Matrix, weights: Vector) -> Matrix:
    """The covariance of ``E k x~ y~`` by the sampling of users, where the law of the noise does not hold it."""
    if isinstance(release.noise, UnitMessages):
        return np.zeros((rows.shape[1], rows.shape[1]))
    if not isinstance(release.noise, Isotropic):
        raise InvalidInput(f"no variance is known for {release.noise}")
    second = min(max(release.response_second, 0.0), 1.0) if isinstance(release, Moments) else 1.0  # of y~^2
    return second / release.n * weighted_gram(rows, weights**2)
