"""Totals that a database computes are those of the row map in a fixed order of operations, bit for bit.

Rows lie far outside their bounds and hold what is no number. Whatever a database makes of them, the integers of a row
keep their bounds: a row whose integers do not is 0.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import pdist

from dpregress import Categorical, Numeric, Schema
from dpregress.coordinates import Exposure, ResponseScale, WhitenedSpace
from dpregress.coordinates.exact import ExactVector
from dpregress.errors import InvalidInput, NotAnswered
from dpregress.mechanisms.base import unrounded_total
from dpregress.models import BinomialFamily, Family, PoissonFamily, contrasts, family_of
from dpregress.public.coding import domain_of
from dpregress.queries import (
    BinomialInformation,
    Blocks,
    ClassRemainder,
    ClippedGradient,
    ClippedScore,
    Counted,
    ExposureHistogram,
    ExposureScore,
    FarVotes,
    MeanClassResidual,
    MeanResidual,
    MultinomialScore,
    PieceInformation,
    PieceScore,
    PieceTotals,
    ResidualHistogram,
    ResponseHistogram,
    ScoreRemainder,
    ScoreSquares,
    SecondMoment,
    ShortenedRows,
    UsableRowCount,
)
from dpregress.rows import (
    CodedParquet,
    CodedSource,
    Encoder,
    OrderedRows,
    PrivateRows,
    RawRows,
    SQLQuery,
    StreamSource,
    WhitenedRows,
    row_kernel,
)
from dpregress.rows import push_down_sql as sql
from dpregress.rows.ordered import FINITE, with_exposure
from dpregress.rows.sources import reader_of
from tests import registry
from tests.laws.test_places import far_rows
from tests.registry import CODED_QUERIES, METRICS, QUERIES, SPACES, WIDTH, QueryEntry, rows_of_all_classes, taken

Rng = np.random.Generator
NAMES = [f"x{i}" for i in range(WIDTH)]
(ENGINE,) = (entry for entry in registry.ENGINES if entry.pushes)
_PLAIN = SPACES["plain"](np.random.default_rng(0))


def is_pushed(entry: QueryEntry) -> bool:
    """Whether a query has a program for databases; some do not for all families."""
    try:
        entry.make(_PLAIN, np.random.default_rng(0)).program(True)
    except NotAnswered:
        return False
    return True


PUSHED = [entry for entry in QUERIES if is_pushed(entry)]
#: Coefficients of three classes, of all sizes.
CLASSES = np.array([[1e-100, 1e30], [0.0, -1e-99], [-1.0, 2.0]])
#: Bins of exposures.
EDGES = 2.0 ** np.arange(-100.0, 101.0, 8.0)
#: Ends of pieces of all lengths.
FAR_CUTS = (2.0**-332, 1.0, 2.0**332)
#: Families whose means or factors go furthest, and the one of a polynomial of its own.
ALL_SIZES = (
    PoissonFamily, family_of("poisson", "identity"), family_of("inverse-gaussian"), family_of("binomial", "probit")
)  # fmt: skip


def table_of(rows: RawRows) -> pa.Table:
    beside = {"y": rows.y, **({} if rows.exposure is None else {"e": rows.exposure})}
    return pa.table({**dict(zip(NAMES, rows.x.T, strict=True)), **beside})


def in_duckdb(table: pa.Table, folder: Path) -> SQLQuery:
    path = folder / f"{uuid4().hex}.duckdb"  # a database that a reader still reads cannot be written
    with closing(duckdb.connect(str(path))) as connection:
        connection.register("arrow", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    return SQLQuery(f"duckdb:///{path}", "SELECT * FROM t -- all")


def in_relation(table: pa.Table, _: Path) -> Any:
    connection = duckdb.connect()
    connection.register("arrow", table)
    return connection.sql("SELECT * FROM arrow")


def in_parquet(table: pa.Table, folder: Path) -> Any:
    """Whose statistics DuckDB believes, and in which NaN has no part."""
    path = folder / f"{uuid4().hex}.parquet"
    pq.write_table(table, path)
    return duckdb.connect().sql(f"SELECT * FROM '{path}'")


def in_sqlite(table: pa.Table, folder: Path) -> SQLQuery:
    names = table.schema.names
    path = folder / f"{uuid4().hex}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(f'{name} REAL' for name in names)})")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", rows)
        connection.commit()
    return SQLQuery(f"sqlite:///{path}", "SELECT * FROM t -- all")


def in_postgresql(url: str, table: pa.Table, _: Path) -> SQLQuery:
    from adbc_driver_postgresql import dbapi

    name = f"t{uuid4().hex}"
    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, table, mode="create")
    return SQLQuery(url, f"SELECT * FROM {name} -- all")


def in_spark(session: Any, table: pa.Table, _: Path) -> Any:
    name = f"t{uuid4().hex}"
    session.createDataFrame(table).repartition(3).createOrReplaceTempView(name)
    return session.table(name)


_SAME_ENGINE = [pytest.param(each, marks=pytest.mark.slow) for each in ("DuckDB relation", "Parquet relation")]


@pytest.fixture(params=["DuckDB query", *_SAME_ENGINE, "SQLite query", "PostgreSQL query", "Spark table"])
def kept(request: pytest.FixtureRequest) -> Callable[[pa.Table, Path], Any]:
    """How to keep a table in a database."""
    if request.param == "Spark table":
        return partial(in_spark, request.getfixturevalue("spark_session"))
    if request.param == "PostgreSQL query":
        return partial(in_postgresql, request.getfixturevalue("postgresql_url"))
    return {
        "DuckDB query": in_duckdb,
        "DuckDB relation": in_relation,
        "Parquet relation": in_parquet,
        "SQLite query": in_sqlite,
    }[request.param]


def source_of(table: Any, exposed: str | None = None) -> StreamSource:
    return StreamSource(reader_of(table), Encoder.of(NAMES, "y", None, exposed=exposed))


def pushed(query: Any, source: StreamSource) -> ExactVector:
    """The total that a mechanism uses, by the database."""
    return unrounded_total(query, PrivateRows(source, ENGINE.make(None)))


def expected_of(query: Any, rows: RawRows) -> ExactVector:
    """By NumPy, with the same program. Exposures count where there are some."""
    program, beside = query.program(True), {"y": "y"}
    if rows.exposure is not None:
        program, beside = with_exposure(program), {"y": "y", "exposed": "e"}
    sums = sql.RowSums(program, tuple(NAMES), "y", len(rows.x), beside.get("exposed"))
    table = table_of(rows).select([*(NAMES if query.reads_features else []), *beside.values()])
    batches = table.combine_chunks().to_batches()
    whole, usable, _ = sums.of_words(row_kernel.summed(batches, program, list(beside)))
    return query.of_sums(whole, usable)


def assert_same(found: ExactVector, expected: ExactVector, said: str) -> None:
    assert [int(each) for each in found.whole] == [int(each) for each in expected.whole], said
    assert np.array_equal(found.unit, expected.unit), said


def exposure_of(query: Any) -> str | None:
    """The column of exposures that a query needs."""
    return None if query.space.exposure is None else "e"


def as_asked(rows: RawRows, query: Any) -> RawRows:
    """The rows without exposures, where the query needs none."""
    return rows if query.space.exposure is not None else replace(rows, exposure=None)


def wild_rows(rng: Rng, query: Any) -> RawRows:
    return registry.joined(far_rows(rng, 70, WIDTH), registry.wild_rows(rng, 40), registry.extremal_rows(query))


def test_some_queries_are_pushed_down() -> None:
    assert {type(entry.make(_PLAIN, np.random.default_rng(0))) for entry in PUSHED} == {
        BinomialInformation, ClassRemainder, ClippedGradient, ClippedScore, Counted, ExposureHistogram, ExposureScore,
        FarVotes, MeanClassResidual, MeanResidual, MultinomialScore, PieceInformation, PieceScore, PieceTotals,
        ResidualHistogram, ResponseHistogram, ScoreRemainder, ScoreSquares, SecondMoment, ShortenedRows,
        UsableRowCount,
    }  # fmt: skip


def test_totals_of_databases_are_those_of_the_reference(
    kept: Callable[[pa.Table, Path], Any], tmp_path: Path, seed: int
) -> None:
    """Over all spaces and queries, with wide and with narrow sums. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    for kind in SPACES:
        space = SPACES[kind](rng)
        rows = wild_rows(rng, SecondMoment(space))
        table = kept(table_of(rows), tmp_path)
        for entry in PUSHED if kind in ("intercept", "exposure") else PUSHED[:3]:
            query = entry.make(space, rng)
            source = source_of(table, exposure_of(query))
            assert_same(pushed(query, source), expected_of(query, as_asked(rows, query)), f"{kind}, {entry}")


