"""The local model: every user's device adds the noise to its own row."""

from __future__ import annotations

from typing import ClassVar

from dpregress.mechanisms import DEVICE_MECHANISMS, MechanismTable
from dpregress.trust.base import TrustModel


class Local(TrustModel):
    """Users who answer once, each with noise of the full scale on their own row.

    The server sees only the sum of n noisy rows, whose noise is one draw of scale ``sqrt(n) sigma``. A whole study is
    therefore simulated from its exact distribution. For pure epsilon-DP, each user sends a randomised unit vector.
    """

    mechanisms: ClassVar[MechanismTable] = DEVICE_MECHANISMS
    rounds: ClassVar[int | None] = 1


class TwoRounds(Local):
    """Users who answer a second time, after the server has published what it learnt from the first round."""

    rounds: ClassVar[int | None] = 2
