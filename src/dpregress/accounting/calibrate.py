"""From a budget to the parameters of mechanisms: the only place where budgets are divided."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.optimize import brentq

from dpregress.accounting.convert import zcdp_epsilon
from dpregress.accounting.events import GDP, ZCDP, ApproxDP, Event
from dpregress.errors import InvalidInput

#: Far above the part of mu that a sampler's grid takes (2^-40).
_SMALLEST_MU = 2.0**-30
#: The smallest scale of integer noise, in steps of the grid.
SMALLEST_INTEGER_SCALE = 2**23
#: The largest part of delta that rounding to integers may take.
_LARGEST_PART = 0.5


def gaussian_promise(budget: Event) -> GDP:
    """The whole budget as one GDP event: what a fit by Gaussian mechanisms reserves.

    Raises
    ------
    InvalidInput
        For a budget that no Gaussian mechanism can satisfy, such as pure epsilon-DP.
    """
    mu = budget.gaussian_mu
    if mu <= 0:
        raise InvalidInput("Gaussian noise cannot satisfy a pure epsilon budget: use ApproxDP(epsilon, delta)")
    if mu < _SMALLEST_MU:
        raise InvalidInput(f"a budget of mu = {mu:.3g} is too small to draw noise safely: spend more")
    return GDP(mu)


def split(budget: GDP, shares: Sequence[float]) -> tuple[GDP, ...]:
    """Divide a GDP budget: share s gets ``mu_s = mu sqrt(s / sum)``, so that ``sum mu_s^2 = mu^2``.

    Parameters
    ----------
    budget : GDP
    shares : sequence of float
        Positive shares of mu squared, on any scale.

    Examples
    --------
    >>> [round(part.mu, 3) for part in split(GDP(1.0), [1, 3])]
    [0.5, 0.866]
    """
    total = math.fsum(shares)
    if not shares or min(shares) <= 0 or not math.isfinite(total):
        raise InvalidInput("shares of a budget must be positive and finite")
    return tuple(GDP(budget.mu * math.sqrt(share / total)) for share in shares)


def zcdp_promise(budget: Event) -> ZCDP:
    """The whole budget as one zCDP event: what a fit reserves that also uses the exponential mechanism.

    For an (epsilon, delta) budget this is the largest rho that
    :func:`dpregress.accounting.convert.zcdp_epsilon` allows.

    Raises
    ------
    InvalidInput
        For a budget of another kind.
    """
    if isinstance(budget, ZCDP):
        return budget
    if not isinstance(budget, ApproxDP):
        raise InvalidInput(f"this method takes ApproxDP(epsilon, delta) or ZCDP(rho), not {budget}")

    def excess(log_rho: float) -> float:
        return zcdp_epsilon(math.exp(log_rho), budget.delta0) - budget.epsilon0

    # rho below eps, since rho-zCDP implies an epsilon of at least rho
    root = float(brentq(excess, math.log(budget.epsilon0) - 60, math.log(budget.epsilon0), xtol=1e-10))
    return ZCDP(math.exp(root) * (1 - 1e-9))


def integer_slack(epsilon: float, size: int) -> float:
    """The delta that rounding to integers adds to mu-GDP for ``size`` entries (docs/privacy/local-messages.md)."""
    s = SMALLEST_INTEGER_SCALE
    return (1 + math.exp(min(epsilon, 700.0))) * size * (0.0202 / s**2 + 0.0158 / s**3)


def integer_gaussian_promise(budget: ApproxDP, size: int) -> GDP | None:
    """The largest mu at which integer Gaussian messages of ``size`` entries are (epsilon, delta)-DP.

    The slack for rounding to integers is included. The result is None where the slack takes more than half of delta,
    which happens for an epsilon above about 16.
    """
    left = budget.delta0 - integer_slack(budget.epsilon0, size)
    if left < (1 - _LARGEST_PART) * budget.delta0:
        return None
    return GDP(ApproxDP(budget.epsilon0, left).gaussian_mu)
