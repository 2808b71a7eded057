"""Sums of vectors that are shrunk to a norm as a whole."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.exact import ExactVector, Grid, Integers, column_sums
from dpregress.coordinates.products import squared_norms
from dpregress.errors import InvalidInput, NotAnswered
from dpregress.queries.base import RowQuery
from dpregress.releases import Score
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import LARGEST, check_range, squared, within_ball
from dpregress.rows.row_kernel import Program, Stage, case, name, sqrt, term

#: Rows that are shorter count for nothing: their squares would underflow.
_SHORTEST = 2.0**-400


def checked_bound(bound: float) -> float:
    """A bound, if it is positive."""
    if not bound > 0:
        raise InvalidInput(f"the bound of a vector must be positive, not {bound}")
    return bound


class BoundedVectors(RowQuery[Score]):
    """Common base of sums of products of rows x with numbers or vectors, each shrunk to the norm K as a whole.

    A row contributes at most K, and replacing one changes the sum by at most ``2 K``, which opposite rows reach.
    """

    tight: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True

    bound: float

    @abstractmethod
    def each(self, rows: BoundedRows) -> Matrix:
        """The contribution of each row on the grid, of shape (m, size)."""

    @abstractmethod
    def vector_stages(self, labelled: bool) -> tuple[tuple[Stage, ...], tuple[str, ...]]:
        """Stages to ``a0``, ``a1``, .., the vector of a row before it is shrunk, in steps of x."""

    def most(self, rows: BoundedRows) -> Vector:
        """The largest norm of what each row is multiplied with, of shape (m,)."""
        limit, length = Grid(self.bound, rows.words).inside(self.size), np.sqrt(squared_norms(rows.x))
        with np.errstate(over="ignore"):  # infinity clips nothing
            return np.asarray(np.where(length > _SHORTEST, limit / np.maximum(length, _SHORTEST), 0.0))

    def exact(self, rows: BoundedRows) -> ExactVector:
        grid = Grid(self.bound, rows.words)
        return ExactVector(column_sums(self.each(rows), grid), grid.step)

    # ---------------------------------------------------------------- in a database

    @property
    def _grid(self) -> Grid:
        """That of a program, with one word."""
        return Grid(self.bound, 1)

    def check_program(self) -> None:
        """Refuse what no database can compute."""
        if math.isinf(self.space.radius):
            raise NotAnswered("a database cannot compute gradients of rows of any length: leave the engine out")
        check_range(self.bound, self.bound / self.space.radius)

    def program(self, labelled: bool) -> Program:
        (stages, each), integers = self.vector_stages(labelled), [f"v{i}" for i in range(self.size)]
        unit = Grid(self.space.radius, 1).step
        return Program.of((*stages, *within_ball(each, integers, self._grid, unit)), integers)

    @property
    def longest(self) -> float:
        """The norm to which vectors are shrunk, in steps of x."""
        return min(self._grid.inside(self.size) / Grid(self.space.radius, 1).step, LARGEST)

    def shrunk(self, each: tuple[str, ...]) -> tuple[Stage, ...]:
        """Stages to ``s``, the share of a vector that is left of it."""
        length = name("r")
        return ({"r": sqrt(squared(each))}, {"s": case(length > self.longest, term(self.longest) / length, 1.0)})

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole, self._grid.step)

    # ---------------------------------------------------------------- sensitivity

    @staticmethod
    def largest_change(bound: float) -> float:
        """``2 K``, for planning before there is a query."""
        return 2 * bound

    def contribution(self) -> float:
        return self.bound

    def replacement(self) -> float:
        return self.largest_change(self.bound)
