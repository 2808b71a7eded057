"""Accuracy of linear regression at equal privacy: an ill-conditioned simulation.

    python -m benchmarks.utility [--repeats 50] [simulation]

Every private row spends sqrt(2) mu in all, mu the paper's; public rows are unlabelled for the library's recipes, the
paper takes its scale of y from their labels. Seed 1; medians. Tables are in :mod:`benchmarks.grid`.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dpregress.errors import SeededNoiseWarning
from dpregress.experiments import simulation

CONSOLE = Console(width=150)
SETTINGS = ((2_000, 100), (2_000, 200), (10_000, 20), (10_000, 100), (10_000, 200), (100_000, 100))


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


def main() -> None:
    """Print the simulations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["simulation", []], default=[])
    parser.add_argument("--repeats", type=int, default=50)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    simulated(asked.repeats)
    covered(2 * asked.repeats)


if __name__ == "__main__":
    main()
