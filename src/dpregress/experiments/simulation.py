r"""The simulation of docs/benchmarks/simulations.md: ill-conditioned rows, coefficients from N(0, I), noise sd .05, 1.

X ~ N(mean, Psi) with ``Psi = Q diag(logspace(0, -3)) Q'``, Q random orthogonal, and a random unit vector as
mean; d = 10. The paper leaves its mean and Psi open; this choice is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.estimators import DPLinearRegression
from dpregress.papers import cao2026
from dpregress.public import PublicMoments

ETA = 0.05
MUS = (0.5, 1.0, 3.0)
RECIPES: tuple[str, ...] = ("one-shot", "residual")


@dataclass(frozen=True, eq=False)
class Sample:
    """Private rows, public rows (with the labels that only the paper uses), and the truth."""

    x: Matrix
    y: Vector
    x_public: Matrix
    y_public: Vector
    beta: Vector


def sample(rng: np.random.Generator, *, n: int, m: int, d: int = 10, noise: float = 0.05) -> Sample:
    """Draw one data set with n private and m public rows."""
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    mean = rng.normal(size=d)
    x = rng.normal(size=(n + m, d)) @ (rotation * np.sqrt(np.logspace(0, -3, d))).T + mean / np.linalg.norm(mean)
    beta = rng.normal(size=d)
    y = x @ beta + noise * rng.normal(size=n + m)
    return Sample(x[:n], y[:n], x[n:], y[n:], beta)


def skewed_sample(rng: np.random.Generator, *, n: int, m: int) -> Sample:
    """The same rows with a positive response whose errors are log-normal: ``y = 2 + .3 x'beta + 2 exp(N(0, 1))``."""
    data = sample(rng, n=n, m=m, noise=0.0)
    y, y_public = (2 + 0.3 * y + 2 * np.exp(rng.normal(size=len(y))) for y in (data.y, data.y_public))
    return Sample(data.x, y, data.x_public, y_public, 0.3 * data.beta)


def errors(data: Sample, mu: float, rng: np.random.Generator) -> dict[str, float]:
    """l2 errors at the paper's mu (sqrt 2 mu in all for everybody)."""
    public = PublicMoments.from_rows(data.x_public)
    budget = GDP(math.sqrt(2) * mu)
    published = cao2026.pmt_ridge(data.x, data.y, data.x_public, data.y_public, mu=mu, alpha=0.0, eta=ETA, rng=rng)
    fits: dict[str, Vector] = {"paper": np.asarray(published)}
    for recipe in RECIPES:
        model = DPLinearRegression(budget, public=public, fit_intercept=False, recipe=recipe, random_state=rng)
        fits[recipe] = model.fit(data.x, data.y).coef_
    fits |= {
        "public-only (labelled)": np.asarray(np.linalg.lstsq(data.x_public, data.y_public, rcond=None)[0]),
        "OLS (non-private)": np.asarray(np.linalg.lstsq(data.x, data.y, rcond=None)[0]),
        "zero": np.zeros_like(data.beta),
    }
    return {name: float(np.linalg.norm(coef - data.beta)) for name, coef in fits.items()}


def mean_prediction(data: Sample, mu: float, rng: np.random.Generator) -> float:
    """Mean prediction over mean response, with an intercept and nothing public but unlabelled rows."""
    public = PublicMoments.from_rows(data.x_public)
    model = DPLinearRegression(GDP(math.sqrt(2) * mu), public=public, random_state=rng).fit(data.x, data.y)
    return float(np.mean(model.predict(data.x)) / np.mean(data.y))


def coverage(*, n: int, mu: float, labelled: bool, repeats: int, seed: int) -> float:
    """How often ``coef +- 1.645 standard errors`` holds the true coefficient (noise sd 1, m = 100)."""
    held = []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        data = sample(rng, n=n, m=100, noise=1.0)
        public = PublicMoments.from_rows(data.x_public, data.y_public if labelled else None)
        model = DPLinearRegression(GDP(math.sqrt(2) * mu), public=public, fit_intercept=False, random_state=rng)
        found = model.fit(data.x, data.y).coefficients_
        held.append(np.abs(found.coef - data.beta) <= 1.645 * found.standard_error)
    return float(np.mean(held))


def medians(*, n: int, m: int, mu: float, repeats: int, seed: int, noise: float = 0.05) -> dict[str, float]:
    """Median errors over repeats."""
    runs = list(_runs(n=n, m=m, mu=mu, repeats=repeats, seed=seed, noise=noise))
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}


def _runs(*, n: int, m: int, mu: float, repeats: int, seed: int, noise: float) -> Iterator[dict[str, float]]:
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        yield errors(sample(rng, n=n, m=m, noise=noise), mu, rng)
