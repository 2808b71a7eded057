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
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from scipy.stats import rankdata

from dpregress import ApproxDP, MarginalsRegression, Schema
from dpregress.baselines import least_squares, scored_fit
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.datasets import folder_table
from dpregress.errors import SeededNoiseWarning
from dpregress.models import BinomialFamily
from dpregress.papers.ferrando2024 import ddssp_linear, ddssp_logistic, objective_perturbation, published_adassp
from dpregress.public.coding import domain_of
from dpregress.queries import Blocks
from dpregress.releases.marginals import encoded_design
from dpregress.rows import CodedParquet, PrivateRows, ThreadedEngine
from dpregress.rows.readers.files import read_files

CONSOLE = Console(width=150)
EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0)
DELTA = 1e-5
_TRAIN, _TEST = 50_000, 1_000

_ADULT = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_ACS = ("AGEP", "WKHP", "JWMNP", "PINCP")
_TAXI = ("fare", "tips", "trip_total", "trip_seconds", "trip_miles")


@dataclass(frozen=True)
class Task:
    """A regression on a data set."""

    table: str
    target: str
    numeric: Sequence[str]
    family: str = "gaussian"

    def __str__(self) -> str:
        return f"{self.table}, {self.target}"


TASKS = (
    Task("adult_discretized", "education-num", _ADULT),
    Task("acs_income", "PINCP", _ACS),
    Task("fire", "Priority", ("Priority",)),
    Task("nist_taxi", "trip_total", _TAXI),
    Task("adult_discretized", "income>50K", _ADULT, "binomial"),
    Task("acs_employment", "ESR", _ACS, "binomial"),
    Task("acs_mobility", "MIG", _ACS, "binomial"),
)


@dataclass(frozen=True, eq=False)
class Split:
    """Codes of training and test rows of a task, with the paper's design."""

    task: Task
    schema: Schema
    domain: Domain
    train: Matrix
    test: Matrix

    @classmethod
    def of(cls, task: Task, seed: int) -> Split:
        """A random split."""
        table = folder_table(task.table)
        codes = np.column_stack([table[name].to_numpy() for name in table.column_names])
        levels = {name: range(int(top) + 1) for name, top in zip(table.column_names, codes.max(axis=0), strict=True)}
        schema = Schema.from_levels(levels, numeric=[name for name in task.numeric if name in levels])
        order = np.random.default_rng([1, seed]).permutation(len(codes))
        return cls(
            task, schema, domain_of(schema), codes[order[_TEST : _TEST + _TRAIN]], codes[order[:_TEST]]
        )  # fmt: skip

    def table(self, codes: Matrix) -> pa.Table:
        """Codes as a table."""
        return pa.table({name: codes[:, j] for j, name in enumerate(self.domain.names)})

    @property
    def place(self) -> int:
        """The target's."""
        return self.domain.index(self.task.target)

    def design(self, codes: Matrix) -> Matrix:
        """The paper's: no intercept."""
        return encoded_design(self.domain, codes, [name for name in self.domain.names if name != self.task.target])[
            :, 1:
        ]

    def response(self, codes: Matrix) -> Vector:
        """In [-1, 1]."""
        return 2 * codes[:, self.place] / (self.domain.sizes[self.place] - 1) - 1

    def score(self, predicted: Vector) -> float:
        """Mean squared error of a number in [-1, 1], area under the curve of a class."""
        truth = self.response(self.test)
        if self.task.family == "gaussian":
            return float(np.mean((truth - predicted) ** 2))
        positive = truth > 0
        ranks = rankdata(predicted)
        count = int(positive.sum())
        return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(truth) - count)))


Method = Callable[[Split, float, np.random.Generator], float]


def own(split: Split, epsilon: float, rng: np.random.Generator, recipe: str = "one-shot") -> float:
    """The library's default, or another of its recipes."""
    task = split.task
    model = MarginalsRegression(
        ApproxDP(epsilon, DELTA), family=task.family, schema=split.schema, recipe=recipe, random_state=rng
    )
    model.fit_table(split.table(split.train), task.target)
    test = split.table(split.test)
    if task.family == "binomial":
        return split.score(model.predict_proba(test)[:, 1])
    return split.score(2 * model.predict(test) / (split.domain.sizes[split.place] - 1) - 1)


def aim(split: Split, epsilon: float, rng: np.random.Generator) -> float:
    """DD-SSP as published, with the built-in estimator."""
    fit = ddssp_linear if split.task.family == "gaussian" else ddssp_logistic
    table = split.table(split.train)
    coef = fit(table, split.task.target, schema=split.schema, epsilon=epsilon, delta=DELTA, rng=rng)
    return split.score(split.design(split.test) @ coef)


def baseline(split: Split, epsilon: float, rng: np.random.Generator) -> float:
    """AdaSSP or objective perturbation, with the published constants."""
    x, y = split.design(split.train), split.response(split.train)
    bound = float(np.sqrt(len(split.domain.names) - 1))
    if split.task.family == "gaussian":
        coef = published_adassp(x, y, x_bound=bound, y_bound=1.0, epsilon=epsilon, delta=DELTA, rng=rng)
    else:
        coef = objective_perturbation(x, y, x_bound=bound, epsilon=epsilon, delta=DELTA, rng=rng)
    return split.score(split.design(split.test) @ coef)


def residuals(split: Split, epsilon: float, rng: np.random.Generator) -> float:
    """ResidualPlanner."""
    return own(split, epsilon, rng, "residuals")


def noisy_blocks(split: Split, epsilon: float, rng: np.random.Generator) -> float:
    """One noise on every block."""
    return own(split, epsilon, rng, "gaussian")


METHODS: dict[str, Method] = {
    "one-shot": own,
    "AIM": aim,
    "ResidualPlanner": residuals,
    "Gaussian blocks": noisy_blocks,
    "published baseline": baseline,
}


def without_privacy(split: Split) -> tuple[float, float, float]:
    """Non-private fits in the paper's design and with an intercept, and predicting the same for everybody."""
    x, y = split.design(split.train), split.response(split.train)
    test = split.design(split.test)
    if split.task.family == "gaussian":
        coef = np.linalg.lstsq(x, y, rcond=None)[0]
        fitted = split.score(least_squares(x, y).predict(test))
        return split.score(test @ coef), fitted, split.score(np.full(len(split.test), y.mean()))
    fitted = split.score(scored_fit(x, (y > 0).astype(float), BinomialFamily).predict(test))
    return fitted, fitted, 0.5


def accuracy(splits: int, names: Sequence[str]) -> None:
    """One table a task: means over the splits. Without names of data sets all of them, and so for methods."""
    methods = {name: METHODS[name] for name in names if name in METHODS} or METHODS
    tables = set(names) - set(METHODS)
    for task in TASKS:
        if tables and task.table not in tables:
            continue
        made = [Split.of(task, seed) for seed in range(splits)]
        plain, fitted, trivial = np.mean([without_privacy(split) for split in made], axis=0)
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
    split = Split.of(TASKS[0], 0)
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


def counting(split: Split, copies: int = 100) -> None:
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
    main()
