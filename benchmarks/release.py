"""One release, many regressions: accuracy beside the default fit, coverage, several sites, and speed.

    python -m benchmarks.release [accuracy] [tables] [random] [sites] [speed] [--repeats 16] [--out release.jsonl]

Rows are ``v = M u + c`` with independent components u (normal, t with 5 degrees of freedom, or log-normal, all of
variance 1), so that the regression of any column on the others is known. Accuracy: the last column and the first are
each regressed on all others. The default fit (``DPLinearRegression``) spends the whole budget on each regression, the
release spends it once for both. Figures are root mean squared errors of predictions, over those of least squares, and
the coverage of 90% intervals of identified coefficients. Tables: real ones (of the folder DPREGRESS_DATA), a fiftieth
of the rows public (200 at least); mean squared errors on the private rows over those of least squares. Random: tables
of :mod:`benchmarks.random_tables`, of seeds 6000 to 6059; the share of means, correlations and coefficients of y whose
95% intervals miss the value in the rows themselves, and mean squared errors of predictions. Sites: five of 4,000 rows,
each with its own release, beside one release of the same 20,000 rows. Cells are appended to --out, and a run that is
started again goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.random_tables import parts_of
from benchmarks.tables import ENTRIES
from dpregress import GDP, ApproxDP, DPLinearRegression, Numeric, Schema, combine, release_moments, shared_space
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, UnboundedData
from dpregress.inference import intervals
from dpregress.rows import Encoder

CONSOLE = Console(width=150, soft_wrap=True)
_SEED = 20
COMPONENTS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t5": lambda rng, shape: rng.standard_t(5, size=shape) / np.sqrt(5 / 3),
    "log-normal": lambda rng, shape: (rng.lognormal(size=shape) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e),
}
#: Numbers of rows, features and mu; the last three have n mu = 1e4 d.
SIZES = (
    (2_000, 10, 0.3), (2_000, 5, 1.0), (10_000, 10, 1.0), (20_000, 5, 1.0),
    (50_000, 5, 1.0), (100_000, 10, 1.0), (20_000, 10, 5.0),
)  # fmt: skip
PUBLIC = ("200 rows", "schema")
RANDOM = range(6000, 6060)
_REACH = 1.96
TABLES = ("wine", "power", "bike", "sgemm", "acsinc")


def mixing(columns: int) -> Matrix:
    """Features of spreads from 1 to .03, and a response with slopes of size 1."""
    rng = np.random.default_rng(_SEED)
    turn = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    features = turn * np.geomspace(1.0, 0.03, columns)
    slopes = rng.normal(size=columns)
    return np.block([[features, np.zeros((columns, 1))], [slopes @ features, 0.5]])


def table(rng: np.random.Generator, n: int, columns: int, design: str) -> pd.DataFrame:
    """Rows of a design; the response is called y."""
    rows = COMPONENTS[design](rng, (n, columns + 1)) @ mixing(columns).T + np.linspace(-1, 2, columns + 1)
    return pd.DataFrame(rows, columns=[*(f"x{i}" for i in range(columns)), "y"])


def truth(columns: int, target: str) -> tuple[Vector, Matrix]:
    """The slopes of a column on the others, and the covariance of the others."""
    mix = mixing(columns)
    covariance = mix @ mix.T
    place = columns if target == "y" else int(target[1:])
    others = [i for i in range(columns + 1) if i != place]
    within = covariance[np.ix_(others, others)]
    return np.linalg.solve(within, covariance[others, place]), within


def facts(rng: np.random.Generator, columns: int, design: str, public: str) -> dict[str, Any]:
    """What is public: 200 rows with all columns, or bounds about ten standard deviations wide."""
    if public == "200 rows":
        return {"public": table(rng, 200, columns, design)}
    mix = mixing(columns)
    spread, centre = 6 * np.sqrt(np.diag(mix @ mix.T)), np.linspace(-1, 2, columns + 1)
    names = [*(f"x{i}" for i in range(columns)), "y"]
    return {"schema": Schema({name: Numeric(c - s, c + s) for name, c, s in zip(names, centre, spread, strict=True)})}


def squared_error(slopes: Vector, right: Vector, within: Matrix) -> float:
    """Of predictions, but for the intercept."""
    return float((slopes - right) @ within @ (slopes - right))


def accuracy(n: int, columns: int, mu: float, design: str, public: str, repeats: int) -> dict[str, Any]:
    """One cell."""
    errors: dict[str, list[float]] = {name: [] for name in ("least squares", "default", "release", "unshrunk")}
    covered: dict[str, list[float]] = {"default": [], "release": []}
    for repeat in range(repeats):
        rng = np.random.default_rng([_SEED, n, columns, repeat])
        rows = table(rng, n, columns, design)
        known = facts(rng, columns, design, public)
        released = release_moments(rows, privacy=GDP(mu), random_state=rng, progress=False, **known)
        for target in ("y", "x0"):
            right, within = truth(columns, target)
            x = rows.drop(columns=target)
            plain = np.linalg.lstsq(np.column_stack([np.ones(n), x]), rows[target], rcond=None)[0][1:]
            default = DPLinearRegression(GDP(mu), random_state=rng, **known)
            default.fit_table(rows, target, progress=False)
            model = DPLinearRegression.from_moments(released, target)
            found = (plain, default.coef_, model.coef_, model.params[1:])
            for name, slopes in zip(errors, found, strict=True):
                errors[name].append(squared_error(slopes, right, within))
            for name, fit in (("default", default), ("release", model)):
                lower, upper = intervals(fit.estimates_, 0.9)[1:].T
                covered[name] += ((lower <= right) & (right <= upper))[fit.estimates_.identified[1:]].tolist()
    base = np.mean(errors.pop("least squares"))
    return {
        **{name: float(np.sqrt(np.mean(values) / base)) for name, values in errors.items()},
        **{f"coverage, {name}": float(np.mean(values)) if values else None for name, values in covered.items()},
    }


def real(name: str, mu: float, public: str, repeats: int) -> dict[str, Any]:
    """A real table: mean squared errors on the private rows, over those of least squares; medians over splits."""
    entry = ENTRIES[name]
    whole = entry.load()
    schema = entry.schema(whole)
    found: dict[str, list[float]] = {"default": [], "release": []}
    for repeat in range(repeats):
        rng = np.random.default_rng([_SEED, repeat])
        order, held = rng.permutation(len(whole)), max(200, len(whole) // 50)
        rows = whole.iloc[order[held:]].reset_index(drop=True)
        known = {"schema": schema} | ({"public": whole.iloc[order[:held]]} if public == "rows" else {})
        design = Encoder.of([each for each in rows.columns if each != entry.target], None, schema)
        x, y = design.x(pa.Table.from_pandas(rows)), rows[entry.target].to_numpy(float)
        full = np.column_stack([np.ones(len(x)), x])
        least = np.mean((y - full @ np.linalg.lstsq(full, y, rcond=None)[0]) ** 2)
        released = release_moments(rows, privacy=GDP(mu), random_state=rng, progress=False, **known)
        default = DPLinearRegression(GDP(mu), random_state=rng, **known)
        default.fit_table(rows, entry.target, progress=False)
        for kind, model in (("default", default), ("release", DPLinearRegression.from_moments(released, entry.target))):
            found[kind].append(float(np.mean((y - model.coefficients_.predict(x)) ** 2) / least))
    return {
        "n mu / d": (len(whole) - held) * mu / x.shape[1],
        **{kind: float(np.median(values)) for kind, values in found.items()},
    }


def random(seed: int, public: str, epsilon: float) -> dict[str, Any]:
    """A random table: shares of intervals that miss, errors in standard deviations, and errors of predictions."""
    parts = parts_of(seed)
    rows, schema = parts.private.to_pandas(), parts.schema
    known = {"schema": schema} | ({"public": parts.public.to_pandas()} if public == "rows" else {})
    rng = np.random.default_rng([_SEED, seed])
    try:
        released = release_moments(rows, privacy=ApproxDP(epsilon, 1e-6), random_state=rng, progress=False, **known)
    except UnboundedData:  # no bounds of y
        return {}
    design = Encoder.of([name for name in rows.columns if name != "y"], None, schema)
    x, y = design.x(parts.private), rows["y"].to_numpy(float)
    whole = Encoder.of(rows.columns, None, schema).x(parts.private)
    covariance, model = released.covariance(), DPLinearRegression.from_moments(released, "y")
    error = np.hypot(*covariance.mean_errors)
    lower, upper = np.moveaxis(covariance.correlations().conf_int(), -1, 0)
    right = np.corrcoef(whole.T)
    pairs = np.triu_indices(len(right), 1)
    full = np.column_stack([np.ones(len(x)), x])
    slopes = np.linalg.lstsq(full, y, rcond=None)[0]
    ends = intervals(model.estimates_, 0.95)[1:][model.estimates_.identified[1:]]
    exact = slopes[1:][model.estimates_.identified[1:]]
    least = float(np.mean((y - full @ slopes) ** 2))
    return {
        "means": float(np.mean(np.abs(covariance.mean - whole.mean(axis=0)) > _REACH * error)),
        "correlations": float(np.mean((right < lower)[pairs] | (upper < right)[pairs])),
        "coefficients": float(np.mean((exact < ends[:, 0]) | (ends[:, 1] < exact))) if len(exact) else None,
        "error": float(np.median(error / whole.std(axis=0))),
        "ratio": float(np.mean((y - model.coefficients_.predict(x)) ** 2)) / least,
        "mean alone": float(np.var(y)) / least,
    }


def sites(mu: float, public: str, repeats: int) -> dict[str, Any]:
    """Five sites of 4,000 rows beside one of 20,000, the same rows: root mean squared errors.

    With public rows the coordinates are fixed beforehand; by a schema the first site fixes them by its release.
    """
    columns, right = 5, truth(5, "y")
    squares: dict[str, list[float]] = {"one": [], "five": []}
    apart = []
    for repeat in range(repeats):
        rng = np.random.default_rng([_SEED, repeat])
        rows = table(rng, 20_000, columns, "normal")
        known = facts(rng, columns, "normal", public)
        one = release_moments(rows, privacy=GDP(mu), random_state=rng, progress=False, **known)
        if public == "schema":
            start = release_moments(rows[:4_000], privacy=GDP(mu), random_state=rng, progress=False, **known)
            first: list[Any] = [start]
        else:
            start, first = shared_space(n=4_000, privacy=GDP(mu), **known), []
        others = [
            release_moments(rows[i : i + 4_000], privacy=GDP(mu), like=start, random_state=rng, progress=False)
            for i in range(4_000 * len(first), 20_000, 4_000)
        ]
        five = combine([*first, *others])
        for name, found in (("one", one), ("five", five)):
            squares[name].append(squared_error(DPLinearRegression.from_moments(found, "y").coef_, *right))
        try:
            apart.append(five.heterogeneity("y").pvalue < 0.05)
        except InvalidInput:  # a site by itself identifies nothing
            continue
    means = {name: float(np.sqrt(np.mean(values))) for name, values in squares.items()}
    share = float(np.mean(apart)) if apart else None
    return {"ratio": means["five"] / means["one"], "told apart at 5%": share}


def speed() -> None:
    """Ten regressions and a lasso path from one release."""
    rng = np.random.default_rng(_SEED)
    released = release_moments(table(rng, 20_000, 20, "normal"), privacy=GDP(1.0), public=table(rng, 400, 20, "normal"))
    started = time.perf_counter()
    for place in range(10):
        str(DPLinearRegression.from_moments(released, f"x{place}").summary())
    regressions = time.perf_counter() - started
    model, started = DPLinearRegression.from_moments(released, "y"), time.perf_counter()
    model.path("lasso").refit()
    lasso, started = time.perf_counter() - started, time.perf_counter()
    model.select("best").refit()
    best = time.perf_counter() - started
    CONSOLE.print(
        f"21 columns: ten regressions with summaries {regressions:.2f} s; a lasso path of 100 penalties {lasso:.2f} s; "
        f"the best of all {2**20:,} subsets {best:.2f} s"
    )


def stored(out: Path | None, key: str, make: Any) -> dict[str, Any]:
    """The cell of a file, or a new one that is appended to it."""
    if out is not None and out.exists():
        for line in out.read_text().splitlines():
            record = json.loads(line)
            if record["cell"] == key:
                return record["found"]
    found = make()
    if out is not None:
        with out.open("a") as file:
            file.write(json.dumps({"cell": key, "found": found}) + "\n")
    return found


def show_accuracy(out: Path | None, repeats: int) -> None:
    """All cells as a table."""
    columns = (
        "n",
        "d",
        "mu",
        "n mu / d",
        "rows",
        "public",
        "default",
        "release",
        "unshrunk",
        "ratio",
        "cover",
        "cover",
    )
    shown = Table(*columns, title="Errors over those of least squares; ratio: release over default; coverage of 90%")
    for design in COMPONENTS:
        for public in PUBLIC:
            for n, d, mu in SIZES:
                key = f"{design} {public} {n} {d} {mu} {repeats}"
                cell = stored(out, key, lambda c=(n, d, mu, design, public, repeats): accuracy(*c))
                shares = (cell["coverage, default"], cell["coverage, release"])
                shown.add_row(
                    f"{n:,}", str(d), f"{mu:g}", f"{n * mu / d:,.0f}", design, public,
                    *(f"{cell[name]:.3f}" for name in ("default", "release", "unshrunk")),
                    f"{cell['release'] / cell['default']:.2f}",
                    *("none" if share is None else f"{share:.3f}" for share in shares),
                )  # fmt: skip
    CONSOLE.print(shown)


def show_tables(out: Path | None, repeats: int) -> None:
    """All cells as a table."""
    shown = Table(
        "table", "mu", "n mu / d", "public", "default", "release", title="Mean squared errors over least squares'"
    )
    for name in TABLES:
        for public in ("rows", "schema"):
            for mu in (0.25, 1.0):
                key = f"table {name} {public} {mu} {repeats}"
                cell = stored(out, key, lambda c=(name, mu, public, repeats): real(*c))
                errors = (f"{cell[kind]:.4f}" for kind in ("default", "release"))
                shown.add_row(name, f"{mu:g}", f"{cell['n mu / d']:,.0f}", public, *errors)
    CONSOLE.print(shown)


def show_random(out: Path | None) -> None:
    """Means over the tables."""
    kinds = ("means", "correlations", "coefficients")
    header = (
        "epsilon",
        "public",
        "tables",
        *kinds,
        "error of a mean / sd",
        "over least squares",
        "worse than the mean",
    )
    shown = Table(
        *header, title="Random tables: 95% intervals that miss; median errors, in standard deviations; ratios"
    )
    for public in ("rows", "schema"):
        for epsilon in (0.3, 1.0, 3.0):
            keys = {seed: f"random {seed} {public} {epsilon}" for seed in RANDOM}
            cells = [stored(out, key, lambda c=(seed, public, epsilon): random(*c)) for seed, key in keys.items()]
            found = [cell for cell in cells if cell]
            missed = (np.mean([cell[kind] for cell in found if cell[kind] is not None]) for kind in kinds)
            worse = sum(cell["ratio"] > 1.01 * cell["mean alone"] for cell in found)
            shown.add_row(
                f"{epsilon:g}", public, str(len(found)), *(f"{share:.3f}" for share in missed),
                *(f"{np.median([cell[name] for cell in found]):.3f}" for name in ("error", "ratio")), str(worse),
            )  # fmt: skip
    CONSOLE.print(shown)


def show_sites(out: Path | None, repeats: int) -> None:
    """All cells as a table."""
    shown = Table("mu", "public", "five sites over one", "told apart at 5%", title="Five sites of 4,000 rows")
    for public in PUBLIC:
        for mu in (0.5, 1.0, 3.0):
            cell = stored(out, f"sites {public} {mu} {repeats}", lambda c=(mu, public, repeats): sites(*c))
            share = cell["told apart at 5%"]
            shown.add_row(f"{mu:g}", public, f"{cell['ratio']:.3f}", "none" if share is None else f"{share:.3f}")
    CONSOLE.print(shown)


def main() -> None:
    """Print what was asked for, or everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="accuracy, tables, random, sites, speed")
    parser.add_argument("--repeats", type=int, default=16)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of seeds
    if not given.what or "speed" in given.what:
        speed()
    if not given.what or "sites" in given.what:
        show_sites(given.out, 100)
    if not given.what or "random" in given.what:
        show_random(given.out)
    if not given.what or "tables" in given.what:
        show_tables(given.out, given.repeats // 3)
    if not given.what or "accuracy" in given.what:
        show_accuracy(given.out, given.repeats)


if __name__ == "__main__":
    main()
