"""The local model: every user's device adds the noise to its own row."""

from __future__ import annotations

from typing import ClassVar

from dpregress.accounting import GDP, Event, PureDP
from dpregress.errors import NotAnswered
from dpregress.mechanisms import Gaussian, Mechanism, UnitVector
from dpregress.rows import PrivateRows
from dpregress.trust.base import TrustModel


class Local(TrustModel):
    """Users who answer once, each with noise of the full scale on their own row.

    The server only ever sees the sum of n noisy rows, whose noise is one draw of sqrt(n) sigma: a
    whole campaign is simulated by its exact law. For a pure epsilon users send randomised unit vectors,
    drawn one for each.
    """

    rounds: ClassVar[int | None] = 1

    def mechanism(self, spend: Event, rows: PrivateRows) -> Mechanism:
        if isinstance(spend, PureDP):
            return UnitVector(spend)
        if not isinstance(spend, GDP):
            raise NotAnswered(f"devices add Gaussian noise for GDP and send unit vectors for PureDP, not for {spend}")
        return Gaussian(spend, contributors=rows.n)


class TwoRounds(Local):
    """Users who answer a second time, when the server has told them what it learnt from the first."""

    rounds: ClassVar[int | None] = 2
