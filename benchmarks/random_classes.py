"""Fits of several classes to random tables.

    python -m benchmarks.random_classes [--seeds 0:60] [--public labelled,unlabelled,schema] [--jobs 2] [--out rows.csv]

The columns, public rows and bounds are those of :mod:`benchmarks.random_tables`. A response that is a number is cut
into three to five classes of unequal size; else classes are drawn from a softmax of random directions, which are weak,
middling or strong. Epsilon is .1, .3, 1 and 3, delta 1e-6. A figure is the held-out mean deviance of a fit over that of
the shares of the private rows, with labels over the better of that and the public-only fit (of the likeliest penalty);
neither is private. Deviances over that of maximum likelihood are in the rows of --out.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from rich.progress import track
from scipy.special import softmax

from benchmarks.grid import DELTA, Parts
from benchmarks.random_tables import over_trivial, parts_of
from benchmarks.random_trust import distribution
from dpregress import ApproxDP, DPLogisticRegression, Schema
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.errors import DPRegressError
from dpregress.models import contrasts, probabilities
from dpregress.public import PublicMoments
from dpregress.public.whitening import from_public
from dpregress.solvers.glm.softmax_fit import fit_public_classes, softmax_scoring

EPSILONS = (0.1, 0.3, 1.0, 3.0)
#: Standard deviations of drawn predictors: weak, middling and strong signals.
_STRENGTHS = (0.3, 1.0, 2.5)


@dataclass(frozen=True, eq=False)
class Split:
    """Design columns and classes of public, private and held-out rows, and the tables themselves."""

    parts: Parts
    public: tuple[Matrix, Vector]
    private: tuple[Matrix, Vector]
    held_out: tuple[Matrix, Vector]
    classes: int

    @classmethod
    def of(cls, seed: int) -> Split:
        """The table of a seed with classes in place of its response."""
        parts, rng = parts_of(seed), np.random.default_rng([23, seed])
        tables = (parts.public, parts.private, parts.held_out)
        rows = [parts.rows(table) for table in tables]
        classes = int(rng.integers(3, 6))
        shares = rng.dirichlet(np.full(classes, 2.0))
        if parts.entry.family == "gaussian":
            ends = np.quantile(rows[1][1], np.cumsum(shares)[:-1])
            found = [np.searchsorted(ends, y) for _, y in rows]
        else:
            found = _drawn([x for x, _ in rows], shares, rng)
        found = [np.asarray(each, dtype=float) for each in found]
        replaced = [_with_classes(table, parts.entry.target, y) for table, y in zip(tables, found, strict=True)]
        columns = {name: column for name, column in parts.schema.columns.items() if name != parts.entry.target}
        known = Parts(parts.entry, Schema(columns), *replaced)
        return cls(known, *((x, y) for (x, _), y in zip(rows, found, strict=True)), classes)


def _drawn(x: list[Matrix], shares: Vector, rng: np.random.Generator) -> list[Vector]:
    """Classes by a softmax of random directions of standardised columns."""
    middle, scale = np.nanmean(x[1], axis=0), np.nanstd(x[1], axis=0) + 1e-12
    directions = rng.normal(size=(x[1].shape[1], len(shares))) * rng.choice(_STRENGTHS) / np.sqrt(x[1].shape[1])
    found = []
    for each in x:
        chances = softmax(np.clip((each - middle) / scale, -3, 3) @ directions + np.log(shares), axis=1)
        found.append((rng.random(len(each))[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(max=len(shares) - 1))
    return found


def _with_classes(table: pa.Table, target: str, y: Vector) -> pa.Table:
    place = table.column_names.index(target)
    return table.set_column(place, target, pa.array([f"k{int(each)}" for each in y]))


def log_loss(chances: Matrix, y: Vector) -> float:
    """The mean deviance of classes."""
    return float(np.mean(-2 * np.log(np.maximum(chances[np.arange(len(y)), y.astype(int)], 1e-12))))


def _space(x: Matrix, names: Sequence[str]) -> WhitenedSpace:
    moments = PublicMoments.from_rows(x, names=tuple(names))
    return from_public(moments, intercept=True, null_scale=np.ones(x.shape[1]))


def plain(split: Split) -> float:
    """The deviance of maximum likelihood without privacy, with a penalty of one row."""
    x, y = split.private
    names = [f"x{j}" for j in range(x.shape[1])]
    space = _space(x, names)
    start = np.zeros((space.order, split.classes - 1))
    coef = softmax_scoring(space.whiten(x), y, start, penalty=np.eye(start.size))
    held, truth = split.held_out
    return log_loss(probabilities(space.whiten(held) @ coef, contrasts(split.classes)), truth)


def public_only(split: Split) -> float:
    """The deviance of the fit to public rows alone."""
    x, y = split.public
    names = tuple(f"x{j}" for j in range(x.shape[1]))
    space = _space(x, names)
    fit = fit_public_classes(PublicMoments.from_rows(x, names=names, y=y), space, split.classes)
    held, truth = split.held_out
    return log_loss(probabilities(space.whiten(held) @ fit.coef, contrasts(split.classes)), truth)


def private_fit(split: Split, epsilon: float, way: str, seed: int) -> Any:
    """A private fit that knows so much of the public rows."""
    parts = split.parts
    public = {"labelled": parts.public, "unlabelled": parts.public.select(parts.features), "schema": None}[way]
    model = DPLogisticRegression(
        ApproxDP(epsilon, DELTA),
        classes=[f"k{place}" for place in range(split.classes)],
        schema=parts.schema,
        public=public,
        random_state=np.random.default_rng([13, seed]),
    )
    return model.fit_table(parts.private, parts.entry.target, parts.features)


def run(seed: int, ways: Sequence[str]) -> list[dict[str, Any]]:
    """All fits to the table of a seed, with what is trivial and what is not private."""
    rows: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        split = Split.of(seed)
        truth = split.held_out[1]
        shares = np.bincount(split.private[1].astype(int), minlength=split.classes) / len(split.private[1])
        trivial, best, public = log_loss(np.tile(shares, (len(truth), 1)), truth), plain(split), public_only(split)
        for way in ways:
            for epsilon in EPSILONS:
                found, error = np.nan, ""
                try:
                    model = private_fit(split, epsilon, way, seed)
                    table = split.parts.held_out.select(split.parts.features)
                    found = log_loss(np.asarray(model.predict_proba(table), dtype=float), truth)
                except DPRegressError as refused:
                    error = str(refused)
                rows.append(
                    {
                        "seed": seed, "knows": way, "epsilon": epsilon, "classes": split.classes,
                        "n": len(split.private[0]), "columns": split.private[0].shape[1],
                        "public": len(split.public[0]), "ratio": found / best, "public_only": public / best,
                        "trivial": trivial / best, "error": error,
                    }
                )  # fmt: skip
    return rows


def lines(rows: pd.DataFrame) -> Iterator[str]:
    """What fits are over what is trivial, by knowledge and epsilon, and the worst of them by seed."""
    rows = rows.assign(over=over_trivial(rows))
    for (knows, epsilon), cell in rows.groupby(["knows", "epsilon"]):
        yield f"{knows:10} epsilon {epsilon:<4g} {distribution(cell)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the seeds that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--public", type=lambda text: tuple(text.split(",")), default=("labelled", "unlabelled", "schema")
    )
    parser.add_argument("--seeds", default="0:60", help="first:last, without the last")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="CSV file of all rows")
    options = parser.parse_args(arguments)
    seeds = range(*map(int, options.seeds.split(":")))
    with ProcessPoolExecutor(options.jobs) as pool:
        done = pool.map(partial(run, ways=options.public), seeds)
        rows = pd.DataFrame([row for each in track(done, total=len(seeds), transient=True) for row in each])
    for line in lines(rows):
        print(line)
    if options.out:
        rows.to_csv(options.out, index=False)
        print(f"{len(rows)} rows written to {options.out}")


if __name__ == "__main__":
    main(sys.argv[1:])
