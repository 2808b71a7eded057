r"""TukeyEM: many small least squares fits, and a private point of high approximate Tukey depth among them."""

from __future__ import annotations

import math

import numpy as np

from dpregress.coordinates import Matrix, Vector


def tukey_em(
    x: Matrix, y: Vector, *, epsilon: float, delta: float, models: int, rng: np.random.Generator
) -> Vector | None:
    r"""Coefficients, or None if the stability test fails; (epsilon, delta)-DP for replacing one row.

    Half of epsilon goes to propose-test-release on the volumes of the regions of axis-aligned depth, half to the
    exponential mechanism restricted to depth at least ``models / 4``. Replacing a row changes one model, and every
    depth by at most 1; a depth i has weight ``exp(epsilon_half i / 2)``.

    Parameters
    ----------
    x : ndarray of shape (n, p)
        With a column of ones for a model with an intercept.
    y : ndarray of shape (n,)
    epsilon, delta : float
    models : int
        Public; every model is fitted to ``n // models`` rows, at least p of them.
    rng : numpy Generator
        For simulations: anyone who knows the seed can subtract the noise.

    References
    ----------
    Amin, Joseph, Ribero, Vassilvitskii (2023), Easy differentially private linear regression, Algorithms 1 to 3.
    """
    size = len(x) // models
    if size < x.shape[1]:
        return None
    order = rng.permutation(len(x))[: size * models].reshape(models, size)
    fits = np.array([np.linalg.lstsq(x[part], y[part], rcond=None)[0] for part in order])
    # equal coefficients would make a region of no volume
    sorted_ = np.sort(fits.T + 1e-10 * rng.random(fits.T.shape), axis=1)
    half, deepest = epsilon / 2, models // 2
    volumes = np.sum(np.log((sorted_[:, ::-1] - sorted_)[:, :deepest]), axis=0)  # log volume of depth >= i + 1
    least = deepest // 2
    if _distance(volumes, half, delta, least) + rng.laplace(scale=1 / half) <= math.log(1 / (2 * delta)) / half:
        return None
    return _point(sorted_, volumes, half, least, rng)


def _distance(volumes: Vector, epsilon: float, delta: float, depth: int) -> int:
    """A lower bound on the number of models to change until a neighbour's restricted mechanism could differ."""
    threshold = math.log(delta / 8) - epsilon
    safe = -1
    for k in range(depth - 1):
        inner = volumes[depth + k + 1 : -1]
        outer = volumes[depth - k - 2]
        if not len(inner) or np.min(outer - inner - epsilon / 2 * np.arange(1, len(inner) + 1)) > threshold:
            break
        safe = k
    return safe


def _point(sorted_: Matrix, volumes: Vector, epsilon: float, least: int, rng: np.random.Generator) -> Vector:
    """A depth by its volume and weight, then a point of exactly that depth, coordinate by coordinate."""
    depths = np.arange(least, len(volumes) + 1)
    at_least = volumes[least - 1 :]
    exactly = at_least.copy()
    exactly[:-1] += np.log1p(-np.exp(np.minimum(at_least[1:] - at_least[:-1], -1e-300)))
    depth = int(depths[_raced(exactly + epsilon / 2 * depths, rng)])
    outer = np.log(sorted_[:, -depth] - sorted_[:, depth - 1])
    if depth == depths[-1]:  # nothing is deeper
        return np.asarray(rng.uniform(sorted_[:, depth - 1], sorted_[:, -depth]))
    inner = np.log(sorted_[:, -depth - 1] - sorted_[:, depth])
    shell = outer + np.log1p(-np.exp(np.minimum(inner - outer, -1e-16)))
    before, after = np.cumsum(inner) - inner, np.cumsum(outer[::-1])[::-1] - outer
    chosen = _raced(shell + before + after, rng)  # deeper before it, at least as deep after it
    point = np.concatenate([
        rng.uniform(sorted_[:chosen, depth], sorted_[:chosen, -depth - 1]),
        [0.0],
        rng.uniform(sorted_[chosen + 1 :, depth - 1], sorted_[chosen + 1 :, -depth]),
    ])  # fmt: skip
    row = sorted_[chosen]
    left, right = row[depth] - row[depth - 1], row[-depth] - row[-depth - 1]
    offset = rng.uniform(0, left + right)
    point[chosen] = row[depth - 1] + offset if offset < left else row[-depth - 1] + offset - left
    return np.asarray(point)


def _raced(log_weight: Vector, rng: np.random.Generator) -> int:
    """An index with probability in proportion to ``exp(log_weight)``."""
    return int(np.argmax(log_weight + rng.gumbel(size=len(log_weight))))
