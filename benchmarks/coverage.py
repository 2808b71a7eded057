"""Do intervals cover? Coverage and length over designs, budgets, public rows, error laws and real tables.

    python -m benchmarks.coverage [--cells linear,logistic,..] [--n 2000,10000,100000] [--mu .5,1,3] [--repeats 400]
                                  [--tables bank,bike,..] [--jobs 2] [--out coverage.jsonl]
    python -m benchmarks.coverage --summary coverage.jsonl

A cell is a design, the number n of private rows, what is public (a schema; m unlabelled or labelled rows), and mu. Its
figures are the shares of repeats in which nominal 90% and 95% intervals hold the unweighted population coefficient
(mean and smallest over coefficients), the median length of 90% intervals over those of robust (HC0) maximum likelihood
on the same rows, the share of identified coefficients, how often a Wald test at 5% rejects the true value, and how
often those robust intervals hold it, without privacy. With --tables the population is a real table, from which rows are
drawn with replacement. Repeats are appended to --out in blocks, and a run that is started again goes on where it was
(seed: 16, cell and repeat).
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from benchmarks.grid import ESTIMATORS
from benchmarks.tables import ENTRIES
from dpregress import GDP, Numeric, PublicMoments, Schema
from dpregress.baselines import least_squares, scored_fit
from dpregress.coordinates import Matrix, Vector
from dpregress.models import family_of
from dpregress.rows import Encoder

CONSOLE = Console(width=170, soft_wrap=True)
BLOCK, POPULATION = 10, 1_000_000
_SEED = 16
FAMILIES = {
    "linear": "gaussian", "logistic": "binomial", "poisson": "poisson", "gamma": "gamma", "multinomial": "multinomial",
}  # fmt: skip
#: Designs: a model and what is unusual about it.
DESIGNS = (
    "linear", "linear t5", "linear heteroscedastic", "linear skewed", "linear quadratic", "linear shifted",
    "linear rare 0", "linear rare 1", "linear rare 3", "linear rare 30", "linear missing", "linear skewed-columns",
    "linear lognormal", "linear concave", "linear logarithm", "linear growing", "linear alike", "linear alike 20",
    "logistic", "logistic quadratic", "poisson", "poisson overdispersed", "poisson alike", "gamma", "gamma alike",
    "multinomial", "multinomial quadratic",
    "linear folded", "logistic folded", "poisson folded", "gamma folded", "multinomial folded",
)  # fmt: skip
ERRORS = {
    "t5": lambda rng, x: rng.standard_t(5, size=len(x)) / np.sqrt(5 / 3),
    "heteroscedastic": lambda rng, x: rng.normal(size=len(x)) * np.sqrt(0.25 + 0.75 * x[:, 0] ** 2),
    "skewed": lambda rng, x: rng.exponential(size=len(x)) - 1,
}
#: Columns that are exponentials of so many standard deviations.
_LOGNORMAL = {"skewed-columns": 0.5, "lognormal": 1.0, "concave": 1.0}
#: Designs with one column, log-normal up to ten times its median.
_SINGLE = ("logarithm", "growing")
#: Where far rows of a folded design are along the first column, and how many.
_FAR, _FAR_SHARE = 8.0, 0.02
#: The percentage of responses that are not the commonest value, of designs in which the others are alike.
_OTHERS = 5
#: The mean of others that are counts.
_EVENTS = 7.0


@dataclass(frozen=True)
class Cell:
    """A design, or a real table, with what is known and spent."""

    design: str
    n: int
    public: str
    mu: float


@dataclass(frozen=True, eq=False)
class Sample:
    """Private rows, public rows and a schema."""

    x: Matrix
    y: Vector
    public: Matrix
    labels: Vector
    schema: Schema


def columns(design: str) -> int:
    """Columns of a design."""
    if design.partition(" ")[2] in _SINGLE:
        return 1
    return 10 if design.startswith("linear") else 6


def drawn(design: str, n: int, rng: np.random.Generator, *, shift: float = 0.0) -> tuple[Matrix, Vector]:
    """Rows of a population: correlated normal columns, coefficients from -1 to 1 (a third for counts and amounts)."""
    model, _, kind = design.partition(" ")
    d = columns(design)
    x = np.sqrt(0.7) * rng.normal(size=(n, d)) + np.sqrt(0.3) * rng.normal(size=(n, 1)) + shift
    if kind in _LOGNORMAL:
        x = np.exp(x * _LOGNORMAL[kind])
    if kind in _SINGLE:
        return _single(kind, rng, n)
    far = np.zeros(n, dtype=bool)
    if kind == "folded":
        far = rng.random(n) < _FAR_SHARE
        x[far, 0] = rng.choice([-_FAR, _FAR], far.sum()) + rng.normal(size=far.sum())
    if kind.startswith("rare"):
        x[:, -1] = 0.0
        x[rng.permutation(n)[: round(int(kind.split()[1]) * n / 10_000)], -1] = 1.0
    slopes = np.linspace(-1, 1, d) / (1 if model in ("linear", "logistic", "multinomial") else 3)
    eta = x @ slopes
    if kind == "quadratic":
        eta = eta + 0.3 * (x[:, 0] ** 2 + x[:, 0] * x[:, 1])
    if kind == "folded":  # far out the first slope has half its size and the other sign
        eta = eta - np.where(far, 1.5, 0.0) * slopes[0] * x[:, 0]
    if kind == "concave":  # the first slope of -1 becomes twice a square root
        eta = eta + x[:, 0] - 2 * np.sqrt(x[:, 0])
    if kind.startswith("alike"):
        others = np.exp(0.3 * eta + 0.5 * rng.normal(size=n))
        if model == "poisson":
            others = rng.poisson(_EVENTS * others).astype(float)
        share = float(kind.removeprefix("alike") or _OTHERS) / 100
        return x, np.where(rng.random(n) < share, others, float(model == "gamma"))
    if model == "linear":
        return x, eta + (ERRORS[kind](rng, x) if kind in ERRORS else rng.normal(size=n))
    if model == "logistic":
        return x, (rng.uniform(size=n) < expit(eta - 0.5)).astype(float)
    if model == "multinomial":
        predictors = np.column_stack([eta, -eta, 0.5 * x[:, 0]])
        return x, (predictors + rng.gumbel(size=predictors.shape)).argmax(axis=1).astype(float)
    mean = np.exp(1 + eta)
    if model == "gamma":
        return x, rng.gamma(2.0, mean / 2)
    return x, rng.poisson(mean * (rng.gamma(2.0, 0.5, size=n) if kind == "overdispersed" else 1.0)).astype(float)


def _single(kind: str, rng: np.random.Generator, n: int) -> tuple[Matrix, Vector]:
    """One skewed column: a mean that follows its logarithm, or errors that grow with it."""
    x, noise = np.minimum(np.exp(0.7 * rng.normal(size=n)), 10.0), rng.normal(size=n)
    return x[:, None], 8.5 + 2.5 * np.log(x) + noise if kind == "logarithm" else x + 0.8 * x * noise


def likelihood(family: str, x: Matrix, y: Vector) -> Vector:
    """Maximum likelihood, the intercept first; of classes the coefficients that sum to 0, class by class."""
    if family == "multinomial":
        fit = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(x, y)
        coef = np.column_stack([fit.intercept_, fit.coef_])
        return np.asarray((coef - coef.mean(axis=0)).ravel())
    fit = least_squares(x, y) if family == "gaussian" else scored_fit(x, y, family_of(family))
    return np.append(fit.intercept, fit.coef)


def robust_errors(family: str, x: Matrix, y: Vector, coef: Vector) -> Vector:
    """HC0 standard errors."""
    design = np.column_stack([np.ones(len(x)), x])
    if family == "multinomial":
        inverse, score = _of_classes(design, y, coef)
    else:
        model, eta = family_of(family), design @ coef
        score = design * ((y - model.mean(eta)) * model.factor(eta))[:, None]
        inverse = np.linalg.pinv(design.T @ (design * model.information(eta)[:, None]))
    return np.asarray(np.sqrt(np.diag(inverse @ score.T @ score @ inverse)))


def _of_classes(design: Matrix, y: Vector, coef: Vector) -> tuple[Matrix, Matrix]:
    """The inverse information, of coefficients that sum to 0, and each row's score, class by class."""
    order = design.shape[1]
    mean = softmax(design @ coef.reshape(-1, order).T, axis=1)
    classes = range(mean.shape[1])
    residual = (y[:, None] == np.array(classes)) - mean
    blocks = [[(design * (mean[:, k] * ((k == j) - mean[:, j]))[:, None]).T @ design for j in classes] for k in classes]
    score = (residual[:, :, None] * design[:, None, :]).reshape(len(y), -1)
    return np.linalg.pinv(np.block(blocks), rcond=1e-10), score


