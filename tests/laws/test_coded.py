"""The laws of queries over coded rows, of choices among candidates, and of regressions on their releases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import softmax
from scipy.stats import chi2
from sklearn.base import clone

from dpregress import GDP, ZCDP, ApproxDP, Categorical, MarginalsRegression, MemoryLedger, Numeric, PureDP, Schema
from dpregress.accounting import Relation
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.errors import BudgetExceeded, InvalidInput, NotAnswered
from dpregress.estimators.marginals_release import release_marginals
from dpregress.mechanisms import Sampler, SecureSampler, SeededSampler
from dpregress.mechanisms.base import exact_answer, exact_total
from dpregress.public.coding import domain_of
from dpregress.queries import TableQuery
from dpregress.rows import ArraySource, CodedSource, LevelRows, PrivateRows, RawRows, ThreadedEngine
from dpregress.rows.codes import decoded
from dpregress.trust import Central, Local, Session
from tests import registry
from tests.laws.noise_laws import Case
from tests.laws.spies import CHARGE, DRAW, NOISE, READ, Remembering, Silent, watched
from tests.registry import CODED_QUERIES, DOMAINS, MECHANISMS, TABLE_SOLVERS, CodedEntry, TableSolverEntry

FAILURE = 1e-7
ROWS = 300


def private(x: Matrix) -> PrivateRows:
    return PrivateRows(ArraySource(x), ThreadedEngine(workers=1))


def size(query: TableQuery[Any], move: Vector) -> float:
    """Of a move, in the query's norm."""
    return float(query.norm.of(move))


def check_sensitivity(entry: CodedEntry, domain: Domain, seed: int) -> None:
    """No row that comes, goes or changes moves the statistic further than claimed; coming reaches the claim.

    Sums are exact, so no slack is left for rounding but that of the norm itself.
    """
    rng = np.random.default_rng(seed)
    query = entry.make(domain, rng)
    held = registry.coded_rows(rng, domain, ROWS).x
    tops = np.array(domain.sizes, dtype=np.float64) - 1
    arriving = np.vstack([registry.coded_rows(rng, domain, 40).x, 0 * tops, tops])
    # among rows that are all alike one that is not moves independence, or anything else estimated from them, most
    largest = max(_moves(query, x, arriving, rng) for x in (held, np.zeros_like(held)))
    if entry.reached:
        assert largest >= 0.99 * query.sensitivity(Relation.ADD_REMOVE)


def _moves(query: TableQuery[Any], x: Matrix, arriving: Matrix, rng: np.random.Generator) -> float:
    """The largest move that a row makes by coming, none of which is beyond the claim."""
    whole = exact_answer(query, private(x))
    largest = 0.0
    for row in arriving:
        moved = size(query, exact_answer(query, private(np.vstack([x, row]))) - whole)
        assert moved <= query.sensitivity(Relation.ADD_REMOVE) * (1 + 1e-12)
        # on one row alone, where nothing can cancel
        empty = exact_answer(query, private(row[None])) - query.statistic(np.zeros_like(exact_total(query, private(x))))
        largest = max(largest, moved, size(query, empty))
        other = x.copy()
        other[rng.integers(ROWS)] = row
        moved = size(query, exact_answer(query, private(other)) - whole)
        assert moved <= query.sensitivity(Relation.REPLACE_ONE) * (1 + 1e-12)
    return largest


def check_exact(entry: CodedEntry, domain: Domain, seed: int) -> None:
    """The sum is the same to the last bit in any order and any division: integers times powers of two."""
    rng = np.random.default_rng(seed)
    query = entry.make(domain, rng)
    x = registry.coded_rows(rng, domain, ROWS).x
    whole = exact_total(query, private(x))
    assert whole.shape == query.value(query.row_map(RawRows(x, None))).shape
    np.testing.assert_array_equal(whole, exact_total(query, private(rng.permutation(x))))
    cut = int(rng.integers(1, ROWS))
    parts = [exact_total(query, private(part)) for part in (x[:cut], x[cut:])]
    np.testing.assert_array_equal(whole, parts[0] + parts[1])
    assert exact_answer(query, private(x)).shape == (query.size,)


