"""The remainder of the last score, and where the model is wrong by more than noise a second one with a wider bound."""

from __future__ import annotations

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.queries import Ask, ClippedGradient, ClippedScore
from dpregress.solvers.glm.estimates import untruncated
from dpregress.solvers.glm.surrogate_model import FamilyModel
from dpregress.solvers.shared.remainder import Answer, Remainder, ask_remainder, ask_wider

#: The share of the last score for the wider remainder, and its noise in standard deviations of a mean score's sampling
#: error.
_WIDER, _NOISE = 1 / 4, 3.0
#: Its largest bound, in times the farthest surrogate row: private ones may be farther out.
_FARTHEST = 4.0


class AskedRemainder:
    """What weights and clips take from the last score, asked before it, where it is asked.

    Of two classes a gradient has a largest length, whatever the model is, so that a wider bound takes little. Where the
    first remainder stands out from its noise, a part of the last score's cost pays for one with that bound.

    Parameters
    ----------
    ask : Ask
    model : FamilyModel
    spend : GDP
        Of the first remainder.
    n : int
        Private rows.
    wider : bool
        Whether there may be a second one.

    Attributes
    ----------
    first, wide : Answer or None
    """

    def __init__(self, ask: Ask, model: FamilyModel, spend: GDP, n: int, *, wider: bool) -> None:
        self._ask, self._model, self._spend, self._n, self._wider = ask, model, spend, n, wider
        self.first: Answer | None = None
        self.wide: Answer | None = None

    def __call__(self, score: ClippedScore | ClippedGradient, spend: GDP) -> GDP:
        """Ask it, and say what is left of the score's cost."""
        model, coef = self._model, score.coef
        taken = model.truncation(coef, score.clip)
        self.first = ask_remainder(self._ask, score, taken, self._spend, self._n)
        if not self._wider:
            return spend
        most = _FARTHEST * float(np.linalg.norm(taken.rows.unweighted.x, axis=1).max())
        wrong = Remainder(self.first, untruncated(model, self.first.query)).stands_out(coef, self._n)
        if not wrong or most <= self.first.query.bound:
            return spend
        left, kept = split(spend, (1 - _WIDER, _WIDER))
        self.wide = ask_wider(self._ask, self.first.query, taken, kept, self._n, noise=_NOISE, most=most)
        return left
