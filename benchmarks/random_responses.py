"""Fits to real tables with responses that nobody chose.

    python -m benchmarks.random_responses [--seeds 80:240] [--public labelled,unlabelled,schema] [--epsilons .1,.3,1,3]
                                          [--jobs 2] [--out rows.csv]

A seed draws one of sixteen tables of the folder DPREGRESS_DATA, 3,000 to 60,000 of its rows, one of its columns as the
response, 2 to 15 others, and a model that such a response may have: text and columns of two values are classes (the
commonest value and the others), numbers are numbers, or classes beyond a random quantile, and whole numbers and numbers
of many values that are not negative may be counts and amounts as well. Splits, public rows, bounds and figures are
those of :mod:`benchmarks.grid` and :mod:`benchmarks.random_tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.grid import Parts, fitted_rows
from benchmarks.random_tables import Random, run_seeds
from benchmarks.tables import GridTable
from dpregress.datasets import folder_table

SOURCES = (
    "wine_quality_white", "power_plant", "bank_marketing", "bank_additional", "bike_sharing", "sgemm_gpu",
    "skin_segmentation", "adult", "fire", "acs_income", "acs_employment", "acs_mobility", "covertype_kaggle15k",
    "covertype_class34", "nist_taxi", "kddcup99_10pct",
)  # fmt: skip
#: Columns that number rows or days.
_KEYS = ["Id", "instant", "dteday"]
#: Text with more levels is no feature, counts go up to this number, and amounts have more values.
_LEVELS, _MOST, _VALUES = 60, 5_000, 20
#: Fewer rows of a class are too few to hold some out; another seed is drawn, so many further on.
_FEWEST, _ANOTHER = 40, 100_000


def drawn(seed: int) -> tuple[GridTable, pd.DataFrame]:
    """The regression of a seed and its rows, with the response ``response``."""
    rng = np.random.default_rng([77, seed])
    source = SOURCES[rng.integers(len(SOURCES))]
    frame = folder_table(source).to_pandas()
    n = int(min(len(frame), np.exp(rng.uniform(np.log(3_000), np.log(60_000)))))
    frame = frame.sample(n, random_state=int(rng.integers(1 << 30))).reset_index(drop=True)
    frame = frame.loc[:, frame.nunique() > 1].drop(columns=_KEYS, errors="ignore")
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    target = frame.columns[rng.integers(len(frame.columns))]
    others = [name for name in frame if name != target and (name not in text or frame[name].nunique() <= _LEVELS)]
    rng.shuffle(others)
    others = others[: int(rng.integers(2, 16))]
    family, y = _model(rng, frame[target], text=target in text)
    if y.nunique() < 2 or (family == "binomial" and y.sum() < _FEWEST):
        return drawn(seed + _ANOTHER)
    rows = frame[others].astype({name: float for name in others if name not in text}).assign(response=y)
    return GridTable(f"{seed}: {target} of {source}", family, "response", lambda: rows), rows


def _model(rng: Random, y: pd.Series, *, text: bool) -> tuple[str, pd.Series]:
    """A family that may have this response, and the response."""
    if text or y.nunique() == 2:
        return "binomial", (y != y.value_counts().index[0]).astype(int)
    y, families = y.astype(float), ["gaussian", "gaussian"]
    if y.min() >= 0 and (y == y.round()).all() and y.max() <= _MOST:
        families.append("poisson")
    if y.min() >= 0 and y.nunique() > _VALUES:
        families.append("gamma")
    families.append("binomial")
    family = families[rng.integers(len(families))]
    if family == "binomial":
        return family, (y > y.quantile(rng.uniform(0.1, 0.9))).astype(int)
    return family, y + (1.0 if family == "gamma" and y.min() <= 0 else 0.0)


def run(seed: int, epsilons: tuple[float, ...], ways: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of the grid for the regression of a seed."""
    entry, frame = drawn(seed)
    return list(fitted_rows(Parts.of(entry, frame, seed), seed, entry.name, epsilons, ways))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits to random responses."""
    run_seeds(run, "80:240", __doc__, arguments)


if __name__ == "__main__":
    main()
