r"""The row map in a fixed order of IEEE operations, as a database can repeat it bit for bit.

The products of a matrix library, in :class:`~dpregress.rows.bounded.WhitenedRows`, have no fixed order. Here every sum
runs over its terms from the first to the last, and only ``+ - * /``, square roots and comparisons are used. IEEE 754
determines each of their results. Numbers are rounded to integers by adding and subtracting ``1.5 2^52``, which rounds
half to even everywhere.

Some databases fail if a product overflows or underflows, and a failure tells of the cell that caused it. So sizes are
relative to public ones: cells are clipped to their reach, as everywhere; cells below ``2^-300`` of it and entries of
the whitening below ``2^-150`` of the largest in their column count as 0; rows are computed in units of the radius, and
responses in units of their scale. Then no operation leaves the range of floats.

Rounding decides on no bound: what comes out is a vector of integers, and a row whose integers exceed the integer bound
of the space becomes 0. docs/privacy/floating-point.md has the proof.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpregress.coordinates import Exposure, ResponseScale, Weighting, WhitenedSpace
from dpregress.coordinates.exact import Grid
from dpregress.coordinates.whitened import FARTHEST
from dpregress.errors import InvalidInput
from dpregress.rows.bounded import ROUNDING, BoundedRows, RawRows, RowMap
from dpregress.rows.ordered_functions import logarithm
from dpregress.rows.row_kernel import (
    MISSING,
    Program,
    RowExpression,
    Stage,
    added,
    case,
    cells,
    clipped,
    name,
    rounded,
    run_stages,
    sqrt,
    term,
)

#: The largest number, and the bound on public numbers: those of spaces are within 1e100.
FINITE, LARGEST = sys.float_info.max, 2.0**340
#: Cells below this share of the largest that they may be are 0, and entries below this share of their column.
_LEAST_CELL, _LEAST_ENTRY = 2.0**-300, 2.0**-150
#: Whether the weight of a row is below 1, by more than rounding.
SHORTENED = name("w") < 1 - ROUNDING
#: Bits of integers that are added without being multiplied and whose norm is checked: its square is at most 2^52.
SQUARED_BITS = 26


def check_range(*sizes: float) -> None:
    """Refuse positive public numbers with which an operation could leave the range of floats.

    Raises
    ------
    InvalidInput
    """
    if not all(1 / LARGEST <= size <= LARGEST for size in sizes):
        raise InvalidInput("bounds and scales of columns must lie between 2^-340 and 2^340: change their units")


def steps_within(bound: float, grid: Grid) -> int:
    """The largest number of steps of a grid that is not beyond a bound, which may be negative."""
    return math.floor(Fraction(bound) / Fraction(grid.step))


def squares_within(bound: float, grid: Grid) -> int:
    """The largest sum of squares of integers whose multiples of the step form a vector within a bound."""
    return math.floor(Fraction(bound) ** 2 / Fraction(grid.step) ** 2)


def kept_within(names: Sequence[str], inside: RowExpression) -> Stage:
    """The integers of rows that count and keep their bounds, and 0 for others: what the guarantee rests on."""
    return {each: case((name("k") >= 1) & inside, name(each), 0) for each in names}


def within(column: str, lower: int, upper: int) -> RowExpression:
    """Whether an integer keeps its bounds."""
    return (name(column) >= lower) & (name(column) <= upper)


def within_ball(
    columns: Sequence[str], integers: Sequence[str], grid: Grid, unit: float = 1.0, measured: Sequence[str] = ()
) -> tuple[Stage, ...]:
    """Integers of a vector on a grid: it is shrunk to the bound, and 0 if its integers are beyond it all the same.

    Parameters
    ----------
    columns, integers : sequence of str
    grid : Grid
        With a bound that :func:`check_range` takes.
    unit : float
        What one in the columns stands for.
    measured : sequence of str, optional
        Columns in the same unit, whose norm is shrunk in place of that of the vector.
    """
    limit, length = grid.inside(len(columns)), name("r")
    return (
        {"r": sqrt(squared(measured or columns))},
        {"s": case(length > min(limit / unit, LARGEST), term(limit / grid.step) / length, unit / grid.step)},
        {whole: rounded(name(column) * name("s")) for whole, column in zip(integers, columns, strict=True)},
        kept_within(integers, squared(integers) <= squares_within(grid.bound, grid)),
    )


def squared(names: Sequence[str]) -> RowExpression:
    """The sum of squares of columns."""
    return added(name(each) * name(each) for each in names)


def cell(column: str, fill: float, reach: float) -> RowExpression:
    """A cell clipped to its reach, or ``fill`` where it is missing or not finite."""
    given, least = name(column), reach * _LEAST_CELL
    return case(
        (given > -least) & (given < least), 0.0,
        (given >= -reach) & (given <= reach), given,
        (given > reach) & (given <= FINITE), reach,
        (given < -reach) & (given >= -FINITE), -reach,
        _filled(fill, reach),
    )  # fmt: skip


def usable_row(labelled: bool) -> RowExpression:
    """1 for a row that counts, and 0 for one whose response is missing or not finite."""
    return case((name("y") >= -FINITE) & (name("y") <= FINITE), 1, 0) if labelled else term(1)


@dataclass(frozen=True)
class OrderedResponse:
    """The response of a row that counts, without anything whose order is not fixed.

    Parameters
    ----------
    scale : ResponseScale
    """

    scale: ResponseScale

    @property
    def reach(self) -> float:
        """Responses beyond it are beyond :data:`FARTHEST` scales from the centre, and are clipped to that anyway."""
        return math.ldexp(4.0, math.frexp(max(FARTHEST * self.scale.scale, abs(self.scale.centre)))[1])

    def usable(self, labelled: bool) -> Stage:
        """``k``, whether a row counts, and ``y`` within its limits."""
        bounded = {"y": cell("y", 0.0, self.reach)} if labelled else {}
        return {**bounded, "k": usable_row(labelled)}

    @property
    def grid(self) -> Grid:
        """The grid of a response with a finite bound."""
        return Grid(self.scale.bound, 1)

    @property
    def most(self) -> int:
        """Its largest integer."""
        return steps_within(self.scale.bound, self.grid)

    @property
    def scaled(self) -> RowExpression:
        """``clip((y - centre) / scale, +-2^100)``.

        A centre so small that its differences from cells would underflow counts as 0.
        """
        centre = _filled(self.scale.centre, self.reach)
        return clipped((name("y") - centre) * (1 / self.scale.scale), -FARTHEST, FARTHEST)

    def bounded(self, value: RowExpression) -> RowExpression:
        """A scaled response within its bound."""
        bound = self.scale.bound
        return clipped(value, -bound, bound) if bound < FARTHEST else value

    @property
    def steps(self) -> RowExpression:
        """The weighted response as an integer; ``w`` is the weight."""
        most = float(self.most)
        return rounded(clipped(self.scaled * name("w") * (1 / self.grid.step), -most, most))


#: Whether an exposure is usable: positive and finite.
_EXPOSED = (name("exposed") > 0.0) & (name("exposed") <= FINITE)


def with_exposure(program: Program) -> Program:
    """The program over rows with an exposure: those whose exposure is not usable count as rows without a response."""
    counted = {"y": case(_EXPOSED, name("y"), MISSING)}
    return Program.of((counted, *program.stages), program.left, program.right, program.bins)


@dataclass(frozen=True)
class OrderedExposure:
    """The exposure of a row, without anything whose order is not fixed.

    Parameters
    ----------
    exposure : Exposure
    """

    exposure: Exposure

    @property
    def bounded(self) -> RowExpression:
        """``clip(e, lower, upper)``; 1 where it is not usable."""
        return case(_EXPOSED, clipped(name("exposed"), self.exposure.lower, self.exposure.upper), 1.0)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """To ``o``, its logarithm: the offset of the row."""
        return logarithm("o", self.bounded, self.exposure.lower, self.exposure.upper)


@dataclass(frozen=True)
class OrderedRows(RowMap):
    """The row map of a space with one word on each grid, without anything whose order is not fixed.

    Parameters
    ----------
    space : WhitenedSpace
        With a finite radius.

    Raises
    ------
    InvalidInput
        If the radius is infinite, or the constant is moved by more than ``2^100`` radii.
    """

    space: WhitenedSpace

    def __post_init__(self) -> None:
        if self.space.shift is not None and np.abs(self.space.shift).max() > FARTHEST * self.space.unit:
            raise InvalidInput("a column is beyond 2^100 of its scales: subtract a constant from it")
        check_range(self.space.radius)

    @property
    def radius(self) -> float:
        return self.space.radius

    # ---------------------------------------------------------------- public numbers

    @cached_property
    def grid(self) -> Grid:
        """That of x."""
        return Grid(self.radius, 1)

    @cached_property
    def limit(self) -> float:
        """Longer rows are shrunk to this norm before they are rounded."""
        return self.grid.inside(self.space.order)

    @cached_property
    def longest(self) -> float:
        """The same in units of the space."""
        return self.limit / self.space.unit

    @cached_property
    def steps(self) -> float:
        """The same in steps of the grid."""
        return self.limit / self.grid.step

    @cached_property
    def most(self) -> int:
        """The largest sum of squares of the integers of a row."""
        return squares_within(self.radius, self.grid)

    @property
    def response(self) -> OrderedResponse | None:
        """The response, if the space has one."""
        return None if self.space.response is None else OrderedResponse(self.space.response)

    @property
    def exposure(self) -> OrderedExposure | None:
        """The exposure, if the space has one."""
        return None if self.space.exposure is None else OrderedExposure(self.space.exposure)

    # ---------------------------------------------------------------- the program

    @property
    def integers(self) -> tuple[str, ...]:
        """Names of the integers of x."""
        return tuple(f"u{i}" for i in range(self.space.order))

    def stages(self, labelled: bool) -> tuple[Stage, ...]:
        """From cells to the integers ``u0``, ``u1``, .. of x, and the weight ``w`` that the response shares.

        Parameters
        ----------
        labelled : bool
            Whether there is a column ``y``; rows without one do not count, whether the space has a response or not.
        """
        limits = enumerate(zip(self.space.fill.tolist(), self.space.reach.tolist(), strict=True))
        bounded = {f"c{j}": cell(f"c{j}", fill, reach) for j, (fill, reach) in limits}
        usable = {"k": usable_row(labelled)} if self.response is None else self.response.usable(labelled)
        whitened = [f"z{i}" for i in range(self.space.order)]
        length, shrink = name("r"), name("s")
        weighted = self.space.weighting is Weighting.ROW
        return (
            {**bounded, **usable},
            dict(zip(whitened, self._whitened, strict=True)),
            {"r": sqrt(squared(whitened))},
            {
                "s": case(length > self.longest, term(self.steps) / length, self.steps / self.longest),
                "w": case(length > self.longest, term(self.longest) / length, 1.0) if weighted else term(1.0),
            },
            {u: rounded(name(z) * shrink) for u, z in zip(self.integers, whitened, strict=True)},
            kept_within(self.integers, squared(self.integers) <= self.most),
        )

    @property
    def _whitened(self) -> list[RowExpression]:
        """Sums over cells in units of the space, without entries that are too small."""
        columns: list[RowExpression | None] = [name(f"c{j}") for j in range(len(self.space.features))]
        if self.space.intercept:
            columns.insert(0, None)
        entries = self.space.whitening / self.space.unit
        sizes = FARTHEST / self.space.reach  # powers of two above the entries of a column
        least = _LEAST_ENTRY * (np.append(1.0, sizes) if self.space.intercept else sizes)
        kept = np.where(np.abs(entries) < least, 0.0, entries)
        return [
            added(
                term(entry) if column is None else column * entry
                for column, entry in zip(columns, row, strict=True)
                if entry != 0
            )
            for row in kept.tolist()
        ]

    def _joint_stages(self, labelled: bool) -> tuple[Stage, ...]:
        """On to ``v``, the integer of the response; it is a float if the response has no bound."""
        stages, response = self.stages(labelled), self.response
        if response is None or not labelled:
            return (*stages, {"v": term(0)})
        if math.isinf(response.scale.bound):
            return (*stages, {"v": response.scaled * name("w")})
        kept = kept_within((*self.integers, "v"), within("v", -response.most, response.most))
        return (*stages, {"v": response.steps}, kept)

    def joint(self, labelled: bool) -> Program:
        """The products of joint rows (x, y), or of x in a space without a response."""
        columns = self.integers if self.response is None else (*self.integers, "v")
        return Program.of(self._joint_stages(labelled), columns, columns)

    def _bound(self, rows: RawRows, words: int) -> BoundedRows:  # noqa: ARG002  # databases have no integers for more
        given = {"y": rows.y, "exposed": rows.exposure}
        beside = {column: values for column, values in given.items() if values is not None}
        offset = self.exposure.stages if self.exposure is not None and "exposed" in beside else ()
        stages = (*self._joint_stages("y" in beside), *offset)
        program = Program.of(stages, (*self.integers, "v", "w", *(["o"] if offset else [])))
        found = run_stages(program.stages, cells(list(rows.x.T), beside), len(rows.x))
        x = np.column_stack([found[column] for column in self.integers]) * self.grid.step
        bounded = self.response is not None and math.isfinite(self.response.scale.bound)
        step = self.response.grid.step if self.response is not None and bounded else 1.0
        return BoundedRows(x, found["v"] * step, found["w"].copy(), rows.first_row, found.get("o"), words=1)


def _filled(value: float, reach: float) -> float:
    """A public cell within the limits of private ones."""
    return 0.0 if abs(value) < reach * _LEAST_CELL else min(max(value, -reach), reach)
