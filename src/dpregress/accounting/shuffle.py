r"""Privacy amplification by shuffling: the central guarantee of n locally private messages without sender names.

With probability ``e^-eps0``, the epsilon_0-private message of another user is a clone: it has the distribution of a
message of the attacked user, who hides among the clones. The two sets of messages are post-processings of

    (A + D, C - A + 1 - D)   and   (A + 1 - D, C - A + D),
    C ~ Bin(n - 1, e^-eps0),  A ~ Bin(C, 1/2),  D ~ Bernoulli(e^eps0 / (e^eps0 + 1)),

whose hockey-stick divergence is bounded here from above (Feldman, McMillan, Talwar 2021, Theorem 3.2).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from dpregress.accounting import convert
from dpregress.accounting.calibrate import integer_slack
from dpregress.accounting.events import GDP, ZCDP, Event, PureDP
from dpregress.errors import InvalidInput

#: The sum over C runs over this many blocks; each counts as its least private value.
_BLOCKS = 2000
#: Values of C beyond this many standard deviations count as no clones at all.
_DEVIATIONS = 12.0
#: The share of delta for the failure probabilities of approximate messages.
_FAILURES = 0.5
#: Messages with a larger epsilon give no amplification.
_HOPELESS = 50.0
#: The largest epsilon for which the part of delta that rounding to integers takes is reserved.
_MOST = 1.0


def shuffled_epsilon(message: Event, n: int, delta: float, *, entries: int | None = None) -> float:
    r"""The central epsilon, at delta, of n messages that are shuffled before anybody sees them.

    The bound holds if the n users answer independently with the same mechanism, if only the shuffler can link a
    message to its sender, and if n does not include users who collude with the analyst. For an approximate message
    with (eps0, delta0) the bound is ``delta = delta_eps0 + (e^eps + 1)(1 + e^-eps0 / 2) n delta0``: Theorem 3.8 of the
    paper. It is conservative, because each message is within delta0 of one that is eps0-private.

    A Gaussian message consists of integers (docs/privacy/local-messages.md). It is exactly ``mu^2/2``-zCDP, and eps0
    is taken at the point of the zCDP curve that gives the best bound. If ``entries`` is given, the curve of mu-GDP is
    tried as well: p integers are within a total variation t of it, which adds ``(1 + e^eps) n t`` to delta.

    Parameters
    ----------
    message : PureDP or GDP
        The cost of one message to its user.
    n : int
        Number of messages.
    delta : float
    entries : int, optional
        p, the number of integers in a Gaussian message; it makes epsilon slightly smaller. Not used for PureDP.

    Returns
    -------
    epsilon : float
        At most the epsilon of a single message at this delta.

    Raises
    ------
    InvalidInput
        For another kind of message, or if ``n`` or ``entries`` is below 1.

    References
    ----------
    Feldman, McMillan, Talwar (2021), Hiding among the clones, Theorems 3.2 and 3.8.

    Examples
    --------
    >>> from dpregress.accounting import PureDP
    >>> round(shuffled_epsilon(PureDP(1.0), 100_000, 1e-6), 4)
    0.0153
    """
    convert.check_delta(delta)
    if n < 1:
        raise InvalidInput(f"a study has at least one message, not {n}")
    if isinstance(message, PureDP):
        return min(message.epsilon(delta), _clones(message.epsilon0, n, delta))
    if not isinstance(message, GDP):
        raise InvalidInput(f"shuffling is accounted for PureDP and GDP messages, not for {message}")
    if entries is not None and entries < 1:
        raise InvalidInput(f"a message has at least one entry, not {entries}")
    exact = ZCDP(message.rho)
    local = exact.epsilon(delta)
    found = [local, _approximate(exact, n, delta)]
    if entries is not None:
        # the part of delta for integers grows with epsilon: reserve it for an epsilon that the answer must not exceed
        for most, count in ((local, 1), (min(local, _MOST), n)):
            left = delta - integer_slack(most, count * entries)
            if left > 0:
                better = message.epsilon(left) if count == 1 else _approximate(message, n, left)
                found += [better] if better <= most else []
    return min(found)


def _approximate(message: Event, n: int, delta: float) -> float:
    """The best bound of Theorem 3.8 over a few points of the message's curve; infinite if none applies."""
    best = math.inf
    for share in 10.0 ** np.arange(-12.0, 0.0, 1.0):
        failures = _FAILURES * float(share) * delta / (2 * n)
        epsilon0 = message.epsilon(failures)
        if epsilon0 > _HOPELESS:
            continue
        found = _clones(epsilon0, n, (1 - _FAILURES) * delta)
        if (math.exp(found) + 1) * (1 + math.exp(-epsilon0) / 2) * n * failures <= _FAILURES * delta:
            best = min(best, found)
    return best


def _clones(epsilon0: float, n: int, delta: float) -> float:
    """The smallest epsilon at which the divergence given the clones is at most delta; rounded up."""
    weights, counts = _hidden_among(epsilon0, n)

    def excess(epsilon: float) -> float:
        return float(weights @ _divergence(epsilon, epsilon0, counts)) - delta

    if excess(0.0) <= 0:
        return 0.0
    if excess(epsilon0 * (1 - 1e-12)) > 0:
        return epsilon0
    return min(
        epsilon0, float(brentq(excess, 0.0, epsilon0 * (1 - 1e-12), xtol=1e-12, rtol=1e-12)) * (1 + 1e-9) + 1e-12
    )


def _hidden_among(epsilon0: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of values of C: their probabilities, and the smallest number of clones in each, which hide least."""
    probability = math.exp(-epsilon0)
    mean, deviation = (n - 1) * probability, math.sqrt((n - 1) * probability * (1 - probability))
    low = max(0, math.floor(mean - _DEVIATIONS * deviation))
    high = min(n - 1, math.ceil(mean + _DEVIATIONS * deviation))
    starts = np.unique(np.linspace(low, high, _BLOCKS).astype(np.int64))
    below = binom.cdf(starts - 1, n - 1, probability)  # of C < start
    ends = np.append(below[1:], 1.0)
    weights = np.concatenate([below[:1], ends - below])
    return np.maximum(weights, 0.0), np.concatenate([[0], starts])


def _divergence(epsilon: float, epsilon0: float, clones: np.ndarray) -> np.ndarray:
    """``sum max(P - e^eps Q, 0)`` for each number of clones; P(x) / Q(x) grows with x, the first of C + 1 messages."""
    high = 1 / (1 + math.exp(-epsilon0))
    low = 1 - high
    growth = math.exp(epsilon)
    if high - low * growth <= 0:  # epsilon is epsilon0 but for rounding: P <= e^eps0 Q
        return np.full(len(clones), -math.expm1(min(epsilon - epsilon0, 0.0)))
    # P(x) = high Bin(x - 1) + low Bin(x), Bin(x - 1) / Bin(x) = x / (c - x + 1)
    ratio = (high * growth - low) / (high - low * growth)
    first = np.floor(ratio * (clones + 1) / (1 + ratio)) + 1
    upper, lower = binom.sf(first - 2, clones, 0.5), binom.sf(first - 1, clones, 0.5)
    return np.asarray(np.maximum((high - growth * low) * upper + (low - growth * high) * lower, 0.0))
