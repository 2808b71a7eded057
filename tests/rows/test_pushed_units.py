"""Fits in a database in which at most k rows of a unit count: what they give, cost and say, and what is refused."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import (
    GDP,
    Categorical,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPSurvival,
    MemoryLedger,
    Numeric,
    Schema,
    SQLQuery,
    release_moments,
)
from dpregress.errors import InvalidInput, LedgerError, SourceError
from dpregress.mechanisms import Gaussian
from dpregress.rows.readers.base import DuckDBReader
from tests.laws.spies import watched
from tests.rows.servers import run
from tests.rows.test_push_down import database_of

N, K, NAMES = 6_000, 3, ["a", "b"]
FEATURES = Schema({"a": Numeric(-4, 4), "b": Numeric(-4, 4)})
FITS: dict[str, tuple[Callable[..., Any], str]] = {
    "linear": (DPLinearRegression, "y"),
    "logistic": (DPLogisticRegression, "positive"),
    "Poisson": (DPPoissonRegressor, "events"),
    "survival": (partial(DPSurvival, cuts=(0.5, 1.0, 2.0)), "positive"),
}
SEEDED = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")


def rows_of(seed: int, most: int) -> pa.Table:
    """Up to ``most`` rows of a person, and some of nobody."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 2))
    y = x @ [1.0, -2.0] + rng.normal(size=N)
    people = rng.permutation(np.arange(N) // most)
    ids = pa.array([None if i % 50 == 0 else f"P{i:05d}" for i in people.tolist()])
    time = rng.exponential(np.exp(-x[:, 0] / 2))
    beside = {"y": y, "positive": (y > 0) + 0.0, "events": rng.poisson(np.exp(x[:, 0])) + 0.0, "time": time}
    return pa.table({"person": ids, "a": x[:, 0], "b": x[:, 1], **beside})


def in_duckdb(table: pa.Table, folder: Path) -> SQLQuery:
    path = folder / "rows.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return SQLQuery(f"duckdb:///{path}", "SELECT * FROM t")


def in_sqlite(table: pa.Table, folder: Path) -> SQLQuery:
    path = folder / "rows.db"
    kinds = ", ".join(f"{each.name} {'TEXT' if pa.types.is_string(each.type) else 'REAL'}" for each in table.schema)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE t ({kinds})")
        given = zip(*(column.to_pylist() for column in table.columns), strict=True)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * table.num_columns)})", given)
    return SQLQuery(f"sqlite:///{path}", "SELECT * FROM t")


KEPT = {"DuckDB": in_duckdb, "SQLite": in_sqlite}


def timed(case: str) -> dict[str, str]:
    """What a survival model is told beside."""
    return {"time": "time"} if case == "survival" else {}


def fitted(case: str, table: Any, engine: str | None, seed: int | None, **more: Any) -> tuple[Any, list[float], Any]:
    """The model, mu of each release, and the ledger."""
    kind, target = FITS[case]
    ledger = MemoryLedger(GDP(5.0), unit="person")
    model = kind(GDP(2.0), schema=FEATURES, ledger=ledger, random_state=seed)
    with watched() as steps, patch.object(Gaussian, "release", autospec=True, side_effect=Gaussian.release) as spied:
        model.fit_table(table, target, NAMES, engine, False, unit="person", max_rows_per_unit=K, **timed(case), **more)
    assert steps[:2] == ["charge", "draw"]
    assert ("read" in steps) == (engine is None)
    return model, [call.args[0].spend.mu for call in spied.call_args_list], ledger


@SEEDED
@pytest.mark.parametrize("database", KEPT)
@pytest.mark.parametrize("case", FITS)
def test_a_capped_fit_is_charged_and_noised_as_that_of_a_file(
    case: str, database: str, tmp_path: Path, seed: int
) -> None:
    """Where no unit has more than k rows, the coefficients are the same as well. No seed can break it."""
    table = rows_of(seed, K)
    pq.write_table(table, tmp_path / "rows.parquet")
    found, spent, ledger = fitted(case, KEPT[database](table, tmp_path), "push-down", seed)
    expected, of_file, ledger_of_file = fitted(case, tmp_path / "rows.parquet", None, seed)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-4, atol=1e-6)
    assert spent == pytest.approx(of_file, rel=1e-4)  # later ones are planned with what was released
    assert math.hypot(*spent) * K == pytest.approx(2.0, rel=1e-9)
    assert [charge.event for charge in ledger.charges] == [charge.event for charge in ledger_of_file.charges]
    here, there = found.privacy_, expected.privacy_
    assert (here.unit, here.max_rows_per_unit, here.promise) == ("person", K, there.promise)


