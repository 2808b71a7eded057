r"""Coefficients that explain all released scores at once: Bayesian least squares on the surrogate model.

A score released at ``b_t`` is ``g_t = D_t(b*) + noise``, with b* the private rows' optimum and ``D_t(b)`` the change of
the expected score from ``b_t`` to b, which surrogate rows tell. All scores together, and what is known before them,
give b* by nonlinear least squares,

.. math:: \sum_t |g_t - D_t(b)|^2 / (\sigma_t^2 + e_t(b)) + (b - b_0)' P_0 (b - b_0),

where e_t is what the surrogate model may be wrong by on the way from ``b_t``: old scores, released far away, count
less. Everything here is post-processing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import symmetric_power

#: Gauss-Newton steps, how often each is halved, and the share of the objective below which they end.
_STEPS, _HALVINGS, _TOLERANCE = 25, 10, 1e-9
#: Share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-13


class Released(ABC):
    """Released numbers, k of them, with the surrogate model's account of them. Coefficients have shape (q,)."""

    value: Vector
    variance: float

    @abstractmethod
    def change(self, coef: Vector) -> Vector:
        """How what is expected of them changes from where they were asked to ``coef``, of shape (k,)."""

    @abstractmethod
    def slope(self, coef: Vector) -> Matrix:
        """The derivative of :meth:`change`, of shape (k, q)."""

    @abstractmethod
    def error(self, coef: Vector) -> float:
        """The variance, of an entry, of what the surrogate model may be wrong by in the change to ``coef``."""


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the coefficients before any score: a mean and a precision."""

    coef: Vector
    precision: Matrix


@dataclass(frozen=True, eq=False)
class Explained:
    """The coefficients, the precision of scores and of all, and the covariance of the noise in them."""

    coef: Vector
    scores: Matrix
    precision: Matrix
    privacy: Matrix

    @property
    def covariance(self) -> Matrix:
        """Of the private rows' optimum, given what was released."""
        return inverse(self.precision)


#: From what the scores say alone, as a mean and a precision, to what is known before them.
Before = Callable[[Vector, Matrix], Known]


def explain(scores: Sequence[Released], before: Before, start: Vector) -> Explained:
    """The coefficients that explain the scores best, with what is known before.

    Parameters
    ----------
    scores : sequence of Released
        At least one.
    before : callable
        Called with the likelihood of the scores, linearised: an empirical prior looks at it.
    start : ndarray of shape (q,)
        Where to begin.
    """
    weights = [1 / max(score.variance + score.error(start), 1e-300) for score in scores]
    coef, told = _likelihood(scores, weights, start)
    known = before(coef, told)
    coef = _descended(scores, weights, known, start)
    weights = [1 / max(score.variance + score.error(coef), 1e-300) for score in scores]
    known = before(*_likelihood(scores, weights, coef))
    slopes = [score.slope(coef) for score in scores]
    told = np.asarray(sum(weight * slope.T @ slope for weight, slope in zip(weights, slopes, strict=True)))
    precision = told + known.precision
    gains = [inverse(precision) @ (weight * slope.T) for weight, slope in zip(weights, slopes, strict=True)]
    privacy = sum(score.variance * gain @ gain.T for score, gain in zip(scores, gains, strict=True))
    return Explained(coef, told, precision, np.asarray(privacy))


def inverse(matrix: Matrix) -> Matrix:
    """Of a covariance or a precision, however far apart its eigenvalues are."""
    return symmetric_power(matrix, -1.0, smallest=max(_DIGITS * float(np.trace(matrix)), 1e-300))


def _likelihood(scores: Sequence[Released], weights: Sequence[float], coef: Vector) -> tuple[Vector, Matrix]:
    """Mean and precision of the coefficients by the scores alone, linearised at ``coef``."""
    pull, told = np.zeros(len(coef)), np.zeros((len(coef), len(coef)))
    for score, weight in zip(scores, weights, strict=True):
        slope = score.slope(coef)
        pull += weight * slope.T @ (score.value - score.change(coef))
        told += weight * slope.T @ slope
    return coef + inverse(told) @ pull, told


def _descended(scores: Sequence[Released], weights: Sequence[float], known: Known, coef: Vector) -> Vector:
    """Gauss-Newton steps down the objective, halved where they climb."""

    def objective(at: Vector) -> float:
        away = at - known.coef
        misfit = sum(
            weight * float(np.sum((score.value - score.change(at)) ** 2))
            for score, weight in zip(scores, weights, strict=True)
        )
        return float(misfit + away @ known.precision @ away)

    best = objective(coef)
    for _ in range(_STEPS):
        pull, told = -known.precision @ (coef - known.coef), known.precision.copy()
        for score, weight in zip(scores, weights, strict=True):
            slope = score.slope(coef)
            pull += weight * slope.T @ (score.value - score.change(coef))
            told += weight * slope.T @ slope
        way = inverse(told) @ pull
        tried = ((coef + share * way, share) for share in 0.5 ** np.arange(_HALVINGS))
        found = next(((at, value) for at, _ in tried if (value := objective(at)) < best), None)
        if found is None:
            break
        coef, gained = found[0], best - found[1]
        best = found[1]
        if gained <= _TOLERANCE * abs(best):
            break
    return coef


def shrunk(told: Vector, scores: Matrix, at: Vector, slopes: Matrix, variance: float) -> Matrix:
    r"""The precision of slopes before the scores, by empirical Bayes on what the scores say.

    Slopes are ``N(at, tau I)`` with log tau uniform from far below to all the ``variance`` of a predictor; the answer
    is the precision whose gains are the posterior mean gains, in the principal directions of the noise.

    Parameters
    ----------
    told : ndarray of shape (q,)
        What the scores say alone.
    scores : ndarray of shape (q, q)
        Their precision.
    at : ndarray of shape (q,)
        Where slopes are without them.
    slopes : ndarray of shape (q, q)
        The projection on slopes.
    variance : float
        The most that predictors vary by.
    """
    values, vectors = np.linalg.eigh(slopes @ inverse(scores) @ slopes)
    rank = round(float(np.trace(slopes)))
    noise, axes = np.maximum(values[-rank:], 1e-300), vectors[:, -rank:]
    squares = (axes.T @ (told - at)) ** 2
    tau = variance / rank * np.logspace(-_DECADES, 0, _GRID)
    total = tau[:, None] + noise
    likelihood = -0.5 * np.sum(np.log(total) + squares / total, axis=1)
    weight = np.exp(likelihood - likelihood.max())
    gain = (weight / weight.sum()) @ (tau[:, None] / total)
    return np.asarray((axes * ((1 - gain) / np.maximum(gain, 1e-12) / noise)) @ axes.T)


#: Grid of the variance of a slope: so many points over so many decades below the most.
_GRID, _DECADES = 60, 5.0
