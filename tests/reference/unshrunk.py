"""Naive reference of the estimate for inference of a linear fit: the merge of all scores, the remainder, the sandwich.

Written from the equations of the method alone, to cross-check an independent implementation.

A transcript has one entry per released score: where it was asked, the released mean g, the standard deviation of
its noise, and the share alpha of residuals beyond its clip. H is the released Gram matrix, whose entries have the
variance eps_G, and M the released second moment of whole contributions, per row.

    theta_t = b_t + ((1 - alpha_t) H)^-1 g_t
    v_t     = sigma_t^2/(1 - alpha_t)^2 tr(H^-2)/p + (eps_G + alpha_t^2/p) |b_T - b_t|^2
    theta   = sum w_t theta_t,  w_t proportional to 1/v_t
    V       = J^-1 M J^-1 / n + (sum w_t^2 v_t) p H^-2 / tr(H^-2)

What weights and clips take from the last score is released as v, with noise of the standard deviation s_K. J is the
slope of the ordinary score, and u what they take from a row with the whitened features x, the weight s and the
residual r; the bound K shrinks it.

    u      = x r - s x clip(s r, +-C),  v = mean u min(1, K/|u|)
    t(b)   = (J - (1 - alpha_T) H) (b - b_T)
    theta <- theta + J^-1 G (v - t(theta)),  G = T (T + s_K^2 I)^-1
"""

import numpy as np


def merged(asked, scores, sigmas, alphas, gram, gram_variance, last):
    """The estimate, and the variance of its noise as a matrix; ``last`` is where the fit ends, b_T."""
    order = len(gram)
    inverse = np.linalg.inv(gram)
    squared = inverse @ inverse
    thetas, variances = [], []
    for place, score, sigma, alpha in zip(asked, scores, sigmas, alphas, strict=True):
        thetas.append(place + inverse @ score / (1 - alpha))
        noise = sigma**2 / (1 - alpha) ** 2 * np.trace(squared) / order
        away = float(np.sum((last - place) ** 2))
        variances.append(noise + (gram_variance + alpha**2 / order) * away)
    weights = 1 / np.array(variances)
    weights = weights / weights.sum()
    estimate = sum(weight * theta for weight, theta in zip(weights, thetas, strict=True))
    total = float(np.sum(weights**2 * np.array(variances)))
    return estimate, total * order * squared / np.trace(squared)


def sampling(slope, meat, n):
    """The sandwich, with J the slope of what the meat is the second moment of."""
    bread = np.linalg.inv(slope)
    return bread @ meat @ bread / n


def kept(rows, weights, sizes, shares, bound):
    """The share of the second moment of contributions that lies within a ball, by the model: sizes times norms."""
    within, whole = 0.0, 0.0
    for row, weight in zip(rows, weights, strict=True):
        squares = np.sum((weight * row) ** 2) * sizes**2
        within += shares @ np.minimum(squares, bound**2)
        whole += shares @ squares
    return within / whole


def remainder(row, weight, residual, clip):
    """What the weight and the clip take from the score of a row."""
    return row * residual - weight * row * np.clip(weight * residual, -clip, clip)


def shortened(vector, bound):
    """A vector within a ball."""
    length = np.linalg.norm(vector)
    return vector if length <= bound else vector * (bound / length)


def slope(gram, rows, weights):
    """``J = H + mean (1 - s^2) x x'``."""
    found = np.array(gram)
    for row, weight in zip(rows, weights, strict=True):
        found = found + (1 - weight**2) * np.outer(row, row) / len(rows)
    return found


def expected(slope, gram, alpha, estimate, last):
    """``t(b)``."""
    return (slope - (1 - alpha) * gram) @ (estimate - last)


def recoloured(rows, weights, gram):
    """Rows, linearly transformed so that their weighted Gram matrix is this one: they stand for the private rows."""
    weighted = rows * weights[:, None]
    now = np.linalg.cholesky(weighted.T @ weighted / len(rows))
    return rows @ np.linalg.inv(now).T @ np.linalg.cholesky(gram).T


def unfitted(rows, weights, sizes, shares, clip, bound):
    """T before it is scaled, and L: a 25th of the second moment of u, and that of what the bound takes of it.

    Every row has weighted residuals ``s r`` of every size, in these shares.
    """
    order = rows.shape[1]
    whole, beyond = np.zeros((order, order)), np.zeros((order, order))
    for row, weight in zip(rows, weights, strict=True):
        for size, share in zip(sizes, shares, strict=True):
            taken = remainder(row, weight, size / weight, clip)
            left = taken - shortened(taken, bound)
            whole += share * np.outer(taken, taken) / len(rows)
            beyond += share * np.outer(left, left) / len(rows)
    return whole / 25, beyond


def scaled(lost, surprise, noise, *, generous):
    """T at the size that ``v - t`` suggests: the likely one for predictions, an upper limit of it for intervals."""
    order = len(lost)
    allowance = 1 + 2 * np.sqrt(2 / order) if generous else 1.0
    share = (surprise @ surprise / order * allowance - noise**2) / (np.trace(lost) / order)
    return lost * min(max(share, 0.0), 1.0)


def gain(lost, noise):
    """``G``."""
    return lost @ np.linalg.inv(lost + noise**2 * np.eye(len(lost)))


def move(slope, lost, surprise, noise, generous):
    """How far the estimate moves, and the covariance of that, with a doubt where T and noise explain too little.

    If generous, the move itself is a doubt.
    """
    order = len(lost)
    bread, followed = np.linalg.inv(slope), gain(lost, noise)
    covariance = bread @ followed @ bread * noise**2
    excess = surprise @ np.linalg.inv(lost + noise**2 * np.eye(order)) @ surprise / order
    if excess > 1 + 2 * np.sqrt(2 / order):
        doubt = (1 - 1 / np.sqrt(excess)) * bread @ (np.eye(order) - followed) @ surprise
        covariance = covariance + np.outer(doubt, doubt)
    moved = bread @ followed @ surprise
    return moved, covariance + generous * np.outer(moved, moved)


def shift(slope, beyond):
    """``J^-1 L J^-1 / 100``; four thirds of it are added to the covariance."""
    bread = np.linalg.inv(slope)
    return bread @ beyond @ bread / 100