def check_noise(entry: CodedEntry, domain: Domain, seed: int) -> None:
    """The law of each mechanism that answers it, under neighbours of both kinds. Fails with 1e-7."""
    rng = np.random.default_rng(seed)
    query = entry.make(domain, rng)
    rows = replace(private(registry.coded_rows(rng, domain, ROWS).x), engine=Remembering())
    answering = [each for each in MECHANISMS if each.answered_by(Central(), query, rows)]
    assert answering
    for mechanism, relation in itertools.product(answering, Relation):
        spend, found = mechanism.spend(0.8), []
        for _ in range(min(mechanism.releases, 200)):
            reservation = MemoryLedger(spend, relation=relation).reserve(spend, relation=relation)
            sampler = SeededSampler(rng)
            found.append(Central().release(rows, query, spend, sampler=sampler, reservation=reservation))
        mechanism.law(Case(query, rows, spend, found, relation), FAILURE / (2 * len(answering)))


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("entry", CODED_QUERIES, ids=str)
@pytest.mark.parametrize("law", [check_sensitivity, check_exact, check_noise], ids=lambda law: law.__name__)
def test_query(law: Callable[..., None], entry: CodedEntry, domain: str, seed: int) -> None:
    law(entry, DOMAINS[domain], seed)


@pytest.mark.parametrize("domain", DOMAINS)
def test_level_rows(domain: str, seed: int) -> None:
    """Whatever is fed in becomes a code of its attribute, each row alone; declared codes stay as they are."""
    rng = np.random.default_rng(seed)
    x = registry.coded_rows(rng, DOMAINS[domain], ROWS).x
    row_map = LevelRows(DOMAINS[domain])
    bounded = row_map(RawRows(x, None))
    sizes = np.array(DOMAINS[domain].sizes)
    assert (bounded.x == np.floor(bounded.x)).all()
    assert (bounded.x >= 0).all()
    assert (bounded.x < sizes).all()
    known = np.isfinite(x) & (x >= 0) & (x < sizes) & (x == np.floor(x))
    np.testing.assert_array_equal(bounded.x[known], x[known])
    alone = np.vstack([row_map(RawRows(x[i : i + 1], None)).x for i in range(ROWS)])
    np.testing.assert_array_equal(bounded.x, alone)
    assert row_map.radius == math.sqrt(len(sizes))
    np.testing.assert_array_equal(bounded.x, LevelRows(DOMAINS[domain].nominal)(RawRows(x, None)).x)


RULES = Schema(
    {
        "own": Categorical(("1", "2", "3"), missing="level"),
        "named": Categorical(("u", "v", "w"), missing="w"),
        "first": Categorical(("-1", "7", "40000000000")),
        "steps": Categorical(("0", "1", "2", "3"), missing="1", ordered=True),
        "filled": Numeric(-1, 3, fill=3),
        "middle": Numeric(0, 8, missing="indicator"),
    }
)


def strange_table(rng: np.random.Generator, rows: int) -> pa.Table:
    """Cells of all kinds, in columns of texts and of numbers."""
    cells = ["1", "2", "3", "u", "w", "-1", "7", "40000000000", "0", "0.5", "1.0", None, "", "nan", "1e400", "missing"]
    return pa.table({name: rng.choice(np.array(cells, dtype=object), rows) for name in RULES.columns})


def test_cells_alone(seed: int) -> None:
    """A cell's level does not depend on the other rows, whatever they hold."""
    rng = np.random.default_rng(seed)
    table = strange_table(rng, 200)
    numbers = rng.choice([*range(-1, 9), 1e300, -np.inf, np.nan, 0.5], size=(200, len(RULES.columns)))
    for held in (table, pa.table(dict(zip(table.column_names, numbers.T, strict=True)))):
        domain = domain_of(RULES, bins=4)
        source, levels = CodedSource(held, domain), LevelRows(domain)
        whole = np.vstack([levels(chunk).x for chunk in source.chunks(200)])
        np.testing.assert_array_equal(whole, np.vstack([levels(chunk).x for chunk in source.chunks(1)]))


