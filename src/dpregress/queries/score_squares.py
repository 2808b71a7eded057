r"""The second moment of scores, from which sampling errors follow without a model of the errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Vector, svec
from dpregress.coordinates.exact import ExactVector, Grid, Integers, gram, symmetric
from dpregress.errors import InvalidInput
from dpregress.queries.base import RowQuery
from dpregress.queries.class_remainder import ClassRemainder
from dpregress.queries.score_remainder import ScoreRemainder
from dpregress.releases import NoiseLaw, Score, ScoreMoment
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import check_range, within_ball
from dpregress.rows.row_kernel import Program, Stage, floated, name

#: Bounds whose squares neither over- nor underflow.
_SMALLEST, _LARGEST = 1e-100, 1e100


class ScoreSquares(RowQuery[ScoreMoment]):
    r"""``svec(sum v v')`` with ``v = u min(1, K / ||u||)``, u a row's contribution to a score.

    It is the second moment of vectors within a ball of radius K, so that adding or removing a row changes it by at most
    ``K^2``, and replacing one by at most ``sqrt 2 K^2`` (:class:`SecondMoment`).

    Parameters
    ----------
    score : RowQuery
        A score of length q whose rows' contributions are taken as they are in a fit.
    bound : float
        K, a public number.

    References
    ----------
    docs/queries.md; White (1980) and Huber (1967) for the use of the matrix.
    """

    #: Orthogonal scores of norm K reach the bound; whether rows can have them depends on the clip of the score.
    tight: ClassVar[bool] = False
    pushes_down: ClassVar[bool] = True

    def __init__(self, score: RowQuery[Score], bound: float) -> None:
        super().__init__(score.space)
        if not _SMALLEST <= bound <= _LARGEST:
            raise InvalidInput(f"the bound of a score must be positive and its square a number, not {bound}")
        self.score = score
        self.bound = bound

    @property
    def columns(self) -> int:
        return self.score.columns + self.score.size

    @property
    def size(self) -> int:
        return svec.length(self.score.size)

    def exact(self, rows: BoundedRows) -> ExactVector:
        grid = Grid(self.bound, rows.words)
        return symmetric(gram(grid.within_ball(self.score.influence(rows)), grid), grid.step**2)

    def program(self, labelled: bool) -> Program:
        check_range(self.bound)
        (before, each, unit), grid = self._contributions(labelled), Grid(self.bound, 1)
        integers = [f"v{i}" for i in range(len(each))]
        return Program.of((*before, *within_ball(each, integers, grid, unit)), integers, integers)

    def _contributions(self, labelled: bool) -> tuple[tuple[Stage, ...], Sequence[str], float]:
        """Stages to the contribution of a row, its columns, and what one in them stands for."""
        if isinstance(self.score, ScoreRemainder | ClassRemainder):
            return self.score.contributions(labelled)
        program = self.score.program(labelled)
        unit = float(self.score.of_sums(np.zeros(program.shape, dtype=object), 0).unit)
        terms = [name(u) * name(residual) for u in program.left for residual in program.right]
        each = {f"a{i}": floated(integer) for i, integer in enumerate(terms or map(name, program.left))}
        return (*program.stages, each), tuple(each), unit

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return symmetric(whole, Grid(self.bound, 1).step ** 2)

    @staticmethod
    def largest_change(bound: float) -> float:
        """``sqrt 2 K^2``, for planning before there is a query."""
        return math.sqrt(2) * bound**2

    def contribution(self) -> float:
        return self.bound**2

    def replacement(self) -> float:
        return self.largest_change(self.bound)

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> ScoreMoment:
        return ScoreMoment(svec.unsvec(total, self.score.size), n, noise, events, self.space)
