"""Totals are the same bit for bit, whatever the source, the engine, the chunks, the threads and the order of the rows.

They are exact sums, so a row moves them by its own values and by nothing else: an attack that doubles the sensitivity
of a running sum of floats moves them by no more than the sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import float_sums
from dpregress.accounting import Relation
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.coordinates.exact import FINE, ExactVector, Grid, column_sums, cross, gram
from dpregress.mechanisms import base
from dpregress.mechanisms.base import float_sensitivity, unrounded_total
from dpregress.models import BinomialFamily, GaussianFamily
from dpregress.queries import (
    BinomialInformation,
    ClippedScore,
    MeanResidual,
    PublishedHessian,
    Query,
    ScoreSquares,
    SecondMoment,
)
from dpregress.rows import (
    ArraySource,
    CappedSource,
    CodedParquet,
    CodedSource,
    Encoder,
    Engine,
    ExposedSource,
    PrivateRows,
    RawRows,
    Source,
    StreamSource,
    TableSource,
    ThreadedEngine,
    WeightedSource,
)
from dpregress.rows.readers import files
from dpregress.rows.sources import reader_of
from tests import registry
from tests.laws.test_places import far_rows, wide_space
from tests.registry import QUERIES, SPACES, WIDTH, CodedEntry, EngineEntry, QueryEntry

Rng = np.random.Generator
NAMES = [f"x{i}" for i in range(WIDTH)]
#: Queries whose values depend on the numbers of the rows.
PLACED = ("mixture", "predictions")


class Chunked(ThreadedEngine):
    """An engine with chunks of 32 rows."""

    @staticmethod
    def chunk_rows(columns: int) -> int:  # noqa: ARG004
        return 32


ENGINES = {"one thread": Chunked(workers=1), "three threads": Chunked(workers=3)}
#: An intercept, exposures with bounds, and features in minute units.
KINDS = ("intercept", "exposure", "minute units")


def sources(rows: RawRows, folder: Path) -> Iterator[tuple[str, Source]]:
    """The same rows in every source of numbers."""
    columns = dict(zip([*NAMES, "y", "e"], [*rows.x.T, rows.y, rows.exposure], strict=True))
    table, encoder = pa.table(columns), Encoder.of(NAMES, "y", None, exposed="e")
    pq.write_table(table, folder / "rows.parquet", row_group_size=19)
    array = ExposedSource(ArraySource(rows.x, rows.y), rows.exposure)
    yield "array", array
    yield "array by columns", ExposedSource(ArraySource(np.asfortranarray(rows.x), rows.y), rows.exposure)
    yield "capped array", CappedSource(array, [pa.array(range(len(rows.x)))], 1)
    yield "table", TableSource(table, encoder)
    yield "file", StreamSource(reader_of(folder / "rows.parquet"), encoder)


def groups(rows: RawRows, folder: Path, rng: Rng) -> Iterator[dict[str, Source]]:
    """The same rows in every source of numbers, without survey weights and with them."""
    kept = dict(sources(rows, folder))
    yield kept
    weights = rng.choice([1e-300, 1e-3, 0.3, 0.99, 1.0, 7.0, np.inf, np.nan, -1.0, 0.0], len(rows.x))
    columns = {"array": weights, "capped array": weights, "file": [pa.array(weights[:30]), pa.array(weights[30:])]}
    yield {name: WeightedSource(kept[name], each, 2.0) for name, each in columns.items()}


def total_of(query: Query[Any], source: Source, engine: Engine, words: int) -> ExactVector:
    """The total that a mechanism uses."""
    with patch.object(base, "words_for", return_value=words):
        return unrounded_total(query, PrivateRows(source, engine))


def assert_same(found: ExactVector, expected: ExactVector, said: str) -> None:
    assert found.whole.tolist() == expected.whole.tolist(), said
    assert np.array_equal(found.unit, expected.unit), said


@pytest.mark.parametrize("words", [1, FINE])
@pytest.mark.parametrize("space", KINDS)
@pytest.mark.parametrize("entry", QUERIES, ids=str)
def test_totals_are_the_same_everywhere(entry: QueryEntry, space: str, words: int, tmp_path: Path, seed: int) -> None:
    """Over all sources, engines, chunks and orders. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    rows = registry.joined(far_rows(rng, 70, WIDTH), registry.wild_rows(rng, 20), registry.extremal_rows(query))
    for kept in groups(rows, tmp_path, rng):
        expected = total_of(query, kept["array"], ThreadedEngine(workers=1), words)
        for (name, source), (kind, engine) in product(kept.items(), ENGINES.items()):
            assert_same(total_of(query, source, engine, words), expected, f"{name}, {kind}")
        for size in (7, 64, len(rows.x) - 1):
            parts = [query.exact(query.row_map(chunk, words)) for chunk in kept["array"].chunks(size)]
            assert sum(part.whole for part in parts).tolist() == expected.whole.tolist(), f"chunks of {size}"
    if not any(name in entry.name for name in PLACED):
        expected = total_of(query, registry.private(rows).source, ThreadedEngine(workers=1), words)
        for order in (np.roll(np.arange(len(rows.x)), 1), rng.permutation(len(rows.x))):
            moved = registry.private(registry.taken(rows, order)).source
            assert_same(total_of(query, moved, Chunked(workers=1), words), expected, "another order")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 32 rows, and parts of files that are no longer than they must be."""
    monkeypatch.setattr(Engine, "chunk_rows", staticmethod(lambda _: 32))
    monkeypatch.setattr(files, "_PART", 1)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("engine", registry.READING_ENGINES, ids=str)
@pytest.mark.parametrize("entry", QUERIES, ids=str)
def test_totals_are_the_same_on_every_engine(
    engine: EngineEntry, entry: QueryEntry, tmp_path: Path, dask_client: Any, seed: int
) -> None:
    """Over all sources of numbers. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES["exposure"](rng), rng)
    rows = registry.joined(far_rows(rng, 70, WIDTH), registry.wild_rows(rng, 20), registry.extremal_rows(query))
    for kept in groups(rows, tmp_path, rng):
        expected = total_of(query, kept["array"], Chunked(workers=1), 1)
        for name, source in kept.items():
            assert_same(total_of(query, source, engine.make(dask_client), 1), expected, name)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("engine", registry.READING_ENGINES, ids=str)
