"""Rows times functions of their response, and products of rows, for messages whose noise is the same in every entry."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, WhitenedSpace, svec
from dpregress.coordinates.exact import ExactVector, Grid, cross, gram
from dpregress.errors import InvalidInput
from dpregress.queries.base import RowQuery
from dpregress.releases import CrossMoments, MessageParts, NoiseLaw
from dpregress.rows.bounded import BoundedRows


class CrossMoment(RowQuery[CrossMoments]):
    r"""``sum (x~ y~, f x~, h x~ phi(y~), g svec(x~ x~'))``: the cross moment, and what helps to read it.

    ``phi`` are hat functions over equally spaced nodes: a response between two nodes is divided between them, so that
    ``sum_j phi_j(y~) = 1`` and ``sum_j c_j phi_j(y~) = y~``. With ``||x~|| <= R`` and ``|y~| <= C`` a row contributes
    at most ``R sqrt(C^2 + f^2 + h^2 + g^2 R^2)``, because ``||phi|| <= 1``, and replacing one changes the sum by at
    most twice that. Parts whose factor is 0 are left out.

    Parameters
    ----------
    space : WhitenedSpace
        With a bounded response.
    parts : MessageParts
        f, h, g and the nodes: public numbers.

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = False

    def __init__(self, space: WhitenedSpace, parts: MessageParts) -> None:
        super().__init__(space)
        if space.response is None or math.isinf(space.response.bound) or math.isinf(space.radius):
            raise InvalidInput("a cross moment needs bounds on rows and on the response")
        self.parts = parts
        self._bound = space.response.bound

    @property
    def size(self) -> int:
        return self.parts.size(self.space.order)

    def exact(self, rows: BoundedRows) -> ExactVector:
        of_x, of_y = Grid(self.space.radius, rows.words), self._of_responses(rows)
        sums = cross(rows.x, self._factors(rows, of_y), of_x, of_y).T.reshape(-1)
        units = np.full(len(sums), of_x.step * of_y.step)
        if self.parts.gram:
            products = svec.upper(gram(rows.x, of_x))
            sums = np.concatenate([sums, products])
            units = np.concatenate([units, self._products_unit() * of_x.step**2])
        return ExactVector(sums, units)

    def each(self, rows: BoundedRows) -> Matrix:
        factors = self._factors(rows, self._of_responses(rows))
        blocks = [rows.x * factor[:, None] for factor in factors.T]
        if self.parts.gram:
            blocks.append(self.parts.gram * svec.outer(rows.x))
        return np.hstack(blocks)

    def _of_responses(self, rows: BoundedRows) -> Grid:
        return Grid(max(self._bound, 1.0), rows.words)

    def _factors(self, rows: BoundedRows, grid: Grid) -> Matrix:
        """By what a row is multiplied, of shape (m, factors); rows without content are 0 already."""
        found = [grid.clipped(rows.y, -self._bound, self._bound)]
        if self.parts.first:
            found.append(grid.clipped(self.parts.first * rows.weight, 0.0, self.parts.first))
        if self.parts.nodes:
            known = np.where(rows.weight > 0, rows.weight, 1.0)
            hats = self.parts.hats_at(rows.y / known / self._bound)
            found += list(np.floor(self.parts.hat * hats * rows.weight / grid.step) * grid.step)  # never longer
        return np.column_stack(found)

    def _products_unit(self) -> Vector:
        return self.parts.gram * svec.svec(np.ones((self.space.order, self.space.order)))

    def contribution(self) -> float:
        return self.parts.bound(self.space.radius, self._bound)

    def replacement(self) -> float:
        return 2 * self.contribution()

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> CrossMoments:
        return CrossMoments(total, n, noise, events, self.space, self.parts)
