r"""What row weights and clips take from a score, within a bound of its own."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.exact import ExactVector, Grid, Integers, column_sums
from dpregress.coordinates.products import squared_norms
from dpregress.errors import InvalidInput
from dpregress.models.families import Family
from dpregress.queries.ordered_residual import LEAST, OrderedResidual
from dpregress.queries.score import ResidualQuery
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import LARGEST, OrderedRows, check_range, squared, within_ball
from dpregress.rows.ordered_functions import flushed
from dpregress.rows.row_kernel import Program, RowExpression, Stage, case, clipped, floated, name, sqrt, term

#: Rows that are shorter have no remainder: their squares would underflow.
_SHORTEST = 2.0**-400


class ScoreRemainder(ResidualQuery):
    r"""``sum u min(1, K / ||u||)`` with ``u = x~ (y - m) f - s x~ clip(s (y - m) f, +-C)``.

    u is what the weight ``s = min(1, R / ||x~||)`` and the clip of a :class:`~dpregress.queries.ClippedScore` take from
    the score ``x~ (y - m(x~'beta)) f`` of a row. It is 0 for rows within the ball whose residuals are within the clip.
    A row contributes at most K, and replacing one changes the sum by at most ``2 K``, which opposite rows reach.

    Parameters
    ----------
    space : WhitenedSpace
    family : Family
    coef : ndarray of shape (p,)
        Whitened coefficients, public or released.
    clip : float
        C of the score, a public number.
    bound : float
        K, a public number.

    References
    ----------
    docs/queries.md; docs/inference.md for its use.
    """

    tight: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, family: Family, coef: Vector, clip: float, bound: float) -> None:
        super().__init__(space, family, coef, clip)
        if not bound > 0:
            raise InvalidInput(f"the bound of a remainder must be positive, not {bound}")
        self.bound = bound

    def exact(self, rows: BoundedRows) -> ExactVector:
        grid = Grid(self.bound, rows.words)
        _, beyond = self._parts(rows)
        return ExactVector(column_sums(grid.nearest(rows.x * beyond[:, None]), grid), grid.step)

    def influence(self, rows: BoundedRows) -> Matrix:
        """The contribution of each row to the score and to this sum together, of shape (m, p)."""
        kept, beyond = self._parts(rows)
        return np.asarray(rows.x * (kept + beyond)[:, None])

    def _parts(self, rows: BoundedRows) -> tuple[Vector, Vector]:
        """The factors of the weighted row x in its contributions to the score and to this sum, of shape (m,)."""
        residual = self.residual(rows)
        kept = np.clip(residual, -self.clip, self.clip)
        shrunk = np.where(rows.weight > 0, rows.weight, 1.0) / rows.root
        limit, length = Grid(self.bound, rows.words).inside(self.space.order), np.sqrt(squared_norms(rows.x))
        most = np.where(length > _SHORTEST, limit / np.maximum(length, _SHORTEST), 0.0)
        return kept, np.clip(residual / shrunk**2 - kept, -most, most)

    # ---------------------------------------------------------------- in a database

    @property
    def _grid(self) -> Grid:
        """That of a program, with one word."""
        return Grid(self.bound, 1)

    def _beyond(self, labelled: bool) -> tuple[tuple[Stage, ...], tuple[str, ...]]:
        """Stages to ``a0``, ``a1``, .., the remainder of a row in steps of x."""
        rows = OrderedRows(self.space)
        each = tuple(f"a{i}" for i in range(self.size))
        beyond = name("d") / (name("w") * name("w")) - self._kept
        stages = (
            *OrderedResidual(rows, self.family, self.coef).stages(labelled),
            {"h": clipped(beyond, -LARGEST, LARGEST)},
            flushed("h", LEAST),
            {a: floated(name(u)) * name("h") for a, u in zip(each, rows.integers, strict=True)},
        )
        return stages, each

    @property
    def _kept(self) -> RowExpression:
        return clipped(name("d"), -self.clip, self.clip)

    def program(self, labelled: bool) -> Program:
        check_range(self.clip, self.bound, self.bound / self.space.radius)
        (stages, each), integers = self._beyond(labelled), [f"v{i}" for i in range(self.size)]
        unit = Grid(self.space.radius, 1).step
        return Program.of((*stages, *within_ball(each, integers, self._grid, unit)), integers)

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole, self._grid.step)

    def contributions(self, labelled: bool) -> tuple[tuple[Stage, ...], tuple[str, ...], float]:
        """Stages to :meth:`influence`, its columns, and what one in them stands for."""
        check_range(self.clip, self.bound, self.bound / self.space.radius)
        stages, each = self._beyond(labelled)
        step = Grid(self.space.radius, 1).step
        longest = min(self._grid.inside(self.size) / step, LARGEST)
        both = tuple(f"b{i}" for i in range(self.size))
        pairs = zip(both, each, OrderedRows(self.space).integers, strict=True)
        stages = (
            *stages,
            {"r": sqrt(squared(each))},
            {"s": case(name("r") > longest, term(longest) / name("r"), 1.0), "g": self._kept},
            {b: name(a) * name("s") + floated(name(u)) * name("g") for b, a, u in pairs},
            {b: value for b in both for value in flushed(b, LEAST).values()},
        )
        return stages, both, step

    # ---------------------------------------------------------------- sensitivity

    @staticmethod
    def largest_change(bound: float) -> float:
        """``2 K``, for planning before there is a query."""
        return 2 * bound

    def contribution(self) -> float:
        return self.bound

    def replacement(self) -> float:
        return self.largest_change(self.bound)
