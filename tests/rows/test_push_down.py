"""Fits whose sums a database computes: what they give, what is refused before the charge, what fails after it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import (
    GDP,
    Categorical,
    DPGammaRegressor,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPSurvival,
    MarginalsRegression,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
    SQLQuery,
    release_moments,
)
from dpregress.accounting import Relation
from dpregress.errors import InvalidInput, SourceError
from dpregress.rows import PushDownEngine, push_down_engine
from dpregress.rows.readers.base import Aggregator, DuckDBReader
from tests.rows.leaks import everything_said
from tests.rows.servers import run, running_postgresql

N, NAMES = 5_000, ["a", "b"]
FEATURES = Schema({"a": Numeric(-4, 4), "b": Numeric(-4, 4)})
TEXTS = Schema({**FEATURES.columns, "level": Numeric(0.01, 10)})
TIMED = Schema({**FEATURES.columns, "time": Numeric(0.01, 10)})
SCHEMA = Schema({"a": Numeric(-4, 4), "b": Numeric(-4, 4), "y": Numeric(-9, 9)})
PLANS = Schema({**SCHEMA.columns, "level": Categorical(("silver", "gold"))})


@pytest.fixture
def rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 2))
    y = x @ [1.0, -2.0] + rng.normal(size=N)
    level = rng.choice(["gold", "silver"], N)
    found = {"a": x[:, 0], "b": x[:, 1], "y": y, "level": level, "positive": (y > 0).astype(np.int64)}
    strange = rng.choice([np.nan, np.inf, 0.0, -1.0, 5e-324, 1e300], N)
    time = np.where(rng.random(N) < 0.1, strange, rng.exponential(3, N))
    events = rng.poisson(np.exp(x[:, 0]))
    counts = rng.poisson(np.clip(np.nan_to_num(time), 0, 10) * np.exp(x[:, 0] - 1))
    amount = rng.gamma(2, np.exp(x[:, 0]))
    return pa.table(
        {**found, "events": events, "amount": amount, "time": time, "counts": counts, "rank": np.digitize(y, [-1, 1])}
    )


@pytest.fixture
def connection(rows: pa.Table) -> Any:
    found = duckdb.connect()
    found.register("given", rows)
    found.execute("CREATE TABLE t AS SELECT * FROM given")
    return found


def model(**more: Any) -> Any:
    return DPLinearRegression(**{"privacy": GDP(1.0), "schema": SCHEMA, "recipe": "one-shot", **more})


ESTIMATORS: dict[str, Callable[..., Any]] = {
    "one shot": partial(DPLinearRegression, schema=SCHEMA, recipe="one-shot"),
    "one shot without bounds of the response": partial(DPLinearRegression, schema=FEATURES, recipe="one-shot"),
    "residual steps": partial(DPLinearRegression, schema=SCHEMA),
    "residual steps without bounds of the response": partial(DPLinearRegression, schema=FEATURES),
    "logistic": partial(DPLogisticRegression, schema=FEATURES),
    "levels": partial(DPLinearRegression, schema=PLANS),
    "text classes": partial(DPLogisticRegression, schema=FEATURES, classes=("silver", "gold")),
    "probit": partial(DPGLMRegressor, family="binomial", link="probit", schema=FEATURES),
    "Poisson": partial(DPPoissonRegressor, schema=FEATURES),
    "rates": partial(DPPoissonRegressor, schema=FEATURES),
    "rates of declared times": partial(DPPoissonRegressor, schema=TIMED),
    "Gamma": partial(DPGammaRegressor, schema=FEATURES),
    "three classes": partial(DPLogisticRegression, classes=(0, 1, 2), schema=FEATURES),
    "survival": partial(DPSurvival, cuts=(1.0, 3.0, 10.0), schema=FEATURES),
}


@pytest.mark.parametrize("case", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_a_fit_in_a_database_is_that_of_threads(case: str, connection: Any, seed: int) -> None:
    """The matrix library may round a row differently, by a unit of the grid. No seed can break it."""
    fitted, done = [], []
    exposure = {"exposure": "time"} if "rates" in case else {"time": "time"} if case == "survival" else {}
    targets = {
        "logistic": "positive",
        "probit": "positive",
        "Poisson": "events",
        "Gamma": "amount",
        "three classes": "rank",
        "text classes": "level",
        "survival": "positive",
    }
    target = "counts" if "rates" in case else targets.get(case, "y")
    for engine in (None, "push-down"):
        ledger = MemoryLedger(GDP(1.0))
        fit = ESTIMATORS[case](GDP(1.0), ledger=ledger, random_state=seed)
        table = connection.sql("SELECT * FROM t")
        features = [*NAMES, "level"] if case == "levels" else NAMES
        fit.fit_table(table, target, features, engine, lambda *seen: done.append(seen), **exposure)
        fitted.append(fit.coef_)
        assert [each.event for each in ledger.charges] == [GDP(1.0)]
    np.testing.assert_allclose(fitted[0], fitted[1], rtol=1e-4, atol=1e-6)
    assert done[-1] == (N, N)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_moments_are_released_from_a_database(connection: Any, seed: int) -> None:
    """No seed can break it."""
    public = PublicMoments.from_rows(np.random.default_rng(seed).normal(size=(100, 3)), names=[*NAMES, "y"])
    found = [
        release_moments(
            connection.sql("SELECT * FROM t"), columns=[*NAMES, "y"], privacy=GDP(1.0), public=public, engine=engine,
            random_state=seed, progress=False,
        )
        for engine in (None, PushDownEngine())
    ]  # fmt: skip
    totals = [each.sites[0].moments.total for each in found]
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-6)


PUBLIC = PublicMoments.from_rows(np.random.default_rng(0).normal(size=(50, 2)), np.arange(50.0), names=NAMES)
UNLABELLED = PublicMoments.from_rows(np.random.default_rng(5).normal(size=(90, 2)), names=NAMES)
LEVELS = Schema({**SCHEMA.columns, "positive": Categorical(("0", "1")), "events": Categorical(("0", "1", "2"))})


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_pair_tables_of_a_database_are_those_of_a_reader(connection: Any, tmp_path: Path, seed: int) -> None:
    """Bit for bit, of a relation and of a query by its URL. No seed can break it."""
    connection.execute(f"ATTACH '{tmp_path / 'rows.duckdb'}' AS file")
    connection.execute("CREATE TABLE file.t AS SELECT * FROM t; DETACH file")
    fit = MarginalsRegression(GDP(1.0), schema=LEVELS, random_state=seed)
    relation, query = connection.sql("SELECT * FROM t"), SQLQuery(f"duckdb:///{tmp_path / 'rows.duckdb'}", "FROM t")
    expected = fit.fit_table(relation, "y", progress=False).coef_
    for table in (relation, query):
        found = fit.fit_table(table, "y", engine="push-down", progress=False).coef_
        np.testing.assert_array_equal(found, expected)


def test_no_row_is_read(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a relation whose rows cannot be read. No seed can break it."""

    def unread(*_: object) -> Any:
        raise AssertionError("rows were read")

    monkeypatch.setattr(DuckDBReader, "batches", unread)
    for fit, target in (
        (DPLinearRegression(GDP(1.0), schema=SCHEMA), "y"),
        (MarginalsRegression(GDP(1.0), schema=LEVELS), "y"),
    ):
        fit.fit_table(connection.sql("SELECT * FROM t"), target, ["a"], engine="push-down", progress=False)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (("0", str(2**53)), "column 'positive' .* may be another number as well: read it as text"),
        (("0", "nan"), "a database compares column 'positive' with its levels as floats"),
    ],
)
def test_levels_that_a_database_cannot_code_are_refused_before_the_charge(
    levels: Any, words: str, connection: Any
) -> None:
    ledger = MemoryLedger(GDP(1.0), relation=Relation.ADD_REMOVE)
    fit = MarginalsRegression(
        GDP(1.0), schema=Schema({**LEVELS.columns, "positive": Categorical(levels)}), ledger=ledger
    )
    with pytest.raises(InvalidInput, match=words):
        fit.fit_table(connection.sql("SELECT * FROM t"), "y", ["positive"], engine="push-down", progress=False)
    assert not ledger.charges


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "the paper's recipe": ({"recipe": "paper", "public": PUBLIC, "schema": FEATURES}, {}, "leave out diagnose="),
    "text": (
        {"schema": Schema({**SCHEMA.columns, "level": Numeric(0, 1)})}, {"features": ["a", "level"]}, "column 'level'"
    ),
    "a diagnosis": ({}, {"diagnose": 0.05}, "leave out diagnose="),
    "a formula": ({"formula": "y ~ a + b"}, {"target": None, "features": None}, "computes no formulas"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_database_cannot_answer_is_refused_before_the_charge(case: str, connection: Any) -> None:
    parameters, given, words = REFUSED[case]
    ledger = MemoryLedger(GDP(1.0))
    with pytest.raises(InvalidInput, match=words) as caught:
        model(ledger=ledger, **parameters).fit_table(
            connection.sql("SELECT * FROM t"), **{"target": "y", "features": NAMES, "engine": "push-down", **given}
        )
    assert "\n" not in str(caught.value)
    assert not ledger.charges


@pytest.mark.parametrize(
    ("fit", "given", "words"),
    [
        (
            DPSurvival(GDP(1.0), cuts=tuple(range(1, 41)), schema=FEATURES), {"target": "positive", "time": "amount"},
            "up to 41 columns and pieces together, not 2 and 40: give fewer of cuts=, or no engine",
        ),
        (
            DPPoissonRegressor(GDP(1.0), schema=TEXTS), {"target": "events", "exposure": "level"},
            "column 'level' is not one of numbers alone",
        ),
    ],
)  # fmt: skip
def test_models_that_a_database_cannot_answer_are_refused_before_the_charge(
    fit: Any, given: dict[str, str], words: str, connection: Any
) -> None:
    ledger = MemoryLedger(GDP(1.0))
    with pytest.raises(InvalidInput, match=words) as caught:
        fit.set_params(ledger=ledger).fit_table(
            connection.sql("SELECT * FROM t"), features=NAMES, engine="push-down", **given
        )
    assert "\n" not in str(caught.value)
    assert not ledger.charges


@pytest.mark.parametrize("public", [None, UNLABELLED], ids=["bounds", "public rows"])
@pytest.mark.parametrize("cov_type", ["robust", "model"])
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_a_survival_model_is_that_of_a_reader(cov_type: str, public: Any, connection: Any, seed: int) -> None:
    """Coefficients, hazards and errors, with times that are none, at cuts and beyond the last. No seed can break it."""
    connection.execute("UPDATE t SET time = round(time) WHERE a > 0.5")
    fits = [
        DPSurvival(GDP(1.0), cuts=(1, 2, 5, 8), schema=FEATURES, public=public, cov_type=cov_type, random_state=seed)
        .fit_table(connection.sql("SELECT * FROM t"), "positive", NAMES, engine, False, time="time")
        for engine in (None, "push-down")
    ]  # fmt: skip
    for name in ("coef_", "log_hazards_", "log_hazard_errors_", "params", "bse"):
        np.testing.assert_allclose(getattr(fits[1], name), getattr(fits[0], name), rtol=0, atol=1e-6)


def test_other_sources_are_refused_before_the_charge(rows: pa.Table, tmp_path: Path) -> None:
    pq.write_table(rows, tmp_path / "rows.parquet")
    ledger = MemoryLedger(GDP(1.0))
    for table in (rows, tmp_path / "rows.parquet"):
        with pytest.raises(InvalidInput, match="push-down needs rows in a database"):
            model(ledger=ledger).fit_table(table, "y", NAMES, "push-down")
    wide = duckdb.sql(f"SELECT {', '.join(f'1.0::DOUBLE AS x{i}' for i in range(42))} FROM range(9)")
    schema = Schema({f"x{i}": Numeric(-1, 1) for i in range(42)})
    with pytest.raises(InvalidInput, match="up to 40 columns, not 41"):
        model(ledger=ledger, schema=schema).fit_table(wide, "x41", engine="push-down")
    classes = DPLogisticRegression(GDP(1.0), classes=(0, 1, 2), schema=schema, ledger=ledger)
    with pytest.raises(InvalidInput, match="push-down of 3 classes takes up to 19 columns, not 41"):
        classes.fit_table(wide.project("*, 1 AS y"), "y", [f"x{i}" for i in range(41)], engine="push-down")
    assert not ledger.charges


def test_a_missing_extra_is_named(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sqlglot", None)
    ledger = MemoryLedger(GDP(1.0))
    with pytest.raises(InvalidInput, match=r"pip install 'dpregress\[push-down\]'"):
        model(ledger=ledger).fit_table(connection.sql("SELECT * FROM t"), "y", NAMES, "push-down")
    assert not ledger.charges


def database_of(answer: Any) -> Any:
    """Planted: what a database says, changed."""
    original = DuckDBReader.database

    def changed(reader: DuckDBReader) -> Aggregator:
        found = original.fget(reader)  # type: ignore[attr-defined]
        return replace(found, answer=lambda statement: answer(statement, found.answer))

    return property(changed)


def test_a_database_of_other_arithmetic_is_refused_before_the_charge(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: one whose sums are one too large, and one that lacks a function."""
    ledger = MemoryLedger(GDP(1.0))
    for answer, words in (
        (
            lambda statement, of: [(row[0], row[1] + 1, *row[2:]) for row in of(statement)],
            "does not compute with numbers",
        ),
        (lambda statement, of: of(statement.replace("SQRT", "NO_SQRT")), "cannot compute test rows"),
    ):
        monkeypatch.setattr(DuckDBReader, "database", database_of(answer))
        with pytest.raises(InvalidInput, match=words):
            model(ledger=ledger).fit_table(connection.sql("SELECT * FROM t"), "y", NAMES, "push-down")
        monkeypatch.undo()
    assert not ledger.charges


@pytest.mark.parametrize("case", ["a cell", "the number of rows"])
def test_a_statement_that_fails_is_paid_once(case: str, connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And shows no cell."""
    ledger = MemoryLedger(GDP(1.0))
    query = "SELECT a, b, y FROM t"
    if case == "a cell":
        query = "SELECT CAST(CASE WHEN a > 2 THEN 'a31337' ELSE '1' END AS DOUBLE) AS a, b, y FROM t"
    else:
        checked = push_down_engine._check_arithmetic
        monkeypatch.setattr(
            push_down_engine, "_check_arithmetic",
            lambda table: (checked(table), connection.execute("DELETE FROM t WHERE a > 2")),
        )  # fmt: skip
    with pytest.raises(SourceError, match="a budget that was charged stays charged") as caught:
        model(ledger=ledger).fit_table(connection.sql(query), "y", NAMES, "push-down")
    assert "31337" not in everything_said(caught.value)
    assert len(ledger.charges) == 1


def test_no_sum_is_kept_or_printed(
    connection: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither on the model nor on the reader, and nothing is said: of the exact trace of the moments at the least."""
    answers: list[Any] = []

    def remembered(statement: str, of: Any) -> Any:
        answers.append(of(statement))
        return answers[-1]

    monkeypatch.setattr(DuckDBReader, "database", database_of(remembered))
    fit = model().fit_table(connection.sql("SELECT * FROM t"), "y", NAMES, "push-down", False)
    kept = repr(vars(fit)) + "".join(capfd.readouterr())
    # two kinds of sums over test rows, none over private ones, the second moment that whitens, the joint one
    ((*_, none),), ((*whitens, _, _),), ((*joint, _, _),) = answers[2:]
    assert (len(answers), none) == (5, 0)
    for number in (*whitens, *joint):
        assert abs(number) < 10**6 or str(number) not in kept


def test_a_query_of_sqlite(rows: pa.Table, tmp_path: Path) -> None:
    """Columns of declared numbers are pushed down, others refused: their cells are read as text."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        database.execute("CREATE TABLE t (a REAL, b, y REAL)")
        database.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", zip(*(rows[n].to_pylist() for n in ("a", "b", "y")), strict=True)
        )
        database.commit()
    query = SQLQuery(f"sqlite:///{tmp_path / 'rows.db'}", "SELECT * FROM t")
    assert model().fit_table(query, "y", ["a"], "push-down", False).coef_.shape == (1,)
    with pytest.raises(InvalidInput, match="column 'b'"):
        model().fit_table(query, "y", ["a", "b"], "push-down", False)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_computed_columns_of_sqlite(tmp_path: Path, seed: int) -> None:
    """A CAST has a type, and the mend of the message for other columns is one. No seed can break it."""
    rng = np.random.default_rng(seed)
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (plan TEXT, b, y REAL)")
        cells = [None, "x", "2.5", 1, 2.0, b"3"]
        given = [(rng.choice(["gold", "silver"]), cells[i % 6], rng.normal()) for i in range(N)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", given)
    url, gold = f"sqlite:///{tmp_path / 't.db'}", "CASE WHEN plan = 'gold' THEN 1 ELSE 0 END"
    bare = SQLQuery(url, f"SELECT {gold} AS a, b, y FROM t")
    with pytest.raises(
        InvalidInput, match=r"write it in the query as CAST\(.. AS DOUBLE PRECISION\), with CASE within"
    ):
        model().fit_table(bare, "y", NAMES, "push-down", progress=False)
    for kind in ("DOUBLE PRECISION", "INTEGER"):
        query = SQLQuery(
            url, f"SELECT CAST({gold} AS {kind}) AS a, CAST(b AS {kind}) AS b, CAST(y AS REAL) AS y FROM t"
        )
        fits = [
            model(random_state=seed).fit_table(query, "y", NAMES, engine, progress=False)
            for engine in (None, "push-down")
        ]
        np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-4)  # by a unit of the grid


@pytest.mark.parametrize("name", ["dpregress_stage_0", "dpregress_stage_3", "dpregress_view", "dpregress_types"])
def test_tables_of_sqlite_may_have_any_name(name: str, tmp_path: Path) -> None:
    """No seed can break it."""
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute(f"CREATE TABLE {name} (a REAL, b REAL, y REAL)")
        connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", [(0.1 * i, 1.0, 0.2) for i in range(30)])
    query = SQLQuery(f"sqlite:///{tmp_path / 't.db'}", f"SELECT * FROM {name}")
    assert model().fit_table(query, "y", NAMES, "push-down", progress=False).coef_.shape == (2,)


def test_columns_may_have_any_name(rows: pa.Table) -> None:
    """Those of the statement's own names too. No seed can break it."""
    names = [
        "dpregress_rows_of_the_query", "dpregress_before", "dpregress_stage_before", "dpregress_stage",
        "dpregress_number_0x1z8p1", "dpregress_0x1z8p1_number", "dpregre\u017fs_number___1",
    ]  # fmt: skip
    table = duckdb.connect().from_arrow(pa.table({**dict.fromkeys(names, rows["a"]), "y": rows["y"]}))
    schema = Schema({**{name: Numeric(-4, 4) for name in names}, "y": Numeric(-9, 9)})
    assert len(model(schema=schema).fit_table(table, "y", names, "push-down", progress=False).coef_) == len(names)


def test_a_table_that_spark_cannot_read_is_refused_before_the_charge(
    spark_session: Any, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a view that is gone once its columns are known. No seed can break it."""
    spark_session.createDataFrame(rows.select(["a", "b", "y"])).createOrReplaceTempView("dropped_later")
    table, ledger = spark_session.table("dropped_later"), MemoryLedger(GDP(1.0))
    trials = push_down_engine._trials

    def dropped(given: Any) -> Any:
        yield from trials(given)
        if spark_session.catalog.tableExists("dropped_later"):
            spark_session.catalog.dropTempView("dropped_later")

    monkeypatch.setattr(push_down_engine, "_trials", dropped)
    with pytest.raises(InvalidInput, match="cannot plan sums over the Spark table"):
        model(ledger=ledger).fit_table(table, "y", NAMES, "push-down", progress=False)
    assert not ledger.charges


@pytest.mark.parametrize("unit", [1e-85, 1e-35, 1e85])
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_units_do_not_matter_to_a_database(unit: float, rows: pa.Table, seed: int) -> None:
    """Columns and response in tiny and huge units, and a thousand cells far beyond. No seed can break it."""
    scaled = {name: rows[name].to_numpy() * unit for name in ("a", "b", "y")}
    scaled["a"][::5] = 1e300
    table = duckdb.connect().from_arrow(pa.table(scaled))
    schema = Schema({name: Numeric(-4 * unit, 4 * unit) for name in scaled})
    fits = [
        model(schema=schema, random_state=seed).fit_table(table, "y", NAMES, engine, progress=False)
        for engine in (None, "push-down")
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", ["linear", "Poisson"])
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_a_fit_to_huge_cells_is_that_of_a_reader(case: str, rows: pa.Table, seed: int) -> None:
    """Cells and responses of 1e120 and 1e300, some or all of them, with no bounds for the response.

    Neither fails after the charge. The matrix library may round a row differently. No seed can break it.
    """
    estimator = {"linear": DPLinearRegression, "Poisson": DPPoissonRegressor}[case]
    for far in (slice(0, N, 50), slice(None)):
        given = {name: rows[name].to_numpy().astype(np.float64) for name in ("a", "b", "events")}
        if case == "linear":
            given["a"][far] = 1e120
        given["events"][far] *= 1e300
        table = duckdb.connect().from_arrow(pa.table(given))
        fits = [
            estimator(GDP(1.0), schema=FEATURES, random_state=seed).fit_table(
                table, "events", NAMES, engine, progress=False
            )
            for engine in (None, "push-down")
        ]
        scale = np.abs([fit.intercept_ for fit in fits]).max()
        np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-4, atol=1e-6 * scale)
        assert fits[0].intercept_ == pytest.approx(fits[1].intercept_, rel=1e-6)


def test_a_type_that_the_database_cannot_cast_is_refused_before_the_charge() -> None:
    """Money of PostgreSQL arrives as whole numbers, and has no cast to floats. No seed can break it."""
    with running_postgresql() as url:
        run(url, "CREATE TABLE t AS SELECT 1::money AS a, 2.5::float8 AS b, 1::float8 AS y FROM generate_series(1, 50)")
        ledger = MemoryLedger(GDP(1.0))
        with pytest.raises(InvalidInput, match="cast all columns to DOUBLE PRECISION in the query") as caught:
            model(ledger=ledger).fit_table(SQLQuery(url, "SELECT * FROM t"), "y", NAMES, "push-down", progress=False)
        assert "\n" not in str(caught.value)
        assert not ledger.charges


def test_a_table_named_like_the_rows_does_not_stand_in_their_way(connection: Any) -> None:
    """No seed can break it."""
    connection.execute("CREATE TABLE dpregress_rows AS SELECT 1 AS other")
    model().fit_table(connection.sql("SELECT * FROM t"), "y", NAMES, "push-down", progress=False)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_whole_numbers_of_sqlite_are_those_of_its_reader(tmp_path: Path, seed: int) -> None:
    """A fraction in a column of whole numbers is missing, whoever adds up. No seed can break it."""
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (a INTEGER, b REAL, y REAL)")
        x = np.random.default_rng(seed).normal(size=(N, 3))
        x[::2, 0] = np.round(x[::2, 0])
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", x.tolist())
    query = SQLQuery(f"sqlite:///{tmp_path}/t.db", "SELECT * FROM t")
    fits = [
        model(random_state=seed).fit_table(query, "y", NAMES, engine, progress=False) for engine in (None, "push-down")
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-6)
