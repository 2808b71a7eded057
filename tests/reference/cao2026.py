"""Naive reference for public-moment-guided truncation (PMT), Statistica Sinica 2026.

Written from the paper's formulas alone, to cross-check an independent implementation.
Replace-one neighbours, n public.  For the ridge and logistic methods each of the two
released sequences (second moment or Hessian; cross moment or gradient) is mu-GDP, so
that a whole fit costs sqrt(2) mu; for gradient descent mu is the total.
"""

import math

import numpy as np
from scipy.special import expit

# ---------------------------------------------------------------- noise scales


def ridge_scales(n, d, mu, eta):
    """Algorithm 2, line 4: noise sd of the second moment and of the cross moment."""
    log_term = 1.0 + math.log(2.0 * n / eta)
    s1 = 2.0 * d * log_term / (mu * n)
    s2 = 2.0 * math.sqrt(d) * log_term / (mu * n)
    return s1, s2


def private_only_ridge_scales(n, d, mu, eta, trace, coef_norm):
    """DP-RR: noise sd of the second moment and of the cross moment."""
    radius_squared = trace + d * math.log(n / eta)
    s1 = 2.0 * radius_squared / (mu * n)
    s2 = s1 * coef_norm
    return s1, s2


def logistic_scales(n, d, mu, eta, steps):
    """Algorithm 3, line 3: noise sd of each Hessian and of each gradient."""
    radius_squared = d * (1.0 + math.log(2.0 * n / eta))
    s1 = math.sqrt(steps) * radius_squared / (2.0 * mu * n)
    s2 = 2.0 * math.sqrt(steps * radius_squared) / (mu * n)
    return s1, s2


def private_only_logistic_scales(n, d, mu, eta, steps, trace):
    """Algorithm 5 (DP-LR), line 2: noise sd of each Hessian and of each gradient."""
    radius_squared = trace + d * math.log(n / eta)
    s1 = math.sqrt(steps) * radius_squared / (2.0 * mu * n)
    s2 = 2.0 * math.sqrt(steps * radius_squared) / (mu * n)
    return s1, s2


def gradient_descent_scale(n, mu, steps, clip):
    """DP-GD: noise sd of each mean gradient, total mu-GDP over all steps."""
    # The paper states no constant for DP-GD.  Replacing one row moves the mean of
    # vectors of norm <= clip by at most 2 clip / n, and `steps` releases of
    # mu / sqrt(steps) each compose to mu.
    mu_step = mu / math.sqrt(steps)
    return (2.0 * clip / n) / mu_step


# ------------------------------------------------------------------- pieces


def symmetric_noise(d, scale, rng):
    """SG_d(scale^2): symmetric, independent N(0, scale^2) on and above the diagonal."""
    noise = np.zeros((d, d))
    for i in range(d):
        for j in range(i, d):
            noise[i, j] = scale * rng.standard_normal()
            noise[j, i] = noise[i, j]
    return noise


def truncate_rows(X, radius):
    """Scale every row that lies outside the ball of the given radius back onto it."""
    out = np.array(X, dtype=float)
    for i in range(out.shape[0]):
        norm = math.sqrt(float(out[i] @ out[i]))
        if norm > radius:
            out[i] = out[i] * (radius / norm)
    return out


def inverse_root(S):
    """Symmetric inverse square root of a positive definite matrix."""
    values, vectors = np.linalg.eigh(np.asarray(S, dtype=float))
    return vectors @ np.diag(1.0 / np.sqrt(values)) @ vectors.T


def raw_second_moment(V):
    """Raw (not centred) second moment (1/m) sum v v'."""
    V = np.asarray(V, dtype=float)
    return V.T @ V / V.shape[0]