@SEEDED
@pytest.mark.parametrize("database", KEPT)
def test_levels_and_classes(database: str, tmp_path: Path, seed: int) -> None:
    """The first stages of the statement find them, before rows are numbered. No seed can break it."""
    table = rows_of(seed, K)
    plan = np.where(table["a"].to_numpy() > 0, "it's", "no")
    answer = np.where(table["positive"].to_numpy() > 0, "yes", "NO")
    table = pa.table({"person": table["person"], "plan": plan, "b": table["b"], "answer": answer})
    pq.write_table(table, tmp_path / "rows.parquet")
    schema = Schema(
        {
            "plan": Categorical(("no", "it's"), missing="level"),
            "b": Numeric(-4, 4),
            "answer": Categorical(("NO", "yes")),
        }
    )
    fits = [
        DPLogisticRegression(GDP(2.0), schema=schema, random_state=seed).fit_table(
            rows, "answer", ["plan", "b"], engine, False, unit="person", max_rows_per_unit=K
        )
        for rows, engine in ((tmp_path / "rows.parquet", None), (KEPT[database](table, tmp_path), "push-down"))
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-4, atol=1e-6)


@SEEDED
@pytest.mark.parametrize("database", KEPT)
def test_columns_may_have_the_names_of_the_statement(database: str, tmp_path: Path, seed: int) -> None:
    """Also the one of ids. No seed can break it."""
    table = rows_of(seed, K)
    names = ["unit", "counts", "digest", "m", "c1", "T0"]
    cells = dict(zip(names, [table["a"], table["b"]] * 3, strict=True))
    table = pa.table({**cells, "C0": table["person"], "k": table["y"]})
    pq.write_table(table, tmp_path / "rows.parquet")
    schema = Schema({name: Numeric(-4, 4) for name in names} | {"k": Numeric(-9, 9)})
    fits = [
        DPLinearRegression(GDP(2.0), schema=schema, random_state=seed, recipe="one-shot").fit_table(
            rows, "k", names, engine, False, unit="C0", max_rows_per_unit=K
        )
        for rows, engine in ((tmp_path / "rows.parquet", None), (KEPT[database](table, tmp_path), "push-down"))
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@SEEDED
@pytest.mark.parametrize("case", FITS)
def test_the_same_rows_count_in_every_database(case: str, tmp_path: Path, seed: int) -> None:
    """Of units with more than k rows, bit for bit. No seed can break it."""
    table = rows_of(seed, 4 * K)
    models = [fitted(case, keep(table, tmp_path), "push-down", seed)[0] for keep in KEPT.values()]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    everybody = FITS[case][0](GDP(2.0 / K), schema=FEATURES, random_state=seed)
    everybody.fit_table(table, FITS[case][1], NAMES, progress=False, **timed(case))
    assert not np.array_equal(models[0].coef_, everybody.coef_)


@SEEDED
def test_rows_that_a_query_chooses_are_those_that_count(tmp_path: Path, seed: int) -> None:
    """Ids of other rows are left empty, as the documentation says. No seed can break it."""
    table = rows_of(seed, 4 * K).append_column("day", pa.array(np.random.default_rng(seed).permutation(N)))
    query = in_duckdb(table, tmp_path)
    chosen = f"ROW_NUMBER() OVER (PARTITION BY person ORDER BY day) <= {K}"
    blank = SQLQuery(query.url, f"SELECT a, b, y, CASE WHEN {chosen} THEN person END AS person FROM t")
    found, *_ = fitted("linear", blank, "push-down", seed)
    pq.write_table(table.sort_by("day"), tmp_path / "rows.parquet")
    expected, *_ = fitted("linear", tmp_path / "rows.parquet", None, seed)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-4, atol=1e-6)


@SEEDED
def test_moments_and_exposures(tmp_path: Path, seed: int) -> None:
    """A release without a response, and rates. No seed can break it."""
    table = rows_of(seed, K)
    pq.write_table(table, tmp_path / "rows.parquet")
    query = in_duckdb(table, tmp_path)
    schema = Schema({**FEATURES.columns, "y": Numeric(-9, 9)})
    moments = [
        release_moments(
            rows, columns=[*NAMES, "y"], privacy=GDP(1.0), schema=schema, engine=engine, random_state=seed,
            unit="person", max_rows_per_unit=K, progress=False,
        )
        for rows, engine in ((tmp_path / "rows.parquet", None), (query, "push-down"))
    ]  # fmt: skip
    totals = [each.sites[0].moments.total for each in moments]
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-6)
    assert moments[1].sites[0].privacy.max_rows_per_unit == K
    rates = [
        fitted("Poisson", rows, engine, seed, exposure="time")[0].coef_
        for rows, engine in ((tmp_path / "rows.parquet", None), (query, "push-down"))
    ]
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-4, atol=1e-6)


