"""Real tables for linear regression: features, response and declared bounds of the response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpregress.coordinates import Matrix, Vector
from dpregress.datasets.loaders import folder_table


@dataclass(frozen=True)
class RegressionTable:
    """A table of the data folder: how its features and response are made, and the schema's bounds of the response."""

    name: str
    file: str
    bounds: tuple[float, float]
    make: Callable[[pa.Table], tuple[Matrix, Vector]]

    def load(self) -> tuple[Matrix, Vector]:
        """Features of shape (n, d) and responses of shape (n,)."""
        return self.make(folder_table(self.file))


def _numeric(table: pa.Table, *left_out: str) -> Matrix:
    names = [name for name in table.column_names if name not in left_out]
    return np.column_stack([table[name].to_numpy().astype(np.float64) for name in names])


def _plain(target: str, *left_out: str) -> Callable[[pa.Table], tuple[Matrix, Vector]]:
    return lambda table: (_numeric(table, target, *left_out), table[target].to_numpy().astype(np.float64))


def _is(table: pa.Table, **levels: str) -> list[Vector]:
    return [
        np.asarray(table[name.replace("_", "-")].to_numpy(zero_copy_only=False) == level, dtype=np.float64)
        for name, level in levels.items()
    ]


def _sgemm(table: pa.Table) -> tuple[Matrix, Vector]:
    runs = [f"Run{run} (ms)" for run in (1, 2, 3, 4)]
    times = np.mean([table[run].to_numpy() for run in runs], axis=0)
    return _numeric(table, *runs), np.log(times)


def _adult(table: pa.Table) -> tuple[Matrix, Vector]:
    numbers = table.select(["age", "capital-gain", "capital-loss", "hours-per-week"])
    levels = _is(table, sex="Male", race="White", marital_status="Married-civ-spouse")
    levels += _is(table, marital_status="Never-married", native_country="United-States")
    levels += _is(table, income=">50K", workclass="Private")
    return np.column_stack([_numeric(numbers), *levels]), table["education-num"].to_numpy().astype(np.float64)


def _insurance(table: pa.Table) -> tuple[Matrix, Vector]:
    numbers = table.select(["age", "bmi", "children"])
    levels = _is(table, sex="male", smoker="yes", region="northwest")
    levels += _is(table, region="southeast") + _is(table, region="southwest")
    return np.column_stack([_numeric(numbers), *levels]), table["charges"].to_numpy().astype(np.float64)


TABLES = (
    RegressionTable("wine", "wine_quality_white", (0, 10), _plain("quality")),
    RegressionTable("power plant", "power_plant", (400, 520), _plain("PE")),
    RegressionTable("bike", "bike_sharing", (0, 1000), _plain("cnt", "instant", "dteday", "casual", "registered")),
    RegressionTable("SGEMM log time", "sgemm_gpu", (0, 10), _sgemm),
    RegressionTable("Adult education", "adult", (1, 16), _adult),
    RegressionTable("ACS income", "acs_income", (0, 19), _plain("PINCP")),
    RegressionTable("insurance", "insurance", (0, 65_000), _insurance),
)
