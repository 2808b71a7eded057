r"""Sums by bins of the prediction, from which ROC curves, calibration and the spread of residuals are computed."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.exact import TERM_BITS, ExactVector, Grid, column_sums
from dpregress.errors import InvalidInput
from dpregress.models.families import Family
from dpregress.queries.base import RowQuery
from dpregress.queries.score import checked, linear_predictor
from dpregress.releases import NoiseLaw
from dpregress.releases.diagnosis import BinnedSums
from dpregress.rows.bounded import BoundedRows


def response_of(rows: BoundedRows) -> tuple[Vector, NDArray[np.bool_]]:
    """The response without the row's weight, 0 where there is none; and which rows count."""
    known = rows.weight > 0
    with np.errstate(over="ignore"):
        y = np.where(known, rows.y, 0.0) / np.where(known, rows.weight, 1.0)
    return np.clip(y, -1e150, 1e150), known


class _Binned(RowQuery[BinnedSums]):
    """A few bounded numbers of each row, summed in the bin of its linear predictor."""

    #: The largest magnitudes of the numbers of a row.
    scales: ClassVar[tuple[float, ...]]

    def __init__(self, space: WhitenedSpace, family: Family, coef: Vector, edges: Vector) -> None:
        super().__init__(space)
        if not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
            raise InvalidInput("bins of predictions need increasing, finite edges")
        self.family = family
        self.coef = checked(coef)
        self.edges = edges

    @property
    def bins(self) -> int:
        """The number of bins; the outer two include everything beyond the edges."""
        return len(self.edges) + 1

    @property
    def size(self) -> int:
        return self.bins * len(self.scales)

    @abstractmethod
    def numbers(self, eta: Vector, place: NDArray[np.intp], y: Vector) -> Matrix:
        """The numbers of the rows in units of ``scales``, of shape (m, cells); they are clipped to [-1, 1]."""

    def exact(self, rows: BoundedRows) -> ExactVector:
        y, known = response_of(rows)
        eta = linear_predictor(rows, self.coef)
        place = np.searchsorted(self.edges, eta, side="right")
        grid = Grid(1.0, rows.words, TERM_BITS)
        numbers = grid.clipped(self.numbers(eta, place, y)) * known[:, None]
        sums = [column_sums(numbers[place == k], grid) for k in range(self.bins)]
        return ExactVector(np.concatenate(sums), np.tile(self.scales, self.bins) * grid.step)

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> BinnedSums:
        return BinnedSums(total, n, noise, events, self.space, self.edges)


class PredictorHistogram(_Binned):
    r"""Counts of linear predictors in public bins.

    A row is in one bin, or in none without a response, so the sensitivities are 1 and ``sqrt 2``.

    Parameters
    ----------
    space : WhitenedSpace
        With a response.
    family : Family
    coef : ndarray of shape (p,)
        Whitened coefficients, public or released.
    edges : ndarray of shape (bins - 1,)
        Increasing; the outer bins include everything beyond them.

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = True
    scales: ClassVar[tuple[float, ...]] = (1.0,)

    def numbers(self, eta: Vector, place: NDArray[np.intp], y: Vector) -> Matrix:  # noqa: ARG002
        return np.ones((len(eta), 1))

    def contribution(self) -> float:
        return 1.0

    def replacement(self) -> float:
        return math.sqrt(2)


class BinnedClasses(_Binned):
    r"""Counts of two classes by bin of the prediction, and the position of the prediction within its bin.

    A row adds ``(1 - y, y, a u)`` to its bin, y its class and u in [-1, 1] its predicted mean, from the middle of the
    bin in units of half its width. Adding it changes the sums by at most ``sqrt(1 + a^2)``. Two rows of one bin differ
    by at most ``sqrt(2 + 4 a^2)``, two of different bins by at most ``sqrt(2 + 2 a^2)``.

    Parameters
    ----------
    space, family, coef, edges
        As in :class:`PredictorHistogram`. Responses of at least 1/2 count as 1, all others as 0.

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = False
    #: The weight a of the position.
    position: ClassVar[float] = 0.25
    scales: ClassVar[tuple[float, ...]] = (1.0, 1.0, position)

    @property
    def middle(self) -> tuple[Vector, Vector]:
        """The middle of each bin among predicted means, and half its width."""
        ends = np.concatenate([[0.0], self.family.mean(self.edges), [1.0]])
        return (ends[:-1] + ends[1:]) / 2, np.maximum(np.abs(np.diff(ends)) / 2, 1e-12)

    def numbers(self, eta: Vector, place: NDArray[np.intp], y: Vector) -> Matrix:
        middle, half = self.middle
        within = (self.family.mean(eta) - middle[place]) / half[place]
        second = (y >= 0.5).astype(np.float64)
        return np.column_stack([1 - second, second, within])

    def contribution(self) -> float:
        return math.sqrt(1 + self.position**2)

    def replacement(self) -> float:
        return math.sqrt(2 + 4 * self.position**2)


class BinnedResiduals(_Binned):
    r"""Number, sum and sum of squares of scaled residuals, by bin of the prediction.

    A row adds ``(1, r, 2 r^2 - 1)`` to its bin, with r its Pearson residual ``(y - m) / (scale sqrt V(m))``, clipped to
    [-1, 1]. Its norm is at most ``sqrt 3``, so two rows of different bins differ by at most ``sqrt 6``. Two rows of one
    bin differ by less: with ``d = |r - s|`` and ``e = |r + s| <= 2 - d``, the square is ``d^2 (1 + 4 e^2) < 5.2``.

    Parameters
    ----------
    space, family, coef, edges
        As in :class:`PredictorHistogram`.
    scale : float
        A public or released number: the Pearson residual at which r is 1.

    References
    ----------
    docs/queries.md.
    """

    #: Rows of different bins with residuals beyond the scale reach the bounds; all rows may be in one bin.
    tight: ClassVar[bool] = False
    scales: ClassVar[tuple[float, ...]] = (1.0, 1.0, 1.0)

    def __init__(self, space: WhitenedSpace, family: Family, coef: Vector, edges: Vector, scale: float) -> None:
        super().__init__(space, family, coef, edges)
        if not 1e-100 <= scale <= 1e100:
            raise InvalidInput(f"the scale of residuals must be positive and finite, not {scale}")
        self.scale = scale

    def numbers(self, eta: Vector, place: NDArray[np.intp], y: Vector) -> Matrix:  # noqa: ARG002
        mean = self.family.mean(eta)
        deviation = np.sqrt(np.maximum(self.family.distribution.variance(mean), 1e-300))
        with np.errstate(over="ignore", invalid="ignore"):
            residual = np.nan_to_num(np.clip((y - mean) / deviation / self.scale, -1.0, 1.0))
        return np.column_stack([np.ones(len(y)), residual, 2 * residual**2 - 1])

    def contribution(self) -> float:
        return math.sqrt(3)

    def replacement(self) -> float:
        return math.sqrt(6)
