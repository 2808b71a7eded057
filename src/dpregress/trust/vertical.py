"""The vertical model: each party holds different columns of the same people and adds its own noise."""

from __future__ import annotations

from typing import ClassVar

from dpregress.mechanisms import PARTY_MECHANISMS, MechanismTable
from dpregress.trust.base import TrustModel


class Vertical(TrustModel):
    """One party of several: a curator of its own columns, who answers four times and never again.

    Two histograms of each number give its range, in which the party releases the moments of its columns, and then one
    sketch of its rows, bounded by means of these moments. No party sees the rows of another. The guarantee is for the
    party's own columns. Each person is in every party's release, so against the public the guarantees of the parties
    compose.
    """

    mechanisms: ClassVar[MechanismTable] = PARTY_MECHANISMS
    rounds: ClassVar[int | None] = 4
