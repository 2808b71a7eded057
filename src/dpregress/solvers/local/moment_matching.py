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
from scipy.stats import chi2

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import definite_inverse
from dpregress.models import BinomialFamily
from dpregress.models.mean_responses import MeanResponse, exponential_family
from dpregress.public.facts import PublicFacts
from dpregress.releases import ANYWHERE, Release
from dpregress.solvers.base import Solution, Uncertainty
from dpregress.solvers.local.message_plan import MessagePlan, weighted_gram
from dpregress.solvers.local.population import Population, population_of
from dpregress.solvers.local.shrinkage import LinearMoments, ShrunkFit, shrunk_fit
from dpregress.solvers.shared.budget import has_labels, has_prior
from dpregress.solvers.shared.linear_prior import told_by_labels
from dpregress.solvers.shared.public_fit import fit_public
from dpregress.solvers.shared.stein import Scale, stein_scale
from dpregress.solvers.shared.within_ends import mean_within

_STEPS = 100
#: The largest change of a predictor in one step.
_LONGEST = 3.0
_FLAT = 1e-9
#: Share of a covariance's trace below which an eigenvalue is rounding.
_DIGITS = 1e-15
#: How often slopes that a mean response cannot explain are shortened, by what factor, and the quantile of noise that is
#: no remainder.
_SHORTENINGS, _SHORTER, _SOLVED = 20, 0.8, 0.99
#: The standard deviation of a predictor of classes beyond which they are all but certain.
_LIKELY = 3.0
#: Predictors at which a mean response with one slope counts as linear.
_STRAIGHT = np.array([-3.0, -1.0, 0.0, 0.5, 2.0])


@dataclass(frozen=True, eq=False)
class MomentEquations:
    """``target = mean k x (m(x'b) - c)`` over public rows, moved by so much to the mean of the private ones."""

    rows: Matrix
    weights: Vector
    centre: float
    target: Vector
    response: MeanResponse
    moved: Vector | None = None

    def curvature_slack(self, coef: Vector) -> Vector:
        """F(b)."""
        fitted = self.response.mean(self.rows @ coef) - self.centre
        return np.asarray(self.target - (self.weights * fitted) @ self.rows / len(self.rows))

    def slope(self, coef: Vector) -> Matrix:
        """``mean k m' x x'``."""
        return self.slope_at(self.rows @ coef)

    def slope_at(self, predictor: Vector) -> Matrix:
        """The same at these predictors."""
        curved = self.weights * self.response.slope(predictor)
        return np.asarray((self.rows * curved[:, None]).T @ self.rows / len(self.rows))

    def spread(self, coef: Vector, *, intercept: bool) -> float:
        """The standard deviation of the predictor."""
        return float(np.std(self.rows[:, int(intercept) :] @ coef[int(intercept) :]))

    def moved_by_mean(self, coef: Vector, slope: Matrix) -> Matrix:
        """By how much the right-hand side rises with each entry of the mean of the weighted rows, of shape (p, p)."""
        kept = float(np.mean(self.weights))
        left = float(self.weights @ (self.response.mean(self.rows @ coef) - self.centre)) / len(self.rows)
        turned = left * np.eye(len(coef)) + np.outer(slope[:, 0], coef)
        turned[:, 0] = 0.0
        return np.asarray(turned / kept)

    def by_mean(self, coef: Vector, slope: Matrix) -> Matrix:
        """By how much each public row changes the right-hand side through their mean, of shape (m, p)."""
        kept = float(np.mean(self.weights))
        mean = self.weights @ self.rows / (kept * len(self.rows))
        whole = self.target - self.curvature_slack(coef)
        away = self.weights[:, None] * (self.rows - mean)
        return np.asarray(away @ self.moved_by_mean(coef, slope).T + np.outer(self.weights / kept, whole))


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
    release : Score, CrossMoments or Moments
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
    population, prior = population_of(message_plan, release, facts), _labelled_prior(facts, message_plan, response)
    solved = _alone if prior is None else partial(_merged, prior=prior)
    coef, scale, slope, uncertainty = solved(population, response)
    reach = _reach(response, message_plan.space)
    return Solution(coef, slope, replace(message_plan.space, response=None), None, uncertainty, reach=reach), scale


