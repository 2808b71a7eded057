"""Naive reference of the estimate for inference of a linear fit: the merge of all scores, and the sandwich.

Written from the equations of the method alone, to cross-check an independent implementation.

A transcript has one entry per released score: where it was asked, the released mean g, the standard deviation of
its noise, and the share alpha of residuals beyond its clip. H is the released Gram matrix, whose entries have the
variance eps_G, and M the released second moment of the last score, per row.

    theta_t = b_t + ((1 - alpha_t) H)^-1 g_t
    v_t     = sigma_t^2/(1 - alpha_t)^2 tr(H^-2)/p + (eps_G + alpha_t^2/p) |b_T - b_t|^2
    theta   = sum w_t theta_t,  w_t proportional to 1/v_t
    V       = J^-1 M J^-1 / n + (sum w_t^2 v_t) p H^-2 / tr(H^-2),  J = (1 - alpha_T) H
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


def sampling(gram, alpha, meat, n):
    """The sandwich."""
    bread = np.linalg.inv((1 - alpha) * gram)
    return bread @ meat @ bread / n
