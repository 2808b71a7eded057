r"""Roots of public second moments: coordinates in which public rows have the second moment I.

Small eigenvalues are what must be whitened, so none is raised unless rows that were left out contradict it. Of few rows
they mean little: correlations are then shrunk. Directions in which the moment is zero take the scale of the schema, and
less of it if noise is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import eigen
from dpregress.display import some_and_more
from dpregress.errors import InvalidInput
from dpregress.public.moments import PublicMoments
from dpregress.public.radius import public_radius

#: Eigenvalues of the scaled moment below this share of the largest count as zero.
_RANK_TOLERANCE = 1e-11
#: The share of a column's second moment that rounding may leave as its variance: of a moment, and of centred rows.
_ROUNDING, _ROUNDING_CENTRED = 1e-13, 1e-28
#: Where the variance of a column is a smaller share of its second moment, their difference has lost digits.
_CANCELLED = 1e-3
#: A column is part of a direction when its share in it is above this.
_IN_DIRECTION = 1e-4
#: The largest condition number of coordinates, with columns of one scale: beyond it floats are singular.
_LARGEST_CONDITION = 1e15
#: With fewer public rows that differ from the commonest value of a column, the scale of the schema is used for it; and
#: the largest factor by which a column is narrower than that scale.
FEWEST_UNLIKE, NARROWEST = 5, 100.0
#: The number of folds, and the factor by which eigenvalues of normal rows may differ out of sample.
_FOLDS, _USUAL = 5, 1.2
#: The least total overlap of an axis with the folds' eigenvectors (one for each fold at most) that counts.
_LEAST_SEEN = 0.5


@dataclass(frozen=True, eq=False)
class Root:
    """A root ``W = (shown + unseen) / unit`` of the public second moment S: ``W S W' = I`` where S is not zero.

    Attributes
    ----------
    public : PublicMoments
    intercept : bool
    mean : ndarray of shape (d,)
    shown : ndarray of shape (d, d)
        The root in directions in which public rows vary, of scaled columns.
    unseen : ndarray of shape (d, d) or None
        That in all others, where ``||W v|| = ||v / null_scale||``; None if there are none.
    unit : ndarray of shape (d,)
        By which columns are divided.
    """

    public: PublicMoments
    intercept: bool
    mean: Vector
    shown: Matrix
    unseen: Matrix | None
    unit: Vector

    @classmethod
    def of(cls, public: PublicMoments, intercept: bool, null_scale: Vector | None) -> Root:
        """The columns are scaled before the decomposition, so that units far apart cost no digits.

        The scale of a null direction is that of the columns in it; other directions keep the public moment's, however
        wide the bounds.
        """
        scaled = _Scaled.of(public, intercept)
        values, vectors = eigen(scaled.second)
        null = values <= _RANK_TOLERANCE * max(float(values[-1]), 1e-3)
        if scaled.rows is not None:
            values = _believed(values, vectors, scaled.rows, intercept)
        shown = (vectors / np.sqrt(np.where(null, 1.0, values)) * ~null) @ vectors.T
        unseen = _unseen(public.names, vectors[:, null], scaled.unit, null_scale) if null.any() else None
        return cls(public, intercept, scaled.mean, shown, unseen, scaled.unit)

    @classmethod
    def shrunk(cls, public: PublicMoments, intercept: bool, null_scale: Vector | None) -> Root:
        """The same with correlations shrunk towards 0, for so few rows that their small eigenvalues mean little.

        Columns have their scales from ``null_scale`` if fewer than five rows differ from the commonest value: how large
        an amount is that most do not have, few rows do not tell. No other is smaller than a share of that scale.

        References
        ----------
        Ledoit, Wolf (2004), A well-conditioned estimator for large-dimensional covariance matrices.
        """
        scaled = _Scaled.of(public, intercept)
        assert scaled.rows is not None
        scale = np.full(len(scaled.unit), np.nan) if null_scale is None else null_scale
        varies = np.diag(scaled.second) > 0
        varies &= np.isnan(scale) | (unlike_most(scaled.rows) >= FEWEST_UNLIKE)
        share = _shrinkage(scaled.rows, scaled.second)
        shrunk = (1 - share) * scaled.second * np.outer(varies, varies)
        np.fill_diagonal(shrunk, 1.0)
        values, vectors = eigen(shrunk)
        wider = np.fmax(scale / NARROWEST / scaled.unit, 1.0)
        shown = varies[:, None] * (vectors / np.sqrt(values)) @ vectors.T * (varies / wider)
        still = np.eye(len(varies))[:, ~varies]
        unseen = None if varies.all() else _unseen(public.names, still, scaled.unit, null_scale)
        return cls(public, intercept, scaled.mean, np.asarray(shown), unseen, scaled.unit)

    def _whitening(self, magnified: float = 1.0) -> Matrix:
        whole = self.shown if self.unseen is None else self.shown + magnified * self.unseen
        whitening = np.asarray(whole / self.unit)
        if self.intercept:
            first = np.concatenate([[1.0], np.zeros(len(whitening))])
            whitening = np.vstack([first, np.column_stack([-(whitening @ self.mean), whitening])])
        return whitening

    @cached_property
    def solvable(self) -> bool:
        """Whether floats can solve equations in these coordinates, by columns of one scale."""
        whitening = self._whitening()
        unit = np.linalg.norm(whitening, axis=0)
        scaled = whitening / np.where(unit > 0, unit, 1.0)
        return bool(np.isfinite(scaled).all() and np.linalg.cond(scaled) < _LARGEST_CONDITION)

    def space(self, magnified: float = 1.0) -> WhitenedSpace:
        """The space, in which directions that public rows do not show are so many times as long.

        Raises
        ------
        InvalidInput
            If equations in its coordinates cannot be solved.
        """
        if not self.solvable:
            raise InvalidInput(
                "public rows lie too far apart to whiten by: correct those far beyond the others, or leave them out"
            )
        space = WhitenedSpace(self.public.names, self._whitening(magnified), 1.0, self.mean, self.intercept)
        return space.rewhitened(np.eye(space.order), public_radius(self.public, space))


def _unseen(names: tuple[str, ...], directions: Matrix, unit: Vector, null_scale: Vector | None) -> Matrix:
    """The root in the null directions, the columns of a matrix of shape (d, k).

    Raises
    ------
    InvalidInput
        If a column in them has no scale.
    """
    scale = np.full(len(unit), np.nan) if null_scale is None else null_scale
    alike = np.isnan(scale) & (np.abs(directions) > _IN_DIRECTION).any(axis=1)
    if alike.any():
        columns = some_and_more([name for name, one in zip(names, alike, strict=True) if one])
        raise InvalidInput(
            f"the public second moment is singular (rank {len(unit) - directions.shape[1]} of {len(unit)}) along "
            f"{columns}: give a schema with their bounds, more public rows, or leave out constant or repeated columns"
        )
    ratio = np.where(np.isnan(scale), 0.0, unit / scale)
    _, sizes, axes = np.linalg.svd(ratio[:, None] * directions, full_matrices=False)
    turned = directions @ axes.T
    return np.asarray((turned * sizes) @ turned.T)


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A public second moment, about the mean with an intercept, of columns divided by their root mean squares."""

    mean: Vector
    rows: Matrix | None
    second: Matrix
    unit: Vector

    @classmethod
    def of(cls, public: PublicMoments, intercept: bool) -> _Scaled:
        if intercept:
            mean = public.augmented(True)[0, 1:]
            rows = None if public.rows is None else _centred(public.rows - mean)
            second = _covariance(public, mean, rows)
        else:
            mean = np.zeros(len(public.names)) if public.mean is None else public.mean
            rows, second = public.rows, public.second
        unit = np.sqrt(np.maximum(np.diag(second), 0))
        unit = np.where(unit > 0, unit, 1.0)
        return cls(mean, None if rows is None else rows / unit, second / np.outer(unit, unit), unit)


