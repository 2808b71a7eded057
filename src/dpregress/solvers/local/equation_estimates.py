r"""Estimates for inference from a released cross moment: the root of the score equations, neither shrunk nor merged.

The estimate solves ``F(b) = T - mean k x~ (m(x~'b) - c) = 0`` over m public rows. With S the slope of that mean, three
independent errors move it:

* the privacy noise of T, whose covariance is known: ``S^{-1} Cov S^{-1}``;
* the sampling of the n users in T, bounded by the range of the response;
* the sampling of the m public rows, by the jackknife, which also corrects the bias of order ``1/m``.

The curvature of the mean response adds a bias of second order, ``-S^{-1} mean k x~ m'' (x~'V x~) / 2``, which is
corrected. No unique root, or an error beyond the reach of these expansions, gives no estimates.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import eigen, sandwich
from dpregress.models.mean_responses import MeanResponse
from dpregress.public.facts import PublicFacts
from dpregress.releases import Moments, Release
from dpregress.solvers.base import Solution, Unshrunk
from dpregress.solvers.local.message_plan import MessagePlan, asks_for_the_mean, equation_weights
from dpregress.solvers.local.moment_matching import (
    CoefficientPrior,
    MomentEquations,
    cross_variances,
    is_straight,
    off_singular,
    solve_equations,
    weighted_gram,
)

#: Public rows for each coefficient, below which the jackknife is not to be trusted.
_ROWS_A_COEFFICIENT = 5
#: Public rows that tell of a coefficient by their leverage; with fewer it is not identified.
_FEWEST = 10.0
#: The precision of a prior beside that of the equations: it decides where they leave a direction open.
_FAINT = 1e-9
#: The largest square of the equations' remainder, in variances, at which they count as solved.
_SOLVED = 1e-4
#: The largest mean squared error of predictors for which curved means are expanded.
_REACH = 1.0
#: Half the distance over which slopes are differenced.
_SHORT = 1e-4
#: The standard deviation of what a model misses of the mean response, in those of the residuals: a convention.
_MISSED = 0.1
#: A public row with this share of the leverage in a direction is alone in it.
_ALONE = 1 - 1e-6


def equation_estimates(
    message_plan: MessagePlan, release: Release, facts: PublicFacts, response: MeanResponse, start: Vector
) -> Solution | None:
    """The unshrunk root of the released equations with its covariances, if public rows are given and it exists.

    Parameters
    ----------
    message_plan : MessagePlan
    release : Score or Moments
    facts : PublicFacts
        Labels of public rows are not used.
    response : MeanResponse
    start : ndarray of shape (p,)
        Coefficients from which the root is searched.
    """
    public, space = facts.public, message_plan.space
    if public is None or public.rows is None or public.n < _ROWS_A_COEFFICIENT * space.order:
        return None
    if asks_for_the_mean(facts, message_plan.query):
        return None
    assert space.response is not None
    half, rows = space.response.scale, space.whiten(public.rows)
    weights = equation_weights(space, rows)
    privacy, sampling = (half**2 * each for each in cross_variances(release, weighted_gram(rows, weights**2)))
    moment = half * (release.cross if isinstance(release, Moments) else release.mean)
    equations = MomentEquations(rows, weights, space.response.centre, moment, response)
    try:
        with np.errstate(all="ignore"):  # whatever was released, there is an answer
            found = _expanded(equations, privacy, sampling, space, start)
    except np.linalg.LinAlgError:
        return None
    return None if found is None else Solution(start, privacy, replace(space, response=None), None, unshrunk=found)


def _expanded(
    equations: MomentEquations, privacy: Matrix, sampling: Matrix, space: WhitenedSpace, start: Vector
) -> Unshrunk | None:
    """The root with the expansions of its errors, where they hold."""
    assert space.response is not None
    rows, weights = equations.rows, equations.weights
    coef = _root(equations, off_singular(privacy + sampling), start)
    if coef is None:
        return None
    slope = _regular(equations.slope(coef))
    noise, users = (sandwich(slope, part) for part in (privacy, sampling))
    if not is_straight(equations.response):
        squares = np.einsum("ij,jk,ik->i", rows, noise + users, rows)
        if not float(np.mean(squares)) <= _REACH:
            return None
        bent = weights * _bend(equations.response, rows @ coef) * squares
        coef = coef + np.linalg.solve(slope, bent @ rows) / (2 * len(rows))
    bias, public = jackknife(equations, coef, slope)
    residual = _residual_variance(equations, space.response.scale, coef)
    found = Unshrunk(
        coef=coef - bias,
        sampling=users + public,
        privacy=noise,
        unidentified=_rarely_seen(space, equations, slope, coef),
        shift=_MISSED**2 * residual * sandwich(slope, weighted_gram(rows, (1 - weights) ** 2)),
        df=np.inf,
        cov_type="model",
        dispersion=None,
        gram=weighted_gram(rows, np.ones(len(rows))),
    )
    numbers = (found.coef, found.sampling, found.privacy, found.unidentified, found.shift)
    return found if all(np.isfinite(each).all() for each in numbers) else None


def _root(equations: MomentEquations, covariance: Matrix, start: Vector) -> Vector | None:
    """Coefficients that solve the equations wherever public rows vary; None if there are none."""
    slope = equations.slope(start)
    faint = _FAINT * float(np.trace(slope.T @ np.linalg.solve(covariance, slope))) / len(start)
    if not np.isfinite(faint):
        return None
    prior = CoefficientPrior(start, max(faint, 1e-300) * np.eye(len(start)))
    coef = solve_equations(equations, covariance, prior, start)
    values, vectors = eigen(weighted_gram(equations.rows, equations.weights))
    seen = vectors[:, values > _FAINT * values[-1]]
    left = seen.T @ equations.curvature_slack(coef)
    error = np.einsum("ij,ik,kj->j", seen, covariance, seen)
    return coef if bool(np.all(left**2 <= _SOLVED * error)) else None


def _regular(slope: Matrix) -> Matrix:
    """The slope, which may be negative, with the eigenvalues of directions without public rows moved off 0."""
    values, vectors = eigen(slope)
    least = _FAINT * float(np.abs(values).max())
    return np.asarray((vectors * np.where(np.abs(values) < least, least, values)) @ vectors.T)


def _bend(response: MeanResponse, predictor: Vector) -> Vector:
    """``m''``."""
    return np.asarray((response.slope(predictor + _SHORT) - response.slope(predictor - _SHORT)) / (2 * _SHORT))


def jackknife(equations: MomentEquations, coef: Vector, slope: Matrix) -> tuple[Vector, Matrix]:
    """The bias and the covariance that the sampling of public rows causes, with one step for each row left out.

    References
    ----------
    Quenouille (1956), Tukey (1958); MacKinnon, White (1985) for its use with leverages.
    """
    m, predictor = len(equations.rows), equations.rows @ coef
    term = equations.rows * (equations.weights * (equations.response.mean(predictor) - equations.centre))[:, None]
    inverse = np.linalg.inv(slope)
    curved = equations.weights * equations.response.slope(predictor)
    away = (term - term.mean(axis=0)) @ inverse
    lever = equations.rows @ inverse
    along = np.einsum("ij,ij->i", lever, equations.rows) * curved
    gain = curved * np.einsum("ij,ij->i", equations.rows, away) / (m - np.minimum(along, m * _ALONE))
    moves = (away + lever * gain[:, None]) / m
    centred = moves - moves.mean(axis=0)
    return np.asarray((m - 1) * moves.mean(axis=0)), np.asarray((m - 1) / m * centred.T @ centred)


def _rarely_seen(space: WhitenedSpace, equations: MomentEquations, slope: Matrix, coef: Vector) -> Matrix:
    """Directions of coefficients about which only few public rows tell; other coefficients do not lie along them."""
    curved = equations.weights * equations.response.slope(equations.rows @ coef)
    lever = (equations.rows * np.sqrt(np.abs(curved))[:, None]) @ np.linalg.inv(slope) @ space.whitening
    squares, fourths = np.sum(lever**2, axis=0), np.sum(lever**4, axis=0)
    few = squares**2 < _FEWEST * np.maximum(fourths, 1e-300)
    size = np.sqrt(np.sum(space.whitening**2, axis=0))
    along = (np.linalg.inv(space.whitening.T) * size)[:, few]
    return np.asarray(along @ along.T)


def _residual_variance(equations: MomentEquations, half: float, coef: Vector) -> float:
    """Of responses between 0 and 1 the binomial one, of others their largest."""
    if (equations.centre, half) != (0.5, 0.5):
        return half**2
    mean = np.clip(equations.response.mean(equations.rows @ coef), 0, 1)
    return float(np.mean(mean * (1 - mean)))
