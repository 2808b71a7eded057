"""Rate ratios of counts with exposures, with and without saying so, at epsilon 1.

    python -m benchmarks.exposure [repeats]

n = 20,000, three uniform columns, log rate x'(.5, -.4, .3) - .5, exposures that go with the first column,
log e = 2 x_1 + N(0, .5^2); epsilon 1, delta 1e-6, m = 100 public rows. Root mean squared errors of slopes. Seed 1.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.command import answer_help
from dpregress import ApproxDP, DPPoissonRegressor, PublicMoments
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import SeededNoiseWarning
from dpregress.models import PoissonFamily
from dpregress.solvers.shared.scoring import fisher_scoring

COEF = np.array([0.5, -0.4, 0.3])
N, M = 20_000, 100


def likelihood(x: Matrix, y: Vector, exposure: Vector) -> Vector:
    """Slopes of maximum likelihood."""
    start = np.array([np.log(y.mean() / exposure.mean()), 0.0, 0.0, 0.0])
    with_constant = np.column_stack([np.ones(len(x)), x])
    return fisher_scoring(with_constant, y, PoissonFamily, start, offset=np.log(exposure))[1:]


def slopes(rng: np.random.Generator) -> dict[str, Vector]:
    """Slopes of every fit to one data set."""
    x = rng.uniform(-1, 1, size=(N + M, 3))
    exposure = np.exp(2 * x[:, 0] + 0.5 * rng.normal(size=N + M))
    y = rng.poisson(exposure * np.exp(x @ COEF - 0.5)).astype(float)
    labelled = PublicMoments.from_rows(x[:M], y[:M], exposure=exposure[:M])
    unlabelled = PublicMoments.from_rows(x[:M])

    def private(public: PublicMoments, given: Vector | None) -> Vector:
        model = DPPoissonRegressor(ApproxDP(1.0, 1e-6), public=public, random_state=rng)
        return model.fit(x[M:], y[M:], exposure=given).coef_

    return {
        "not private": likelihood(x[M:], y[M:], exposure[M:]),
        "public rows alone": likelihood(x[:M], y[:M], exposure[:M]),
        "no slopes": np.zeros(3),
        "private, labelled public rows": private(labelled, exposure[M:]),
        "private, unlabelled public rows": private(unlabelled, exposure[M:]),
        "private, exposures ignored": private(unlabelled, None),
    }


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    warnings.simplefilter("ignore", SeededNoiseWarning)
    found = [slopes(np.random.default_rng([1, repeat])) for repeat in range(repeats)]
    table = Table("fit", "slope 1", "slope 2", "slope 3", box=SIMPLE_HEAD, title=f"RMSE, {repeats} repeats")
    for name in found[0]:
        errors = np.sqrt(np.mean([(fits[name] - COEF) ** 2 for fits in found], axis=0))
        table.add_row(name, *(f"{error:.3f}" for error in errors))
    Console(width=120).print(table)


if __name__ == "__main__":
    answer_help(__doc__)
    main()
