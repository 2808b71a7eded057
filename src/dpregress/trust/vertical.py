"""The vertical model: every party holds its own columns of the same people and adds its own noise."""

from __future__ import annotations

from typing import ClassVar

from dpregress.accounting import GDP, Event
from dpregress.errors import NotAnswered
from dpregress.mechanisms import Gaussian, Mechanism
from dpregress.rows import PrivateRows
from dpregress.trust.base import TrustModel


class Vertical(TrustModel):
    """One party of several: a curator of its own columns, who answers twice and never again.

    First the moments of its columns, then one mixture of its rows, bounded by what it has just released.
    Nobody sees another party's rows. The guarantee is for the party's own columns; a person is in every
    party's release, so that against the public the parties' guarantees compose.
    """

    rounds: ClassVar[int | None] = 2

    def mechanism(self, spend: Event, rows: PrivateRows) -> Mechanism:  # noqa: ARG002 - the party's noise does not depend on who the rows are
        if not isinstance(spend, GDP):
            raise NotAnswered(f"a party adds Gaussian noise for a GDP event, not for {spend}")
        return Gaussian(spend)