def test_cells_without_a_level() -> None:
    """They count as what the schema names: in texts, in integers, and in floats that a gap made of them."""
    domain = domain_of(RULES, bins=4)
    expected = [3, 2, 0, 1, 3, 2]
    gaps = pa.table({name: pa.array([None, None], pa.int64()) for name in RULES.columns})
    for table in (
        gaps,
        gaps.cast(pa.schema([(name, pa.float64()) for name in gaps.column_names])),
        gaps.cast(pa.schema([(name, pa.string()) for name in gaps.column_names])),
        pa.table({name: ["?", "missing"] for name in RULES.columns}),
    ):
        for known in (domain, domain.nominal):
            assert LevelRows(known)(next(CodedSource(table, known).chunks(9))).x.tolist() == [expected, expected]
    for kind in (pa.int64(), pa.float64(), pa.string()):
        table = pa.table({"own": [1, 3], "first": [-1, 40_000_000_000]}).cast(pa.schema({"own": kind, "first": kind}))
        coded = next(CodedSource(table, domain.select(["own", "first"])).chunks(9))
        assert coded.x.tolist() == [[0, 0], [2, 2]]
    for codes in (np.array([[3, 2, 1, 0, 3, 2], [0, 0, 0, 0, 0, 0]]), np.full((1, 6), 2)):
        again = next(CodedSource(decoded(domain, codes), domain).chunks(9))
        np.testing.assert_array_equal(LevelRows(domain)(again).x, codes)
    with pytest.raises(InvalidInput, match="separate level for missing cells"):
        domain_of(Schema({"a": Categorical(("0", "1"), missing="level", ordered=True), "b": Numeric(0, 1)}))


@pytest.mark.parametrize(
    "sampler", [pytest.param(SecureSampler(), marks=pytest.mark.nightly), None], ids=["secure", "seeded"]
)
def test_choice(sampler: Sampler | None, seed: int) -> None:
    """Chosen as often as ``exp(eps q / (2 Delta))`` says, by a chi-square test. Fails with 1e-6 at most."""
    rng = np.random.default_rng(seed)
    sampler = SeededSampler(rng) if sampler is None else sampler
    domain = DOMAINS["mixed"]
    query = next(entry for entry in CODED_QUERIES if entry.name == "model errors").make(domain, rng)
    rows = private(registry.coded_rows(rng, domain, 5).x)
    qualities, delta, draws = exact_answer(query, rows), query.sensitivity(Relation.ADD_REMOVE), 4000
    epsilon = 6 * delta / np.ptp(qualities)  # the likeliest is then e^3 times as likely as the least likely
    rho = ZCDP(epsilon**2 / 8)
    counts = np.zeros(query.size)
    for _ in range(draws):
        reservation = MemoryLedger(rho, relation=Relation.ADD_REMOVE).reserve(rho, relation=Relation.ADD_REMOVE)
        counts[Central().release(rows, query, rho, sampler=sampler, reservation=reservation).chosen] += 1
    chances = softmax(epsilon * qualities / (2 * delta))
    expected = draws * chances
    kept = expected > 20
    observed, hoped = np.append(counts[kept], counts[~kept].sum()), np.append(expected[kept], expected[~kept].sum())
    statistic = float(np.sum((observed - hoped) ** 2 / np.maximum(hoped, 1.0)))
    assert statistic < chi2.isf(1e-7, len(observed)) + 15  # a merged class of few counts is not quite normal


