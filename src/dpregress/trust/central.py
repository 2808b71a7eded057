"""The central model: a curator holds the rows and adds the noise."""

from __future__ import annotations

from typing import ClassVar

from dpregress.mechanisms import CURATOR_MECHANISMS, MechanismTable
from dpregress.trust.base import TrustModel


class Central(TrustModel):
    """A trusted curator who answers every query."""

    mechanisms: ClassVar[MechanismTable] = CURATOR_MECHANISMS
    rounds: ClassVar[int | None] = None
    hides_count: ClassVar[bool] = True
