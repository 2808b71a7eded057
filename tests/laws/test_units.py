"""Bounded contributions: whatever one unit's rows become, no query moves by more than k sensitivities.

Tables are neighbours as docs/privacy/units.md has it: of the same length, equal outside one set of rows; inside it
all rows of the one table belong to one unit or to none, and all rows of the other likewise.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy.spatial.distance import pdist, squareform

from dpregress.accounting import GDP, ApproxDP, Composed, MemoryLedger, PrivacyStatement, Relation
from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput, NotAnswered
from dpregress.estimators import DPRidge
from dpregress.inputs.tables import training_table
from dpregress.inputs.units import bounded_units
from dpregress.mechanisms import Gaussian, SeededSampler
from dpregress.mechanisms.base import exact_total, float_sensitivity
from dpregress.public import Numeric, Schema
from dpregress.queries import Query, RowSketch
from dpregress.rows import CappedSource, ExposedSource, PrivateRows, RawRows, SQLQuery, ThreadedEngine
from dpregress.rows.readers.base import Reader
from dpregress.rows.readers.files import CSVReader, ParquetReader
from dpregress.rows.units import counted
from dpregress.trust import Central, Session
from tests import registry
from tests.laws.spies import watched
from tests.laws.test_accounting import _assert_paid_first, table_of
from tests.laws.test_sensitivity import some_rows
from tests.registry import ESTIMATORS, METRICS, QUERIES, SPACES, SPACES_BY_TIME, EstimatorEntry, QueryEntry
from tests.rows.tables import KEPT

Ids = list[str | None]
CLOSE = 1e-9


def capped(rows: RawRows, ids: Ids, most: int) -> PrivateRows:
    source = CappedSource(registry.private(rows).source, [pa.array(ids, pa.string())], most)
    return PrivateRows(source, ThreadedEngine(workers=1))


def neighbours(rng: np.random.Generator, n: int, most: int) -> tuple[np.ndarray, Ids, Ids]:
    """Rows that differ, and the ids of two tables: the unit owns any number of rows, up to four times k, in either."""
    ids: Ids = [None if rng.random() < 0.1 else f"other {i}" for i in rng.integers(n // 3 + 1, size=n)]
    changed = rng.choice(n, size=min(n, 4 * most), replace=False)
    one, other = ids.copy(), ids.copy()
    names = ("u", "u") if rng.random() < 0.5 else ("u", "v")
    for table, name, share in zip((one, other), names, rng.choice([0.0, 0.3, 1.0], size=2), strict=True):
        for place in changed:
            table[place] = name if rng.random() < share else None
    return changed, one, other


def check_sensitivity(entry: QueryEntry, space: str, seed: int) -> None:
    """The unit's rows are exchanged for others, its own number of rows with them."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    rows = some_rows(entry, query, rng, 20)
    assert rows.y is not None
    n = len(rows.x)
    if query.kept_apart:
        within = capped(rows, ["u"] * n, 1)
        _check_refused(query, within)
        _check_refused(query, PrivateRows(ExposedSource(within.source, np.ones(n))))
        return
    for most in (1, 2, 5):
        allowed = most * float_sensitivity(query, Relation.REPLACE_ONE)
        for _ in range(5):
            changed, ids, other_ids = neighbours(rng, n, most)
            taken = rng.integers(n, size=len(changed))
            order = np.arange(n)
            order[changed] = taken
            found = exact_total(query, capped(rows, ids, most))
            moved = np.linalg.norm(exact_total(query, capped(registry.taken(rows, order), other_ids, most)) - found)
            assert moved <= allowed, f"a unit of {most} rows moves the sum by {moved}, {allowed} is allowed for"


def _check_refused(query: Query[Any], rows: PrivateRows) -> None:
    """A unit's row may stand elsewhere in the other table: what has cells for each row is not about units."""
    reservation = MemoryLedger(GDP(1.0)).reserve(GDP(1.0))
    with pytest.raises(NotAnswered):
        Session(Central(), rows, SeededSampler(np.random.default_rng(0)), reservation)(query, GDP(1.0))
    assert not reservation.drawn.parts


def check_reached(entry: QueryEntry, space: str, seed: int) -> None:
    """Where a pair of rows reaches the sensitivity, k copies of it reach the k-fold, and no more than k count.

    Not where a row's place decides which cells it moves: k rows in k places cannot point the same way.
    """
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    if not query.tight or query.kept_apart or isinstance(query, RowSketch):
        return
    rows, most = some_rows(entry, query, rng, 30), 3
    assert rows.y is not None
    furthest = pdist(np.array([_unit_of(query, rows, i, most) for i in range(len(rows.x))]), METRICS[query.norm]).max()
    claim = most * query.sensitivity(Relation.REPLACE_ONE)
    assert 0.99 * claim <= furthest <= claim * (1 + CLOSE)


def statement_of(most: int) -> PrivacyStatement:
    """What a fit that spends 1 on each row says of itself."""
    whole = GDP(float(most))
    return PrivacyStatement(whole, whole, Composed.of([whole]), Relation.REPLACE_ONE, "u", (), False, None, most)


