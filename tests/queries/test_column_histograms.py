"""Histograms of columns against counting by hand, with missing cells apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpregress.accounting import GDP, MemoryLedger
from dpregress.coordinates import WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms import SeededSampler
from dpregress.queries import ABSENT, ColumnHistograms
from dpregress.rows import ArraySource, PrivateRows
from dpregress.trust import Central, Session

EDGES = np.linspace(-1.0, 1.0, 9)


def space_of(columns: int, *, intercept: bool = True) -> WhitenedSpace:
    order = columns + intercept
    names = tuple(f"x{j}" for j in range(columns))
    return WhitenedSpace(names, np.eye(order), math.inf, np.full(columns, 4 * ABSENT), intercept=intercept)


@pytest.mark.parametrize("intercept", [True, False])
def test_counts(intercept: bool, seed: int) -> None:
    """With noise of a thousandth."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(500, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    x[0] = [np.inf, -1.0, 1.0]
    budget = GDP(1e4)
    session = Session(Central(), PrivateRows(ArraySource(x)), SeededSampler(rng), MemoryLedger(budget).reserve(budget))
    found = session(ColumnHistograms(space_of(3, intercept=intercept), [2, 0], EDGES), budget).by_column
    for counts, column in zip(found, (x[:, 2], x[:, 0]), strict=True):
        known = column[np.isfinite(column)]
        expected = [
            np.sum((known >= low) & (known < high))
            for low, high in zip([-np.inf, *EDGES[1:-1]], [*EDGES[1:-1], np.inf], strict=True)
        ]
        assert counts.round().tolist() == [*expected, len(column) - len(known)]


@pytest.mark.parametrize(
    ("columns", "edges"), [([], EDGES), ([0, 0], EDGES), ([0], np.array([0.0, 1.0])), ([0], np.array([0.0, 2.0, 1.0]))]
)
def test_what_are_no_histograms(columns: list[int], edges: np.ndarray) -> None:
    with pytest.raises(InvalidInput):
        ColumnHistograms(space_of(2), columns, edges)
