"""Simulated tables of :mod:`benchmarks.grid`: what made fits go wrong on real ones, each with a seed of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import expit

from dpregress.coordinates import Matrix, Vector


def _frame(x: Matrix, y: Vector) -> pd.DataFrame:
    frame = pd.DataFrame(np.asarray(x, dtype=float), columns=[f"x{place}" for place in range(x.shape[1])])
    return frame.assign(y=y)


def _far_rows(rng: np.random.Generator) -> Matrix:
    """1% of the rows 30 times as far out."""
    x = rng.normal(size=(25_000, 8))
    x[rng.random(len(x)) < 0.01] *= 30
    return x


def _labels(rng: np.random.Generator, eta: Vector) -> Vector:
    return (rng.random(len(eta)) < expit(eta)).astype(int)


def log_normal() -> pd.DataFrame:
    """Correlated log-normal columns, a weak signal."""
    rng = np.random.default_rng(5)
    root = np.linalg.cholesky(0.3 * np.ones((10, 10)) + 0.7 * np.eye(10))
    x = np.exp(rng.normal(size=(37_500, 10)) @ root.T)
    return _frame(x, _labels(rng, -1 + 0.15 * (x @ [1, -1, 0.5, 0, 0, 0.3, -0.3, 0, 0.2, 0])))


def weak_poisson() -> pd.DataFrame:
    """Overdispersed counts, indicators down to two in a thousand, a weak signal."""
    rng, n = np.random.default_rng(6), 40_000
    x = np.column_stack([rng.normal(size=(n, 5)), rng.random((n, 6)) < [0.5, 0.3, 0.1, 0.05, 0.01, 0.002]])
    eta = -2 + x @ (0.12 * np.random.default_rng(7).normal(size=11))
    return _frame(x, rng.poisson(np.exp(eta) * rng.gamma(2, 0.5, n)))


def weak_gamma() -> pd.DataFrame:
    """Amounts with a heavy tail and a weak signal."""
    rng, n = np.random.default_rng(8), 12_000
    x = np.column_stack([
        rng.integers(0, 6, n) / 5, rng.gamma(2, 4, n), rng.uniform(18, 90, n), 50 + rng.gamma(0.5, 20, n),
        rng.random((n, 3)) < [0.4, 0.1, 0.02],
    ])  # fmt: skip
    y = np.exp(7 + 0.15 * x[:, 0] + 0.004 * x[:, 2] + 0.2 * x[:, 5] + 1.1 * rng.normal(size=n))
    return _frame(x, np.clip(y * np.where(rng.random(n) < 0.01, 15, 1), 1, 300_000))


def far_rows_without_effect() -> pd.DataFrame:
    """A response that saturates: the far rows say nothing about it."""
    rng = np.random.default_rng(9)
    x = _far_rows(rng)
    return _frame(x, np.tanh(x[:, 0]) + 0.5 * np.tanh(x[:, 1]) + rng.normal(size=len(x)))


def far_rows_with_effect() -> pd.DataFrame:
    """A response that is linear in the far rows too."""
    rng = np.random.default_rng(9)
    x = _far_rows(rng)
    return _frame(x, x @ [1, -1, 0.5, 0.2, 0, 0, 0, 0.3] + rng.normal(size=len(x)))


def heavy_tails() -> pd.DataFrame:
    """Student columns of 2.5 degrees of freedom."""
    rng = np.random.default_rng(10)
    x = np.clip(rng.standard_t(2.5, size=(30_000, 12)), -60, 60)
    return _frame(x, x @ rng.normal(size=12) * 0.3 + 0.4 * np.abs(x[:, 0]) + rng.standard_t(4, size=len(x)))


def rare_level() -> pd.DataFrame:
    """An indicator of 1 in 400 with a large effect."""
    rng, n = np.random.default_rng(11), 40_000
    x = np.column_stack([rng.normal(size=(n, 5)), rng.random(n) < 1 / 400, rng.random(n) < 0.1])
    return _frame(x, x @ [1, -1, 0.5, 0.2, 0, 12, 1] + rng.normal(size=n))


def rare_class() -> pd.DataFrame:
    """A class of one row in a hundred."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=(25_000, 6))
    return _frame(x, _labels(rng, -5.2 + x @ [0.8, -0.5, 0.3, 0, 0, 0.2]))


def nearly_separable() -> pd.DataFrame:
    """Two classes that a plane nearly separates."""
    rng = np.random.default_rng(13)
    x = rng.normal(size=(37_500, 8))
    score = x @ [3.0, -3, 2, 1, 0, 0, 0, 0] + 0.3 * rng.logistic(size=len(x))
    return _frame(x, (score > 0).astype(int))


def random_features() -> pd.DataFrame:
    """100 random Fourier features."""
    rng = np.random.default_rng(14)
    z, directions = rng.normal(size=(28_000, 8)), rng.normal(size=(8, 100))
    x = np.cos(z @ directions * 0.5 + rng.uniform(0, 6.28, 100))
    return _frame(x, _labels(rng, z[:, 0] + z[:, 1] * z[:, 2]))


def wide_and_skewed() -> pd.DataFrame:
    """120 skewed columns of six factors."""
    rng, n, d = np.random.default_rng(15), 36_600, 120
    z = rng.standard_t(3, size=(n, 6))
    x = np.exp(0.5 * np.tanh(z @ rng.normal(size=(6, d)) / 2) + 0.15 * rng.standard_t(3, size=(n, d)))
    y = z @ rng.normal(size=6) + 0.5 * np.abs(z[:, 0]) + 2 * rng.standard_t(4, size=n)
    return _frame(np.minimum(x, 60), y)


def rare_counts() -> pd.DataFrame:
    """Counts of which one row in a hundred has any, such as claims of insured people."""
    rng = np.random.default_rng(16)
    x = rng.uniform(size=(50_000, 6))
    return _frame(x, np.minimum(rng.poisson(0.006 * np.exp(x @ [2.0, -1, 0.5, 0, 0, 0])), 4))


#: Family and maker of each table, by the name it has in the grid.
TABLES: dict[str, tuple[str, Callable[[], pd.DataFrame]]] = {
    "logn": ("binomial", log_normal),
    "poisweak": ("poisson", weak_poisson),
    "gammaweak": ("gamma", weak_gamma),
    "far": ("gaussian", far_rows_without_effect),
    "farlin": ("gaussian", far_rows_with_effect),
    "heavy": ("gaussian", heavy_tails),
    "rare": ("gaussian", rare_level),
    "rareclass": ("binomial", rare_class),
    "sep": ("binomial", nearly_separable),
    "randfeat": ("binomial", random_features),
    "wide": ("gaussian", wide_and_skewed),
    "rarecounts": ("poisson", rare_counts),
}
