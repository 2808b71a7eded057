r"""Multinomial logistic regression by score steps: K classes, one private Gram matrix and a few private scores.

Class predictors are ``Q B'x`` with Q the contrasts (K, K - 1) and B of shape (p, K - 1): they sum to 0, and no class is
the reference. Steps, shares and merging are those of the logistic model in :mod:`.score_steps`, with

* the information ``mean s^2 x~x~' (x) Q'(diag(pi) - pi pi')Q`` over stand-ins, of order p (K - 1);
* the clip on the norm of the residual, chosen on what the model itself expects;
* the mean residual a vector of K - 1 numbers, which moves the K intercepts back.

Coefficients are kept flat, ``B.ravel()``: column j's contrasts lie side by side (docs/methods/multinomial.md).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.coordinates.matrices import sandwich
from dpregress.models import contrasts, probabilities
from dpregress.public.facts import PublicFacts
from dpregress.queries import Ask, Counted, MeanClassResidual, MultinomialScore, SecondMoment, among
from dpregress.solvers.base import FactSolver, Solution, Uncertainty
from dpregress.solvers.glm.score_steps import (
    GRAM,
    MEAN_BOUNDED,
    REFINE,
    SMALLEST_SATURATED,
    STEPS_WITH_PRIOR,
    STEPS_WITHOUT,
)
from dpregress.solvers.glm.softmax_fit import LONGEST, PublicClasses, fit_public_classes, softmax_information
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.merging import (
    allocate_budget,
    curvature_slack,
    floor_information,
    has_prior,
    inflate_prior,
    merged,
    solvable,
)
from dpregress.solvers.shared.repair import floored, gram_floor
from dpregress.solvers.shared.surrogate import SurrogateRows, followed, surrogate_rows
from dpregress.solvers.shared.whitening import refined

_NEWTON_STEPS = 50


class MultinomialSteps(FactSolver):
    """Noisy scoring of a softmax model on one recoloured Gram matrix.

    Parameters
    ----------
    facts : PublicFacts
        Public labels are positions of classes.
    classes : int
        K >= 2.
    budget : GDP
        All of it is drawn.
    alpha : float
        Ridge penalty ``alpha / 2`` times the squared slopes of all classes, in original units.
    steps : tuple of float, optional
        Relative budgets of the private steps.
    """

    def __init__(
        self, facts: PublicFacts, classes: int, budget: GDP, alpha: float, steps: tuple[float, ...] | None = None
    ) -> None:
        self.facts = facts
        self.classes = classes
        self.alpha = alpha
        self._basis = contrasts(classes)
        self._labelled = has_prior(facts)
        shares = {
            "refine": REFINE if facts.start.refine else 0.0,
            "gram": GRAM,
            "mean": MEAN_BOUNDED if facts.start.space.intercept else 0.0,
        }
        weights = steps or (STEPS_WITH_PRIOR if self._labelled else STEPS_WITHOUT)
        self._spend, self._steps = allocate_budget(budget, shares, weights)

    @property
    def rounds(self) -> int:
        return len(self._spend) + len(self._steps)

    def solve(self, ask: Ask) -> Solution:
        space = self.facts.start.space
        if "refine" in self._spend:
            space = refined(ask, space, self._spend["refine"])
        second = ask(Counted(SecondMoment(space.with_response(None))), self._spend["gram"])
        return self.among(second.n)._scored(among(ask, second.n), space, floored(second.gram, gram_floor(second)))

    def _scored(self, ask: Ask, space: WhitenedSpace, gram: Matrix) -> Solution:
        """From the Gram matrix of the usable rows."""
        rows = surrogate_rows(space, self.facts.public, gram)
        space = space.with_response(ResponseScale(self.facts.target))
        prior = None
        if self._labelled and self.facts.public is not None:
            prior = fit_public_classes(self.facts.public, space, self.classes)
        coef, system, uncertainty = self._walk(ask, space, rows, gram, prior)
        if "mean" in self._spend:
            coef = self._adjust_intercept(ask, space, rows, coef)
        return Solution(coef.ravel(), system, space, None, uncertainty)

    def _walk(
        self, ask: Ask, space: WhitenedSpace, rows: SurrogateRows, gram: Matrix, prior: PublicClasses | None
    ) -> tuple[Matrix, Matrix, Uncertainty]:
        """Steps merged by precision; ``known`` is the coefficients' covariance about the private optimum."""
        n, each = self.facts.n, np.eye(self.classes - 1)
        gram = np.asarray(np.kron(gram, each), dtype=np.float64)
        penalty = np.kron(self.alpha / n * space.slopes @ space.slopes.T, each)
        coef: Matrix = np.zeros((space.order, self.classes - 1)) if prior is None else prior.coef
        known = np.kron(_open_mind(space), each) if prior is None else prior.covariance
        dispersion = 1.0 if prior is None else prior.dispersion
        system, privacy, sampling, bent = gram, *(np.zeros_like(gram) for _ in range(3))
        for turn, spend in enumerate(self._steps):
            mean = probabilities(rows.predictor(coef), self._basis)
            clip = self._clip(space, rows, mean, spend)
            score = ask(MultinomialScore(space, coef, clip), spend)
            system = solvable(
                floor_information(_information(rows, mean, self._basis), gram, SMALLEST_SATURATED) + penalty
            )
            step = np.asarray(np.linalg.solve(system, score.mean - penalty @ coef.ravel()))
            noise = (2 * space.radius * clip / (spend.mu * n)) ** 2
            sampling = dispersion / n * sandwich(system, system)
            if turn == 0 and prior is not None:  # the public rows' truth is not yet the private rows' optimum
                known = inflate_prior(known + sampling, system, noise, step)
            found = merged(known + bent, privacy, system, noise)
            known, privacy = found.known, found.privacy
            wanted = self._along_curve(rows, coef, system, np.asarray(found.gain @ step))
            predictors = rows.x @ wanted.reshape(coef.shape)
            share = min(1.0, LONGEST / max(float(np.abs(predictors @ self._basis.T).max()), 1e-300))
            coef = coef + share * wanted.reshape(coef.shape)
            length = share**2 * float(np.mean(np.sum(predictors**2, axis=1)))
            bent = curvature_slack(length, (1 - share) * wanted, gram)
        return coef, system, Uncertainty(privacy, np.asarray(sampling + known + bent))

    def _along_curve(self, rows: SurrogateRows, coef: Matrix, system: Matrix, step: Vector) -> Vector:
        """The move that changes the stand-ins' expected score by ``system @ step``, as `SurrogateRows` has it."""
        start = probabilities(rows.predictor(coef), self._basis)
        linear = system - softmax_information(rows.x, start, self._basis) / len(rows.x)

        def moved(move: Vector) -> Matrix:
            return probabilities(rows.predictor(coef + move.reshape(coef.shape)), self._basis)

        def change(move: Vector) -> Vector:
            expected = rows.weight[:, None] * ((moved(move) - start) @ self._basis)
            return np.asarray((rows.x.T @ expected / len(rows.x)).ravel() + linear @ move)

        def slope(move: Vector) -> Matrix:
            return np.asarray(softmax_information(rows.x, moved(move), self._basis) / len(rows.x) + linear)

        return followed(step, system @ step, change, slope)

    def _clip(self, space: WhitenedSpace, rows: SurrogateRows, mean: Matrix, spend: GDP) -> float:
        """The bound on a residual's norm that loses least on the residuals that the model itself expects."""
        sizes = rows.weight[:, None] * np.sqrt(1 - 2 * mean + np.sum(mean**2, axis=1, keepdims=True))
        per_unit = 2 * space.radius * math.sqrt(space.order * (self.classes - 1)) / (spend.mu * self.facts.n)
        return Magnitudes(sizes.ravel(), mean.ravel() / len(mean)).best_clip(per_unit)

    def _adjust_intercept(self, ask: Ask, space: WhitenedSpace, rows: SurrogateRows, coef: Matrix) -> Matrix:
        """Move the intercepts by the released mean residual, along the stand-ins' mean probabilities.

        They stay where that needs a change of a class predictor by more than the longest.
        """
        found = ask(MeanClassResidual(space, coef), self._spend["mean"])
        predictor = rows.predictor(coef)
        present = probabilities(predictor, self._basis).mean(axis=0)
        wanted = np.maximum(present + self._basis @ found.mean, math.exp(-LONGEST) * present)
        shift = _shift(predictor, wanted / wanted.sum(), self._basis)
        if float(np.abs(self._basis @ shift).max()) > LONGEST:
            return coef
        return np.asarray(coef + np.outer(space.constant, shift))


