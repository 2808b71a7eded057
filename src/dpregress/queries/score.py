"""Scores: sums of x times a clipped residual, and of residuals alone."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.exact import TERM_BITS, ExactVector, Grid, Integers, column_sums, cross
from dpregress.coordinates.products import products
from dpregress.errors import InvalidInput, NotAnswered
from dpregress.models.families import Family, GaussianFamily
from dpregress.queries.base import Bound, RowQuery
from dpregress.queries.ordered_residual import LEAST, OrderedResidual
from dpregress.releases import NoiseLaw, Score
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import OrderedRows, check_range, kept_within, steps_within, within
from dpregress.rows.ordered_functions import flushed
from dpregress.rows.row_kernel import Program, Stage, clipped, name, rounded


def linear_predictor(rows: BoundedRows, coef: Vector) -> Vector:
    """``x'beta + offset`` of the unweighted row, clipped to +-1e75; for rows of weight 0 the offset alone."""
    with np.errstate(over="ignore"):
        predictor = products(rows.x, coef[None, :])[:, 0] / np.where(rows.weight > 0, rows.weight, 1.0)
    if rows.offset is not None:
        predictor = predictor + rows.offset
    return np.clip(predictor, -1e75, 1e75)


def checked(coef: Vector) -> Vector:
    """Coefficients, if they are finite; infinity times 0 would be NaN and reveal which rows hold a 0."""
    if not (np.abs(coef) <= 1e100).all():
        raise InvalidInput("coefficients must be finite: the preceding steps have diverged")
    return coef


class ResidualQuery(RowQuery[Score]):
    """Common base of the scores: the residual ``w (y - m(x'beta)) f(x'beta)`` of a row with weight w."""

    def __init__(self, space: WhitenedSpace, family: Family, coef: Vector, clip: float) -> None:
        super().__init__(space)
        self.family = family
        self.coef = checked(coef)
        self.clip = clip

    @property
    def size(self) -> int:
        return self.space.order

    def residual(self, rows: BoundedRows) -> Vector:
        eta = linear_predictor(rows, self.coef)
        with np.errstate(over="ignore"):
            return np.asarray((rows.y - rows.weight * self.family.mean(eta)) * self.family.factor(eta))

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Score:
        return Score(total, n, noise, events, self.space)


class ClippedScore(ResidualQuery):
    r"""``sum x clip(w (y - m(x'beta)) f(x'beta), +-C)``.

    With ``||x|| <= R`` a row contributes at most ``R C``. Replacing one changes the sum by at most ``2 R C``, which two
    rows in opposite directions reach.

    Parameters
    ----------
    space : WhitenedSpace
    family : Family
    coef : ndarray of shape (p,)
        Whitened coefficients, public or released. Zero gives the cross moment ``X'y``.
    clip : float
        C, a public number.

    References
    ----------
    Cao, Bi, Zhang (2026), Algorithms 2 and 3; docs/queries.md.
    """

    tight: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True

    def exact(self, rows: BoundedRows) -> ExactVector:
        of_x, of_residual = Grid(self.space.radius, rows.words), Grid(self.clip, rows.words)
        residual = of_residual.clipped(self.residual(rows))
        return ExactVector(cross(rows.x, residual[:, None], of_x, of_residual)[:, 0], of_x.step * of_residual.step)

    def ordered(self, rows: OrderedRows, labelled: bool) -> tuple[Stage, ...]:
        """Stages of a program to ``d``, the residual."""
        return OrderedResidual(rows, self.family, self.coef).stages(labelled)

    def program(self, labelled: bool) -> Program:
        check_range(self.clip)
        rows, grid = OrderedRows(self.space), Grid(self.clip, 1)
        most = steps_within(self.clip, grid)
        stages = (
            *self.ordered(rows, labelled),
            {"b": rounded(clipped(name("d") * (1 / grid.step), -float(most), float(most)))},
            kept_within(("b",), within("b", -most, most)),
        )
        return Program.of(stages, rows.integers, ("b",))

    def factor(self, rows: BoundedRows) -> Vector:
        """The clipped residual of each row, of shape (m,), before it is rounded."""
        return np.clip(self.residual(rows), -self.clip, self.clip)

    def kept_stages(self) -> tuple[Stage, ...]:
        """On from the residual ``d`` to ``g``, the same."""
        return ({"g": clipped(name("d"), -self.clip, self.clip)},)

    @property
    def unit(self) -> float:
        """What one in a sum of the program stands for."""
        return Grid(self.space.radius, 1).step * Grid(self.clip, 1).step

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole[:, 0], self.unit)

    def each(self, rows: BoundedRows) -> Matrix:
        return np.asarray(rows.x * Grid(self.clip, rows.words).clipped(self.residual(rows))[:, None])

    @staticmethod
    def largest_change(radius: float, clip: float) -> float:
        """``2 R C``, for planning before there is a query."""
        return 2 * radius * clip

    def contribution(self) -> float:
        return self.space.radius * self.clip

    def replacement(self) -> float:
        return self.largest_change(self.space.radius, self.clip)


