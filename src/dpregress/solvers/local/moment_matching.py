r"""Coefficients from a released cross moment: the score equations, with public rows in place of the private ones.

A study releases ``T = E[k x~ (y - c)]`` with known noise, k the row weights. For a mean response m the
coefficients solve ``F(b) = T - mean k x~ (m(x~'b) - c) = 0`` over public rows, whatever the weights, and for normal
rows this is Stein's constant times least squares, which is where the search starts. What is solved is

    minimise  F(b)' V^{-1} F(b) + (b - b0)' Q (b - b0),

V the covariance of F from privacy noise, sampling and the number of public rows. The prior (b0, Q) is a fit to
labelled public rows, else no slopes at all with the variance that the released moment shows (empirical Bayes).
Everything is post-processing: other mean responses cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import sandwich, symmetric_power
from dpregress.errors import InvalidInput
from dpregress.models.mean_responses import MeanResponse
from dpregress.public.facts import PublicFacts
from dpregress.queries import SecondMoment
from dpregress.releases import Isotropic, Moments, Release, UnitMessages
from dpregress.solvers.base import Solution, Uncertainty
from dpregress.solvers.local.message_plan import MessagePlan, equation_weights, gram_error, public_rows
from dpregress.solvers.shared.repair import floored, gram_floor
from dpregress.solvers.shared.stein import Scale, stein_scale

_STEPS = 100
#: The largest change of a predictor in one step.
_LONGEST = 3.0
#: The smallest variance of the signal, as a share of the squared released slopes.
_LEAST_SIGNAL = 0.05
_FLAT = 1e-9


@dataclass(frozen=True, eq=False)
class _Equations:
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
class _Prior:
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
    space = message_plan.space
    assert space.response is not None
    half, centre = space.response.scale, space.response.centre
    rows, weights, moment, shrunk = _rows_and_moment(message_plan, release, facts)
    equations = _Equations(rows, weights, centre, half * moment, response)

    outer = (rows * (weights**2)[:, None]).T @ rows / len(rows)
    noise, sampling = _variances(release, outer)
    noise, sampling = half**2 * noise, half**2 * sampling
    start, scale, spread = _stein_start(equations, noise + sampling, space.intercept)
    fitted = response.mean(rows @ start) - centre
    known = shrunk * (rows * (weights**2 * fitted**2)[:, None]).T @ rows / len(rows)
    covariance = noise + sampling + known + _FLAT * np.trace(noise + sampling + known) * np.eye(len(noise))

    prior = _labelled_prior(facts, message_plan, response)
    if prior is None:
        flat = np.full(space.order, 1 / max(spread, 1e-12))
        if space.intercept:
            flat[0] = _FLAT
        prior = _Prior(np.zeros(space.order), np.diag(flat))
    elif not scale.root:
        start = prior.mean
    coef = _solve(equations, covariance, prior, start)
    slope = equations.slope(coef)
    weighted = np.linalg.solve(covariance, slope)
    total = np.linalg.inv(prior.precision + slope.T @ weighted)
    gain = total @ weighted.T
    uncertainty = Uncertainty(np.asarray(gain @ noise @ gain.T), np.asarray(total))
    return Solution(coef, slope, replace(space, response=None), None, uncertainty), scale


def _rows_and_moment(
    message_plan: MessagePlan, release: Release, facts: PublicFacts
) -> tuple[Matrix, Vector, Vector, float]:
    """Public rows, recoloured where users sent a Gram matrix, their weights, ``E k x y~`` and the rows' variance."""
    space = message_plan.space
    rows = public_rows(facts, space)
    weights = equation_weights(space, rows)
    gram = (rows * weights[:, None]).T @ rows / len(rows)
    error = gram_error(facts, message_plan.query, message_plan.spend, float(np.trace(gram)) / len(gram))
    if not isinstance(release, Moments):
        return rows, weights, release.mean, error
    assert isinstance(message_plan.query, SecondMoment)
    share = 0.0 if facts.public is None else facts.public.n * error
    mixed = floored(share * gram + (1 - share) * release.gram, gram_floor(release))
    rows = rows @ symmetric_power(gram, -0.5, smallest=1e-6) @ symmetric_power(mixed, 0.5)
    return rows, weights, release.cross, error


