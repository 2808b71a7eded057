"""Accuracy at equal privacy in an ill-conditioned simulation, beside the paper and the fits without privacy.

    python -m benchmarks.utility [repeats]

Every private row spends sqrt(2) mu in all, mu the paper's. Public rows are unlabelled for the one-shot recipe;
the paper takes its scale of y from their labels. Seed 1; medians.
"""

from __future__ import annotations

import sys
import warnings

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dpregress.errors import SeededNoiseWarning
from dpregress.experiments import simulation

SETTINGS = ((2_000, 100), (10_000, 20), (10_000, 100), (100_000, 100))


def main() -> None:
    """Print one table."""
    warnings.simplefilter("ignore", SeededNoiseWarning)
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    table = Table(title=f"Median l2 error of {repeats} repeats, seed 1", box=SIMPLE_HEAD)
    rows = [
        (n, m, mu, simulation.medians(n=n, m=m, mu=mu, repeats=repeats, seed=1))
        for n, m in SETTINGS
        for mu in simulation.MUS
    ]
    for name in ("n", "m", "mu", *rows[0][3], "one-shot / paper"):
        table.add_column(name, justify="right")
    for n, m, mu, found in rows:
        values = [f"{value:.3g}" for value in found.values()]
        table.add_row(str(n), str(m), str(mu), *values, f"{found['one-shot'] / found['paper']:.3f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