@pytest.mark.parametrize(
    ("entry", "radius", "scale", "centre"),
    [
        (2.0**-149, 2.0**99, 2.0**100, 1e-300),
        pytest.param(2.0**99, 2.0**-99, 2.0**-100, -1e30, marks=pytest.mark.slow),  # the same statements
    ],
)
def test_the_smallest_and_largest_numbers_make_no_database_fail(
    entry: float, radius: float, scale: float, centre: float, kept: Callable[[pa.Table, Path], Any], tmp_path: Path
) -> None:
    """PostgreSQL raises an error where a product overflows or becomes 0: cells at the ends of all ranges."""
    ends = [0.0, 5e-324, 2.0**-200, 2.0**-199, 1e-30, 1.0, 1e30, 2.0**100, 2.0**101, 1e300, FINITE, np.inf, np.nan]
    cells = np.array([sign * end for end in ends for sign in (1, -1)])
    x, y = np.repeat(cells, len(cells)), np.tile(cells, len(cells))
    plain = RawRows(np.column_stack([x, y, np.roll(x, 7)]), np.roll(y, 5))
    exposed = replace(plain, exposure=np.roll(x, 3))
    table = kept(table_of(exposed), tmp_path)
    source, with_exposures = source_of(table), source_of(table, "e")
    whitening = np.array([[entry, 0.0, 0.0], [1.0, entry, 1e-60], [1e-45, -1.0, entry]])
    response = ResponseScale("y", centre, scale, 1.0)
    space = WhitenedSpace(tuple(NAMES), whitening, radius, np.array([0.0, 1e-300, 1e90]), response=response)
    query = Counted(SecondMoment(space))
    assert_same(pushed(query, source), expected_of(query, plain), f"{entry}")
    assert_same(pushed(query, with_exposures), expected_of(query, exposed), f"{entry}")
    unbounded = space.with_response(ResponseScale("y", centre, scale))
    for coef in ([1e-100, 0.0, -1.0], [1e30, -1e30, 1e-99]):
        for family in ALL_SIZES:
            score = ClippedScore(unbounded, family, np.array(coef), 2.0**99)
            gradient = ClippedGradient(unbounded, family, score.coef, 2.0**99)
            asked = (
                score,
                gradient,
                ScoreRemainder(score, 2.0**-99),
                ScoreRemainder(gradient, 2.0**-99),
                ClippedGradient(unbounded, family, score.coef, 2.0**-99, 3.0),
                ScoreSquares(score, 2.0**-99),
                ScoreSquares(gradient, 2.0**-99),
                MeanResidual(unbounded, family, score.coef, -1e-9, 1e30),
            )
            for query in asked:
                assert_same(pushed(query, source), expected_of(query, plain), f"{entry}, {family}, {query}")
        information = BinomialInformation(unbounded, np.array(coef))
        assert_same(pushed(information, source), expected_of(information, plain), f"{entry}, {information}")
        of_classes = MultinomialScore(unbounded.with_response(ResponseScale("y")), CLASSES, 2.0**-99)
        rest = ClassRemainder(of_classes, 2.0**-99)
        for query in (
            of_classes,
            rest,
            ScoreSquares(of_classes, 2.0**99),
            ScoreSquares(rest, 2.0**99),
            MeanClassResidual(of_classes.space, CLASSES),
        ):
            assert_same(pushed(query, source), expected_of(query, plain), f"{entry}, {query}")
        any_exposure = replace(unbounded, exposure=Exposure("e"))
        score = ExposureScore(any_exposure, -1e-30, 2.0**-99)
        mean = MeanResidual(any_exposure, PoissonFamily, np.array(coef), -1e-9, 1e30)
        for query in (score, ScoreSquares(score, 2.0**99), mean, ExposureHistogram(any_exposure, EDGES)):
            assert_same(pushed(query, with_exposures), expected_of(query, exposed), f"{entry}, {query}")
        hazards = np.append(coef, [1e-100, -1e30])
        for clip in (2.0**-99, 2.0**99):
            score = PieceScore(any_exposure, FAR_CUTS, hazards, clip)
            squares, totals = ScoreSquares(score, 2.0**99), PieceTotals(any_exposure, FAR_CUTS)
            for query in (score, squares, totals, PieceInformation(any_exposure, FAR_CUTS, hazards, clip)):
                assert_same(pushed(query, with_exposures), expected_of(query, exposed), f"{entry}, {query}")


