"""Tables as practice has them, each with one thing that has misled fits: public rows, bounds or tails.

    python -m benchmarks.field_tables [--tables days,visits,grams,limit,floor,heavy,cauchy,claims,events,
                                                terrain,codes,level]
                                      [--epsilons .1,.3,1,3] [--public labelled,unlabelled,schema] [--repeats 6]
                                      [--jobs 2] [--out rows.csv]

Each repeat makes a table anew; delta is 1e-6. A figure is the mean deviance on new rows over that of the non-private
fit to the private rows: the median and the worst repeat, beside the public-only fit with a cross-validated penalty and
the mean of the private rows for everybody, which is not private. Rows have the columns of :mod:`benchmarks.grid`.

- days: a linear response grows from day to day, and the 60 public rows are of the first three days of a thousand.
- visits: counts that do so, with public rows of the first of twenty years.
- grams: two classes; a third of the private rows has its weight in grams, and no public one.
- limit: a linear response at a detection limit of .05 for half of the rows, in bounds up to 1,000.
- floor: amounts, two thirds of which are the least one.
- heavy: a linear response with three public rows of 60 in which a heavy column is not zero.
- cauchy: a bounded response of four columns whose variance is not finite.
- claims: counts up to 12, seven of eight of which are 0.
- events: two classes, one row of 60 being of the second.
- terrain: a linear response and 40 rare indicators, declared as numbers, that follow ten other columns.
- codes: a linear response; four of a thousand values of a column are 9999, the code of one that is missing.
- level: amounts; the 60 public ones are in another currency, ten times as large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.grid import Parts, fitted_rows
from benchmarks.random_tables import failed, run_named
from benchmarks.tables import GridTable
from dpregress.coordinates import Vector

Random = np.random.Generator
Columns = dict[str, Any]
_NEW = 5_000


@dataclass(frozen=True)
class FieldTable:
    """A table, with the numbers of its rows and the bounds of its columns.

    Attributes
    ----------
    family : {"gaussian", "binomial", "poisson", "gamma"}
    private, public : int
        Rows.
    columns : callable
        Columns with the response y, for so many rows, public ones or others.
    bounds : mapping of str to (float, float)
    """

    family: str
    private: int
    public: int
    columns: Callable[[Random, int, bool], Columns]
    bounds: Mapping[str, tuple[float, float]]


def _days(rng: Random, n: int, public: bool) -> Columns:
    day, x = rng.uniform(0, 3 if public else 1_000, n), rng.lognormal(1, 0.5, n)
    return {"day": day, "x": x, "y": 10 + 0.02 * day + 0.5 * x + 2 * rng.normal(size=n)}


def _visits(rng: Random, n: int, public: bool) -> Columns:
    year, x = 2_000 + rng.uniform(0, 1 if public else 20, n), rng.normal(size=n)
    return {"year": year, "x": x, "y": rng.poisson(np.exp(-0.5 + 0.04 * (year - 2_000) + 0.3 * x))}


def _grams(rng: Random, n: int, public: bool) -> Columns:
    weight, age = rng.normal(70, 12, n), rng.uniform(18, 90, n)
    y = rng.random(n) < 1 / (1 + np.exp(-(0.04 * (age - 55))))
    return {
        "weight": np.where(rng.random(n) < (0 if public else 1 / 3), 1_000 * weight, weight),
        "age": age,
        "y": y.astype(int),
    }


def _levels(rng: Random, n: int, levels: int) -> tuple[Vector, Vector]:
    """A categorical column whose levels become rarer, and an effect of each row's level."""
    chances = 1 / np.arange(1, levels + 1) ** 1.3
    level = rng.choice(levels, n, p=chances / chances.sum())
    return np.array([f"s{place:02d}" for place in range(levels)])[level], np.cos(3.0 * np.arange(levels))[level]


def _limit(rng: Random, n: int, public: bool) -> Columns:  # noqa: ARG001  # as of all tables
    dose, (site, effect) = np.where(rng.random(n) < 0.5, 0, rng.lognormal(1, 1, n)), _levels(rng, n, 18)
    y = np.maximum(0.05, np.exp(-4 + 0.5 * np.log1p(dose) + effect + rng.normal(size=n)))
    return {"dose": dose, "ph": rng.normal(7.2, 0.3, n), "site": site, "y": y}


