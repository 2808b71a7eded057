"""The main demonstration: doctor visits in the RAND Health Insurance Experiment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpregress.accounting import ApproxDP, PrivacyStatement
from dpregress.baselines import least_squares, mean_only
from dpregress.datasets import randhie
from dpregress.estimators import DPLinearRegression
from dpregress.public import PublicMoments
from dpregress.releases import Coefficients, Matrix, Moments, Vector
from dpregress.reports import Comparison
from dpregress.rows.engines import Progress

TARGET = "mdvis"
BUDGET = ApproxDP(epsilon=1.0, delta=1e-6)
PUBLIC_SHARE, HELD_OUT_SHARE = 0.02, 0.2
#: Seeds the split into public, held-out and private rows; the noise always comes from the system.
SPLIT_SEED = 2026

NOTES = (
    "RAND Health Insurance Experiment, 20,190 person-years: number of doctor visits on the terms of the "
    "insurance and the state of health.",
    "A random 2% of the rows, with their responses, stand in for a public table; another 20% are held out to "
    "measure prediction; the rest are private.",
    "The table has no person id, and a person can appear once for every year (up to five): the guarantee is "
    "per record, and the table below says what it is for a person with k records.",
)


@dataclass(frozen=True, eq=False)
class Demonstration:
    """A private fit with the answers it is compared with."""

    coefficients: Coefficients
    privacy: PrivacyStatement
    moments: Moments | None
    comparison: Comparison


@dataclass(frozen=True, eq=False)
class Split:
    """Public, private and held-out rows: (x, y) of each."""

    features: tuple[str, ...]
    public: tuple[Matrix, Vector]
    private: tuple[Matrix, Vector]
    held_out: tuple[Matrix, Vector]


def split_rows(table: pa.Table, target: str, *, public: float, held_out: float, seed: int) -> Split:
    """Divide a numeric table at random."""
    features = tuple(name for name in table.column_names if name != target)
    x = np.column_stack([table[name].to_numpy() for name in features])
    y = table[target].to_numpy()
    order = np.random.default_rng(seed).permutation(len(y))
    first, second = round(public * len(y)), round((public + held_out) * len(y))
    parts = np.split(order, [first, second])
    rows = [(x[part], y[part]) for part in parts]
    return Split(features, rows[0], rows[2], rows[1])


def run(progress: Progress | None = None) -> Demonstration:
    """Fit doctor visits at epsilon 1, delta 1e-6, and compare."""
    rows = split_rows(randhie(), TARGET, public=PUBLIC_SHARE, held_out=HELD_OUT_SHARE, seed=SPLIT_SEED)
    public = PublicMoments.from_rows(*rows.public, names=rows.features)
    model = DPLinearRegression(BUDGET, public=public)
    model.fit(*rows.private, progress=progress)

    non_private = least_squares(*rows.private)
    x, y = rows.held_out
    predictions = {
        "private": model.predict(x),
        "non-private": non_private.predict(x),
        "public rows only": least_squares(*rows.public).predict(x),
        "mean of the private rows (non-private)": mean_only(*rows.private).predict(x),
    }
    comparison = Comparison(
        name="non-private",
        coef=non_private.coef,
        intercept=non_private.intercept,
        errors=[(name, float(np.mean((y - p) ** 2)), float(np.mean(p))) for name, p in predictions.items()],
        truth=float(np.mean(y)),
    )
    return Demonstration(model.coefficients_, model.privacy_, model.moments_, comparison)
