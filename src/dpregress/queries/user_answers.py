"""The questions of the published local protocols: both moments in one message, and individual predictions."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, WhitenedSpace, svec
from dpregress.coordinates.exact import ExactVector, Grid, cross, gram
from dpregress.coordinates.products import products
from dpregress.queries.base import RowQuery
from dpregress.queries.score import checked
from dpregress.releases import NoiseLaw, Score
from dpregress.rows.bounded import BoundedRows

#: Predictions are multiples of this.
_CELL = 2.0**-52


class PublishedMoments(RowQuery[Score]):
    r"""The upper triangle of ``sum x x'`` and ``w sum x y`` in one message, ``w = R / C``.

    With ``||x|| <= R`` and ``|y| <= C`` the two parts have the published sensitivities ``2 R^2`` and
    ``2 w R C = 2 R^2``, and the message has ``2 sqrt(2) R^2``. This is loose, because that of the first part is at
    most ``sqrt(2) R^2``. Noise of one scale on the message is noise for sensitivities ``2 R^2`` and ``2 R C`` on the
    parts, each at half of mu squared.

    Parameters
    ----------
    space : WhitenedSpace
        With a response.

    References
    ----------
    Wang, Hu, Zhang, Gaboardi, Xu (2023), Algorithms 1 to 4.
    """

    tight: ClassVar[bool] = False

    def __init__(self, space: WhitenedSpace) -> None:
        super().__init__(space)
        assert space.response is not None
        self.bound = space.response.bound

    @property
    def size(self) -> int:
        return svec.length(self.space.order) + self.space.order

    @property
    def weight(self) -> float:
        """The weight w of the cross moment."""
        return self.space.radius / self.bound

    def exact(self, rows: BoundedRows) -> ExactVector:
        of_x, of_y = Grid(self.space.radius, rows.words), Grid(self.bound, rows.words)
        moment = svec.upper(gram(rows.x, of_x))
        units = np.full(self.size, of_x.step**2)
        units[len(moment) :] = self.weight * of_y.step * of_x.step
        border = cross(rows.x, of_y.clipped(rows.y)[:, None], of_x, of_y)[:, 0]
        return ExactVector(np.concatenate([moment, border]), units)

    def contribution(self) -> float:
        return math.sqrt(2) * self.space.radius**2

    def replacement(self) -> float:
        return 2 * math.sqrt(2) * self.space.radius**2

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Score:
        return Score(total, n, noise, events, self.space)

    def parts(self, release: Score) -> tuple[Matrix, Vector]:
        """``mean x x'`` and ``mean x y`` of a release, of shape (p, p) and (p,)."""
        order = self.space.order
        return svec.un_upper(release.mean[:-order], order), np.asarray(release.mean[-order:] / self.weight)


class Predictions(RowQuery[Score]):
    """``clip(x'beta, 0, 1)`` of each row in a separate cell, which a second round asks of each user.

    Replacing a row changes only its own cell, by at most 1.

    Parameters
    ----------
    space : WhitenedSpace
    coef : ndarray of shape (p,)
        Whitened coefficients from an earlier release.
    n : int
        Number of rows.

    References
    ----------
    Wang, Hu, Zhang, Gaboardi, Xu (2023), Algorithm 5.
    """

    tight: ClassVar[bool] = True
    kept_apart: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, coef: Vector, n: int) -> None:
        super().__init__(space)
        self.coef = checked(coef)
        self.n = n

    @property
    def size(self) -> int:
        return self.n

    def exact(self, rows: BoundedRows) -> ExactVector:
        cells = np.zeros(self.n, dtype=np.int64)
        with np.errstate(over="ignore"):
            predicted = products(rows.x, self.coef[None, :])[:, 0]
        cells[rows.first_row : rows.first_row + len(rows.x)] = np.rint(np.clip(predicted, 0.0, 1.0) / _CELL)
        return ExactVector(cells, _CELL)

    def contribution(self) -> float:
        return 1.0

    def replacement(self) -> float:
        return 1.0

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Score:
        return Score(total, n, noise, events, self.space)
