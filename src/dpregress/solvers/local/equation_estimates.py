r"""Estimates for inference from a released cross moment: the root of the score equations, neither shrunk nor merged.

The estimate solves ``F(b) = T - mean k x~ (m(x~'b) - c) = 0`` over m public rows. With S the slope of that mean, three
independent errors move it:

* the privacy noise of T, whose covariance is known: ``S^{-1} Cov S^{-1}``;
* the sampling of the n users in T, bounded by the range of the response;
* the sampling of the m public rows, by the jackknife, which also corrects the bias of order ``1/m``.

Where users told the mean of their rows, public rows are moved to it: its noise is part of the first, and the jackknife
leaves out what a row adds to the mean of public rows.

The curvature of the mean response adds a bias of second order, ``-S^{-1} mean k x~ m'' (x~'V x~) / 2``, which is
corrected. No unique root, or an error beyond the reach of these expansions, gives no estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.coordinates.matrices import eigen, sandwich
from dpregress.models.mean_responses import MeanResponse
from dpregress.public.facts import PublicFacts
from dpregress.releases import Release, UnitMessages
from dpregress.solvers.base import Solution, Unshrunk
from dpregress.solvers.local.message_plan import MessagePlan, asks_for_the_mean, equation_weights, weighted_gram
from dpregress.solvers.local.moment_matching import (
    CoefficientPrior,
    MomentEquations,
    is_straight,
    off_singular,
    solve_equations,
)
from dpregress.solvers.local.population import moved_rows, sampling
from dpregress.solvers.local.reading import told_cross, told_mean, uncentred

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
    release : Score, CrossMoments or Moments
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
    equations, noise = told_equations(space, release, space.whiten(public.rows), response)
    try:
        with np.errstate(all="ignore"):  # whatever was released, there is an answer
            found = _expanded(equations, noise, space, start)
    except np.linalg.LinAlgError:
        return None
    if found is None:
        return None
    return Solution(start, found.privacy, replace(space, response=None), None, unshrunk=found)


@dataclass(frozen=True, eq=False)
class EquationNoise:
    """The errors of the equations' target, and of the mean to which public rows were moved.

    Attributes
    ----------
    target : ndarray of shape (p, p)
        The covariance of the target by messages.
    leaning : ndarray of shape (p,)
        By how much it falls as the mean of the rows rises.
    mean : ndarray of shape (p,) or None
        Variances of that mean; None where public rows are as they are.
    private : float
        The share of all this that is privacy noise.
    sampling : ndarray of shape (p, p)
        Of users, beside it.
    """

    target: Matrix
    leaning: Vector
    mean: Vector | None
    private: float
    sampling: Matrix

    @property
    def first(self) -> Matrix:
        """The covariance of the target alone."""
        return self.target + self.sampling

    def at(self, equations: MomentEquations, coef: Vector, slope: Matrix) -> Matrix:
        """The covariance of the remainder by messages, at these coefficients."""
        if self.mean is None:
            return self.target
        turned = np.diag(self.leaning) + equations.moved_by_mean(coef, slope)
        return np.asarray(self.target + (turned * self.mean) @ turned.T)


def told_equations(
    space: WhitenedSpace, release: Release, rows: Matrix, response: MeanResponse
) -> tuple[MomentEquations, EquationNoise]:
    """The score equations over public rows that have the mean that users told, and their errors, not shrunk.

    Parameters
    ----------
    space : WhitenedSpace
        Of the messages.
    release : Score, CrossMoments or Moments
    rows : ndarray of shape (m, p)
        Whitened public rows, or rows that stand for them.
    response : MeanResponse
    """
    assert space.response is not None
    half = space.response.scale
    weights = equation_weights(space, rows)
    mean, moved = told_mean(release) if space.intercept else None, None
    if mean is not None:
        there, weights = moved_rows(rows, weights, mean.mean)
        rows, moved = there, there[0] - rows[0]
    told = uncentred(release) if mean is None else told_cross(release, mean, shrunk=False)
    noise = EquationNoise(
        half**2 * np.diag(told.noise),
        half * told.leaning,
        None if mean is None else mean.variance,
        release.noise.private if isinstance(release.noise, UnitMessages) else 1.0,
        half**2 * sampling(release, rows, weights),
    )
    centre = space.response.centre + half * told.centre
    return MomentEquations(rows, weights, centre, half * told.cross, response, moved), noise


def _expanded(equations: MomentEquations, noise: EquationNoise, space: WhitenedSpace, start: Vector) -> Unshrunk | None:
    """The root with the expansions of its errors, where they hold."""
    assert space.response is not None
    rows, weights = equations.rows, equations.weights
    coef = _root(equations, off_singular(noise.first), start)
    if coef is None:
        return None
    slope = _regular(equations.slope(coef))
    messages = sandwich(slope, noise.at(equations, coef, slope))
    privacy = noise.private * messages
    users = (1 - noise.private) * messages + sandwich(slope, noise.sampling)
    if not is_straight(equations.response):
        squares = np.einsum("ij,jk,ik->i", rows, privacy + users, rows)
        if not float(np.mean(squares)) <= _REACH:
            return None
        bent = weights * _bend(equations.response, rows @ coef) * squares
        coef = coef + np.linalg.solve(slope, bent @ rows) / (2 * len(rows))
    bias, public = jackknife(equations, coef, slope)
    residual = _residual_variance(equations, space.response, coef)
    found = Unshrunk(
        coef=coef - bias,
        sampling=users + public,
        privacy=privacy,
        unidentified=_rarely_seen(space, equations, coef),
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
    if equations.moved is not None:  # what a row adds to the mean of public rows is taken from all of them
        term = term - equations.by_mean(coef, slope)
    away = (term - term.mean(axis=0)) @ inverse
    lever = equations.rows @ inverse
    along = np.einsum("ij,ij->i", lever, equations.rows) * curved
    gain = curved * np.einsum("ij,ij->i", equations.rows, away) / (m - np.minimum(along, m * _ALONE))
    moves = (away + lever * gain[:, None]) / m
    centred = moves - moves.mean(axis=0)
    return np.asarray((m - 1) * moves.mean(axis=0)), np.asarray((m - 1) / m * centred.T @ centred)


def _rarely_seen(space: WhitenedSpace, equations: MomentEquations, coef: Vector) -> Matrix:
    """Directions of coefficients about which only few public rows tell; other coefficients do not lie along them."""
    rows = equations.rows - (0.0 if equations.moved is None else equations.moved)  # a level that none has is 0
    slope = _regular(replace(equations, rows=rows).slope_at(equations.rows @ coef))
    curved = equations.weights * equations.response.slope(equations.rows @ coef)
    lever = (rows * np.sqrt(np.abs(curved))[:, None]) @ np.linalg.inv(slope) @ space.whitening
    squares, fourths = np.sum(lever**2, axis=0), np.sum(lever**4, axis=0)
    few = squares**2 < _FEWEST * np.maximum(fourths, 1e-300)
    size = np.sqrt(np.sum(space.whitening**2, axis=0))
    along = (np.linalg.inv(space.whitening.T) * size)[:, few]
    return np.asarray(along @ along.T)


def _residual_variance(equations: MomentEquations, response: ResponseScale, coef: Vector) -> float:
    """Of responses between 0 and 1 the binomial one, of others their largest."""
    half = response.scale
    if (response.centre, half) != (0.5, 0.5):
        return half**2
    mean = np.clip(equations.response.mean(equations.rows @ coef), 0, 1)
    return float(np.mean(mean * (1 - mean)))