def test_questions_meet_their_mechanism() -> None:
    """No choice by Gaussian noise, no table by a choice, no hidden n from users; nothing is drawn."""
    rng = np.random.default_rng(0)
    domain = DOMAINS["mixed"]
    queries = {entry.name: entry.make(domain, rng) for entry in CODED_QUERIES}
    rows = private(registry.coded_rows(rng, domain, 5).x)
    for trust, name, spend in (
        (Central(), "model errors", GDP(0.1)),
        (Central(), "one-way tables", ZCDP(0.1)),
        (Central(), "one-way tables", ApproxDP(0.1, 1e-6)),
        (Local(), "one-way tables", GDP(0.1)),
    ):
        budget = ZCDP(5.0)
        reservation = MemoryLedger(budget, relation=Relation.ADD_REMOVE).reserve(budget, relation=Relation.ADD_REMOVE)
        with pytest.raises(NotAnswered):
            trust.release(rows, queries[name], spend, sampler=Silent(), reservation=reservation)
        assert not reservation.drawn.parts


# ---------------------------------------------------------------- methods


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("entry", TABLE_SOLVERS, ids=str)
def test_draws_are_the_promise(entry: TableSolverEntry, domain: str, seed: int) -> None:
    """Whatever the rows: the budget is drawn to the end, in no more rounds than stated, and the answer is finite."""
    rng = np.random.default_rng(seed)
    found = DOMAINS[domain]
    promise, solver = entry.make(found, 0.9)
    for x in (registry.coded_rows(rng, found, 500).x, np.full((1, len(found.sizes)), np.nan)):
        reservation = MemoryLedger(promise, relation=Relation.ADD_REMOVE).reserve(promise, relation=Relation.ADD_REMOVE)
        estimate = solver.estimate(Session(Central(), private(x), SeededSampler(rng), reservation))
        assert math.isclose(reservation.drawn.rho, promise.rho, rel_tol=1e-6)
        assert len(reservation.drawn.parts) <= solver.rounds
        assert estimate.events == reservation.drawn.parts
        assert np.isfinite(estimate.gram).all()
        np.testing.assert_allclose(estimate.gram, estimate.gram.T)
        assert (estimate.mixture.chances >= 0).all()


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("entry", [entry for entry in TABLE_SOLVERS if entry.kind.__name__ != "AIM"], ids=str)
def test_without_noise_moments_are_exact(entry: TableSolverEntry, domain: str, seed: int) -> None:
    """With a budget without bound the matrix is that of the rows: 1e-6 of n."""
    rng = np.random.default_rng(seed)
    found = DOMAINS[domain]
    x = LevelRows(found)(registry.coded_rows(rng, found, 400)).x
    promise, solver = entry.make(found, 1e9)
    reservation = MemoryLedger(promise, relation=Relation.ADD_REMOVE).reserve(promise, relation=Relation.ADD_REMOVE)
    estimate = solver.estimate(Session(Central(), private(x), SeededSampler(rng), reservation))
    hot = [a.encoding[x[:, j].astype(int)] for j, a in enumerate(found.attributes)]
    z = np.hstack([np.ones((len(x), 1)), *hot])
    assert estimate.count == pytest.approx(len(x), rel=1e-6)
    assert np.abs(estimate.gram - z.T @ z).max() <= 1e-6 * len(x)


# ---------------------------------------------------------------- the estimator


BUDGET = ApproxDP(1.0, 1e-5)


def table_of(rng: np.random.Generator, rows: int = 400) -> tuple[pd.DataFrame, Schema]:
    codes = rng.integers(0, [3, 4, 5], size=(rows, 3))
    frame = pd.DataFrame(codes, columns=["a", "b", "c"])
    frame["y"] = (frame["a"] + rng.integers(0, 2, rows)).astype(int)
    frame["w"] = rng.normal(size=rows)
    levels = {"a": range(3), "b": range(4), "c": range(5), "y": range(4)}
    columns = Schema.from_levels(levels, numeric=["b", "y"]).columns
    return frame, Schema({**columns, "w": Numeric(-2, 2)})


