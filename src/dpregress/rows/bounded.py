r"""Row maps: the only place where bounds on rows are enforced.

Any rows may come in. They leave whitened and inside the ball of the space:

* a feature cell that is missing or not finite is replaced by the space's public fill value, and one that is more than
  about ``2^100`` radii away is clipped to that (:attr:`~dpregress.coordinates.WhitenedSpace.reach`);
* a row whose response is missing or not finite, or whose exposure is missing, not finite or not positive, becomes 0
  and has weight 0 in every query, even in those that read neither (it still counts in n);
* ``x~ = W (1, x)`` is shrunk by ``s = min(1, R / ||x~||)``, and so is the response (row weighting);
* x is moved to the nearest point of a public grid within the ball, so that sums over rows have no rounding;
* the response becomes ``clip(s clip((y - centre) / scale, +-2^100), +-C)``;
* the exposure is clipped into public bounds, and its logarithm is the row's offset;
* a survey weight becomes a share u of its public bound, a multiple of 2^-41 in (0, 1]. It enters before x is moved to
  the grid: x is moved to a point of norm at most ``R sqrt u``, and s and the bound C are multiplied by ``sqrt u``.

No rule raises an error, and none depends on another row.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, ResponseScale, Vector, Weighting, WhitenedSpace
from dpregress.coordinates.exact import FINE, TERM_BITS, Grid
from dpregress.coordinates.products import products, squared_norms
from dpregress.coordinates.whitened import FARTHEST

_TINY = np.finfo(float).tiny
#: Survey weights over their public bound.
SHARES = Grid(1.0, words=1, bits=TERM_BITS)
#: Weights this close to 1 are rounding.
ROUNDING = 1e-9
#: Keeps products of a root with a bound, and their squares, below those of real numbers.
_BELOW = 1 - 4 * float(np.finfo(float).eps)


@dataclass(frozen=True, repr=False)
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

    @property
    def shares(self) -> Vector | None:
        """Survey weights as positive multiples of a public step, at most 1; 1 where there is none that counts."""
        if self.survey is None:
            return None
        usable = np.isfinite(self.survey) & (self.survey > 0)
        known = np.minimum(np.where(usable, self.survey, 1.0), 1.0)
        return np.asarray(np.ceil(known / SHARES.step) * SHARES.step)


@dataclass(frozen=True, repr=False)
class BoundedRows:
    """A chunk inside the ball: x of shape (m, p), y and weight of shape (m,), index of the first row.

    Coded rows have the positions of levels in x, as unsigned integers.
    ``offset``, of shape (m,), is added to the predictors of the rows; None where the space has no exposure.
    ``words`` is that of the grid on which x lies, and of all other numbers that are summed.
    ``survey``, of shape (m,), are survey weights in [0, 1], whose root is in x, y and weight; None where all are 1.
    """

    x: Matrix
    y: Vector
    weight: Vector
    first_row: int
    offset: Vector | None = None
    words: int = FINE
    survey: Vector | None = None

    @property
    def share(self) -> Vector | float:
        """Survey weights, of shape (m,), 1 where there are none: one below 1 is shortened by a few roundings."""
        return 1.0 if self.survey is None else _shortened(self.survey, self.survey)

    @property
    def root(self) -> Vector | float:
        """Their square roots: the factors in x, y and weight."""
        return 1.0 if self.survey is None else _root(self.survey)

    @property
    def shortened(self) -> NDArray[np.bool_]:
        """Which rows have a weight below 1, by more than rounding, of shape (m,)."""
        return np.asarray(self.weight < (1 - ROUNDING) * self.root)


class RowMap(ABC):
    """Bounds rows; the norm of every row it returns is at most ``radius``."""

    @property
    @abstractmethod
    def radius(self) -> float:
        """The bound on the norm of x."""

    def __call__(self, rows: RawRows, words: int = FINE) -> BoundedRows:
        """Map one chunk, each row independently of the others. A row that does not count becomes 0, with weight 0.

        It is set to 0 after the mapping and keeps its place, so that it does not affect the rounding of other rows.

        Parameters
        ----------
        rows : RawRows
        words : int
            Of the numbers on the grid (:func:`~dpregress.coordinates.exact.words_for`).
        """
        bounded = self._bound(rows, words)
        idle = ~rows.usable
        if idle.any():  # in place: another memory layout could change the rounding of other rows
            for values in (bounded.x, bounded.y, bounded.weight):
                values[idle] = 0
        return bounded

    @abstractmethod
    def _bound(self, rows: RawRows, words: int) -> BoundedRows:
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

    def _bound(self, rows: RawRows, words: int) -> BoundedRows:
        grid, shares = Grid(self.radius, words), rows.shares
        limit: Vector | float = grid.inside(self.space.order)
        step = grid.step if math.isfinite(self.radius) else 1.0
        root = 1.0 if shares is None else _root(shares)
        if shares is not None:  # a point of norm R sqrt(u) after rounding
            half = 0.5 * math.sqrt(self.space.order) * grid.step
            limit = np.maximum(root * (limit + half) - half, 0.0)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x, squared = self._whiten(rows.x)
            strange = self._strange(rows.x, squared)
            if strange.any():
                self._clean(rows.x, x, squared, strange)
            np.maximum(squared, _TINY, out=squared)
            weight = np.divide(limit, np.sqrt(squared, out=squared), out=squared)
            np.minimum(root, weight, out=weight)
            x *= (weight * (1 / step))[:, None]
            if math.isfinite(self.radius):
                np.rint(x, out=x)
                x *= step
            if self.space.weighting is Weighting.FEATURES:
                weight = np.ones(len(x)) * root
            y = self._respond(rows.y, weight, root)
        return BoundedRows(x, y, weight, rows.first_row, _offsets(rows, self.space), words, shares)

    def _whiten(self, x: Matrix) -> tuple[Matrix, Vector]:
        """Whitened rows and their squared norms, which are not finite for cells that are not."""
        whitened = products(x, self.space.slopes)
        if self.space.shift is not None:
            whitened += self.space.shift
        return whitened, squared_norms(whitened)

    def _strange(self, raw: Matrix, squared: Vector) -> NDArray[np.bool_]:
        """Every row with a missing, infinite or far cell, and perhaps others."""
        if self.space.least_far > 0:
            return ~(squared < self.space.least_far**2)
        return ~(np.isfinite(squared) & (np.abs(raw) <= self.space.reach).all(axis=1))

    def _clean(self, raw: Matrix, x: Matrix, squared: Vector, strange: NDArray[np.bool_]) -> None:
        """Fill missing and infinite cells of rows, and clip far ones. No norm overflows then."""
        cleaned = np.clip(np.where(np.isfinite(raw), raw, self.space.fill), -self.space.reach, self.space.reach)
        filled, norms = self._whiten(cleaned)
        x[strange], squared[strange] = filled[strange], norms[strange]

    def _respond(self, y: Vector | None, weight: Vector, root: Vector | float) -> Vector:
        if y is None or self.space.response is None:
            return np.zeros(len(weight))
        return _bounded_response(y, weight, self.space.response, root)


@dataclass(frozen=True)
class ResponseRows(RowMap):
    """The response alone, for queries that read no features: x has no columns, every weight is 1 (0 without y)."""

    space: WhitenedSpace

    @property
    def radius(self) -> float:
        return 0.0

    def _bound(self, rows: RawRows, words: int) -> BoundedRows:
        empty = np.empty((len(rows.x), 0))
        if rows.y is None or self.space.response is None:
            nothing = np.zeros(len(rows.x))
            return BoundedRows(empty, nothing, nothing.copy(), rows.first_row, words=words)
        shares = rows.shares
        root = 1.0 if shares is None else _root(shares)
        weight = np.ones(len(rows.x)) * root
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            y = _bounded_response(rows.y, weight, self.space.response, root)
        return BoundedRows(empty, y, weight, rows.first_row, _offsets(rows, self.space), words, shares)


def _offsets(rows: RawRows, space: WhitenedSpace) -> Vector | None:
    """Logarithms of bounded exposures where the space has one; 0 for a row whose exposure is not usable."""
    if space.exposure is None or rows.exposure is None:
        return None
    return space.exposure.offsets(rows.exposure)[0]


def _shortened(values: Vector, survey: Vector) -> Vector:
    """The values, a few roundings shorter where the survey weight is below 1."""
    return np.where(survey < 1, _BELOW * values, values)


def _root(survey: Vector) -> Vector:
    """Square roots of survey weights that, with the rounding of what they multiply, are not too large."""
    return _shortened(np.sqrt(survey), survey)


def _bounded_response(y: Vector, weight: Vector, response: ResponseScale, root: Vector | float) -> Vector:
    """``clip(weight clip((y - centre) / scale, +-2^100), +-C root)``; 0 where y is not finite."""
    scaled = np.where(np.isfinite(y), y, response.centre)
    scaled -= response.centre
    scaled /= response.scale
    np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)
    scaled *= weight
    largest = root * min(response.bound, FARTHEST)
    return np.clip(scaled, -largest, largest, out=scaled)
