"""Releases: noisy values that have passed the privacy barrier and are safe to keep, share and compute with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Event
from dpregress.coordinates.ranges import Ranges, endless
from dpregress.coordinates.svec import Matrix, Vector
from dpregress.coordinates.whitened import Coordinates, WhitenedSpace
from dpregress.display import UNIDENTIFIED, ShownInShort, html_table, plain, text_table
from dpregress.errors import InvalidInput
from dpregress.releases.noise import NoiseLaw

#: A slope of exactly 0 with less than this share of its standard error due to noise was shrunk to it by the noise.
_HIDDEN = 1e-6
_HEADER = ("", "coefficient", "std. error", "privacy s.e.")
#: Predictors of any size.
ANYWHERE = (-math.inf, math.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Release(ShownInShort):
    """Noisy totals over n rows. Anything computed from them is post-processing.

    Parameters
    ----------
    total : ndarray
        Sum over rows of the query's value, plus noise.
    n : int
        Number of rows, public under replace-one neighbours.
    noise : NoiseLaw
        The law of the noise in the vector to which it was added (for matrices: their svec).
    events : tuple of Event
        The cost of the release.
    space : Coordinates
        The public coordinates: a whitened space, or the domain of a coded table.
    """

    total: Vector
    n: int
    noise: NoiseLaw
    events: tuple[Event, ...]
    space: Coordinates

    def __add__(self, other: Self) -> Self:
        """The release over both sources together, which must be disjoint.

        Raises
        ------
        InvalidInput
            If the other is another kind of release, or in another space.
        """
        if type(other) is not type(self) or not self.space.same_as(other.space):
            raise InvalidInput("only releases of the same kind in the same coordinates can be added")
        return replace(
            self,
            total=self.total + other.total,
            n=self.n + other.n,
            noise=self.noise + other.noise,
            events=self.events + other.events,
        )

    @property
    def mean(self) -> Vector:
        """The total over n."""
        return np.asarray(self.total / self.n)


@dataclass(frozen=True, eq=False, repr=False)
class Moments(Release):
    """A noisy second moment of the joint rows ``(x~, cross * y~)``, or of x~ alone."""

    space: WhitenedSpace

    @property
    def gram(self) -> Matrix:
        """``mean x~ x~'``, of shape (p, p)."""
        return self.mean[: self.space.order, : self.space.order]

    @property
    def cross(self) -> Vector:
        """``mean x~ y~``, of shape (p,)."""
        return np.asarray(self.mean[:-1, -1] / self._response_weight)

    @property
    def response_second(self) -> float:
        """``mean y~^2``."""
        return float(self.mean[-1, -1]) / self._response_weight**2

    @property
    def _response_weight(self) -> float:
        if self.space.response is None:
            raise InvalidInput("these moments have no response")
        return self.space.response.cross


@dataclass(frozen=True, eq=False, repr=False)
class Score(Release):
    """A noisy sum of ``x~`` times a bounded residual, at given coefficients."""


@dataclass(frozen=True, eq=False, repr=False)
class ScoreMoment(Release):
    """A noisy sum of outer products of rows' contributions to a score, of shape (q, q)."""


@dataclass(frozen=True, eq=False, repr=False)
class Count(Release):
    """A noisy number of rows, as a vector of length 1."""

    @property
    def count(self) -> int:
        """The noisy count, a whole number that may be negative."""
        return int(self.total[0])


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Release):
    """Noisy counts. Bin i holds values in ``[edges[i], edges[i + 1])``; the outer bins hold everything beyond."""

    edges: Vector

    def quantile(self, level: float) -> float:
        """The right edge of the first bin at which the noisy cumulative count reaches ``level``.

        Cumulative counts are first made monotone, which is post-processing. The largest possible answer is the last
        inner edge.
        """
        below = np.maximum.accumulate(np.cumsum(self.total))
        bin_ = int(np.searchsorted(below, level * self.n))
        return float(self.edges[min(bin_ + 1, len(self.edges) - 2)])


@dataclass(frozen=True, eq=False, repr=False)
class ColumnCounts(Release):
    """Noisy counts of several columns in the same bins, each followed by the count of its missing cells."""

    edges: Vector

    @property
    def by_column(self) -> Matrix:
        """Of shape (columns, bins + 1), the missing cells last."""
        return self.total.reshape(-1, len(self.edges))


@dataclass(frozen=True, eq=False, repr=False)
class Sketch(Release):
    """A noisy sketch ``B Z`` of bounded rows, flattened and in integer units; ``matrix`` has B's columns of norm 1.

    Parameters
    ----------
    k : int
        The number of rows of the sketch.
    unit : float
        The value of one unit of the total.
    """

    space: WhitenedSpace
    k: int
    unit: float

    @property
    def matrix(self) -> Matrix:
        """``B Z + N``, of shape (k, d), in the coordinates of the space."""
        return np.asarray(self.total.reshape(self.k, -1) * self.unit)


