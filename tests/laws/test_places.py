"""A row's mapped values and its part in every query are functions of its own cells, bit for bit, whatever its place.

Rows lie far outside their bounds and coefficients cancel: there the sign of a prediction is rounding, and a product
whose rounding depended on the place of a row would let one row move what all others count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import gammaln, xlogy

from dpregress import GDP, DPPoissonRegressor, Numeric, Schema
from dpregress.accounting import Relation
from dpregress.coordinates import Exposure, Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.coordinates.exact import ExactVector
from dpregress.mechanisms import base
from dpregress.mechanisms.base import exact_total, float_sensitivity
from dpregress.models import BinomialFamily, GaussianFamily, PoissonFamily, family_of
from dpregress.queries import (
    ClassRemainder,
    ClippedGradient,
    ClippedScore,
    FarVotes,
    MeanClassResidual,
    MeanResidual,
    MultinomialScore,
    Predictions,
    PublishedHessian,
    Query,
    ResidualHistogram,
)
from dpregress.rows import ArraySource, PrivateRows, RawRows, ThreadedEngine, WhitenedRows
from tests import registry
from tests.registry import CODED_QUERIES, DOMAINS, QUERIES, SPACES, CodedEntry, QueryEntry

Rng = np.random.Generator

#: Number of the row that is moved, for queries in which that decides on the answer.
ROW = 50
#: Lengths of chunks, and places in them: alone, first, last, in the middle, at both sides of powers of two.
PLACES = ((1, 0), (2, 1), (3, 0), (5, 4), (8, 7), (50, 49), (63, 0), (64, 13), (65, 33), (67, 50), (101, 50), (110, 46))
SIZES = np.array([1e-310, 1e-30, 1.0, 1e8, 1e16, 1e17, 1e30, 1e160, 1e300])


def bits(array: Any) -> Any:
    """Equal only where every bit is, but for the sign of a 0."""
    return (np.asarray(array, dtype=np.float64) + 0.0).view(np.int64)


def far_rows(rng: Rng, rows: int, order: int) -> RawRows:
    """Rows of every magnitude beyond their bounds, some with missing cells, with counts for responses."""
    x = rng.normal(size=(rows, order)) * rng.choice(SIZES, size=(rows, 1))
    x[rng.random(x.shape) < 0.02] = np.nan
    return RawRows(x, rng.integers(0, 4, size=rows).astype(float), exposure=rng.exponential(size=rows))


def wide_space(rng: Rng, order: int) -> WhitenedSpace:
    """With an intercept, means far from 0, and coordinates turned so that every one holds a part of the constant."""
    root, mean = rng.normal(size=(order - 1, order - 1)) / np.sqrt(order), 10 * rng.normal(size=order - 1)
    whitening = np.block([[np.ones((1, 1)), np.zeros((1, order - 1))], [-(root @ mean)[:, None], root]])
    names, turn = tuple(f"x{i}" for i in range(order - 1)), np.linalg.qr(rng.normal(size=(order, order)))[0]
    response = ResponseScale("y", bound=5.0)
    return WhitenedSpace(names, turn @ whitening, 4.0, mean, intercept=True, response=response, exposure=Exposure("e"))


def wide_queries(space: WhitenedSpace, rng: Rng) -> Iterator[Query[Any]]:
    """Queries at the coefficients with which fits begin: a mean for everybody, up to rounding."""
    start, edges = 1.7 * space.constant, 2.0 ** np.arange(-30.0, 13.0)
    classes = np.outer(space.constant, rng.normal(size=2))
    for family in (GaussianFamily, BinomialFamily, PoissonFamily, family_of("gamma"), family_of("binomial", "probit")):
        yield MeanResidual(space, family, start, -3.0, 4.0)
        yield ResidualHistogram(space, family, start, edges)
        yield FarVotes(space, start, 1.0, 2.0)
        yield ClippedScore(space, family, start, 2.0)
        yield ClippedGradient(space, family, start, 2.0)
        yield PublishedHessian(space, family, start, 2.0)
    yield MultinomialScore(space, classes, 0.7)
    yield ClassRemainder(MultinomialScore(space, classes, 0.7), 0.5)
    yield MeanClassResidual(space, classes)
    yield Predictions(space, start, 120)


def placed(row: RawRows, among: RawRows, length: int, place: int) -> RawRows:
    """A chunk of this length with the row in this place, in which the others count for nothing."""
    others = registry.taken(among, slice(0, length))
    parts = (registry.taken(others, slice(0, place)), row, registry.taken(others, slice(place + 1, length)))
    return replace(registry.joined(*parts), first_row=ROW - place, counts=np.arange(length) == place)


def check_alone(query: Query[Any], row: RawRows, among: RawRows) -> None:
    """Its value in every place is its value alone: sums with nothing else in them do not round."""
    alone = query.value(query.row_map(placed(row, among, 1, 0)))
    for turn, (length, place) in enumerate(PLACES):
        chunk = placed(row, among, length, place)
        x = np.asfortranarray(chunk.x) if turn % 2 else chunk.x
        value = query.value(query.row_map(replace(chunk, x=x)))
        said = f"{type(query).__name__}: a row has another value in place {place} of {length}"
        np.testing.assert_array_equal(bits(value), bits(alone), err_msg=said)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("entry", QUERIES, ids=str)
def test_values_do_not_depend_on_the_place(entry: QueryEntry, space: str, seed: int) -> None:
    """Over the registry. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    far = far_rows(rng, 120, registry.WIDTH)
    moved = registry.joined(far, registry.wild_rows(rng, 4), registry.extremal_rows(query))
    for i in range(0, len(moved.x), 17):
        check_alone(query, registry.taken(moved, slice(i, i + 1)), far)