@pytest.mark.parametrize("recipe", ["one-shot", "aim", "residuals", "gaussian"])
def test_paid_first(recipe: str, seed: int, tmp_path: Path) -> None:
    """One charge, first of all; every pass and every noise after its draw; a ledger for these neighbours holds it."""
    frame, schema = table_of(np.random.default_rng(seed))
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    for table in (frame, path):
        ledger = MemoryLedger(ApproxDP(3.0, 1e-5), relation=Relation.ADD_REMOVE)
        model = MarginalsRegression(BUDGET, schema=schema, recipe=recipe, ledger=ledger)
        with watched() as steps:
            model.fit_table(table, "y")
        assert steps[0] == CHARGE
        assert steps.count(CHARGE) == 1
        assert READ in steps
        drawn = 0
        for step in steps[1:]:
            drawn += (step == DRAW) - (step == NOISE)
            assert step != READ or drawn > 0, f"rows read unpaid: {steps}"
        assert [charge.event for charge in ledger.charges] == [model.privacy_.promise]
        assert model.privacy_.epsilon(1e-5) <= 1.0 * (1 + 1e-6)
        assert model.privacy_.relation is Relation.ADD_REMOVE
        assert np.isfinite(model.predict(table)).all()


@pytest.mark.parametrize("recipe", ["one-shot", "aim", "residuals", "gaussian"])
def test_nobody(recipe: str, seed: int, tmp_path: Path) -> None:
    """A table without rows is a neighbour of one with a single row: it is answered like any other."""
    frame, schema = table_of(np.random.default_rng(seed))
    frame[:0].to_parquet(tmp_path / "t.parquet")
    frame[:0].to_csv(tmp_path / "t.csv", index=False)
    for table in (frame[:0], tmp_path / "t.parquet", tmp_path / "t.csv"):
        model = MarginalsRegression(BUDGET, schema=schema, recipe=recipe).fit_table(table, "y")
        assert np.isfinite(model.predict(frame)).all()
        assert not len(model.predict(table))


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")  # a response of shape (n, 1)
def test_arrays_and_frames_are_fitted_alike(seed: int) -> None:
    """``fit(X, y)`` is ``fit_table`` of the columns side by side, whatever holds them; a table without rows too."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, [3, 4], size=(300, 2))
    y = x[:, 0] + rng.integers(0, 2, 300)
    schema = Schema.from_levels({"x0": range(3), "x1": range(4), "y": range(4)}, numeric=["x1", "y"])
    model = MarginalsRegression(BUDGET, schema=schema, random_state=1)
    frame = pd.DataFrame(x, columns=["x0", "x1"])
    expected = clone(model).fit_table(frame.assign(y=y))
    responses = (y, y.astype(float), y.tolist(), pd.Series(y), pl.Series("y", y), pa.array(y), y[:, None])
    tables = (x, x.astype(float), x.astype(object), x.tolist(), frame, pa.table(frame), pl.from_pandas(frame))
    for rows, response in zip(tables, responses, strict=True):
        for found in (clone(model).fit(rows, y), clone(model).fit(x, response)):
            np.testing.assert_array_equal(found.coef_, expected.coef_)
            np.testing.assert_array_equal(found.predict(rows), expected.predict(frame))
    assert np.isfinite(clone(model).fit(np.empty((0, 2)), []).coef_).all()
    assert not len(expected.predict(np.empty((0, 2))))
    named = pd.Series(y, name="z")
    columns = {**schema.columns, "z": schema.columns["y"]}
    assert clone(model).set_params(schema=Schema(columns)).fit(x, named).coefficients_.target == "z"


@pytest.mark.parametrize(
    ("rows", "response", "said"),
    [
        (np.zeros((3, 2)), None, "requires y"),
        (np.zeros((3, 2)), np.zeros(2), "different numbers of rows: give one"),
        (np.zeros(3), np.zeros(3), "2D array"),
        (np.zeros((3, 2)), np.zeros((3, 2)), "1d array"),
        (np.zeros((3, 2)), np.zeros(3) * 1j, "numbers, booleans or text"),
        (np.zeros((3, 3)), np.zeros(3), "'x2' is not in the schema"),
        (pd.DataFrame({"x0": [0], "y": [0]}), [0], "among the features"),
        (np.array([["a", "b"]], dtype=object), [0], None),
    ],
)
def test_odd_arrays(rows: Any, response: Any, said: str | None) -> None:
    """What cannot be a table is refused before the charge; odd cells are mapped."""
    schema = Schema.from_levels({"x0": range(3), "x1": range(4), "y": range(4)}, numeric=["x1", "y"])
    ledger = MemoryLedger(ApproxDP(3.0, 1e-5), relation=Relation.ADD_REMOVE)
    model = MarginalsRegression(BUDGET, schema=schema, ledger=ledger)
    if said is None:
        assert np.isfinite(model.fit(rows, response).coef_).all()
        return
    with pytest.raises(InvalidInput, match=said):
        model.fit(rows, response)
    assert not ledger.charges


@pytest.mark.parametrize("recipe", ["one-shot", "aim", "residuals", "gaussian"])
def test_budgets(recipe: str, seed: int) -> None:
    """GDP and ZCDP are spent as they are; what a recipe cannot keep is refused before the charge."""
    frame, schema = table_of(np.random.default_rng(seed))
    kept = {GDP(0.5): GDP(0.5), ZCDP(0.125): GDP(0.5)} if recipe != "aim" else {ZCDP(0.125): ZCDP(0.125)}
    for budget, promise in kept.items():
        model = MarginalsRegression(budget, schema=schema, recipe=recipe).fit_table(frame, "y")
        assert model.privacy_.budget == budget
        assert model.privacy_.promise == promise
    refused = [PureDP(1.0), None, 1.0, *([GDP(0.5)] if recipe == "aim" else [])]
    for budget in refused:
        with watched() as steps, pytest.raises(InvalidInput, match=r"^[^\n]+$"):
            MarginalsRegression(budget, schema=schema, recipe=recipe).fit_table(frame, "y")
        assert not steps
        with watched() as steps, pytest.raises(InvalidInput, match=r"^[^\n]+$"):
            release_marginals(frame, domain_of(schema), privacy=budget, recipe=recipe)
        assert not steps


def test_refusals_are_free(seed: int) -> None:
    """A budget that is too small, or of other neighbours, refuses before anything is read."""
    frame, schema = table_of(np.random.default_rng(seed))
    ledger = MemoryLedger(ApproxDP(0.5, 1e-5), relation=Relation.ADD_REMOVE)
    with watched() as steps, pytest.raises(BudgetExceeded):
        MarginalsRegression(BUDGET, schema=schema, ledger=ledger).fit_table(frame, "y")
    assert not steps
    for features, said in ((["a", "y"], "not on itself"), (["a", "a"], "once"), ([], "at least one")):
        ledger = MemoryLedger(ApproxDP(3.0, 1e-5), relation=Relation.ADD_REMOVE)
        with pytest.raises(InvalidInput, match=said):
            MarginalsRegression(BUDGET, schema=schema, ledger=ledger).fit_table(frame, "y", features)
        assert not ledger.charges


@pytest.mark.parametrize("family", ["gaussian", "binomial", "multinomial", "poisson"])
def test_strange_cells(family: str, seed: int) -> None:
    """No cell raises or warns, and predictions are finite: what is undeclared counts as a level."""
    rng = np.random.default_rng(seed)
    frame, schema = table_of(rng)
    target = {"gaussian": "y", "binomial": "s", "multinomial": "c", "poisson": "y"}[family]
    schema = Schema({**schema.columns, "s": Schema.from_levels({"s": ["no", "yes"]}).columns["s"]})
    frame["s"] = "no"
    frame = frame.astype(object)
    cells = np.array(["", "NA", "1e400", None, 10**400, " 3 ", b"4", "\ud800", np.nan, np.inf, -7], dtype=object)
    hit = rng.random(frame.shape) < 0.2
    values = frame.to_numpy(copy=True)
    values[hit] = rng.choice(cells, hit.sum())
    frame = pd.DataFrame(values, columns=frame.columns)
    model = MarginalsRegression(BUDGET, schema=schema, family=family).fit_table(frame, target)
    assert np.isfinite(model.coef_).all()
    assert len(model.predict(frame)) == len(frame)
    if family in ("binomial", "multinomial"):
        np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1.0)
