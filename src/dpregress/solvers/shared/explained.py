r"""Coefficients that explain all released scores at once: Bayesian least squares on the surrogate model.

A score released at ``b_t`` is ``g_t = D_t(b*) + noise``, with b* the private rows' optimum and ``D_t(b)`` the change of
the expected score from ``b_t`` to b, an average over surrogate rows. All scores together, and the prior knowledge,
determine b* by nonlinear least squares,

.. math:: \sum_t |g_t - D_t(b)|^2 / (\sigma_t^2 + e_t(b)) + (b - b_0)' P_0 (b - b_0),

where e_t is the variance of the surrogate model's error between ``b_t`` and b: scores released far away count less.
Everything here is post-processing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import definite_inverse
from dpregress.solvers.shared.posterior import Step
from dpregress.solvers.shared.slope_shapes import SizedShape, Told, slopes_basis

#: Gauss-Newton steps, how often each is halved, the relative length below which they end, and that below which the
#: objective is too flat to tell whether they climb.
_STEPS, _HALVINGS, _TOLERANCE, _SHORT = 50, 10, 1e-13, 1e-5
#: A move that keeps this share of its length was not shortened.
_WHOLE = 1 - 1e-9
#: Share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-13
#: A step whose square is no number is none.
_LONGEST = 1e150
#: Grid of the variance of a slope: so many points over so many decades below the most.
_GRID, _DECADES = 60, 5.0


#: Shortens a move to the longest step allowed.
Limited = Callable[[Vector], Vector]


class Evidence(ABC):
    """Released numbers, k of them, with the surrogate model's account of them. Coefficients have shape (q,)."""

    value: Vector
    variance: float
    #: The standard deviation of what all evidence misses of its changes in common, as a share of them.
    doubted: float = 0.0

    @abstractmethod
    def change(self, coef: Vector) -> Vector:
        """The change of their expected value from the coefficients of the query to ``coef``, of shape (k,)."""

    @abstractmethod
    def slope(self, coef: Vector) -> Matrix:
        """The derivative of :meth:`change`, of shape (k, q)."""

    @abstractmethod
    def error(self, coef: Vector) -> float:
        """The variance, per entry, of the surrogate model's error in the change to ``coef``."""


class Known(NamedTuple):
    """A normal distribution: mean and precision."""

    mean: Vector
    precision: Matrix


class Prior(ABC):
    """A prior for the coefficients, which scores may say more of; ``coef`` is where the first one is asked."""

    coef: Vector

    @abstractmethod
    def known(self, told: Vector, scores: Matrix) -> Known:
        """The distribution, given the estimate ``told`` from the scores and its precision, of shape (q, q)."""

    def after(self, step: Step, sampling: Matrix) -> Prior:  # noqa: ARG002  # whatever they are
        """What is known after the first step, of the private rows' optimum with this sampling covariance."""
        return self


@dataclass(frozen=True, eq=False)
class FixedPrior(Prior):
    """Coefficients and a precision, whatever the scores say."""

    coef: Vector
    precision: Matrix

    def known(self, told: Vector, scores: Matrix) -> Known:  # noqa: ARG002
        return Known(self.coef, self.precision)


@dataclass(frozen=True, eq=False)
class SlopesPrior(Prior):
    r"""An empirical Bayes prior with slopes around 0, whose shape and size are estimated from the scores.

    Slopes are ``N(0, tau T^{-1})`` with one of several shapes T (:mod:`.slope_shapes`) and log tau uniform over five
    decades, up to the ``variance`` of a predictor; beyond a likely one its density falls as one over it. The precision
    is the one with the posterior mean gain.

    Attributes
    ----------
    coef : ndarray of shape (q,)
        With an intercept alone.
    intercept : ndarray of shape (q, q)
        The precision of the intercept.
    shapes : tuple of ndarray of shape (q, q)
        The first is the projection on slopes.
    variance : float
        The largest variance of a predictor.
    likely : float, optional
        The likely one.
    """

    coef: Vector
    intercept: Matrix
    shapes: tuple[Matrix, ...]
    variance: float
    likely: float = math.inf

    @cached_property
    def _basis(self) -> Matrix:
        return slopes_basis(self.shapes[0])

    @cached_property
    def _sizes(self) -> tuple[SizedShape, ...]:
        variance, slopes = self.variance * np.logspace(-_DECADES, 0, _GRID), max(self._basis.shape[1], 1)
        tau, before = variance / slopes, -np.log1p(variance / self.likely)
        return tuple(SizedShape(self._basis.T @ shape @ self._basis, tau, before) for shape in self.shapes)

    def known(self, told: Vector, scores: Matrix) -> Known:
        basis = self._basis
        slopes = Told(basis.T @ (told - self.coef), basis.T @ definite_inverse(scores, _DIGITS) @ basis)
        inner = slopes.precision([slopes.after(sizes) for sizes in self._sizes])
        return Known(self.coef, np.asarray(basis @ inner @ basis.T) + self.intercept)


