"""Do intervals from released marginals cover on wide tables?

    python -m benchmarks.coverage_wide [repeats] [table ..]

Needs the folder that DPREGRESS_DATA names, but for the simulated health table. A table is the population: every repeat
draws n rows from it with replacement and releases its marginals once (delta 1e-6). Figures are of nominal 90% and 95%
intervals of all identified coefficients, for the population's maximum likelihood coefficients: coverage, the lowest
coverage of a coefficient that was identified in half of the repeats or more, the slope of the estimates on the truth
(1: not attenuated), the median standard error over that of maximum likelihood, and the share of identified
coefficients; "none" counts releases without estimates.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from scipy.special import expit

from benchmarks.command import answer_help
from dpregress import ApproxDP, MarginalsRegression, Schema
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.datasets import folder_table
from dpregress.errors import SeededNoiseWarning
from dpregress.models import family_of
from dpregress.public.coding import domain_of
from dpregress.releases.marginals import original_design

CONSOLE = Console(width=160)
_BINS, _FAR = 16, 10.0
_ACS = ("AGEP", "WKHP", "JWMNP", "PINCP", "SCHL")


@dataclass(frozen=True)
class Cell:
    """A regression on a table, with its release."""

    table: str
    target: str
    family: str
    n: int
    epsilon: float
    recipe: str = "one-shot"


CELLS = (
    Cell("health", "sick", "binomial", 20_000, 1.0), Cell("health", "sick", "binomial", 20_000, 10.0),
    Cell("health", "sick", "binomial", 20_000, 1.0, "residuals"), Cell("health", "visits", "poisson", 20_000, 1.0),
    Cell("health", "glucose", "gaussian", 20_000, 1.0), Cell("health", "glucose", "gaussian", 20_000, 10.0),
    Cell("acs_mobility", "MIG", "binomial", 20_000, 1.0), Cell("acs_mobility", "MIG", "binomial", 20_000, 3.0),
    Cell("acs_mobility", "PINCP", "gaussian", 20_000, 1.0), Cell("acs_employment", "SEX", "binomial", 30_000, 1.0),
    Cell("bank_additional", "y", "binomial", 30_000, 1.0), Cell("bank_additional", "y", "binomial", 30_000, 5.0),
    Cell("bank_additional", "duration", "gaussian", 30_000, 1.0, "residuals"),
    Cell("adult_discretized", "hours-per-week", "gaussian", 30_000, 10.0),
    Cell("adult_discretized", "income>50K", "binomial", 30_000, 5.0),
)  # fmt: skip


def health(n: int = 200_000) -> dict[str, Vector]:
    """A simulated table of 23 correlated columns of a health survey."""
    rng = np.random.default_rng(5)
    age, normal = rng.uniform(20, 80, n), lambda scale=1.0: scale * rng.normal(size=n)
    frail = normal() + (age - 50) / 25
    bmi, smoker = 27 + normal(4) + 0.8 * frail, rng.random(n) < expit(-1 + 0.3 * frail - 0.02 * (age - 50))
    diabetes = rng.random(n) < expit(-2.2 + 0.09 * (bmi - 27) + 0.03 * (age - 50))
    cells = {
        "age": _binned(age, 20, 80), "sex": rng.integers(2, size=n), "bmi": _binned(bmi, 15, 45),
        "pressure": _binned(120 + normal(12) + 0.4 * (age - 50) + 0.8 * (bmi - 27), 80, 180),
        "cholesterol": _binned(200 + normal(30) + 0.5 * (age - 50), 100, 320),
        "glucose": _binned(95 + normal(12) + 1.2 * (bmi - 27) + 3 * frail, 60, 160),
        "income": _binned(np.exp(10.5 + normal(0.6) - 0.05 * frail) / 1000, 0, 150),
        "smoker": smoker * 1, "diabetes": diabetes * 1, "region": rng.integers(5, size=n),
        "plan": rng.choice(4, size=n, p=[0.5, 0.3, 0.15, 0.05]),
        **{f"condition{i}": (rng.random(n) < expit(-2.5 + 0.25 * i + 0.5 * frail)) * 1 for i in range(8)},
        "education": np.clip(np.round(2 + normal() - 0.3 * frail), 0, 5).astype(int),
        "exercise": np.clip(np.round(2 - 0.4 * frail + normal()), 0, 4).astype(int),
    }  # fmt: skip
    eta = -2 + 1.7 * diabetes + 0.78 * smoker + 0.03 * (age - 50) + 0.05 * (bmi - 27)
    eta += 0.3 * cells["condition3"] + 0.6 * cells["condition6"] - 0.3 * (cells["plan"] == 3)
    cells["sick"] = (rng.random(n) < expit(eta)) * 1
    cells["visits"] = np.minimum(rng.poisson(np.exp(0.4 * eta + 0.8)), 15)
    return cells


def _binned(values: Vector, lower: float, upper: float) -> Vector:
    return np.clip(np.floor((values - lower) / (upper - lower) * 24), 0, 23).astype(int)


def population(name: str) -> tuple[dict[str, Vector], list[str]]:
    """Codes of a table, and which of its columns are numbers."""
    if name == "health":
        cells = health()
        return cells, [key for key, codes in cells.items() if codes.max() > 4 or key == "exercise"]
    table = folder_table(name)
    if name != "bank_additional":
        adult = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
        cells = {key: table[key].to_numpy() for key in table.column_names}
        return cells, [key for key in cells if key in (*adult, *_ACS)]
    cells, numeric = {}, []
    for key in table.column_names:
        values = table[key].to_numpy(zero_copy_only=False)
        if values.dtype == object:
            cells[key] = np.unique(values, return_inverse=True)[1]
        elif key not in ("emp.var.rate", "cons.price.idx", "nr.employed", "pdays"):  # nearly functions of others
            lower, upper = values.min(), np.quantile(values, 0.99)
            cells[key] = np.clip(np.floor((values - lower) / (upper - lower) * _BINS), 0, _BINS - 1).astype(int)
            numeric.append(key)
    return cells, numeric


def likelihood(x: Matrix, y: Vector, family: str) -> tuple[Vector, Vector, Vector]:
    """Coefficients, standard errors of one row, and which coefficients are finite."""
    kind, scale = family_of(family), x.std(axis=0)
    scale[0] = 1.0
    z, coef = x / scale, np.zeros(x.shape[1])
    coef[0] = kind.link.predictor(float(y.mean()))
    for _ in range(60):
        slope = (z * kind.slope(z @ coef)[:, None]).T @ z / len(y) + 1e-10 * np.eye(len(coef))
        step = np.linalg.solve(slope, z.T @ (y - kind.mean(z @ coef)) / len(y))
        coef += step * min(1.0, 3 / np.abs(z[:2000] @ step).max())
    values, vectors = np.linalg.eigh(z.T @ z / len(y))
    known = ((vectors[:, values < 1e-9] ** 2).sum(axis=1) < 1e-6) & (np.abs(coef) < _FAR)
    spread = np.mean((y - z @ coef) ** 2) if family == "gaussian" else 1.0
    return coef / scale, np.sqrt(np.diag(np.linalg.pinv(slope)) * spread) / scale, known


def run(cell: Cell, repeats: int) -> list[str]:
    """The figures of a cell."""
    cells, numeric = population(cell.table)
    if cell.target != "visits":
        cells.pop("visits", None)
        numeric = [name for name in numeric if name in cells]
    names = list(cells)
    codes = np.column_stack([cells[name] for name in names])
    schema = Schema.from_levels({name: range(max(int(cells[name].max()) + 1, 2)) for name in names}, numeric=numeric)
    domain: Domain = domain_of(schema)
    features = [name for name in names if name != cell.target]
    x = np.column_stack([np.ones(len(codes)), original_design(domain, codes, features)])
    truth, error, known = likelihood(x, cells[cell.target].astype(float), cell.family)
    ratios, estimates, errors = (np.full((repeats, len(truth)), np.nan) for _ in range(3))
    none = 0
    for repeat in range(repeats):
        rng = np.random.default_rng([3, repeat])
        rows = codes[rng.integers(len(codes), size=cell.n)]
        model = MarginalsRegression(
            ApproxDP(cell.epsilon, 1e-6), family=cell.family, schema=schema, recipe=cell.recipe, random_state=rng
        )
        table = pa.table({name: rows[:, j] for j, name in enumerate(names)})
        found = model.fit_table(table, cell.target, progress=False).estimates_
        if found is None:
            none += 1
            continue
        shown = found.identified & known
        errors[repeat, shown] = np.sqrt(np.diag(found.covariance))[shown]
        estimates[repeat, shown] = found.estimate[shown]
        ratios[repeat] = np.abs(estimates[repeat] - truth) / errors[repeat]
    return _figures(ratios, estimates, errors, truth, error / np.sqrt(cell.n), known, none)


def _figures(
    ratios: Matrix, estimates: Matrix, errors: Matrix, truth: Vector, likely: Vector, known: Vector, none: int
) -> list[str]:
    shown = np.isfinite(ratios)
    if not shown.any():
        return [str(none), *["-"] * 6]
    often = shown.sum(axis=0) >= len(ratios) / 2
    worst = min((float((ratios[shown[:, j], j] < 1.645).mean()) for j in np.flatnonzero(often)), default=np.nan)
    weight, far = np.where(shown, errors, np.inf)[:, 1:] ** -2.0, np.broadcast_to(truth, ratios.shape)[:, 1:]
    slope = (weight * far * np.nan_to_num(estimates[:, 1:])).sum() / (weight * far**2).sum()
    inside = [float((ratios[shown] < reach).mean()) for reach in (1.645, 1.96)]
    length = float(np.nanmedian(errors / likely))
    share = shown.mean() / known.mean() * len(ratios) / max(len(ratios) - none, 1)
    return [str(none), *(f"{value:.2f}" for value in (*inside, worst, slope, length, share))]


def main() -> None:
    """Run what is asked for."""
    warnings.simplefilter("ignore", SeededNoiseWarning)
    repeats, wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:]
    table = Table("table", "response", "family", "n", "epsilon", "recipe", "none", "90%", "95%", "worst", "slope",
                  "length", "identified", title=f"{repeats} releases a cell")  # fmt: skip
    with np.errstate(all="ignore"):
        for cell in CELLS:
            if not wanted or cell.table in wanted:
                figures = run(cell, repeats)
                said = (cell.table, cell.target, cell.family, f"{cell.n:,}", f"{cell.epsilon:g}", cell.recipe)
                print(*said, *figures, sep=" | ", flush=True)
                table.add_row(*said, *figures)
    CONSOLE.print(table)


if __name__ == "__main__":
    answer_help(__doc__)
    main()