def check_record(entry: QueryEntry, space: str, seed: int) -> None:
    """One row is replaced by any other, with another unit's id: the total for a record that is stated holds."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    if query.kept_apart:
        return  # refused for units
    rows = some_rows(entry, query, rng, 20)
    n = len(rows.x)
    unit = float_sensitivity(query, Relation.REPLACE_ONE)
    for most in (1, 2, 5):
        claim = statement_of(most).record_mu
        for _ in range(10):
            ids: Ids = [None if rng.random() < 0.1 else f"{i}" for i in rng.integers(n // most + 1, size=n)]
            other, order, changed = ids.copy(), np.arange(n), int(rng.integers(n))
            other[changed] = str(rng.choice([name for name in ids if name is not None]))
            order[changed] = rng.integers(n)
            found = exact_total(query, capped(rows, ids, most))
            moved = float(np.linalg.norm(exact_total(query, capped(registry.taken(rows, order), other, most)) - found))
            assert moved <= claim * unit, f"a row moves the sum by {moved / unit} times what is hidden, not {claim}"


def check_record_reached(entry: QueryEntry, space: str, seed: int) -> None:
    """In both units that a row leaves and joins another row starts or stops to count: twice the sensitivity."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    if not query.tight or query.kept_apart or isinstance(query, RowSketch):
        return
    rows = some_rows(entry, query, rng, 30)
    single = np.array(
        [exact_total(query, registry.private(registry.taken(rows, slice(i, i + 1)))) for i in range(len(rows.x))]
    )
    a, b = np.unravel_index(squareform(pdist(single)).argmax(), (len(single), len(single)))
    unit = float_sensitivity(query, Relation.REPLACE_ONE)
    for most in (1, 3):
        # the row that changes, the other rows of the unit that it leaves, the rows of the one that it joins
        ids: Ids = ["u", *["u"] * most, *["v"] * most]
        one = registry.taken(rows, np.array([a, *[a] * (most - 1), b, *[b] * (most - 1), a]))
        other = registry.taken(rows, np.array([b, *[a] * (most - 1), b, *[b] * (most - 1), a]))
        moved = np.linalg.norm(
            exact_total(query, capped(other, ["v", *ids[1:]], most)) - exact_total(query, capped(one, ids, most))
        )
        assert moved <= statement_of(most).record_mu * unit, f"moved by {moved / unit} times what is hidden"
        assert moved >= 1.9 * query.sensitivity(Relation.REPLACE_ONE), "the stated total is never reached"


def _unit_of(query: Query, rows: RawRows, place: int, most: int) -> Vector:
    """The answer on a table of one unit with 2k copies of one row."""
    assert rows.y is not None
    copies = registry.taken(rows, np.full(2 * most, place))
    return exact_total(query, capped(copies, ["u"] * (2 * most), most))


def check_uncounted(entry: QueryEntry, space: str, seed: int) -> None:
    """A row that does not count adds exactly nothing, and leaving one out is never worse than replacing it."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    rows = some_rows(entry, query, rng, 20)
    assert not exact_total(query, capped(rows, [None] * len(rows.x), 3)).any()
    assert query.contribution() <= query.replacement()


LAWS = (check_sensitivity, check_reached, check_uncounted, check_record, check_record_reached)


#: Rows are left out before any space: with and without an exposure each time, the others where there is time.
_SPACES = [
    each
    if each.values[0] in ("published", "exposure")
    else pytest.param(*each.values, marks=[*each.marks, pytest.mark.slow])
    for each in SPACES_BY_TIME
]


@pytest.mark.parametrize("space", _SPACES)
@pytest.mark.parametrize("entry", QUERIES, ids=str)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_query(law: Callable[..., None], entry: QueryEntry, space: str, seed: int) -> None:
    """Deterministic bounds: no seed can break them."""
    law(entry, space, seed)


def check_rule(seed: int) -> None:
    """No unit has a say in which rows of others count; at most k rows of the one that changes count in either table."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        n, most = int(rng.integers(1, 60)), int(rng.integers(1, 6))
        changed, one, other = neighbours(rng, n, most)
        masks = [counted([pa.array(ids, pa.string())], n, most) for ids in (one, other)]
        same = np.setdiff1d(np.arange(n), changed)
        np.testing.assert_array_equal(masks[0][same], masks[1][same])
        assert max(mask[changed].sum() for mask in masks) <= most


def test_rule(seed: int) -> None:
    """Deterministic: no seed can break it."""
    check_rule(seed)


# ---------------------------------------------------------------- readers


def _concrete(kind: type[Reader]) -> Iterator[type[Reader]]:
    for below in kind.__subclasses__():
        yield from _concrete(below)
        if not below.__abstractmethods__ and below.__module__.startswith("dpregress."):
            yield below


def test_only_files_claim_an_order() -> None:
    """A reader that is added says that its rows have an order only where it is a law that they do."""
    ordered = {kind for kind in _concrete(Reader) if kind.ordered.fget(object.__new__(kind))}  # type: ignore[attr-defined]
    assert ordered == {CSVReader, ParquetReader}


