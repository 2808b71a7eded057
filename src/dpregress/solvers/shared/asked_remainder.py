"""The remainder of the last score, and where the model is wrong by more than noise a second one with a wider bound."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpregress.accounting import GDP, split
from dpregress.coordinates import Vector
from dpregress.queries import Ask
from dpregress.solvers.shared.remainder import Answer, Asked, Remainder, Scored, Untruncated, ask_remainder, ask_wider
from dpregress.solvers.shared.truncation import Truncation

#: The noise of the wider remainder, in standard deviations of a mean score's sampling error.
_NOISE = 3.0


class AskedRemainder:
    """What weights and clips take from a score, where it is asked.

    Where the first remainder stands out from its noise, neither T nor surrogate rows say what its bound takes in turn,
    and a part of the cost of what is asked next pays for one with a wider bound.

    Parameters
    ----------
    ask : Ask
    truncation : callable
        What weights and a clip take from a score at some coefficients, by surrogate rows.
    untruncated : callable
        The ordinary score by the model, where this remainder is asked.
    spend : GDP
        Of the first remainder.
    n : int
        Private rows.
    share : float
        Of what is asked next, for the wider one.
    most : float, optional
        The largest bound of the wider one.

    Attributes
    ----------
    first, wide : Answer or None
    """

    def __init__(
        self,
        ask: Ask,
        truncation: Callable[[Vector, float], Truncation],
        untruncated: Callable[[Asked], Untruncated],
        spend: GDP,
        n: int,
        share: float,
        most: float = math.inf,
    ) -> None:
        self._ask, self._truncation, self._untruncated = ask, truncation, untruncated
        self._spend, self._n, self._share, self._most = spend, n, share, most
        self.first: Answer | None = None
        self.wide: Answer | None = None

    def __call__(self, score: Scored, spend: GDP, last: Scored | None = None) -> GDP:
        """Ask it, and say what is left of the cost of what is asked next. The wider one is of ``last``, if another."""
        ask, n, coef = self._ask, self._n, score.coef.ravel()
        taken = self._truncation(coef, score.clip)
        first = self.first = ask_remainder(ask, score, taken, self._spend, n)
        wrong = Remainder(first, self._untruncated(first.query)).stands_out(coef, n)
        if not wrong or self._most <= first.query.bound:
            return spend
        left, kept = split(spend, (1 - self._share, self._share))
        bound = first.query.bound
        self.wide = ask_wider(ask, last or score, taken, kept, n, narrow=bound, noise=_NOISE, most=self._most)
        return left
