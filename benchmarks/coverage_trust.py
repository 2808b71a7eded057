"""Do intervals cover beside the central default: the one-shot recipe, users, parties, and released marginals.

    python -m benchmarks.coverage_trust [--cells one-shot,local,vertical,marginals] [--repeats 100] [--jobs 2]
                                        [--out coverage_trust.jsonl]
    python -m benchmarks.coverage_trust --summary coverage_trust.jsonl

A cell is an estimator with its family, recipe or rows, the number n of private rows, what is public, and a budget.
Its figures are the shares of repeats in which nominal 90% and 95% intervals of identified coefficients hold those of
the population (mean, and smallest over coefficients identified in ten repeats or more), the median length of 90%
intervals over those of robust (HC0) maximum likelihood on the same rows, and the share of identified coefficients;
"none" counts fits without estimates. Repeats are appended to --out, and a run that is started again goes on where it
was (seed: cell and repeat).
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from scipy.special import expit
from scipy.stats import t

from benchmarks.coverage import append_blocks, likelihood, robust_errors
from dpregress import (
    GDP,
    ApproxDP,
    DPLinearRegression,
    LocalGLM,
    MarginalsRegression,
    Numeric,
    PublicMoments,
    Schema,
    VerticalRegression,
)
from dpregress.coordinates import Matrix, Vector

CONSOLE = Console(width=150, soft_wrap=True)
BLOCK, POPULATION, DELTA = 10, 1_000_000, 1e-6
Rng = np.random.Generator


@dataclass(frozen=True)
class Cell:
    """What is fitted, to how many rows, with how many unlabelled public rows (0: a schema), at which mu or epsilon."""

    model: str
    kind: str
    n: int
    m: int
    budget: float


CELLS = tuple(
    Cell(*cell)
    for cell in (
        ("one-shot", "normal", 2_000, 200, 1.0), ("one-shot", "normal", 10_000, 200, 1.0),
        ("one-shot", "normal", 10_000, 200, 3.0), ("one-shot", "normal", 20_000, 0, 1.0),
        ("one-shot", "t5", 10_000, 200, 1.0), ("one-shot", "heteroscedastic", 10_000, 200, 1.0),
        ("local", "binomial", 20_000, 300, 1.0), ("local", "binomial", 100_000, 300, 2.0),
        ("local", "binomial", 100_000, 60, 2.0), ("local", "gaussian", 20_000, 300, 2.0),
        ("local", "gaussian", 100_000, 100, 4.0), ("local", "poisson", 100_000, 300, 4.0),
        ("vertical", "uniform", 20_000, 0, 3.0), ("vertical", "uniform", 100_000, 0, 5.0),
        ("vertical", "normal", 100_000, 0, 5.0), ("vertical", "normal", 200_000, 0, 10.0),
        ("marginals", "one-shot", 20_000, 0, 0.3), ("marginals", "one-shot", 20_000, 0, 1.0),
        ("marginals", "one-shot", 100_000, 0, 1.0), ("marginals", "one-shot", 100_000, 0, 4.0),
        ("marginals", "residuals", 20_000, 0, 1.0), ("marginals", "gaussian", 20_000, 0, 1.0),
        ("marginals", "normal", 20_000, 0, 1.0), ("marginals", "normal", 100_000, 0, 4.0),
        ("marginals", "skewed", 20_000, 0, 1.0), ("marginals", "skewed", 100_000, 0, 4.0),
    )
)  # fmt: skip
SLOPES = np.linspace(-1, 1, 6)
#: Columns of a coded table: numbers of levels, and which are numbers.
LEVELS = {"a": 5, "b": 6, "c": 2, "k": 3, "w0": 4, "w1": 4, "w2": 4, "w3": 4, "w4": 4, "w5": 4, "y": 16}
NUMERIC = ("a", "b", "w0", "w2", "w4", "y")


def correlated(rng: Rng, kind: str, n: int) -> tuple[Matrix, Vector]:
    """Six correlated normal columns and a response with errors of this kind."""
    x = np.sqrt(0.7) * rng.normal(size=(n, 6)) + np.sqrt(0.3) * rng.normal(size=(n, 1))
    error = rng.normal(size=n)
    if kind == "t5":
        error = rng.standard_t(5, size=n) / np.sqrt(5 / 3)
    if kind == "heteroscedastic":
        error *= np.sqrt(0.25 + 0.75 * x[:, 0] ** 2)
    return x, 0.5 + x @ SLOPES + error


def of_users(rng: Rng, family: str, n: int) -> tuple[Matrix, Vector]:
    """Three normal columns of different scales."""
    x = rng.normal(size=(n, 3))
    eta = 0.5 + x @ [1.0, -0.5, 0.25]
    y = {
        "gaussian": lambda: eta + rng.normal(size=n),
        "binomial": lambda: (rng.uniform(size=n) < expit(eta)).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta / 2)).astype(float),
    }[family]()
    return x * [1.0, 10.0, 0.1], y


def of_parties(rng: Rng, kind: str, n: int) -> tuple[Matrix, Vector]:
    """Four bounded columns of two parties, correlated within and between them."""
    x = rng.uniform(-1, 1, size=(n, 4)) if kind == "uniform" else np.clip(rng.normal(size=(n, 4)) / 4, -1, 1)
    x[:, 1], x[:, 2] = (x[:, 0] + x[:, 1]) / 2, (x[:, 0] + 2 * x[:, 2]) / 3
    return x, 0.1 + x @ [0.5, -0.3, 0.1, 0.2] + 0.2 * rng.uniform(-1, 1, size=n)


def coded(rng: Rng, n: int) -> dict[str, Any]:
    """A wide table of levels: four columns that matter and six that do not."""
    a = rng.integers(5, size=n)
    table = {
        "a": a,
        "b": np.clip(a + rng.integers(-1, 3, size=n), 0, 5),
        "c": (rng.uniform(size=n) < 0.2 + 0.1 * a) * 1,
    }
    table["k"] = np.where(rng.uniform(size=n) < 0.1, 2, rng.integers(2, size=n))
    for place in range(6):
        near = np.clip(a // 2 + rng.integers(0, 2, size=n), 0, 3)
        table[f"w{place}"] = rng.integers(4, size=n) if place % 2 else near
    mean = 3 + 0.8 * a + 0.5 * table["b"] - table["c"] + 1.5 * (table["k"] == 2) - 0.5 * (table["k"] == 1)
    return {**table, "y": np.clip(np.round(mean + 1.2 * rng.normal(size=n)), 0, 15).astype(int)}


def skewed(rng: Rng, n: int) -> tuple[Matrix, Vector]:
    """A log-normal column, counts, a normal column and a rare indicator."""
    x = np.column_stack(
        [np.exp(0.8 * rng.normal(size=n)), rng.poisson(1.5, n), rng.normal(size=n), rng.random(n) < 0.05]
    )
    return x, 1 + x @ [0.5, -0.3, 0.4, 1.0] + rng.normal(size=n)


#: Bounds of numbers in released marginals, the last of them of the response.
BOUNDS = {"normal": [(-60, 60)] * 6 + [(-200, 200)], "skewed": [(0, 120), (0, 60), (-18, 18), (0, 1), (-60, 120)]}


def encoded(table: dict[str, Any]) -> Matrix:
    """The design of a coded table without the constant: numbers in their own units, indicators of other levels."""
    blocks = []
    for name in [name for name in LEVELS if name != "y"]:
        if name in NUMERIC:
            blocks.append(table[name][:, None].astype(float))
        else:
            blocks.append((table[name][:, None] == np.arange(1, LEVELS[name])).astype(float))
    return np.hstack(blocks)


def rows_of(model: str, kind: str, rng: Rng, n: int) -> tuple[Matrix, Vector]:
    """Rows of a population as the model sees them."""
    if kind == "skewed":
        return skewed(rng, n)
    if model == "marginals" and kind not in BOUNDS:
        table = coded(rng, n)
        return encoded(table), table["y"].astype(float)
    drawn = {"one-shot": correlated, "local": of_users, "vertical": of_parties, "marginals": correlated}
    return drawn[model](rng, kind, n)


@lru_cache(maxsize=4)
def truth(model: str, kind: str) -> Vector:
    """The coefficients of a million rows where no formula has them."""
    if model == "local":
        slopes = np.array([0.5, 1.0, -0.05, 2.5])
        return slopes / 2 if kind == "poisson" else slopes
    return likelihood("gaussian", *rows_of(model, kind, np.random.default_rng(0), POPULATION))


def fitted(cell: Cell, rng: Rng) -> tuple[Any, Matrix, Vector]:
    """The estimates of one repeat, and its rows."""
    public = None
    if cell.m:
        public = PublicMoments.from_rows(rows_of(cell.model, cell.kind, rng, cell.m)[0])
    if cell.model == "marginals" and cell.kind in BOUNDS:
        x, y = rows_of(cell.model, cell.kind, rng, cell.n)
        names = [*(f"x{place}" for place in range(x.shape[1])), "y"]
        known = {name: Numeric(*bounds) for name, bounds in zip(names, BOUNDS[cell.kind], strict=True)}
        model = MarginalsRegression(ApproxDP(cell.budget, DELTA), schema=Schema(known), random_state=rng)
        table = pa.table(dict(zip(names, [*x.T, y], strict=True)))
        return model.fit_table(table, "y", progress=False).estimates_, x, y
    if cell.model == "marginals":
        table = coded(rng, cell.n)
        schema = Schema.from_levels({name: range(size) for name, size in LEVELS.items()}, numeric=list(NUMERIC))
        model = MarginalsRegression(ApproxDP(cell.budget, DELTA), schema=schema, recipe=cell.kind, random_state=rng)
        found = model.fit_table(pa.table(table), "y", progress=False)
        return found.estimates_, encoded(table), table["y"].astype(float)
    x, y = rows_of(cell.model, cell.kind, rng, cell.n)
    if cell.model == "one-shot":
        known = {f"x{place}": Numeric(-6, 6) for place in range(6)} | {"y": Numeric(-20, 20)}
        given = {"public": public, "schema": Schema(known)}
        return (
            DPLinearRegression(GDP(cell.budget), recipe="one-shot", random_state=rng, **given).fit(x, y).estimates_,
            x,
            y,
        )
    budget = ApproxDP(cell.budget, DELTA)
    if cell.model == "vertical":
        return VerticalRegression(budget, random_state=rng).fit([x[:, :2], x[:, 2:]], y).estimates_, x, y
    bounds = {"gaussian": (-5.0, 6.0), "poisson": (0.0, 20.0)}.get(cell.kind)
    local = LocalGLM(budget, family=cell.kind, public=public, response_bounds=bounds, random_state=rng)
    return local.fit(x, y).estimates_, x, y


def simulated(cell: Cell, repeat: int) -> dict[str, Any]:
    """One repeat of a cell."""
    rng = np.random.default_rng([zlib.crc32(repr(cell).encode()), repeat])
    estimates, x, y = fitted(cell, rng)
    if estimates is None:
        return {}
    family = cell.kind if cell.model == "local" else "gaussian"
    robust = robust_errors(family, x, y, likelihood(family, x, y))
    error, freedom = np.sqrt(np.diag(estimates.covariance)), estimates.degrees_of_freedom
    ratio = np.abs(estimates.estimate - truth(cell.model, cell.kind)) / error
    return {
        "90": (ratio <= t.ppf(0.95, freedom)).tolist(),
        "95": (ratio <= t.ppf(0.975, freedom)).tolist(),
        "length": (t.ppf(0.95, freedom) * error / (1.6449 * robust)).tolist(),
        "identified": estimates.identified.tolist(),
    }


def block(cell: Cell, first: int, repeats: int) -> str:
    """Lines of JSON, one for each repeat."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [{**asdict(cell), "repeat": at, **simulated(cell, at)} for at in range(first, first + repeats)]
    return "".join(json.dumps(record) + "\n" for record in found)


