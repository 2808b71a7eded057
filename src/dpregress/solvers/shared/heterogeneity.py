r"""Scores that contradict one another: where the model is wrong, scores with other clips have other roots.

The last score has the clip of the remainder, which leads from its root to that of the ordinary score; those before it
may have been asked with other clips. If the model is right, their misfit
``Q = sum_t |g_t - D_t(b)|^2 / v_t`` at the coefficients that explain all of them is about a chi-square with
``k = (T - 1) p`` degrees of freedom. Where it is far larger, all but the last get a further variance e, such that Q is
k: the moment estimator of the variance between studies (Paule and Mandel 1982), with the last score as the study whose
root is wanted. As e grows, the last score alone decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from dpregress.coordinates import Matrix, Vector
from dpregress.solvers.shared.explained import Evidence, Explained, FixedPrior, explain

#: A misfit so many standard deviations of a chi-square beyond its mean contradicts.
_LIMIT = 2.0
#: The least variance between scores, in times the smallest variance of one, and its relative precision.
_LEAST, _PRECISION = 1e-3, 0.01

#: The least variance: that of noise may be 0.
_NOTHING = 1e-300


@dataclass(frozen=True, eq=False)
class Apart(Evidence):
    """Evidence whose root is another one, by this variance of its value, and whose changes are missed by this share."""

    evidence: Evidence
    between: float
    missed: float

    def __post_init__(self) -> None:
        for name in ("value", "variance"):
            object.__setattr__(self, name, getattr(self.evidence, name))
        object.__setattr__(self, "doubted", max(self.missed, self.evidence.doubted))

    def change(self, coef: Vector) -> Vector:
        return self.evidence.change(coef)

    def slope(self, coef: Vector) -> Matrix:
        return self.evidence.slope(coef)

    def error(self, coef: Vector) -> float:
        return self.evidence.error(coef) + self.between


def reconciled(scores: Sequence[Evidence], prior: FixedPrior, start: Vector) -> Explained:
    """The coefficients that explain the scores; the last one counts more than others that contradict it.

    Parameters
    ----------
    scores : sequence of Evidence
        The one last whose root is wanted.
    prior : FixedPrior
    start : ndarray of shape (q,)
    """

    found = explain(scores, prior, start, lambda move: move)
    misfit, changes = _misfit(scores, found.coef)
    expected = sum(len(score.value) for score in scores[:-1])
    if len(scores) < 2 or misfit <= expected + _LIMIT * math.sqrt(2 * expected):
        return found
    missed = min(math.sqrt((misfit - expected) / max(changes, _NOTHING)), 1.0)
    last = Apart(scores[-1], 0.0, missed)

    def explained(size: float) -> tuple[Explained, float]:
        told = [*(Apart(score, math.exp(size), missed) for score in scores[:-1]), last]
        again = explain(told, prior, found.coef, lambda move: move)
        return again, _misfit(told, again.coef)[0] - expected

    variances = [max(score.variance + score.error(found.coef), _NOTHING) for score in scores]
    least, most = math.log(_LEAST * min(variances)), math.log(misfit) + math.log(sum(variances))
    if explained(most)[1] >= 0:
        return explain([last], prior, found.coef, lambda move: move)
    size = brentq(lambda size: explained(size)[1], least, most, xtol=_PRECISION) if explained(least)[1] > 0 else least
    return explained(float(size))[0]


def _misfit(scores: Sequence[Evidence], coef: Vector) -> tuple[float, float]:
    """Q, what noise and the model's errors have to explain, and the same of the changes that the model expects."""
    misfit = changes = 0.0
    for score in scores:
        variance, change = max(score.variance + score.error(coef), _NOTHING), score.change(coef)
        misfit += float(np.sum((score.value - change) ** 2)) / variance
        changes += float(np.sum(change**2)) / variance
    return misfit, changes
