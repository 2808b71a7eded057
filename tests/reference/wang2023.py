"""Naive reference for GLMs under non-interactive local privacy (Wang, Hu, Zhang, Gaboardi, Xu 2023).

Written from the listings of Algorithms 1-5 alone, to cross-check an independent implementation.
Every user sends one noisy message; the scales are the classical ones exactly as printed.

Noise is passed in as standard normal draws, or None for no noise: `noise_xx` is n x d x d, of
which the upper triangle and the diagonal are used and mirrored; `noise_xy` is n x d.  `scales`
replaces the printed (sd of the second moment, sd of the cross moment).

The second moment is pooled with the public rows and divided by n + m, the cross moment is
divided by n (the improvement of section 4.1, used by the experiments); `pooled=False` is the
listing itself, private rows only.  Nothing is centred and there is no intercept.
"""

import math

import numpy as np

from .wang2023_models import LINKS, LOSSES, response_bound, root

# ---------------------------------------------------------------- noise scales


def one_round_scales(radius, epsilon, delta, y_bound=1.0):
    """Algorithms 1-4: noise sd of xx' and of xy (y_bound = 1 for Algorithms 1 and 2)."""
    log_term = math.log(2.5 / delta)
    sd_xx = math.sqrt(32.0 * radius**4 * log_term / epsilon**2)
    sd_xy = math.sqrt(32.0 * radius**2 * y_bound**2 * log_term / epsilon**2)
    return sd_xx, sd_xy


def two_round_scales(radius, epsilon, delta):
    """Algorithm 5: noise sd of xx', of xy, and of the prediction sent in round two."""
    log_term = math.log(2.5 / delta)
    sd_xx = math.sqrt(128.0 * radius**4 * log_term / epsilon**2)
    sd_xy = math.sqrt(128.0 * radius**2 * log_term / epsilon**2)
    return sd_xx, sd_xy, math.sqrt(8.0 * log_term / epsilon**2)


def gaussian_radius(n, d, norm, factor):
    """sqrt(factor d ||Sigma||_2 log n): factor 20 in Algorithms 1 and 3, 10 in Algorithm 5."""
    return math.sqrt(factor * d * norm * math.log(n))


# ---------------------------------------------------------------------- pieces


def public_norm(X_public):
    """||S||_2 of the raw public second moment (1/m) sum x x'."""
    S = sum(np.outer(x, x) for x in X_public) / len(X_public)
    return float(np.max(np.linalg.eigvalsh(S)))


def ols(X, y, X_public, noise_xx, noise_xy, sd_xx, sd_xy):
    """w_ols from every user's noisy xx' and xy, and the public rows unless X_public is None."""
    n, d = X.shape
    xx = np.zeros((d, d))
    xy = np.zeros(d)
    for i in range(n):
        xx += np.outer(X[i], X[i])
        xy += X[i] * y[i]
        if noise_xy is not None:
            xy += sd_xy * noise_xy[i]
        if noise_xx is not None:
            upper = np.triu(noise_xx[i])
            xx += sd_xx * (upper + np.triu(noise_xx[i], 1).T)
    rows = n
    if X_public is not None:
        for x in X_public:
            xx += np.outer(x, x)
            rows += 1
    return np.linalg.solve(xx / rows, xy / n)


def clipped_rows(X, radius):
    """Algorithm 1, line 6: x min(1, r / ||x||_2)."""
    rows = [x * min(1.0, radius / math.sqrt(float(x @ x))) if np.any(x) else x for x in np.asarray(X, dtype=float)]
    return np.array(rows)


def checked_rows(X, radius):
    """Algorithms 2 and 4 assume ||x||_1 <= r and clip nothing: refuse other rows."""
    X = np.asarray(X, dtype=float)
    if np.max(np.sum(np.abs(X), axis=1)) > radius * (1.0 + 1e-9):
        raise ValueError("a row has ||x||_1 > r")
    return X


