"""Logistic regression at equal privacy: a simulation.

    python -m benchmarks.glm [repeats]

d = 8, X ~ N(unit mean, Q diag(logspace(0, -2)) Q'), beta ~ N(0, I), n = 10,000, m = 100 unlabelled public rows, total
sqrt(2) mu; medians of l2 errors. Seed 1. Tables are in :mod:`benchmarks.grid`.
"""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dpregress import GDP, DPLogisticRegression, PublicMoments
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import SeededNoiseWarning
from dpregress.models import BinomialFamily
from dpregress.solvers.shared.scoring import fisher_scoring

CONSOLE = Console(width=120)


def logistic_sample(rng: np.random.Generator, n: int, m: int, d: int = 8) -> tuple[Matrix, Vector, Matrix, Vector]:
    """Private rows, their labels, public rows, and the true coefficients."""
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    mean = rng.normal(size=d)
    x = rng.normal(size=(n + m, d)) @ (rotation * np.sqrt(np.logspace(0, -2, d))).T + mean / np.linalg.norm(mean)
    beta = rng.normal(size=d)
    y = (rng.random(n + m) < BinomialFamily.mean(x @ beta)).astype(float)
    return x[:n], y[:n], x[n:], beta


def logistic(repeats: int) -> None:
    """Print the logistic simulation."""
    table = Table(title=f"Logistic simulation, median l2 error of {repeats} repeats", box=SIMPLE_HEAD)
    for name in ("mu", "private", "MLE (non-private)", "zero", "private / MLE"):
        table.add_column(name, justify="right")
    for mu in (0.5, 1.0, 3.0):
        found = []
        for repeat in range(repeats):
            rng = np.random.default_rng([1, repeat])
            x, y, public, beta = logistic_sample(rng, 10_000, 100)
            moments = PublicMoments.from_rows(public)
            budget = GDP(math.sqrt(2) * mu)
            model = DPLogisticRegression(budget, public=moments, fit_intercept=False, random_state=rng)
            fits = (model.fit(x, y).coef_, fisher_scoring(x, y, BinomialFamily, np.zeros(8)), np.zeros_like(beta))
            found.append([np.linalg.norm(coef - beta) for coef in fits])
        private, plain, zero = np.median(found, axis=0)
        table.add_row(f"{mu:g}", *(f"{value:.3f}" for value in (private, plain, zero, private / plain)))
    CONSOLE.print(table)


if __name__ == "__main__":
    warnings.simplefilter("ignore", SeededNoiseWarning)
    logistic(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