def unlike_most(rows: Matrix) -> Vector:
    """How many rows differ from the commonest value of each column, of shape (d,)."""
    return np.array([len(rows) - np.unique(column, return_counts=True)[1].max() for column in rows.T])


def _shrinkage(rows: Matrix, second: Matrix) -> float:
    """The share by which correlations of scaled rows are shrunk with the least expected squared error."""
    m = len(rows)
    error = float(np.mean(np.sum(rows**2, axis=1) ** 2) - np.sum(second**2)) / m
    between = float(np.sum((second - np.diag(np.diag(second))) ** 2))
    return min(max(error / max(between, 1e-300), 1 / m), 1.0)


def _centred(rows: Matrix) -> Matrix:
    """Rows about their mean: about one with rounding, a constant would have the variance of that."""
    return np.asarray(rows - rows.mean(axis=0))


def _covariance(public: PublicMoments, mean: Vector, rows: Matrix | None) -> Matrix:
    """The covariance of public rows, from centred rows if the moment has lost digits; exactly 0 in constant columns.

    What rounding leaves of a constant would otherwise count as its variance.
    """
    known, raw = public.second - np.outer(mean, mean), np.diag(public.second)
    rounding = max(_ROUNDING, public.n * float(np.finfo(np.float64).eps))  # long sums have lost more digits
    if rows is not None and (np.diag(known) < _CANCELLED * raw).any():
        known, rounding = rows.T @ rows / len(rows), _ROUNDING_CENTRED
    varies = np.diag(known) > rounding * raw
    return np.asarray(known * np.outer(varies, varies))


def _believed(values: Vector, axes: Matrix, rows: Matrix, centred: bool) -> Vector:
    """Eigenvalues of a public second moment, raised if left-out rows vary more along their axes.

    With skewed columns, or many columns, the smallest eigenvalues are far too small for other rows. Cross-validation
    estimates the variances of other rows, as in the NERCOME estimate of a covariance: the variances of left-out rows
    along the eigenvectors of the other rows, assigned to the axes by squared overlap. Eigenvalues that differ no more
    than those of normal rows do are not changed.

    Parameters
    ----------
    values : ndarray of shape (d,)
    axes : ndarray of shape (d, d)
        Their eigenvectors.
    rows : ndarray of shape (m, d)
        Scaled, and centred where the moment is.
    centred : bool
    """
    m, d = rows.shape
    if m < 2 * _FOLDS:
        return values
    fold = np.arange(m) % _FOLDS
    outside, seen = np.zeros(d), np.zeros(d)
    for turn in range(_FOLDS):
        inner, outer = rows[fold != turn], rows[fold == turn]
        mean = inner.mean(axis=0) if centred else np.zeros(d)
        found, vectors = eigen((inner - mean).T @ (inner - mean))
        vectors = vectors[:, found > _RANK_TOLERANCE * found[-1]]  # a level of the rows left out says nothing of others
        share = (axes.T @ vectors) ** 2
        outside += share @ np.mean(((outer - mean) @ vectors) ** 2, axis=0)
        seen += share.sum(axis=1)
    usual = _USUAL * (m / max(m - d - 1, 1)) ** 2
    return np.asarray(
        np.maximum(values, np.where(seen > _LEAST_SEEN, outside / np.maximum(seen, _LEAST_SEEN), 0) / usual)
    )
