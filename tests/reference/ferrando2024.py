"""Naive reference for data-dependent sufficient statistics (Ferrando, Sheldon 2024).

Written from the paper's formulas alone, to cross-check an independent implementation.
Records are lists of level indices 0 .. m_j - 1; neighbours add or remove one record.
"""

import math

import numpy as np

# ------------------------------------------------------- marginals and encodings


def one_way(records, j, levels):
    """mu_j, the counts of attribute j."""
    counts = np.zeros(levels[j])
    for record in records:
        counts[record[j]] += 1.0
    return counts


def pairwise(records, j, k, levels):
    """<mu_jk>, the m_j x m_k counts of attributes j and k; diag(mu_j) where k = j."""
    table = np.zeros((levels[j], levels[k]))
    for record in records:
        table[record[j], record[k]] += 1.0
    return table


def all_marginals(records, levels):
    """{(j, k): <mu_jk>} for all j <= k."""
    m = len(levels)
    return {(j, k): pairwise(records, j, k, levels) for j in range(m) for k in range(j, m)}


def scalar_encoding(values):
    """A_j = v_j', the number of every level."""
    return np.array(values, dtype=float).reshape(1, -1)


def one_hot_encoding(levels):
    """A_j = I."""
    return np.eye(levels)


def reduced_encoding(levels):
    """A_j = I without its first row: the first level is dropped."""
    return np.eye(levels)[1:]


def encode(records, encodings):
    """Z, one row z = (A_1 onehot(x_1), ..., A_m onehot(x_m)) for every record."""
    return np.array([np.concatenate([A[:, record[j]] for j, A in enumerate(encodings)]) for record in records])


def gram_from_marginals(marginals, encodings):
    """Proposition 3.2: (Z'Z)_[j,k] = A_j <mu_jk> A_k', from the tables of all j <= k."""
    m = len(encodings)
    blocks = []
    for j in range(m):
        row = []
        for k in range(m):
            table = marginals[j, k] if j <= k else marginals[k, j].T
            row.append(encodings[j] @ table @ encodings[k].T)
        blocks.append(row)
    return np.block(blocks)


def norm_bound(scalar_bounds, one_hot_attributes):
    """Proposition 3.1: ||x|| <= sqrt(||U||^2 + c), c counted in attributes and not in levels."""
    return math.sqrt(sum(b**2 for b in scalar_bounds) + one_hot_attributes)


# ---------------------------------------------------------------- Algorithm 1


def split_gram(gram, target):
    """X'X and X'y, y being column `target` of Z and X all the others, in order."""
    rest = [a for a in range(len(gram)) if a != target]
    return gram[np.ix_(rest, rest)], gram[rest, target]


def ddssp_linear(marginals, encodings, target, ridge=0.0):
    """Algorithm 1, DD-SSP: (X'X + ridge I)^-1 X'y from (noisy) marginals."""
    xx, xy = split_gram(gram_from_marginals(marginals, encodings), target)
    return np.linalg.solve(xx + ridge * np.eye(len(xx)), xy)


def chebyshev_coefficients(radius=6.0):
    """b0, b1, b2 in the monomial basis: -log(1 + e^-s) interpolated at the three Chebyshev nodes."""
    nodes = [radius * math.cos((2 * i + 1) * math.pi / 6.0) for i in range(3)]
    powers = np.array([[1.0, s, s * s] for s in nodes])
    return np.linalg.solve(powers, np.array([-math.log1p(math.exp(-s)) for s in nodes]))


def chebyshev_log_likelihood(theta, n, xx, xy):
    """Proposition 3.4: n b0 + b1 theta'X'y + b2 theta'X'X theta, y in {-1, 1}."""
    b = chebyshev_coefficients()
    return n * b[0] + b[1] * float(theta @ xy) + b[2] * float(theta @ xx @ theta)


def ddssp_logistic(marginals, encodings, target, ridge=0.0):
    """The maximiser of Proposition 3.4, theta = -b1 / (2 b2) (X'X + ridge I)^-1 X'y."""
    b = chebyshev_coefficients()
    return -b[1] / (2.0 * b[2]) * ddssp_linear(marginals, encodings, target, ridge)
