"""The central model: a curator holds the rows and adds the noise."""

from __future__ import annotations

from typing import ClassVar

from dpregress.accounting import GDP, Event
from dpregress.errors import NotAnswered
from dpregress.mechanisms import Gaussian, Mechanism
from dpregress.rows import PrivateRows
from dpregress.trust.base import TrustModel


class Central(TrustModel):
    """A trusted curator who answers every query."""

    rounds: ClassVar[int | None] = None

    def mechanism(self, spend: Event, rows: PrivateRows) -> Mechanism:  # noqa: ARG002 - the curator's noise does not depend on who the rows are
        if not isinstance(spend, GDP):
            raise NotAnswered(f"the curator adds Gaussian noise for a GDP event, not for {spend}")
        return Gaussian(spend)
