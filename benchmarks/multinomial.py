"""Multinomial regression on real tables at epsilon 1, delta 1e-6, beside the fits without privacy.

    python -m benchmarks.multinomial [splits]

Forest cover: 15,120 places, 7 equally frequent types, ten numbers and the wilderness area. Wine: 4,898 white wines,
quality up to 5, 6, and above. Marital status: 195,665 Californians, 5 groups, seven columns. A fifth is held out, a
twentieth of the rest is public; medians over splits of held-out accuracy and log loss. Needs DPREGRESS_DATA. Seed 1.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from scipy.special import softmax

from benchmarks.command import answer_help
from dpregress import ApproxDP, DPLogisticRegression, PublicMoments
from dpregress.coordinates import Matrix, Vector
from dpregress.datasets import folder_table
from dpregress.errors import SeededNoiseWarning
from dpregress.models import contrasts
from dpregress.solvers.glm.softmax_fit import softmax_scoring

CONSOLE = Console(width=120)
BUDGET = ApproxDP(1.0, 1e-6)


def cover() -> tuple[Matrix, Vector]:
    """Forest cover types."""
    table = folder_table("covertype_kaggle15k")
    names = [name for name in table.column_names if name not in ("Id", "Cover_Type", "Wilderness_Area4")]
    x = np.column_stack([table[name].to_numpy() for name in names if not name.startswith("Soil")]).astype(float)
    return x, table["Cover_Type"].to_numpy() - 1.0


def wine() -> tuple[Matrix, Vector]:
    """Three groups of quality."""
    table = folder_table("wine_quality_white")
    x = np.column_stack([table[name].to_numpy() for name in table.column_names if name != "quality"]).astype(float)
    return x, np.clip(table["quality"].to_numpy(), 5, 7) - 5.0


def marital() -> tuple[Matrix, Vector]:
    """Marital status by age, schooling, hours, income, sex, and the levels of work and race that 1% have."""
    table = folder_table("acs_income")
    columns = [table[name].to_numpy().astype(float) for name in ("AGEP", "SCHL", "WKHP", "PINCP", "SEX")]
    for name in ("COW", "RAC1P"):
        values = table[name].to_numpy()
        levels = [level for level in np.unique(values)[1:] if np.mean(values == level) > 0.01]
        columns += [(values == level).astype(float) for level in levels]
    return np.column_stack(columns), np.unique(table["MAR"].to_numpy(), return_inverse=True)[1].astype(float)


def plain(x: Matrix, y: Vector, classes: int) -> Callable[[Matrix], Matrix]:
    """Maximum likelihood without privacy (with a penalty of one row, for classes that are separable)."""
    centre, spread = x.mean(axis=0), np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)

    def design(rows: Matrix) -> Matrix:
        return np.column_stack([np.ones(len(rows)), (rows - centre) / spread])

    start = np.zeros((x.shape[1] + 1, classes - 1))
    coef = softmax_scoring(design(x), y, start, penalty=np.eye(start.size))
    return lambda rows: np.asarray(softmax(design(rows) @ coef @ contrasts(classes).T, axis=1))


def scores(chances: Matrix, y: Vector) -> tuple[float, float]:
    """Accuracy and log loss."""
    taken = y.astype(int)
    likelihood = np.maximum(chances[np.arange(len(y)), taken], 1e-15)
    return float(np.mean(chances.argmax(axis=1) == taken)), float(-np.mean(np.log(likelihood)))


def compare(x: Matrix, y: Vector, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """One split."""
    classes = int(y.max()) + 1
    order = rng.permutation(len(x))
    held, rest = order[: len(x) // 5], order[len(x) // 5 :]
    public, private = rest[: len(rest) // 20], rest[len(rest) // 20 :]
    truth = y[held]
    shares = np.bincount(y[private].astype(int), minlength=classes) / len(private)
    found = {"non-private": scores(plain(x[private], y[private], classes)(x[held]), truth)}
    for name, labels in (("private, labelled", y[public]), ("private, unlabelled", None)):
        moments = PublicMoments.from_rows(x[public], labels)
        model = DPLogisticRegression(BUDGET, classes=range(classes), public=moments, random_state=rng)
        found[name] = scores(model.fit(x[private], y[private]).predict_proba(x[held]), truth)
    found["public only"] = scores(plain(x[public], y[public], classes)(x[held]), truth)
    found["majority"] = scores(np.tile(shares, (len(held), 1)), truth)
    return found


def main(splits: int) -> None:
    """Print a table of medians."""
    table = Table(title=f"Held-out accuracy and log loss at epsilon 1, medians of {splits} splits", box=SIMPLE_HEAD)
    for name in ("table", "non-private", "private, labelled", "private, unlabelled", "public only", "majority"):
        table.add_column(name, justify="left" if name == "table" else "right")
    for title, load in (("forest cover", cover), ("wine", wine), ("marital status", marital)):
        x, y = load()
        found = [compare(x, y, np.random.default_rng([1, split])) for split in range(splits)]
        medians = {name: np.median([one[name] for one in found], axis=0) for name in found[0]}
        table.add_row(
            title, *(f"{medians[str(c.header)][0]:.3f} {medians[str(c.header)][1]:.3f}" for c in table.columns[1:])
        )
    CONSOLE.print(table)


if __name__ == "__main__":
    answer_help(__doc__)
    warnings.simplefilter("ignore", SeededNoiseWarning)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
