r"""Row maps: the only place where bounds on rows are enforced.

Any rows may come in. They leave whitened and inside the ball of the space:

* a feature cell that is missing or not finite is replaced by the space's public fill value;
* a row whose response is missing or not finite, or whose exposure is missing, not finite or not positive, becomes 0
  and has weight 0 in every query, even in those that read neither (it still counts in n);
* ``x~ = W (1, x)`` is shrunk by ``s = min(1, R / ||x~||)``, and so is the response (row weighting);
* the response becomes ``clip(s (y - centre) / scale, +-C)``;
* the exposure is clipped into public bounds, and its logarithm is the row's offset;
* a survey weight, as a share u of its public bound, is clipped to 1, and then x~, the response and s are multiplied by
  ``sqrt u``: products of two of them have the factor u, and no norm grows.

No rule raises an error, and none depends on another row.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, ResponseScale, Vector, Weighting, WhitenedSpace
from dpregress.coordinates.products import products, squared_norms

#: Norms are shrunk to this many times d units in the last place below R, so that rounding never exceeds R.
ULPS = 8
#: The largest norm of a row and the largest response if the space has no finite bound, so that products stay finite.
_LARGEST = 1e75
_HUGE = 1e300
_TINY = np.finfo(float).tiny
#: Relative error of a norm that was computed from logarithms of magnitude up to 1500.
_LOG_ERROR = 1e-11


@dataclass(frozen=True)
class RawRows:
    """A chunk of private rows: x of shape (m, d), y of shape (m,) or None, index of the first row.

    If ``counts``, of shape (m,), is given, rows for which it is False keep their place but contribute nothing.
    The mean response is proportional to ``exposure``, of shape (m,). ``survey``, of shape (m,), are survey weights over
    their public bound.
    """

    x: Matrix
    y: Vector | None
    first_row: int = 0
    counts: NDArray[np.bool_] | None = None
    exposure: Vector | None = None
    survey: Vector | None = None

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Which rows count, of shape (m,): not excluded, with a finite response and a positive finite exposure."""
        found = np.ones(len(self.x), dtype=np.bool_) if self.counts is None else self.counts.copy()
        if self.y is not None:
            found &= np.isfinite(self.y)
        if self.exposure is not None:
            found &= np.isfinite(self.exposure) & (self.exposure > 0)
        if self.survey is not None:
            found &= np.isfinite(self.survey) & (self.survey > 0)
        return found


@dataclass(frozen=True)
class BoundedRows:
    """A chunk inside the ball: x of shape (m, p), y and weight of shape (m,), index of the first row.

    Coded rows have the positions of levels in x, as unsigned integers.
    ``offset``, of shape (m,), is added to the predictors of the rows; None where the space has no exposure.
    ``survey``, of shape (m,), are survey weights in [0, 1], whose root is in x, y and weight; None where all are 1.
    """

    x: Matrix
    y: Vector
    weight: Vector
    first_row: int
    offset: Vector | None = None
    survey: Vector | None = None

    @property
    def share(self) -> Vector:
        """The survey weights, of shape (m,); 1 where there are none, and 0 for rows that do not count."""
        counts = self.weight > 0
        return counts.astype(np.float64) if self.survey is None else self.survey * counts


class RowMap(ABC):
    """Bounds rows; the norm of every row it returns is at most ``radius``."""

    @property
    @abstractmethod
    def radius(self) -> float:
        """The bound on the norm of x."""

    def __call__(self, rows: RawRows) -> BoundedRows:
        """Map one chunk, each row independently of the others. A row that does not count becomes 0, with weight 0.

        It is set to 0 after the mapping and keeps its place, so that it does not affect the rounding of other rows.
        """
        bounded = self._bound(rows)
        if rows.survey is not None:
            bounded = self._surveyed(bounded, rows.survey)
        idle = ~rows.usable
        if idle.any():  # in place: another memory layout could change the rounding of other rows
            for values in (bounded.x, bounded.y, bounded.weight):
                values[idle] = 0
        return bounded

    @staticmethod
    def _surveyed(bounded: BoundedRows, survey: Vector) -> BoundedRows:
        """Rows with the root of their survey weight; a weight that is not positive and finite is 0."""
        usable = np.isfinite(survey) & (survey > 0)
        share = np.minimum(np.where(usable, survey, 0.0), 1.0)
        root = np.sqrt(share)
        x, y, weight = bounded.x * root[:, None], bounded.y * root, bounded.weight * root
        return replace(bounded, x=x, y=y, weight=weight, survey=share)

    @abstractmethod
    def _bound(self, rows: RawRows) -> BoundedRows:
        """Bound every row of the chunk, whether it counts or not."""


