"""Naive reference for multi-party release for linear regression (Wu et al. 2022).

Written from the listings of Algorithms 1 and 2 alone, to cross-check an independent
implementation.  `parties` is a list of n x d_j arrays, disjoint columns of the same people with
entries in [-1, 1]; the last column of the last party is the response, and counts in d_j.

Noise is passed in as one array of standard normal draws for each party (n x d_j, after mixing
k x d_j), or None for no noise, in the list or for the whole list.
"""

import math

import numpy as np

# ---------------------------------------------------------------- noise scales


def classical_sigma(epsilon, delta):
    """sigma_{epsilon, delta} = sqrt(2 log(1.25 / delta)) / epsilon, a theorem for epsilon <= 1."""
    return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def noise_sds(dims, sigma):
    """One sd per party: all the same, 2 sqrt(d_max) sigma, as printed."""
    return [2.0 * math.sqrt(max(dims)) * sigma for _ in dims]


def own_noise_sds(dims, sigma, width=2.0):
    """One sd per party from its own d_j: width sqrt(d_j) sigma (width 1 for entries in [0, 1])."""
    return [width * math.sqrt(d) * sigma for d in dims]


def best_rows(n, d, d_max, sigma):
    """k = sqrt(n) sqrt(d / d_max) / sigma of Theorem 2, constant 1, not rounded."""
    return math.sqrt(n) * math.sqrt(d / d_max) / sigma


def synthetic_rows(n, sigma):
    """k = sqrt(n) / sigma of the synthetic experiments, not rounded."""
    return math.sqrt(n) / sigma


# -------------------------------------------------------------------- releases


def mixed(B, D):
    """B D / sqrt k, one released row at a time."""
    k, n = B.shape
    out = np.zeros((k, D.shape[1]))
    for a in range(k):
        for i in range(n):
            out[a] += B[a, i] * D[i]
    return out / math.sqrt(k)


def release(parties, noises, sds, B=None):
    """The joint release, n x (d + 1), or k x (d + 1) after mixing by B (Algorithms 1 and 2)."""
    blocks = []
    for j, D in enumerate(parties):
        block = np.array(D, dtype=float)
        if B is not None:
            block = mixed(np.asarray(B, dtype=float), block)
        if noises is not None and noises[j] is not None:
            block = block + sds[j] * np.asarray(noises[j])
        blocks.append(block)
    return np.hstack(blocks)


def column_variances(parties, sds):
    """Noise variance of every column of the joint release."""
    return np.array([sds[j] ** 2 for j, D in enumerate(parties) for _ in range(np.shape(D)[1])])


# ------------------------------------------------------------------ algorithms


def dgm_ols(parties, noises, sigma, *, debias=True, ridge=1e-5, sds=None):
    """Algorithm 1, DGM-OLS; without debiasing BGM-OLS.  The Hessian is divided by n.

    `debias` subtracts the printed variance even where the noise is None.  `ridge` is added to
    the Hessian after the subtraction (1e-5 in the experiments, 0 in the listing).
    """
    sds = noise_sds([np.shape(D)[1] for D in parties], sigma) if sds is None else sds
    joint = release(parties, noises, sds)
    n, columns = joint.shape
    X, y = joint[:, : columns - 1], joint[:, columns - 1]
    hessian = np.zeros((columns - 1, columns - 1))
    cross = np.zeros(columns - 1)
    for i in range(n):
        hessian += np.outer(X[i], X[i]) / n
        cross += X[i] * y[i] / n
    for a in range(columns - 1):
        hessian[a, a] += ridge
        if debias:
            hessian[a, a] -= column_variances(parties, sds)[a]
    return np.linalg.solve(hessian, cross)


def rmgm_ols(parties, B, noises, sigma, *, debias=False, ridge=1e-5, sds=None):
    """Algorithm 2, RMGM-OLS, for a given k x n matrix B (signs in the paper).

    Neither side of the normal equations is divided by k or n, so that `ridge` is added to
    X'X itself.  `debias` (not in the paper) subtracts k times the noise variance, without repair.
    """
    sds = noise_sds([np.shape(D)[1] for D in parties], sigma) if sds is None else sds
    joint = release(parties, noises, sds, B)
    k, columns = joint.shape
    X, y = joint[:, : columns - 1], joint[:, columns - 1]
    gram = np.zeros((columns - 1, columns - 1))
    cross = np.zeros(columns - 1)
    for a in range(k):
        gram += np.outer(X[a], X[a])
        cross += X[a] * y[a]
    for a in range(columns - 1):
        gram[a, a] += ridge
        if debias:
            gram[a, a] -= k * column_variances(parties, sds)[a]
    return np.linalg.solve(gram, cross)