def _reach(response: MeanResponse, space: WhitenedSpace) -> tuple[float, float]:
    """Predictors of means within the bounds to which users' responses are clipped."""
    assert space.response is not None
    lower, upper = (space.response.centre + side * space.response.scale for side in (-1, 1))
    family = exponential_family(response)
    if family is None or family.link.name == "logit":
        return ANYWHERE
    if family.link.name == "log":
        return -math.inf, math.log(upper) if upper > 0 else math.inf
    return lower, upper


_Solved = tuple[Vector, Scale, Matrix, Uncertainty]


def _merged(population: Population, response: MeanResponse, prior: CoefficientPrior) -> _Solved:
    """The fit to public labels and one step from it to the released moments, merged by inverse variances.

    Further steps follow the curve into directions that few rows show, where neither side is known.
    """
    rows, weights = population.rows, population.weights
    equations = MomentEquations(rows, weights, population.centre, population.moments.cross, response)
    fitted = response.mean(rows @ prior.mean)
    fitted = fitted - np.average(fitted, weights=weights)  # users tell their mean, whatever that of public rows
    error = min(population.error, 1 / len(rows))  # infinite where users tell the mean alone
    known = error * (rows * (weights**2 * fitted**2)[:, None]).T @ rows / len(rows)
    covariance = off_singular(population.moments.noise + known)
    slope = equations.slope(prior.mean)
    weighted = np.linalg.solve(covariance, slope)
    total = np.linalg.inv(prior.precision + slope.T @ weighted)
    gain = total @ weighted.T
    coef = prior.mean + gain @ equations.curvature_slack(prior.mean)
    privacy = gain @ population.privacy @ gain.T
    return coef, _scale(response, rows @ coef), slope, Uncertainty(np.asarray(privacy), np.asarray(total))


def _alone(population: Population, response: MeanResponse) -> _Solved:
    """The released moments by themselves: slopes are shrunk, and 0 where the noise hides them."""
    moments, gram = _within_ends(population), weighted_gram(population.rows, population.weights)
    fit = shrunk_fit(moments)
    whole = MomentEquations(population.rows, population.weights, population.centre, gram @ fit.coef, response)
    equations, coef, scale = _explained(whole, fit, moments, gram)
    slope = _slope(equations, coef, gram)
    back = np.linalg.solve(off_singular(slope), gram)
    known = moments.spread / 2 * float(fit.coef @ fit.coef) * np.eye(len(coef)) if fit.told else 0.0
    privacy = back @ fit.linear @ population.privacy @ fit.linear.T @ back.T
    total = back @ (fit.linear @ (moments.noise + known) @ fit.linear.T + fit.bias) @ back.T
    return coef, scale, slope, Uncertainty(np.asarray(privacy), np.asarray(total))


def _within_ends(population: Population) -> LinearMoments:
    """The moments with the expected mean of responses, given that it lies between their bounds.

    Noise may put a mean of counts below 0, where no rate is.
    """
    moments = population.moments
    error = math.sqrt(float(moments.noise[0, 0]))
    if not moments.intercept or error == 0:
        return moments
    low, high = (end * float(moments.gram[0, 0]) for end in population.ends)
    cross = moments.cross.copy()
    cross[0] = mean_within(float(cross[0]), error, low, high)
    return replace(moments, cross=cross)


def _slope(equations: MomentEquations, coef: Vector, gram: Matrix) -> Matrix:
    """The derivative of the equations; all but flat, as a cube at 0 or a share far from 1/2, nothing is known there."""
    slope, least = equations.slope(coef), _FLAT * equations.response.steepest(1.0) * gram
    return least if np.trace(slope) < np.trace(least) else slope


def off_singular(matrix: Matrix) -> Matrix:
    """The matrix, moved off singular ones."""
    return np.asarray(matrix + _FLAT * float(np.trace(matrix)) * np.eye(len(matrix)))