@dataclass(frozen=True)
class WhitenedRows(RowMap):
    """Public-moment-guided truncation: the row map of a :class:`~dpregress.coordinates.WhitenedSpace`.

    References
    ----------
    Cao, Bi, Zhang (2026), Algorithm 1; with :attr:`Weighting.ROW` the response is shrunk as well.
    """

    space: WhitenedSpace

    @property
    def radius(self) -> float:
        return self.space.radius

    def _bound(self, rows: RawRows) -> BoundedRows:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x, squared = self._whiten(rows.x)
            if not np.isfinite(squared).all():
                self._fill(rows.x, x, squared)
            huge = ~np.isfinite(squared)
            np.maximum(squared, _TINY, out=squared)
            np.copyto(squared, 1.0, where=huge)
            weight = np.divide(self._limit, np.sqrt(squared, out=squared), out=squared)
            np.minimum(1.0, weight, out=weight)
            x *= weight[:, None]
            if huge.any():
                self._shrink(rows.x, x, weight, huge)
            if self.space.weighting is Weighting.FEATURES:
                weight = np.ones(len(x))
            y = self._respond(rows.y, weight)
        return BoundedRows(x, y, weight, rows.first_row, _offsets(rows, self.space))

    @property
    def _limit(self) -> float:
        return self.radius * (1 - ULPS * (self.space.order + 4) * np.finfo(float).eps)

    def _whiten(self, x: Matrix) -> tuple[Matrix, Vector]:
        """Whitened rows and their squared norms; a norm that is not finite marks a row that needs special treatment."""
        whitened = products(x, self.space.slopes)
        if self.space.shift is not None:
            whitened += self.space.shift
        return whitened, squared_norms(whitened)

    def _fill(self, raw: Matrix, x: Matrix, squared: Vector) -> None:
        """Replace missing and infinite cells of rows by public values."""
        strange = ~np.isfinite(squared)
        filled, norms = self._whiten(np.where(np.isfinite(raw), raw, self.space.fill))
        x[strange], squared[strange] = filled[strange], norms[strange]

    def _shrink(self, raw: Matrix, x: Matrix, weight: Vector, huge: NDArray[np.bool_]) -> None:
        """Bound rows whose norm overflows, with the direction from scaled products and the length in logarithms."""
        raw = np.where(np.isfinite(raw), raw, self.space.fill)
        size = np.maximum(1.0, np.abs(raw).max(axis=1, initial=0.0))
        unit = np.abs(self.space.whitening).max()
        direction = products(raw / size[:, None], self.space.slopes / unit)
        if self.space.shift is not None:
            direction += (self.space.shift / unit) / size[:, None]
        length = np.sqrt(np.maximum(squared_norms(direction), _TINY))
        log_norm = np.log(length) + np.log(size) + math.log(unit)
        log_kept = np.minimum(log_norm, math.log(min(self._limit, _LARGEST)) - _LOG_ERROR)
        x[huge] = (direction * (np.exp(log_kept) / length)[:, None])[huge]
        weight[huge] = np.exp(log_kept - log_norm)[huge]

    def _respond(self, y: Vector | None, weight: Vector) -> Vector:
        if y is None or self.space.response is None:
            return np.zeros(len(weight))
        return _bounded_response(y, weight, self.space.response)


@dataclass(frozen=True)
class ResponseRows(RowMap):
    """The response alone, for queries that read no features: x has no columns, every weight is 1 (0 without y)."""

    space: WhitenedSpace

    @property
    def radius(self) -> float:
        return 0.0

    def _bound(self, rows: RawRows) -> BoundedRows:
        empty = np.empty((len(rows.x), 0))
        if rows.y is None or self.space.response is None:
            nothing = np.zeros(len(rows.x))
            return BoundedRows(empty, nothing, nothing.copy(), rows.first_row)
        weight = np.ones(len(rows.x))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            y = _bounded_response(rows.y, weight, self.space.response)
        return BoundedRows(empty, y, weight, rows.first_row, _offsets(rows, self.space))


def _offsets(rows: RawRows, space: WhitenedSpace) -> Vector | None:
    """Logarithms of bounded exposures where the space has one; 0 for a row whose exposure is not usable."""
    if space.exposure is None or rows.exposure is None:
        return None
    return space.exposure.offsets(rows.exposure)[0]


def _bounded_response(y: Vector, weight: Vector, response: ResponseScale) -> Vector:
    """``clip(weight (y - centre) / scale, +-C)``; 0 where y is not finite."""
    scaled = np.where(np.isfinite(y), y, response.centre)
    scaled -= response.centre
    scaled /= response.scale
    np.clip(scaled, -_HUGE, _HUGE, out=scaled)  # an infinite response times a weight of 0 would be NaN
    scaled *= weight
    largest = min(response.bound, _LARGEST)
    return np.clip(scaled, -largest, largest, out=scaled)
