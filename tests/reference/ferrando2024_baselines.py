"""Naive reference for the baselines of Ferrando, Sheldon 2024: AdaSSP and objective perturbation.

Written from Algorithms 2 and 3 of its appendices alone; the constants, as published, are for
neighbours that add or remove one record.  Noise is passed in as draws, or None for no noise.
"""

import math

import numpy as np
from scipy.optimize import minimize, root
from scipy.special import expit

# ---------------------------------------------------------- Algorithm 2, AdaSSP


def adassp_scales(epsilon, delta, x_bound, y_bound):
    """Noise sd of lambda_min, of X'X and of X'y; a third of the budget each, as printed."""
    unit = math.sqrt(math.log(6.0 / delta)) / (epsilon / 3.0)
    return unit * x_bound**2, unit * x_bound**2, unit * x_bound * y_bound


def adassp(X, y, *, epsilon, delta, x_bound, y_bound, noise_min, noise_xx, noise_xy, rho=0.05):
    """Algorithm 2, AdaSSP: (theta, lambda).  Draws: one number, d x d (upper triangle), d; X, y not clipped."""
    d = X.shape[1]
    sd_min, sd_xx, sd_xy = adassp_scales(epsilon, delta, x_bound, y_bound)
    third = epsilon / 3.0
    log_term = math.log(6.0 / delta)
    xx, xy = X.T @ X, X.T @ y
    low = float(np.min(np.linalg.eigvalsh(xx))) - log_term / third * x_bound**2
    if noise_min is not None:
        low += sd_min * noise_min
    penalty = math.sqrt(d * log_term * math.log(2.0 * d**2 / rho)) * x_bound**2 / third - max(low, 0.0)
    penalty = max(penalty, 0.0)
    if noise_xx is not None:
        xx = xx + sd_xx * (np.triu(noise_xx) + np.triu(noise_xx, 1).T)
    if noise_xy is not None:
        xy = xy + sd_xy * np.asarray(noise_xy)
    return np.linalg.solve(xx + penalty * np.eye(d), xy), penalty


# ------------------------------------------- Algorithm 3, objective perturbation


def objective_scales(epsilon, delta, x_bound):
    """Delta, taken at its lower limit, and the sd of every entry of b."""
    variance = x_bound**2 * (8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon**2
    return x_bound**2 / (2.0 * epsilon), math.sqrt(variance)


def objective(theta, X, y, b, penalty):
    """mean log(1 + exp(-y x'theta)) + penalty / (2n) ||theta||^2 + b'theta / n, y in {-1, 1}."""
    n = len(y)
    loss = float(np.mean(np.logaddexp(0.0, -y * (X @ theta))))
    return loss + penalty * float(theta @ theta) / (2.0 * n) + float(b @ theta) / n


def objective_gradient(theta, X, y, b, penalty):
    """Gradient of `objective`, row by row."""
    total = penalty * theta + b
    for i in range(len(y)):
        total = total - expit(-y[i] * (X[i] @ theta)) * y[i] * X[i]
    return total / len(y)


def objective_hessian(theta, X, y, b, penalty):
    """Hessian of `objective`, row by row."""
    total = penalty * np.eye(X.shape[1])
    for x in X:
        total = total + expit(x @ theta) * expit(-(x @ theta)) * np.outer(x, x)
    return total / len(y)


def objective_perturbation(X, y, b, penalty):
    """Algorithm 3 without a further regulariser: the minimiser, to high accuracy.

    b is the vector itself, sd times draws (0 for no noise), and penalty is the paper's Delta.
    """
    data = (X, y, np.asarray(b, dtype=float), penalty)
    start = minimize(
        objective, np.zeros(X.shape[1]), data, "trust-exact", jac=objective_gradient, hess=objective_hessian
    )
    return root(objective_gradient, start.x, data, jac=objective_hessian, tol=1e-15).x
