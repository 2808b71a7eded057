r"""The deviance of a fitted model and of the model without features, and the log-likelihood of a perfect fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from dpregress.accounting import Event
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.coordinates.exact import TERM_BITS, ExactVector, Grid, column_sums
from dpregress.errors import InvalidInput
from dpregress.models.families import Family
from dpregress.queries.base import RowQuery
from dpregress.queries.diagnosis import response_of
from dpregress.queries.score import checked, linear_predictor
from dpregress.releases import NoiseLaw
from dpregress.releases.diagnosis import LikelihoodSums
from dpregress.rows.bounded import BoundedRows

#: What can be summed: deviances at the coefficients and without features, log-likelihoods of a perfect fit.
PARTS = ("deviance", "null", "saturated")


class DevianceSums(RowQuery[LikelihoodSums]):
    r"""Sums of up to three numbers of each row, each mapped from public bounds to [0, 1] and clipped there.

    The numbers are the unit deviance of the prediction, that of the prediction without features, and the log-likelihood
    of a perfect fit. With k of them, a row contributes a point of the unit cube, so that adding, removing or replacing
    one changes the sums by at most ``sqrt k``. The release has them in their own units.

    Parameters
    ----------
    space : WhitenedSpace
        With a response.
    family : Family
    coef : ndarray of shape (p,)
        Whitened coefficients, public or released.
    null : float
        The linear predictor without features; a row's offset is added to it.
    dispersion : float
        Of the perfect fit.
    bounds : mapping of str to (float, float)
        Public bounds of those of ``"deviance"``, ``"null"`` and ``"saturated"`` that are asked for.

    References
    ----------
    docs/queries.md.
    """

    #: A row on both bounds of all numbers at once need not exist.
    tight: ClassVar[bool] = False
    #: Bounds lie within this.
    largest: ClassVar[float] = 1e100

    def __init__(
        self,
        space: WhitenedSpace,
        family: Family,
        coef: Vector,
        null: float,
        dispersion: float,
        bounds: Mapping[str, tuple[float, float]],
    ) -> None:
        super().__init__(space)
        if not bounds or not all(
            part in PARTS and -self.largest <= low < high <= self.largest for part, (low, high) in bounds.items()
        ):
            raise InvalidInput("sums of deviances need increasing, finite bounds")
        self.family = family
        self.coef = checked(coef)
        self.null = null
        self.dispersion = dispersion
        self.bounds = {part: bounds[part] for part in PARTS if part in bounds}

    @property
    def size(self) -> int:
        return len(self.bounds)

    def exact(self, rows: BoundedRows) -> ExactVector:
        y, known = response_of(rows)
        distribution = self.family.distribution
        offset = 0.0 if rows.offset is None else rows.offset
        shares = []
        for part, (low, high) in self.bounds.items():
            with np.errstate(all="ignore"):
                if part == "saturated":
                    numbers = distribution.saturated(y, self.dispersion)
                else:
                    eta = linear_predictor(rows, self.coef) if part == "deviance" else self.null + offset + 0 * y
                    numbers = distribution.unit_deviance(y, self.family.mean(eta))
                shares.append(np.where(known, np.nan_to_num((numbers - low) / (high - low), nan=1.0), 0.0))
        grid = Grid(1.0, rows.words, TERM_BITS)
        return ExactVector(column_sums(grid.clipped(np.column_stack(shares), 0.0, 1.0), grid), grid.step)

    def contribution(self) -> float:
        return math.sqrt(self.size)

    def replacement(self) -> float:
        return math.sqrt(self.size)

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> LikelihoodSums:
        return LikelihoodSums(total, n, noise, events, self.space, self.bounds)
