r"""Histograms on public bins, from which private scales and quantiles are estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Event
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.coordinates.exact import ExactVector, Integers
from dpregress.errors import InvalidInput, NotAnswered
from dpregress.models.families import Family, GaussianFamily
from dpregress.queries.base import RowQuery
from dpregress.queries.ordered_residual import OrderedResidual
from dpregress.queries.score import ClippedScore
from dpregress.releases import Histogram, NoiseLaw
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import (
    SHORTENED,
    OrderedExposure,
    OrderedResponse,
    OrderedRows,
    check_range,
    usable_row,
)
from dpregress.rows.row_kernel import Program, Stage, binned, case, floated, name, term


class _Histogram(RowQuery[Histogram]):
    """Counts of magnitudes in public bins; each row is in at most one bin."""

    def __init__(self, space: WhitenedSpace, edges: Vector) -> None:
        super().__init__(space)
        if len(edges) < 3 or not (np.diff(edges) > 0).all():
            raise InvalidInput("a histogram needs at least two bins and increasing edges")
        self.edges = edges
        steps = np.diff(np.log2(edges)) if edges[0] > 0 else np.array([0.0, 1.0])
        #: Bins per octave, if constant: a logarithm then finds the bins, ten times faster.
        self._per_octave = 1 / float(steps[0]) if np.ptp(steps) < 1e-9 * steps[0] else None

    @property
    def size(self) -> int:
        return len(self.edges) - 1

    def counts(self, values: Vector) -> ExactVector:
        sizes = np.abs(values)
        if self._per_octave is None:
            return self._tallied(np.searchsorted(self.edges[1:-1], sizes, side="right"))
        with np.errstate(divide="ignore"):
            position = self._per_octave * (np.log2(sizes) - np.log2(self.edges[0]))
        bins = np.clip(np.floor(position), 0, self.size - 1).astype(np.intp)
        # a logarithm does not decide about a value at an edge
        bins = bins + (sizes >= self.edges[bins + 1]) - (sizes < self.edges[bins])
        return self._tallied(np.clip(bins, 0, self.size - 1))

    def _tallied(self, bins: NDArray[np.intp]) -> ExactVector:
        return ExactVector(np.bincount(bins, minlength=self.size))

    def _placed(self, stages: Sequence[Stage], value: str) -> Program:
        """Counts of the magnitudes of a column; rows that do not count are in no bin."""
        sizes = case(name(value) < 0.0, term(0.0) - name(value), name(value))
        place = case(name("k") >= 1, binned(name("a"), self.edges[1:-1].tolist()), -1)
        return Program.of((*stages, {"a": sizes}, {"h": place}), ("h",), bins=self.size)

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # as many as are in bins
        return ExactVector(whole)

    def contribution(self) -> float:
        return 1.0

    @staticmethod
    def largest_change() -> float:
        """``sqrt 2``, for planning before there is a query."""
        return math.sqrt(2)

    def replacement(self) -> float:
        return self.largest_change()

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Histogram:
        return Histogram(total, n, noise, events, self.space, self.edges)


class ResponseHistogram(_Histogram):
    r"""Counts of ``|y|`` in public bins.

    A row is in one bin, or in none if it has no response. Adding or removing it changes one count by 1, and replacing
    it changes at most two counts by 1 each. The sensitivities are therefore 1 and ``sqrt 2``.

    Parameters
    ----------
    space : WhitenedSpace
        With a response; y is centred and scaled as the space says, and not weighted.
    edges : ndarray of shape (bins + 1,)
        Increasing; the outer bins include everything beyond the inner edges.

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = True
    reads_features: ClassVar[bool] = False
    pushes_down: ClassVar[bool] = True

    def exact(self, rows: BoundedRows) -> ExactVector:
        return self.counts(rows.y[rows.weight > 0])

    def program(self, labelled: bool) -> Program:
        if self.space.response is None or not labelled:
            raise NotAnswered("a histogram of the response needs responses: leave the engine out")
        response = OrderedResponse(self.space.response)
        return self._placed((response.usable(labelled), {"g": response.bounded(response.scaled)}), "g")