@pytest.mark.parametrize("order", [2, 9, 33, 64])
def test_values_do_not_depend_on_the_place_where_coefficients_cancel(order: int, seed: int) -> None:
    """Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    space = wide_space(rng, order)
    far = far_rows(rng, 120, order - 1)
    for query in wide_queries(space, rng):
        for i in range(6):
            check_alone(query, registry.taken(far, slice(i, i + 1)), far)


@pytest.mark.parametrize("order", [1, 2, 9, 33, 64])
def test_mapped_rows_do_not_depend_on_the_place(order: int, seed: int) -> None:
    """Whole chunks of 1 to 5,000 rows, again and again, in both orders in memory, with and without gaps."""
    rng = np.random.default_rng(seed)
    space = wide_space(rng, order + 1)
    rows, row_map = far_rows(rng, 5000, order), WhitenedRows(space)
    whole = row_map(rows)
    for length in (5000, 4096, 4097, 1028, 257, 3, 1):
        for x in (rows.x, np.asfortranarray(rows.x), np.repeat(rows.x, 2, axis=1)[:, ::2]):
            for first in (0, 5000 - length, (5000 - length) // 2 + 1):
                which = slice(first, min(first + length, 5000))
                found = row_map(replace(registry.taken(rows, which), x=x[which]))
                for name in ("x", "y", "weight", "offset"):
                    expected = getattr(whole, name)[which]
                    np.testing.assert_array_equal(bits(getattr(found, name)), bits(expected), err_msg=name)


# ---------------------------------------------------------------- totals; of rows in whitened space: test_exact.py


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("entry", CODED_QUERIES, ids=str)
def test_coded_totals_do_not_depend_on_the_order(entry: CodedEntry, domain: str, seed: int) -> None:
    """Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    query, rows = entry.make(DOMAINS[domain], rng), registry.coded_rows(rng, DOMAINS[domain], 150)
    total = exact_total(query, PrivateRows(ArraySource(rows.x), ThreadedEngine(workers=1)))
    for x in (np.roll(rows.x, 1, axis=0), rng.permutation(rows.x)):
        for size in (1, 7, 64, 149, 150):
            chunks = ArraySource(x).chunks(size)
            found = np.sum([query.value(query.row_map(chunk)) for chunk in chunks], axis=0)
            np.testing.assert_array_equal(found, total)


def moved_by(query: Query[Any], one: PrivateRows, other: PrivateRows) -> float:
    """The distance between two answers, in float sensitivities."""
    apart = float(np.linalg.norm(exact_total(query, one) - exact_total(query, other)))
    return apart / float_sensitivity(query, Relation.REPLACE_ONE)