@dataclass(frozen=True, eq=False, repr=False)
class Coefficients(ShownInShort):
    """Fitted coefficients in the original units, with their standard errors.

    Parameters
    ----------
    features : tuple of str
    coef : ndarray of shape (d,)
    intercept : float
    target : str
    n : int
    privacy_error : ndarray of shape (d,)
        Standard deviation of each coefficient due to privacy noise, to first order.
    standard_error : ndarray of shape (d,)
        Standard deviation due to privacy noise and sampling.
    fill : ndarray of shape (d,)
        The values that replace missing cells, in predictions as in the fit.
    reach : (float, float)
        Predictors are kept between these: what rows like those that the fit knew have, and somewhat beyond, for log
        links and for two classes; the declared bounds of the response for linear models.
    limits : (float, float), optional
        What the predictors of intervals are kept between, if it is more: the declared bounds of the response alone.
    ends : ndarray of shape (2, d), optional
        Values of a column beyond its ends count as these, in predictions as in the fit.
    """

    features: tuple[str, ...]
    coef: Vector
    intercept: float
    target: str
    n: int
    privacy_error: Vector
    standard_error: Vector
    fill: Vector
    reach: tuple[float, float] = ANYWHERE
    limits: tuple[float, float] | None = None
    ends: Matrix | None = None

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Whether noise leaves anything of a slope, of shape (d,); errors of what it hides are those of a prior."""
        return np.asarray((self.coef != 0) | ~(self.privacy_error <= _HIDDEN * self.standard_error))

    def within(self, x: Matrix) -> Matrix:
        """Rows as in the fit, of shape (m, d): missing cells are filled, and others lie between the ends."""
        ends = endless(len(self.fill)) if self.ends is None else self.ends
        return Ranges(ends, self.fill).within(x)

    def predictor(self, x: Matrix) -> Vector:
        """``x @ coef + intercept`` of rows within the ends, of shape (m,); missing cells are filled."""
        return np.asarray(self.within(x) @ self.coef + self.intercept)

    def predict(self, x: Matrix) -> Vector:
        """The predictor within reach, of shape (m,)."""
        return np.clip(self.predictor(x), *self.reach)

    def in_order(self, features: Sequence[str]) -> Coefficients:
        """The same coefficients, in the order of these features."""
        order = [self.features.index(name) for name in features]
        return replace(
            self,
            features=tuple(features),
            coef=self.coef[order],
            privacy_error=self.privacy_error[order],
            standard_error=self.standard_error[order],
            fill=self.fill[order],
            ends=None if self.ends is None else self.ends[:, order],
        )

    def by_class(self) -> tuple[tuple[str, Coefficients], ...]:
        """A single linear predictor, which belongs to no class."""
        return (("", self),)

    def _in_short(self) -> str:
        return f"of {plain(self.target)}: {len(self.features)} features, n = {self.n:,}"

    def __str__(self) -> str:
        return _text(self.by_class())

    def _repr_html_(self) -> str:
        return _html(self.by_class())


@dataclass(frozen=True, eq=False, repr=False)
class ClassCoefficients(ShownInShort):
    """Coefficients of K linear predictors, one for each class; over the classes they sum to 0.

    Parameters
    ----------
    classes : tuple of str
    each : tuple of Coefficients
        In the order of the classes.
    """

    classes: tuple[str, ...]
    each: tuple[Coefficients, ...]

    def __post_init__(self) -> None:
        if len(self.classes) != len(self.each) or len(self.each) < 2:
            raise InvalidInput(f"there are {len(self.classes)} classes, but coefficients of {len(self.each)}")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the d columns."""
        return self.each[0].features

    @property
    def target(self) -> str:
        """Name of the response."""
        return self.each[0].target

    @property
    def n(self) -> int:
        """Number of private rows."""
        return self.each[0].n

    @property
    def fill(self) -> Vector:
        """The values that replace missing cells, of shape (d,)."""
        return self.each[0].fill

    @property
    def coef(self) -> Matrix:
        """Of shape (K, d)."""
        return np.array([one.coef for one in self.each])

    @property
    def intercept(self) -> Vector:
        """Of shape (K,)."""
        return np.array([one.intercept for one in self.each])

    @property
    def privacy_error(self) -> Matrix:
        """Of shape (K, d)."""
        return np.array([one.privacy_error for one in self.each])

    @property
    def standard_error(self) -> Matrix:
        """Of shape (K, d)."""
        return np.array([one.standard_error for one in self.each])

    def within(self, x: Matrix) -> Matrix:
        """Rows as in the fit, of shape (m, d): missing cells are filled."""
        return self.each[0].within(x)

    def predict(self, x: Matrix) -> Matrix:
        """Linear predictors of the classes, of shape (m, K)."""
        return np.column_stack([one.predict(x) for one in self.each])

    def by_class(self) -> tuple[tuple[str, Coefficients], ...]:
        """The classes with their predictors."""
        return tuple(zip(self.classes, self.each, strict=True))

    def _in_short(self) -> str:
        return f"{self.each[0]._in_short()}, {len(self.classes)} classes"

    def __str__(self) -> str:
        return _text(self.by_class())

    def _repr_html_(self) -> str:
        return _html(self.by_class())


def _html(each: Sequence[tuple[str, Coefficients]]) -> str:
    """Tables of coefficients with their errors, one for each class."""
    return "".join(html_table(_HEADER, rows, title) for title, rows in _tables(each))


def _text(each: Sequence[tuple[str, Coefficients]]) -> str:
    return "\n\n".join(text_table(_HEADER, rows, title) for title, rows in _tables(each))


def _tables(each: Sequence[tuple[str, Coefficients]]) -> list[tuple[str, list[list[str]]]]:
    """Titles and rows."""
    tables = []
    for name, one in each:
        columns = (one.identified, one.coef, one.standard_error, one.privacy_error)
        rows = [["(intercept)", f"{one.intercept:.6g}", "", ""]]
        for feature, known, *values in zip(one.features, *columns, strict=True):
            cells = [f"{value:.6g}" for value in values]
            rows.append([feature, *(cells if known else [cells[0], UNIDENTIFIED, ""])])
        tables.append((f"{one.target} = {name}" if name else one.target, rows))
    return tables
