"""The exponential mechanism: a private choice among public candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpregress.accounting import ZCDP, Relation
from dpregress.mechanisms.base import Mechanism, exact_answer, float_sensitivity, public_count
from dpregress.mechanisms.randomness import Sampler, check_sigma
from dpregress.queries.base import Norm, Query, R
from dpregress.releases import Isotropic
from dpregress.rows import PrivateRows


@dataclass(frozen=True)
class Exponential(Mechanism):
    r"""Chooses candidate r with probability proportional to ``exp(eps q_r / (2 Delta))``.

    Delta is the largest change of any score between neighbours. The choice is the candidate with the largest sum of its
    score and Gumbel noise of scale ``2 Delta / eps``. The privacy loss lies in an interval of length eps, so the
    mechanism is ``eps^2 / 8``-zCDP, and eps is ``sqrt(8 rho)``.

    Parameters
    ----------
    spend : ZCDP
        The cost of one choice.

    References
    ----------
    McSherry, Talwar (2007); Cesar, Rogers (2021), Lemma 3.2, for zCDP.
    """

    norm: ClassVar[Norm] = Norm.LINF
    spend: ZCDP

    def event(self) -> ZCDP:
        return self.spend

    def refuse(self, query: Query[R], rows: PrivateRows, relation: Relation) -> None:  # noqa: ARG002
        check_sigma(self._scale(query, relation))

    def _scale(self, query: Query[R], relation: Relation) -> float:
        return 2 * float_sensitivity(query, relation) / math.sqrt(8 * self.spend.rho)

    def release(self, query: Query[R], rows: PrivateRows, sampler: Sampler, relation: Relation) -> R:
        scale = self._scale(query, relation)
        chosen = sampler.choose(exact_answer(query, rows), scale)
        count = public_count(rows, relation)
        return query.read(np.array([float(chosen)]), n=count, noise=Isotropic(scale), events=(self.spend,))
