"""Losses, links and the constant c of Wang, Hu, Zhang, Gaboardi, Xu 2023, naively."""

import numpy as np
from scipy.special import expit

# Losses by the second derivative of Phi: log(1 + e^z), z/2 + sqrt(1 + z^2/4), e^z.
LOSSES = {
    "logistic": lambda z: expit(z) * expit(-z),
    "boosting": lambda z: 0.25 * (1.0 + 0.25 * z * z) ** -1.5,
    "exponential": np.exp,
}

# Links f and their derivatives f': sigmoid, z^3, log(1 + e^-z).
LINKS = {
    "sigmoid": (expit, lambda z: expit(z) * expit(-z)),
    "cubic": (lambda z: z**3, lambda z: 3.0 * z * z),
    "softplus": (lambda z: np.logaddexp(0.0, -z), lambda z: -expit(-z)),
}


def lipschitz(link, radius):
    """L, a bound on |f'|: over the whole line, for the cubic over [-radius, radius]."""
    return {"sigmoid": 0.25, "cubic": 3.0 * radius**2, "softplus": 1.0}[link]


def response_bound(link, radius, noise_bound):
    """L r + |f(0)| + C, the bound on |y| behind the noise of Algorithms 3 and 4 (||w*|| <= 1)."""
    return lipschitz(link, radius) * radius + abs(float(LINKS[link][0](0.0))) + noise_bound


def root(second_derivative, fitted):
    """The constant c: 1 = c mean_j Phi''(c z_j), for z = x'w_ols on the public rows.

    Of several roots the one nearest 0 is taken, on the side where c mean Phi''(c z) is positive:
    |c| runs from 1e-6 upwards by factors of 1.02, up to 1e6, and the first step that crosses 1
    is bisected 200 times.  (c is negative for log(1 + e^-z), whose derivative is.)
    """
    sign = -1.0 if second_derivative(np.array([1.0]))[0] < 0 else 1.0

    def excess(size):
        c = sign * size
        with np.errstate(over="ignore"):
            return c * float(np.mean(second_derivative(c * np.asarray(fitted)))) - 1.0

    low, high = 1e-6, 1e-6 * 1.02
    while excess(high) < 0:
        low, high = high, high * 1.02
        if high > 1e6:
            raise ArithmeticError("1 = c mean Phi''(c z) has no root up to 1e6")
    for _ in range(200):
        middle = 0.5 * (low + high)
        if excess(middle) < 0:
            low = middle
        else:
            high = middle
    return sign * 0.5 * (low + high)