@dataclass(frozen=True, eq=False)
class Explained:
    """The coefficients, their covariance as an estimate of the private rows' optimum, and that of the noise in them.

    ``told`` is their precision by the scores alone, and ``doubt`` one standard deviation of what all have in common.
    """

    coef: Vector
    covariance: Matrix
    privacy: Matrix
    told: Matrix
    doubt: Vector


def explain(scores: Sequence[Evidence], prior: Prior, start: Vector, limited: Limited) -> Explained:
    """The coefficients that explain the scores and the prior best.

    Parameters
    ----------
    scores : sequence of Evidence
        At least one.
    prior : Prior
    start : ndarray of shape (q,)
        The starting point. Scores count less the further away from it they were released.
    limited : callable
        Shortens a move from the start to the longest step allowed.
    """
    at = _Equations.at(scores, score_weights(scores, start), start)
    coef = _descended(scores, at.weights, prior.known(*at.told), start, limited)
    at = _Equations.at(scores, score_weights(scores, coef), coef)
    covariance = definite_inverse(at.precision + prior.known(*at.told).precision, _DIGITS)
    gains = [covariance @ (weight * slope.T) for weight, slope in zip(at.weights, at.slopes, strict=True)]
    privacy = sum(score.variance * gain @ gain.T for score, gain in zip(scores, gains, strict=True))
    doubt = np.zeros(len(coef))
    for score, slope, gain in zip(scores, at.slopes, gains, strict=True):
        if score.doubted:
            doubt += score.doubted * gain @ clear(score.change(coef), slope @ covariance @ slope.T)
    return Explained(coef, covariance, np.asarray(privacy), at.precision, doubt)


def clear(change: Vector, covariance: Matrix) -> Vector:
    """The change, as long as it is without what this covariance adds to it on average."""
    square = float(change @ change)
    return np.asarray(change * math.sqrt(max(1 - float(np.trace(covariance)) / max(square, 1e-300), 0.0)))


def score_weights(scores: Sequence[Evidence], coef: Vector) -> list[float]:
    """One over the variance of each score, with the model's error between where it was asked and these coefficients."""
    return [1 / max(score.variance + score.error(coef), 1e-300) for score in scores]


@dataclass(frozen=True, eq=False)
class _Equations:
    """The normal equations of the scores alone, linearised at ``coef``: ``precision (b - coef) = pull``."""

    coef: Vector
    weights: Sequence[float]
    slopes: Sequence[Matrix]
    pull: Vector
    precision: Matrix

    @classmethod
    def at(cls, scores: Sequence[Evidence], weights: Sequence[float], coef: Vector) -> _Equations:
        slopes = [score.slope(coef) for score in scores]
        pull, precision = np.zeros(len(coef)), np.zeros((len(coef), len(coef)))
        for score, weight, slope in zip(scores, weights, slopes, strict=True):
            pull += weight * slope.T @ (score.value - score.change(coef))
            precision += weight * slope.T @ slope
        return cls(coef, weights, slopes, pull, precision)

    @property
    def told(self) -> tuple[Vector, Matrix]:
        """Mean and precision of the coefficients by the scores alone."""
        return self.coef + definite_inverse(self.precision, _DIGITS) @ self.pull, self.precision

    def step(self, known: Known) -> Vector:
        """The Gauss-Newton step, with what is known beside the scores."""
        pull = known.precision @ (known.mean - self.coef) + self.pull
        with np.errstate(over="ignore", invalid="ignore"):  # a step beyond the range of floats is no step
            way = definite_inverse(known.precision + self.precision, _DIGITS) @ pull
        return way if (np.abs(way) <= _LONGEST).all() else np.zeros_like(pull)


def _descended(
    scores: Sequence[Evidence],
    weights: Sequence[float],
    known: Known,
    start: Vector,
    limited: Limited,
) -> Vector:
    """Gauss-Newton steps with step halving; the objective cannot resolve the last steps, which are taken as they are.

    The iteration ends at the longest step allowed. Beyond it a score may have no root, and steps diverge.
    """

    def objective(at: Vector) -> float:
        away = at - known.mean
        with np.errstate(over="ignore"):  # what is beyond the range of floats explains nothing
            misfit = sum(
                weight * float(np.sum((score.value - score.change(at)) ** 2))
                for score, weight in zip(scores, weights, strict=True)
            )
            return float(misfit + away @ known.precision @ away)

    coef, best, last = start, objective(start), np.inf
    for _ in range(_STEPS):
        way = _Equations.at(scores, weights, coef).step(known)
        length, size = float(np.linalg.norm(way)), float(np.linalg.norm(coef))
        short = length < _SHORT * size
        if length <= _TOLERANCE * size or (short and last <= length):
            break
        if short:
            found = coef + way
        else:
            tried = ((objective(at), at) for at in (coef + share * way for share in 0.5 ** np.arange(_HALVINGS)))
            better = next((each for each in tried if each[0] < best), None)
            if better is None:
                break
            best, found = better
        moved, last = found - start, length
        coef = start + limited(moved)
        if float(np.linalg.norm(coef - start)) < _WHOLE * float(np.linalg.norm(moved)):
            break
    return coef
