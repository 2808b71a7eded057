r"""Spherical caps for pure epsilon-DP: the calibration of a private unit vector.

A random unit vector u in R^p whose density is ``e^eps`` times higher on the cap ``{u'v >= gamma}`` than off it
is epsilon-DP in v. With ``q = P(u'v >= gamma)`` of a uniform u and ``a = E[u'v; u'v >= gamma]``, its mean is
``g v`` with ``g = a (e^eps - 1) / (1 - q + e^eps q)``. The best gamma maximises g, so that ``u / g`` has the smallest
variance of any such mechanism (Asi, Feldman, Talwar 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaln

from dpregress.errors import InvalidInput

#: Beyond these limits the bound on rounding in docs/privacy/local-messages.md is too weak, and caps are rarely hit.
LARGEST_EPSILON, LARGEST_ORDER = 10.0, 500


@dataclass(frozen=True)
class Cap:
    """A cap around a unit vector.

    Parameters
    ----------
    epsilon : float
    order : int
        The dimension p.
    gamma : float
        Cosine of the cap's edge, in [0, 1).
    """

    epsilon: float
    order: int
    gamma: float

    @property
    def share(self) -> float:
        """q, the cap's share of the sphere."""
        if self.order == 1:
            return 0.5
        return 0.5 * float(betainc((self.order - 1) / 2, 0.5, 1 - self.gamma**2))

    @property
    def inside(self) -> float:
        """The probability that the released vector lies in the cap."""
        return 1 / (1 + math.exp(-self.epsilon) * (1 - self.share) / self.share)

    @property
    def gain(self) -> float:
        """g, the length of the mean of the released unit vector."""
        first = 0.5
        if self.order > 1:
            half = (self.order - 1) / 2
            first = math.exp(half * math.log1p(-(self.gamma**2)) - math.log(2 * half) - float(betaln(0.5, half)))
        return first * (self.inside / self.share - (1 - self.inside) / (1 - self.share))

    @property
    def along(self) -> float:
        """``E (u'v)^2``; 1/p for a uniform u."""
        if self.order == 1:
            return 1.0
        outer = 0.5 / self.order * (1 - float(betainc(1.5, (self.order - 1) / 2, self.gamma**2)))
        return outer * self.inside / self.share + (1 / self.order - outer) * (1 - self.inside) / (1 - self.share)


@lru_cache(maxsize=256)
def best_cap(epsilon: float, order: int) -> Cap:
    """The cap with the largest gain.

    Parameters
    ----------
    epsilon : float
        At most 10.
    order : int
        At most 500.

    Raises
    ------
    InvalidInput

    Examples
    --------
    >>> round(best_cap(1.0, 1).gain, 4), round(best_cap(5.0, 5).gain, 4)
    (0.4621, 0.7237)
    """
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise InvalidInput(
            f"epsilon of a private unit vector must be between 0 and {LARGEST_EPSILON:g}, not {epsilon:g}"
        )
    if not 1 <= order <= LARGEST_ORDER:
        raise InvalidInput(f"a private unit vector has up to {LARGEST_ORDER} entries, not {order}")
    if order == 1:
        return Cap(epsilon, 1, 0.0)

    def loss(gamma: float) -> float:
        return -Cap(epsilon, order, gamma).gain

    found = minimize_scalar(loss, bounds=(0.0, 1.0 - 1e-9), method="bounded", options={"xatol": 1e-10})
    return Cap(epsilon, order, float(found.x))
