r"""The Fisher information of two classes in the private rows."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Vector, WhitenedSpace, svec
from dpregress.coordinates.exact import ExactVector, Grid, Integers, gram, symmetric
from dpregress.models import BinomialFamily
from dpregress.queries.base import RowQuery
from dpregress.queries.ordered_residual import OrderedResidual
from dpregress.queries.score import checked, linear_predictor
from dpregress.releases import NoiseLaw, ScoreMoment
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import OrderedRows, check_range, within_ball
from dpregress.rows.ordered_functions import flushed
from dpregress.rows.row_kernel import Program, floated, name, sqrt, term

#: The largest standard deviation of a response in {0, 1}: that of even classes.
_LARGEST = 0.5
#: Standard deviations below it are 0 in a database.
_LEAST = 2.0**-200


class BinomialInformation(RowQuery[ScoreMoment]):
    r"""``svec(sum v v')`` with ``v = x sqrt(m (1 - m))``, m the probability of the second class at given coefficients.

    Since ``m (1 - m) <= 1/4``, v lies within R / 2: adding or removing a row changes the sum by at most ``R^2 / 4``,
    and replacing one by at most ``sqrt 2 R^2 / 4`` (:class:`SecondMoment`). Responses are read only to leave out rows
    without one.

    Parameters
    ----------
    space : WhitenedSpace
        With a response in [0, 1].
    coef : ndarray of shape (p,)
        Whitened coefficients, public or released.

    References
    ----------
    docs/queries.md.
    """

    #: Orthogonal rows on the sphere reach the bound where their predictors are 0.
    tight: ClassVar[bool] = False
    pushes_down: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, coef: Vector) -> None:
        super().__init__(space)
        self.coef = checked(coef)

    @property
    def size(self) -> int:
        return svec.length(self.space.order)

    def _grid(self, words: int) -> Grid:
        return Grid(_LARGEST * self.space.radius, words)

    def exact(self, rows: BoundedRows) -> ExactVector:
        grid = self._grid(rows.words)
        information = BinomialFamily.information(linear_predictor(rows, self.coef))
        each = rows.x * np.minimum(np.sqrt(information), _LARGEST)[:, None]
        return symmetric(gram(grid.within_ball(each), grid), grid.step**2)

    def program(self, labelled: bool) -> Program:
        rows, grid = OrderedRows(self.space), self._grid(1)
        check_range(grid.bound)
        each, integers = ([f"{letter}{i}" for i in range(self.space.order)] for letter in "av")
        stages = (
            *OrderedResidual(rows, BinomialFamily, self.coef).means(labelled),
            {"h": name("m") * (term(1.0) - name("m"))},
            {"h": sqrt(name("h"))},
            flushed("h", _LEAST),
            {a: floated(name(u)) * name("h") for a, u in zip(each, rows.integers, strict=True)},
            *within_ball(each, integers, grid, Grid(self.space.radius, 1).step),
        )
        return Program.of(stages, integers, integers)

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return symmetric(whole, self._grid(1).step ** 2)

    def contribution(self) -> float:
        return (_LARGEST * self.space.radius) ** 2

    def replacement(self) -> float:
        return math.sqrt(2) * self.contribution()

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> ScoreMoment:
        return ScoreMoment(svec.unsvec(total, self.space.order), n, noise, events, self.space)
