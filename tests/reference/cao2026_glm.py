"""Naive reference for DP-PMTGLM (Algorithm 4 of Cao, Bi and Zhang 2026, arXiv version).

Written from the formulas alone, to cross-check an independent implementation.
Replace-one neighbours, n public.  The Hessians together are mu-GDP and so are the
gradients: a whole fit costs sqrt(2) mu.  Departures from the listing, all on purpose:
responses are clipped, every iterate is projected on the ball (without which the stated
privacy is false), M1 bounds |b'| instead of b', the signs of (13) are corrected, and
exactly `steps` steps are taken.
"""

import math

import numpy as np

from tests.reference.cao2026 import pmt, raw_second_moment, symmetric_noise, truncate_rows


def cumulant_first(cumulant, z):
    """b'(z), the mean of the response at natural parameter z."""
    z = np.asarray(z, dtype=float)
    if cumulant == "gaussian":  # b(z) = z^2 / 2
        return z
    if cumulant == "binomial":  # b(z) = log(1 + e^z); the tanh form cannot overflow
        return 0.5 * (1.0 + np.tanh(0.5 * z))
    if cumulant == "poisson":  # b(z) = e^z
        return np.exp(z)
    raise ValueError(f"unknown cumulant {cumulant!r}")


def cumulant_second(cumulant, z):
    """b''(z), the variance function at natural parameter z."""
    mean = cumulant_first(cumulant, z)
    if cumulant == "gaussian":
        return np.ones_like(mean)
    if cumulant == "binomial":
        return mean * (1.0 - mean)
    return mean


def glm_scales(n, d, mu, eta, steps, cumulant, response_bound, coef_bound):
    """Algorithm 4, line 3: noise sd of each Hessian and of each gradient."""
    radius_squared = d * (1.0 + math.log(2.0 * n / eta))
    radius = math.sqrt(radius_squared)
    # For these three cumulants |b'| and b'' are largest at an end of the interval or at 0.
    z = np.array([-coef_bound * radius, 0.0, coef_bound * radius])
    M1 = float(np.max(np.abs(cumulant_first(cumulant, z))))
    M2 = float(np.max(cumulant_second(cumulant, z)))
    s1 = 2.0 * math.sqrt(steps) * radius_squared * M2 / (mu * n)
    s2 = 2.0 * math.sqrt(steps) * radius * (response_bound + M1) / (mu * n)
    return s1, s2


def pmt_glm(X, y, X_public, *, cumulant, mu, alpha, eta, steps, response_bound, coef_bound, rng):
    """Algorithm 4, DP-PMTGLM: the iterates, shape (steps, d), in the space of X."""
    X = np.asarray(X, dtype=float)
    y = np.clip(np.asarray(y, dtype=float), -response_bound, response_bound)
    n, d = X.shape
    S = raw_second_moment(X_public)
    X_tilde, W, _ = pmt(X, S, eta)
    penalty = alpha * np.linalg.inv(S)  # (alpha/2) ||W b||^2 = (1/2) b' (alpha S^{-1}) b
    s1, s2 = glm_scales(n, d, mu, eta, steps, cumulant, response_bound, coef_bound)
    beta = np.zeros(d)
    path = np.zeros((steps, d))
    for t in range(steps):
        gradient = np.zeros(d)
        hessian = np.zeros((d, d))
        for i in range(n):
            z = X_tilde[i] @ beta
            gradient -= (y[i] - cumulant_first(cumulant, z)) * X_tilde[i]
            hessian += cumulant_second(cumulant, z) * np.outer(X_tilde[i], X_tilde[i])
        gradient = gradient / n + penalty @ beta
        hessian = hessian / n + penalty
        G = symmetric_noise(d, s1, rng)
        g = s2 * rng.standard_normal(d)
        beta = beta - np.linalg.solve(hessian + G, gradient + g)
        beta = truncate_rows(beta.reshape(1, d), coef_bound)[0]
        path[t] = W @ beta
    return path
