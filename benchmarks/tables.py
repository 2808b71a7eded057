"""The tables of :mod:`benchmarks.grid`, in two sets: those that the library was tuned on, and those set aside.

Real tables are Parquet files of the folder DPREGRESS_DATA. Bounds and levels of a schema are those of the whole table,
unless an entry states published ones; simulated tables have fixed seeds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pandas as pd

from benchmarks import simulated_tables as simulated
from dpregress import Categorical, Numeric, Schema
from dpregress.datasets import folder_table, randhie
from dpregress.datasets.loaders import FOLDER
from dpregress.experiments import rand_health

Make = Callable[[pd.DataFrame], pd.DataFrame]


def _kept(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


@dataclass(frozen=True, eq=False)
class GridTable:
    """A regression: where its rows come from, its response and the family of its model.

    Parameters
    ----------
    name : str
    family : {"gaussian", "binomial", "poisson", "gamma"}
    target : str
    source : str or callable
        A file of the folder DPREGRESS_DATA, or a function that makes the rows.
    make : callable
        What is done to the rows.
    bounds : mapping of str to (float, float)
        Published bounds of columns.
    unseen : str, optional
        An indicator whose level no public row has.
    """

    name: str
    family: str
    target: str
    source: str | Callable[[], pd.DataFrame]
    make: Make = _kept
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=lambda: MappingProxyType({}))
    unseen: str | None = None

    @property
    def available(self) -> bool:
        """Whether its rows are on this machine."""
        return not isinstance(self.source, str) or bool(os.environ.get(FOLDER))

    def load(self) -> pd.DataFrame:
        """All rows."""
        return self.make(folder_table(self.source).to_pandas() if isinstance(self.source, str) else self.source())

    def schema(self, frame: pd.DataFrame) -> Schema:
        """Bounds of numbers and levels of text; a class of two levels is declared to the estimator instead."""
        names = [name for name in frame.columns if name != self.target or self.family != "binomial"]
        return Schema({name: _declared(frame[name], self.bounds.get(name)) for name in names})


def _declared(column: pd.Series, bounds: tuple[float, float] | None) -> Numeric | Categorical:
    if not pd.api.types.is_numeric_dtype(column):
        return Categorical(tuple(sorted(column.unique())))
    return Numeric(*(bounds or (float(column.min()), float(column.max()))))


def _without(*names: str) -> Make:
    return lambda frame: frame.drop(columns=list(names))


def _at_most(name: str, most: float, *left_out: str) -> Make:
    return lambda frame: frame[frame[name] <= most].reset_index(drop=True).drop(columns=list(left_out))


def _class(target: str, first: Callable[[pd.Series], pd.Series], *left_out: str) -> Make:
    """The response is 1 where ``first`` holds."""
    return lambda frame: frame.drop(columns=list(left_out)).assign(**{target: first(frame[target]).astype(int)})


def _some(make: Make, rows: int, seed: int) -> Make:
    return lambda frame: make(frame).sample(rows, random_state=seed).reset_index(drop=True)


def _bike(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame.drop(columns=["instant", "dteday", "casual", "registered"])
    return rows.assign(**{name: rows[name].astype(str) for name in ("season", "weathersit", "hr")})


def _sgemm(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean run time; sizes on a logarithmic scale."""
    runs = [name for name in frame.columns if name.startswith("Run")]
    sizes = ["MWG", "NWG", "KWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB", "KWI", "VWM", "VWN"]
    rows = frame.drop(columns=runs).astype(float)
    return rows.assign(**{name: np.log2(rows[name]) for name in sizes}, y=frame[runs].mean(axis=1))


def _log_time(frame: pd.DataFrame) -> pd.DataFrame:
    rows = _sgemm(frame)
    return rows.assign(y=np.log(rows["y"]))


def _quadratic(make: Make, target: str, columns: int) -> Make:
    """All products of the first numeric columns."""

    def made(frame: pd.DataFrame) -> pd.DataFrame:
        rows = make(frame)
        x = rows.drop(columns=[target]).select_dtypes("number").iloc[:, :columns]
        out = {}
        for place, first in enumerate(x.columns):
            out[first] = x[first]
            out |= {f"{first}*{second}": x[first] * x[second] for second in x.columns[place:]}
        return pd.DataFrame(out).astype(float).assign(**{target: rows[target]})

    return made


