"""What reports call the source of a fit: no folder of a machine, no credential."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpregress import SQLQuery
from dpregress.estimators.provenance import made_now
from dpregress.inputs.described import published_name


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("folder/visits.csv", "visits.csv"),
        (Path("folder") / "visits.parquet", "visits.parquet"),
        ("folder/parts/", "parts"),
        (["a/one.csv", "a/two.csv", "a/three.csv"], "one.csv and 2 other files"),
        ("https://ann:secret@host/visits.csv?token=abc", "visits.csv?token=***"),
        (SQLQuery("duckdb:///folder/clinic.db", "SELECT age FROM people"), "a query to clinic.db"),
        (SQLQuery("postgresql://ann:secret@host/clinic", "SELECT age FROM people"), "a query to clinic"),
        (np.zeros((2, 2)), "an array in memory"),
        (pd.DataFrame({"a": [1]}), "a DataFrame in memory"),
    ],
)
def test_origins(table: Any, said: str) -> None:
    assert published_name(table) == said
    assert "secret" not in said


def test_the_time_is_universal() -> None:
    assert made_now("x").fitted.endswith(" UTC")
