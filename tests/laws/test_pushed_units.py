"""At most k rows of a unit count in a database, by a rule that looks at nothing but the rows of that unit.

Totals are those of NumPy, bit for bit, for ids in all spellings and columns that disregard case.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from hashlib import md5
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dpregress import GDP, Categorical, DPLinearRegression, MemoryLedger, Numeric, Schema, SQLQuery
from dpregress.accounting import Relation
from dpregress.coordinates.exact import ExactVector
from dpregress.errors import InvalidInput
from dpregress.inputs.units import bounded_units
from dpregress.mechanisms.base import float_sensitivity, unrounded_total
from dpregress.models import PoissonFamily
from dpregress.queries import ClippedScore, Counted, MeanResidual, ResponseHistogram, SecondMoment, UsableRowCount
from dpregress.rows import Encoder, PrivateRows, RawRows, Source, StreamSource, row_kernel
from dpregress.rows import push_down_sql as sql
from dpregress.rows.ordered import with_exposure
from dpregress.rows.ordered_units import counted_alone, counted_rows
from dpregress.rows.push_down_engine import _Table
from dpregress.rows.readers.base import DuckDBReader
from dpregress.rows.sources import reader_of
from tests import registry
from tests.laws.test_push_down import ENGINE, NAMES, PUSHED, as_asked, assert_same, wild_rows
from tests.laws.test_pushed_levels import DATABASES, in_duckdb, in_sqlite, keeping
from tests.laws.test_units import neighbours, statement_of
from tests.registry import SPACES, QueryEntry
from tests.rows.test_push_down import database_of

#: Ids of which some are one, some are none, and some look alike.
IDS = (
    "ann", "ANN", "Ann", " ann", "ann\t", "\r\nann ", "", " ", None, "nan", "1", "01", "1.0", "it's", 'a "quote"',
    "a b", "dpregress_number_0", "é", "e\u0301", "\U0001f600", "'; DROP TABLE t; --", "x" * 300, "\u00a0ann",
    "NULL", "\\x41",
)  # fmt: skip
BLANKS = " \t\r\n"


@pytest.fixture(params=DATABASES)
def kept(request: pytest.FixtureRequest) -> Callable[[pa.Table, Path], Any]:
    """How to keep a table in a database, with ids in a column that is compared without regard to case."""
    return keeping(request)


def table_of(rows: RawRows, ids: Any) -> pa.Table:
    beside = {} if rows.exposure is None else {"e": rows.exposure}
    cells = {**dict(zip(NAMES, rows.x.T, strict=True)), **({} if rows.y is None else {"y": rows.y}), **beside}
    return pa.table({"person": ids if isinstance(ids, pa.Array) else pa.array(ids, pa.string()), **cells})


def capped(table: Any, most: int, target: str | None = "y", exposed: str | None = None) -> Source:
    source = StreamSource(reader_of(table), Encoder.of(NAMES, target, None, exposed=exposed))
    return bounded_units(source, "person", most, in_place=True)[0]


def total(query: Any, source: Source) -> ExactVector:
    """The one that a mechanism uses, by the database."""
    return unrounded_total(query, PrivateRows(source, ENGINE.make(None)))


def counting(keys: list[bytes | None], numbers: pa.RecordBatch, most: int) -> np.ndarray:
    """Which rows count: of each unit those with the smallest digests."""
    units: dict[bytes, list[tuple[str, int]]] = {}
    for row, (key, m) in enumerate(zip(keys, numbers["m"].to_pylist(), strict=True)):
        if key:
            units.setdefault(key, []).append((md5(f"{md5(key).hexdigest()}/{m}".encode()).hexdigest(), row))
    found = np.zeros(len(keys))
    for rows in units.values():
        found[[row for _, row in sorted(rows)[:most]]] = 1
    return found


def expected_of(query: Any, table: pa.Table, most: int, source: Source) -> ExactVector:
    """By NumPy, with the program of the query: rows that do not count have no response, or are left out."""
    of = _Table.of(source)
    (program,) = query.programs(of.target is not None)
    sums = of.sums(program, table.num_rows)
    assert sums.cap is not None
    beside = tuple(sums.beside)
    columns = [*sums.features, *sums.beside.values(), sums.cap.ids]
    (numbers,) = row_kernel.capped_numbers(table.select(columns).combine_chunks().to_batches(), sums.cap, beside)
    keys = [None if each is None else each.strip(BLANKS).encode() for each in table["person"].to_pylist()]
    counts = counting(keys, numbers, most)
    given = numbers.select(list(sums.cap.columns)).append_column("counts", pa.array(counts))
    whole, usable, _ = sums.of_words(row_kernel.summed([given], sums.program, sums.given))
    # without the rule: the rows that count alone, as a table of its own
    alone = table.filter(pa.array(counts == 1)).select([*sums.features, *sums.beside.values()]).combine_chunks()
    plain = _Table.of(StreamSource(source.rows.reader, source.rows.encoder)).sums(program, table.num_rows)  # type: ignore[attr-defined]
    found, counted, _ = plain.of_words(row_kernel.summed(alone.to_batches(), plain.program, plain.given))
    assert (whole.tolist(), usable) == (found.tolist(), counted)
    return query.of_all([whole], usable)


def queries(rng: np.random.Generator) -> list[Any]:
    space = SPACES["intercept"](rng)
    unbounded = SPACES["plain"](rng)
    return [
        Counted(SecondMoment(space)),
        ClippedScore(space, PoissonFamily, rng.normal(size=space.order), 0.7),
        MeanResidual(unbounded, PoissonFamily, rng.normal(size=unbounded.order), -1.0, 1.0),
        ResponseHistogram(space, 2.0 ** np.arange(-8, 9)),
        UsableRowCount(space),
    ]


def test_totals_of_databases_are_those_of_the_reference(
    kept: Callable[[pa.Table, Path], Any], tmp_path: Path, seed: int
) -> None:
    """For ids in all spellings, and any number of rows of a unit. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    rows = registry.wild_rows(rng, 300)
    table = table_of(rows, [IDS[i] for i in rng.integers(len(IDS), size=300)])
    held = kept(table, tmp_path)
    for most in (1, 3, 400):
        source = capped(held, most)
        with ENGINE.make(None).ready(source, [SecondMoment]):
            for query in queries(rng):
                assert_same(total(query, source), expected_of(query, table, most, source), f"{most}, {query}")


