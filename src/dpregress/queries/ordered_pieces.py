r"""Persons by piece of the follow-up in a fixed order of IEEE operations, as a database can repeat them.

A person is one row: all pieces are columns of it, so that one check covers what the person adds to a sum.
docs/privacy/floating-point.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.exact import Grid
from dpregress.errors import NotAnswered
from dpregress.queries.ordered_residual import LEAST, combined, ordered_predictor
from dpregress.rows.ordered import (
    OrderedExposure,
    OrderedResponse,
    OrderedRows,
    check_range,
    kept_within,
    squared,
    steps_within,
    within,
    within_ball,
)
from dpregress.rows.ordered_functions import exponentials, flushed
from dpregress.rows.row_kernel import (
    Program,
    Stage,
    added,
    case,
    clipped,
    floated,
    name,
    rounded,
    sqrt,
    term,
)

#: Linear predictors are clipped to this range, as those of a log link. The unit of time for it is the follow-up.
FURTHEST = 30.0
#: Relative error of a time that comes from its logarithm. Times this close to a cut are at the cut, for all engines.
LOG_ERROR = 1e-12


@dataclass(frozen=True, eq=False)
class OrderedPersons:
    """The events and times of a person by piece.

    Parameters
    ----------
    space : WhitenedSpace
        With a response, the event, and an exposure, the time.
    cuts : tuple of float
        Checked, so that no product of a database leaves the range of floats.
    """

    space: WhitenedSpace
    cuts: tuple[float, ...]

    @property
    def widths(self) -> list[float]:
        """Of the pieces."""
        return [end - start for start, end in pairwise((0.0, *self.cuts))]

    def columns(self, letter: str) -> tuple[str, ...]:
        """Names of one column for each piece."""
        return tuple(f"{letter}{k}" for k in range(len(self.cuts)))

    def _known(self, labelled: bool) -> tuple[OrderedResponse, OrderedExposure]:
        """The event and the time."""
        if self.space.response is None or self.space.exposure is None or not labelled:
            raise NotAnswered("pieces of a follow-up need events and times: leave the engine out")
        return OrderedResponse(self.space.response), OrderedExposure(self.space.exposure)

    def stages(self, labelled: bool) -> tuple[Stage, ...]:
        """From ``y``, the exposure and the weight ``w`` to events ``n0``, .., which are integers, and times ``t0``, ..

        Raises
        ------
        NotAnswered
            Without responses or exposures.
        """
        response, time = self._known(labelled)
        near = (
            part
            for cut in self.cuts
            for part in ((name("t") >= cut - LOG_ERROR * cut) & (name("t") <= cut + LOG_ERROR * cut), cut)
        )
        pieces = list(pairwise((0.0, *self.cuts)))
        events = (case((name("g") >= 0.5) & (name("t") > start) & (name("t") <= end), 1, 0) for start, end in pieces)
        times = (clipped(name("t"), start, end) - start for start, end in pieces)
        return (
            {"g": response.bounded(response.scaled * name("w")), "t": time.bounded},
            {"g": name("g") / name("w"), "t": case(*near, name("t"))},
            {
                **dict(zip(self.columns("n"), events, strict=True)),
                **dict(zip(self.columns("t"), times, strict=True)),
            },
        )

    def totals(self, labelled: bool, grid: Grid) -> Program:
        """The sums of events, and of times over the widths of pieces in steps of the grid.

        A person has an event in one piece at most, and at most the width of each piece.
        """
        events, times, most = self.columns("n"), self.columns("b"), steps_within(grid.bound, grid)
        shares = (
            rounded(clipped(name(time) * (1 / width) * (1 / grid.step), 0.0, float(most)))
            for time, width in zip(self.columns("t"), self.widths, strict=True)
        )
        response, _ = self._known(labelled)
        kept = {**kept_within(events, squared(events) <= 1)}
        for time in times:
            kept |= kept_within((time,), within(time, 0, most))
        stages = (
            {**response.usable(labelled), "w": term(1.0)},
            *self.stages(labelled),
            dict(zip((*times, *events), (*shares, *map(name, events)), strict=True)),
            kept,
        )
        return Program.of(stages, (*events, *times))


@dataclass(frozen=True, eq=False)
class OrderedPieces:
    """The score and the information of a person at coefficients, summed over the pieces.

    Parameters
    ----------
    persons : OrderedPersons
    coef : ndarray of shape (p + K - 1,)
    basis : ndarray of shape (K, K - 1)
        Contrasts of the pieces.
    """

    persons: OrderedPersons
    coef: Vector
    basis: Matrix

    @property
    def order(self) -> int:
        """The number of coefficients."""
        return len(self.coef)

    def _stages(self, rows: OrderedRows, labelled: bool) -> tuple[Stage, ...]:
        """To ``n0``, .. and to ``e0``, .., the expected events by piece."""
        p = self.persons.space.order
        follow_up = self.persons.cuts[-1]
        logs = (self.basis @ self.coef[p:] + math.log(follow_up)).tolist()
        known = zip(self.persons.columns("e"), logs, strict=True)
        predictors = {
            e: clipped(name("eta") + (log if abs(log) >= LEAST else 0.0), -FURTHEST, FURTHEST) for e, log in known
        }
        pairs = zip(self.persons.columns("e"), self.persons.columns("t"), strict=True)
        return (
            *rows.stages(labelled),
            *self.persons.stages(labelled),
            {"eta": ordered_predictor(rows, self.coef[:p])},
            *exponentials(predictors),
            {e: name(e) * (name(t) * (1 / follow_up)) for e, t in pairs},
        )

    def score(self, labelled: bool, clip: float, grid: Grid) -> Program:
        """The sum of scores, each shrunk by its size ``nu`` to the clip, on the grid of their bound."""
        check_range(clip, grid.bound)
        rows, pieces, radius = OrderedRows(self.persons.space), self.persons, self.persons.space.radius
        residuals, across = pieces.columns("m"), [f"q{j}" for j in range(self.basis.shape[1])]
        each, integers = ([f"{letter}{i}" for i in range(self.order)] for letter in "ab")
        events = zip(residuals, pieces.columns("n"), pieces.columns("e"), strict=True)
        of_x = (floated(name(u)) * (rows.grid.step / radius) * name("total") for u in rows.integers)
        sums = ("total", *across)
        stages = (
            *self._stages(rows, labelled),
            {m: floated(name(n)) - name(e) for m, n, e in events},
            _flushed(residuals),
            {
                "total": added(map(name, residuals)),
                **{q: combined(residuals, column) for q, column in zip(across, self.basis.T.tolist(), strict=True)},
            },
            _flushed(sums),
            {"total": name("total") * name("w"), **{q: name(q) * name("w") * (1 / radius) for q in across}},
            _flushed(sums),
            dict(zip(each, (*of_x, *(name(q) * name("w") for q in across)), strict=True)),
            *within_ball(each, integers, grid, radius, measured=sums),
        )
        return Program.of(stages, integers)

    def information(self, labelled: bool, largest: float, grid: Grid, most: int) -> Program:
        """The sums of the entries of informations, row by row of the upper triangle.

        An entry is the sum over the pieces of one product of integers. The integers of all pieces are checked together.

        Parameters
        ----------
        labelled : bool
        largest : float
            Persons with more expected events have them shrunk to this.
        grid : Grid
            Of the root of the bound.
        most : int
            The largest sum of squares of the integers of a person.
        """
        check_range(largest, grid.bound)
        rows, pieces, p = OrderedRows(self.persons.space), self.persons, self.persons.space.order
        expected, roots, squares = (pieces.columns(letter) for letter in "eah")
        vectors = {}
        for k, root in enumerate(roots):
            for i, u in enumerate(rows.integers):
                vectors[i, k] = floated(name(u)) * (name(root) * (rows.grid.step / grid.step))
            for j, entry in enumerate(self.basis[k].tolist()):
                if entry != 0:
                    vectors[p + j, k] = name("w") * (name(root) * (entry / grid.step))
        integers = [_vector(*place) for place in vectors]
        stages = (
            *self._stages(rows, labelled),
            _flushed(expected),
            {"total": added(map(name, expected))},
            {"s": case(name("total") > largest, term(largest) / name("total"), 1.0)},
            {root: sqrt(name(e) * name("s")) for root, e in zip(roots, expected, strict=True)},
            {_vector(*place): rounded(value) for place, value in vectors.items()},
            {h: squared([_vector(i, k) for i, of in vectors if of == k]) for k, h in enumerate(squares)},
            {"square": added(map(name, squares))},  # in two stages: statements nest only so deep
            kept_within(integers, name("square") <= most),
            {
                f"s{i}_{j}": added(
                    name(_vector(i, k)) * name(_vector(j, k))
                    for k in range(len(roots))
                    if (i, k) in vectors and (j, k) in vectors
                )
                for i in range(self.order)
                for j in range(i, self.order)
            },
        )
        return Program.of(stages, tuple(stages[-1]))


def _vector(i: int, k: int) -> str:
    """The name of an integer of the vector of a piece."""
    return f"v{i}_{k}"


def _flushed(columns: Sequence[str]) -> Stage:
    """0 in place of tiny numbers, whose products could underflow."""
    return {column: value for each in columns for column, value in flushed(each, LEAST).items()}
