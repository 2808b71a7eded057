r"""Score steps: generalised linear models from one private Gram matrix and a few private scores.

Every choice is a function of public facts or of earlier releases (docs/methods/score-steps.md):

1. coordinates and radius from the public moment, refined for 10% of mu^2 if there are few public rows;
2. a start: with labelled public rows their penalised fit, with its covariance as a prior; otherwise slopes of 0,
   with the intercept from a private histogram of the response (5%);
   with an exposure, before that its distribution from a histogram (5%) and its slopes on the features (5%);
3. one private Gram matrix of the weighted rows (20%), to which surrogate rows are recoloured;
4. steps ``b += K H^{-1} [mean(s x clip(s (y - m) f, +-C)) + noise]``, H the information of the surrogate rows. With a
   prior, K is the Kalman gain from the posterior before the step and the step's covariance; otherwise 1;
5. the mean residual, one number with wide asymmetric bounds (40%, 25% without a prior, 5% for a response in [0, 1]),
   which corrects the intercept for the bias from weights and clip.

The clip is chosen from the sizes of residuals (of the public rows, or from a private histogram, 5%). It minimises the
predicted noise plus the loss from clipping.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from dpregress.accounting import GDP
from dpregress.coordinates import Exposure, Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.models import BinomialFamily, Family, GaussianFamily
from dpregress.public.facts import PublicFacts
from dpregress.queries import (
    Ask,
    ClippedScore,
    Counted,
    ExposureHistogram,
    ExposureScore,
    MeanResidual,
    ResidualHistogram,
    ResponseHistogram,
    SecondMoment,
    among,
    noise_in_mean,
)
from dpregress.solvers.base import FactSolver, Solution
from dpregress.solvers.glm.public_fit import PublicFit, fit_public
from dpregress.solvers.glm.score_loop import Beginning, ScoreModel, curvature_slack, take_steps
from dpregress.solvers.shared.budget import allocate_budget, has_prior
from dpregress.solvers.shared.magnitudes import EDGES, Magnitudes, visible_count
from dpregress.solvers.shared.repair import floor_information, floored, gram_floor
from dpregress.solvers.shared.surrogate import SurrogateRows, surrogate_rows
from dpregress.solvers.shared.whitening import refined

REFINE, _EXPOSURE, _START, GRAM, _LEVELS = 0.10, 0.05, 0.05, 0.20, 0.05
#: Logarithms of exposures are clipped at this many standard deviations; a standard deviation is at least one bin.
_EXPOSURE_CLIP, _EXPOSURE_SPREAD = 2.0, 0.1
#: Shares for the mean residual: of a response in [0, 1]; of one with a tail, with a prior and without one.
MEAN_BOUNDED, _MEAN_WITH_PRIOR, _MEAN_WITHOUT = 0.05, 0.40, 0.25
#: Weights of the private steps: few with a prior, more without one.
STEPS_WITH_PRIOR, STEPS_WITHOUT = (1.0, 1.0, 2.0), (1.0, 1.0, 1.0, 2.0)
#: The floor for eigenvalues of a Fisher information relative to the Gram matrix, as a share of their mean.
_SMALLEST_INFORMATION = 0.02
#: The same for a mean that saturates: rows at its ends have almost no information, and steps would be too long.
SMALLEST_SATURATED = 0.1
#: The lower bound of a residual is this many of the largest mean predictions, if the upper bound is further away.
_LOWEST_MEANS = 3.0
#: The weight of what the bound of the mean residual cuts off: responses have longer tails than the sizes observed.
_TAIL = 2.0
#: The number of rows, per sample of public size, that may lie above the largest public residual.
_HIDDEN = 0.3


class ScoreSteps(FactSolver):
    """Noisy scoring with surrogate rows for one private Gram matrix.

    Parameters
    ----------
    facts : PublicFacts
    family : Family
    budget : GDP
        All of it is drawn.
    alpha : float
        Ridge penalty ``alpha / 2 ||b||^2`` on the slopes in original units, subtracted from the log-likelihood.
    steps : tuple of float, optional
        Relative budgets of the private steps.
    """

    def __init__(
        self, facts: PublicFacts, family: Family, budget: GDP, alpha: float, steps: tuple[float, ...] | None = None
    ) -> None:
        self.facts = facts
        self.family = family
        self.alpha = alpha
        labelled = has_prior(facts)
        self._labelled = labelled
        natural = family == BinomialFamily  # the logistic residual always lies in [-1, 1]
        weights = steps or (STEPS_WITH_PRIOR if labelled else STEPS_WITHOUT)
        mean = MEAN_BOUNDED if natural else _MEAN_WITH_PRIOR if labelled else _MEAN_WITHOUT
        shares = {
            "refine": REFINE if facts.start.refine else 0.0,
            "exposures": 0.0 if facts.exposure is None else _EXPOSURE,
            "exposed": 0.0 if facts.exposure is None else _EXPOSURE,
            "start": 0.0 if labelled or not facts.start.space.intercept else _START,
            "gram": GRAM,
            "levels": 0.0 if labelled or natural else _LEVELS,
            "mean": 0.0 if not facts.start.space.intercept else mean,
        }
        self._spend, self._steps = allocate_budget(budget, shares, weights)

    @property
    def rounds(self) -> int:
        return len(self._spend) + len(self._steps)

    def solve(self, ask: Ask) -> Solution:
        space = self.facts.start.space
        if "refine" in self._spend:
            space = refined(ask, space, self._spend["refine"]).space
        second = ask(Counted(SecondMoment(space.with_response(None))), self._spend["gram"])
        return self.among(second.n)._scored(among(ask, second.n), space, floored(second.gram, gram_floor(second)))

    def _scored(self, ask: Ask, space: WhitenedSpace, gram: Matrix) -> Solution:
        """Solve, given the Gram matrix of the usable rows."""
        rows = surrogate_rows(space, self.facts.public, gram)
        space = replace(space, response=ResponseScale(self.facts.target), exposure=self.facts.exposure)
        exposures = None
        if space.exposure is not None:
            exposures = self._exposures(ask, space, space.exposure)
            rows = rows.exposed(space.exposure, exposures, self._exposed(ask, space, gram, exposures))

        prior = self._prior(space)
        coef = prior.coef if prior is not None else self._start(ask, space, exposures)
        levels = self._levels(ask, space, coef, prior)
        model = SurrogateModel(self.family, space, rows, gram, levels, self.facts.n)
        penalty = self.alpha / self.facts.n * space.slopes @ space.slopes.T
        coef, system, uncertainty = take_steps(
            ask, model, self._begin(model, coef, prior), self._steps, penalty, self.facts.n
        )
        if "mean" in self._spend:
            if prior is not None and levels is not None:
                levels = Magnitudes.of_sample(prior.residuals).with_hidden_tail(_HIDDEN / len(prior.residuals))
            coef = self._adjust_intercept(ask, space, rows, coef, levels)
        return Solution(coef, system, space, None, uncertainty)

    def _prior(self, space: WhitenedSpace) -> PublicFit | None:
        return fit_public(self.facts.public, space, self.family) if self._labelled and self.facts.public else None

    def _exposures(self, ask: Ask, space: WhitenedSpace, exposure: Exposure) -> Magnitudes:
        """The distribution of private exposures within their bounds; public exposures may have another scale."""
        seen = Magnitudes.of_histogram(ask(ExposureHistogram(space, EDGES), self._spend["exposures"]))
        return Magnitudes(np.clip(seen.size, exposure.lower, exposure.upper), seen.share)

    def _exposed(self, ask: Ask, space: WhitenedSpace, gram: Matrix, exposures: Magnitudes) -> Vector:
        """Slopes of the logarithm of exposures on the whitened features."""
        centre, spread = exposures.logarithm
        clip = _EXPOSURE_CLIP * max(spread, _EXPOSURE_SPREAD)
        found = ask(ExposureScore(space, centre, clip), self._spend["exposed"])
        return np.asarray(np.linalg.solve(gram, found.mean))

    def _start(self, ask: Ask, space: WhitenedSpace, exposures: Magnitudes | None) -> Vector:
        """Slopes of 0, and the intercept of the mean: the rate of two classes, or the mean size from a histogram."""
        if "start" not in self._spend:
            return np.zeros(space.order)
        if self.family == BinomialFamily:
            spend = self._spend["start"]
            query = MeanResidual(space, BinomialFamily, np.zeros(space.order), -0.5, 0.5)
            found = ask(query, spend)
            rarest = min(max(2 * query.noise(spend, self.facts.n), 1 / self.facts.n), 0.5)
            rate = min(max(0.5 + float(found.mean[0]), rarest), 1 - rarest)
            return self.family.link.predictor(rate) * space.constant
        mean = Magnitudes.of_histogram(ask(ResponseHistogram(space, EDGES), self._spend["start"])).mean
        level = self.family.link.predictor(mean)
        if exposures is not None:  # the link is the logarithm: the overall rate
            level -= math.log(exposures.mean)
        return level * space.constant

    def _levels(self, ask: Ask, space: WhitenedSpace, coef: Vector, prior: PublicFit | None) -> Magnitudes | None:
        """Sizes of residuals at the start, from the public rows or released; None if they are bounded anyway."""
        if self.family == BinomialFamily:
            return None
        if prior is not None:
            return Magnitudes.of_sample(prior.residuals * prior.weight)
        seen = ask(ResidualHistogram(space, self.family, coef, EDGES), self._spend["levels"])
        return Magnitudes.of_histogram(seen).with_hidden_tail(visible_count(seen) / seen.n)

    def _begin(self, model: SurrogateModel, coef: Vector, prior: PublicFit | None) -> Beginning:
        if prior is not None:
            return Beginning(prior.coef, prior.covariance, prior.dispersion, fitted=True)
        return Beginning(coef, model.unknown(), model.dispersion(coef), fitted=False)

    def _adjust_intercept(
        self, ask: Ask, space: WhitenedSpace, rows: SurrogateRows, coef: Vector, levels: Magnitudes | None
    ) -> Vector:
        """Correct the intercept so that the mean prediction of surrogate rows changes by the released mean residual."""
        spend = self._spend["mean"]
        eta = rows.predictor(coef)
        eta = eta[self.family.inside(eta)] if self.family.inside(eta).any() else eta
        lower, upper = -1.0, 1.0
        if levels is not None:
            factor = max(float(np.mean(self.family.factor(eta))), 1e-12)
            lowest = _LOWEST_MEANS * float(np.max(np.abs(self.family.mean(eta))))

            def noise(clip: Vector) -> Vector:
                change = MeanResidual.largest_change(-np.minimum(clip / factor, lowest), clip / factor)
                return factor * noise_in_mean(change, spend, self.facts.n)

            upper = levels.best_clip(noise, cut_weight=_TAIL) / factor
            lower = -min(upper, lowest)
        found = ask(MeanResidual(space, self.family, coef, lower, upper), spend)
        wanted = float(np.mean(self.family.mean(eta))) + float(found.mean[0])

        def excess(shift: float) -> float:
            return float(np.mean(self.family.mean(eta + shift))) - wanted

        # if steps are unlimited, the mean changes as much as the predictor
        longest = self.family.link.longest
        reach = longest if math.isfinite(longest) else 2 * abs(float(found.mean[0]))
        if excess(-reach) * excess(reach) > 0:  # the noise would require more than the longest step
            return coef
        return np.asarray(coef + float(brentq(excess, -reach, reach)) * space.constant)


@dataclass(frozen=True, eq=False)
class SurrogateModel(ScoreModel):
    """A family on surrogate rows; ``levels`` are sizes of residuals, None for a response in [0, 1]."""

    family: Family
    space: WhitenedSpace
    rows: SurrogateRows
    gram: Matrix
    levels: Magnitudes | None
    n: int

    def question(self, coef: Vector, spend: GDP) -> ClippedScore:
        levels = self.levels
        if levels is None:
            levels = _binary_residuals(self.rows, self.family.mean(self.rows.predictor(coef)))
        per_unit = ClippedScore(self.space, self.family, coef, 1.0).noise_length(spend, self.n)
        return ClippedScore(self.space, self.family, coef, levels.best_clip(lambda clip: per_unit * clip))

    def information(self, coef: Vector) -> Matrix:
        smallest = SMALLEST_SATURATED if self.family == BinomialFamily else _SMALLEST_INFORMATION
        return floor_information(self.rows.information(self.family, coef), self.gram, smallest)

    def along_curve(self, coef: Vector, system: Matrix, step: Vector) -> Vector:
        return self.rows.along_curve(self.family, coef, system, step)

    def limited(self, move: Vector) -> Vector:
        """The move, shortened so that no predictor of a weighted row changes by more than the longest step."""
        furthest = float(np.abs(self.rows.x @ move).max())
        return np.asarray(move * min(1.0, self.family.link.longest / max(furthest, 1e-300)))

    def missed(self, move: Vector, left: Vector) -> Matrix:
        if self.family == GaussianFamily:  # least squares: one step is exact
            return np.zeros_like(self.gram)
        return curvature_slack(float(np.mean((self.rows.x @ move) ** 2)), left, self.gram)

    def unknown(self) -> Matrix:
        """The prior covariance of coefficients, which only bounds the size of predictors."""
        longest = self.family.link.longest
        reach = longest if math.isfinite(longest) or self.levels is None else self.levels.root_mean_square
        covariance = np.eye(self.space.order) * reach**2 / self.space.order
        if self.space.intercept:
            covariance += reach**2 * np.outer(self.space.constant, self.space.constant)
        return covariance

    def dispersion(self, coef: Vector) -> float:
        """An upper estimate from the residuals at the start, which include what the slopes will explain."""
        if self.levels is None:
            return 1.0
        information = self.rows.weight**2 * self.family.information(self.rows.predictor(coef))
        found = self.levels.root_mean_square**2 / max(float(np.mean(information)), 1e-300)
        return max(found, 1.0) if self.family.distribution.fixed_dispersion else found


def _binary_residuals(rows: SurrogateRows, mean: Vector) -> Magnitudes:
    """Sizes of residuals that the model itself expects of a response in {0, 1}."""
    sizes = np.concatenate([rows.weight * (1 - mean), rows.weight * mean])
    return Magnitudes(sizes, np.concatenate([mean, 1 - mean]) / len(mean))