@pytest.mark.parametrize("kind", ["intercept", "exposure"])
@pytest.mark.parametrize("entry", PUSHED, ids=str)
def test_rows_that_do_not_count_add_nothing(entry: QueryEntry, kind: str, seed: int) -> None:
    """To any query that is pushed down: its sums are those of the other rows. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[kind](rng), rng)
    rows = as_asked(wild_rows(rng, query), query)
    program, exposed = query.program(True), "e" if rows.exposure is not None else None
    program = program if exposed is None else with_exposure(program)
    beside = ("y",) if exposed is None else ("y", "exposed")
    table = table_of(rows, [None] * len(rows.x)).drop_columns("person")
    counts = rng.random(len(rows.x)) < 0.5
    masked = counted_alone(program)
    marked = table.append_column("counts", pa.array(counts + 0.0)).combine_chunks().to_batches()
    sums = sql.RowSums(masked, tuple(NAMES), "y", len(rows.x), exposed=exposed)
    found, usable, n = sums.of_words(row_kernel.summed(marked, masked, (*beside, "counts")))
    others = table.filter(pa.array(counts)).combine_chunks().to_batches()
    expected, kept_rows, _ = sums.of_words(row_kernel.summed(others, program, beside))
    assert (found.tolist(), usable, n) == (expected.tolist(), kept_rows, len(rows.x))


def test_rows_without_a_response_and_with_exposures(
    kept: Callable[[pa.Table, Path], Any], tmp_path: Path, seed: int
) -> None:
    """A column of exposures, and a table without a response. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    rows = registry.wild_rows(rng, 200)
    table = table_of(rows, [IDS[i] for i in rng.integers(len(IDS), size=200)])
    held, space = kept(table, tmp_path), SPACES["exposure"](rng)
    for target, exposed, query in (
        ("y", "e", Counted(SecondMoment(space))),
        (None, None, SecondMoment(SPACES["plain"](rng).with_response(None))),
    ):
        source = capped(held, 2, target, exposed)
        with ENGINE.make(None).ready(source, [SecondMoment]):
            assert_same(total(query, source), expected_of(query, table, 2, source), str(target))


def test_the_same_rows_count_in_every_pass(tmp_path: Path) -> None:
    """Also in a pass that needs the responses alone."""
    source = capped(in_duckdb(table_of(RawRows(np.ones((9, 3)), np.ones(9)), ["a"] * 9), tmp_path), 2)
    assert source.responses() is source
    assert source.capped
    with pytest.raises(InvalidInput, match="no fixed order"):
        next(iter(source.chunks(5)))


# ---------------------------------------------------------------- the bound


