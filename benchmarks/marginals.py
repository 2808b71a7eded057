"""Regression from released pair tables, beside AIM, the paper's baselines and fits without privacy.

    python -m benchmarks.marginals accuracy [splits] [data set or method ..]
    python -m benchmarks.marginals speed

Needs the coded tables in the folder that DPREGRESS_DATA names. Random splits: 1,000 test rows, at most 50,000
training rows, one release a split and method; delta 1e-5, add-or-remove neighbours. Designs as published
(docs/methods/ferrando2024.md) for AIM and the baselines, with an intercept for the library's own.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.command import answer_help
from dpregress import ApproxDP, MarginalsRegression, Schema
from dpregress.datasets import has_table
from dpregress.errors import SeededNoiseWarning
from dpregress.experiments.coded_tables import TASKS, CodedSplit
from dpregress.experiments.ferrando_tables import DELTA, EPSILONS, baseline_score, library_score
from dpregress.papers.ferrando2024 import ddssp_linear, ddssp_logistic
from dpregress.queries import Blocks
from dpregress.rows import CodedParquet, PrivateRows, ThreadedEngine
from dpregress.rows.readers.files import read_files

CONSOLE = Console(width=150)
Method = Callable[[CodedSplit, float, np.random.Generator], float]


def aim(split: CodedSplit, epsilon: float, rng: np.random.Generator) -> float:
    """DD-SSP as published, with the built-in estimator."""
    fit = ddssp_linear if split.task.family == "gaussian" else ddssp_logistic
    table = split.table(split.train)
    coef = fit(table, split.task.target, schema=split.schema, epsilon=epsilon, delta=DELTA, rng=rng)
    return split.score(split.design(split.test) @ coef)


def residuals(split: CodedSplit, epsilon: float, rng: np.random.Generator) -> float:
    """ResidualPlanner."""
    return library_score(split, epsilon, rng, "residuals")


def noisy_blocks(split: CodedSplit, epsilon: float, rng: np.random.Generator) -> float:
    """One noise on every block."""
    return library_score(split, epsilon, rng, "gaussian")


METHODS: dict[str, Method] = {
    "one-shot": library_score,
    "AIM": aim,
    "ResidualPlanner": residuals,
    "Gaussian blocks": noisy_blocks,
    "published baseline": baseline_score,
}


def accuracy(splits: int, names: Sequence[str]) -> None:
    """One table a task: means over the splits. Without names of data sets all of them, and so for methods."""
    methods = {name: METHODS[name] for name in names if name in METHODS} or METHODS
    tables = set(names) - set(METHODS)
    for task in TASKS:
        if not has_table(task.table) or (tables and task.table not in tables):
            continue
        made = [CodedSplit.of(task, np.random.default_rng([1, seed])) for seed in range(splits)]
        plain, fitted, trivial = np.mean([split.without_privacy() for split in made], axis=0)
        measure = "MSE" if task.family == "gaussian" else "AUC"
        table = Table(
            title=f"{task}: {measure} over {splits} splits; non-private {plain:.4g} "
            f"(with an intercept {fitted:.4g}), trivial {trivial:.4g}",
            box=SIMPLE_HEAD,
        )
        for name in ("epsilon", *methods, "worst of the first"):
            table.add_column(name, justify="right")
        for epsilon in EPSILONS:
            found = {
                name: [method(split, epsilon, np.random.default_rng([2, seed])) for seed, split in enumerate(made)]
                for name, method in methods.items()
            }
            worst = (max if task.family == "gaussian" else min)(next(iter(found.values())))
            table.add_row(f"{epsilon:g}", *(f"{np.mean(v):.4g}" for v in found.values()), f"{worst:.4g}")
        CONSOLE.print(table)


def speed() -> None:
    """CPU seconds of fits, and rows a second of counting."""
    split = CodedSplit.of(TASKS[0], np.random.default_rng([1, 0]))
    rng = np.random.default_rng(0)
    wide = {f"c{j}": rng.integers(16, size=50_000) for j in range(90)}
    ordered = Schema.from_levels({name: range(16) for name in wide}, numeric=list(wide))
    classes = Schema.from_levels({name: range(16) for name in wide}, numeric=["c0"])
    adult = split.table(split.train)
    fits: dict[str, tuple[Schema, pa.Table, str, str]] = {
        "Adult, one-shot": (split.schema, adult, "education-num", "one-shot"),
        "Adult, AIM": (split.schema, adult, "education-num", "aim"),
        "90 numbers x 16, n = 50,000": (ordered, pa.table(wide), "c0", "one-shot"),
        "90 classes x 16, n = 50,000": (classes, pa.table(wide), "c0", "one-shot"),
    }
    for name, (schema, table, target, recipe) in fits.items():
        before = time.process_time()
        model = MarginalsRegression(ApproxDP(1.0, DELTA), schema=schema, recipe=recipe)
        model.fit_table(table, target)
        print(f"{name:32} {time.process_time() - before:8.2f} s CPU, secure noise")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    counting(split)


def counting(split: CodedSplit, copies: int = 100) -> None:
    """Pair tables of a Parquet file of Adult's 15 attributes, read in batches."""
    small = {name: pa.array(split.train[:, j].astype(np.int8)) for j, name in enumerate(split.domain.names)}
    part = pa.table(small)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.parquet"
        with pq.ParquetWriter(path, part.schema) as writer:
            for _ in range(copies):
                writer.write_table(part)
        query = Blocks(split.domain.nominal, split.domain.pairs)
        rows = PrivateRows(CodedParquet(read_files(path), split.domain), ThreadedEngine(2))

        def value(chunk):  # type: ignore[no-untyped-def]
            return query.exact(query.row_map(chunk))

        started, cpu = time.perf_counter(), time.process_time()
        rows.engine.total(rows.source, value, columns=query.columns)
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
        print(
            f"pair tables: {rows.n / wall / 1e6:.2f}M rows/s ({rows.n / cpu / 1e6:.2f}M a CPU second), {rows.n:,} rows"
        )


def main() -> None:
    """Run what is asked for."""
    warnings.simplefilter("ignore", SeededNoiseWarning)
    what, *rest = sys.argv[1:] or ["accuracy"]
    if what == "speed":
        speed()
    else:
        accuracy(int(rest[0]) if rest else 20, rest[1:])


if __name__ == "__main__":
    answer_help(__doc__)
    main()
