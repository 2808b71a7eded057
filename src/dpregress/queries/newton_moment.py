r"""The weighted second moment of a Newton step."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Vector, WhitenedSpace, svec
from dpregress.coordinates.exact import ExactVector, Grid, cross
from dpregress.models.families import Family
from dpregress.queries.base import RowQuery
from dpregress.queries.score import checked, linear_predictor
from dpregress.releases import Moments, NoiseLaw
from dpregress.rows.bounded import BoundedRows


class PublishedHessian(RowQuery[Moments]):
    r"""``sum b''(x'beta) x x'`` on and above the diagonal, with the published sensitivity.

    With ``||x|| <= R`` and ``M2 = max b''``: ``2 R^2 M2`` for replacing a row (loose: sqrt 2 R^2 M2 bounds
    the Frobenius norm, which in turn bounds the upper triangle's), ``R^2 M2`` for adding or removing one.

    Parameters
    ----------
    space : WhitenedSpace
        Without a response.
    family : Family
        With its canonical link.
    coef : ndarray of shape (p,)
        Whitened coefficients, public or released.
    largest : float
        M2, a bound on ``b''``; larger values are clipped to it.

    References
    ----------
    Cao, Bi, Zhang (2026), Theorem 4 and Algorithms 3 and 4.
    """

    tight: ClassVar[bool] = False

    def __init__(self, space: WhitenedSpace, family: Family, coef: Vector, largest: float) -> None:
        super().__init__(space.with_response(None))
        self.family = family
        self.coef = checked(coef)
        self.largest = largest

    @property
    def size(self) -> int:
        return svec.length(self.space.order)

    def exact(self, rows: BoundedRows) -> ExactVector:
        radius = self.space.radius
        of_x, of_product = Grid(radius, rows.words), Grid(radius * self.largest, rows.words)
        largest = of_product.inside(self.space.order) / radius
        curvature = np.minimum(self.family.information(linear_predictor(rows, self.coef)), largest)
        product = of_product.nearest(rows.x * curvature[:, None])
        return ExactVector(svec.upper(cross(rows.x, product, of_x, of_product)), of_x.step * of_product.step)

    def contribution(self) -> float:
        return self.space.radius**2 * self.largest

    def replacement(self) -> float:
        return 2 * self.space.radius**2 * self.largest

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Moments:
        return Moments(svec.un_upper(total, self.space.order), n, noise, events, self.space)