@pytest.mark.parametrize("database", ["DuckDB", "SQLite"])
def test_a_unit_of_a_thousand_rows_moves_a_total_by_k(database: str, tmp_path: Path, seed: int) -> None:
    """Its rows lie at the bound. Where all are equal, they reach it k times. Deterministic: no seed can break it."""
    keep = {"DuckDB": in_duckdb, "SQLite": in_sqlite}[database]
    rng = np.random.default_rng(seed)
    space = SPACES["plain"](rng)
    for query in (SecondMoment(space), ClippedScore(space, PoissonFamily, rng.normal(size=space.order), 0.7)):
        extremes = registry.extremal_rows(query)
        chosen = rng.integers(len(extremes.x), size=1000)
        many = RawRows(extremes.x[chosen], extremes.y[chosen])  # type: ignore[index]
        largest = 0.0
        for most in (3,):
            claim = most * query.contribution() * (1 + 1e-12)
            moved = norm(query, total(query, capped(keep(table_of(many, ["u"] * 1000), tmp_path), most)))
            assert moved <= claim
            for row in range(len(extremes.x)):
                same = registry.taken(extremes, np.full(20, row))
                found = norm(query, total(query, capped(keep(table_of(same, ["u"] * 20), tmp_path), most)))
                assert found <= claim
                largest = max(largest, found / claim)
        assert largest > 0.99 or not query.tight


def norm(query: Any, found: ExactVector) -> float:
    return float(query.norm.of(np.asarray(found)[None, :])[0])


@pytest.mark.parametrize("database", ["DuckDB", "SQLite"])
def test_neighbouring_tables_differ_by_k(database: str, tmp_path: Path, seed: int) -> None:
    """All rows of a unit are exchanged, in any number and any spelling of its id. Deterministic."""
    keep = {"DuckDB": in_duckdb, "SQLite": in_sqlite}[database]
    rng = np.random.default_rng(seed)
    n = 24
    for query in queries(rng):
        rows = registry.joined(registry.wild_rows(rng, n - 8), registry.taken(registry.extremal_rows(query), slice(8)))
        n_rows = len(rows.x)
        for most in (1, 3):
            changed, one, other = neighbours(rng, n_rows, most)
            order = np.arange(n_rows)
            order[changed] = rng.integers(n_rows, size=len(changed))
            spelt = [each if each is None or rng.random() < 0.5 else f" {each}\t" for each in other]
            tables = (table_of(rows, one), table_of(registry.taken(rows, order), spelt))
            before, after = (np.asarray(total(query, capped(keep(table, tmp_path), most))) for table in tables)
            assert query.norm.of((before - after)[None, :])[0] <= most * float_sensitivity(query, Relation.REPLACE_ONE)