@pytest.mark.parametrize("entry", registry.CODED_QUERIES, ids=str)
def test_coded_totals_are_the_same_on_every_engine(
    engine: EngineEntry, entry: CodedEntry, tmp_path: Path, dask_client: Any, seed: int
) -> None:
    """Tables in memory and in files, with and without rows. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    domain = registry.DOMAINS["mixed"]
    query = entry.make(domain, rng)
    levels = {each.name: rng.integers(each.size + 1, size=150) for each in domain.attributes}
    for n in (150, 0):
        table = pa.table({name: pa.array(cells[:n]) for name, cells in levels.items()})
        pq.write_table(table, tmp_path / "rows.parquet", row_group_size=19)
        expected = total_of(query, CodedSource(table, domain), Chunked(workers=1), 1)
        for source in (CodedSource(table, domain), CodedParquet(reader_of(tmp_path / "rows.parquet"), domain)):
            assert_same(total_of(query, source, engine.make(dask_client), 1), expected, f"{source}, {n} rows")


def large_queries(space: WhitenedSpace, rng: Rng) -> Iterator[Query[Any]]:
    """One of each kind of sum: squares, products with one and several factors, and terms."""
    coef = rng.normal(size=space.order) / 3
    score = ClippedScore(space, BinomialFamily, coef, 1.5)
    yield SecondMoment(space)
    yield score
    yield ScoreSquares(score, 2.0)
    yield BinomialInformation(space, coef)
    yield PublishedHessian(space, BinomialFamily, coef, 0.25)
    yield MeanResidual(space, GaussianFamily, coef, -5.0, 4.0)


@pytest.mark.parametrize("order", [5, 40])
def test_totals_of_many_rows(order: int, seed: int) -> None:
    """Several chunks of the usual size and several blocks in each. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    space = replace(wide_space(rng, order), exposure=None)
    n = 2 * ThreadedEngine.chunk_rows(order) + 3001
    x, y = rng.normal(size=(n, order - 1)) + 9, rng.normal(size=n)
    for query in large_queries(space, rng):
        expected = unrounded_total(query, PrivateRows(ArraySource(x, y), ThreadedEngine(workers=1)))
        turned = ArraySource(np.asfortranarray(x[::-1]), y[::-1])
        assert_same(unrounded_total(query, PrivateRows(turned, ThreadedEngine(workers=2))), expected, str(query))


