"""The vertical model: every party holds its own columns of the same people and adds its own noise."""

from __future__ import annotations

from typing import ClassVar

from dpregress.mechanisms import PARTY_MECHANISMS, MechanismTable
from dpregress.trust.base import TrustModel


class Vertical(TrustModel):
    """One party of several: a curator of its own columns, who answers twice and never again.

    First the moments of its columns, then one mixture of its rows, bounded by what it has just released.
    Nobody sees another party's rows. The guarantee is for the party's own columns; a person is in every
    party's release, so that against the public the parties' guarantees compose.
    """

    mechanisms: ClassVar[MechanismTable] = PARTY_MECHANISMS
    rounds: ClassVar[int | None] = 2