@lru_cache(maxsize=4)
def truth(design: str, n: int) -> Vector:
    """The coefficients of the population; where no formula has them, the mean over draws of a million rows.

    There are a hundred times as many rows as in a sample, so that a truth is known to a tenth of its sampling error.
    """
    model, _, kind = design.partition(" ")
    if kind.partition(" ")[0] in ("quadratic", "folded", "concave", "logarithm", "alike") or model == "multinomial":
        rng, draws = np.random.default_rng(0), -(-100 * n // POPULATION)
        each = [likelihood(FAMILIES[model], *drawn(design, POPULATION, rng)) for _ in range(draws)]
        return np.asarray(np.mean(each, axis=0))
    if kind == "growing":
        return np.array([0.0, 1.0])
    slopes = np.linspace(-1, 1, columns(design)) / (1 if model in ("linear", "logistic") else 3)
    return np.append({"linear": 0.0, "logistic": -0.5}.get(model, 1.0), slopes)


def sampled(cell: Cell, rng: np.random.Generator) -> Sample:
    """One data set of a cell."""
    m = 1 if cell.public == "schema" else int(cell.public.split()[0])
    x, y = drawn(cell.design, cell.n, rng)
    public, labels = drawn(cell.design, m, rng, shift=0.5 if cell.design.endswith("shifted") else 0.0)
    if cell.design.endswith("missing"):  # responses are missing more often where the first column is large
        y = np.where(rng.uniform(size=cell.n) < 0.3 * expit(2 * x[:, 0]), np.nan, y)
    kind = cell.design.partition(" ")[2]
    low, high = (-20.0, 20.0) if kind == "folded" else (-6.0, 6.0)
    if kind in _LOGNORMAL:
        low, high = 0.0, 20.0 if kind == "skewed-columns" else 100.0
    if kind in _SINGLE:
        low, high = 0.0, 30.0
    known = {f"x{place}": Numeric(low, high) for place in range(x.shape[1])}
    if cell.design.startswith("linear rare"):
        known[f"x{x.shape[1] - 1}"] = Numeric(0, 1)
    bounds = {"linear": (-100, 100) if high == 100.0 else (-30, 30), "poisson": (0, 1000), "gamma": (0, 1000)}.get(
        cell.design.split()[0]
    )
    return Sample(x, y, public, labels, Schema(known | ({} if bounds is None else {"y": Numeric(*bounds)})))


def simulated(cell: Cell, repeat: int) -> dict[str, Any]:
    """One repeat of a cell."""
    rng = np.random.default_rng([_SEED, zlib.crc32(repr(cell).encode()), repeat])
    family, data = FAMILIES[cell.design.split()[0]], sampled(cell, rng)
    public = {
        "schema": lambda: None,
        "unlabelled": lambda: PublicMoments.from_rows(data.public),
        "labelled": lambda: PublicMoments.from_rows(data.public, data.labels),
    }[cell.public.split()[-1]]()
    name = "binomial" if family == "multinomial" else family
    classes = {"binomial": {"classes": (0, 1)}, "multinomial": {"classes": (0, 1, 2)}}.get(family, {})
    model = ESTIMATORS[name](GDP(cell.mu), public=public, schema=data.schema, random_state=rng, **classes)
    model.fit(data.x, data.y)
    seen = np.isfinite(data.y)
    x, y = data.x[seen], data.y[seen]
    plain = likelihood(family, x, y)
    return _judged(model.estimates_, truth(cell.design, cell.n), plain, robust_errors(family, x, y, plain))


@lru_cache(maxsize=1)
def _population(name: str) -> tuple[pa.Table, Schema, list[str], Matrix, Vector, Vector]:
    entry = ENTRIES[name]
    frame = entry.load()
    frame = frame.loc[:, frame.nunique() > 1]
    schema, table = entry.schema(frame), pa.Table.from_pandas(frame, preserve_index=False)
    features = [column for column in table.column_names if column != entry.target]
    x = np.asarray(Encoder.of(features, entry.target, schema).x(table))
    y = table[entry.target].to_numpy().astype(float)
    return table, schema, features, x, y, likelihood(entry.family, x, y)


def resampled(cell: Cell, repeat: int) -> dict[str, Any]:
    """One repeat of a cell whose population is a real table."""
    rng, entry = np.random.default_rng([_SEED, zlib.crc32(repr(cell).encode()), repeat]), ENTRIES[cell.design]
    table, schema, features, x, y, coef = _population(cell.design)
    rows, m = rng.integers(len(y), size=cell.n), 1 if cell.public == "schema" else int(cell.public.split()[0])
    shown = table.take(rng.integers(len(y), size=m))
    public = {
        "schema": None, "unlabelled": shown.select(features), "labelled": shown,
    }[cell.public.split()[-1]]  # fmt: skip
    classes = {"classes": (0, 1)} if entry.family == "binomial" else {}
    model = ESTIMATORS[entry.family](GDP(cell.mu), public=public, schema=schema, random_state=rng, **classes)
    model.fit_table(table.take(rows), entry.target, features, progress=False)
    plain = likelihood(entry.family, x[rows], y[rows])
    return _judged(model.estimates_, coef, plain, robust_errors(entry.family, x[rows], y[rows], plain))


def _judged(estimates: Any, coef: Vector, plain: Vector, robust: Vector) -> dict[str, Any]:
    """Whether intervals hold the coefficients, their lengths over robust ones, and what is identified.

    Beside it whether the robust 90% intervals of maximum likelihood without privacy hold them.
    """
    from scipy.stats import t

    error = np.sqrt(np.diag(estimates.covariance))
    ratio = np.abs(estimates.estimate - coef) / error
    freedom = estimates.degrees_of_freedom
    half = t.ppf(0.95, freedom) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        length = half / (1.6449 * robust)
        without = np.abs(plain - coef) <= 1.6449 * robust
    return {
        "90": (ratio <= t.ppf(0.95, freedom)).tolist(),
        "95": (ratio <= t.ppf(0.975, freedom)).tolist(),
        "plain": [None if np.isnan(each) else bool(hit) for each, hit in zip(robust, without, strict=True)],
        "length": [None if not np.isfinite(value) else float(value) for value in length],
        "identified": estimates.identified.tolist(),
    }


def block(cell: Cell, first: int, repeats: int) -> str:
    """Lines of JSON, one for each repeat."""
    run = resampled if cell.design in ENTRIES else simulated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [{**asdict(cell), "repeat": repeat, **run(cell, repeat)} for repeat in range(first, first + repeats)]
    return "".join(json.dumps(record) + "\n" for record in found)


def cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    """The cells that were asked for."""
    asked = arguments.tables.split(",") if arguments.tables else arguments.cells.split(",")
    for design, n, mu in itertools.product(asked, arguments.n, arguments.mu):
        ways: Sequence[str] = arguments.public.split(",")
        for way in ways:
            if way == "schema":
                yield Cell(design, n, way, mu)
                continue
            times, kind = way.split()
            d = 20 if design in ENTRIES else columns(design)
            yield Cell(design, n, f"{max(int(times[:-1]) * d, 1)} {kind}", mu)


def summary(path: Path) -> None:
    """One line for each cell."""
    found: dict[Cell, list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        record = json.loads(line)
        found[Cell(*(record[name] for name in ("design", "n", "public", "mu")))].append(record)
    table = Table(
        "design",
        "n",
        "public",
        "mu",
        "repeats",
        "90%",
        "worst",
        "95%",
        "worst",
        "length",
        "identified",
        "5% test",
        "without privacy",
    )
    for cell, records in found.items():
        known = np.array([record["identified"] for record in records])
        figures = []
        for level in ("90", "95"):
            hit = np.where(known, np.array([record[level] for record in records], dtype=float), np.nan)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                each = np.nanmean(hit, axis=0)
                figures += [f"{np.nanmean(hit):.3f}", f"{np.nanmin(each):.2f}"]
        length = np.where(known, np.array([record["length"] for record in records], dtype=float), np.nan)
        median = np.nanmedian(length) if np.isfinite(length).any() else np.nan
        without = np.array([record.get("plain", [None]) for record in records], dtype=float)
        table.add_row(
            cell.design, f"{cell.n:,}", cell.public, f"{cell.mu:g}", str(len(records)), *figures,
            f"{median:.2f}", f"{known.mean():.2f}", f"{1 - float(figures[2]):.3f}",
            f"{np.nanmean(without):.3f}" if np.isfinite(without).any() else "",
        )  # fmt: skip
    CONSOLE.print(table)


def append_blocks(block: Callable[..., str], work: Sequence[tuple[Any, ...]], jobs: int, file: Path) -> None:
    """Append the lines of every block of repeats as soon as they are there, so that a run can go on where it was."""
    with ProcessPoolExecutor(jobs) as pool, file.open("a") as out:
        pending = [pool.submit(block, *job) for job in work]
        for future in track(pending, "blocks", disable=not sys.stderr.isatty()):
            out.write(future.result())
            out.flush()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default=",".join(DESIGNS))
    parser.add_argument("--tables", default="")
    parser.add_argument(
        "--n", type=lambda text: [int(part) for part in text.split(",")], default=[2_000, 10_000, 100_000]
    )
    parser.add_argument("--mu", type=lambda text: [float(part) for part in text.split(",")], default=[0.5, 1.0, 3.0])
    parser.add_argument(
        "--public", default="schema,2d unlabelled,10d unlabelled,20d unlabelled,10d labelled,20d labelled"
    )
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("coverage.jsonl"))
    parser.add_argument("--summary", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.summary is not None:
        summary(arguments.summary)
        return
    done: dict[Cell, int] = defaultdict(int)
    if arguments.out.exists():
        for line in arguments.out.read_text().splitlines():
            record = json.loads(line)
            done[Cell(*(record[name] for name in ("design", "n", "public", "mu")))] += 1
    work = [
        (cell, first, min(BLOCK, arguments.repeats - first))
        for cell in cells(arguments)
        for first in range(done[cell], arguments.repeats, BLOCK)
    ]
    append_blocks(block, work, arguments.jobs, arguments.out)
    summary(arguments.out)


if __name__ == "__main__":
    main()
