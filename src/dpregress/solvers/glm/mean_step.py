"""The last number of a fit by score steps: the mean residual, which moves the intercept.

Row weights and clips bias the mean prediction; one number between wide lopsided bounds is cheap to release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import Family
from dpregress.queries import Ask, MeanResidual, noise_in_mean
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.sandwich import MeanEquation, gain_of
from dpregress.solvers.shared.surrogate import SurrogateRows

#: The lower bound of a residual is this many of the largest mean predictions, if the upper bound is further away.
_LOWEST_MEANS = 3.0
#: The same where the response is in [0, 1]: so many times this quantile of mean predictions.
_ABOVE, _MOST_MEANS = 1.5, 0.98
#: What the bound of the mean residual cuts off counts so many times: responses have longer tails than the sizes seen.
TAIL = 2.0
#: A mean that rises may take so many of the longest steps.
_FURTHEST = 4.0
#: Noise in a mean, as a share of it, that is cheap: a bound may be widened half of the way there, in logarithms.
_FREE = 0.1


@dataclass(frozen=True, eq=False)
class MeanStep:
    """The mean residual at a fit and what follows from it.

    Parameters
    ----------
    family : Family
    space : WhitenedSpace
    rows : SurrogateRows
    levels : Magnitudes or None
        Sizes of residuals; None in [0, 1].
    n : int
    largest : float, optional
        The largest size that the declared bounds of the response leave at the mean; 0: none beyond those seen.
    """

    family: Family
    space: WhitenedSpace
    rows: SurrogateRows
    levels: Magnitudes | None
    n: int
    largest: float = math.inf

    def released(self, ask: Ask, spend: GDP, coef: Vector, clip: float) -> MeanAnswer:
        """The mean residual at a fit.

        Parameters
        ----------
        ask : Ask
        spend : GDP
        coef : ndarray of shape (p,)
        clip : float
            Of the last score: what it cuts off is missing in the mean.
        """
        eta = self.rows.predictor(coef)
        inside = self.family.inside(eta) if self.family.inside(eta).any() else np.ones(len(eta), dtype=bool)
        eta, x = eta[inside], (self.rows.x / self.rows.weight[:, None])[inside]
        slope = x.T @ (self.family.slope(eta) * self.family.factor_size(eta)) / len(eta)
        bias = 0.0 if self.levels is None else (self.levels.cut(clip) / self._unit(eta)) ** 2
        query = MeanResidual(self.space, self.family, coef, *self._bounds(eta, spend))
        found = float(ask(query, spend).mean[0])
        return MeanAnswer(self, coef, eta, slope, found, query.noise(spend, self.n) ** 2, bias)

    def _unit(self, eta: Vector) -> float:
        """A score's size of a residual of 1 in the mean residual, which may lack the factor of scores."""
        return max(float(np.mean(np.abs(self.family.factor(eta)))), 1e-12) if self.family.plain else 1.0

    def _bounds(self, eta: Vector, spend: GDP) -> tuple[float, float]:
        """Bounds of a residual, wide enough that what they cut off counts no more than the noise."""
        mean, levels = self.family.mean(eta) * self.family.factor_size(eta), self.levels
        if levels is None:
            return -min(_ABOVE * float(np.quantile(mean, _MOST_MEANS)), 1.0), 1.0
        unit, lowest = self._unit(eta), _LOWEST_MEANS * float(np.max(np.abs(mean)))

        def noise(clip: Vector) -> Vector:
            change = MeanResidual.largest_change(-np.minimum(clip / unit, lowest), clip / unit)
            return unit * noise_in_mean(change, spend, self.n)

        free, usual = 0.0, unit * float(np.mean(mean))
        if not self.family.distribution.signed:  # amounts, whose tails are long
            noisy = float(noise(np.array([levels.best_clip(noise, cut_weight=TAIL)]))[0])
            per_unit = noise_in_mean(MeanResidual.largest_change(0.0, 1.0), spend, self.n)
            free = math.sqrt(max(_FREE * usual, noisy) * noisy) / per_unit - unit * lowest
            free = min(free, float(levels.size.max()) * levels.most)  # beyond the largest size there is nothing to gain
        most = max(self.largest, levels.largest * levels.most)  # a code for a missing response may be far beyond
        upper = min(levels.best_clip(noise, cut_weight=TAIL, least=free), most) / unit
        return -min(upper, lowest), upper

    def moved(self, coef: Vector, eta: Vector, change: float) -> Vector:
        """The intercept moved until the mean residual has changed by so much, or by the longest step.

        Where the factors differ, the means of all rows are taken to change as the intercept's does.
        """
        size = self.family.factor_size(eta)
        wanted = float(np.mean(self.family.mean(eta) * size)) + change

        def excess(shift: float) -> float:
            return float(np.mean(self.family.mean(eta + shift) * size)) - wanted

        # if steps are unlimited, the mean changes in proportion to the predictor
        longest = self.family.link.longest
        reach = longest if math.isfinite(longest) else 2 * abs(change) / float(np.mean(self.family.slope(eta) * size))
        if excess(-reach) * excess(reach) <= 0:
            return np.asarray(coef + float(brentq(excess, -reach, reach)) * self.space.constant)
        if change <= 0 or excess(reach) <= excess(-reach):  # a mean that falls so far is noise
            return coef
        furthest = _FURTHEST * reach  # clips may have taken most of rare events
        shift = float(brentq(excess, reach, furthest)) if excess(furthest) >= 0 else reach
        return np.asarray(coef + shift * self.space.constant)


@dataclass(frozen=True, eq=False)
class MeanAnswer:
    """A released mean residual.

    Attributes
    ----------
    step : MeanStep
    coef : ndarray of shape (p,)
        Where it was asked.
    eta : ndarray
        Predictors of the surrogate rows there.
    slope : ndarray of shape (p,)
        Of the mean prediction.
    found, noise, bias : float
        The released number, the variance of its noise, and the squared bias of the scores' mean prediction.
    """

    step: MeanStep
    coef: Vector
    eta: Vector
    slope: Vector
    found: float
    noise: float
    bias: float

    def adjusted(self, covariance: Matrix) -> Vector:
        """Coefficients whose mean prediction on surrogate rows moves by the released mean residual.

        It moves as far as the mean is known better by that than by the coefficients, which have this covariance. A clip
        takes more from large responses, so that it makes predictions too small, and never too large.
        """
        low = self.step.levels is not None and self.found > 0
        doubt = float(self.slope @ covariance @ self.slope) + (self.bias if low else 0.0)
        gain = gain_of(np.array([self.found]), doubt, self.noise, biased=low)
        return self.step.moved(self.coef, self.eta, gain * self.found)

    def equation(self, dispersion: float) -> MeanEquation:
        """The same for inference, where responses have this dispersion."""
        family, n = self.step.family, self.step.n
        variance = family.distribution.variance(family.mean(self.eta)) * family.factor_size(self.eta) ** 2
        return MeanEquation(
            asked=self.coef,
            value=np.array([self.found]),
            slope=self.slope[None, :],
            constant=self.step.space.constant[:, None],
            privacy=self.noise,
            sampling=np.array([[dispersion * float(np.mean(variance)) / n]]),
            bias=self.bias,
            biased=self.step.levels is not None,
        )
