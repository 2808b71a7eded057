"""No pair of neighbours moves a query further than its sensitivity, and tight queries are reached.

Rows go in raw, through the row map and the sum that mechanisms use, so that a bound stated for other rows
than those the row map makes is found as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dpregress.accounting import Relation
from dpregress.coordinates import Matrix
from dpregress.coordinates.exact import FINE
from dpregress.mechanisms import base
from dpregress.mechanisms.base import exact_total, float_sensitivity
from dpregress.queries import Query
from dpregress.rows import RawRows
from tests import registry
from tests.registry import METRICS, QUERIES, SPACES, SPACES_BY_TIME, QueryEntry

#: One row's value is a handful of operations on floats.
ROUNDING = 1e-12


def some_rows(entry: QueryEntry, query: Query, rng: np.random.Generator, rows: int) -> RawRows:
    """As many wild rows as tame ones, with the extremal ones in between."""
    return registry.joined(
        registry.wild_rows(rng, rows),
        entry.extremes(query),
        registry.tame_rows(rng, query.space, rows),
    )


def values(query: Query, rows: RawRows, words: int = FINE) -> Matrix:
    """The query's answer on each row alone."""
    single = (registry.taken(rows, slice(i, i + 1)) for i in range(len(rows.x)))
    with patch.object(base, "words_for", return_value=words):
        return np.array([exact_total(query, registry.private(row)) for row in single])


def check_sensitivity(entry: QueryEntry, space: str, seed: int) -> None:
    """Over all pairs of some hundred rows: adding or removing one, and replacing one by another."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    rows = some_rows(entry, query, rng, 60)
    check_values(query, values(query, rows))
    check_values(query, values(query, registry.taken(rows, slice(40, None, 2)), words=1), tight=False)


def check_values(query: Query, found: Matrix, *, tight: bool = True) -> None:
    """Of single rows: no pair is further apart than the sensitivity, and some pair is as far."""
    assert np.isfinite(found).all(), "a row made the answer something else than a number"
    for relation, largest in (
        (Relation.ADD_REMOVE, query.norm.of(found).max()),
        (Relation.REPLACE_ONE, pdist(found, METRICS[query.norm]).max()),
    ):
        claim = query.sensitivity(relation)
        assert largest <= claim * (1 + ROUNDING), f"{relation}: a pair moves it by {largest}, the claim is {claim}"
        if query.tight and tight:
            assert largest >= 0.99 * claim, f"{relation}: no pair comes near {claim}, the furthest is {largest}"


def check_sensitivity_of_sums(entry: QueryEntry, space: str, seed: int) -> None:
    """Whole data sets that differ in one row: no rounding is allowed for."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    rows = some_rows(entry, query, rng, 40)
    n = len(rows.x)
    total = exact_total(query, registry.private(rows))
    allowed = float_sensitivity(query, Relation.REPLACE_ONE)
    assert allowed <= query.sensitivity(Relation.REPLACE_ONE) * (1 + 1e-9)
    for _ in range(40):
        place, taken = rng.integers(n, size=2)
        order = np.arange(n)
        order[place] = taken
        moved = query.norm.of(exact_total(query, registry.private(registry.taken(rows, order))) - total)
        assert moved <= allowed, f"replacing a row moves the sum by {moved}, {allowed} is allowed for"


def check_additivity(entry: QueryEntry, space: str, seed: int) -> None:
    """The answers on disjoint chunks add up to the answer on all rows: tame ones, and wild ones among them."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    tame = registry.tame_rows(rng, query.space, 40)
    for rows in (tame, registry.joined(registry.wild_rows(rng, 60), tame)):
        _check_additive(query, rows, rng)


def _check_additive(query: Query, rows: RawRows, rng: np.random.Generator) -> None:
    bounded = query.row_map
    cuts = [0, *sorted(rng.integers(0, len(rows.x), size=5)), len(rows.x)]
    for words in (1, FINE):
        parts = [
            query.exact(bounded(replace(registry.taken(rows, slice(a, b)), first_row=a), words))
            for a, b in pairwise(cuts)
        ]
        whole = query.exact(bounded(rows, words))
        assert whole.whole.shape == (query.size,)
        assert sum(part.whole for part in parts).tolist() == whole.whole.tolist(), "parts do not add up"
        assert all(np.array_equal(part.unit, whole.unit) for part in parts)


@pytest.mark.parametrize("space", SPACES_BY_TIME)
@pytest.mark.parametrize("entry", QUERIES, ids=str)
@pytest.mark.parametrize(
    "law", [check_sensitivity, check_sensitivity_of_sums, check_additivity], ids=lambda law: law.__name__
)
def test_query(law: Callable[..., None], entry: QueryEntry, space: str, seed: int) -> None:
    """Deterministic bounds: no seed can break them."""
    law(entry, space, seed)
