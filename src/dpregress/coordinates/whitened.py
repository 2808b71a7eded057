"""Whitened space: the public coordinates in which rows are bounded and moments are released."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates.svec import Matrix, Vector
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput

#: Public numbers lie between its inverse and this: assumption A3 of docs/privacy/floating-point.md.
_HUGE = 1e100
#: Exposures are clipped to this interval, so that their products with any mean stay finite.
SMALLEST_EXPOSURE, LARGEST_EXPOSURE = 2.0**-100, 2.0**100
_NEXT_TO_NOTHING = 1e-6
#: Cells are clipped to about this many radii after whitening, and responses to this many scales.
FARTHEST = 2.0**100
#: Spaces of more columns, or with a worse condition number, have no `least_far`.
_MOST_COLUMNS, _WORST_CONDITION = 256, 2.0**30


class Weighting(StrEnum):
    """What is shrunk when a row lies outside the ball."""

    ROW = "row"  # features and response alike (Mallows): the regression stays consistent
    FEATURES = "features"  # the features only, as published: biased once the radius is small


@dataclass(frozen=True)
class ResponseScale:
    """How the response is centred, scaled and bounded: ``clip((y - centre) / scale, +-bound)``.

    Parameters
    ----------
    name : str
    centre, scale : float
        In the units of y. A centre other than 0 requires an intercept, which absorbs it.
    bound : float
        Largest magnitude after scaling; infinite when the query itself clips.
    cross : float
        Weight of the response in a joint row ``(x, cross * y)``; see :class:`~dpregress.queries.SecondMoment`.
    """

    name: str
    centre: float = 0.0
    scale: float = 1.0
    bound: float = math.inf
    cross: float = 1.0

    def __post_init__(self) -> None:
        finite = (self.scale, self.cross, *(() if math.isinf(self.bound) else (self.bound,)))
        if not (all(1 / _HUGE <= value <= _HUGE for value in finite) and abs(self.centre) <= _HUGE and self.bound > 0):
            raise InvalidInput(
                f"scale, bound and weight of {self.name!r} must be positive, between {1 / _HUGE} and {_HUGE}"
            )


@dataclass(frozen=True)
class Exposure:
    """How the exposure of a row is bounded: ``e <- clip(e, lower, upper)``; its logarithm is the row's offset.

    Parameters
    ----------
    name : str
    lower, upper : float
        Public. Without declared bounds, the limits of the bins in which exposures are counted.

    Raises
    ------
    InvalidInput
        If the bounds have no number in common with ``[2^-100, 2^100]``.
    """

    name: str
    lower: float = SMALLEST_EXPOSURE
    upper: float = LARGEST_EXPOSURE

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", max(float(self.lower), SMALLEST_EXPOSURE))
        object.__setattr__(self, "upper", min(float(self.upper), LARGEST_EXPOSURE))
        if not self.lower < self.upper:
            raise InvalidInput(f"the bounds of exposure {self.name!r} must include a number between 2^-100 and 2^100")

    @property
    def least(self) -> float:
        """The smallest exposure that matters: the lower bound, or if it is more a millionth of a declared upper one."""
        return self.lower if self.upper == LARGEST_EXPOSURE else max(self.lower, _NEXT_TO_NOTHING * self.upper)

    def offsets(self, exposure: Vector) -> tuple[Vector, NDArray[np.bool_]]:
        """Logarithms of the bounded exposures, of shape (m,), 0 where unusable; and which are positive and finite."""
        usable = np.isfinite(exposure) & (exposure > 0)
        return np.log(np.clip(np.where(usable, exposure, 1.0), self.lower, self.upper)) * usable, usable


class Coordinates(ABC):
    """The public meaning of a release's numbers. Totals can be added only if their coordinates are the same."""

    @abstractmethod
    def same_as(self, other: Coordinates) -> bool:
        """Whether totals in the two may be added."""


