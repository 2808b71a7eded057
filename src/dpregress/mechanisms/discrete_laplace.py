"""The discrete Laplace (two-sided geometric) mechanism: whole-number noise for counts, with pure epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpregress.accounting import PureDP, Relation
from dpregress.errors import NotAnswered, UnsafeNoise
from dpregress.mechanisms.base import Mechanism, exact_answer, float_sensitivity, public_count
from dpregress.mechanisms.randomness import LARGEST_LAPLACE_SCALE, SMALLEST_LAPLACE_SCALE, Sampler
from dpregress.queries.base import Norm, Query, R
from dpregress.releases import DiscreteLaplaceNoise
from dpregress.rows import PrivateRows

#: Whole numbers up to this are exact as floats.
_LARGEST_COUNT = 2.0**53


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    r"""``q(D) + k`` with independent whole numbers k, ``P(k) = (1 - e^{-1/b}) / (1 + e^{-1/b}) e^{-|k|/b}``.

    It is epsilon-DP with ``b = Delta / epsilon`` for a vector of integers with L1 sensitivity Delta. Sums of integers
    and the noise are exact; only the scale is rounded, upwards.

    Parameters
    ----------
    spend : PureDP
        The cost of one release.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2012), section 2; Canonne, Kamath, Steinke (2020), Algorithm 2, for the exact
    algorithm of the secure sampler.
    """

    norm: ClassVar[Norm] = Norm.L1
    spend: PureDP

    def event(self) -> PureDP:
        return self.spend

    def refuse(self, query: Query[R], rows: PrivateRows, relation: Relation) -> None:  # noqa: ARG002
        if not query.whole:
            raise NotAnswered(f"{type(query).__name__} is not a vector of whole numbers, which DiscreteLaplace needs")
        if not SMALLEST_LAPLACE_SCALE <= self._scale(query, relation) <= LARGEST_LAPLACE_SCALE:
            raise UnsafeNoise(
                f"epsilon = {self.spend.epsilon0:g} is outside the range of discrete Laplace noise: use another epsilon"
            )

    def _scale(self, query: Query[R], relation: Relation) -> float:
        """``Delta / epsilon``, rounded upwards."""
        return math.nextafter(float_sensitivity(query, relation) / self.spend.epsilon0, math.inf)

    def release(self, query: Query[R], rows: PrivateRows, sampler: Sampler, relation: Relation) -> R:
        scale = self._scale(query, relation)
        exact = np.clip(np.nan_to_num(exact_answer(query, rows)), -_LARGEST_COUNT, _LARGEST_COUNT)
        noisy = sampler.add_discrete_laplace(np.rint(exact).astype(np.int64), scale)
        noise = DiscreteLaplaceNoise((scale,))
        return query.read(noisy.astype(np.float64), n=public_count(rows, relation), noise=noise, events=(self.spend,))
