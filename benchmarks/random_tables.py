"""Fits to random tables, one of each: how often they are worse than what is trivial, and how much.

    python -m benchmarks.random_tables [--seeds 0:260] [--public labelled,unlabelled,schema] [--epsilons .1,.3,1,3]
                                       [--jobs 2] [--out rows.csv]

A seed makes a table (:func:`random_table`): 2,000 to 60,000 rows, 2 to 40 columns that are skewed, heavy-tailed,
indicators, counts, mostly zero or categorical, with one of four families, any strength of signal, tails, overdispersion
and models that are not exact. It also draws 60, 200 or 1,000 public rows, for a quarter of the tables from another
distribution, and bounds that are exact or up to ten times too wide. A fifth of the rows is held out, delta is 1e-6, and
a figure is the held-out mean deviance of a fit over that of the better of the public-only fit and the mean of the
private rows; without labels over that of the mean. Means are not private. Rows have the columns of
:mod:`benchmarks.grid`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import expit

from benchmarks.grid import EPSILONS, WAYS, Parts, fitted_rows
from benchmarks.tables import GridTable
from dpregress.coordinates import Matrix, Vector

Random = np.random.Generator
#: How the columns of a table are distributed, and how often.
_KINDS: dict[str, float] = {
    "normal": 0.25, "exponential": 0.15, "student": 0.08, "square": 0.05, "indicator": 0.15, "count": 0.07,
    "mostly zero": 0.08, "uniform": 0.07, "levels": 0.05, "integer": 0.05,
}  # fmt: skip
_FAMILIES: dict[str, float] = {"gaussian": 0.4, "binomial": 0.32, "poisson": 0.16, "gamma": 0.12}


class RandomTable(NamedTuple):
    """Rows with the response ``y``, their family, how far too wide bounds are, and how public rows are drawn."""

    frame: pd.DataFrame
    family: str
    slack: float
    shift: float
    public: int


def random_table(seed: int) -> RandomTable:
    """The table of a seed."""
    rng = np.random.default_rng([101, seed])
    n, d = _between(rng, 2_600, 60_000), _between(rng, 2, 40)
    columns, standard = _columns(rng, n, d)
    score = _score(rng, standard)
    family = str(rng.choice(list(_FAMILIES), p=list(_FAMILIES.values())))
    y = _RESPONSES[family](rng, score, standard[:, 0])
    slack, shift = float(rng.choice([1, 1, 2, 10])), float(rng.choice([0, 0, 0, 0.7]))
    public = min(int(rng.choice([60, 200, 200, 1000])), n // 10)
    return RandomTable(pd.DataFrame(columns).assign(y=y), family, slack, shift, public)


def _between(rng: Random, least: int, most: int) -> int:
    return int(np.exp(rng.uniform(np.log(least), np.log(most))))


def _columns(rng: Random, n: int, d: int) -> tuple[dict[str, Vector], Matrix]:
    """Columns of correlated factors in any unit, and the same standardised."""
    factors = int(rng.integers(1, d + 1))
    loading = rng.normal(size=(factors, d)) * np.exp(0.7 * rng.normal(size=(factors, 1)))
    own = np.exp(rng.uniform(-3, 1, d)) * np.sqrt((loading**2).sum(axis=0))
    z = rng.normal(size=(n, factors)) @ loading + rng.normal(size=(n, d)) * own
    z /= z.std(axis=0)
    heavy, columns, standard = rng.random() < 0.3, {}, []
    for place in range(d):
        kind = rng.choice(list(_KINDS), p=list(_KINDS.values()))
        values = _column(rng, str(kind), z[:, place], heavy)
        number = values.dtype.kind == "f"
        if number and values.std() == 0:
            values = z[:, place]
        as_number = values if number else z[:, place]
        standard.append((as_number - as_number.mean()) / as_number.std())
        if number:
            values = values * 10 ** rng.uniform(-2, 3)
            values = values + (0 if rng.random() < 0.6 else values.std() * 10 ** rng.uniform(-1, 2))
        columns[f"x{place}"] = values
    return columns, np.stack(standard, axis=1)


def _column(rng: Random, kind: str, z: Vector, heavy: bool) -> Any:
    n = len(z)
    if kind == "normal":
        return z
    if kind == "exponential":
        return np.exp(rng.uniform(0.3, 1.3) * z)
    if kind == "student":
        return z / np.sqrt(rng.chisquare(3 if heavy else 5, n) / 3)
    if kind == "square":
        return z**2
    if kind == "indicator":
        return (z > rng.choice([0, 0.5, 1.3, 2, 2.6, -1.3])).astype(float)
    if kind == "count":
        return rng.poisson(np.exp(0.7 * z)).astype(float)
    if kind == "mostly zero":
        return np.where(rng.random(n) < rng.uniform(0.02, 0.5), np.exp(1 + z), 0)
    if kind == "uniform":
        return (z.argsort().argsort() + 0.5) / n
    if kind == "levels":
        cuts = np.quantile(z, np.sort(rng.random(int(rng.integers(2, 8)))))
        return np.array([f"l{level}" for level in np.digitize(z, cuts)])
    return np.clip(np.round(3 + 1.5 * z), 0, 8)


def _score(rng: Random, x: Matrix) -> Vector:
    """What the response depends on: a linear predictor, for a third of the tables with a product or a bend in it."""
    d = x.shape[1]
    slopes = rng.normal(size=d) * (rng.random(d) < rng.choice([0.2, 0.5, 1.0]))
    if not slopes.any():
        slopes[0] = 1
    score = x @ slopes
    score = score / score.std()
    if rng.random() < 0.35:
        first, second = int(rng.integers(d)), int(rng.integers(d))
        score = score + rng.choice([0.3, 1]) * np.tanh(x[:, first]) * np.tanh(x[:, second])
        score /= score.std()
        if rng.random() < 0.3:
            score = np.tanh(score) / np.tanh(score).std()
    return score - score.mean()


def _numbers(rng: Random, score: Vector, first: Vector) -> Vector:
    """A share of explained variance from .005 to .99; normal, Student, log-normal or heteroscedastic errors."""
    share, n = rng.choice([0.005, 0.03, 0.1, 0.3, 0.6, 0.9, 0.99]), len(score)
    kind = rng.choice(["normal", "student", "log-normal", "heteroscedastic"])
    errors = {
        "normal": rng.normal(size=n),
        "student": rng.standard_t(3.5, n),
        "log-normal": np.exp(rng.normal(size=n)),
        "heteroscedastic": rng.normal(size=n) * np.exp(0.4 * first.clip(-3, 3)),
    }[str(kind)]
    y = np.sqrt(share) * score + np.sqrt(1 - share) * (errors - errors.mean()) / errors.std()
    return y * 10 ** rng.uniform(-2, 4) + rng.choice([0, 1, 10]) * y.std()


def _classes(rng: Random, score: Vector, first: Vector) -> Vector:  # noqa: ARG001  # as of all families
    strength, level = rng.choice([0.1, 0.4, 1, 2, 4]), rng.choice([0, 0, -1, -2.5, -4, 1.5])
    y = rng.random(len(score)) < expit(level + strength * score.clip(-6, 6))
    if min(y.sum(), len(y) - y.sum()) < 30:
        y = rng.random(len(score)) < expit(strength * score)
    return y.astype(int)


def _counts(rng: Random, score: Vector, first: Vector) -> Vector:  # noqa: ARG001
    strength = rng.choice([0.05, 0.2, 0.5, 0.9])
    mean = 10 ** rng.uniform(-1, 1.5) * np.exp(strength * score.clip(-4, 4))
    return rng.poisson(mean * (1 if rng.random() < 0.5 else rng.gamma(1, 1, len(score)))).astype(float)


def _amounts(rng: Random, score: Vector, first: Vector) -> Vector:  # noqa: ARG001
    strength, level, n = rng.choice([0.05, 0.2, 0.5, 0.9]), 10 ** rng.uniform(-1, 4), len(score)
    mean = level * np.exp(strength * score.clip(-4, 4))
    tail = rng.gamma(2, 0.5, n) if rng.random() < 0.5 else np.exp(rng.uniform(0.3, 1.2) * rng.normal(size=n))
    return np.maximum(mean * tail, 1e-6 * level)


_RESPONSES: dict[str, Callable[[Random, Vector, Vector], Vector]] = {
    "gaussian": _numbers, "binomial": _classes, "poisson": _counts, "gamma": _amounts,
}  # fmt: skip


def parts_of(seed: int) -> Parts:
    """Public, private and held-out rows of the table of a seed."""
    table = random_table(seed)
    frame = table.frame.loc[:, table.frame.nunique() > 1]
    rng = np.random.default_rng([7, seed])
    order = rng.permutation(len(frame))
    test, rest = np.split(order, [round(0.2 * len(frame))])
    weight = np.ones(len(rest))
    if table.shift:
        numbers = [name for name in frame.columns if name != "y" and frame[name].dtype.kind == "f"]
        along = frame[numbers[0]].to_numpy()[rest] if numbers else rng.normal(size=len(rest))
        weight = np.exp(4 * table.shift * ((along.argsort().argsort() + 0.5) / len(along) - 0.5))
    public = rng.choice(len(rest), table.public, replace=False, p=weight / weight.sum())
    private = np.setdiff1d(np.arange(len(rest)), public)
    entry = GridTable(f"random {seed}", table.family, "y", lambda: frame, bounds=_bounds(frame, table.slack))
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    taken = (rows.take(places) for places in (rest[public], rest[private], test))
    return Parts(entry, entry.schema(frame), *taken)


def _bounds(frame: pd.DataFrame, slack: float) -> dict[str, tuple[float, float]]:
    """Bounds of numbers that are so many times too wide; what is never negative stays so."""
    found = {}
    for name in frame.columns:
        if slack > 1 and frame[name].dtype.kind == "f" and set(frame[name].unique()) != {0.0, 1.0}:
            low, high = float(frame[name].min()), float(frame[name].max())
            more = (high - low) * (slack - 1) / 2
            found[name] = (low if low >= 0 else low - more, high + more)
    return found


def run(seed: int, epsilons: tuple[float, ...], ways: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of the grid for the table of a seed."""
    return list(fitted_rows(parts_of(seed), seed, f"random {seed}", epsilons, ways))


