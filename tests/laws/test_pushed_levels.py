"""Levels, classes and missing cells that a database tells apart are those of the encoder, bit for bit.

Texts are compared by their bytes, whatever the collation of their column, and no text of a level is ever read as SQL.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dpregress import GDP, Categorical, DPLinearRegression, DPLogisticRegression, MemoryLedger, Numeric, Schema
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms.base import unrounded_total
from dpregress.models import BinomialFamily
from dpregress.public.coding import domain_of
from dpregress.queries import Blocks, ClippedScore, Counted, SecondMoment, UsableRowCount
from dpregress.rows import (
    CodedParquet,
    CodedSource,
    Encoder,
    OrderedRows,
    PrivateRows,
    SQLQuery,
    StreamSource,
    row_kernel,
)
from dpregress.rows import push_down_sql as sql
from dpregress.rows.ordered_codes import coded_columns, counting
from dpregress.rows.ordered_levels import PushedColumn, opening
from dpregress.rows.push_down_text import text_literal
from dpregress.rows.readers.base import DuckDBReader
from dpregress.rows.sources import reader_of
from tests.laws.test_push_down import ENGINE, assert_same, in_spark, pushed
from tests.rows.servers import run
from tests.rows.test_push_down import database_of

N = 400
#: Texts that a careless statement would read as something else, or that a collation would take for one another.
NASTY = (
    "gold", "GOLD", "gold ", "it's", 'a "quote"', "back\\slash", "\\x41", "A", "?", ":name", "%s", "$1", "{0}", "`",
    "dpregress_before", "dpregress_number_0", "dpregress_stage_0", "é", "e\u0301", "日本", "\U0001f600", "--", "/* a",
    "'; DROP TABLE t; --", "NULL", "true", "x" * 300,
)  # fmt: skip
OTHERS = (None, "", "Gold", " gold", "gold  ", "É", "e", "x" * 299, "none", "\ufffd", "'", "\\")
FEATURES = {
    "plan": Categorical(NASTY, missing="it's"),
    "smoker": Categorical(("false", "true"), missing="level"),
    "grade": Categorical(("2", "1.0", "7", "none")),
    "age": Numeric(-5, 5, missing="indicator"),
    "known": Numeric(0, 1),
}
CLASSES = ("no", "YES")


@pytest.fixture
def rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)

    def drawn(cells: Any, kind: pa.DataType) -> pa.Array:
        return pa.array([cells[i] for i in rng.integers(len(cells), size=N)], kind)

    return pa.table(
        {
            "plan": drawn((*NASTY, *OTHERS), pa.string()),
            "smoker": drawn((True, False, None), pa.bool_()),
            "grade": drawn((1, 2, 7, 8, -1, None), pa.int64()),
            "age": drawn((1.5, -2.0, None, float("nan"), float("inf"), 1e300, 0.0), pa.float64()),
            "known": drawn((True, False, None), pa.bool_()),
            "answer": drawn(("no", "YES", "yes", "No", " no", None, "maybe"), pa.string()),
        }
    )


#: Where tables of texts are kept.
DATABASES = ["DuckDB", "SQLite", "PostgreSQL", "Spark"]


def in_duckdb(table: pa.Table, _: Path) -> Any:
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("CREATE TABLE t AS SELECT * FROM given")
    for name in text_columns(table):
        connection.execute(f"ALTER TABLE t ALTER COLUMN {name} TYPE VARCHAR COLLATE NOCASE")
    return connection.sql("SELECT * FROM t")


def in_sqlite(table: pa.Table, folder: Path) -> SQLQuery:
    """Truth values are whole numbers; texts are in a column that disregards case."""
    path = folder / f"{uuid4().hex}.db"
    kinds = {pa.string(): "TEXT COLLATE NOCASE", pa.int64(): "INTEGER", pa.float64(): "REAL", pa.bool_(): "INTEGER"}
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"CREATE TABLE t ({', '.join(f'{field.name} {kinds[field.type]}' for field in table.schema)})"
        )
        given = zip(*(column.to_pylist() for column in table.columns), strict=True)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * table.num_columns)})", given)
    return SQLQuery(f"sqlite:///{path}", "SELECT * FROM t")


def in_postgresql(url: str, table: pa.Table, _: Path) -> SQLQuery:
    from adbc_driver_postgresql import dbapi

    name = f"t{uuid4().hex}"
    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, table, mode="create")
    blind = "CREATE COLLATION IF NOT EXISTS blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    changed = (f"ALTER TABLE {name} ALTER COLUMN {each} TYPE text COLLATE blind" for each in text_columns(table))
    run(url, blind, *changed)
    return SQLQuery(url, f"SELECT * FROM {name}")


def text_columns(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if pa.types.is_string(field.type)]


def keeping(request: pytest.FixtureRequest) -> Callable[[pa.Table, Path], Any]:
    """How to keep a table in the database that a fixture names, with texts compared without regard to case."""
    if request.param == "Spark":
        return partial(in_spark, request.getfixturevalue("spark_session"))
    if request.param == "PostgreSQL":
        return partial(in_postgresql, request.getfixturevalue("postgresql_url"))
    return {"DuckDB": in_duckdb, "SQLite": in_sqlite}[request.param]


@pytest.fixture(params=DATABASES)
def kept(request: pytest.FixtureRequest) -> Callable[[pa.Table, Path], Any]:
    """How to keep a table in a database, with texts in columns that are compared without regard to case."""
    return keeping(request)


def encoder_of(features: dict[str, Any], target: str | None = "answer", classes: tuple[str, ...] = CLASSES) -> Encoder:
    return Encoder.of(list(features), target, Schema(features), classes if target else ())


def space_of(encoder: Encoder) -> WhitenedSpace:
    d = len(encoder.features)
    response = None if encoder.target is None else ResponseScale(encoder.target, 0.3, 1.7, 2.0)
    entries = np.tril(np.sin(np.arange(1.0, (d + 1) ** 2 + 1).reshape(d + 1, d + 1))) + 2 * np.eye(d + 1)
    return WhitenedSpace(encoder.features, entries, 3.0, np.full(d, 0.4), intercept=True, response=response)


def expected_of(query: Any, encoder: Encoder, table: pa.Table) -> Any:
    """What the encoder makes of the rows, by NumPy."""
    x, y = encoder.x(table), encoder.y(table)
    cells = {f"x{j}": x[:, j] for j in range(x.shape[1] if query.reads_features else 0)}
    batches = pa.table({**cells, **({} if y is None else {"y": y})}).to_batches()
    sums = sql.RowSums(query.program(y is not None), tuple(cells), None if y is None else "y", len(x))
    whole, usable, _ = sums.of_words(row_kernel.summed(batches, sums.program, tuple(sums.beside)))
    return query.of_sums(whole, usable)


def test_levels_and_classes_are_those_of_the_encoder(
    kept: Callable[[pa.Table, Path], Any], rows: pa.Table, tmp_path: Path
) -> None:
    """Texts that differ in a byte are different levels. Deterministic: no seed can break it."""
    encoder = encoder_of(FEATURES)
    space = space_of(encoder)
    source = StreamSource(reader_of(kept(rows, tmp_path)), encoder)
    unbounded = space.with_response(ResponseScale("answer", 0.0, 1.0))
    score = ClippedScore(unbounded, BinomialFamily, np.linspace(-0.2, 0.2, len(encoder.features) + 1), 0.5)
    with ENGINE.make(None).ready(source, [SecondMoment]):
        for query in (Counted(SecondMoment(space)), score, UsableRowCount(space)):
            assert_same(pushed(query, source), expected_of(query, encoder, rows), type(query).__name__)


def test_levels_are_counted_as_a_reader_codes_them(
    kept: Callable[[pa.Table, Path], Any], rows: pa.Table, tmp_path: Path
) -> None:
    """Deterministic: no seed can break it."""
    table = rows.select(["plan", "smoker", "grade", "age", "answer"])
    rules = Schema(
        {
            "plan": Categorical(NASTY, missing="level"), "smoker": Categorical(("false", "true")),
            "grade": Categorical(("1", "2", "7"), ordered=True), "age": Numeric(-3, 3), "answer": Categorical(CLASSES),
        }
    )  # fmt: skip
    domain = domain_of(rules, bins=4)
    source = CodedParquet(reader_of(kept(table, tmp_path)), domain)
    query = Blocks(domain, [(0, 1), (0, 4), (1, 2), (2, 3)])
    expected = unrounded_total(query, PrivateRows(CodedSource(table, domain)))
    with ENGINE.make(None).ready(source, [Blocks]):
        assert_same(unrounded_total(query, PrivateRows(source, ENGINE.make(None))), expected, "blocks")


NUMBERS: dict[str, tuple[pa.Array, tuple[str, ...]]] = {
    "whole numbers": (pa.array([0, 1, 2, None, -3], pa.int8()), ("1.0", "-3", "1000", "words")),
    "floats": (pa.array([0.1, -0.0, 2.5, None, np.nan, np.inf, 5e-324], pa.float64()), ("0", "0.1", "2.50", "5e-324")),
    "narrow floats": (pa.array([0.1, 0.2, 2.5, 1e9], pa.float32()), ("0.1", "2.5", "0.20000000298023224", "1e9")),
    "decimals": (pa.array([Decimal("1.10"), Decimal("2.00"), None], pa.decimal128(10, 2)), ("1.1", "2", "3.333")),
    "decimals that are truth values": (pa.array([Decimal("1.0"), Decimal("0.0")], pa.decimal128(3, 1)), ("true", "no")),
    "enumerations": (pa.array(["b", "it's", None, "c"]).dictionary_encode(), ("it's", "b", "B")),
    "truth values": (pa.array([True, False, None]), ("1", "false")),
    "truth values without levels": (pa.array([True, False, None]), ("no", "yes")),
}


@pytest.mark.parametrize("case", NUMBERS)
@pytest.mark.parametrize("missing", ["first", "last", "level"])
def test_other_types_are_compared_as_by_a_reader(case: str, missing: str, tmp_path: Path) -> None:
    """Numbers by value, also narrow floats, whose spelling may be that of a level. No seed can break it."""
    cells, levels = NUMBERS[case]
    table = pa.table({"a": cells})
    declared = {"first": levels[0], "last": levels[-1]}.get(missing, missing)
    encoder = encoder_of({"a": Categorical(levels, missing=declared)}, None)
    source = StreamSource(reader_of(in_duckdb(table, tmp_path)), encoder)
    query = SecondMoment(space_of(encoder))
    with ENGINE.make(None).ready(source, [SecondMoment]):
        assert_same(pushed(query, source), expected_of(query, encoder, table), case)


def test_cells_of_sqlite_have_types_of_their_own(tmp_path: Path) -> None:
    """Numbers, texts and bytes of one column are the levels that its reader finds, but for texts of equal value."""
    levels = ("1", "2.5", "gold", "1e30", "0", "9007199254740993", "-7.0", "é")
    cells = [
        1, 1.0, 2.5, "2.5", "gold", "GOLD", b"gold", "é", "é".encode(), 1e30, 0, -0.0, 2**53, 2**53 + 1, float(2**53),
        -7, -7.0, 2**62, -(2**63), "", None, float("inf"), 1e300, b"\xff", "words", "9007199254740993",
    ]  # fmt: skip
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a, b NUMERIC COLLATE NOCASE, y REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?, 1.0)", [(cell, cell) for cell in cells])
    reader = reader_of(SQLQuery(f"sqlite:///{path}", "SELECT * FROM t"))
    encoder = encoder_of({"a": Categorical(levels, missing="level"), "b": Categorical(levels, missing="gold")}, "y", ())
    query, source = SecondMoment(space_of(encoder)), StreamSource(reader, encoder)
    (table,) = reader.batches(["a", "b", "y"], N)
    with ENGINE.make(None).ready(source, [SecondMoment]):
        assert_same(pushed(query, source), expected_of(query, encoder, table), "cells of every type")


def test_texts_of_equal_value_are_not_declared(kept: Callable[[pa.Table, Path], Any], tmp_path: Path) -> None:
    """What a reader would match by its value is matched by its spelling alone, on every database."""
    cells = ["1", "1.0", " 1", "+1", "true", "1e0", "2"]
    encoder = encoder_of({"a": Categorical(("2", "1"))}, None)
    source = StreamSource(reader_of(kept(pa.table({"a": cells}), tmp_path)), encoder)
    query = SecondMoment(space_of(encoder))
    spelt = pa.table({"a": [cell if cell in ("1", "2") else None for cell in cells]})
    assert_same(pushed(query, source), expected_of(query, encoder, spelt), "by spelling")


def test_padded_texts_and_enumerations_of_postgresql(postgresql_url: str) -> None:
    """A text of fixed length has its spaces, as its reader sees it. No seed can break it."""
    name = f"t{uuid4().hex}"
    run(
        postgresql_url,
        f"CREATE TYPE {name}_metal AS ENUM ('gold', 'it''s')",
        f'CREATE TABLE {name} (a char(6), b {name}_metal, c name, d varchar(9) COLLATE "C", y float8)',
        f"INSERT INTO {name} VALUES ('gold', 'gold', 'gold', 'gold', 1), ('it''s', 'it''s', 'it''s', 'it''s', 2), "
        "(NULL, NULL, NULL, NULL, 3), ('gold  ', 'gold', '', '', 4)",
    )
    reader = reader_of(SQLQuery(postgresql_url, f"SELECT * FROM {name}"))
    levels = ("other", "gold", "gold  ", "it's", "it's  ")
    encoder = encoder_of(dict.fromkeys("abcd", Categorical(levels, missing="level")), "y", ())
    query, source = SecondMoment(space_of(encoder)), StreamSource(reader, encoder)
    (table,) = reader.batches(list("abcdy"), N)
    with ENGINE.make(None).ready(source, [SecondMoment]):
        assert_same(pushed(query, source), expected_of(query, encoder, table), "types of text")


@pytest.mark.parametrize("database", ["DuckDB", "SQLite"])
def test_classes_may_hold_any_character(database: str, tmp_path: Path) -> None:
    """Also one that PostgreSQL does not have, and line breaks. No seed can break it."""
    classes = ("a\0b", "a", "line\nbreak\r\n", "\t'")
    table = pa.table({"age": [1.0, 2.0, 3.0, 4.0, 5.0], "answer": [*classes, "a\0c"]})
    keep = {"DuckDB": in_duckdb, "SQLite": in_sqlite}[database]
    encoder = encoder_of({"age": Numeric(0, 9)}, "answer", classes)
    query, source = SecondMoment(space_of(encoder)), StreamSource(reader_of(keep(table, tmp_path)), encoder)
    with ENGINE.make(None).ready(source, [SecondMoment]):
        assert_same(pushed(query, source), expected_of(query, encoder, table), database)


# ---------------------------------------------------------------- statements


@pytest.mark.parametrize("dialect", sql.DIALECTS)
def test_no_text_of_a_level_is_read_as_sql(dialect: str) -> None:
    """The statement parses, reads one table, and holds levels between quotes alone."""
    sqlglot = pytest.importorskip("sqlglot")
    column = PushedColumn.of("pl an", pa.string(), Categorical(NASTY))
    space = WhitenedSpace(column.declared.design("pl an"), np.eye(len(NASTY) - 1), 2.0, np.zeros(len(NASTY) - 1))
    program = OrderedRows(space).joint(False)
    stages = (*opening([column], None), *program.stages)
    sums = sql.RowSums(
        row_kernel.Program.of(stages, program.left, program.right), ("pl an",), None, 9, frozenset(["pl an"])
    )
    statement = sums.statement("clinic.visits AS dpregress_rows", dialect)
    (parsed,) = sqlglot.parse(statement, read=dialect)
    named = [table.sql(dialect=dialect) for table in parsed.find_all(sqlglot.exp.Table)]
    assert [name for name in named if not name.startswith("dpregress_stage")] == ["clinic.visits AS dpregress_rows"]
    outside = re.sub("'[^']*'", "", statement)  # no level has a quote of its own
    assert not [
        level for level in (*NASTY[:24], "DROP") if len(level) > 3 and level in outside and "stage" not in level
    ]
    assert "dpregress_number" not in outside


def test_texts_are_written_exactly(postgresql_url: str) -> None:
    """As each database reads them back."""
    from adbc_driver_postgresql import dbapi

    texts = [*NASTY, *filter(None, OTHERS), "line\nbreak"]
    with closing(sqlite3.connect(":memory:")) as connection:
        assert [connection.execute(f"SELECT {text_literal(text, 'sqlite')}").fetchone()[0] for text in texts] == texts
    assert [duckdb.sql(f"SELECT {text_literal(text, 'duckdb')}").fetchall() for text in texts] == [
        [(t,)] for t in texts
    ]
    with dbapi.connect(postgresql_url) as server, server.cursor() as cursor:
        for setting in ("on", "off"):
            cursor.execute(f"SET standard_conforming_strings = {setting}")
            for text in texts:
                cursor.execute(f"SELECT {text_literal(text, 'postgres')}")
                assert cursor.fetchone() == (text,)


# ---------------------------------------------------------------- the bound, and refusals


@pytest.mark.parametrize("planted", [np.nan, np.inf, -1.0, 0.5, 1e300, 2.0**60])
def test_no_comparison_moves_a_row_beyond_the_bound(
    planted: float, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a database whose comparisons of texts give any number. Deterministic: no seed can break it."""
    monkeypatch.setattr(row_kernel, "_places", lambda texts, _: np.full(len(texts), planted))
    encoder = encoder_of(FEATURES)
    query = SecondMoment(space_of(encoder))
    columns = [PushedColumn.of(name, rows.schema.field(name).type, declared) for name, declared in FEATURES.items()]
    program = query.program(True)
    stages = (*opening(columns, PushedColumn("answer", pa.string(), CLASSES)), *program.stages)
    pushed_program = row_kernel.Program.of(stages, program.left, program.right)
    for i in range(40):
        sums = sql.RowSums(pushed_program, tuple(FEATURES), "answer", 1)
        batches = rows.slice(i, 1).to_batches()
        whole, usable, _ = sums.of_words(row_kernel.summed(batches, pushed_program, ("y",)))
        assert np.linalg.norm(np.asarray(query.of_sums(whole, usable))) <= query.contribution() * (1 + 1e-12)