class ExposureScore(ClippedScore):
    r"""``sum x clip(w (log e - centre), +-C)``: the association of exposures e with the features.

    A :class:`ClippedScore` of the offset in place of the response, with the same sensitivity ``2 R C``.

    Parameters
    ----------
    space : WhitenedSpace
        With a response and an exposure.
    centre, clip : float
        Public or released numbers.

    References
    ----------
    docs/queries.md.
    """

    #: Opposite rows on the sphere reach the bound, unless the bounds of the exposure keep residuals below C.
    tight: ClassVar[bool] = False

    def __init__(self, space: WhitenedSpace, centre: float, clip: float) -> None:
        super().__init__(space, GaussianFamily, np.zeros(space.order), clip)
        self.centre = centre

    def ordered(self, rows: OrderedRows, labelled: bool) -> tuple[Stage, ...]:
        if rows.exposure is None:
            raise NotAnswered("a score of exposures needs exposures: leave the engine out")
        check_range(max(abs(self.centre), 1.0))
        difference = ({"d": name("o") - self.centre}, flushed("d", LEAST), {"d": name("w") * name("d")})
        return (*rows.stages(labelled), *rows.exposure.stages, *difference)

    def residual(self, rows: BoundedRows) -> Vector:
        """``w (log e - centre)``, of shape (m,)."""
        offset = np.zeros(len(rows.weight)) if rows.offset is None else rows.offset
        return np.asarray(rows.weight * (offset - self.centre))


class MeanResidual(ResidualQuery):
    r"""``sum clip((y - m) |f|, lower, upper)`` at ``x'beta`` of rows without weights: the intercept's equation.

    With a canonical link f is 1, and it is the error of the mean prediction. Because this is a single number, wide and
    asymmetric bounds are affordable. Replacing a row changes it by at most ``upper - lower``, adding or removing one by
    at most ``max(-lower, upper)``.

    Parameters
    ----------
    space, family, coef
        As in :class:`ClippedScore`.
    lower, upper : float
        Public bounds, ``lower <= 0 <= upper``.

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, family: Family, coef: Vector, lower: float, upper: float) -> None:
        super().__init__(space, family, coef, upper)
        if not lower <= 0 <= upper:
            raise InvalidInput(f"the bounds of a residual must enclose 0, not {lower}, {upper}")
        self.lower = lower

    @property
    def size(self) -> int:
        return 1

    def exact(self, rows: BoundedRows) -> ExactVector:
        grid = Grid(self.contribution(), rows.words, TERM_BITS)
        known = rows.weight > 0
        y = np.where(known, rows.y, 0.0) / np.where(known, rows.weight, 1.0)
        eta, share = linear_predictor(rows, self.coef), rows.share
        with np.errstate(over="ignore"):
            residual = np.where(known, (y - self.family.mean(eta)) * self.family.factor_size(eta), 0.0)
        within_bounds = grid.clipped(share * residual, share * self.lower, share * self.clip)
        return ExactVector(column_sums(within_bounds[:, None], grid), grid.step)

    @property
    def _grid(self) -> Grid:
        """That of a program, with one word."""
        return Grid(self.contribution(), 1, TERM_BITS)

    def program(self, labelled: bool) -> Program:
        check_range(self.contribution())
        grid = self._grid
        least, most = -steps_within(-self.lower, grid), steps_within(self.clip, grid)
        stages = (
            *OrderedResidual(OrderedRows(self.space), self.family, self.coef).unweighted(labelled),
            {"b": rounded(clipped(name("d") * (1 / grid.step), float(least), float(most)))},
            kept_within(("b",), within("b", least, most)),
        )
        return Program.of(stages, ("b",))

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole, self._grid.step)

    @staticmethod
    def largest_change(lower: Bound, upper: Bound) -> Bound:
        """``upper - lower``, for planning before there is a query."""
        return upper - lower

    def contribution(self) -> float:
        return max(-self.lower, self.clip)

    def replacement(self) -> float:
        return self.largest_change(self.lower, self.clip)
