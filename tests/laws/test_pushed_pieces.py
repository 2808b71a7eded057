"""Sums by pieces of the follow-up that a database computes: those of NumPy bit for bit, of a reader within rounding.

Times lie at cuts, next to cuts, beyond the last, and are no times at all. What a person adds keeps its bound in exact
arithmetic, whatever a database makes of roots and quotients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpregress.coordinates import Exposure, ResponseScale, WhitenedSpace
from dpregress.errors import InvalidInput, NotAnswered
from dpregress.queries import PieceInformation, PieceScore, PieceTotals, ScoreSquares
from dpregress.rows import RawRows, row_kernel
from dpregress.rows import push_down_sql as sql
from dpregress.rows.ordered import with_exposure
from tests.laws import test_push_down
from tests.laws.test_push_down import NAMES, assert_same, expected_of, pushed, source_of, table_of
from tests.registry import SPACES, WIDTH, tame_rows

kept = test_push_down.kept
CUTS = (0.25, 1.0, 1.0 + 1e-6, 30.0, 365.0)
#: Times that are none, at cuts, so near that a logarithm moves them there, a little further off, and far out.
TIMES = (
    np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 5e-324, 1e-310, 2.0**-100, 1e300, 1e30, 366.0, 1000.0,
    *(cut * (1 + off) for cut in CUTS for off in (-1e-11, -1e-13, 0.0, 1e-13, 1e-11)),
    0.1, 0.7, 1.0 + 5e-7, 2.0, 100.0,
)  # fmt: skip


def persons(rng: np.random.Generator) -> RawRows:
    """Every time with an event and without one, and features of all sizes."""
    times = np.tile(TIMES, 4)
    x = rng.normal(size=(len(times), WIDTH)) * 10.0 ** rng.integers(-3, 4, (len(times), 1))
    event = np.repeat([1.0, 0.0, 1.0, 0.5], len(TIMES))
    event[:: len(TIMES) + 3] = np.nan
    return RawRows(x, event, exposure=times)


def timed_space(rng: np.random.Generator, radius: float = 2.0) -> WhitenedSpace:
    space = replace(SPACES["intercept"](rng), radius=radius)
    return replace(space, response=ResponseScale("y"), exposure=Exposure("e"))


def queries_of(rng: np.random.Generator, space: WhitenedSpace, cuts: Any = CUTS, clip: float = 0.7) -> list[Any]:
    coef = np.append(0.5 * rng.normal(size=space.order), rng.normal(size=len(cuts) - 1))
    score = PieceScore(space, cuts, coef, clip)
    squares = ScoreSquares(score, 0.5 * score.contribution())
    return [PieceTotals(space, cuts), score, PieceInformation(space, cuts, coef, clip), squares]


def test_totals_of_databases_are_those_of_the_reference(
    kept: Callable[[pa.Table, Path], Any], tmp_path: Path, seed: int
) -> None:
    """Bit for bit. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    rows = persons(rng)
    source = source_of(kept(table_of(rows), tmp_path), "e")
    for cuts in (CUTS, (7.0,)):
        for query in queries_of(rng, timed_space(rng), cuts):
            assert_same(pushed(query, source), expected_of(query, rows), f"{len(cuts)} pieces, {query}")


@pytest.mark.parametrize("clip", [0.7, 1e6])
def test_totals_are_those_of_a_reader(clip: float, seed: int) -> None:
    """Also at cuts and next to them: both put times within 1e-12 of a cut at the cut. No seed can break it.

    An integer of a row may differ by one or two, of the 2^20 and more that its bound stands for.
    """
    rng = np.random.default_rng(seed)
    rows = persons(rng)
    for query in queries_of(rng, timed_space(rng), clip=clip):
        with np.errstate(all="ignore"):
            free = np.asarray(query.exact(query.row_map(rows, 1)))
        found = np.asarray(expected_of(query, rows))
        assert np.abs(free).max() > 1e-3
        assert np.abs(free - found).max() <= len(rows.x) * 2.0**-19 * query.contribution(), query


def test_events_at_cuts_are_those_of_a_reader(seed: int) -> None:
    """Counts of events by piece are equal, not just close. No seed can break it."""
    rng = np.random.default_rng(seed)
    query, rows = PieceTotals(timed_space(rng), CUTS), persons(rng)
    free = query.value(query.row_map(rows))[: len(CUTS)]
    found = np.asarray(expected_of(query, rows))[: len(CUTS)]
    np.testing.assert_array_equal(found, free)
    assert (found > 0).all()


# ---------------------------------------------------------------- the bound, whatever the arithmetic does


def integers_of(query: Any, rows: RawRows) -> np.ndarray:
    """What each person adds to the sums, by NumPy, of shape (m, sums)."""
    program = with_exposure(query.program(True))
    given = row_kernel.cells(list(rows.x.T), {"y": rows.y, "exposed": rows.exposure})
    found = row_kernel.run_stages(program.stages, given, len(rows.x))
    left = np.column_stack([found[column] for column in program.left])
    if not program.right:
        return left
    places = np.triu_indices(len(program.left))
    return left[:, places[0]] * left[:, places[1]]