def one_round(X, y, X_public, derivative, noise_xx, noise_xy, scales, pooled):
    """Common end of Algorithms 1-4: w_ols, c from the unclipped public rows, then w = c w_ols."""
    X_public = np.asarray(X_public, dtype=float)
    w_ols = ols(X, y, X_public if pooled else None, noise_xx, noise_xy, *scales)
    c = root(derivative, X_public @ w_ols)
    return c * w_ols, c


# ------------------------------------------------------------------ algorithms


def gaussian_glm(X, y, X_public, loss, noise_xx, noise_xy, *, epsilon, delta, scales=None, pooled=True):
    """Algorithm 1: Gaussian x, clipped at sqrt(20 d ||S||_2 log n); y clipped to [-1, 1].  (w, c)."""
    radius = gaussian_radius(*np.shape(X), public_norm(X_public), 20.0)
    scales = one_round_scales(radius, epsilon, delta) if scales is None else scales
    y = np.clip(y, -1.0, 1.0)
    return one_round(clipped_rows(X, radius), y, X_public, LOSSES[loss], noise_xx, noise_xy, scales, pooled)


def bounded_glm(X, y, X_public, loss, noise_xx, noise_xy, *, radius, epsilon, delta, scales=None, pooled=True):
    """Algorithm 2: ||x||_1 <= radius; y clipped to [-1, 1].  (w, c)."""
    scales = one_round_scales(radius, epsilon, delta) if scales is None else scales
    y = np.clip(y, -1.0, 1.0)
    return one_round(checked_rows(X, radius), y, X_public, LOSSES[loss], noise_xx, noise_xy, scales, pooled)


def gaussian_nonlinear(
    X, y, X_public, link, noise_xx, noise_xy, *, noise_bound, epsilon, delta, scales=None, pooled=True
):
    """Algorithm 3: y = f(x'w) + noise; as Algorithm 1, y clipped to L r + |f(0)| + C.  (w, c)."""
    radius = gaussian_radius(*np.shape(X), public_norm(X_public), 20.0)
    bound = response_bound(link, radius, noise_bound)
    scales = one_round_scales(radius, epsilon, delta, bound) if scales is None else scales
    y = np.clip(y, -bound, bound)
    return one_round(clipped_rows(X, radius), y, X_public, LINKS[link][1], noise_xx, noise_xy, scales, pooled)


def bounded_nonlinear(
    X, y, X_public, link, noise_xx, noise_xy, *, radius, noise_bound, epsilon, delta, scales=None, pooled=True
):
    """Algorithm 4: ||x||_1 <= radius, y clipped to L r + |f(0)| + C.  (w, c)."""
    bound = response_bound(link, radius, noise_bound)
    scales = one_round_scales(radius, epsilon, delta, bound) if scales is None else scales
    y = np.clip(y, -bound, bound)
    return one_round(checked_rows(X, radius), y, X_public, LINKS[link][1], noise_xx, noise_xy, scales, pooled)


def two_round_glm(X, y, loss, noise_xx, noise_xy, noise_fit, *, covariance_norm, epsilon, delta, scales=None):
    """Algorithm 5: no public rows, ||Sigma||_2 known; c from the users' noisy predictions.  (w, c).

    Round two uses the unclipped x, projects x'w_ols onto [0, 1] and adds noise (`noise_fit`,
    n draws); the server does not project again.  `scales` has three entries here.
    """
    X = np.asarray(X, dtype=float)
    radius = gaussian_radius(*X.shape, covariance_norm, 10.0)
    sd_xx, sd_xy, sd_fit = two_round_scales(radius, epsilon, delta) if scales is None else scales
    w_ols = ols(clipped_rows(X, radius), np.clip(y, -1.0, 1.0), None, noise_xx, noise_xy, sd_xx, sd_xy)
    fitted = np.clip(X @ w_ols, 0.0, 1.0)
    if noise_fit is not None:
        fitted = fitted + sd_fit * np.asarray(noise_fit)
    c = root(LOSSES[loss], fitted)
    return c * w_ols, c
