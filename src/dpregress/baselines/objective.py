r"""Objective perturbation for logistic regression: the exact minimiser of a randomly tilted, penalised loss."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr

from dpregress.coordinates import Matrix, Vector

_NEWTON_STEPS, _CONVERGED = 100, 1e-13


def perturbation_scales(*, epsilon: float, delta: float, radius: float, share: float = 0.25) -> tuple[float, float]:
    r"""The penalty and the standard deviation of the tilt; (epsilon, delta)-DP for replacing one row.

    The loss is ``sum log(1 + exp(-s x't)) + penalty/2 ||t||^2 + b't`` with rows of norm at most R and ``b ~ N(0,
    sigma^2 I)``. The density of its exact minimiser changes by two factors. The ratio of Jacobians is at most
    ``1 + R^2/(4 penalty)``, because a replaced row removes one term of rank one and adds another; the penalty makes
    this ``exp(share epsilon)``. The gradient at the minimiser moves by at most 2R, in the plane of the two rows. With
    ``s = 2R/sigma``, the loss from the tilt is thus at most ``s ||Z|| + s^2/2``, Z normal in that plane, and for
    ``a = (1 - share) epsilon``

    .. math:: \delta = E (1 - e^{a - s ||Z|| - s^2/2})_+ = e^a s \sqrt{2 \pi}\, \Phi(-a/s - s/2)

    where ``a >= s^2/2``. Sigma solves this equation.

    Parameters
    ----------
    epsilon, delta : float
    radius : float
        A public bound on the norm of a row.
    share : float
        Of epsilon, for the ratio of Jacobians; strictly between 0 and 1.

    Returns
    -------
    penalty, sigma : float

    References
    ----------
    Kifer, Smith, Thakurta (2012), Private convex empirical risk minimization and high-dimensional regression.
    """
    left = (1 - share) * epsilon

    def excess(log_s: float) -> float:
        s = math.exp(log_s)
        return left + log_s + math.log(2 * math.pi) / 2 + float(log_ndtr(-left / s - s / 2)) - math.log(delta)

    largest = math.log(2 * left) / 2
    s = math.exp(largest if excess(largest) < 0 else brentq(excess, largest - 60, largest, xtol=1e-13))
    s *= 1 - 1e-9  # the root is known to that much
    return radius**2 / (4 * math.expm1(share * epsilon)), 2 * radius / s


def tilted_logistic(x: Matrix, signs: Vector, *, tilt: Vector, penalty: float, radius: float) -> Vector:
    """The minimiser of ``sum log(1 + exp(-signs x't)) + penalty/2 ||t||^2 + tilt't``, by damped Newton steps.

    The guarantee of objective perturbation is for the exact minimiser: the gradient vanishes up to rounding.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    signs : ndarray of shape (n,)
        -1 or 1.
    tilt : ndarray of shape (d,)
    penalty : float
    radius : float
        A bound on the norm of a row: the scale by which a gradient is small.

    Returns
    -------
    coef : ndarray of shape (d,)
    """
    coef = np.zeros(x.shape[1])
    signed = x * signs[:, None]

    def objective(at: Vector) -> float:
        loss = float(np.logaddexp(0, -(signed @ at)).sum())
        return loss + penalty / 2 * float(at @ at) + float(tilt @ at)

    for _ in range(_NEWTON_STEPS):
        chance = expit(-(signed @ coef))
        slope = -signed.T @ chance + penalty * coef + tilt
        if float(np.linalg.norm(slope)) <= _CONVERGED * (len(x) * radius + float(np.linalg.norm(tilt))):
            break
        curvature = (x * (chance * (1 - chance))[:, None]).T @ x + penalty * np.eye(len(coef))
        step = np.linalg.solve(curvature, slope)
        length, before, descent = 1.0, objective(coef), float(slope @ step)
        while length > 1e-9 and objective(coef - length * step) > before - 1e-4 * length * descent:
            length /= 2
        coef = coef - length * step
    return coef
