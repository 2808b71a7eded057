r"""Coefficients from a released cross moment: the score equations, with public rows in place of the private ones.

A study releases ``T = E[k x~ (y - c)]`` with known noise, k the row weights. For a mean response m the
coefficients solve ``F(b) = T - mean k x~ (m(x~'b) - c) = 0`` over public rows, whatever the weights.

* Without public labels, T is first replaced by what a shrunk linear fit implies (:mod:`.shrinkage`), so that noise
  never makes the answer worse than the mean. For normal rows the solution is Stein's constant times that fit, where
  the search starts.
* With public labels, one step from the public fit b0 towards the root of F is taken, weighted by the covariance of F
  from privacy noise, sampling and the number of public rows, and that of b0.

Everything is post-processing: other mean responses cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import brentq

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.errors import InvalidInput
from dpregress.models.mean_responses import MeanResponse
from dpregress.public.facts import PublicFacts
from dpregress.releases import Isotropic, Moments, Release, UnitMessages
from dpregress.solvers.base import Solution, Uncertainty
from dpregress.solvers.local.message_plan import (
    MessagePlan,
    asks_for_the_mean,
    equation_weights,
    gram_error,
    normal_rows,
    public_rows,
)
from dpregress.solvers.local.shrinkage import LinearMoments, shrunk_fit
from dpregress.solvers.shared.budget import has_prior
from dpregress.solvers.shared.repair import floored, gram_floor
from dpregress.solvers.shared.stein import Scale, stein_scale

_STEPS = 100
#: The largest change of a predictor in one step.
_LONGEST = 3.0
_FLAT = 1e-9
#: Predictors at which a mean response with one slope counts as linear.
_STRAIGHT = np.array([-3.0, -1.0, 0.0, 0.5, 2.0])


@dataclass(frozen=True, eq=False)
class MomentEquations:
    """``target = mean k x (m(x'b) - c)`` over public rows, with the covariance of both sides."""

    rows: Matrix
    weights: Vector
    centre: float
    target: Vector
    response: MeanResponse

    def curvature_slack(self, coef: Vector) -> Vector:
        """F(b)."""
        fitted = self.response.mean(self.rows @ coef) - self.centre
        return np.asarray(self.target - (self.weights * fitted) @ self.rows / len(self.rows))

    def slope(self, coef: Vector) -> Matrix:
        """``mean k m' x x'``."""
        curved = self.weights * self.response.slope(self.rows @ coef)
        return np.asarray((self.rows * curved[:, None]).T @ self.rows / len(self.rows))


@dataclass(frozen=True, eq=False)
class CoefficientPrior:
    mean: Vector
    precision: Matrix


def solve_message_plan(
    message_plan: MessagePlan, release: Release, facts: PublicFacts, response: MeanResponse
) -> tuple[Solution, Scale]:
    """Whitened coefficients of one mean response, and Stein's constant.

    Parameters
    ----------
    message_plan : MessagePlan
    release : Score or Moments
        The release that the study collected.
    facts : PublicFacts
        Those of the plan; labels of public rows are the prior.
    response : MeanResponse

    Returns
    -------
    solution : Solution
        Its space has no response: coefficients are those of the linear predictor.
    scale : Scale
    """
    population, prior = _population(message_plan, release, facts), _labelled_prior(facts, message_plan, response)
    assert message_plan.space.response is not None
    centre = message_plan.space.response.centre
    solved = _alone if prior is None else partial(_merged, prior=prior)
    coef, scale, slope, uncertainty = solved(population, response, centre)
    return Solution(coef, slope, replace(message_plan.space, response=None), None, uncertainty), scale


_Solved = tuple[Vector, Scale, Matrix, Uncertainty]


def _merged(population: _Population, response: MeanResponse, centre: float, prior: CoefficientPrior) -> _Solved:
    """The fit to public labels and one step from it to the released moments, merged by inverse variances.

    Further steps follow the curve into directions that few rows show, where neither side is known.
    """
    rows, weights = population.rows, population.weights
    equations = MomentEquations(rows, weights, centre, population.moments.cross, response)
    fitted = response.mean(rows @ prior.mean) - centre
    known = population.error * (rows * (weights**2 * fitted**2)[:, None]).T @ rows / len(rows)
    covariance = off_singular(population.moments.noise + known)
    slope = equations.slope(prior.mean)
    weighted = np.linalg.solve(covariance, slope)
    total = np.linalg.inv(prior.precision + slope.T @ weighted)
    gain = total @ weighted.T
    coef = prior.mean + gain @ equations.curvature_slack(prior.mean)
    privacy = gain @ population.privacy @ gain.T
    return coef, _scale(response, rows @ coef), slope, Uncertainty(np.asarray(privacy), np.asarray(total))


def _alone(population: _Population, response: MeanResponse, centre: float) -> _Solved:
    """The released moments by themselves: slopes are shrunk, and 0 where the noise hides them."""
    moments, gram = population.moments, weighted_gram(population.rows, population.weights)
    fit = shrunk_fit(moments)
    equations = MomentEquations(population.rows, population.weights, centre, gram @ fit.coef, response)
    start, scale, spread = _stein_start(equations, fit.coef, moments.intercept)
    coef = start
    if fit.told:
        flat = np.full(len(start), 1 / max(spread, 1e-300))
        if moments.intercept:
            flat[0] = _FLAT
        coef = solve_equations(equations, off_singular(moments.noise), CoefficientPrior(start, np.diag(flat)), start)
    slope = _slope(equations, coef, gram)
    back = np.linalg.solve(off_singular(slope), gram)
    known = moments.spread / 2 * float(fit.coef @ fit.coef) * np.eye(len(coef)) if fit.told else 0.0
    privacy = back @ fit.linear @ population.privacy @ fit.linear.T @ back.T
    total = back @ (fit.linear @ (moments.noise + known) @ fit.linear.T + fit.bias) @ back.T
    return coef, scale, slope, Uncertainty(np.asarray(privacy), np.asarray(total))


def weighted_gram(rows: Matrix, weights: Vector) -> Matrix:
    return np.asarray((rows * weights[:, None]).T @ rows / len(rows))


def _slope(equations: MomentEquations, coef: Vector, gram: Matrix) -> Matrix:
    """The derivative of the equations; all but flat, as a cube at 0 or a share far from 1/2, nothing is known there."""
    slope, least = equations.slope(coef), _FLAT * equations.response.steepest(1.0) * gram
    return least if np.trace(slope) < np.trace(least) else slope


def off_singular(matrix: Matrix) -> Matrix:
    """The matrix, moved off singular ones."""
    return np.asarray(matrix + _FLAT * float(np.trace(matrix)) * np.eye(len(matrix)))


@dataclass(frozen=True, eq=False)
class _Population:
    """Rows that stand for the private ones with their weights, and the moments in units of y."""

    rows: Matrix
    weights: Vector
    error: float
    moments: LinearMoments
    privacy: Matrix


def _population(message_plan: MessagePlan, release: Release, facts: PublicFacts) -> _Population:
    """Public rows, recoloured where users sent a Gram matrix, and the linear problem that the release states."""
    space, query = message_plan.space, message_plan.query
    assert space.response is not None
    half, along = space.response.scale, int(space.intercept)
    rows = public_rows(facts, space)
    weights = equation_weights(space, rows)
    gram = weighted_gram(rows, weights)
    scale = float(np.trace(gram[along:, along:])) / (len(gram) - along)
    error = math.inf if asks_for_the_mean(facts, query) else gram_error(facts, message_plan, scale)
    moment = release.mean
    if isinstance(release, Moments):
        share = 0.0 if facts.public is None else facts.public.n * gram_error(facts, message_plan, scale)
        gram, moment = share * gram + (1 - share) * release.gram, release.cross
        if facts.public is None and along:
            gram[0, 0] = 1.0  # the bounds hold every row, so that none is weighted
        rows, weights = _recoloured(facts, space, rows, weights, gram, gram_floor(release))
    outer = (rows * (weights**2)[:, None]).T @ rows / len(rows)
    privacy, sampling = (half**2 * each for each in cross_variances(release, outer))
    spread = 2 * error * scale**2
    beside = spread / 2 if isinstance(release, Moments) else error * scale
    moments = LinearMoments(gram, half * moment, privacy + sampling, spread, beside, half**2, space.intercept)
    return _Population(rows, weights, error, moments, privacy)


def _recoloured(
    facts: PublicFacts, space: WhitenedSpace, rows: Matrix, weights: Vector, gram: Matrix, floor: float
) -> tuple[Matrix, Vector]:
    """Rows with this Gram matrix, as far as noise lets it be one."""
    repaired = floored(gram, floor)
    if facts.public is None or facts.public.rows is None:
        return normal_rows(space, repaired), np.ones(len(rows))
    plain = symmetric_power(weighted_gram(rows, weights), -0.5, smallest=1e-6)
    return rows @ plain @ symmetric_power(repaired, 0.5), weights


def cross_variances(release: Release, outer: Matrix) -> tuple[Matrix, Matrix]:
    """Covariances of ``E k x y~``: from privacy noise, and from sampling users."""
    n, identity = release.n, np.eye(len(outer))
    if isinstance(release.noise, UnitMessages):
        whole = (release.noise.sigma / n) ** 2 * identity
        return release.noise.private * whole, (1 - release.noise.private) * whole
    if not isinstance(release.noise, Isotropic):
        raise InvalidInput(f"no variance is known for {release.noise}")
    sigma, second = release.noise.sigma / n, 1.0  # of y~^2, which is at most 1
    if isinstance(release, Moments):
        assert release.space.response is not None
        sigma /= math.sqrt(2) * release.space.response.cross
        second = min(max(release.response_second, 0.0), 1.0)
    return sigma**2 * identity, second / n * outer


def is_straight(response: MeanResponse) -> bool:
    """Whether a mean response is linear."""
    slopes = response.slope(_STRAIGHT)
    return float(np.ptp(slopes)) == 0 and bool(slopes[0] != 0)


def _stein_start(equations: MomentEquations, linear: Vector, intercept: bool) -> tuple[Vector, Scale, float]:
    """Stein's constant times the slopes of a linear fit, and the mean square of a slope."""
    slopes = slice(1, None) if intercept else slice(None)
    along = equations.rows[:, slopes] @ linear[slopes]

    def level(predictor: Vector) -> float:
        return _intercept(equations, predictor) if intercept else 0.0

    scale = _scale(equations.response, along, level)
    coef = np.zeros(len(linear))
    coef[slopes] = scale.value * linear[slopes]
    if intercept:
        coef[0] = level(equations.rows[:, slopes] @ coef[slopes])
    return coef, scale, float(np.mean(coef[slopes] ** 2))


def _scale(response: MeanResponse, predictor: Vector, level: Callable[[Vector], float] = lambda _: 0.0) -> Scale:
    """Stein's constant; of a linear model without a search, whose reach is in the units of a curved one."""
    if is_straight(response):
        return Scale(1 / float(response.slope(_STRAIGHT)[0]), True)
    return stein_scale(lambda z: response.slope(z + level(z)), predictor)


def _intercept(equations: MomentEquations, predictor: Vector) -> float:
    """The intercept at which the mean response over the rows is, or is closest to, the released one."""
    weights = equations.weights / len(equations.rows)
    wanted = float(equations.target[0]) + equations.centre * float(weights.sum())

    def curvature_slack(shift: float) -> float:
        return float(weights @ equations.response.mean(predictor + shift)) - wanted

    reach = 30.0 + 2 * abs(wanted) / float(weights.sum())
    low, high = curvature_slack(-reach), curvature_slack(reach)
    if low * high > 0:
        return -reach / 10 if abs(low) < abs(high) else reach / 10
    return float(brentq(curvature_slack, -reach, reach, xtol=1e-10))


def _labelled_prior(facts: PublicFacts, message_plan: MessagePlan, response: MeanResponse) -> CoefficientPrior | None:
    """A shrunk fit to labelled public rows, where there are 30 and twice the columns, and its precision."""
    labels, space = facts.trusted_labels, message_plan.space
    if not has_prior(facts) or labels is None or facts.public is None or facts.public.rows is None:
        return None
    rows = space.whiten(facts.public.rows)
    m, centre, ones = len(labels), float(np.mean(labels)), np.ones(len(labels))
    gram, cross = weighted_gram(rows, ones), np.asarray((labels - centre) @ rows / m)
    left = labels - centre - rows @ np.linalg.solve(off_singular(gram), cross)
    noise = (rows * (left**2)[:, None]).T @ rows / (m * max(m - space.order, 1))
    fit = shrunk_fit(LinearMoments(gram, cross, noise, 0.0, 0.0, float(np.var(labels)), space.intercept))
    equations = MomentEquations(rows, ones, centre, gram @ fit.coef, response)
    start, _, spread = _stein_start(equations, fit.coef, space.intercept)
    flat = np.full(space.order, 1 / max(spread, 1e-12))
    if space.intercept:
        flat[0] = _FLAT
    coef = (
        solve_equations(equations, off_singular(noise), CoefficientPrior(start, np.diag(flat)), start)
        if fit.told
        else start
    )
    back = np.linalg.solve(off_singular(_slope(equations, coef, gram)), gram)
    known = back @ (fit.linear @ noise @ fit.linear.T + fit.bias) @ back.T
    return CoefficientPrior(coef, np.asarray(np.linalg.inv(off_singular((known + known.T) / 2)), dtype=np.float64))


def solve_equations(equations: MomentEquations, covariance: Matrix, prior: CoefficientPrior, start: Vector) -> Vector:
    """Damped Gauss-Newton steps that never increase the sum of squares."""
    inverse = np.linalg.inv(covariance)

    def loss(coef: Vector) -> float:
        curvature_slack, away = equations.curvature_slack(coef), coef - prior.mean
        found = float(curvature_slack @ inverse @ curvature_slack + away @ prior.precision @ away)
        return found if math.isfinite(found) else math.inf

    coef, best = start, loss(start)
    longest = _LONGEST * max(1.0, float(np.abs(equations.rows @ start).max()))
    for _ in range(_STEPS):
        slope = equations.slope(coef)
        system = prior.precision + slope.T @ inverse @ slope
        downhill = slope.T @ inverse @ equations.curvature_slack(coef) - prior.precision @ (coef - prior.mean)
        step = np.linalg.solve(system, downhill)
        step *= min(1.0, longest / max(float(np.abs(equations.rows @ step).max()), 1e-300))
        for _ in range(30):
            now = loss(coef + step)
            if now < best:
                break
            step = step / 2
        else:
            return coef
        settled = best - now <= 1e-12 * abs(best)
        coef, best = coef + step, now
        if settled:
            return coef
    return coef