def _floor(rng: Random, n: int, public: bool) -> Columns:  # noqa: ARG001
    x, (plan, effect) = rng.exponential(3, n), _levels(rng, n, 9)
    y = np.exp(2 + 0.2 * np.minimum(x, 8) + 0.2 * effect) * rng.gamma(0.8, 1 / 0.8, n)
    return {"x": x, "plan": plan, "y": np.maximum(y, 20)}


def _heavy(rng: Random, n: int, public: bool) -> Columns:
    x = {f"x{place}": rng.normal(size=n) for place in range(30)}
    some = np.arange(n) < 3 if public else rng.random(n) < 0.05
    claim = np.where(some, rng.exponential(3, n), 0)
    y = 0.4 * x["x0"] + 0.3 * x["x1"] - 0.2 * x["x2"] - claim + rng.normal(size=n)
    return {**x, "claim": claim, "y": y}


def _cauchy(rng: Random, n: int, public: bool) -> Columns:  # noqa: ARG001
    x = {f"x{place}": np.clip(rng.standard_cauchy(n), -1e4, 1e4) for place in range(4)}
    return {**x, "y": np.arctan(x["x0"]) + 0.5 * np.arctan(x["x1"]) + rng.normal(size=n)}


def _claims(rng: Random, n: int, public: bool) -> Columns:  # noqa: ARG001
    age, distance, (region, effect) = rng.uniform(18, 80, n), rng.lognormal(2.3, 0.6, n), _levels(rng, n, 4)
    rate = np.exp(-1.2 - 0.01 * (age - 45) + 0.02 * (distance - 11) + 0.1 * effect) * rng.gamma(1.5, 1 / 1.5, n)
    y = np.where(rng.random(n) < 0.45, 0, rng.poisson(rate))
    return {"age": age, "distance": distance, "region": region, "y": np.minimum(y, 12).astype(float)}


def _events(rng: Random, n: int, public: bool) -> Columns:  # noqa: ARG001
    age, dose, (site, effect) = rng.uniform(18, 90, n), rng.lognormal(1, 0.7, n), _levels(rng, n, 5)
    female, mass, level = rng.integers(0, 2, n).astype(float), rng.normal(26, 5, n), rng.gamma(2, 2, n)
    score = 0.045 * (age - 54) + 0.06 * (dose - 3.5) + 0.5 * female + 0.08 * (mass - 26) + 0.1 * (level - 4)
    y = rng.random(n) < 1 / (1 + np.exp(5.2 - score - 0.2 * effect))
    columns = {"age": age, "dose": dose, "female": female, "mass": mass, "level": level, "site": site}
    return {**columns, "y": y.astype(int)}


def _terrain(rng: Random, n: int, public: bool) -> Columns:  # noqa: ARG001
    fixed, factors = np.random.default_rng(61), rng.normal(size=(n, 3))
    centres, slopes, effects = 1.6 * fixed.normal(size=(40, 3)), fixed.normal(size=(10, 3)), fixed.normal(size=40)
    apart = np.sum((factors[:, None, :] - centres) ** 2, axis=2)
    soil = np.argmax(rng.gumbel(size=(n, 40)) - apart - 1.3 * np.log(np.arange(1, 41)), axis=1)
    numbers = factors @ slopes.T + rng.normal(size=(n, 10))
    numbers[:, ::3] = np.exp(0.6 * numbers[:, ::3])
    y = factors @ [2.0, 1.2, 0.0] + 1.2 * effects[soil] + rng.normal(size=n)
    columns = {f"x{place}": numbers[:, place] for place in range(10)}
    return {**columns, **{f"soil{place}": (soil == place).astype(float) for place in range(40)}, "y": y}


def _codes(rng: Random, n: int, public: bool) -> Columns:  # noqa: ARG001
    age, pressure, level = rng.normal(50, 15, n), rng.normal(130, 18, n), rng.normal(200, 35, n)
    smokes = (rng.random(n) < 0.2).astype(float)
    y = 40 + 0.24 * age + 0.12 * pressure + 0.06 * level + 5 * smokes + 6 * rng.normal(size=n)
    level = np.where(rng.random(n) < 0.004, 9_999.0, level)
    return {"age": age.clip(18, 99), "pressure": pressure, "level": level, "smokes": smokes, "y": y}