@pytest.mark.parametrize("kind", KEPT)
def test_no_pass_of_any_reader_counts_more_than_k_rows_of_a_unit(kind: str, tmp_path: Path, seed: int) -> None:
    """In every pass, by the ids that stand in the same rows; or it is refused before a charge. Any seed."""
    rng = np.random.default_rng(seed)
    n, most = 3_000, 2
    ids = rng.permutation(np.where(np.arange(n) < n // 2, 0, rng.integers(n // 4, size=n)))
    table = pa.table({"id": ids, "x": ids + 0.5, "y": ids + 0.25})
    source, _ = training_table(KEPT[kind](table, tmp_path), "y", ["x"], None, (), "id")
    if kind not in ("pandas", "Polars", "Arrow", "Parquet", "CSV") and " files" not in kind and " at a URL" not in kind:
        with pytest.raises(InvalidInput, match=r"in no fixed order.*: write its result to Parquet and fit that"):
            bounded_units(source, "id", most)
        return
    bounded, _ = bounded_units(source, "id", most)
    expected = np.minimum(np.unique(ids, return_counts=True)[1], most)
    for rows in (n, 256, 77):
        found = np.concatenate([chunk.x[chunk.counts, 0] for chunk in bounded.chunks(rows)])
        assert np.array_equal(np.unique(found, return_counts=True)[1], expected)
        found = np.concatenate([chunk.y[chunk.counts] for chunk in bounded.responses().chunks(rows)])  # type: ignore[index]
        assert np.array_equal(np.unique(found, return_counts=True)[1], expected)


def test_a_query_that_an_index_reorders_is_refused_before_a_charge(tmp_path: Path) -> None:
    """SQLite reads the ids alone from the index, in its order, and all columns from the table, in that of the table."""
    with closing(sqlite3.connect(tmp_path / "visits.db")) as connection, connection:
        connection.execute("CREATE TABLE visits (id INTEGER, x REAL, y REAL)")
        rows = [(999 if i < 500 else i - 500, i / 1000, i / 1000) for i in range(1000)]
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
        connection.execute("CREATE INDEX by_person ON visits (id)")
    relation = duckdb.connect().sql("SELECT i // 2 AS id, 0.5 AS x, 0.5 AS y FROM range(1000) t(i)")
    lazy = pl.LazyFrame({"id": [1, 1], "x": [0.5, 0.5], "y": [0.5, 0.5]})
    query = SQLQuery(f"sqlite:///{tmp_path / 'visits.db'}", "SELECT id, x, y FROM visits")
    schema = Schema({"x": Numeric(0, 1), "y": Numeric(0, 1)})
    for source in (query, relation, lazy):
        for named in ({"target": "y", "features": ["x"]}, {"formula": "y ~ x"}):
            ledger = MemoryLedger(GDP(1.0), unit="id")
            model = DPRidge(GDP(1.0), schema=schema, ledger=ledger, formula=named.pop("formula", None))
            with pytest.raises(InvalidInput, match="write its result to Parquet") as caught:
                model.fit_table(source, **named, unit="id", max_rows_per_unit=1)  # type: ignore[arg-type]
            assert "\n" not in str(caught.value)
            assert not ledger.charges
    with pytest.raises(InvalidInput, match="may give its rows in any order"):
        DPRidge(GDP(1.0), schema=schema).fit(relation, np.zeros(1000), unit=np.arange(1000), max_rows_per_unit=1)


# ---------------------------------------------------------------- fits


def units(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(n // 2, size=n)


def check_promise(entry: EstimatorEntry, seed: int) -> None:
    """k-fold of what hides a row adds up to the budget, and the ledger of that unit holds just that. Any noise."""
    rng = np.random.default_rng(seed)
    x, y = entry.data(rng)
    for budget, most in ((GDP(9.0), 3), (ApproxDP(40.0, 1e-6), 2)):
        ledger = MemoryLedger(GDP(20.0), unit="person")
        table = table_of(x, y).assign(person=units(rng, len(x)))
        model = entry.make(rng, privacy=budget, ledger=ledger)
        with (
            watched() as steps,
            patch.object(Gaussian, "release", autospec=True, side_effect=Gaussian.release) as spied,
        ):
            model.fit_table(table, "y", unit="person", max_rows_per_unit=most)
        _assert_paid_first(steps)
        noise = math.hypot(*(call.args[0].spend.mu for call in spied.call_args_list))
        assert math.isclose(noise * most, budget.gaussian_mu, rel_tol=CLOSE), "the noise does not hide k rows"
        statement = model.privacy_
        assert math.isclose(statement.events.mu, budget.gaussian_mu, rel_tol=CLOSE)
        assert [charge.event for charge in ledger.charges] == [statement.promise]
        assert math.isclose(statement.record_mu * most, 2 * statement.mu, rel_tol=CLOSE)
        assert (statement.unit, statement.max_rows_per_unit) == ("person", most)
        assert len(model.coef_) == x.shape[1]


@pytest.mark.parametrize("entry", ESTIMATORS, ids=str)
def test_draws_are_the_promise_for_a_unit(entry: EstimatorEntry, seed: int) -> None:
    """Holds for any seed and any noise."""
    check_promise(entry, seed)