def _variances(release: Release, outer: Matrix) -> tuple[Matrix, Matrix]:
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


def _stein_start(equations: _Equations, covariance: Matrix, intercept: bool) -> tuple[Vector, Scale, float]:
    """Stein's constant times least squares, shortened by the noise; and the variance of a slope that remains."""
    gram = (equations.rows * equations.weights[:, None]).T @ equations.rows / len(equations.rows)
    ordinary = np.linalg.solve(gram, equations.target)
    slopes = slice(1, None) if intercept else slice(None)
    size = float(ordinary[slopes] @ ordinary[slopes])
    noise = float(np.trace(sandwich(gram, covariance)[slopes, slopes]))
    signal = max(size - noise, _LEAST_SIGNAL * size)
    direction = ordinary[slopes] * math.sqrt(signal / max(size, 1e-300))
    along = equations.rows[:, slopes] @ direction

    def level(predictor: Vector) -> float:
        return _intercept(equations, predictor) if intercept else 0.0

    scale = stein_scale(lambda z: equations.response.slope(z + level(z)), along)
    coef = np.zeros(len(ordinary))
    coef[slopes] = scale.value * math.sqrt(signal / max(size, 1e-300)) * direction
    if intercept:
        coef[0] = level(equations.rows[:, slopes] @ coef[slopes])
    return coef, scale, scale.value**2 * signal / max(len(direction), 1)


def _intercept(equations: _Equations, predictor: Vector) -> float:
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


def _labelled_prior(facts: PublicFacts, message_plan: MessagePlan, response: MeanResponse) -> _Prior | None:
    """A fit to labelled public rows, where there are 30 and twice the columns: its solution and covariance."""
    labels, space = facts.trusted_labels, message_plan.space
    if labels is None or facts.public is None or facts.public.rows is None or len(labels) < 2 * space.order:
        return None
    rows = space.whiten(facts.public.rows)
    m, centre = len(labels), float(np.mean(labels))
    target = (labels - centre) @ rows / m
    equations = _Equations(rows, np.ones(m), centre, np.asarray(target), response)
    moved = (rows * ((labels - centre) ** 2)[:, None]).T @ rows / m**2
    start, _, _ = _stein_start(equations, moved, space.intercept)
    identity = np.eye(space.order)
    covariance = moved + _FLAT * np.trace(moved) * identity
    coef = _solve(equations, covariance, _Prior(np.zeros(space.order), identity / 100), start)
    residual = labels - response.mean(rows @ coef)
    freedom = max(m - space.order, 1)
    slope = equations.slope(coef)
    left = (rows * (residual**2)[:, None]).T @ rows / (m * freedom)
    weighted = np.linalg.solve(left + _FLAT * np.trace(left) * identity, slope)
    return _Prior(coef, np.asarray(slope.T @ weighted + identity / 100))


def _solve(equations: _Equations, covariance: Matrix, prior: _Prior, start: Vector) -> Vector:
    """Damped Gauss-Newton steps that never increase the sum of squares."""
    inverse = np.linalg.inv(covariance)

    def loss(coef: Vector) -> float:
        curvature_slack, away = equations.curvature_slack(coef), coef - prior.mean
        found = float(curvature_slack @ inverse @ curvature_slack + away @ prior.precision @ away)
        return found if math.isfinite(found) else math.inf

    coef, best = start, loss(start)
    for _ in range(_STEPS):
        slope = equations.slope(coef)
        system = prior.precision + slope.T @ inverse @ slope
        downhill = slope.T @ inverse @ equations.curvature_slack(coef) - prior.precision @ (coef - prior.mean)
        step = np.linalg.solve(system, downhill)
        step *= min(1.0, _LONGEST / max(float(np.abs(equations.rows @ step).max()), 1e-300))
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
