"""The search for the pair of neighbouring tables that a fit tells apart best.

Transcripts of fits with seeded noise say what is asked, and at which coefficients. Divided by the scale of its noise,
what a row adds to an answer is a vector; all answers of some transcripts together make a long one. The two rows whose
vectors lie furthest apart are the worst pair for these transcripts. Random rows of all directions and sizes come first,
then rows near the best pair; with each pair that is found, new transcripts are drawn. Nothing of the noise of the runs
that are counted later is looked at.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.audit.attack import Attack, Audit, Outcome, Pair
from benchmarks.audit.cells import Cell, Rng
from benchmarks.audit.transcripts import Step, Transcript, as_asked, followed, rows_of
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms.base import exact_total
from dpregress.queries import Query
from dpregress.rows import BoundedRows, PrivateRows, RangedSource

#: Random rows at first; then rounds of so many rows near each of the best pair, with steps that shrink.
_ROWS, _ROUNDS, _NEAR = 600, 10, 60
_FIRST_STEP, _LAST_STEP = 0.5, 0.01
#: Transcripts that a search looks at, how often they are drawn anew, and that a pair is judged by.
_FOLLOWED, _TURNS, _JUDGED = 4, 3, 6


class FitAudit(Audit):
    """The audit of a whole fit."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.name, self.claim, self.reason = cell.name, cell.promise, cell.reason

    def search(self, seed: int) -> Pair:
        return search(self.cell, seed)

    def attack(self, pair: Pair) -> Neighbours:
        return Neighbours(self.cell, pair)


class Neighbours(Attack):
    """A cell with a pair: fits on one table or the other, followed on both."""

    def __init__(self, cell: Cell, pair: Pair) -> None:
        self.cell = cell
        self.tables = [cell.table(pair.row), cell.table(pair.other)]
        self._rows = [rows_of(lambda table=table: cell.fit(table, np.random.default_rng(0))) for table in self.tables]

    def transcript(self, which: int, rng: Rng) -> Transcript:
        """The transcript of a fit on table 0 or 1."""
        with followed(self._rows[1 - which], self.cell.parties) as transcript:
            self.cell.fit(self.tables[which], rng)
        return transcript

    def run(self, rng: Rng) -> Outcome:
        which = int(rng.random() < 0.5)
        found = self.transcript(which, rng)
        return Outcome(found.loss > 0, found.reach, found.paid)


def search(cell: Cell, seed: int) -> Pair:
    """The worst pair that was found."""
    rng = np.random.default_rng(seed)
    pairs = []
    start = cell.draw(rng, 2)
    pair = Pair(start[0], None if cell.add else start[1])
    for _ in range(_TURNS):
        neighbours = Neighbours(cell, pair)
        seen = [neighbours.transcript(turn % 2, rng) for turn in range(_FOLLOWED)]
        pair = _worst(cell, [step for each in seen for step in each.steps if not step.here.choice], pair, rng)
        pairs.append((expected_reach(cell, pair, rng), pair))
    return max(pairs, key=lambda found: found[0])[1]


def expected_reach(cell: Cell, pair: Pair, rng: Rng) -> float:
    """``sqrt(2 mean divergence) / mu`` of a few transcripts."""
    neighbours = Neighbours(cell, pair)
    found = [neighbours.transcript(turn % 2, rng).reach for turn in range(_JUDGED)]
    return math.sqrt(float(np.mean(np.square(found))))


def _worst(cell: Cell, steps: list[Step], pair: Pair, rng: Rng) -> Pair:
    """The worst pair for these answers, among random rows and rows near the best of them."""
    known = rows_of(lambda: cell.fit(cell.known, np.random.default_rng(0))) if cell.add else []
    rows = np.vstack([pair.row, *([] if pair.other is None else [pair.other]), cell.draw(rng, _ROWS)])
    row, other = _furthest(cell, steps, known, rows)
    if cell.move is None:
        return Pair(row, other)
    for step in np.geomspace(_FIRST_STEP, _LAST_STEP, _ROUNDS):
        near = [cell.move(rng, each, float(step), _NEAR) for each in (row, other) if each is not None]
        row, other = _furthest(
            cell, steps, known, np.vstack([*(each for each in (row, other) if each is not None), *near])
        )
    return Pair(row, other)


def _furthest(cell: Cell, steps: list[Step], known: list[PrivateRows], rows: Matrix) -> tuple[Vector, Vector | None]:
    """The two rows that lie furthest apart; or the one that is furthest from none."""
    vectors = np.hstack([_added(step, cell, known, rows) for step in steps])
    squares = np.sum(vectors**2, axis=1)
    if cell.add:
        best = int(np.argmax(squares))
        return rows[best], None
    apart = squares[:, None] + squares - 2 * vectors @ vectors.T
    one, other = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return rows[one], rows[other]


def _added(step: Step, cell: Cell, known: list[PrivateRows], rows: Matrix) -> Matrix:
    """What each of the rows adds to an answer, in scales of its noise."""
    query = step.query
    raw, source = cell.layout(rows, step.place), step.rows.source
    if isinstance(source, RangedSource):
        raw = replace(raw, x=source.ranges.within(raw.x))
    bounded = query.row_map(raw)
    values = cell.most * _values(query, bounded)
    if type(query).statistic is not Query.statistic:  # not additive: what it is with the row, and without
        total = exact_total(query, as_asked(known[step.place], step.rows))
        values = np.array([query.statistic(total + value) for value in values]) - query.statistic(total)
    return values / step.here.scale


def _values(query: Query[Any], rows: BoundedRows) -> Matrix:
    """The value of each row by itself, in the first place of the table."""
    if type(query).each is not Query.each:
        return query.each(rows)
    offsets = rows.offset
    single = (
        BoundedRows(
            rows.x[i : i + 1], rows.y[i : i + 1], rows.weight[i : i + 1], 0,
            None if offsets is None else offsets[i : i + 1],
        )
        for i in range(len(rows.x))
    )  # fmt: skip
    return np.array([query.value(row) for row in single])