def test_a_query_of_postgresql(postgresql_url: str) -> None:
    """Ids of padded text, and of UUIDs, by the secure noise; the totals are compared in tests/laws."""
    run(
        postgresql_url,
        "CREATE TABLE visits AS SELECT CAST(i % 500 AS char(9)) AS person, md5((i % 500)::text)::uuid AS other, "
        "sin(i) AS a, cos(i) AS b, sin(i) - cos(i) AS y FROM generate_series(1, 6000) i",
    )
    query = SQLQuery(postgresql_url, "SELECT a, b, y, person FROM visits")
    model, spent, _ = fitted("linear", query, "push-down", None)
    assert math.hypot(*spent) * K == pytest.approx(2.0, rel=1e-9)
    assert model.privacy_.record_mu == pytest.approx(2 * 2.0 / K, rel=1e-9)
    fitted("linear", SQLQuery(postgresql_url, "SELECT a, b, y, other AS person FROM visits"), "push-down", None)


def test_neither_a_row_nor_an_id_is_read(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a database whose rows cannot be read. No seed can break it."""

    def unread(*_: object) -> Any:
        raise AssertionError("rows were read")

    monkeypatch.setattr(DuckDBReader, "batches", unread)
    fitted("linear", in_duckdb(rows_of(seed, K), tmp_path), "push-down", None)


def test_what_is_refused_costs_nothing(tmp_path: Path, seed: int) -> None:
    """Deterministic."""
    table = rows_of(seed, K)
    pq.write_table(table, tmp_path / "rows.parquet")
    query, ledger = in_duckdb(table, tmp_path), MemoryLedger(GDP(1.0), unit="person")
    weighted = Schema({**FEATURES.columns, "events": Numeric(0, 9)})
    cases: tuple[tuple[Any, dict[str, Any], dict[str, Any], str], ...] = (
        (table, {"engine": "push-down"}, {}, "push-down needs rows in a database"),
        (tmp_path / "rows.parquet", {"engine": "push-down"}, {}, "push-down needs rows in a database"),
        (
            query,
            {"engine": "push-down", "weights": "events"},
            {"schema": weighted},
            "ids or weights are read by themselves",
        ),
        (query, {"engine": "push-down", "diagnose": 0.1}, {}, "leave out diagnose="),
        (query, {}, {}, "Parquet and fit that; with a unit, push-down will do as well"),
        (query, {"engine": "dask"}, {}, "Parquet and fit that; with a unit, push-down will do as well"),
    )
    for rows, given, parameters, words in cases:
        model = DPLinearRegression(GDP(1.0), **{"schema": FEATURES, "ledger": ledger, **parameters})
        with pytest.raises(InvalidInput, match=words) as caught:
            model.fit_table(rows, "y", NAMES, progress=False, unit="person", max_rows_per_unit=K, **given)
        assert "\n" not in str(caught.value)
    records = MemoryLedger(GDP(1.0))
    with pytest.raises(LedgerError, match="the unit of this ledger is record"):
        DPLinearRegression(GDP(1.0), schema=FEATURES, ledger=records).fit_table(
            query, "y", NAMES, "push-down", False, unit="person", max_rows_per_unit=K
        )
    assert not ledger.charges
    assert not records.charges


def test_a_statement_that_fails_is_paid_once(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the window function fails on the private rows alone. No seed can break it."""

    def failing(statement: str, of: Any) -> Any:
        if "dpregress_tests" in statement or "LIMIT 0" in statement:
            return of(statement)
        raise RuntimeError("P00001")

    monkeypatch.setattr(DuckDBReader, "database", database_of(failing))
    query, ledger = in_duckdb(rows_of(seed, K), tmp_path), MemoryLedger(GDP(1.0), unit="person")
    with pytest.raises(SourceError, match="a budget that was charged stays charged") as caught:
        DPLinearRegression(GDP(1.0), schema=FEATURES, ledger=ledger).fit_table(
            query, "y", NAMES, "push-down", False, unit="person", max_rows_per_unit=K
        )
    assert "P00001" not in str(caught.value)
    assert len(ledger.charges) == 1