def of_classes(solution: Solution, classes: int) -> list[Solution]:
    """The solution of each class's predictor: whitened coefficients of shape (p,) with their covariances."""
    basis = contrasts(classes)
    coef = solution.whitened.reshape(-1, classes - 1)
    found = []
    for row in basis:
        each = np.kron(np.eye(len(coef)), row)
        uncertainty = solution.uncertainty
        if uncertainty is not None:
            uncertainty = Uncertainty(each @ uncertainty.privacy @ each.T, each @ uncertainty.total @ each.T)
        found.append(replace(solution, whitened=np.asarray(coef @ row), uncertainty=uncertainty))
    return found


def _information(rows: SurrogateRows, mean: Matrix, basis: Matrix) -> Matrix:
    """``mean s^2 x~x~' (x) Q'(diag(pi) - pi pi')Q``; unseen directions count as the mean row does."""
    found = softmax_information(rows.x, mean, basis) / len(rows.x)
    average = basis.T @ (np.diag(mean.mean(axis=0)) - mean.T @ mean / len(mean)) @ basis
    return np.asarray(found + np.kron(rows.unseen, average))


def _open_mind(space: WhitenedSpace) -> Matrix:
    """Covariance of one contrast's coefficients of which nothing is known but how far predictors go."""
    covariance = np.eye(space.order) * LONGEST**2 / space.order
    if space.intercept:
        covariance += LONGEST**2 * np.outer(space.constant, space.constant)
    return covariance


def _shift(predictor: Matrix, wanted: Vector, basis: Matrix) -> Vector:
    """The contrasts of intercepts that make mean probabilities those wanted: Newton's method, with short steps."""
    shift = np.zeros(basis.shape[1])
    for _ in range(_NEWTON_STEPS):
        mean = probabilities(predictor + shift, basis)
        slope = basis.T @ (np.diag(mean.mean(axis=0)) - mean.T @ mean / len(mean)) @ basis
        step = np.linalg.lstsq(slope, basis.T @ (wanted - mean.mean(axis=0)), rcond=None)[0]
        shift = shift + step * min(1.0, 1 / max(float(np.abs(basis @ step).max()), 1e-300))
    return np.asarray(shift)