def _exponentials(make: Make, target: str, copies: int) -> Make:
    """Skewed columns: exponentials of random projections of the numeric columns."""

    def made(frame: pd.DataFrame) -> pd.DataFrame:
        rows = make(frame)
        x = rows.drop(columns=[target]).select_dtypes("number").astype(float)
        x = (x - x.mean()) / x.std().replace(0, 1)
        directions = np.random.default_rng(3).normal(size=(x.shape[1], copies * x.shape[1]))
        projected = x.to_numpy() @ directions / np.sqrt(x.shape[1])
        names = [f"f{place}" for place in range(projected.shape[1])]
        out = pd.DataFrame(np.exp(np.clip(projected, -6, 6)), columns=names)
        return out.assign(**{target: rows[target].to_numpy()})

    return made


def _adult_education(frame: pd.DataFrame) -> pd.DataFrame:
    """Years of education from numbers and indicators of the commonest levels."""
    numbers = frame[["age", "capital-gain", "capital-loss", "hours-per-week", "education-num"]].astype(float)
    levels = (
        ("sex", "Male"), ("race", "White"), ("marital-status", "Married-civ-spouse"),
        ("marital-status", "Never-married"), ("native-country", "United-States"), ("income", ">50K"),
        ("workclass", "Private"),
    )  # fmt: skip
    return numbers.assign(**{level: (frame[name] == level).astype(float) for name, level in levels})


def _visits(place: int) -> Callable[[], pd.DataFrame]:
    """Doctor visits of the RAND experiment, with the response of a model of the demonstration."""

    def made() -> pd.DataFrame:
        rows = randhie().to_pandas()
        model = rand_health.MODELS[place]
        return rows.assign(mdvis=model.response(rows["mdvis"].to_numpy(float)).astype(int if place == 1 else float))

    return made


def _trip_seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """Seconds from 1 on: a Gamma response is positive."""
    rows = frame.drop(columns=["trip_total", "fare", "tips"])
    return rows.assign(trip_seconds=rows["trip_seconds"] + 1.0)


