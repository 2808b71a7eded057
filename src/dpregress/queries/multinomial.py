r"""Scores of a multinomial logistic model, whose residuals are vectors that sum to 0 over the classes.

Such a vector has K - 1 coordinates in an orthonormal basis (:func:`contrasts`). Its norm is the same there, and no
noise is added to the coordinate that is known to be 0.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.exact import TERM_BITS, ULPS, ExactVector, Grid, Integers, column_sums, cross
from dpregress.coordinates.products import products, squared_norms
from dpregress.errors import InvalidInput
from dpregress.models.contrasts import contrasts, probabilities
from dpregress.queries.base import RowQuery
from dpregress.queries.ordered_classes import OrderedClasses
from dpregress.queries.score import checked
from dpregress.releases import NoiseLaw, Score
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import SQUARED_BITS, OrderedRows, check_range, squared, within_ball
from dpregress.rows.row_kernel import Program, Stage, case, name, sqrt, term

#: The largest distance from a whole number at which a response, divided by its weight, counts as one.
_ROUNDING = 1e-6


def clipped_rows(vectors: Matrix, most: Vector | float) -> Matrix:
    """Rows of at most these norms."""
    length = np.sqrt(np.maximum(squared_norms(vectors), np.finfo(float).tiny))
    with np.errstate(over="ignore"):  # infinity shortens nothing
        return np.asarray(vectors * np.minimum(1.0, most / length)[:, None])


def times(rows: BoundedRows, factor: Matrix) -> Matrix:
    """Each row x as it is weighted times a vector, of shape (m, p (K - 1))."""
    size = rows.x.shape[1] * factor.shape[1]  # also where there are no rows
    return np.asarray((rows.x[:, :, None] * factor[:, None, :]).reshape(len(rows.x), size))


class ClassResidual(RowQuery[Score]):
    """What queries of classes share: the residual ``e_y - softmax(Q B'x)`` in the basis of contrasts."""

    def __init__(self, space: WhitenedSpace, coef: Matrix) -> None:
        super().__init__(space)
        if coef.ndim != 2 or coef.shape[0] != space.order or coef.shape[1] < 1:
            raise InvalidInput(f"coefficients of {space.order} columns and K classes have the shape (p, K - 1)")
        self.coef = checked(coef)
        self.classes = int(coef.shape[1]) + 1
        self._basis = contrasts(self.classes)
        #: Keeps rows within their bound despite rounding in probabilities and norms.
        self._within = 1 - ULPS * (self.classes + 4) * np.finfo(float).eps

    @property
    def columns(self) -> int:
        return self.space.order + self.classes

    def residual(self, rows: BoundedRows) -> Matrix:
        """The unweighted ``Q'(e_y - softmax)`` of each row, of shape (m, K - 1); 0 where y is not a class."""
        weight = np.where(rows.weight > 0, rows.weight, 1.0)
        with np.errstate(over="ignore"):
            predictor = products(rows.x, self.coef.T) / weight[:, None]
            y = rows.y / weight
        code = np.rint(y)
        known = (rows.weight > 0) & (np.abs(y - code) <= _ROUNDING) & (code >= 0) & (code < self.classes)
        taken = np.where(known, code, 0.0).astype(np.intp)
        residual = self._basis[taken] - products(probabilities(predictor, self._basis), self._basis.T)
        return np.asarray(np.where(known[:, None], self._within * residual, 0.0))

    @property
    def _ordered(self) -> OrderedClasses:
        return OrderedClasses(OrderedRows(self.space), self.coef, self._basis, _ROUNDING)

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Score:
        return Score(total, n, noise, events, self.space)


class MultinomialScore(ClassResidual):
    r"""``sum x r'`` with ``r = v min(1, C / ||v||)``, ``v = w Q'(e_y - softmax(Q B'x))``, as a vector of p (K - 1).

    The response is the position of its class, 0 to K - 1; any other number counts as missing. The norm of an outer
    product is the product of the norms, so with ``||x|| <= R`` a row contributes at most ``R C``, and replacing one
    changes the sum by at most ``2 R C``. Opposite rows with the same class and prediction reach this bound if their
    residuals reach C, which is possible for C up to ``sqrt 2``, and at B = 0 up to ``sqrt(1 - 1/K)``.

    Parameters
    ----------
    space : WhitenedSpace
        Its response is neither centred nor scaled.
    coef : ndarray of shape (p, K - 1)
        B: whitened coefficients of the contrasts of class predictors, public or released.
    clip : float
        C, a public number.

    References
    ----------
    docs/methods/multinomial.md.
    """

    tight: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True

    def __init__(self, space: WhitenedSpace, coef: Matrix, clip: float) -> None:
        super().__init__(space, coef)
        if not clip > 0:
            raise InvalidInput(f"clip must be positive, not {clip}")
        self.clip = clip

    @property
    def size(self) -> int:
        return int(self.coef.size)

    def exact(self, rows: BoundedRows) -> ExactVector:
        of_x, of_residual = Grid(self.space.radius, rows.words), Grid(self.clip, rows.words)
        whole = cross(rows.x, self._clipped(rows), of_x, of_residual)
        return ExactVector(whole.ravel(), of_x.step * of_residual.step)

    def program(self, labelled: bool) -> Program:
        check_range(self.clip)
        ordered = self._ordered
        integers = [f"b{k}" for k in range(self.classes - 1)]
        stages = *self._weighted_stages(labelled), *within_ball(ordered.columns, integers, Grid(self.clip, 1))
        return Program.of(stages, ordered.rows.integers, integers)

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole.ravel(), Grid(self.space.radius, 1).step * Grid(self.clip, 1).step)

    def each(self, rows: BoundedRows) -> Matrix:
        return times(rows, self._clipped(rows))

    def _clipped(self, rows: BoundedRows) -> Matrix:
        return Grid(self.clip, rows.words).within_ball(rows.weight[:, None] * self.residual(rows))

    def factor(self, rows: BoundedRows) -> Matrix:
        """The clipped residual of each row, of shape (m, K - 1), before it is rounded."""
        return clipped_rows(rows.weight[:, None] * self.residual(rows), self.clip)

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns of the same in a program."""
        return tuple(f"kept{k}" for k in range(self.classes - 1))

    def kept_stages(self, labelled: bool) -> tuple[Stage, ...]:
        """Stages to them, and to the weighted residual."""
        columns, length = self._ordered.columns, name("r")
        return (
            *self._weighted_stages(labelled),
            {"r": sqrt(squared(columns))},
            {"s": case(length > self.clip, term(self.clip) / length, 1.0)},
            {kept: name(d) * name("s") for kept, d in zip(self.kept, columns, strict=True)},
        )

    def _weighted_stages(self, labelled: bool) -> tuple[Stage, ...]:
        """Stages to the weighted residual."""
        ordered = self._ordered
        return *ordered.stages(labelled), {d: name("w") * name(d) for d in ordered.columns}

    def contribution(self) -> float:
        return self.space.radius * self.clip

    def replacement(self) -> float:
        return 2 * self.space.radius * self.clip


class MeanClassResidual(ClassResidual):
    r"""``sum Q'(e_y - softmax(Q B'x))`` over rows without their weights: the error of the mean probabilities.

    A residual is a difference of two probability vectors, so its norm is at most ``sqrt 2``. Replacing a row changes
    the sum by at most ``2 sqrt 2``. Two rows reach this bound if each is predicted with certainty to be of the other's
    class.

    Parameters
    ----------
    space, coef
        As in :class:`MultinomialScore`.

    References
    ----------
    docs/methods/multinomial.md.
    """

    tight: ClassVar[bool] = True
    pushes_down: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return self.classes - 1

    def exact(self, rows: BoundedRows) -> ExactVector:
        grid = Grid(self.contribution(), rows.words, TERM_BITS)
        factor = np.broadcast_to(rows.share * (grid.inside(self.classes - 1) / grid.bound), len(rows.x))
        residual = factor[:, None] * self.residual(rows)
        return ExactVector(column_sums(grid.nearest(residual), grid), grid.step)

    @property
    def _grid(self) -> Grid:
        """That of a program: sums of squares of its integers are floats."""
        return Grid(self.contribution(), 1, SQUARED_BITS)

    def program(self, labelled: bool) -> Program:
        ordered = self._ordered
        integers = [f"b{k}" for k in range(self.classes - 1)]
        return Program.of((*ordered.stages(labelled), *within_ball(ordered.columns, integers, self._grid)), integers)

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:  # noqa: ARG002  # unusable rows are 0
        return ExactVector(whole, self._grid.step)

    def contribution(self) -> float:
        return float(np.sqrt(2))

    def replacement(self) -> float:
        return float(2 * np.sqrt(2))