def test_counts_of_coded_rows_are_those_of_a_reader(
    kept: Callable[[pa.Table, Path], Any], tmp_path: Path, seed: int
) -> None:
    """Comparisons decide on codes, so that counts are equal for any cells. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    rules = Schema(
        {
            "x0": Categorical(("0", "1", "2"), missing="level"),
            "x1": Numeric(-1000, 1000),
            "x2": Categorical(("-1", "7", "40000000000"), missing="7"),
            "y": Numeric(0.0, 1e-3),
        }
    )
    rows = registry.wild_rows(rng, 400)
    for column, levels in ((0, [0, 1, 2, 0.5, 3]), (2, [-1, 7, 4e10, 7.5])):
        known = rng.random(400) < 0.8
        rows.x[known, column] = rng.choice(levels, known.sum())
    table, domain = table_of(rows), domain_of(rules, bins=5)
    source = CodedParquet(reader_of(kept(table, tmp_path)), domain)
    for entry in CODED_QUERIES:
        query = entry.make(domain, rng)
        expected = unrounded_total(query, PrivateRows(CodedSource(table, domain)))
        assert_same(unrounded_total(query, PrivateRows(source, ENGINE.make(None))), expected, str(entry))


#: One pair each time, all others where there is time: spaces, and cells of rows that are infinite.
_FAR_CELLS = [
    pytest.param(kind, far, marks=[] if (kind, len(far)) == ("exposure", 2) else pytest.mark.slow)
    for kind in ("intercept", "exposure")
    for far in ((), (np.inf,), (-np.inf, np.inf))
]


@pytest.mark.parametrize(
    "keeping",
    [in_parquet, *(pytest.param(each, marks=pytest.mark.slow) for each in (in_relation, in_duckdb))],  # one engine
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize(("kind", "far"), _FAR_CELLS)
def test_no_infinite_cell_decides_about_others(
    kind: str, far: tuple[float, ...], keeping: Callable[[pa.Table, Path], Any], tmp_path: Path, seed: int
) -> None:
    """Cells that are NaN count alike whether a cell of another row is infinite or none is. No seed can break it."""
    rng = np.random.default_rng(seed)
    space = SPACES[kind](rng)
    tame = registry.tame_rows(rng, space, 200)
    x, y = tame.x.copy(), tame.y.copy()
    x[rng.random(x.shape) < 0.3], y[rng.random(len(y)) < 0.3] = np.nan, np.nan
    x[: len(far)], y[: len(far)] = np.array(far)[:, None], np.array(far)
    rows = replace(tame, x=x, y=y)
    table = keeping(table_of(rows), tmp_path)
    for entry in PUSHED:
        query = entry.make(space, rng)
        found = pushed(query, source_of(table, exposure_of(query)))
        assert_same(found, expected_of(query, as_asked(rows, query)), str(entry))
    domain = domain_of(Schema({name: Numeric(-2, 2) for name in NAMES}), bins=5)
    source = CodedParquet(reader_of(table), domain)
    query = Blocks(domain, [(j,) for j in range(len(NAMES))])
    expected = unrounded_total(query, PrivateRows(CodedSource(table_of(rows), domain)))
    assert_same(unrounded_total(query, PrivateRows(source, ENGINE.make(None))), expected, kind)


def test_sums_of_many_rows_in_two_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """SQLite fails where a sum of integers exceeds 64 bits. Deterministic: no seed can break it."""
    monkeypatch.setattr(sql, "_SHORT", 1)
    rng = np.random.default_rng(seed)
    query = Counted(SecondMoment(SPACES["intercept"](rng)))
    rows = as_asked(wild_rows(rng, query), query)
    assert_same(pushed(query, source_of(in_sqlite(table_of(rows), tmp_path))), expected_of(query, rows), "two words")


@pytest.mark.parametrize("entry", [entry for entry in QUERIES if entry not in PUSHED], ids=str)
def test_other_queries_are_refused(entry: QueryEntry, tmp_path: Path, seed: int) -> None:
    """Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    source = source_of(in_relation(table_of(registry.wild_rows(rng, 5)), tmp_path))
    with pytest.raises(NotAnswered, match=r"a database cannot compute .*: leave the engine out"):
        pushed(entry.make(SPACES["intercept"](rng), rng), source)


