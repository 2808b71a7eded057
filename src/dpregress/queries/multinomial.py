r"""Scores of a multinomial logistic model: its residuals are vectors that sum to 0 over the classes.

A vector that sums to 0 has K - 1 coordinates in an orthonormal basis of such vectors (:func:`contrasts`); its norm is
the same there, and no noise is spent on the coordinate that is known.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.products import products, squared_norms
from dpregress.errors import InvalidInput
from dpregress.models.contrasts import contrasts, probabilities
from dpregress.queries.base import RowQuery
from dpregress.queries.score import checked
from dpregress.releases import NoiseLaw, Score
from dpregress.rows.bounded import ULPS, BoundedRows

#: How far a response, divided by its weight, may lie from a whole number and be one.
_ROUNDING = 1e-6


class _ClassResidual(RowQuery[Score]):
    """What both queries share: the residual ``e_y - softmax(Q B'x)`` in the basis of contrasts."""

    def __init__(self, space: WhitenedSpace, coef: Matrix) -> None:
        super().__init__(space)
        if coef.ndim != 2 or coef.shape[0] != space.order or coef.shape[1] < 1:
            raise InvalidInput(f"coefficients of {space.order} columns and K classes have the shape (p, K - 1)")
        self.coef = checked(coef)
        self.classes = int(coef.shape[1]) + 1
        self._basis = contrasts(self.classes)
        #: Rounding in probabilities and norms must not carry a row past its bound.
        self._within = 1 - ULPS * (self.classes + 4) * np.finfo(float).eps

    @property
    def columns(self) -> int:
        return self.space.order + self.classes

    def residual(self, rows: BoundedRows) -> Matrix:
        """``Q'(e_y - softmax)`` of each row without its weight, of shape (m, K - 1); 0 where y is no class."""
        weight = np.where(rows.weight > 0, rows.weight, 1.0)
        with np.errstate(over="ignore"):
            predictor = products(rows.x, self.coef.T) / weight[:, None]
            y = rows.y / weight
        code = np.rint(y)
        known = (rows.weight > 0) & (np.abs(y - code) <= _ROUNDING) & (code >= 0) & (code < self.classes)
        taken = np.where(known, code, 0.0).astype(np.intp)
        residual = self._basis[taken] - products(probabilities(predictor, self._basis), self._basis.T)
        return np.asarray(np.where(known[:, None], self._within * residual, 0.0))

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Score:
        return Score(total, n, noise, events, self.space)


class MultinomialScore(_ClassResidual):
    r"""``sum x r'`` with ``r = v min(1, C / ||v||)``, ``v = w Q'(e_y - softmax(Q B'x))``, as a vector of p (K - 1).

    The response is the position of its class, 0 to K - 1; any other number counts as missing. The norm of an outer
    product is the product of norms, so with ``||x|| <= R`` a row contributes at most ``R C``. Replacing one moves the
    sum by at most ``2 R C``, and opposite rows of one class and prediction by exactly that where their residuals
    reach C (for C up to ``sqrt 2``, and at B = 0 up to ``sqrt(1 - 1/K)``).

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

    def __init__(self, space: WhitenedSpace, coef: Matrix, clip: float) -> None:
        super().__init__(space, coef)
        if not clip > 0:
            raise InvalidInput(f"the bound on a residual's norm must be positive, not {clip}")
        self.clip = clip

    @property
    def size(self) -> int:
        return int(self.coef.size)

    def value(self, rows: BoundedRows) -> Vector:
        residual = rows.weight[:, None] * self.residual(rows)
        length = np.sqrt(np.maximum(squared_norms(residual), np.finfo(float).tiny))
        residual *= np.minimum(1.0, self._within * self.clip / length)[:, None]
        return np.asarray(rows.x.T @ residual).ravel()

    def contribution(self) -> float:
        return self.space.radius * self.clip

    def replacement(self) -> float:
        return 2 * self.space.radius * self.clip


class MeanClassResidual(_ClassResidual):
    r"""``sum Q'(e_y - softmax(Q B'x))`` over rows without their weights: how far mean probabilities are off.

    A residual is a difference of two probability vectors, whose norm is at most ``sqrt 2``: so much a row contributes,
    and replacing one moves the sum by at most ``2 sqrt 2``. Two rows reach it that are each predicted with certainty to
    be of the other's class.

    Parameters
    ----------
    space, coef
        As in :class:`MultinomialScore`.

    References
    ----------
    docs/methods/multinomial.md.
    """

    tight: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return self.classes - 1

    def value(self, rows: BoundedRows) -> Vector:
        return np.asarray(self.residual(rows).sum(axis=0))

    def contribution(self) -> float:
        return float(np.sqrt(2))

    def replacement(self) -> float:
        return float(2 * np.sqrt(2))
