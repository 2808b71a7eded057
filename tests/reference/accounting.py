"""Naive high-precision references for privacy accounting (mpmath, bisection).

Arguments are floats, taken at their exact binary value; results are floats.
A delta below the smallest positive float comes back as 0.0: gdp_log_delta gives its log.
"""

from mpmath import mp

DIGITS = 60
MORE_DIGITS = (60, 120, 400, 1600)


def _root(increasing, low, high):
    """Zero of an increasing function of t > 0: bracket by factors of 16, then bisect."""
    low, high = mp.mpf(low), mp.mpf(high)
    while increasing(low) > 0:
        low /= 16
    while increasing(high) < 0:
        high *= 16
    while high / low - 1 > mp.mpf("1e-25"):
        middle = mp.sqrt(low * high)
        if increasing(middle) < 0:
            low = middle
        else:
            high = middle
    return mp.sqrt(low * high)


def _gdp_delta(mu, epsilon):
    """Gaussian DP duality: delta(epsilon) of mu-GDP, as an mpf."""
    # Digits are added until at least 40 of them survive the subtraction.
    for digits in MORE_DIGITS:
        with mp.workdps(digits):
            left = mp.ncdf(-epsilon / mu + mu / 2)
            right = mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)
            difference = left - right
            if difference > left * mp.mpf(10) ** (40 - digits):
                return difference
    raise ArithmeticError("not enough digits")


def gdp_delta(mu, epsilon):
    """Gaussian DP duality: the smallest delta of mu-GDP at epsilon."""
    with mp.workdps(DIGITS):
        return float(_gdp_delta(mp.mpf(mu), mp.mpf(epsilon)))


def gdp_log_delta(mu, epsilon):
    """Natural logarithm of gdp_delta, also where delta itself underflows."""
    with mp.workdps(DIGITS):
        return float(mp.log(_gdp_delta(mp.mpf(mu), mp.mpf(epsilon))))


def gdp_mu(epsilon, delta):
    """Largest mu whose delta(epsilon) is delta (the analytic Gaussian mechanism)."""
    with mp.workdps(DIGITS):
        epsilon, delta = mp.mpf(epsilon), mp.mpf(delta)
        return float(_root(lambda mu: _gdp_delta(mu, epsilon) - delta, 1, 1))


def gdp_epsilon(mu, delta):
    """Smallest epsilon >= 0 at which mu-GDP gives (epsilon, delta)-DP."""
    with mp.workdps(DIGITS):
        mu, delta = mp.mpf(mu), mp.mpf(delta)
        if _gdp_delta(mu, mp.mpf(0)) <= delta:
            return 0.0
        return float(_root(lambda eps: delta - _gdp_delta(mu, eps), 1, 1))


def zcdp_epsilon(rho, delta):
    """arXiv:2004.00010v4, Proposition 12: epsilon of rho-zCDP at the best order a."""
    # delta = exp((a-1)(a rho - eps)) / (a-1) * (1 - 1/a)^a, solved for eps, is
    #   eps(a) = a rho + (log(1/delta) - log a)/(a-1) + log(1 - 1/a),
    # with derivative rho - (log(1/delta) - log a)/(a-1)^2: a single zero, the minimum.
    with mp.workdps(DIGITS):
        rho, delta = mp.mpf(rho), mp.mpf(delta)
        if rho == 0 or delta >= 1:
            return 0.0
        budget = -mp.log(delta)
        # In b = a - 1 > 0.
        b = _root(lambda b: rho * b**2 - budget + mp.log(1 + b), 1, 1)
        a = 1 + b
        epsilon = a * rho + (budget - mp.log(a)) / b + mp.log(b / a)
        return float(max(epsilon, mp.mpf(0)))


def zcdp_delta_at(rho, epsilon, order):
    """arXiv:2004.00010v4, Proposition 12: the delta of one order, unoptimised."""
    with mp.workdps(DIGITS):
        rho, epsilon, a = mp.mpf(rho), mp.mpf(epsilon), mp.mpf(order)
        return float(mp.exp((a - 1) * (a * rho - epsilon)) / (a - 1) * (1 - 1 / a) ** a)


def pure_mu(epsilon):
    """Smallest mu for which every pure epsilon-DP mechanism is mu-GDP."""
    with mp.workdps(DIGITS):
        epsilon = mp.mpf(epsilon)
        if epsilon == 0:
            return 0.0
        tail = 1 / (mp.exp(epsilon) + 1)
        return float(_root(lambda mu: tail - mp.ncdf(-mu / 2), 1, 1))


def pure_delta(epsilons, epsilon):
    """The exact delta at epsilon of one answer of randomised response for each of these epsilons, by all outcomes."""
    with mp.workdps(DIGITS):
        losses = [(mp.mpf(0), mp.mpf(1))]  # the privacy loss of what was answered so far, and its probability
        for each in map(mp.mpf, epsilons):
            true = 1 / (1 + mp.exp(-each))
            losses = [
                (loss + sign * each, chance * part)
                for loss, chance in losses
                for sign, part in ((1, true), (-1, 1 - true))
            ]
        excess = ((loss - mp.mpf(epsilon), chance) for loss, chance in losses)
        return float(mp.fsum(chance * -mp.expm1(-above) for above, chance in excess if above > 0))