class ExposureHistogram(_Histogram):
    r"""Counts of exposures in public bins.

    The sensitivities are 1 and ``sqrt 2``, as for :class:`ResponseHistogram`. Rows of weight 0, which lack a response
    or a usable exposure, are in no bin.

    Parameters
    ----------
    space : WhitenedSpace
        With a response and an exposure.
    edges : ndarray of shape (bins + 1,)

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = True
    reads_features: ClassVar[bool] = False
    pushes_down: ClassVar[bool] = True

    def exact(self, rows: BoundedRows) -> ExactVector:
        offset = np.zeros(len(rows.weight)) if rows.offset is None else rows.offset
        inner = np.log(self.edges[1:-1])  # an exposure at an edge is there in logarithms too
        return self._tallied(np.searchsorted(inner, offset[rows.weight > 0], side="right"))

    def program(self, labelled: bool) -> Program:
        if self.space.exposure is None:
            raise NotAnswered("a histogram of exposures needs exposures: leave the engine out")
        exposed = OrderedExposure(self.space.exposure).bounded
        return self._placed(({"k": usable_row(labelled), "g": exposed},), "g")


class ResidualHistogram(_Histogram):
    r"""Counts of ``|w (y - m(x'beta)) f(x'beta)|``, the magnitudes that a score clips, in public bins.

    The sensitivities are 1 and ``sqrt 2``, as for :class:`ResponseHistogram`.

    Parameters
    ----------
    space : WhitenedSpace
        With a response.
    family : Family
    coef : ndarray of shape (p,)
        Whitened coefficients, public or released.
    edges : ndarray of shape (bins + 1,)

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, family: Family, coef: Vector, edges: Vector) -> None:
        super().__init__(space, edges)
        self._score = ClippedScore(space, family, coef, clip=1.0)

    def exact(self, rows: BoundedRows) -> ExactVector:
        return self.counts(self._score.residual(rows)[rows.weight > 0])

    def program(self, labelled: bool) -> Program:
        residual = OrderedResidual(OrderedRows(self.space), self._score.family, self._score.coef)
        return self._placed(residual.stages(labelled), "d")


class FarVotes(_Histogram):
    r"""Numbers of far rows whose response is nearer to the fit, and of those for which it is nearer to the mean.

    The first coordinate times ``scale`` is ``w eta``, with eta the prediction about the mean and w the weight of a row.
    A row with w below 1 is far. With a residual r from the fit, its response is nearer to the mean if
    ``w r < -w eta / 2`` for positive eta, and likewise for negative. The bins are: rows that are not far; far ones with
    ``w >= 1 / times``, nearer to the fit and to the mean; and farther ones likewise. The sensitivities are 1 and
    ``sqrt 2``, as for :class:`ResponseHistogram`.

    Parameters
    ----------
    space : WhitenedSpace
        With a response; its first coordinate is along the prediction.
    coef : ndarray of shape (p,)
        Whitened coefficients of the fit, public or released.
    scale : float
        The prediction about the mean at a first coordinate of 1.
    times : float
        How many radii away the farther rows are.

    References
    ----------
    docs/queries.md.
    """

    #: In a space that weights features only, no row has a weight below 1.
    tight: ClassVar[bool] = False
    pushes_down: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, coef: Vector, scale: float, times: float) -> None:
        super().__init__(space, np.arange(6.0))
        self._score = ClippedScore(space, GaussianFamily, coef, clip=1.0)
        self.scale, self.times = scale, times

    def exact(self, rows: BoundedRows) -> ExactVector:
        farther = rows.weight < rows.root / self.times
        first, residual = rows.x[:, 0], self._score.residual(rows)
        half = -self.scale / 2 * first
        mean = np.where(first > 0, residual < half, (first < 0) & (residual > half))
        kind = np.where(rows.shortened, 1 + 2 * farther + mean, 0)
        return self._tallied(kind[rows.weight > 0])

    def program(self, labelled: bool) -> Program:
        rows = OrderedRows(self.space)
        per_step = -self.scale / 2 * rows.grid.step
        check_range(abs(per_step))
        half, residual, first = floated(name("u0")) * per_step, name("d"), name("u0")
        mean = case((first >= 1) & (residual < half), 1.0, (first < 0) & (residual > half), 1.0, 0.0)
        kind = case(name("w") < 1 / self.times, name("v") + 3.0, SHORTENED, name("v") + 1.0, 0.0)
        stages = OrderedResidual(rows, GaussianFamily, self._score.coef).stages(labelled)
        return self._placed((*stages, {"v": mean}, {"v": kind}), "v")
