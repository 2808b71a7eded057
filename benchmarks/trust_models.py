"""What trust costs: the same regression under every trust model, at the same budget.

``python -m benchmarks.trust_models [--repeats N]``
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from dpregress import (
    ApproxDP,
    DPLinearRegression,
    LocalGLM,
    MarginalsRegression,
    Numeric,
    PublicMoments,
    Schema,
    VerticalRegression,
)
from dpregress.errors import SeededNoiseWarning, UnboundedData

COEF = np.array([0.5, -0.3, 0.2, 0.1])
BOUND = 3.0
SIZES = (3_000, 30_000, 300_000)
BUDGET = ApproxDP(1.0, 1e-6)
NAMES = tuple(f"x{place}" for place in range(len(COEF)))
SCHEMA = Schema({**dict.fromkeys(NAMES, Numeric(-1, 1)), "y": Numeric(-BOUND, BOUND)})


def curator(x: Any, y: Any, seed: int) -> Any:
    """One curator, with the schema alone."""
    return DPLinearRegression(BUDGET, schema=SCHEMA, random_state=seed).fit(x, y).coef_


def tables(x: Any, y: Any, seed: int) -> Any:
    """One curator who releases all pair tables. There 1 is the middle of a column's last bin, not its bound."""
    table = pa.table({**dict(zip(NAMES, x.T, strict=True)), "y": np.clip(y, -BOUND, BOUND)})
    model = MarginalsRegression(BUDGET, schema=SCHEMA, random_state=seed).fit_table(table, "y", list(NAMES))
    return model.coef_ * model.bins / (model.bins - 1)


def parties(x: Any, y: Any, seed: int) -> Any:
    """Two institutions with two columns each, of which the second holds the response too."""
    model = VerticalRegression(BUDGET, schema=SCHEMA, random_state=seed)
    return model.fit([x[:, :2], x[:, 2:]], np.clip(y, -BOUND, BOUND)).coef_


def users(x: Any, y: Any, seed: int) -> Any:
    """Every user's own device, with 1,000 public rows without responses."""
    public = PublicMoments.from_rows(np.random.default_rng(seed).uniform(-1, 1, size=(1_000, len(COEF))))
    model = LocalGLM(BUDGET, family="gaussian", public=public, response_bounds=(-BOUND, BOUND), random_state=seed)
    return model.fit(x, y).coef_


def exact(x: Any, y: Any, _: int) -> Any:
    """Least squares, without privacy."""
    return np.linalg.lstsq(x, y)[0]


MODELS: dict[str, Callable[[Any, Any, int], Any]] = {
    "one curator": curator,
    "one curator, pair tables for any question": tables,
    "two institutions": parties,
    "nobody: every user's device": users,
    "without privacy": exact,
}


def relative_error(model: Callable[[Any, Any, int], Any], n: int, seed: int) -> float:
    """``||b - b*|| / ||b*||`` of one fit to n rows."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, len(COEF)))
    y = x @ COEF + 0.5 * rng.normal(size=n)
    try:
        found = model(x, y, seed)
    except UnboundedData:
        return float("nan")
    return float(np.linalg.norm(found - COEF) / np.linalg.norm(COEF))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore", SeededNoiseWarning)
    table = Table("who is trusted", *(f"n = {n:,}" for n in SIZES), title=f"epsilon 1, median of {repeats}")
    for name, model in MODELS.items():
        medians = [np.median([relative_error(model, n, seed) for seed in range(repeats)]) for n in SIZES]
        table.add_row(name, *(f"{median:.3f}" for median in medians))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