def exact_squares(query: Any, rows: RawRows) -> list[Fraction]:
    """The squared norms of what persons add, as real numbers."""
    whole = integers_of(query, rows)
    shape = query.program(True).shape
    unit = np.broadcast_to(query.of_sums(np.zeros(shape, dtype=object), 0).unit, whole.shape[1:]).tolist()
    squares = [Fraction(each) ** 2 for each in unit]
    return [
        sum((int(each) ** 2 * square for each, square in zip(row, squares, strict=True)), Fraction(0)) for row in whole
    ]


#: Planted arithmetic of floats: what a database could make of a root, a quotient, a comparison or a clip.
PLANTED: dict[str, tuple[str, Callable[..., Any]]] = {
    "honest": ("sqrt", np.sqrt),
    "long roots": ("sqrt", lambda a: 1.7 * np.sqrt(a)),
    "short roots": ("sqrt", lambda a: 0.1 * np.sqrt(a)),
    "quotients": ("/", lambda a, b: 2.0 * (a / b)),
    "comparisons": (">", lambda a, b: (a >= 0) | (b >= 0)),
    "clips": ("clip", lambda a, *_: 3.0 * a),
}


@pytest.mark.parametrize("wrong", PLANTED)
@pytest.mark.parametrize("pieces", [1, 3, 12])
def test_no_arithmetic_moves_a_person_beyond_the_bound(
    wrong: str, pieces: int, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """In exact arithmetic, for rows that reach their bound, in units of the mechanism. No seed can break it.

    The units of times are floats: their squares add up to 1 within a few roundings, which the mechanism covers.
    """
    rng = np.random.default_rng(seed)
    cuts = tuple(np.linspace(0.0, 30.0, pieces + 1)[1:].tolist())
    rows, space = persons(rng), timed_space(rng)
    queries = queries_of(rng, space, cuts, 0.3)
    operation, planted = PLANTED[wrong]
    monkeypatch.setitem(row_kernel._OPERATIONS, operation, planted)
    for query in queries:
        largest = max(exact_squares(query, rows))
        bound = Fraction(query.contribution()) ** 2
        assert largest <= bound * (1 + Fraction(1, 2**45)), query
        if wrong == "honest":
            assert largest > 0.25 * bound, query


def test_persons_whose_roots_are_long_are_dropped(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Planted: roots three times as long, which move informations beyond the bound. No seed can break it."""
    rng = np.random.default_rng(seed)
    space = timed_space(rng)
    rows = replace(tame_rows(rng, space, 50), y=np.ones(50), exposure=np.full(50, 300.0))
    _, _, query, _ = queries_of(rng, space, clip=0.1)

    assert integers_of(query, rows).any(axis=1).all()
    monkeypatch.setitem(row_kernel._OPERATIONS, "sqrt", lambda a: 3.0 * np.sqrt(a))
    assert not integers_of(query, rows).any(axis=1).all()


# ---------------------------------------------------------------- statements and refusals


@pytest.mark.parametrize("dialect", sql.DIALECTS)
def test_statements_in_every_dialect(dialect: str) -> None:
    """They can be parsed again, give sums alone, and read the rows once. A score has the operations of these two."""
    sqlglot = pytest.importorskip("sqlglot")
    rng = np.random.default_rng(0)
    space = timed_space(rng)
    totals, _, information, _ = queries_of(rng, space, CUTS[:3])
    for query in (totals, information):
        sums = sql.RowSums(with_exposure(query.program(True)), tuple(NAMES), "y", 99, exposed="e")
        (parsed,) = sqlglot.parse(sums.statement("clinic.visits AS dpregress_rows", dialect), read=dialect)
        assert len(parsed.selects) == query.size + 2
        for column in parsed.selects:
            assert isinstance(column.unalias().find(sqlglot.exp.AggFunc), sqlglot.exp.Sum | sqlglot.exp.Count)
        named = [table.sql(dialect=dialect) for table in parsed.find_all(sqlglot.exp.Table)]
        assert len([table for table in named if not table.startswith("dpregress_stage")]) == 1


def test_what_has_no_program(seed: int) -> None:
    """Without a response, or a time; with pieces of no length. No seed can break it."""
    rng = np.random.default_rng(seed)
    space = timed_space(rng)
    for query in queries_of(rng, replace(space, exposure=None)):
        with pytest.raises(NotAnswered, match="need events and times"):
            query.program(True)
    for query in queries_of(rng, space):
        with pytest.raises(NotAnswered, match="need events and times"):
            query.program(False)
    with pytest.raises(InvalidInput, match="long can be fitted"):
        PieceTotals(space, (1e-120, 1.0))


def test_the_integers_of_a_person_leave_room_in_a_sum(seed: int) -> None:
    """Every entry that is added up is at most 2^42: sums of a million rows fit in 64 bits. No seed can break it."""
    rng = np.random.default_rng(seed)
    rows = persons(rng)
    for query in queries_of(rng, timed_space(rng), clip=1e3):
        assert np.abs(integers_of(query, rows)).max() <= 2**42