def over_trivial(rows: pd.DataFrame) -> pd.Series:
    """What fits are over what is trivial: with labels the better of the public-only fit and the mean, else the mean."""
    labelled = rows.knows == "labelled"
    return rows.ratio / np.where(labelled, rows[["public_only", "trivial"]].min(axis=1), rows.trivial)


def lines(rows: pd.DataFrame) -> Iterator[str]:
    """What fits are over what is trivial, by public knowledge and epsilon, and the worst of them by name."""
    rows = rows.assign(over=over_trivial(rows))
    for (knows, epsilon), cell in rows.groupby(["knows", "epsilon"]):
        over = cell.over
        yield (
            f"{knows:10} epsilon {epsilon:<4g} {len(cell)} tables: median {over.median():.3f}, at most 1.01: "
            f"{(over <= 1.01).mean():.0%}, 1.05: {(over <= 1.05).mean():.0%}, 1.5: {(over <= 1.5).mean():.1%}, "
            f"largest {over.max():.4g} ({cell.table[over.idxmax()]}, {cell.family[over.idxmax()]})"
        )
    yield from failed(rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What every run over many tables may be told."""
    parser.add_argument("--epsilons", type=lambda text: tuple(map(float, text.split(","))), default=EPSILONS)
    parser.add_argument("--public", type=lambda text: tuple(text.split(",")), default=WAYS)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="CSV file of all rows")


def run_named(
    one: Callable[..., list[dict[str, Any]]],
    names: Sequence[str],
    repeats: int,
    said: Callable[[pd.DataFrame], Iterable[str]],
    description: str | None,
    arguments: Sequence[str] | None,
) -> None:
    """Repeats of the tables that are asked for, of those with these names."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=lambda text: tuple(text.split(",")), default=tuple(names))
    parser.add_argument("--repeats", type=int, default=repeats)
    add_options(parser)
    options = parser.parse_args(arguments)
    if unknown := set(options.tables) - set(names):
        parser.error(f"no such table: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    run_all(one, [(name, repeat) for name in options.tables for repeat in range(options.repeats)], options, said)


def failed(rows: pd.DataFrame) -> Iterator[str]:
    """Fits that gave no answer, and why."""
    for row in rows[rows.error != ""].itertuples():
        yield f"{row.table} {row.knows} epsilon {row.epsilon:g}: {row.error}"


def _quietly(one: Callable[..., list[dict[str, Any]]], job: Any, **options: Any) -> list[dict[str, Any]]:
    """A job without the warnings of thousands of fits with noise from a seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return one(job, **options)


def run_all(
    one: Callable[..., list[dict[str, Any]]],
    jobs: Iterable[Any],
    options: argparse.Namespace,
    said: Callable[[pd.DataFrame], Iterable[str]],
) -> None:
    """Run the jobs, print what is said of all rows, and write them."""
    ran = partial(_quietly, one, epsilons=options.epsilons, ways=options.public)
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = pd.DataFrame([row for found in pool.map(ran, jobs) for row in found])
    for line in said(rows):
        print(line)
    if options.out is not None:
        rows.to_csv(options.out, index=False)
        print(f"{len(rows):,} rows written to {options.out}", file=sys.stderr)


def run_seeds(
    one: Callable[..., list[dict[str, Any]]], default: str, description: str | None, arguments: Sequence[str] | None
) -> None:
    """Run the seeds that are asked for."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default=default, help="first:last, without the last")
    add_options(parser)
    options = parser.parse_args(arguments)
    first, last = map(int, options.seeds.split(":"))
    run_all(one, range(first, last), options, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits to random tables."""
    run_seeds(run, "0:260", __doc__, arguments)


if __name__ == "__main__":
    main()
