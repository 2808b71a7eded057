"""diffprivlib beside the library, at equal epsilon, on tables of :mod:`benchmarks.grid`; in its own environment.

    python -m benchmarks.other_libraries [--tables bank,adult,wine,..] [--splits 5] [--folder DIR]

diffprivlib needs an older scikit-learn. The script makes a virtual environment in DIR (a temporary folder without it),
installs the versions named below, and hands the rows over in files. Its models have pure epsilon; they get the epsilon
of the (epsilon, delta) that the library spends.
Both know the schema and nothing else: diffprivlib gets the bounds of columns, or the bound on the norm of a row
that follows from them (columns scaled to [-1, 1], of the indicators of a column at most one is 1), and no public rows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.grid import Parts, loaded
from benchmarks.tables import ENTRIES
from dpregress.baselines import LinearFit, least_squares, mean_only, scored_fit
from dpregress.coordinates import Vector
from dpregress.models import Family

INSTALLED = ("diffprivlib==0.6.6", "scikit-learn==1.7.2")
TABLES = ("power", "wine", "insurance", "bank", "adult", "visitsbin")
EPSILONS = (0.1, 0.3, 1.0, 3.0)
CONSOLE = Console(width=130, soft_wrap=True)

#: Runs in the other environment: reads rows, writes an intercept and slopes.
_WORKER = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
given = np.load(sys.argv[1])
x, y, epsilon, seed = given["x"], given["y"], float(given["epsilon"]), int(given["seed"])
if given["linear"]:
    from diffprivlib.models import LinearRegression
    model = LinearRegression(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=tuple(given["bounds"]), random_state=seed)
else:
    from diffprivlib.models import LogisticRegression
    model = LogisticRegression(epsilon=epsilon, data_norm=float(given["norm"]), max_iter=1000, random_state=seed)
model.fit(x, y)
np.save(sys.argv[2], np.append(model.intercept_, np.ravel(model.coef_)))
"""


def environment(folder: Path) -> Path:
    """The interpreter of an environment that has diffprivlib; made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *INSTALLED], check=True)
    return python


def other_fit(python: Path, parts: Parts, epsilon: float, seed: int) -> LinearFit:
    """diffprivlib's fit to the private rows, in the units of the columns."""
    x, y = parts.rows(parts.private)
    names = parts.encoder.features
    indicator = np.array([parts.schema.indicates(name) is not None for name in names])
    centre, half = np.array(
        [(0.0, 1.0) if flag else parts.schema.scale_of(name) for name, flag in zip(names, indicator, strict=True)]
    ).T
    half = np.maximum(half, 1e-12)
    linear = parts.entry.family == "gaussian"
    with tempfile.TemporaryDirectory() as folder:
        rows, found = Path(folder) / "rows.npz", Path(folder) / "found.npy"
        np.savez(
            rows, x=np.clip((x - centre) / half, -1, 1), y=y, epsilon=epsilon, seed=seed, linear=linear,
            norm=np.sqrt(len(parts.features)), bounds=parts.schema.bounds_of(parts.entry.target) if linear else (0, 1),
        )  # fmt: skip
        subprocess.run([str(python), "-c", _WORKER, str(rows), str(found)], check=True)
        intercept, *slopes = np.load(found)
    coef = np.array(slopes) / half
    return LinearFit(coef, float(intercept - coef @ centre))


def mean_deviance(family: Family, mean: Vector, y: Vector) -> float:
    return float(np.mean(family.distribution.unit_deviance(y, mean)))


def rows_of(python: Path, table: str, split: int) -> list[dict[str, object]]:
    parts = Parts.of(ENTRIES[table], loaded(table, None), split)
    family, (x, y), (z, w) = parts.family, parts.rows(parts.private), parts.rows(parts.held_out)
    plain = least_squares(x, y) if parts.entry.family == "gaussian" else scored_fit(x, y, family)
    best = mean_deviance(family, family.mean(plain.predict(z)), w)

    def cell(epsilon: float) -> dict[str, object]:
        means = {
            "dpregress": parts.library("schema", epsilon, [17, split]),
            "diffprivlib": family.mean(other_fit(python, parts, epsilon, split).predict(z)),
            "trivial": np.full(len(w), mean_only(x, y).intercept),
        }
        ratios = {name: mean_deviance(family, mean, w) / best for name, mean in means.items()}
        return {"table": table, "n": len(x), "epsilon": epsilon, **ratios}

    return [cell(epsilon) for epsilon in EPSILONS]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="of the environment, which is kept there")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        python = environment(options.folder or Path(temporary) / "environment")
        CONSOLE.print("Held-out deviance over the non-private fit's, medians", highlight=False)
        CONSOLE.print(
            "| table | n | epsilon | dpregress, schema | diffprivlib | trivial |\n|---|---|---|---|---|---|",
            highlight=False,
        )
        for table in options.tables.split(","):
            if not ENTRIES[table].available:
                CONSOLE.print(f"{table}: left out, DPREGRESS_DATA names no folder of tables", highlight=False)
                continue
            frame = pd.DataFrame([row for split in range(options.splits) for row in rows_of(python, table, split)])
            for (n, epsilon), cell in frame.groupby(["n", "epsilon"]):
                shown = " | ".join(f"{cell[name].median():.3f}" for name in ("dpregress", "diffprivlib", "trivial"))
                CONSOLE.print(f"| {table} | {n:,} | {epsilon:g} | {shown} |", highlight=False)


if __name__ == "__main__":
    main()