# ---------------------------------------------------------------- the arithmetic


def fractions(whole: Any, unit: Any) -> list[Fraction]:
    return [int(k) * Fraction(float(u)) for k, u in zip(np.ravel(whole), np.ravel(unit), strict=True)]


@pytest.mark.parametrize("words", [1, FINE])
@pytest.mark.parametrize("rows", [1, 2047, 2049])
@pytest.mark.parametrize("columns", [1, 3, 24])
def test_sums_at_the_bound_are_exact(columns: int, rows: int, words: int, seed: int) -> None:
    """Numbers that use every bit of the grid, against rational numbers. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    for bound in (1e-100, 3.0, 1e100):
        grid = Grid(bound, words)
        x = grid.nearest(bound * rng.choice([-1.0, 1.0], size=(rows, columns)) * (1 - 1e-7 * rng.random((rows, 1))))
        exact = {j: [Fraction(cell) for cell in x[:, j].tolist()] for j in {0, columns // 2, columns - 1}}
        unit = Fraction(grid.step)
        squares, products, sums = gram(x, grid), cross(x[:, :1], x, grid, grid), column_sums(x, grid)
        for j in exact:
            dot = sum((a * b for a, b in zip(exact[0], exact[j], strict=True)), Fraction(0))
            assert int(squares[0, j]) * unit**2 == int(squares[j, 0]) * unit**2 == dot
            assert int(products[0, j]) * unit**2 == dot
            assert int(sums[j]) * unit == sum(exact[j], Fraction(0))


@pytest.mark.parametrize("words", [1, FINE])
@pytest.mark.parametrize("length", [1, 7, 300])
@pytest.mark.parametrize("bound", [1e-90, 1.0, 3.3, 1e90])
def test_rounding_to_the_grid_keeps_vectors_within_their_bound(
    bound: float, length: int, words: int, seed: int
) -> None:
    """``||nearest(v)|| <= bound`` where ``||v|| <= inside``, in exact arithmetic. No seed can break it."""
    rng = np.random.default_rng(seed)
    grid = Grid(bound, words)
    for _ in range(20):
        v = rng.normal(size=length)
        v *= grid.inside(length) / np.linalg.norm(v)
        moved = grid.nearest(v.copy())
        assert np.abs(moved - v).max() <= grid.step / 2 + 1e-16 * bound
        assert sum(Fraction(cell) ** 2 for cell in moved.tolist()) <= Fraction(bound) ** 2
    clipped = grid.clipped(np.array([-np.inf, -bound, 0.0, bound, np.inf]))
    assert np.abs(clipped).max() <= bound
    assert np.abs(clipped).max() >= bound * (1 - 2.0**-19)


# ---------------------------------------------------------------- the attack


@pytest.mark.parametrize(
    "kind", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)], ids=lambda kind: kind.__name__
)
def test_an_attack_on_a_running_sum_fails_against_exact_sums(kind: type[np.floating]) -> None:
    """One row moves a running sum of floats by twice the sensitivity, and the exact sum by the sensitivity."""
    running, exact = (add(kind, 1.0) - add(kind, 0.0) for add in (float_sums.running_sum, float_sums.exact_sum))
    assert running > 1.99
    assert exact == 1.0


def test_the_attack_fails_against_a_query() -> None:
    """The same rows as responses, through the row map and the engine."""
    space = WhitenedSpace(("x",), np.eye(1), 1.0, np.zeros(1), response=ResponseScale("y", bound=1.0))
    query = MeanResidual(space, GaussianFamily, np.zeros(1), 0.0, 1.0)
    totals = []
    for first in (0.0, 1.0):
        y = np.concatenate(list(float_sums.chunks(np.float32, first)))
        totals.append(unrounded_total(query, PrivateRows(ArraySource(np.zeros((len(y), 1)), y))))
    moved = fractions(totals[1].whole - totals[0].whole, totals[1].unit)[0]
    assert moved == 1
    assert moved <= Fraction(float_sensitivity(query, Relation.REPLACE_ONE))