@dataclass(frozen=True, eq=False, repr=False)
class WhitenedSpace(Coordinates, ShownInShort):
    """A linear map into coordinates in which every row lies in a ball; it depends on public facts only.

    A row x becomes ``W (1, x)`` with an intercept and ``W x`` without one. The row map then shrinks it into the ball of
    radius ``radius``.

    Parameters
    ----------
    features : tuple of str
        Names of the d columns of x.
    whitening : ndarray of shape (p, p)
        The invertible W; p = d, plus one with an intercept.
    radius : float
        May be infinite if the query itself bounds the value of each row.
    fill : ndarray of shape (d,)
        The values that replace missing and non-finite cells.
    intercept : bool
    response : ResponseScale or None
    weighting : Weighting
    exposure : Exposure or None
        If linear predictors have an offset.
    """

    features: tuple[str, ...]
    whitening: Matrix
    radius: float
    fill: Vector
    intercept: bool = False
    response: ResponseScale | None = None
    weighting: Weighting = Weighting.ROW
    exposure: Exposure | None = None

    def __post_init__(self) -> None:
        order = len(self.features) + self.intercept
        if self.whitening.shape != (order, order) or self.fill.shape != (len(self.features),):
            raise InvalidInput(f"a whitened space of {order} columns needs a whitening of shape {(order, order)}")
        numbers = np.concatenate([self.whitening.ravel(), self.fill])
        if not ((np.abs(numbers) <= _HUGE).all() and (1 / _HUGE <= self.radius <= _HUGE or self.radius == math.inf)):
            raise InvalidInput("a whitened space needs a positive radius and finite public moments, none beyond 1e100")

    @property
    def order(self) -> int:
        """Number of whitened coordinates."""
        return len(self.whitening)

    @property
    def slopes(self) -> Matrix:
        """The columns of W that multiply x, of shape (p, d)."""
        return self.whitening[:, 1:] if self.intercept else self.whitening

    @property
    def unit(self) -> float:
        """The least power of two above the radius; 1 where that is infinite."""
        return math.ldexp(1.0, math.frexp(self.radius)[1]) if math.isfinite(self.radius) else 1.0

    @cached_property
    def reach(self) -> Vector:
        """The limits to which cells are clipped, of shape (d,): powers of two of about :data:`FARTHEST` radii."""
        largest = np.abs(self.slopes).max(axis=0, initial=0.0) / self.unit
        return np.asarray(np.ldexp(FARTHEST, -np.frexp(largest)[1]))

    @cached_property
    def least_far(self) -> float:
        """A norm that every computed whitened row with a cell beyond its reach exceeds; 0 if none is known."""
        slopes = self.slopes * self.reach
        if not slopes.size or len(slopes) > _MOST_COLUMNS:
            return 0.0
        sizes = np.linalg.svd(slopes, compute_uv=False)
        shift = 0.0 if self.shift is None else float(np.linalg.norm(self.shift))
        return max(float(sizes[-1] / 2) - 2 * shift, 0.0) if sizes[-1] * _WORST_CONDITION > sizes[0] else 0.0

    @property
    def back(self) -> Matrix:
        """``W^{-1}``, of shape (p, p), by columns of one scale: scales far apart cost no digits."""
        unit = np.linalg.norm(self.whitening, axis=0)
        return np.asarray(np.linalg.inv(self.whitening / unit) / unit[:, None])

    @property
    def shift(self) -> Vector | None:
        """The column of W that multiplies the constant, or None."""
        return self.whitening[:, 0] if self.intercept else None

    @property
    def constant(self) -> Vector:
        """The whitened coefficients of a model with an intercept that predicts 1 for everybody."""
        return np.asarray(np.linalg.solve(self.whitening.T, np.eye(self.order)[0]))

    @property
    def along_constant(self) -> Matrix:
        """The projection on :attr:`constant`, of shape (p, p); 0 without an intercept. What it leaves are slopes."""
        if not self.intercept:
            return np.zeros((self.order, self.order))
        unit = self.constant / np.linalg.norm(self.constant)
        return np.outer(unit, unit)

    def mean_row(self, gram: Matrix) -> Vector:
        """The mean of weighted rows with this Gram matrix, of shape (p,), where there is an intercept."""
        along = gram @ self.constant
        return np.asarray(along / float(self.constant @ along))

    def covariance(self, gram: Matrix) -> Matrix:
        """That of the features, of shape (d, d), where the whitened second moment is ``gram``.

        Without an intercept it is their second moment.
        """
        back = self.back
        second = back @ gram @ back.T
        if not self.intercept:
            return np.asarray(second)
        means = second[0, 1:] / second[0, 0]
        return np.asarray(second[1:, 1:] / second[0, 0] - np.outer(means, means))

    def deviations(self, gram: Matrix) -> Vector:
        """Standard deviations of the features where the whitened second moment is ``gram``, of shape (d,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance(gram)), 0.0)))

    def whiten(self, x: Matrix) -> Matrix:
        """``W (1, x)`` of public rows, of shape (m, p). Private rows are whitened and bounded only by the row map.

        The result is stored column by column, so that operations on all rows run along contiguous columns.
        """
        whitened: Matrix = (self.slopes @ x.T).T
        if self.shift is not None:
            whitened += self.shift
        return whitened

    def weights(self, whitened: Matrix) -> Vector:
        """``min(1, R / ||x~||)`` of public rows. Private rows are bounded only by the row map."""
        return np.asarray(np.minimum(1.0, self.radius / np.maximum(np.linalg.norm(whitened, axis=1), 1e-300)))

    @property
    def joint_radius(self) -> float:
        """Radius of the joint rows ``(x, cross * y)``; of x alone without a response."""
        if self.response is None:
            return self.radius
        return math.hypot(self.radius, self.response.cross * self.response.bound)

    def with_response(self, response: ResponseScale | None) -> WhitenedSpace:
        """The same coordinates with another response."""
        return replace(self, response=response)

    def rewhitened(self, matrix: Matrix, radius: float) -> WhitenedSpace:
        """Coordinates ``matrix @ x~`` with a new radius."""
        return replace(self, whitening=matrix @ self.whitening, radius=radius)

    def pull_back(self, whitened: Vector) -> tuple[Vector, float]:
        """Coefficients and intercept in the original units.

        ``y = centre + scale (W (1, x))' b~`` gives ``b = scale W' b~``.

        Parameters
        ----------
        whitened : ndarray of shape (p,)

        Returns
        -------
        coef : ndarray of shape (d,)
        intercept : float
        """
        response = self.response or ResponseScale("")
        original = response.scale * (self.whitening.T @ whitened)
        if self.intercept:
            return original[1:], float(original[0]) + response.centre
        return original, 0.0

    def same_as(self, other: Coordinates) -> bool:
        """Whether totals in the two spaces may be added."""
        return (
            isinstance(other, WhitenedSpace)
            and (self.features, self.radius, self.intercept, self.response, self.weighting, self.exposure)
            == (other.features, other.radius, other.intercept, other.response, other.weighting, other.exposure)
            and np.array_equal(self.whitening, other.whitening)
            and np.array_equal(self.fill, other.fill)
        )

    def encode(self) -> dict[str, Any]:
        """Plain values, for files."""
        response = None if self.response is None else dict(vars(self.response))
        if response is not None and math.isinf(response["bound"]):
            response["bound"] = None
        return {
            "features": list(self.features),
            "whitening": self.whitening.tolist(),
            "radius": self.radius if math.isfinite(self.radius) else None,
            "fill": self.fill.tolist(),
            "intercept": self.intercept,
            "response": response,
            "weighting": self.weighting.value,
            **({} if self.exposure is None else {"exposure": dict(vars(self.exposure))}),
        }

    @classmethod
    def decode(cls, record: Mapping[str, Any]) -> WhitenedSpace:
        """Read back what :meth:`encode` wrote."""
        response, exposure = record["response"], record.get("exposure")
        if response is not None:
            response = ResponseScale(**{**response, "bound": _or_infinite(response["bound"])})
        return cls(
            features=tuple(str(name) for name in record["features"]),
            whitening=np.array(record["whitening"], dtype=np.float64),
            radius=_or_infinite(record["radius"]),
            fill=np.array(record["fill"], dtype=np.float64),
            intercept=bool(record["intercept"]),
            response=response,
            weighting=Weighting(record["weighting"]),
            exposure=None if exposure is None else Exposure(**exposure),
        )


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)
