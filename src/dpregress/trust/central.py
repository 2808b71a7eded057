"""The central model: a curator holds the rows and adds the noise."""

from __future__ import annotations

from typing import ClassVar

from dpregress.accounting import GDP, ZCDP, Event
from dpregress.errors import NotAnswered
from dpregress.mechanisms import Exponential, Gaussian, Mechanism
from dpregress.rows import PrivateRows
from dpregress.trust.base import TrustModel


class Central(TrustModel):
    """A trusted curator who answers every query."""

    rounds: ClassVar[int | None] = None
    hides_count: ClassVar[bool] = True

    def mechanism(self, spend: Event, rows: PrivateRows) -> Mechanism:  # noqa: ARG002 - the curator's noise does not depend on who the rows are
        if isinstance(spend, GDP):
            return Gaussian(spend)
        if isinstance(spend, ZCDP):
            return Exponential(spend)
        raise NotAnswered(
            f"the curator adds Gaussian noise for a GDP event and chooses for a zCDP one, not for {spend}"
        )