def recorded(path: Path) -> dict[Cell, list[dict[str, Any]]]:
    """The repeats that are done."""
    found: dict[Cell, list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines() if path.exists() else ():
        record = json.loads(line)
        found[Cell(*(record[name] for name in ("model", "kind", "n", "m", "budget")))].append(record)
    return found


def summary(path: Path) -> None:
    """One line for each cell."""
    head = (
        "model",
        "kind",
        "n",
        "public",
        "mu or eps",
        "repeats",
        "none",
        "90%",
        "worst",
        "95%",
        "length",
        "identified",
    )
    table = Table(*head)
    for cell, records in recorded(path).items():
        there = [record for record in records if "90" in record]
        known = np.array([record["identified"] for record in there])
        figures = ["", "", "", ""]
        if there and known.any():
            hit, wide, length = (
                np.where(known, np.array([record[name] for record in there], dtype=float), np.nan)
                for name in ("90", "95", "length")
            )
            worst = min(np.nanmean(column) for column in hit.T if np.isfinite(column).sum() >= BLOCK)
            figures = [
                f"{np.nanmean(hit):.3f}",
                f"{worst:.2f}",
                f"{np.nanmean(wide):.3f}",
                f"{np.nanmedian(length):.2f}",
            ]
        table.add_row(
            cell.model, cell.kind, f"{cell.n:,}", str(cell.m) if cell.m else "schema", f"{cell.budget:g}",
            str(len(records)), str(len(records) - len(there)), *figures, f"{known.mean() if there else 0:.2f}",
        )  # fmt: skip
    CONSOLE.print(table)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="one-shot,local,vertical,marginals")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("coverage_trust.jsonl"))
    parser.add_argument("--summary", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.summary is not None:
        summary(arguments.summary)
        return
    done = recorded(arguments.out)
    work = [
        (cell, first, min(BLOCK, arguments.repeats - first))
        for cell in CELLS
        if cell.model in arguments.cells.split(",")
        for first in range(len(done.get(cell, ())), arguments.repeats, BLOCK)
    ]
    append_blocks(block, work, arguments.jobs, arguments.out)
    summary(arguments.out)


if __name__ == "__main__":
    main()
