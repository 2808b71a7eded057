"""Who asks: a trust model bound to its rows, its noise and its reservation."""

from __future__ import annotations

from dataclasses import dataclass

from dpregress.accounting import Event, Reservation
from dpregress.mechanisms import Sampler
from dpregress.queries.base import Query, R
from dpregress.rows import PrivateRows
from dpregress.trust.base import TrustModel


@dataclass(frozen=True)
class Session:
    """A trust model bound to its rows, its noise and its reservation: the ``ask`` of one fit."""

    trust: TrustModel
    rows: PrivateRows
    source: Sampler
    reservation: Reservation

    def __call__(self, query: Query[R], spend: Event) -> R:
        return self.trust.release(self.rows, query, spend, source=self.source, reservation=self.reservation)
