r"""Score steps: generalised linear models from one private Gram matrix and a few private scores.

Every choice is a function of public facts or of what was released before (METHODS 5 and 7):

1. coordinates and radius from the public moment, refined for 10% of mu^2 where public rows are few;
2. a start: with labelled public rows their own penalised fit, with its covariance as a prior; otherwise
   coefficients of 0, the intercept from a private histogram of the response (5%);
3. one private Gram matrix of the weighted rows (20%), to which stand-in rows are recoloured;
4. steps ``b += K H^{-1} [mean(s x clip(s (y - m) f, +-C)) + noise]``, H the information of the stand-ins. With a
   prior, K is the Kalman gain of what is known before and the step's own covariance; without one, 1;
5. where the clip can bias the mean prediction, one more number (25%), the mean residual between wide
   lopsided bounds, moves the intercept back.

The clip is chosen on the sizes of residuals (of the public rows, or a private histogram, 5%) to minimise
predicted noise plus what it cuts off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq

from dpregress.accounting import GDP, split
from dpregress.errors import InvalidInput
from dpregress.public.facts import Facts
from dpregress.queries import Ask, Binomial, ClippedScore, Family, MeanResidual, SecondMoment
from dpregress.queries.histogram import ResidualHistogram
from dpregress.releases import Frame, Matrix, ResponseScale, Score, Vector
from dpregress.solvers.base import Solution, Solver
from dpregress.solvers.levels import EDGES, Levels, levels_of
from dpregress.solvers.public_fit import PublicFit, fit_public
from dpregress.solvers.refine import refined
from dpregress.solvers.repair import floored, gram_floor
from dpregress.solvers.stand_ins import StandIns, stand_ins

_REFINE, _START, _GRAM, _LEVELS, _MEAN = 0.10, 0.05, 0.20, 0.05, 0.25
#: Private steps: few from a prior near the answer, more from nothing.
STEPS_WITH_PRIOR, STEPS_WITHOUT = (1.0, 1.0), (1.0, 1.0, 1.0, 2.0)
#: Smallest eigenvalue of a Fisher information that is believed, as a share of its mean one.
_SMALLEST_INFORMATION = 0.02
#: Largest change of a stand-in's linear predictor in one step.
_LONGEST = 3.0


class ScoreSteps(Solver):
    """Noisy scoring on one recoloured Gram matrix.

    Parameters
    ----------
    facts : Facts
    family : Family
    budget : GDP
        All of it is drawn.
    alpha : float
        Ridge penalty ``alpha / 2 ||b||^2`` on the slopes in original units, beside the summed log-likelihood.
    steps : tuple of float, optional
        Relative budgets of the private steps.
    """

    def __init__(
        self, facts: Facts, family: Family, budget: GDP, alpha: float, steps: tuple[float, ...] | None = None
    ) -> None:
        self.facts = facts
        self.family = family
        self.alpha = alpha
        labelled = facts.public is not None and facts.public.rows is not None and facts.labels is not None
        self._labelled = labelled
        natural = family == Binomial  # the logistic residual lies in [-1, 1] by itself
        weights = steps or (STEPS_WITH_PRIOR if labelled else STEPS_WITHOUT)
        shares = {
            "refine": _REFINE if facts.start.refine else 0.0,
            "start": 0.0 if labelled or natural else _START,
            "gram": _GRAM,
            "levels": 0.0 if labelled or natural else _LEVELS,
            "mean": 0.0 if natural or not facts.start.frame.intercept else _MEAN,
        }
        rest = (1 - sum(shares.values())) / sum(weights)
        asked = [name for name, share in shares.items() if share > 0]
        parts = split(budget, [*(shares[name] for name in asked), *(rest * weight for weight in weights)])
        self._spend = dict(zip(asked, parts, strict=False))
        self._steps = parts[len(asked) :]

    @property
    def rounds(self) -> int:
        return len(self._spend) + len(self._steps)

    def solve(self, ask: Ask) -> Solution:
        frame = self.facts.start.frame
        if "refine" in self._spend:
            frame = refined(ask, frame, self._spend["refine"])
        second = ask(SecondMoment(frame.with_response(None)), self._spend["gram"])
        rows = stand_ins(frame, self.facts.public, floored(second.gram, gram_floor(second)))
        frame = frame.with_response(ResponseScale(self.facts.target))

        prior = None
        if self._labelled:
            assert self.facts.public is not None
            prior = fit_public(self.facts.public, frame, self.family)
        coef = prior.coef if prior is not None else self._start(ask, frame)
        levels = self._residual_levels(ask, frame, coef, prior)
        coef, system = self._walk(ask, frame, rows, coef, levels, prior)
        if "mean" in self._spend:
            coef = self._levelled(ask, frame, rows, coef, levels)
        return Solution(coef, system, frame, None)
