"""The local model: every user's device adds the noise to its own row."""

from __future__ import annotations

from typing import ClassVar

from dpregress.mechanisms import DEVICE_MECHANISMS, MechanismTable
from dpregress.trust.base import TrustModel


class Local(TrustModel):
    """Users who answer once, each with noise of the full scale on their own row.

    The server only ever sees the sum of n noisy rows, whose noise is one draw of sqrt(n) sigma: a
    whole study is simulated by its exact law. For a pure epsilon users send randomised unit vectors,
    drawn one for each.
    """

    mechanisms: ClassVar[MechanismTable] = DEVICE_MECHANISMS
    rounds: ClassVar[int | None] = 1


class TwoRounds(Local):
    """Users who answer a second time, when the server has told them what it learnt from the first."""

    rounds: ClassVar[int | None] = 2