def test_rotated_rows(seed: int) -> None:
    """All rows move by one place, and no total moves. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    space = wide_space(rng, 64)
    x = rng.normal(size=(41_003, 63)) * 1e18
    y = np.ones(len(x))
    one, other = (PrivateRows(ArraySource(np.roll(x, turn, axis=0), y), ThreadedEngine(workers=1)) for turn in (0, 1))
    space = replace(space, exposure=None)
    for query in (
        MeanResidual(space, PoissonFamily, 1.7 * space.constant, -30.0, 1.0),
        ResidualHistogram(space, PoissonFamily, 1.7 * space.constant, 2.0 ** np.arange(-30.0, 13.0)),
        ClippedScore(space, PoissonFamily, 1.7 * space.constant, 2.0),
    ):
        assert moved_by(query, one, other) == 0, f"{type(query).__name__} depends on the order of rows"


def sorted_by_first(x: Matrix, y: Vector) -> pl.LazyFrame:
    """A lazy table whose order hangs on a private column."""
    columns = {f"x{i}": column for i, column in enumerate(x.T)}
    return pl.LazyFrame({**columns, "y": y}).sort("x0")


def test_sorted_by_a_private_column(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit of rows that are sorted by a column: replacing the first by a last moves every other by one place.

    Every query that a default fit asks moves by at most its sensitivity. Deterministic: no seed can break it.
    """
    rng = np.random.default_rng(seed)
    n, d = 20_011, 40
    x = rng.normal(size=(n, d)) * 1e19
    y = rng.poisson(2.0, size=n).astype(float)
    replaced = x.copy()
    replaced[np.argmin(x[:, 0]), 0] = 1e21
    asked: list[tuple[Query[Any], PrivateRows]] = []
    total = base.unrounded_total

    def spied(query: Query[Any], rows: PrivateRows) -> ExactVector:
        asked.append((query, rows))
        return total(query, rows)

    monkeypatch.setattr(base, "unrounded_total", spied)
    schema = Schema({**{f"x{i}": Numeric(-1, 3) for i in range(d)}, "y": Numeric(0, 50)})
    found = []
    for cells in (x, replaced):
        DPPoissonRegressor(GDP(1.0), schema=schema).fit_table(sorted_by_first(cells, y), target="y")
        found.append(list(asked))
        asked.clear()
    other = found[1][0][1]
    assert len(found[0]) > 1
    for query, rows in found[0]:
        assert moved_by(query, rows, other) <= 1.0, f"{type(query).__name__} moves by more than its sensitivity"


# ---------------------------------------------------------------- elementwise functions

ELEMENTWISE: dict[str, Callable[[Vector], Vector]] = {
    **{
        f"{family.distribution.name} {family.link.name} {name}": getattr(family, name)
        for family in registry.FAMILIES
        for name in ("mean", "factor", "information")
    },
    **{
        f"{distribution.name} unit deviance": partial(distribution.unit_deviance, mean=np.float64(0.7))
        for distribution in dict.fromkeys(family.distribution for family in registry.FAMILIES)
    },
    **{
        f"{distribution.name} saturated": partial(distribution.saturated, dispersion=0.8)
        for distribution in dict.fromkeys(family.distribution for family in registry.FAMILIES)
    },
    "gammaln": gammaln,
    "xlogy": lambda z: xlogy(z, np.abs(z)),
    "log": lambda z: np.log(np.abs(z)),
    "log2": lambda z: np.log2(np.abs(z)),
    "log1p": lambda z: np.log1p(np.abs(z)),
    "exp": np.exp,
    "square root": lambda z: np.sqrt(np.abs(z)),
    "reciprocal": lambda z: 1 / z,
    "power": lambda z: np.abs(z) ** 1.7,
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_functions_do_not_depend_on_the_place(name: str, seed: int) -> None:
    """Of arrays of every length up to 40 at every offset, with gaps, and in several columns; assumption A2."""
    function, rng = ELEMENTWISE[name], np.random.default_rng(seed)
    strange = [0.0, 1e-310, 5e-324, 1e300, 709.5, -745.1, 1e75, -1e75]
    values = np.concatenate([rng.normal(size=400) * 10.0 ** rng.integers(-8, 3, size=400), strange])
    with np.errstate(all="ignore"):
        alone = np.array([function(values[i : i + 1].copy())[0] for i in range(len(values))])
        for first in range(0, 17):
            for length in (*range(1, 41), len(values) - first):
                part = slice(first, first + length)
                np.testing.assert_array_equal(bits(function(values[part])), bits(alone[part]))
        np.testing.assert_array_equal(bits(function(np.repeat(values, 3)[::3])), bits(alone))
        for order in ("C", "F"):
            columns = np.array(np.tile(values[:, None], (1, 3)), order=order)
            np.testing.assert_array_equal(bits(function(columns)), bits(np.tile(alone[:, None], (1, 3))))
