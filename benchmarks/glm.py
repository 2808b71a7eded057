"""Generalised linear models at equal privacy: a simulation.

    python -m benchmarks.glm [repeats]

d = 8, X ~ N(unit mean, Q diag(logspace(0, -2)) Q'), beta ~ N(0, I), for counts and amounts N(0, I / 9), no intercept,
n = 2,000 and 10,000, m = 100 unlabelled public rows, total sqrt(2) mu; medians and root mean squares of l2 errors.
Seed 1. Tables are in :mod:`benchmarks.grid`.
"""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.command import answer_help
from benchmarks.grid import ESTIMATORS
from dpregress import GDP, PublicMoments
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import SeededNoiseWarning
from dpregress.models import family_of
from dpregress.solvers.shared.scoring import fisher_scoring

CONSOLE = Console(width=120)


def sample(family: str, rng: np.random.Generator, n: int, m: int, d: int = 8) -> tuple[Matrix, Vector, Matrix, Vector]:
    """Private rows, their responses, public rows, and the true coefficients."""
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    mean = rng.normal(size=d)
    x = rng.normal(size=(n + m, d)) @ (rotation * np.sqrt(np.logspace(0, -2, d))).T + mean / np.linalg.norm(mean)
    beta = rng.normal(size=d) / (1 if family == "binomial" else 3)
    expected = family_of(family).mean(x @ beta)
    if family == "binomial":
        y = (rng.random(n + m) < expected).astype(float)
    else:
        y = rng.poisson(expected).astype(float) if family == "poisson" else rng.gamma(2.0, expected / 2)
    return x[:n], y[:n], x[n:], beta


def errors(family: str, n: int, mu: float, repeats: int) -> Matrix:
    """Of the private fit, of maximum likelihood and of zero, of shape (repeats, 3)."""
    found = []
    for repeat in range(repeats):
        rng = np.random.default_rng([1, repeat])
        x, y, public, beta = sample(family, rng, n, 100)
        model = ESTIMATORS[family](
            GDP(math.sqrt(2) * mu),
            public=PublicMoments.from_rows(public),
            fit_intercept=False,
            random_state=rng,
        )
        fits = (model.fit(x, y).coef_, fisher_scoring(x, y, family_of(family), np.zeros(8)), np.zeros_like(beta))
        found.append([float(np.linalg.norm(coef - beta)) for coef in fits])
    return np.asarray(found)


def main(repeats: int) -> None:
    """Print the simulation."""
    table = Table(title=f"l2 errors, {repeats} repeats", box=SIMPLE_HEAD)
    for name in ("family", "n", "mu", "private", "MLE (non-private)", "zero", "private / MLE", "root mean squares"):
        table.add_column(name, justify="right")
    for family in ("binomial", "poisson", "gamma"):
        for n in (2_000, 10_000):
            for mu in (0.5, 1.0, 3.0):
                found = errors(family, n, mu, repeats)
                private, plain, zero = np.median(found, axis=0)
                rms = np.sqrt(np.mean(found**2, axis=0))
                numbers = (private, plain, zero, private / plain, rms[0] / rms[1])
                table.add_row(family, f"{n:,}", f"{mu:g}", *(f"{value:.3f}" for value in numbers))
    CONSOLE.print(table)


if __name__ == "__main__":
    answer_help(__doc__)
    warnings.simplefilter("ignore", SeededNoiseWarning)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
