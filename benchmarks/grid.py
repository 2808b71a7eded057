"""One grid of accuracy at equal privacy: tables x public knowledge x epsilon x splits, beside strong simple peers.

    python -m benchmarks.grid [--set tuned|aside] [--tables a,b] [--public labelled,unlabelled,schema]
                              [--epsilons .1,.3,1,3] [--splits 20] [--most 4000] [--jobs 2] [--no-peers]
                              [--out rows.csv]
    python -m benchmarks.grid --summary rows.csv

delta 1e-6; 20% of the rows are held out, public = max(200, 2%) random rows, the rest private (seeds 7, 0 ..; noise 11
and 13, 0 ..). A figure is the held-out mean deviance over that of the non-private fit to the private rows; for linear
models both are mean squared errors. Every line has the median and the worst split, and beside them the public-only fit
with a cross-validated penalty, the mean of the private rows for everybody (not private), and the peers' medians
(:mod:`benchmarks.peers`). --out keeps every row; --summary reads them and says which cells hold. Without DPREGRESS_DATA
only the tables run that need no file. Tables are those of :mod:`benchmarks.tables`.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.metrics import roc_auc_score

from benchmarks.grid_summary import figures, lines, summary
from benchmarks.peers import Known, Tuner, deviance, peers_of
from benchmarks.tables import ENTRIES, SETS, GridTable, chosen
from dpregress import (
    ApproxDP,
    DPGammaRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    Schema,
)
from dpregress.baselines import LinearFit, least_squares, mean_only, scored_fit
from dpregress.coordinates import Matrix, Vector
from dpregress.datasets.loaders import FOLDER
from dpregress.models import Family, family_of
from dpregress.rows import Encoder

CONSOLE = Console(width=190, soft_wrap=True)
EPSILONS, DELTA = (0.1, 0.3, 1.0, 3.0), 1e-6
WAYS = ("labelled", "unlabelled", "schema")
ESTIMATORS: dict[str, Any] = {
    "gaussian": DPLinearRegression, "binomial": DPLogisticRegression, "poisson": DPPoissonRegressor,
    "gamma": DPGammaRegressor,
}  # fmt: skip
#: Seconds before a progress bar appears.
_PATIENCE = 2.0
Row = dict[str, Any]
Predict = Callable[[], Vector | None]


@dataclass(frozen=True)
class Job:
    """One split of a table, or of ``most`` of its rows, with everything that is fitted to it."""

    table: str
    split: int
    epsilons: tuple[float, ...] = EPSILONS
    ways: tuple[str, ...] = WAYS
    peers: bool = True
    most: int | None = None


@dataclass(frozen=True, eq=False)
class Parts:
    """Public, private and held-out rows of a split."""

    entry: GridTable
    schema: Schema
    public: pa.Table
    private: pa.Table
    held_out: pa.Table

    @classmethod
    def of(cls, entry: GridTable, frame: pd.DataFrame, split: int) -> Parts:
        """A random split: 20% held out, max(200, 2%) public."""
        n = len(frame)
        order = np.random.default_rng([7, split]).permutation(n)
        held_out, public = round(0.2 * n), max(200, round(0.02 * n))
        table = pa.Table.from_pandas(frame, preserve_index=False)
        test, shown, private = (table.take(part) for part in np.split(order, [held_out, held_out + public]))
        if entry.unseen is not None:
            shown = shown.filter(pc.equal(shown[entry.unseen], 0))
        return cls(entry, entry.schema(frame), shown, private, test)

    @property
    def family(self) -> Family:
        """Of the model, with its default link."""
        return family_of(self.entry.family)

    @cached_property
    def features(self) -> list[str]:
        """All columns but the response."""
        return [name for name in self.private.column_names if name != self.entry.target]

    @cached_property
    def encoder(self) -> Encoder:
        """The design of the library."""
        return Encoder.of(self.features, self.entry.target, self.schema)

    def rows(self, table: pa.Table) -> tuple[Matrix, Vector]:
        """Design and response."""
        return np.asarray(self.encoder.x(table)), table[self.entry.target].to_numpy().astype(np.float64)

    def known(self) -> Known:
        """What peers are told."""
        names = self.encoder.features
        half_ranges = [1.0 if self.schema.indicates(name) else self.schema.scale_of(name)[1] for name in names]
        bounds = (0.0, 1.0) if self.entry.family == "binomial" else self.schema.bounds_of(self.entry.target)
        return Known(*self.rows(self.public), self.family, np.maximum(half_ranges, 1e-12), bounds)

    def library(self, way: str, epsilon: float, seed: Sequence[int]) -> Vector:
        """Held-out predictions of the library's default fit."""
        given = {
            "labelled": {"public": self.public},
            "unlabelled": {"public": self.public.select(self.features)},
            "schema": {},
        }[way]
        binomial = self.entry.family == "binomial"
        model = ESTIMATORS[self.entry.family](
            ApproxDP(epsilon, DELTA),
            schema=self.schema,
            random_state=np.random.default_rng(seed),
            **given,
            **({"classes": (0, 1)} if binomial else {}),
        )
        model.fit_table(self.private, self.entry.target, self.features, progress=False)
        table = self.held_out.select(self.features)
        return np.asarray(model.predict_proba(table)[:, 1] if binomial else model.predict(table), dtype=float)


