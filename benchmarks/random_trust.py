"""Fits to random tables where users, parties or released marginals stand in for a curator.

    python -m benchmarks.random_trust [--trust local,vertical,marginals] [--seeds 0:130] [--jobs 2] [--out rows.csv]
    python -m benchmarks.random_trust --tables sgemm,bank [--most 46000] [--seeds 0:5] ..

The tables are those of :mod:`benchmarks.random_tables`; Gamma tables, and counts among parties, are left out. Users
answer at epsilon 1, 2 and 5, two and three parties release at 1 and 3, marginals at .1, 1 and 3; delta is 1e-6. A
figure is the held-out mean deviance of a fit over that of the mean of the private rows, with labels over the better of
that and the public-only fit; neither is private. The deviances of a fit, of public rows alone and of the mean over that
of the fit without privacy are in the rows of --out.

With --tables the rows are those of named tables of :mod:`benchmarks.grid`, or of at most so many of their rows; seeds
are splits, and figures are deviances over that of the fit without privacy: the median and the worst split.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.progress import track

from benchmarks.grid import DELTA, LinearFit, Parts, deviance, least_squares, loaded, mean_only, scored_fit
from benchmarks.random_tables import over_trivial, parts_of
from benchmarks.tables import ENTRIES
from dpregress import ApproxDP, Categorical, LocalGLM, MarginalsRegression, Numeric, Schema, VerticalRegression
from dpregress.coordinates import Vector
from dpregress.errors import DPRegressError

EPSILONS = {"local": (1.0, 2.0, 5.0), "vertical": (1.0, 3.0), "marginals": (0.1, 1.0, 3.0)}
#: The share of tables that are at most so many times as bad.
_LIMITS = (1.01, 1.05, 1.5)
Fit = Callable[[Parts, float, np.random.Generator], Any]


def users(parts: Parts, epsilon: float, rng: np.random.Generator, way: str) -> Any:
    """A study of all users."""
    public = {"labelled": parts.public, "unlabelled": parts.public.select(parts.features), "schema": None}[way]
    model = LocalGLM(
        ApproxDP(epsilon, DELTA), family=parts.entry.family, schema=parts.schema, public=public, random_state=rng
    )
    return model.fit_table(parts.private, parts.entry.target, parts.features)


def institutions(parts: Parts, epsilon: float, rng: np.random.Generator, number: int) -> Any:
    """Parties with consecutive columns, of which the last holds the response too."""
    groups = [list(group) for group in np.array_split(np.array(parts.features), number)]
    groups[-1].append(parts.entry.target)
    schema = _with_response(parts, Numeric(0, 1))
    model = VerticalRegression(ApproxDP(epsilon, DELTA), family=parts.entry.family, schema=schema, random_state=rng)
    return model.fit_table({f"p{i}": parts.private.select(each) for i, each in enumerate(groups)}, parts.entry.target)


def tables(parts: Parts, epsilon: float, rng: np.random.Generator) -> Any:
    """All pair tables."""
    schema = _with_response(parts, Categorical(("0", "1")))
    model = MarginalsRegression(ApproxDP(epsilon, DELTA), family=parts.entry.family, schema=schema, random_state=rng)
    return model.fit_table(parts.private, parts.entry.target, parts.features, progress=False)


def _with_response(parts: Parts, of_classes: Any) -> Schema:
    if parts.entry.family != "binomial":
        return parts.schema
    return Schema({**parts.schema.columns, parts.entry.target: of_classes})


def fits(trust: str, parts: Parts) -> dict[str, Fit]:
    """What is fitted to a table."""
    if parts.entry.family == "gamma" or (trust == "vertical" and parts.entry.family == "poisson"):
        return {}
    if trust == "local":
        return {way: partial(users, way=way) for way in ("labelled", "unlabelled", "schema")}
    if trust == "vertical":
        return {f"{k} parties": partial(institutions, number=k) for k in (2, 3) if len(parts.features) >= k}
    return {"tables": tables}


def predicted(model: Any, parts: Parts) -> Vector:
    """Means of the held-out rows."""
    table = parts.held_out.select(parts.features)
    if parts.entry.family == "binomial" and hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(table), dtype=float)[:, 1]
    return np.asarray(model.predict(table), dtype=float)


def run(seed: int, trust: str, table: str | None = None, most: int | None = None) -> list[dict[str, Any]]:
    """All fits to the table of a seed, or to a split of a named one, with what is trivial and what is not private."""
    parts = parts_of(seed) if table is None else Parts.of(ENTRIES[table], loaded(table, most), seed)
    (x, y), (held, truth), family = parts.rows(parts.private), parts.rows(parts.held_out), parts.family
    plain = least_squares(x, y) if parts.entry.family == "gaussian" else scored_fit(x, y, family)
    mean = LinearFit(np.zeros(x.shape[1]), float(family.link.predictor(mean_only(x, y).intercept)))
    best, public, trivial = (deviance(family, fit, held, truth) for fit in (plain, parts.known().fit, mean))
    rows = []
    for knows, fit in fits(trust, parts).items():
        for epsilon in EPSILONS[trust]:
            found, error = np.nan, ""
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = fit(parts, epsilon, np.random.default_rng([13, seed]))
                found = float(np.mean(family.distribution.unit_deviance(truth, predicted(model, parts))))
            except DPRegressError as refused:
                error = str(refused)
            rows.append(
                {
                    "seed": seed, "table": table or "random", "trust": trust, "knows": knows,
                    "family": parts.entry.family, "epsilon": epsilon,
                    "n": len(x), "columns": x.shape[1], "public": parts.public.num_rows, "ratio": found / best,
                    "public_only": public / best, "trivial": trivial / best, "error": error,
                }
            )  # fmt: skip
    return rows


def lines(rows: pd.DataFrame) -> Iterator[str]:
    """What fits are over what is trivial, by kind, family and epsilon, and the worst of them by seed."""
    rows = rows.assign(over=over_trivial(rows))
    for (knows, family, epsilon), cell in rows.groupby(["knows", "family", "epsilon"]):
        if cell.over.notna().any():
            yield f"{knows:10} {family:8} epsilon {epsilon:<4g} {distribution(cell)}"


def split_lines(rows: pd.DataFrame) -> Iterator[str]:
    """Deviances over that of the fit without privacy, by table, kind and epsilon."""
    for (table, knows, epsilon), cell in rows.groupby(["table", "knows", "epsilon"], sort=False):
        refused = f", refused {cell.ratio.isna().sum()}" if cell.ratio.isna().any() else ""
        yield (
            f"{table:10} n {cell.n.iloc[0]:,} d {cell['columns'].iloc[0]} {knows:10} epsilon {epsilon:<4g} "
            f"{len(cell)} splits: median {cell.ratio.median():.3f}, worst {cell.ratio.max():.3f}, public only "
            f"{cell.public_only.median():.3f}, mean {cell.trivial.median():.3f}{refused}"
        )


def distribution(cell: pd.DataFrame) -> str:
    """How often figures, in the column "over", are small, and the largest of them with its seed."""
    over = cell.over.dropna()
    shares = ", ".join(f"{limit}: {(over <= limit).mean():.0%}" for limit in _LIMITS)
    refused = f", refused {cell.over.isna().sum()}" if cell.over.isna().any() else ""
    return (
        f"{len(cell)} tables{refused}: median {over.median():.3f}, at most {shares}, "
        f"largest {over.max():.4g} (seed {cell.seed[over.idxmax()]})"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the seeds that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trust", type=lambda text: tuple(text.split(",")), default=tuple(EPSILONS))
    parser.add_argument("--seeds", default="0:130", help="first:last, without the last")
    parser.add_argument("--tables", type=lambda text: tuple(text.split(",")), default=(None,), help="of the grid")
    parser.add_argument("--most", type=int, help="at most so many rows of a named table")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="CSV file of all rows")
    options = parser.parse_args(arguments)
    seeds = range(*map(int, options.seeds.split(":")))
    for option, names, known in (("trust", options.trust, EPSILONS), ("tables", options.tables, (None, *ENTRIES))):
        for name in names:
            if name not in known:
                parser.error(f"--{option} takes {', '.join(filter(None, known))}, not {name!r}")
    found = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for trust in options.trust:
            print(f"{trust}:")
            for table in options.tables:
                one = partial(run, trust=trust, table=table, most=options.most)
                each = track(pool.map(one, seeds), table or trust, len(seeds), transient=True)
                rows = pd.DataFrame([row for rows in each for row in rows])
                found.append(rows)
                for line in lines(rows) if table is None else split_lines(rows):
                    print(line, flush=True)
    if options.out is not None:
        whole = pd.concat(found)
        whole.to_csv(options.out, index=False)
        print(f"{len(whole):,} rows written to {options.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
