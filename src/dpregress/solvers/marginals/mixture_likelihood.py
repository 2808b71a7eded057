r"""Logistic and softmax regression by the likelihood of a released mixture, with a normal prior.

    maximise  n sum_i sum_k q_ik log P(k | x_i; b) / N - sum_k b_k' D^{-1} b_k / 2,

x_i evenly spread points of the mixture, q_i what their components expect of the classes, n the released number of
rows. Features and classes come from one non-negative, consistent distribution. Cross moments with noise of their own
do not: set against the same points they cost a hundredth of area under the curve on a census table. Their noise is
known, however, and that in a mixture is not. The coefficients of two classes are therefore

    b = t b_mixture + (1 - t) b_moments,    t = (sampling / (sampling + noise))^{1/4},

with b_moments and D by relevance, and the variances of the equations by sampling and by noise. Several classes have
b_mixture alone, with D = I.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from dpregress.coordinates import Matrix, Vector
from dpregress.releases import Moments
from dpregress.solvers.marginals.relevance import Chances, Shrunk, at_mode, equation_noise, solve_by_relevance

_INTERCEPT_VARIANCE = 25.0
_ITERATIONS = 300
#: Of the share of sampling in the variance of the equations: how much of the coefficients the mixture tells.
_POWER = 0.25


def solve_classes(points: Matrix, shares: Matrix, count: float, prior: Vector | None = None) -> Matrix:
    """Coefficients of every class, of shape (classes, p).

    Parameters
    ----------
    points : ndarray of shape (N, p)
        Design rows, the constant first.
    shares : ndarray of shape (N, classes)
        Probabilities of the classes. Of two the first is the reference: its coefficients are 0.
    count : float
        The released number of rows.
    prior : ndarray of shape (p,), optional
        Variances of coefficients; default: 25 of intercepts, 1 of slopes.
    """
    held = int(shares.shape[1] == 2)
    prior = np.append(_INTERCEPT_VARIANCE, np.ones(points.shape[1] - 1)) if prior is None else prior
    penalty = 1 / prior / count
    cross = shares[:, held:].T @ points / len(points)

    def loss(flat: Vector) -> tuple[float, Vector]:
        coef = flat.reshape(cross.shape)
        logs = log_softmax(np.pad(points @ coef.T, ((0, 0), (held, 0))), axis=1)
        slope = np.exp(logs[:, held:]).T @ points / len(points) - cross + penalty * coef
        return float(0.5 * np.sum(penalty * coef**2) - np.sum(shares * logs) / len(points)), slope.ravel()

    start = np.zeros_like(cross)
    mean = np.log(np.clip(shares.mean(axis=0), 1e-3, None))
    start[:, 0] = mean[1:] - mean[0] if held else mean - mean.mean()
    options = {"maxiter": _ITERATIONS, "ftol": 1e-9, "gtol": 1e-6}
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(cross.shape)
    return np.pad(found, ((held, 0), (0, 0)))


def solve_logistic(moments: Moments, groups: Sequence[int], points: Matrix, shares: Matrix) -> Shrunk:
    """Coefficients of the second of two classes, with the covariances of a posterior of the moments near them.

    Parameters
    ----------
    moments : Moments
        Of the class's indicator.
    groups : sequence of int
        As :func:`solve_by_relevance` takes them.
    points, shares : ndarray
        As :func:`solve_classes` takes them.
    """
    equations = Chances(points)
    by_moments = solve_by_relevance(moments, groups, equations)
    prior = np.append(equations.intercept_variance, by_moments.variances[np.array(groups)])
    by_mixture = solve_classes(points, shares, moments.n, prior)[1]
    sampled = equation_noise(moments, equations.linearise(moments, by_moments.coef), by_moments.coef)
    weight = float(np.trace(sampled.sampling) / np.trace(sampled.total)) ** _POWER
    coef = weight * by_mixture + (1 - weight) * by_moments.coef
    return at_mode(moments, equations.linearise(moments, coef), coef, prior)