def mean_outer(X):
    """(1/n) sum x x', row by row."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for x in X:
        total += np.outer(x, x)
    return total / X.shape[0]


# ------------------------------------------------------------------ algorithms


def pmt(X, public_second_moment, eta):
    """Algorithm 1, PMT: whiten by S^{-1/2}, truncate at sqrt(d (1 + log(2n/eta)))."""
    X = np.asarray(X, dtype=float)
    n, d = X.shape
    whitening = inverse_root(public_second_moment)
    radius = math.sqrt(d * (1.0 + math.log(2.0 * n / eta)))
    return truncate_rows(X @ whitening, radius), whitening, radius


def pmt_ridge(X, y, X_public, y_public, *, mu, alpha, eta, rng):
    """Algorithm 2, DP-PMTRR: ridge regression after PMT of covariates and responses."""
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    y_public = np.asarray(y_public, dtype=float)
    n, d = X.shape
    S = raw_second_moment(X_public)
    X_tilde, W, _ = pmt(X, S, eta)
    y_moment = np.array([[np.mean(y_public**2)]])
    y_tilde = pmt(y.reshape(n, 1), y_moment, eta)[0][:, 0]
    y_scale = math.sqrt(y_moment[0, 0])
    s1, s2 = ridge_scales(n, d, mu, eta)
    G = symmetric_noise(d, s1, rng)
    g = s2 * rng.standard_normal(d)
    A = mean_outer(X_tilde) + alpha * np.linalg.inv(S) + G
    c = X_tilde.T @ y_tilde / n + g
    return y_scale * (W @ np.linalg.solve(A, c))


def private_only_ridge(X, y, *, second_moment, coef_norm, mu, alpha, eta, rng):
    """DP-RR: ridge with oracle truncation (the oracle moments are not private)."""
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    n, d = X.shape
    trace = float(np.trace(second_moment))
    radius = math.sqrt(trace + d * math.log(n / eta))
    X_cut = truncate_rows(X, radius)
    y_cut = np.clip(y, -radius * coef_norm, radius * coef_norm)
    s1, s2 = private_only_ridge_scales(n, d, mu, eta, trace, coef_norm)
    G = symmetric_noise(d, s1, rng)
    g = s2 * rng.standard_normal(d)
    A = mean_outer(X_cut) + alpha * np.eye(d) + G
    c = X_cut.T @ y_cut / n + g
    return np.linalg.solve(A, c)


def noisy_newton_logistic(X, y, penalty, s1, s2, steps, rng):
    """Noisy Newton iterates from 0 for mean logistic loss + (1/2) b' penalty b."""
    n, d = X.shape
    beta = np.zeros(d)
    path = np.zeros((steps, d))
    for t in range(steps):
        gradient = np.zeros(d)
        hessian = np.zeros((d, d))
        for i in range(n):
            p = expit(X[i] @ beta)
            gradient += (p - y[i]) * X[i]
            hessian += p * (1.0 - p) * np.outer(X[i], X[i])
        gradient = gradient / n + penalty @ beta
        hessian = hessian / n + penalty
        G = symmetric_noise(d, s1, rng)
        g = s2 * rng.standard_normal(d)
        beta = beta - np.linalg.solve(hessian + G, gradient + g)
        path[t] = beta
    return path


def pmt_logistic(X, y, X_public, *, mu, alpha, eta, steps, rng):
    """Algorithm 3, DP-PMTLR: exactly `steps` noisy Newton steps, y in {0, 1}."""
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    n, d = X.shape
    S = raw_second_moment(X_public)
    X_tilde, W, _ = pmt(X, S, eta)
    s1, s2 = logistic_scales(n, d, mu, eta, steps)
    path = noisy_newton_logistic(X_tilde, y, alpha * np.linalg.inv(S), s1, s2, steps, rng)
    return path @ W  # W is symmetric: every row is W b


def private_only_logistic(X, y, *, second_moment, mu, alpha, eta, steps, rng):
    """Algorithm 5, DP-LR: the same without whitening (the oracle trace is not private)."""
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    n, d = X.shape
    trace = float(np.trace(second_moment))
    X_cut = truncate_rows(X, math.sqrt(trace + d * math.log(n / eta)))
    s1, s2 = private_only_logistic_scales(n, d, mu, eta, steps, trace)
    return noisy_newton_logistic(X_cut, y, alpha * np.eye(d), s1, s2, steps, rng)


def gradient_descent(X, y, *, mu, steps, clip, rate, rng):
    """DP-GD, the baseline: noisy gradient descent from 0, per-row gradients clipped."""
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    n, d = X.shape
    scale = gradient_descent_scale(n, mu, steps, clip)
    beta = np.zeros(d)
    for _ in range(steps):
        residual = y - X @ beta
        rows = truncate_rows(-residual[:, None] * X, clip)
        gradient = rows.sum(axis=0) / n + scale * rng.standard_normal(d)
        beta = beta - rate * gradient
    return beta
