"""Accuracy at equal privacy: an ill-conditioned simulation and real tables, beside what else could be used.

    python -m benchmarks.utility [--repeats 50] [--splits 20] [--out FOLDER] [simulation] [tables]

Simulation: every private row spends sqrt(2) mu in all, mu the paper's; public rows are unlabelled for the library's
recipes, the paper takes its scale of y from their labels. Seed 1; medians.

Tables (of the folder DPREGRESS_DATA): delta 1e-6; 20% of the rows held out, public = max(200, 2%) random rows, the
rest private; held-out mean squared error over that of least squares on the private rows, medians over splits (seeds
7, 0 ..; noise 11, 0 ..). AdaSSP, TukeyEM and DP-GD at the same (epsilon, delta); unlabelled fits, AdaSSP and DP-GD
take the declared bounds of y. --out writes one plot a table.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dpregress import ApproxDP, DPLinearRegression, Numeric, PublicMoments, Schema
from dpregress.baselines import LinearFit, adassp, dp_gd, least_squares, mean_only, tukey_em
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, SeededNoiseWarning
from dpregress.experiments import simulation
from dpregress.experiments.regression_tables import TABLES, RegressionTable
from dpregress.public.whitening import from_public

CONSOLE = Console(width=150)
SETTINGS = ((2_000, 100), (2_000, 200), (10_000, 20), (10_000, 100), (10_000, 200), (100_000, 100))
EPSILONS, DELTA = (0.1, 0.3, 1.0, 3.0), 1e-6
Rows = tuple[Matrix, Vector]
Predictor = Callable[[Matrix], Vector]


def simulated(repeats: int) -> None:
    """Print the simulation, its noisy variant and the mean prediction under skewed errors."""
    for noise, settings in ((0.05, SETTINGS), (1.0, SETTINGS[2:5])):
        table = Table(title=f"Median l2 error of {repeats} repeats, noise sd {noise}, seed 1", box=SIMPLE_HEAD)
        for index, (n, m, mu) in enumerate((n, m, mu) for n, m in settings for mu in simulation.MUS):
            found = simulation.medians(n=n, m=m, mu=mu, repeats=repeats, seed=1, noise=noise)
            if index == 0:
                for name in ("n", "m", "mu", *found, "residual / OLS"):
                    table.add_column(name, justify="right")
            ratio = found["residual"] / found["OLS (non-private)"]
            table.add_row(f"{n:,}", str(m), str(mu), *(f"{value:.3g}" for value in found.values()), f"{ratio:.2f}")
        CONSOLE.print(table)
    table = Table(title="Mean prediction over mean response, log-normal errors, n = 10,000, m = 100", box=SIMPLE_HEAD)
    for name in ("mu", "median", "off by (median)", "off by (90%)"):
        table.add_column(name, justify="right")
    for mu in simulation.MUS:
        runs = [np.random.default_rng([1, repeat]) for repeat in range(repeats)]
        ratios = np.array(
            [simulation.mean_prediction(simulation.skewed_sample(rng, n=10_000, m=100), mu, rng) for rng in runs]
        )
        off = np.abs(ratios - 1)
        table.add_row(f"{mu:g}", f"{np.median(ratios):.3f}", f"{np.median(off):.3f}", f"{np.quantile(off, 0.9):.3f}")
    CONSOLE.print(table)


def covered(repeats: int) -> None:
    """Print the coverage of nominal 90% intervals."""
    table = Table(title=f"Coverage of 90% intervals, noise sd 1, m = 100, {repeats} repeats, seed 1", box=SIMPLE_HEAD)
    for name in ("n", "mu", "labelled", "unlabelled"):
        table.add_column(name, justify="right")
    for n in (2_000, 10_000):
        for mu in simulation.MUS:
            shares = [
                simulation.coverage(n=n, mu=mu, labelled=labelled, repeats=repeats, seed=1)
                for labelled in (True, False)
            ]
            table.add_row(f"{n:,}", f"{mu:g}", *(f"{share:.3f}" for share in shares))
    CONSOLE.print(table)


def split_rows(x: Matrix, y: Vector, seed: int) -> tuple[Rows, Rows, Rows]:
    """Public, private and held-out rows."""
    order = np.random.default_rng([7, seed]).permutation(len(y))
    held_out, public = round(0.2 * len(y)), max(200, round(0.02 * len(y)))
    test, shown, private = np.split(order, [held_out, held_out + public])
    return (x[shown], y[shown]), (x[private], y[private]), (x[test], y[test])


def private_fits(
    public: Rows, private: Rows, bounds: tuple[float, float], epsilon: float, seed: int
) -> Iterator[tuple[str, Predictor | None]]:
    """Every private fit at (epsilon, delta); None where one gives no answer."""
    rng = np.random.default_rng([11, seed])
    (u, v), (x, y) = public, private
    budget = ApproxDP(epsilon, DELTA)
    labelled = PublicMoments.from_rows(u, v)
    schema = Schema({"y": Numeric(*bounds)})
    yield "labelled", DPLinearRegression(budget, public=labelled, random_state=rng).fit(x, y).predict
    model = DPLinearRegression(budget, public=labelled.unlabelled(), schema=schema, random_state=rng)
    yield "unlabelled", model.fit(x, y).predict
    mu, centre, reach = budget.gaussian_mu, sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
    raw, radius = np.column_stack([np.ones(len(x)), x]), float(np.linalg.norm(u, axis=1).max() + 1)
    coef = adassp(raw, y - centre, mu=mu, radius=radius, bound=reach, rng=rng)
    yield "AdaSSP raw", LinearFit(coef[1:], centre + coef[0]).predict
    space = from_public(labelled, intercept=True)
    white = space.whiten(x)
    for name, found in (
        ("AdaSSP whitened", adassp(white, y - centre, mu=mu, radius=space.radius, bound=reach, rng=rng)),
        ("DP-GD", dp_gd(white, y - centre, mu=mu, start_clip=space.radius * reach / 2, rng=rng)),
    ):
        slopes, intercept = space.pull_back(found)
        yield name, LinearFit(slopes, centre + intercept).predict
    models = min(len(x) // raw.shape[1], max(1000, math.ceil(4000 / epsilon)), 8000)
    point = tukey_em(raw, y, epsilon=epsilon, delta=DELTA, models=models, rng=rng)
    yield "TukeyEM", None if point is None else LinearFit(point[1:], float(point[0])).predict


def table_ratios(entry: RegressionTable, splits: int) -> dict[float, dict[str, Vector]]:
    """Held-out error over that of least squares, of every fit in every split."""
    x, y = entry.load()
    found: dict[float, dict[str, list[float]]] = {epsilon: {} for epsilon in EPSILONS}
    for seed in range(splits):
        public, private, (test, truth) = split_rows(x, y, seed)
        plain = least_squares(*private)
        best = float(np.mean((truth - plain.predict(test)) ** 2))

        def ratio(predict: Predictor | None, test: Matrix = test, truth: Vector = truth, best: float = best) -> float:
            return math.nan if predict is None else float(np.mean((truth - predict(test)) ** 2)) / best

        fixed = {"public only": ratio(least_squares(*public).predict), "mean": ratio(mean_only(*private).predict)}
        for epsilon in EPSILONS:
            fits = {name: ratio(fit) for name, fit in private_fits(public, private, entry.bounds, epsilon, seed)}
            for name, value in {**fixed, **fits}.items():
                found[epsilon].setdefault(name, []).append(value)
    return {epsilon: {name: np.array(values) for name, values in fits.items()} for epsilon, fits in found.items()}


def _shown(values: Vector) -> str:
    """The median; a fit without an answer in half of the splits or more has none."""
    failed = np.isnan(values)
    if failed.mean() >= 0.5:
        return "no answer"
    median = float(np.nanmedian(values))
    return f"{median:.3f}" if median < 100 else f"{median:.1g}"


def on_tables(splits: int, out: Path | None) -> None:
    """Print one table for all data sets, and draw a plot for each."""
    table: Table | None = None
    for entry in TABLES:
        try:
            found = table_ratios(entry, splits)
        except InvalidInput as missing:
            CONSOLE.print(f"{entry.name}: {missing}")
            continue
        for epsilon, fits in found.items():
            if table is None:
                table = Table(title=f"Held-out MSE over least squares', median of {splits} splits", box=SIMPLE_HEAD)
                for name in ("table", "epsilon", *fits, "labelled, worst / public", "unlabelled, worst / mean"):
                    table.add_column(name, justify="right" if name != "table" else "left")
            worst = (fits["labelled"] / fits["public only"]).max(), (fits["unlabelled"] / fits["mean"]).max()
            table.add_row(
                entry.name, f"{epsilon:g}", *(_shown(v) for v in fits.values()), *(f"{value:.3f}" for value in worst)
            )
        if out is not None:
            draw(entry.name, found, out)
    if table is not None:
        CONSOLE.print(table)


def draw(name: str, found: dict[float, dict[str, Vector]], out: Path) -> None:
    """One plot: excess error against epsilon."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for fit in next(iter(found.values())):
        medians = [float(np.median(fits[fit])) for fits in found.values()]
        axes.plot(EPSILONS, np.maximum(np.array(medians) - 1, 1e-4), marker="o", label=fit)
    axes.set(
        xscale="log", yscale="log", xlabel="epsilon", ylabel="held-out MSE over least squares', less 1", title=name
    )
    axes.legend(fontsize=7)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / f"{name.replace(' ', '-').lower()}.png", dpi=120, bbox_inches="tight")
    plt.close(figure)


def main() -> None:
    """Print what is asked for; everything by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["simulation", "tables", []], default=[])
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    if not asked.parts or "simulation" in asked.parts:
        simulated(asked.repeats)
        covered(2 * asked.repeats)
    if not asked.parts or "tables" in asked.parts:
        on_tables(asked.splits, asked.out)


if __name__ == "__main__":
    main()
