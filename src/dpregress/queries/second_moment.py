r"""The second moment of joint rows, on which linear regression is based."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, svec
from dpregress.coordinates.exact import ExactVector, Grid, Integers, cross, gram, symmetric
from dpregress.queries.base import RowQuery
from dpregress.releases import Moments, NoiseLaw
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import OrderedRows
from dpregress.rows.row_kernel import Program


class SecondMoment(RowQuery[Moments]):
    r"""``svec(sum v v')`` over joint rows ``v = (x, u y)``, or over x where the space has no response.

    With ``||x|| <= R``, ``|y| <= C`` the joint radius is ``Rv = sqrt(R^2 + u^2 C^2)``, and

    * adding or removing a row: ``||v v'||_F = ||v||^2 <= Rv^2``;
    * replacing one: ``||v v' - z z'||_F^2 = ||v||^4 + ||z||^4 - 2 (v'z)^2 <= 2 Rv^4``. Orthogonal rows on the sphere
      reach this bound; they exist if ``u C <= R``.

    Source: docs/queries.md; the published bound is 2 R^2 (Cao, Bi, Zhang 2026, Theorem 4).
    """

    tight: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    @property
    def order(self) -> int:
        """Number of joint columns."""
        return self.space.order + (self.space.response is not None)

    @property
    def size(self) -> int:
        return svec.length(self.order)

    def exact(self, rows: BoundedRows) -> ExactVector:
        of_x = Grid(self.space.radius, rows.words)
        whole = gram(rows.x, of_x)
        if self.space.response is None:
            return self._in_units(whole, rows.words)
        of_y, y = self._response(rows)
        joint = np.empty((self.order, self.order), dtype=whole.dtype)
        joint[:-1, :-1] = whole
        joint[:-1, -1:] = cross(rows.x, y[:, None], of_x, of_y)
        joint[-1, :-1] = joint[:-1, -1]
        joint[-1:, -1:] = gram(y[:, None], of_y)
        return self._in_units(joint, rows.words)

    def program(self, labelled: bool) -> Program:
        return OrderedRows(self.space).joint(labelled)

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return self._in_units(whole, 1)

    def _in_units(self, joint: Integers, words: int) -> ExactVector:
        of_x = Grid(self.space.radius, words)
        if self.space.response is None:
            return symmetric(joint, of_x.step**2)
        of_y = Grid(self.space.response.bound, words)
        steps = np.append(np.full(len(joint) - 1, of_x.step), self.space.response.cross * of_y.step)
        return symmetric(joint, np.outer(steps, steps))

    def each(self, rows: BoundedRows) -> Matrix:
        joint = rows.x
        if self.space.response is not None:
            joint = np.column_stack([joint, self.space.response.cross * self._response(rows)[1]])
        return svec.outer(joint)

    def _response(self, rows: BoundedRows) -> tuple[Grid, Vector]:
        """The responses of rows on their grid."""
        assert self.space.response is not None
        grid = Grid(self.space.response.bound, rows.words)
        largest = rows.root * grid.bound
        return grid, grid.clipped(rows.y, -largest, largest)

    @staticmethod
    def largest_change(radius: float) -> float:
        """``sqrt 2 Rv^2`` for joint rows within Rv, for planning where there is no query yet."""
        return math.sqrt(2) * radius**2

    def contribution(self) -> float:
        return self.space.joint_radius**2

    def replacement(self) -> float:
        return self.largest_change(self.space.joint_radius)

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Moments:
        return Moments(svec.unsvec(total, self.order), n, noise, events, self.space)