@pytest.mark.parametrize("planted", [np.nan, -1.0, 0.5, 99.0, 1e300])
def test_no_comparison_counts_a_row_elsewhere(planted: float, rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted, as above: a row is counted once, with its unknown level. Deterministic: no seed can break it."""
    monkeypatch.setattr(row_kernel, "_places", lambda texts, _: np.full(len(texts), planted))
    domain = domain_of(Schema({"plan": Categorical(NASTY, missing="A"), "answer": Categorical(CLASSES)}), bins=2)
    columns = coded_columns(domain, rows.schema)
    program = counting(domain, [0, 1])
    program = row_kernel.Program.of((*opening(columns, None), *program.stages), program.left, bins=program.bins)
    sums = sql.RowSums(program, domain.names, None, N)
    whole, usable, n = sums.of_words(row_kernel.summed(rows.select(["plan", "answer"]).to_batches(), program, ()))
    assert whole.reshape(domain.sizes)[NASTY.index("A"), 0] == usable == n == N


def test_a_database_that_disregards_case_is_refused(rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: bytes of texts in small letters. Before the charge; no seed can break it."""
    monkeypatch.setattr(
        DuckDBReader, "database",
        database_of(lambda statement, of: of(statement.replace("ENCODE(CAST(", "ENCODE(LOWER("). replace(
            " AS VARCHAR)) WHEN", ")) WHEN"))),
    )  # fmt: skip
    ledger, schema = MemoryLedger(GDP(1.0)), Schema({**FEATURES, "answer": Categorical(CLASSES)})
    model = DPLogisticRegression(GDP(1.0), schema=schema, ledger=ledger)
    with pytest.raises(InvalidInput, match="does not compute"):
        model.fit_table(duckdb.connect().from_arrow(rows), "answer", engine="push-down", progress=False)
    assert not ledger.charges


REFUSED: dict[str, tuple[pa.Array, Any, str]] = {
    "numbers in text": (pa.array(["1", "2"]), Numeric(0, 1), "column 'a' is not one of numbers alone"),
    "bytes": (pa.array([b"x", b"y"]), Categorical(("x", "y")), "column 'a' is of type binary: compute its text"),
    "large levels": (
        pa.array([1, 2]),
        Categorical(("1", str(2**53))),
        "may be another number as well: read it as text",
    ),
    "no finite level": (pa.array([1.0, 2.0]), Categorical(("1", "nan")), "cast the column to text in the query"),
    "many levels": (pa.array(["1", "2"]), Categorical(tuple(map(str, range(42)))), "takes up to 40 columns, not 41"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_database_cannot_tell_apart_is_refused_before_the_charge(case: str) -> None:
    cells, declared, words = REFUSED[case]
    table = duckdb.connect().from_arrow(pa.table({"a": cells, "y": np.ones(len(cells))}))
    ledger = MemoryLedger(GDP(1.0))
    model = DPLinearRegression(GDP(1.0), schema=Schema({"a": declared, "y": Numeric(0, 1)}), ledger=ledger)
    with pytest.raises(InvalidInput, match=words) as caught:
        model.fit_table(table, "y", engine="push-down", progress=False)
    assert "\n" not in str(caught.value)
    assert not ledger.charges


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_a_fit_with_levels_in_a_database_is_that_of_threads(tmp_path: Path, seed: int) -> None:
    """The matrix library may round a row differently, by a unit of the grid. No seed can break it."""
    rng = np.random.default_rng(seed)
    plan, age = rng.choice(["gold", "silver", "?"], 5_000), rng.normal(size=5_000)
    answer = np.where(age + (plan == "gold") + rng.logistic(size=5_000) > 0, "yes", "no")
    age[::7] = np.nan
    table = in_duckdb(pa.table({"plan": plan, "age": age, "answer": answer}), tmp_path)
    schema = Schema(
        {
            "plan": Categorical(("silver", "gold")), "age": Numeric(-4, 4, missing="indicator"),
            "answer": Categorical(("no", "yes")),
        }
    )  # fmt: skip
    fits = [
        DPLogisticRegression(GDP(1.0), schema=schema, random_state=seed).fit_table(
            table, "answer", engine=engine, progress=False
        )
        for engine in (None, "push-down")
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-4, atol=1e-6)
    assert list(fits[1].classes_) == ["no", "yes"]


def test_rows_of_numbers_need_no_stage_of_their_own() -> None:
    """The statement over numbers is the one without levels."""
    columns = [PushedColumn("a", pa.float64()), PushedColumn("b", pa.decimal128(9, 2))]
    assert opening(columns, PushedColumn("y", pa.int64())) == ()


def test_the_kernel_reads_every_text_of_arrow() -> None:
    """Those of Spark are of any of these types."""
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        program = row_kernel.Program.of(
            ({"k": row_kernel.term(1), "y": row_kernel.place_of_text(row_kernel.name("c0"), ("a", "b"))},
             {"k": row_kernel.name("k"), "h": row_kernel.case(row_kernel.name("y") >= 0.0, 1, 0)}), ("h",),
        )  # fmt: skip
        batches = pa.table({"a": pa.array(["b", None, "c", "a"], kind)}).to_batches()
        (found,) = row_kernel.summed(batches, program, ())
        assert np.frombuffer(found["low"][0].as_py(), np.int64).tolist() == [2]