@lru_cache(maxsize=1)
def loaded(name: str, most: int | None) -> pd.DataFrame:
    """Its rows without constant columns; splits of a table come one after another in a worker."""
    frame = ENTRIES[name].load()
    frame = frame if most is None or most >= len(frame) else frame.sample(most, random_state=0)
    return frame.loc[:, frame.nunique() > 1]


def run(job: Job) -> list[Row]:
    """All rows of a split: one for each way and epsilon, and one for each peer and epsilon."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = Parts.of(ENTRIES[job.table], loaded(job.table, job.most), job.split)
        return list(fitted_rows(parts, job.split, job.table, job.epsilons, job.ways, job.peers))


def fitted_rows(
    parts: Parts, split: int, table: str, epsilons: Sequence[float], ways: Sequence[str], peers: bool = False
) -> Iterator[Row]:
    """A row for each way and epsilon of the library's fit to these parts, and for each peer and epsilon."""
    family, known = parts.family, parts.known()
    (x, y), (z, w) = parts.rows(parts.private), parts.rows(parts.held_out)
    plain = least_squares(x, y) if parts.entry.family == "gaussian" else scored_fit(x, y, family)
    trivial = LinearFit(np.zeros(x.shape[1]), float(family.link.predictor(mean_only(x, y).intercept)))
    best = deviance(family, plain, z, w)
    fixed = {
        "table": table, "family": parts.entry.family, "n": len(x), "columns": x.shape[1], "split": split,
        "public_only": deviance(family, known.fit, z, w) / best, "trivial": deviance(family, trivial, z, w) / best,
        "plain_auc": _auc(parts, w, family.mean(plain.predict(z))),
    }  # fmt: skip

    def row(method: str, knows: str, epsilon: float, predict: Predict) -> Row:
        return {**fixed, "method": method, "knows": knows, "epsilon": epsilon, **_judged(parts, w, best, predict)}

    for way in ways:
        for epsilon in epsilons:
            seed = [11, split, WAYS.index(way)]
            yield row("library", way, epsilon, lambda w=way, e=epsilon, s=seed: parts.library(w, e, s))  # type: ignore[misc]
    if peers:
        tuner = Tuner(known, len(x), DELTA)
        for place, peer in enumerate(peers_of(family)):
            for epsilon in epsilons:

                def predict(peer=peer, epsilon=epsilon, place=place):  # type: ignore[no-untyped-def]
                    fit = tuner.fit(peer, x, y, epsilon, np.random.default_rng([13, split, place]))
                    return None if fit is None else family.mean(fit.predict(z))

                yield row(peer.name, peer.knows, epsilon, predict)


def _auc(parts: Parts, truth: Vector, predicted: Vector) -> float:
    return float(roc_auc_score(truth, predicted)) if parts.entry.family == "binomial" else np.nan


