"""The classical calibration of Gaussian noise, used only to reproduce published constants."""

from __future__ import annotations

import math

from dpregress.accounting import convert


def classical_mu(epsilon: float, delta: float) -> float:
    r"""The mu of noise at the classical scale, ``mu = epsilon / sqrt(2 log(1.25 / delta))``.

    ``sigma = Delta sqrt(2 log(1.25/delta)) / epsilon`` is a theorem for epsilon <= 1 only (Dwork, Roth 2014,
    Theorem A.1). For larger epsilon the exact guarantee is ``GDP(mu).epsilon(delta)``, not epsilon.

    Examples
    --------
    >>> round(classical_mu(1.0, 1e-5), 4)
    0.2064
    """
    convert.check_epsilon_delta(epsilon, delta)
    return epsilon / math.sqrt(2 * math.log(1.25 / delta))