def _attacks(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers of connections alone; 1 is an attack of any kind."""
    return frame.select_dtypes("number").assign(label=(frame["label"] != "normal.").astype(int))


_bank = _class("y", lambda y: y == "yes", "duration")
_income = _class("income", lambda y: y == ">50K", "education", "native-country")
_whole_income = _class("income", lambda y: y == ">50K")
#: Published ranges of Adult's numbers.
_ADULT = {
    "age": (17.0, 90.0), "fnlwgt": (0.0, 1_500_000.0), "education-num": (1.0, 16.0),
    "capital-gain": (0.0, 100_000.0), "capital-loss": (0.0, 5000.0), "hours-per-week": (1.0, 99.0),
}  # fmt: skip

#: Tables that the library was tuned on.
TUNED: tuple[GridTable, ...] = (
    GridTable("bank", "binomial", "y", "bank_marketing", _bank),
    GridTable("banksmall", "binomial", "y", "bank_marketing", _some(_bank, 4_200, 0)),
    GridTable("adult", "binomial", "income", "adult", _income),
    GridTable("adultall", "binomial", "income", "adult", _whole_income, _ADULT),
    GridTable("emp", "binomial", "ESR", "acs_employment"),
    GridTable("skin", "binomial", "class", "skin_segmentation", _class("class", lambda y: y == 1)),
    GridTable("incbin", "binomial", "PINCP", "acs_income", _class("PINCP", lambda y: y >= 10)),
    GridTable("wine", "gaussian", "quality", "wine_quality_white", bounds={"quality": (0.0, 10.0)}),
    GridTable("power", "gaussian", "PE", "power_plant", bounds={"PE": (400.0, 520.0)}),
    GridTable("insurance", "gaussian", "charges", "insurance", bounds={"charges": (0.0, 65_000.0)}),
    GridTable("adultedu", "gaussian", "education-num", "adult", _adult_education, _ADULT),
    GridTable("bike", "gaussian", "cnt", "bike_sharing", _bike),
    GridTable("acsinc", "gaussian", "PINCP", "acs_income"),
    GridTable("sgemm", "gaussian", "y", "sgemm_gpu", _log_time),
    GridTable("bikequad", "gaussian", "cnt", "bike_sharing", _quadratic(_bike, "cnt", 8)),
    GridTable("wineexp", "gaussian", "quality", "wine_quality_white", _exponentials(_kept, "quality", 4)),
    GridTable("bikeexp", "gaussian", "cnt", "bike_sharing", _exponentials(_bike, "cnt", 8)),
    GridTable("acsexp", "gaussian", "PINCP", "acs_income", _exponentials(_kept, "PINCP", 6)),
    GridTable("empexp", "binomial", "ESR", "acs_employment", _exponentials(_kept, "ESR", 5)),
    GridTable("bikepois", "poisson", "cnt", "bike_sharing", _bike),
    GridTable("bikegam", "gamma", "cnt", "bike_sharing", _bike),
    GridTable("sgemmgam", "gamma", "y", "sgemm_gpu", _some(_sgemm, 20_000, 1)),
    GridTable("visitslin", "gaussian", "mdvis", _visits(0)),
    GridTable("visitsbin", "binomial", "mdvis", _visits(1)),
    GridTable("visitspois", "poisson", "mdvis", _visits(2)),
    *(GridTable(name, family, "y", make) for name, (family, make) in simulated.TABLES.items()),
    GridTable("unseen", "gaussian", "y", simulated.rare_level, unseen="x5"),
)

#: Tables chosen before tuning and not looked at until it was done.
ASIDE: tuple[GridTable, ...] = (
    GridTable("bankadd", "binomial", "y", "bank_additional", _bank),
    GridTable("covbin", "binomial", "Cover_Type", "covertype_class34", _class("Cover_Type", lambda y: y == 4)),
    GridTable("mob", "binomial", "MIG", "acs_mobility"),
    GridTable("taxilin", "gaussian", "trip_total", "nist_taxi", _without("fare", "tips")),
    GridTable(
        "taxigam", "gamma", "trip_seconds", "nist_taxi",
        _some(_trip_seconds, 30_000, 2),
    ),
    GridTable("taxipois", "poisson", "tips", "nist_taxi", _some(_without("trip_total", "fare"), 40_000, 2)),
    GridTable("covlin", "gaussian", "Elevation", "covertype_kaggle15k", _without("Id")),
    GridTable(
        "kdd", "binomial", "label", "kddcup99_10pct",
        _some(_attacks, 60_000, 2),
    ),
)  # fmt: skip
#: Tables without the few rows that decide on their coefficients, one of 4,898 and 71 of 226,051, and classes whose
#: slopes are steep.
REST: tuple[GridTable, ...] = (
    GridTable(
        "winerest", "gaussian", "quality", "wine_quality_white", _at_most("residual sugar", 40.0),
        bounds={"quality": (0.0, 10.0)},
    ),
    GridTable("taxirest", "gaussian", "trip_total", "nist_taxi", _at_most("trip_miles", 5.0, "fare", "tips")),
    GridTable("powersteep", "binomial", "PE", "power_plant", _class("PE", lambda y: y > 460.0)),
)  # fmt: skip
SETS = {"tuned": TUNED, "aside": ASIDE}
ENTRIES = {entry.name: entry for entry in (*TUNED, *ASIDE, *REST)}


def chosen(names: Sequence[str] | None, among: str) -> tuple[list[GridTable], list[GridTable]]:
    """Entries of a set by name, all without names: those on this machine, and those that are not.

    Raises
    ------
    ValueError
        For a name that the set does not have.
    """
    entries = {entry.name: entry for entry in SETS[among]}
    unknown = [name for name in names or () if name not in entries]
    if unknown:
        raise ValueError(f"no table {unknown[0]!r} in the set {among!r}: choose among {', '.join(entries)}")
    asked = [entries[name] for name in names or entries]
    return [entry for entry in asked if entry.available], [entry for entry in asked if not entry.available]
