r"""The second moment of joint rows, on which linear regression is based."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, svec
from dpregress.queries.base import RowQuery
from dpregress.releases import Moments, NoiseLaw
from dpregress.rows.bounded import BoundedRows

#: With fewer columns, multiplying a short block by its copy is faster than one symmetric product of all rows, which
#: has half the operations: libraries reach only a quarter of their speed on such narrow matrices.
_NARROW, _BLOCK = 24, 2048


def gram(x: Matrix) -> Matrix:
    """``x'x`` of shape (p, p), symmetric up to rounding.

    Examples
    --------
    >>> gram(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[10.0, 14.0], [14.0, 20.0]]
    """
    if x.shape[1] >= _NARROW:
        return x.T @ x
    total = np.zeros((x.shape[1], x.shape[1]))
    for first in range(0, len(x), _BLOCK):
        part = x[first : first + _BLOCK]
        total += part.T @ part.copy("K")
    return total


class SecondMoment(RowQuery[Moments]):
    r"""``svec(sum v v')`` over joint rows ``v = (x, u y)``, or over x where the space has no response.

    With ``||x|| <= R``, ``|y| <= C`` the joint radius is ``Rv = sqrt(R^2 + u^2 C^2)``, and

    * adding or removing a row: ``||v v'||_F = ||v||^2 <= Rv^2``;
    * replacing one: ``||v v' - z z'||_F^2 = ||v||^4 + ||z||^4 - 2 (v'z)^2 <= 2 Rv^4``. Orthogonal rows on the sphere
      reach this bound; they exist if ``u C <= R``.

    Source: docs/queries.md; the published bound is 2 R^2 (Cao, Bi, Zhang 2026, Theorem 4).
    """

    tight: ClassVar[bool] = True

    @property
    def order(self) -> int:
        """Number of joint columns."""
        return self.space.order + (self.space.response is not None)

    @property
    def size(self) -> int:
        return svec.length(self.order)

    def value(self, rows: BoundedRows) -> Vector:
        if self.space.response is None:
            return svec.svec(gram(rows.x))
        joint = np.empty((self.order, self.order))
        joint[:-1, :-1] = gram(rows.x)
        joint[:-1, -1] = joint[-1, :-1] = self.space.response.cross * (rows.y @ rows.x)
        joint[-1, -1] = self.space.response.cross**2 * (rows.y @ rows.y)
        return svec.svec(joint)

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
