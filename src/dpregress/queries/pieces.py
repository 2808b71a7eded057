r"""Persons with an event time: the score and the information of a model with piecewise constant hazards.

A person is one row, although the likelihood has a Poisson term for each piece of the follow-up. The sum over a person's
pieces is taken inside the query, and bounded there, so that the whole contribution of a person is protected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, WhitenedSpace, svec
from dpregress.coordinates.exact import TERM_BITS, ExactVector, Grid, Integers, column_sums, gram, symmetric
from dpregress.coordinates.products import products, row_sums, squared_norms
from dpregress.errors import InvalidInput
from dpregress.models import contrasts
from dpregress.models.hazards import checked_cuts, event_in_piece, time_in_pieces
from dpregress.queries.base import R, RowQuery
from dpregress.queries.diagnosis import response_of
from dpregress.queries.ordered_pieces import FURTHEST, LOG_ERROR, OrderedPersons, OrderedPieces
from dpregress.queries.score import checked, linear_predictor
from dpregress.releases import NoiseLaw, Score, ScoreMoment
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import SQUARED_BITS
from dpregress.rows.row_kernel import Program


def _at_cuts(time: Vector, cuts: Sequence[float]) -> Vector:
    """The times, those within rounding of a cut at that cut: an event there belongs to the piece that it ends."""
    ends = np.asarray(cuts, dtype=np.float64)
    near = ends[np.minimum(np.searchsorted(ends, time * (1 - LOG_ERROR)), len(ends) - 1)]
    return np.where(np.abs(time - near) <= LOG_ERROR * near, near, time)


class _Pieces(RowQuery[R]):
    """What the queries share: the times and events of persons by piece. The exposure of a row is its time."""

    pushes_down: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, cuts: Sequence[float]) -> None:
        super().__init__(space)
        self.cuts = checked_cuts(cuts)

    @property
    def _ordered(self) -> OrderedPersons:
        """Persons as a database computes them."""
        return OrderedPersons(self.space, self.cuts)

    @property
    def columns(self) -> int:
        return super().columns + 3 * len(self.cuts)

    def persons(self, rows: BoundedRows) -> tuple[Matrix, Matrix]:
        """Times and events by piece, each of shape (m, K); 0 for a row that does not count."""
        event, known = response_of(rows)
        offset = np.zeros(len(event)) if rows.offset is None else rows.offset
        time = _at_cuts(np.exp(offset), self.cuts)
        counts = known[:, None]
        return time_in_pieces(time, self.cuts) * counts, event_in_piece(time, event, self.cuts) * counts


class PieceTotals(_Pieces[Score]):
    r"""Events and time at risk by piece: ``sum (d_k, e_k / (w_k sqrt K))``, w the widths of the K pieces.

    A person has at most one event, and at most its width in each piece. Adding one changes the sums by at most
    ``sqrt 2``. The events of two persons differ by at most ``sqrt 2``, their times by at most 1: together ``sqrt 3``.

    Parameters
    ----------
    space : WhitenedSpace
        With a response, the event, and an exposure, the time.
    cuts : sequence of float
        Public ends of the pieces.

    References
    ----------
    docs/queries.md.
    """

    #: Persons who reach the bound need other times than 0 and beyond the end, which rows need not have.
    tight: ClassVar[bool] = False
    reads_features: ClassVar[bool] = False

    @property
    def columns(self) -> int:
        return 1 + 3 * len(self.cuts)

    @property
    def widths(self) -> Vector:
        """Of the pieces, of shape (K,)."""
        return np.diff([0.0, *self.cuts])

    @property
    def size(self) -> int:
        return 2 * len(self.cuts)

    def exact(self, rows: BoundedRows) -> ExactVector:
        time, event = self.persons(rows)
        grid = Grid(1.0, rows.words, TERM_BITS)
        numbers = np.column_stack([event, time / self.widths]) * np.broadcast_to(rows.share, len(time))[:, None]
        return ExactVector(column_sums(grid.clipped(numbers), grid), self._units(grid.step, grid.step))

    def _units(self, of_event: float, of_time: float) -> Vector:
        """What one in the sums stands for."""
        return np.repeat([of_event, of_time / math.sqrt(len(self.cuts))], len(self.cuts))

    @property
    def _grid(self) -> Grid:
        """That of times in a program."""
        return Grid(1.0, 1, TERM_BITS)

    def program(self, labelled: bool) -> Program:
        return self._ordered.totals(labelled, self._grid)

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole, self.unit)

    @property
    def unit(self) -> Vector:
        """What one in the sums of the program stands for."""
        return self._units(1.0, self._grid.step)

    def contribution(self) -> float:
        return math.sqrt(2)

    def replacement(self) -> float:
        return math.sqrt(3)

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Score:
        return Score(total, n, noise, events, self.space)


class _AtCoefficients(_Pieces[R]):
    """The queries at coefficients: p of the whitened columns, K - 1 of the contrasts of log hazards."""

    def __init__(self, space: WhitenedSpace, cuts: Sequence[float], coef: Vector, clip: float) -> None:
        super().__init__(space, cuts)
        if len(coef) != space.order + len(self.cuts) - 1:
            raise InvalidInput(f"coefficients of {space.order} columns and {len(self.cuts)} pieces do not fit")
        if not 1e-100 <= clip <= 1e100:
            raise InvalidInput(f"clip must be positive and finite, not {clip}")
        self.coef = checked(coef)
        self.clip = clip
        #: The contrasts of pieces, of shape (K, K - 1).
        self.basis = contrasts(len(self.cuts)) if len(self.cuts) > 1 else np.zeros((1, 0))

    @property
    def order(self) -> int:
        """The number of coefficients."""
        return self.space.order + len(self.cuts) - 1

    @property
    def _at_place(self) -> OrderedPieces:
        """Persons at the coefficients, as a database computes them."""
        return OrderedPieces(self._ordered, self.coef, self.basis)

    def expected(self, rows: BoundedRows, time: Matrix) -> Matrix:
        """Expected events by piece, of shape (m, K)."""
        slopes, pieces = self.coef[: self.space.order], self.coef[self.space.order :]
        eta = linear_predictor(replace(rows, offset=None), slopes)
        logs = self.basis @ pieces + math.log(self.cuts[-1])  # of events in the whole follow-up
        hazard = np.exp(np.clip(eta[:, None] + logs, -FURTHEST, FURTHEST))
        return np.asarray(time / self.cuts[-1] * hazard)


class PieceScore(_AtCoefficients[Score]):
    r"""``sum (x M, w Q'm) min(1, C / nu)``: the score of persons, with ``m_k = w (d_k - mu_k)`` and ``M = sum m_k``.

    Expected events are ``mu_k = e_k exp(x'b + (Q a)_k)``, Q the contrasts of K pieces. With
    ``nu = sqrt(M^2 + ||Q'm||^2 / R^2)`` and ``||x|| <= R``, w <= 1, the contribution of a person, summed over all
    pieces, has the norm ``sqrt(||x||^2 M^2 + w^2 ||Q'm||^2) <= R nu``, and after shrinking at most ``R C``. Replacing a
    person changes the sum by at most ``2 R C``.

    Parameters
    ----------
    space : WhitenedSpace
        With a response, the event, and an exposure, the time.
    cuts : sequence of float
    coef : ndarray of shape (p + K - 1,)
        (b, a), public or released.
    clip : float
        C, a public number.

    References
    ----------
    docs/methods/survival.md.
    """

    #: Opposite persons on the sphere reach the bound if their residuals exceed C.
    tight: ClassVar[bool] = False

    @property
    def size(self) -> int:
        return self.order

    def exact(self, rows: BoundedRows) -> ExactVector:
        grid = self._grid(rows.words)
        return ExactVector(column_sums(self.each(rows), grid), grid.step)

    def program(self, labelled: bool) -> Program:
        return self._at_place.score(labelled, self.clip, self._grid(1, SQUARED_BITS))

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole, self._grid(1, SQUARED_BITS).step)

    def each(self, rows: BoundedRows) -> Matrix:
        time, event = self.persons(rows)
        residual = (event - self.expected(rows, time)) * rows.weight[:, None]
        total, across = row_sums(residual), products(residual, self.basis.T)
        length = np.sqrt(total**2 + squared_norms(across / self.space.radius))
        grid = self._grid(rows.words)
        share = np.minimum(1.0, grid.inside(self.order) / self.space.radius / np.maximum(length, 1e-300))
        contribution = np.column_stack([rows.x * (total * share)[:, None], across * (rows.weight * share)[:, None]])
        return grid.nearest(contribution)

    def _grid(self, words: int, bits: int = TERM_BITS) -> Grid:
        return Grid(self.contribution(), words, bits)

    @staticmethod
    def largest_change(radius: float, clip: float) -> float:
        """``2 R C``, for planning before there is a query."""
        return 2 * radius * clip

    def contribution(self) -> float:
        return self.space.radius * self.clip

    def replacement(self) -> float:
        return self.largest_change(self.space.radius, self.clip)

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Score:
        return Score(total, n, noise, events, self.space)


class PieceInformation(_AtCoefficients[ScoreMoment]):
    r"""``svec(sum min(1, B / mu) sum_k mu_k z_k z_k')`` with ``z_k = (x, w q_k)``: the information of persons.

    ``mu = sum mu_k`` are the expected events of a person, and q_k is row k of the contrasts, of norm below 1. A
    person's matrix has the Frobenius norm ``sum_k mu_k ||z_k||^2 <= B (R^2 + 1)`` at most. Two of them are positive
    semidefinite, so they differ by at most ``sqrt 2`` times that. Both facts hold after rounding, because the vectors
    ``sqrt(mu_k) z_k`` are moved to a grid, and the sum is one of their squares.

    Parameters
    ----------
    space, cuts, coef
        As in :class:`PieceScore`.
    clip : float
        B, a public number.

    References
    ----------
    docs/methods/survival.md.
    """

    #: Persons of orthogonal features who reach the clip need not exist.
    tight: ClassVar[bool] = False

    @property
    def columns(self) -> int:
        return super().columns + self.order * len(self.cuts)

    @property
    def size(self) -> int:
        return svec.length(self.order)

    def exact(self, rows: BoundedRows) -> ExactVector:
        time, _ = self.persons(rows)
        expected = self.expected(rows, time)
        grid = self._grid(rows.words)
        expected *= np.minimum(1.0, self._largest(grid) / np.maximum(row_sums(expected), 1e-300))[:, None]
        parts = np.empty((len(self.cuts), len(time), self.order))
        for part, events, contrast in zip(parts, np.sqrt(expected).T, self.basis, strict=True):
            part[:, : self.space.order] = rows.x * events[:, None]
            part[:, self.space.order :] = (rows.weight * events)[:, None] * contrast
        return symmetric(gram(grid.nearest(parts.reshape(-1, self.order)), grid), grid.step**2)

    def _grid(self, words: int) -> Grid:
        """That of the vectors of all pieces."""
        return Grid(math.sqrt(self.contribution()), words)

    def _largest(self, grid: Grid) -> float:
        """The expected events to which those of a person are shrunk, so that vectors may move to the grid."""
        return grid.inside(self.order * len(self.cuts)) ** 2 / (self.space.radius**2 + 1)

    def program(self, labelled: bool) -> Program:
        grid = self._grid(1)
        most = math.floor(Fraction(self.contribution()) / Fraction(grid.step) ** 2)
        return self._at_place.information(labelled, self._largest(grid), grid, most)

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole, svec.svec(np.full((self.order, self.order), self._grid(1).step ** 2)))

    @staticmethod
    def largest_change(radius: float, clip: float) -> float:
        """``sqrt 2 B (R^2 + 1)``, for planning before there is a query."""
        return math.sqrt(2) * clip * (radius**2 + 1)

    def contribution(self) -> float:
        return self.clip * (self.space.radius**2 + 1)

    def replacement(self) -> float:
        return self.largest_change(self.space.radius, self.clip)

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> ScoreMoment:
        return ScoreMoment(svec.unsvec(total, self.order), n, noise, events, self.space)
