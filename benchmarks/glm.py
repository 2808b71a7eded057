"""Generalised linear models at equal privacy: a logistic simulation, and doctor visits in many splits.

    python -m benchmarks.glm [repeats]

Logistic: d = 8, X ~ N(unit mean, Q diag(logspace(0, -2)) Q'), beta ~ N(0, I), n = 10,000, m = 100 unlabelled
public rows, total sqrt(2) mu; medians of l2 errors. Doctor visits: epsilon 1, delta 1e-6, the splits of the
demonstration with other seeds; losses over the non-private fit's, mean prediction over the private mean. Seed 1.
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
from dpregress.baselines import mean_only, scored_fit
from dpregress.datasets import randhie
from dpregress.errors import SeededNoiseWarning
from dpregress.experiments import rand_health
from dpregress.queries import Binomial, Family
from dpregress.releases import Matrix, Vector
from dpregress.solvers.scoring import fisher_scoring

CONSOLE = Console(width=120)


def logistic_sample(rng: np.random.Generator, n: int, m: int, d: int = 8) -> tuple[Matrix, Vector, Matrix, Vector]:
    """Private rows, their labels, public rows, and the true coefficients."""
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    mean = rng.normal(size=d)
    x = rng.normal(size=(n + m, d)) @ (rotation * np.sqrt(np.logspace(0, -2, d))).T + mean / np.linalg.norm(mean)
    beta = rng.normal(size=d)
    y = (rng.random(n + m) < Binomial.mean(x @ beta)).astype(float)
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
            fits = (model.fit(x, y).coef_, fisher_scoring(x, y, Binomial, np.zeros(8)), np.zeros_like(beta))
            found.append([np.linalg.norm(coef - beta) for coef in fits])
        private, plain, zero = np.median(found, axis=0)
        table.add_row(f"{mu:g}", *(f"{value:.3f}" for value in (private, plain, zero, private / plain)))
    CONSOLE.print(table)


def visits(splits: int = 10, noises: int = 4) -> None:
    """Print the demonstration's models over many splits."""
    table = Table(title=f"Doctor visits, epsilon 1: {splits} splits x {noises} noises", box=SIMPLE_HEAD)
    for name in ("model", "private", "worst", "public only", "mean", "mean prediction", "off by", "worst"):
        table.add_column(name, justify="right" if name != "model" else "left")
    for model in rand_health.MODELS:
        losses, others, ratios = [], [], []
        for split in range(splits):
            rows = rand_health.split_rows(randhie(), "mdvis", public=0.02, held_out=0.2, seed=split)
            (u, v), (x, y), (z, w) = (
                (part[0], model.response(part[1])) for part in (rows.public, rows.private, rows.held_out)
            )

            def loss(family: Family, predicted: Vector, truth: Vector = w) -> float:
                return float(np.mean(family.distribution.unit_deviance(truth, predicted)))

            plain = loss(model.family, model.family.mean(scored_fit(x, y, model.family).predict(z)))
            public_only = loss(model.family, model.family.mean(scored_fit(u, v, model.family).predict(z)))
            others.append([public_only / plain, loss(model.family, mean_only(x, y).predict(z)) / plain])
            for noise in range(noises):
                rng = np.random.default_rng([1, split, noise])
                fitted = model.estimator(rand_health.BUDGET, public=PublicMoments.from_rows(u, v), random_state=rng)
                found = fitted.fit(x, y).coefficients_
                losses.append(loss(model.family, model.family.mean(found.predict(z))) / plain)
                ratios.append(float(np.mean(model.family.mean(found.predict(x))) / np.mean(y)))
        off = np.abs(np.array(ratios) - 1)
        public_only, trivial = np.median(others, axis=0)
        values = (np.median(losses), max(losses), public_only, trivial, np.median(ratios), np.median(off), off.max())
        table.add_row(model.title, *(f"{value:.3f}" for value in values))
    CONSOLE.print(table)


if __name__ == "__main__":
    warnings.simplefilter("ignore", SeededNoiseWarning)
    logistic(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
    visits()
