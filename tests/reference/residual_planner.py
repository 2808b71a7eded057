"""Naive reference for ResidualPlanner on pairwise marginals: the closed forms, and dense algebra to check them.

A residual is named by its attributes: () the total, (j,) one-way, (j, k) with j < k two-way.
Neighbours add or remove one record; privacy is mu-GDP.  `scales` holds the sds s_A by name.
"""

import itertools
import math

import numpy as np


def contrast(k):
    """P = I - 11'/k."""
    return np.eye(k) - np.ones((k, k)) / k


def residual_names(weights):
    """The total, and every attribute and pair that the weighted pairs need."""
    return [(), *sorted({(a,) for pair in weights for a in pair}), *sorted(weights)]


def unit_cost(name, sizes):
    """p_A = prod (1 - 1/k_a): mu^2 of one residual at s_A = 1."""
    return math.prod(1.0 - 1.0 / sizes[a] for a in name)


def unit_variance(name, sizes, weights):
    """v_A: what s_A^2 = 1 adds to the weighted sum of the cell variances of all pairs' tables."""
    total = 0.0
    for (j, k), w in weights.items():
        if name == ():
            total += w / (sizes[j] * sizes[k])
        elif name == (j,):
            total += w * (sizes[j] - 1) / sizes[k]
        elif name == (k,):
            total += w * (sizes[k] - 1) / sizes[j]
        elif name == (j, k):
            total += w * (sizes[j] - 1) * (sizes[k] - 1)
    return total


def optimal_scales(sizes, weights, mu):
    """s_A^2 = sqrt(p_A / v_A) sum_B sqrt(v_B p_B) / mu^2, the least weighted total variance at mu."""
    p = {A: unit_cost(A, sizes) for A in residual_names(weights)}
    v = {A: unit_variance(A, sizes, weights) for A in p}
    total = sum(math.sqrt(v[A] * p[A]) for A in p)
    return {A: math.sqrt(math.sqrt(p[A] / v[A]) * total / mu**2) for A in p}


def total_variance(sizes, weights, scales):
    """sum_A v_A s_A^2: the weighted sum of the variances of all cells of all pairs."""
    return sum(unit_variance(A, sizes, weights) * s**2 for A, s in scales.items())


def privacy(sizes, scales):
    """mu = sqrt(sum p_A / s_A^2)."""
    return math.sqrt(sum(unit_cost(A, sizes) / s**2 for A, s in scales.items()))


def table(records, name, sizes):
    """The counts of the named attributes, as an array with one axis for each."""
    counts = np.zeros([sizes[a] for a in name])
    for record in records:
        counts[tuple(record[a] for a in name)] += 1.0
    return counts


def residuals(records, sizes, scales, noises):
    """R_A = P_A (T_A + s_A z); `noises` holds draws in the shape of T_A (None: no noise)."""
    out = {}
    for A, s in scales.items():
        noisy = table(records, A, sizes)
        if noises is not None:
            noisy = noisy + s * np.asarray(noises[A])
        if len(A) == 1:
            noisy = contrast(sizes[A[0]]) @ noisy
        if len(A) == 2:
            noisy = contrast(sizes[A[0]]) @ noisy @ contrast(sizes[A[1]])
        out[A] = noisy
    return out


def reconstruct_one_way(R, j, sizes):
    """T_j = R_0 / k_j 1 + R_j."""
    return R[()] / sizes[j] + R[(j,)]


def reconstruct(R, pair, sizes):
    """T_jk = R_0 / (k_j k_k) 11' + R_j 1'/k_k + 1 R_k'/k_j + R_jk."""
    j, k = pair
    out = np.zeros((sizes[j], sizes[k]))
    for s in range(sizes[j]):
        for t in range(sizes[k]):
            out[s, t] = R[()] / (sizes[j] * sizes[k]) + R[(j,)][s] / sizes[k] + R[(k,)][t] / sizes[j] + R[pair][s, t]
    return out


# --------------------------------------------------- the same by dense least squares


def marginal_matrix(name, sizes):
    """The 0/1 matrix that takes the full table, flattened, to the marginal, flattened."""
    cells = list(itertools.product(*[range(k) for k in sizes]))
    rows = list(itertools.product(*[range(sizes[a]) for a in name]))
    return np.array([[float(tuple(cell[a] for a in name) == row) for cell in cells] for row in rows])


def contrast_matrix(name, sizes):
    """P_A, the Kronecker product of the contrasts."""
    out = np.ones((1, 1))
    for a in name:
        out = np.kron(out, contrast(sizes[a]))
    return out


def information(sizes, scales):
    """Fisher information on the full table: sum_A (P_A M_A)' (s_A^2 P_A)^+ (P_A M_A)."""
    total = 0.0
    for A, s in scales.items():
        M = contrast_matrix(A, sizes) @ marginal_matrix(A, sizes)
        total = total + M.T @ np.linalg.pinv(s**2 * contrast_matrix(A, sizes)) @ M
    return total


def dense_privacy(sizes, scales):
    """mu: a record is one cell, and changes the releases by the root of its information."""
    return math.sqrt(float(np.max(np.diag(information(sizes, scales)))))


def dense_reconstruct(R, name, sizes, scales):
    """Generalised least squares for the named table, and the covariance of its flattened cells."""
    inverse = np.linalg.pinv(information(sizes, scales), rcond=1e-10)
    right = 0.0
    for A, s in scales.items():
        P = contrast_matrix(A, sizes)
        M = P @ marginal_matrix(A, sizes)
        right = right + M.T @ np.linalg.pinv(s**2 * P) @ np.ravel(R[A])
    M = marginal_matrix(name, sizes)
    return (M @ inverse @ right).reshape([sizes[a] for a in name]), M @ inverse @ M.T