def _level(rng: Random, n: int, public: bool) -> Columns:
    x = rng.normal(size=(n, 4))
    mean = np.exp(5 + x @ [0.5, -0.3, 0.2, 0.0]) * (10 if public else 1)
    return {**{f"x{place}": x[:, place] for place in range(4)}, "y": rng.gamma(1.2, mean / 1.2).clip(0.01)}


TABLES = {
    "days": FieldTable("gaussian", 20_000, 60, _days, {"day": (0, 1_000), "x": (0, 200), "y": (-50, 300)}),
    "visits": FieldTable("poisson", 10_000, 100, _visits, {"year": (1_990, 2_030), "x": (-6, 6), "y": (0, 60)}),
    "grams": FieldTable("binomial", 10_000, 100, _grams, {"weight": (0, 200_000), "age": (0, 110)}),
    "limit": FieldTable("gaussian", 14_000, 380, _limit, {"dose": (0, 500), "ph": (0, 14), "y": (0, 1_000)}),
    "floor": FieldTable("gamma", 20_000, 180, _floor, {"x": (0, 60), "y": (1, 15_000)}),
    "heavy": FieldTable(
        "gaussian",
        7_500,
        60,
        _heavy,
        {**{f"x{place}": (-6.0, 6.0) for place in range(30)}, "claim": (0, 140), "y": (-150, 150)},
    ),
    "cauchy": FieldTable(
        "gaussian", 30_000, 80, _cauchy, {**{f"x{place}": (-1e4, 1e4) for place in range(4)}, "y": (-20, 20)}
    ),
    "claims": FieldTable("poisson", 4_000, 100, _claims, {"age": (18, 80), "distance": (0, 100), "y": (0, 12)}),
    "events": FieldTable(
        "binomial",
        6_000,
        200,
        _events,
        {"age": (18, 90), "dose": (0, 40), "female": (0, 1), "mass": (0, 60), "level": (0, 40)},
    ),
    "terrain": FieldTable(
        "gaussian",
        12_000,
        300,
        _terrain,
        {
            **{f"x{place}": (0, 200) if place % 3 == 0 else (-15, 15) for place in range(10)},
            **{f"soil{place}": (0, 1) for place in range(40)},
            "y": (-20, 20),
        },
    ),
    "codes": FieldTable(
        "gaussian",
        20_000,
        200,
        _codes,
        {"age": (18, 110), "pressure": (0, 9_999), "level": (0, 9_999), "smokes": (0, 1), "y": (0, 300)},
    ),
    "level": FieldTable(
        "gamma", 20_000, 60, _level, {**{f"x{place}": (-6.0, 6.0) for place in range(4)}, "y": (0.01, 1e5)}
    ),
}


def parts_of(name: str, repeat: int) -> Parts:
    """Public, private and new rows of a table."""
    table, rng = TABLES[name], np.random.default_rng([23, list(TABLES).index(name), repeat])
    public, private, new = (
        pd.DataFrame(table.columns(rng, n, known))
        for n, known in ((table.public, True), (table.private, False), (_NEW, False))
    )
    entry = GridTable(name, table.family, "y", lambda: private, bounds=table.bounds)
    rows = (pa.Table.from_pandas(frame, preserve_index=False) for frame in (public, private, new))
    return Parts(entry, entry.schema(private), *rows)


def run(job: tuple[str, int], epsilons: tuple[float, ...], ways: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of the grid for a repeat of a table."""
    name, repeat = job
    return list(fitted_rows(parts_of(name, repeat), repeat, name, epsilons, ways))


def lines(rows: pd.DataFrame) -> Iterator[str]:
    """Medians and the worst repeats by table, public knowledge and epsilon."""
    for name, of_table in rows.groupby("table", sort=False):
        first = of_table.iloc[0]
        known = of_table[["public_only", "trivial"]].median()
        yield f"{name}: {first.family}, n = {first.n:,}, public only {known.public_only:.4g}, mean {known.trivial:.4g}"
        for way, of_way in of_table.groupby("knows", sort=False):
            cells = of_way.groupby("epsilon").ratio
            yield f"  {way:10} " + "  ".join(f"{e:g}: {c.median():.3f}, {c.max():.3f}" for e, c in cells)
    yield from failed(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the tables that are asked for."""
    run_named(run, tuple(TABLES), 6, lines, __doc__, arguments)


if __name__ == "__main__":
    main()