def test_one_row_moves_a_total_by_what_is_stated(tmp_path: Path, seed: int) -> None:
    """A row that is replaced changes its place in the order of its unit. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    query = SecondMoment(SPACES["intercept"](rng))
    unit = float_sensitivity(query, Relation.REPLACE_ONE)
    extremes = registry.extremal_rows(query)
    for most in (1, 2):
        for _ in range(12):
            rows = registry.taken(extremes, rng.integers(len(extremes.x), size=12))
            ids = [str(i) for i in rng.integers(3, size=12)]
            order = np.arange(12)
            order[0] = 5
            for other, claim in ((ids[0], 1.0), (ids[1], statement_of(most).record_mu)):
                tables = (table_of(rows, ids), table_of(registry.taken(rows, order), [other, *ids[1:]]))
                before, after = (np.asarray(total(query, capped(in_sqlite(table, tmp_path), most))) for table in tables)
                assert np.linalg.norm(before - after) <= claim * unit


def test_rows_are_drawn_without_regard_to_their_response(tmp_path: Path, seed: int) -> None:
    """Of a table of few different rows too: 3,000 units have ten rows each, and two count.

    The share of ones has a standard deviation of 0.0065, and is off by more than 0.04 with probability below 1e-8.
    """
    rng = np.random.default_rng(seed)
    ids, y = np.repeat(np.arange(3_000), 10), rng.permutation(np.tile([0.0, 1.0], 15_000))
    x = np.zeros((30_000, 3))
    x[:, 0] = ids % 2
    held = in_duckdb(table_of(RawRows(x, y), pa.array(ids)), tmp_path)
    source = capped(held, 2)
    program = Counted(SecondMoment(SPACES["plain"](rng))).programs(True)[0]
    sums = _Table.of(source).sums(program, 30_000)
    beside = tuple(sums.beside)
    batch = pa.table({**{name: x[:, j] for j, name in enumerate(NAMES)}, "y": y}).combine_chunks().to_batches()[0]
    assert sums.cap is not None
    (numbers,) = row_kernel.capped_numbers([batch.append_column("person", pa.array(ids))], sums.cap, beside)
    counts = counting([str(each).encode() for each in ids], numbers, 2) == 1
    assert counts.sum() == 6_000
    for stratum in (0, 1):
        assert abs(y[counts & (x[:, 0] == stratum)].mean() - 0.5) < 0.04


@pytest.mark.parametrize("scale", [1e-24, 1e-12, 1e-5, 1.0, 1e7, 1e13, 1e15, 1e18, 1e30])
def test_rows_are_drawn_without_regard_to_the_size_of_cells(scale: float, tmp_path: Path, seed: int) -> None:
    """Such as farads, or times in nanoseconds: 3,000 units have ten rows each, and three count.

    Their mean has a standard deviation of 0.009 scales, and is off by more than 0.07 with probability below 1e-13.
    """
    rng = np.random.default_rng(seed)
    x = np.zeros((30_000, 3))
    x[:, 0] = scale * rng.normal(size=30_000)
    table = table_of(RawRows(x, np.ones(30_000)), [str(i // 10) for i in range(30_000)])
    program = SecondMoment(SPACES["plain"](rng)).programs(True)[0]
    sums = _Table.of(capped(in_duckdb(table.slice(0, 1), tmp_path), 3)).sums(program, 30_000)
    assert sums.cap is not None
    columns = [*sums.features, *sums.beside.values(), sums.cap.ids]
    counts = counted_rows(table.select(columns).combine_chunks().to_batches()[0], sums.cap, tuple(sums.beside))
    drawn = x[counts["counts"].to_numpy() == 1, 0]
    assert len(drawn) == 9_000
    assert abs(drawn.mean() - x[:, 0].mean()) < 0.07 * scale


# ---------------------------------------------------------------- ids


def units_of(table: Any, most: int = 1) -> int:
    """The number of rows that count."""
    source = capped(table, most)
    with ENGINE.make(None).ready(source, [UsableRowCount]):
        return int(np.asarray(total(UsableRowCount(SPACES["plain"](np.random.default_rng(0))), source))[0])


KINDS: dict[str, tuple[pa.Array, int]] = {
    "whole numbers": (pa.array([1, 1, 2**53, 2**53 + 1, -1, None, 2**63 - 1, 2**63 - 2, 0], pa.int64()), 7),
    "decimals": (pa.array([Decimal("1.10"), Decimal("1.1"), Decimal("1.11"), None], pa.decimal128(30, 2)), 2),
    "truth values": (pa.array([True, False, True, None]), 2),
    "enumerations": (pa.array(["b", "it's", None, "b ", "B"]).dictionary_encode(), 3),
    "texts": (pa.array(["a", "A", "a ", "", " ", None, "1", "1.0", "nan", "a\0b", "a\0c"]), 7),
    "nothing": (pa.array([None, None], pa.string()), 0),
}


@pytest.mark.parametrize("case", KINDS)
def test_ids_of_every_type_are_told_apart_as_by_a_reader(case: str) -> None:
    """One row counts for each id. Deterministic."""
    ids, expected = KINDS[case]
    n = len(ids)
    connection = duckdb.connect()
    connection.register("given", table_of(RawRows(np.zeros((n, 3)), np.ones(n)), ids))
    assert units_of(connection.sql("SELECT * FROM given")) == expected


def test_ids_of_duckdb_that_arrow_has_as_text() -> None:
    """Deterministic."""
    names = ", ".join(f"0.0::DOUBLE AS {name}" for name in (*NAMES, "y"))
    uuid = UUID(int=7)
    relation = duckdb.connect().sql(
        f"SELECT CAST(a AS UUID) AS person, {names} FROM (VALUES ('{uuid}'), ('{uuid}')) v(a)"
    )
    assert units_of(relation) == 1


def test_cells_of_sqlite_are_ids_where_they_are_whole_numbers_or_text(tmp_path: Path) -> None:
    """Each group below is one id, or none. Deterministic."""
    groups = [
        (1, 1.0, "1", " 1 "), (0, -0.0, "0"), ("1.0",), ("a",), ("A",), (2**53 - 1, float(2**53 - 1)), (2**53,),
        (2**53 + 1, "9007199254740993"), (-7, -7.0), ("it's",), ("\U0001f600",), ("\0",), ("\0a", " \0a\n"), ("a\0",),
    ]  # fmt: skip
    none = [None, "", " \t", b"a", b"1", 1e300, 0.5, float("inf"), float(2**53), 2.0**60]
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (person COLLATE NOCASE, x0 REAL, x1 REAL, x2 REAL, y REAL)")
        cells = [(cell,) for cell in [*(cell for group in groups for cell in group), *none]]
        connection.executemany("INSERT INTO t VALUES (?, 0, 0, 0, 1)", cells)
    assert units_of(SQLQuery(f"sqlite:///{path}", "SELECT * FROM t")) == len(groups)


def test_ids_that_are_not_told_apart_are_refused_before_the_charge() -> None:
    """Floats as everywhere, and bytes. Deterministic."""
    ledger = MemoryLedger(GDP(1.0), unit="person")
    model = DPLinearRegression(GDP(1.0), schema=Schema({"x0": Numeric(0, 1), "y": Numeric(0, 1)}), ledger=ledger)
    refused = {"a database finds ids in text and whole numbers": [b"a", b"b"], "ids above 2\\^53": [1.0, 2.0]}
    for words, ids in refused.items():
        table = duckdb.connect().from_arrow(pa.table({"person": ids, "x0": [0.0, 1.0], "y": [0.0, 1.0]}))
        with pytest.raises(InvalidInput, match=words) as caught:
            model.fit_table(table, "y", ["x0"], "push-down", unit="person", max_rows_per_unit=1)
        assert "\n" not in str(caught.value)
    assert not ledger.charges


@pytest.mark.parametrize(
    ("written", "planted"),
    [
        ("<= 2", "<= 3"),
        ("ENCODE(unit)", "LOWER(unit)"),
        ("LENGTH(unit) > 0", "TRUE"),
        ("MD5(", "REVERSE("),
        ("ORDER BY digest", "ORDER BY digest DESC"),
    ],
)
def test_a_database_that_numbers_rows_otherwise_is_refused_before_the_charge(
    written: str, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: one more row of each unit, ids without regard to case, rows without an id, another order."""
    asked: list[str] = []

    def changed(statement: str, of: Any) -> Any:
        asked.append(statement)
        return of(statement.replace(written, planted))

    monkeypatch.setattr(DuckDBReader, "database", database_of(changed))
    rng = np.random.default_rng(0)
    table = duckdb.connect().from_arrow(table_of(registry.wild_rows(rng, 20), ["a"] * 20))
    ledger = MemoryLedger(GDP(1.0), unit="person")
    schema = Schema({name: Numeric(0, 1) for name in (*NAMES, "y")})
    with pytest.raises(InvalidInput, match="does not compute"):
        DPLinearRegression(GDP(1.0), schema=schema, ledger=ledger).fit_table(
            table, "y", NAMES, "push-down", unit="person", max_rows_per_unit=5
        )
    assert written in asked[0]
    assert not ledger.charges