def is_straight(response: MeanResponse) -> bool:
    """Whether a mean response is linear."""
    slopes = response.slope(_STRAIGHT)
    return float(np.ptp(slopes)) == 0 and bool(slopes[0] != 0)


def _explained(
    equations: MomentEquations, fit: ShrunkFit, moments: LinearMoments, gram: Matrix
) -> tuple[MomentEquations, Vector, Scale]:
    """The equations of a shrunk linear fit, their solution, and Stein's constant.

    A curved mean between bounds explains less than slopes may: where the equations cannot be solved, noise made the
    slopes too long, and they are shortened until it can explain them. So are those of classes that would be all but
    certain, as far as noise may have made them that long.
    """
    linear, covariance = fit.coef, off_singular(moments.noise)
    classes = exponential_family(equations.response) == BinomialFamily
    start, scale, spread = _stein_start(equations, linear, moments.intercept)
    if not fit.told:
        return equations, start, scale
    most = float(chi2.ppf(_SOLVED, len(start)))

    def is_noise(away: Vector) -> bool:
        return float(away @ np.linalg.solve(covariance, away)) <= most

    for _ in range(_SHORTENINGS):
        flat = np.full(len(start), 1 / max(spread, 1e-300))
        if moments.intercept:
            flat[0] = _FLAT
        coef = solve_equations(equations, covariance, CoefficientPrior(start, np.diag(flat)), start)
        shorter = _SHORTER * linear
        if moments.intercept:  # the mean stays as it was told
            shorter[0] += (1 / _SHORTER - 1) * float(gram[0] @ shorter) / gram[0, 0]
        certain = classes and equations.spread(coef, intercept=moments.intercept) > _LIKELY
        if is_noise(equations.curvature_slack(coef)) and not (certain and is_noise(gram @ (fit.coef - shorter))):
            break
        linear, equations = shorter, replace(equations, target=gram @ shorter)
        start, _, spread = _stein_start(equations, linear, moments.intercept)
    return equations, coef, scale


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
    """A shrunk fit to labelled public rows, where there are 30, and twice the columns but of linear models."""
    labels, space = facts.trusted_labels, message_plan.space
    if not has_labels(facts) or labels is None or facts.public is None or facts.public.rows is None:
        return None
    if is_straight(response) and float(response.slope(np.zeros(1))[0]) == 1:
        told = told_by_labels(space, facts.public.rows, labels)
        return CoefficientPrior(told.coef, definite_inverse(told.covariance, _DIGITS))
    if not has_prior(facts):
        return None
    family = exponential_family(response)
    if family is not None:
        known = fit_public(facts.public, space, family)
        return CoefficientPrior(known.coef, known.precision)
    return _curved_prior(facts.public.rows, labels, space, response)


def _curved_prior(public: Matrix, labels: Vector, space: WhitenedSpace, response: MeanResponse) -> CoefficientPrior:
    """The same shrunk fit that released moments have, to public rows: for mean responses that are no family's."""
    rows = space.whiten(public)
    m, centre, ones = len(labels), float(np.mean(labels)), np.ones(len(labels))
    gram, cross = weighted_gram(rows, ones), np.asarray((labels - centre) @ rows / m)
    left = labels - centre - rows @ np.linalg.solve(off_singular(gram), cross)
    noise = (rows * (left**2)[:, None]).T @ rows / (m * max(m - space.order, 1))
    moments = LinearMoments(gram, cross, noise, 0.0, 0.0, float(np.var(labels)), space.intercept)
    fit = shrunk_fit(moments)
    whole = MomentEquations(rows, ones, centre, gram @ fit.coef, response)
    equations, coef, _ = _explained(whole, fit, moments, gram)
    back = np.linalg.solve(off_singular(_slope(equations, coef, gram)), gram)
    spread = back @ (fit.linear @ noise @ fit.linear.T + fit.bias) @ back.T
    return CoefficientPrior(coef, np.asarray(np.linalg.inv(off_singular((spread + spread.T) / 2)), dtype=np.float64))


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
