"""Generalised linear models at equal privacy: a logistic simulation, and doctor visits in many splits.

    python -m benchmarks.glm [repeats [splits]]

Logistic: d = 8, X ~ N(unit mean, Q diag(logspace(0, -2)) Q'), beta ~ N(0, I), n = 10,000, m = 100 unlabelled
public rows, total sqrt(2) mu; medians of l2 errors. Doctor visits: epsilon 1, delta 1e-6, the splits of the
demonstration with other seeds; losses over the non-private fit's, mean prediction over the private mean.
Adult income: all 14 columns through a schema of published bounds and levels, epsilon 1, delta 1e-6, 8,000 rows held
out, 1,000 public rows; areas under the curve over random splits (needs DPREGRESS_DATA). Seed 1.
"""

from __future__ import annotations

import math
import os
import sys
import warnings

import numpy as np
import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpregress import GDP, ApproxDP, Categorical, DPLogisticRegression, Numeric, PublicMoments, Schema
from dpregress.baselines import mean_only, scored_fit
from dpregress.coordinates import Matrix, Vector
from dpregress.datasets import folder_table, randhie
from dpregress.datasets.loaders import FOLDER
from dpregress.errors import SeededNoiseWarning
from dpregress.experiments import rand_health
from dpregress.models import BinomialFamily, Family
from dpregress.rows import Encoder
from dpregress.solvers.glm.scoring import fisher_scoring

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


#: Published ranges of Adult's numbers; its levels are those of the published table.
BOUNDS = {
    "age": (17, 90), "fnlwgt": (0, 1_500_000), "education-num": (1, 16),
    "capital-gain": (0, 100_000), "capital-loss": (0, 5000), "hours-per-week": (1, 99),
}  # fmt: skip
CLASSES = ("<=50K", ">50K")


def income(splits: int = 5) -> None:
    """Print the areas under the curve on Adult, by what is public."""
    table = folder_table("adult")
    features = [name for name in table.column_names if name != "income"]
    schema = Schema(
        {
            name: Numeric(*BOUNDS[name]) if name in BOUNDS else Categorical(tuple(sorted(set(table[name].to_pylist()))))
            for name in features
        }
    )
    encoder = Encoder.of(features, "income", schema, CLASSES)
    found = []
    for split in range(splits):
        order = np.random.default_rng([1, split]).permutation(table.num_rows)
        held_out, public, private = (
            table.take(pa.array(part)) for part in (order[:8000], order[8000:9000], order[9000:])
        )
        (z, w), (u, v), (x, y) = ((encoder.x(part), encoder.y(part)) for part in (held_out, public, private))
        known = PublicMoments.from_rows(u, v, names=encoder.features)
        plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        areas = [roc_auc_score(w, plain.fit(*rows).decision_function(z)) for rows in ((x, y), (u, v))]
        for given in (known, known.unlabelled(), None):
            rng = np.random.default_rng([1, split])
            model = DPLogisticRegression(
                ApproxDP(1.0, 1e-6), schema=schema, public=given, classes=CLASSES, random_state=rng
            )
            chances = model.fit_table(private, "income", features).predict_proba(held_out.drop_columns(["income"]))
            areas.append(roc_auc_score(w, chances[:, 1]))
        found.append(areas)
    shown = Table(title=f"Adult income, epsilon 1: area under the curve, {splits} splits", box=SIMPLE_HEAD)
    for name in ("fit", "median", "worst", "median gap to non-private", "worst gap"):
        shown.add_column(name, justify="right" if name != "fit" else "left")
    names = ("non-private", "public rows alone", "schema and labelled public", "schema and public", "schema alone")
    for name, area in zip(names, np.array(found).T, strict=True):
        gap = np.array(found)[:, 0] - area
        values = (np.median(area), area.min(), np.median(gap), gap.max())
        shown.add_row(name, *(f"{value:.4f}" for value in values))
    CONSOLE.print(shown)


if __name__ == "__main__":
    warnings.simplefilter("ignore", SeededNoiseWarning)
    logistic(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
    visits()
    if FOLDER in os.environ:
        income(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    else:
        CONSOLE.print(f"Adult income is left out: set {FOLDER} to the folder of its table")