# ---------------------------------------------------------------- statements


@pytest.mark.parametrize("dialect", sql.DIALECTS)
def test_statements_in_every_dialect(dialect: str) -> None:
    """They can be parsed again, and the id is used for numbering alone; its column may have any name."""
    sqlglot = pytest.importorskip("sqlglot")
    name = 'dpregress_number_0 "unit"'
    columns = {"a": Numeric(-1, 1), "plan": Categorical(("it's", "no"), missing="level")}
    encoder = Encoder.of(list(columns), "y", Schema(columns))
    table = pa.table({name: ["x"], "a": [1.0], "plan": ["no"], "y": [1.0]})
    source = StreamSource(reader_of(duckdb.connect().from_arrow(table)), encoder)
    capped_rows, _ = bounded_units(source, name, 3, in_place=True)
    space = SPACES["plain"](np.random.default_rng(0))
    program = SecondMoment(space).programs(True)[0]
    statement = _Table.of(capped_rows).sums(program, 10**10).statement("clinic.visits AS dpregress_rows", dialect)
    (parsed,) = sqlglot.parse(statement, read=dialect)
    tables = [each.sql(dialect=dialect) for each in parsed.find_all(sqlglot.exp.Table)]
    assert len([each for each in tables if not each.startswith("dpregress_stage")]) == 1
    assert Counter(type(each).__name__ for each in parsed.find_all(sqlglot.exp.Window)) == {"Window": 1}
    assert "dpregress_number_0_" not in statement.replace("dpregress_number_0 ", "")
    assert "<= 3" in statement