@pytest.mark.parametrize("kind", SPACES)
def test_the_matrix_library_moves_a_row_by_a_unit_at_most(kind: str, seed: int) -> None:
    """Rows as the space expects them, in the order of a matrix library and in a fixed one. No seed can break it."""
    rng = np.random.default_rng(seed)
    space = SPACES[kind](rng)
    rows = registry.tame_rows(rng, space, 500)
    fixed, free = OrderedRows(space)(rows, 1), WhitenedRows(space)(rows, 1)
    assert np.abs(fixed.x - free.x).max() <= OrderedRows(space).grid.step * (1 + 1e-9)
    np.testing.assert_allclose(fixed.weight, free.weight, rtol=1e-12)
    if space.exposure is not None:
        np.testing.assert_allclose(fixed.offset, free.offset, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", SPACES)
def test_far_rows_are_bounded_alike(kind: str, seed: int) -> None:
    """Cells of any size are clipped to the same reach, so that rows have the same weight. No seed can break it."""
    rng = np.random.default_rng(seed)
    space = SPACES[kind](rng)
    tame = registry.tame_rows(rng, space, 300)
    sizes = 10.0 ** rng.choice([0, 28, 33, 80, 120, 160, 290], (301, WIDTH + 1))
    x, y = tame.x * sizes[:300, :WIDTH], (tame.y if tame.y is not None else np.ones(300)) * sizes[:300, WIDTH]
    fixed, free = OrderedRows(space)(RawRows(x, y), 1), WhitenedRows(space)(RawRows(x, y), 1)
    assert np.abs(fixed.x - free.x).max() <= OrderedRows(space).grid.step * (1 + 1e-9)
    np.testing.assert_allclose(fixed.weight, free.weight, rtol=1e-12)
    scale = 1.0 if space.response is None else min(space.response.bound, 1e30)
    np.testing.assert_allclose(fixed.y, free.y, rtol=1e-9, atol=2.0**-20 * scale)


def test_a_constant_beyond_all_rows_is_refused(tmp_path: Path) -> None:
    """After the charge, because the space may have been released just now. Deterministic: no seed can break it."""
    space = WhitenedSpace(tuple(NAMES), np.tril(np.ones((WIDTH + 1,) * 2)) + 2.0**110 * np.eye(WIDTH + 1, 1), 1.0,
                          np.zeros(WIDTH), intercept=True, response=_PLAIN.response)  # fmt: skip
    source = source_of(in_relation(table_of(RawRows(np.ones((3, WIDTH)), np.ones(3))), tmp_path))
    with pytest.raises(InvalidInput, match="subtract a constant from it; a budget that was charged stays charged"):
        pushed(SecondMoment(space), source)


@pytest.mark.parametrize("kind", ["plain", "intercept", "small ball", "exposure", "minute units"])
@pytest.mark.parametrize("entry", [entry for entry in PUSHED if entry.extremes is not rows_of_all_classes], ids=str)
def test_programs_compute_what_queries_do(
    kind: str, entry: QueryEntry, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Each row may move by a unit or two of the grid, or into the next bin where it lies at an edge.

    Of 300 rows, two at an edge of a bin, to within 1e-10, have a chance far below 1e-12. The factor m'/V(m) of the
    logistic model is set to 1, which it is: as a quotient it is off by up to a thousandth where the mean is almost 1.
    Residuals of classes are compared below: those of the registry are clipped to the size of a rounding.
    """
    factor = Family.factor
    monkeypatch.setattr(
        Family, "factor", lambda of, eta: np.ones_like(eta) if of == BinomialFamily else factor(of, eta)
    )
    rng = np.random.default_rng(seed)
    space = SPACES[kind](rng)
    query = entry.make(space, rng)
    rows = as_asked(registry.tame_rows(rng, space, 300), query)
    with np.errstate(all="ignore"):
        free = np.asarray(query.exact(query.row_map(rows, 1)))
    moved = np.abs(free - np.asarray(expected_of(query, rows))).max()
    assert moved <= (2 if query.contribution() == 1 and query.size > 1 else 300 * 2.0**-19 * query.contribution())


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("kind", ["plain", "published", "minute units"])
def test_residuals_of_classes(kind: str, classes: int, seed: int) -> None:
    """Of rows of every class and of none, with predictors that are near each other, and far apart.

    Each row may move by a unit or two of the grid. No seed can break it.
    """
    rng = np.random.default_rng(seed)
    space = SPACES[kind](rng).with_response(ResponseScale("y"))
    rows = replace(registry.tame_rows(rng, space, 300), exposure=None, y=rng.integers(-1, classes + 1, 300) + 0.0)
    for size in (0.3, 1e4):
        coef = size / space.radius * rng.normal(size=(space.order, classes - 1))
        score = MultinomialScore(space, coef, 0.6)
        rest = ClassRemainder(score, 0.2 * space.radius)
        squares = [ScoreSquares(each, 0.3 * space.radius) for each in (score, rest)]
        for query in (score, rest, *squares, MeanClassResidual(space, coef)):
            free = np.asarray(query.exact(query.row_map(rows, 1)))
            found = np.asarray(expected_of(query, rows))
            assert np.abs(free).max() > query.contribution()
            # a unit of the grid moves a predictor, and with it a probability, by this much
            moved = (2.0**-19 + 2.0**-20 * size) * query.contribution()
            assert np.abs(free - found).max() <= 300 * moved


@pytest.mark.parametrize("radii", [1e3, 1e8, 1e14])
def test_far_rows_of_the_class_that_is_expected_lack_next_to_nothing(radii: float, seed: int) -> None:
    """A probability that is cut at e^-30 would be magnified by the distance."""
    rng = np.random.default_rng(seed)
    space = SPACES["plain"](rng).with_response(ResponseScale("y"))
    x = rng.normal(size=(50, space.order))
    x *= radii * space.radius / np.linalg.norm(x, axis=1, keepdims=True)
    coef = 1e3 / space.radius * rng.normal(size=(space.order, 2))
    y = (space.whiten(x) @ coef @ contrasts(3).T).argmax(axis=1).astype(float)
    query, rows = ClassRemainder(MultinomialScore(space, coef, 0.6), 0.2 * space.radius), RawRows(x, y)
    free, found = query.exact(query.row_map(rows, 1)), expected_of(query, rows)
    for each in (free, found):
        assert np.abs(np.asarray(each)).max() <= 1e-3 * query.bound


# ---------------------------------------------------------------- the bound, whatever the arithmetic does


class Stretching(OrderedRows):
    """Planted: rows are shrunk to half more than the radius, as by a database that rounds wrongly."""

    steps = property(lambda rows: 1.5 * rows.limit / rows.grid.step)  # type: ignore[assignment]


def squares(rows: type[OrderedRows], space: WhitenedSpace, x: np.ndarray, folder: Path) -> float:
    """The sum of squares of one row as a database has it, in squares of the radius."""
    table = table_of(RawRows(x[None, :], np.zeros(1)))
    ordered = rows(space)
    sums = sql.RowSums(ordered.joint(True), tuple(NAMES), "y", 1)
    database = reader_of(in_relation(table, folder)).database
    assert database is not None
    joint, _, _ = database.summed(sums)
    return float(sum(joint[i, i] for i in range(space.order))) * ordered.grid.step**2 / space.radius**2


def test_rows_beyond_their_bound_are_dropped_by_the_database(tmp_path: Path, seed: int) -> None:
    """What its floats make of a row decides on no bound. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    space = SPACES["plain"](rng)
    far = 1e3 * rng.normal(size=WIDTH)
    near = 1e-3 * far
    assert 0.99 < squares(OrderedRows, space, far, tmp_path) <= 1
    assert squares(Stretching, space, far, tmp_path) == 0
    assert squares(Stretching, space, 1e-3 * near, tmp_path) > 0


@pytest.mark.parametrize("entry", PUSHED, ids=str)
@pytest.mark.parametrize("wrong", [pytest.param("threefold", marks=pytest.mark.slow), "far"])
def test_no_arithmetic_moves_a_row_beyond_the_bound(
    wrong: str, entry: QueryEntry, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Planted: floats are rounded to integers far from where they should be. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES["intercept"](rng), rng)
    rows = as_asked(wild_rows(rng, query), query)
    honest = row_kernel._OPERATIONS["round"]
    planted = {"threefold": lambda a: 3 * honest(a), "far": lambda a: honest(a) + 2.0**45}[wrong]
    monkeypatch.setitem(row_kernel._OPERATIONS, "round", planted)
    found = np.array([np.asarray(expected_of(query, taken(rows, slice(i, i + 1)))) for i in range(len(rows.x))])
    assert query.norm.of(found).max() <= query.contribution() * (1 + 1e-12)
    assert pdist(found, METRICS[query.norm]).max() <= query.replacement() * (1 + 1e-12)


# ---------------------------------------------------------------- statements


@pytest.mark.parametrize("dialect", sql.DIALECTS)
def test_statements_in_every_dialect(dialect: str) -> None:
    """They can be parsed again, give sums alone, and read the rows once."""
    sqlglot = pytest.importorskip("sqlglot")
    d = 40
    names = tuple(f'a "{i}"' for i in range(d))
    space = WhitenedSpace(names, np.tril(np.ones((d, d))), 2.0, np.zeros(d)).with_response(_PLAIN.response)
    sums = sql.RowSums(OrderedRows(space).joint(True), names, "y", 10**10)
    statement = sums.statement("clinic.visits AS dpregress_rows", dialect)
    (parsed,) = sqlglot.parse(statement, read=dialect)
    words = 2 if dialect == "sqlite" else 1
    assert len(parsed.selects) == words * (d + 1) * (d + 2) // 2 + 2
    assert len(parsed.selects) <= 2000
    for column in parsed.selects:
        assert isinstance(column.unalias().find(sqlglot.exp.AggFunc), sqlglot.exp.Sum | sqlglot.exp.Count)
    named = [table.sql(dialect=dialect) for table in parsed.find_all(sqlglot.exp.Table)]
    tables = [table for table in named if not table.startswith("dpregress_stage")]
    assert len(tables) == 1
    assert "visits" in tables[0]


def test_numbers_of_sqlite_are_exact(seed: int) -> None:
    """Of every size; written in decimals, SQLite reads some of them a bit off. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    numbers = [*(rng.normal(size=300) * 2.0 ** rng.integers(-1000, 1000, 300)).tolist(), 5e-324, -0.1, 0.0, 2.0**1000]
    numbers.append(FINITE)
    with closing(sqlite3.connect(":memory:")) as connection:
        for number in numbers:
            written = sql.literal(number, "sqlite")
            assert connection.execute(f"SELECT {written}").fetchone() == (number,)