def _judged(parts: Parts, truth: Vector, best: float, predict: Predict) -> Row:
    """Deviance over the non-private one's, mean prediction over the mean response, area under the curve, seconds.

    A fit that fails is a row with its error and an infinite ratio; so is one that gives no answer.
    """
    started, nothing = time.perf_counter(), {"ratio": np.inf, "mean_ratio": np.nan, "auc": np.nan}
    try:
        predicted = predict()
    except Exception as error:  # a benchmark of hours goes on; the error is a row, printed and counted as a failure
        return {**nothing, "seconds": time.perf_counter() - started, "error": f"{type(error).__name__}: {error}"}
    spent = time.perf_counter() - started
    if predicted is None:
        return {**nothing, "seconds": spent, "error": "no answer"}
    if not np.isfinite(predicted).all():
        return {**nothing, "seconds": spent, "error": "predictions that are not finite"}
    loss = float(np.mean(parts.family.distribution.unit_deviance(truth, predicted)))
    far = abs(np.mean(truth)) > np.std(truth) / 10  # the mean of a response around 0 is no scale
    return {
        "ratio": loss / best, "mean_ratio": float(np.mean(predicted) / np.mean(truth)) if far else np.nan,
        "auc": _auc(parts, truth, predicted), "seconds": spent, "error": "",
    }  # fmt: skip


@contextmanager
def _advancing(total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal, once two seconds have passed."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    task = bar.add_task("splits", total=total)
    timer = threading.Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda: bar.advance(task)
    finally:
        timer.cancel()
        bar.stop()


def run_all(jobs: Sequence[Job], workers: int, finished: Callable[[pd.DataFrame], None]) -> pd.DataFrame:
    """Rows of all jobs; ``finished`` is called with those of a table when its last split is done."""
    rows: list[Row] = []
    with _advancing(len(jobs)) as advance:
        for place, found in enumerate(_found(jobs, workers)):
            rows += found
            advance()
            if place + 1 == len(jobs) or jobs[place + 1].table != jobs[place].table:
                frame = pd.DataFrame(rows)
                finished(frame[frame.table == jobs[place].table])
    return pd.DataFrame(rows)


def _found(jobs: Sequence[Job], workers: int) -> Iterator[list[Row]]:
    if workers == 1:
        yield from map(run, jobs)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(run, jobs)


def _listed(kind: Callable[[str], Any], among: Sequence[Any] | None = None) -> Callable[[str], tuple[Any, ...]]:
    def read(text: str) -> tuple[Any, ...]:
        values = tuple(kind(part) for part in text.split(","))
        wrong = [value for value in values if among is not None and value not in among]
        if wrong:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(map(str, among or ()))}")
        return values

    return read


def asked(arguments: Sequence[str] | None = None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=_listed(str), help="names of the set, separated by commas (default: all)")
    parser.add_argument("--set", choices=tuple(SETS), default="tuned", dest="among")
    parser.add_argument("--epsilons", type=_listed(float), default=EPSILONS)
    parser.add_argument("--public", type=_listed(str, WAYS), default=WAYS)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--most", type=int, help="at most so many rows of a table, the same ones in every split")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path, help="CSV file of all rows")
    parser.add_argument("--summary", type=Path, help="a file written by --out: which of its cells hold")
    return parser, parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the grid, or read its rows."""
    parser, options = asked(arguments)
    if options.summary is not None:
        for line in summary(pd.read_csv(options.summary, keep_default_na=False, na_values=[""])):
            CONSOLE.print(line, markup=False, highlight=False)
        return
    try:
        entries, absent = chosen(options.tables, options.among)
    except ValueError as error:
        parser.error(str(error))
    if absent:
        names = ", ".join(entry.name for entry in absent)
        CONSOLE.print(f"Left out, because {FOLDER} names no folder of tables: {names}", highlight=False)
    jobs = [
        Job(entry.name, split, options.epsilons, options.public, options.peers, options.most)
        for entry in entries
        for split in range(options.splits)
    ]
    if not jobs:
        return

    def finished(frame: pd.DataFrame) -> None:
        for line in lines(figures(frame)):
            CONSOLE.print(line, markup=False, highlight=False)
        if options.out is not None:  # table after table: what was run is kept
            first = frame.table.iloc[0] == jobs[0].table
            frame.to_csv(options.out, index=False, header=first, mode="w" if first else "a")

    CONSOLE.print(
        f"Held-out deviance over the non-private fit's, {options.splits} splits, delta {DELTA:g}", highlight=False
    )
    rows = run_all(jobs, options.jobs, finished)
    if options.out is not None:
        print(f"{len(rows):,} rows written to {options.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
