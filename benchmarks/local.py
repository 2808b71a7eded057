"""The local model: simulations and real tables beside the published algorithms and fits without privacy.

    python -m benchmarks.local [repeats]

Simulations: X ~ N(0, I), a random unit vector w, unlabelled public rows, seed 1; squared relative l2 errors, means
(and largest) of 20 repeats. Logistic: y are the noiseless means, as in the paper, delta = n^-1.1; linear: noise of sd
0.1, y clipped to +-2.5, delta = 1e-6. The paper's Algorithm 1 has its printed constants. Real tables: accuracy on
held-out rows, means of 20 splits; the tables come from the folder named by DPREGRESS_DATA.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from scipy.special import expit

from benchmarks.command import answer_help
from dpregress import ApproxDP, LocalGLM, PublicMoments
from dpregress.baselines import mean_only, scored_fit
from dpregress.collector import Study, device_report
from dpregress.coordinates import Matrix, Vector
from dpregress.datasets import folder_table
from dpregress.errors import DPRegressError, NoScaleWarning, SeededNoiseWarning
from dpregress.models import BinomialFamily
from dpregress.papers import wang2023

CONSOLE = Console(width=130)
LOGISTIC = ((5, 100_000, 1_000, 5.0), (10, 500_000, 5_000, 5.0), (20, 500_000, 5_000, 5.0))
LINEAR = ((5, 100_000, 1_000, 1.0), (5, 100_000, 1_000, 4.0))
#: The losses of the paper by the names of the library.
FAMILIES = {"logistic": "binomial", "squared": "gaussian"}
Rng = np.random.Generator


def sample(loss: str, rng: Rng, d: int, n: int, m: int) -> tuple[Matrix, Vector, Matrix, Vector]:
    """Private rows, their responses, public rows, the true coefficients."""
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    x, public = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    return x, expit(x @ w) if loss == "logistic" else x @ w + 0.1 * rng.normal(size=n), public, w


def plain(loss: str, x: Matrix, y: Vector) -> Vector:
    """The fit without privacy."""
    if loss == "squared":
        return np.linalg.lstsq(x, y, rcond=None)[0]
    coef = np.zeros(x.shape[1])
    for _ in range(20):
        mean = expit(x @ coef)
        coef = coef + np.linalg.solve((x * (mean * (1 - mean))[:, None]).T @ x, x.T @ (y - mean))
    return coef


def simulations(loss: str, cases: tuple[tuple[int, int, int, float], ...], repeats: int) -> None:
    """Print the errors of every way to ask, of Algorithm 1 with both calibrations, and of 0."""
    table = Table(title=f"{loss}: squared relative error, mean (largest) of {repeats} repeats", box=SIMPLE_HEAD)
    ways = ("auto", "gaussian", "joint")
    for name in ("d", "n", "m", "eps", *ways, "Algorithm 1", "exact noise", "non-private", "zero"):
        table.add_column(name, justify="right")
    for d, n, m, epsilon in cases:
        found: list[list[float]] = []
        for repeat in range(repeats):
            rng = np.random.default_rng([1, repeat])
            x, y, public, w = sample(loss, rng, d, n, m)
            delta = n**-1.1 if loss == "logistic" else 1e-6
            bounds = None if loss == "logistic" else (-2.5, 2.5)
            moments = PublicMoments.from_rows(public)
            facts = {"family": FAMILIES[loss], "public": moments, "response_bounds": bounds, "fit_intercept": False}
            fits = [
                LocalGLM(ApproxDP(epsilon, delta), **facts, recipe=way, random_state=rng).fit(x, y).coef_
                for way in ways
            ]
            for calibration in ("classical", "analytic"):
                options = {"epsilon": epsilon, "delta": delta, "rng": rng, "calibration": calibration}
                fits.append(wang2023.gaussian_glm(x, y, public, loss=loss, **options))
            fits += [plain(loss, x, y), np.zeros(d)]
            found.append([float(np.sum((coef - w) ** 2)) for coef in fits])
        errors = np.array(found)
        cells = [f"{mean:.3g} ({top:.2g})" for mean, top in zip(errors.mean(axis=0), errors.max(axis=0), strict=True)]
        table.add_row(str(d), f"{n:,}", f"{m:,}", f"{epsilon:g}", *cells[:-2], f"{errors[:, -2].mean():.1g}", "1")
    CONSOLE.print(table)


def skin() -> tuple[Matrix, Vector]:
    """Three colour channels, 0 to 255, and whether they are skin."""
    table = folder_table("skin_segmentation")
    x = np.column_stack([table[name].to_numpy() for name in ("B", "G", "R")]).astype(float)
    return x, (table["class"].to_numpy() == 1).astype(float)


def adult() -> tuple[Matrix, Vector]:
    """Five numbers, sex and marriage, and whether the income is above 50,000 dollars."""
    table = folder_table("adult")
    numbers = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    columns = [table[name].to_numpy().astype(float) for name in numbers]
    columns.append((np.array(table["sex"].to_pylist()) == "Male").astype(float))
    columns.append(np.char.startswith(np.array(table["marital-status"].to_pylist()), "Married").astype(float))
    return np.column_stack(columns), (np.array(table["income"].to_pylist()) == ">50K").astype(float)


def real(name: str, load: Callable[[], tuple[Matrix, Vector]], m: int, held: int, epsilons: tuple[float, ...],
         repeats: int) -> None:  # fmt: skip
    """Print held-out accuracies; 0 and 1 are told apart at a mean response of 1/2."""
    try:
        x, y = load()
    except DPRegressError as error:
        CONSOLE.print(f"{name}: {error}")
        return
    n = len(x) - m - held
    table = Table(title=f"{name}: accuracy, n = {n:,}, m = {m:,}, mean of {repeats} splits", box=SIMPLE_HEAD)
    columns = ("unlabelled", "labelled public", "Algorithm 1", "Algorithm 2", "public only (labelled)", "non-private")
    for column in ("eps", *columns, "majority"):
        table.add_column(column, justify="right")
    for epsilon in epsilons:
        found = []
        for repeat in range(repeats):
            rng = np.random.default_rng([1, repeat])
            order = rng.permutation(len(x))
            public, rows, test = order[:m], order[m : m + n], order[m + n :]
            delta = n**-1.1
            scores = []
            for labels in (None, y[public]):
                moments = PublicMoments.from_rows(x[public], labels)
                model = LocalGLM(ApproxDP(epsilon, delta), public=moments, random_state=rng)
                scores.append(accuracy(model.fit(x[rows], y[rows]).predict(x[test]) > 0.5, y[test]))
            centre, spread = x[public].mean(axis=0), x[public].std(axis=0)
            z = (x - centre) / spread
            options = {"loss": "logistic", "epsilon": epsilon, "delta": delta, "rng": rng}
            radius = float(np.abs(z[public]).sum(axis=1).max())
            published = (
                wang2023.gaussian_glm(z[rows], y[rows], z[public], **options),
                wang2023.bounded_glm(z[rows], y[rows], z[public], radius=radius, **options),
            )
            plain_fits = [scored_fit(x[part], y[part], BinomialFamily) for part in (public, rows)]
            scores += [accuracy(z[test] @ coef > 0, y[test]) for coef in published]
            scores += [accuracy(fit.predict(x[test]) > 0, y[test]) for fit in plain_fits]
            scores.append(accuracy(mean_only(x[rows], y[rows]).predict(x[test]) > 0.5, y[test]))
            found.append(scores)
        table.add_row(f"{epsilon:g}", *(f"{value:.3f}" for value in np.mean(found, axis=0)))
    CONSOLE.print(table)


def accuracy(predicted: Vector, truth: Vector) -> float:
    """The share that is right."""
    return float(np.mean(predicted == (truth > 0.5)))


def large(n: int = 10_000_000, d: int = 20) -> None:
    """Print the seconds that a campaign of ten million users takes to simulate."""
    rng = np.random.default_rng(1)
    x, y, public, _ = sample("logistic", rng, d, n, 5_000)
    budget = ApproxDP(1.0, 1e-6, confirm_delta=True)  # above 1/n, which makes no difference to the time
    for recipe in ("unit-vector", "gaussian"):
        moments = PublicMoments.from_rows(public)
        started = time.perf_counter()
        model = LocalGLM(budget, public=moments, fit_intercept=False, recipe=recipe, random_state=rng)
        model.fit(x, y)
        CONSOLE.print(f"n = {n:,}, d = {d}, {recipe}: {time.perf_counter() - started:.1f} s")


def devices(d: int = 20, reports: int = 200) -> None:
    """Print the milliseconds that a device takes for a report, encoding included."""
    rng = np.random.default_rng(1)
    x, y, public, _ = sample("logistic", rng, d, reports, 5_000)
    for recipe in ("unit-vector", "gaussian", "joint"):
        model = LocalGLM(ApproxDP(5.0, 1e-6), public=PublicMoments.from_rows(public), recipe=recipe)
        study = Study.of(model.plan(tuple(f"x{i}" for i in range(d)), 100_000), "benchmark")
        sizes = [len(device_report([*x[0], y[0]], study).encode())]  # the sampler is loaded once
        started = time.perf_counter()
        sizes += [len(device_report([*row, of], study).encode()) for row, of in zip(x, y, strict=True)]
        took = 1e3 * (time.perf_counter() - started) / reports
        CONSOLE.print(f"a report at d = {d}, epsilon 5, {recipe}: {took:.1f} ms, {sizes[0]} bytes")


def main() -> None:
    """Print everything."""
    for category in (SeededNoiseWarning, NoScaleWarning):
        warnings.simplefilter("ignore", category)
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    simulations("logistic", LOGISTIC, repeats)
    simulations("squared", LINEAR, repeats)
    real("Skin Segmentation", skin, 5_000, 60_057, (0.2, 0.5, 1.0), repeats)
    real("Adult", adult, 2_000, 9_768, (1.0, 4.0), repeats)
    large()
    devices()


if __name__ == "__main__":
    answer_help(__doc__)
    main()
