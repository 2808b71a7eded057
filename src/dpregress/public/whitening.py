r"""Where a fit starts: coordinates and a radius from public facts alone.

Public second moment S: ``W = S^{-1/2}`` (symmetric root) and the radius is the median leave-one-out
norm of the public rows, ``sqrt((m - 1) h / (1 - h))`` with h their leverages, at most 1/2 (measured best).
Small eigenvalues are what must be whitened, so none is raised unless rows that were left out contradict it.
Directions in which S is zero take the scale of the schema, and less of it if noise is small. Without public moments,
the schema's bounds or a plain bound on the row norm give a first space that the recipe refines with private second
moments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.errors import InvalidInput, UnboundedData, one_line
from dpregress.public.moments import PublicMoments
from dpregress.public.radius import RowNorms, public_radius
from dpregress.public.schema import Schema

#: Eigenvalues of the scaled moment below this share of the largest count as zero.
_RANK_TOLERANCE = 1e-11
#: The share of a column's second moment that rounding may leave as its variance: of a moment, and of centred rows.
_ROUNDING, _ROUNDING_CENTRED = 1e-13, 1e-28
#: Where the variance of a column is a smaller share of its second moment, their difference has lost digits.
_CANCELLED = 1e-3
#: So many in m private rows may vary where m public rows do not; and this share at least, as public rows may be unlike.
_UNSEEN, _LEAST_UNSEEN = 36.0, 1 / 16
#: A column is part of a direction when its share in it is above this.
_IN_DIRECTION = 1e-4
#: With fewer public rows than this many per column, a private second moment is worth its cost.
_ROWS_PER_COLUMN = 5
#: The same for rows with skewed norms: the mean squared norm exceeds the median one by this factor.
_ROWS_PER_SKEWED_COLUMN, _SKEWED = 10, 1.25
#: A bound on rows lies between its inverse and this: systems can be solved in its units.
_LARGEST_BOUND = 1e90
#: Public rows that lie beyond the bounds by a larger factor are refused: squares of squares would overflow.
_FARTHEST = 1e30
#: The largest condition number of coordinates, with columns of one scale: beyond it floats are singular.
_LARGEST_CONDITION = 1e15
#: The number of private second moments that refine a start from bounds: each resolves a few orders of scale.
_FROM_BOUNDS = 3
#: The number of folds, and the factor by which eigenvalues of normal rows may differ out of sample.
_FOLDS, _USUAL = 5, 1.2
#: The least total overlap of an axis with the folds' eigenvectors (one for each fold at most) that counts.
_LEAST_SEEN = 0.5


@dataclass(frozen=True)
class Start:
    """A first space, and how to refine it.

    Attributes
    ----------
    space : WhitenedSpace
    refinements : int
        The number of private second moments that refine it.
    row_bound : bool
        Whether it is based on a bound on the norm of a row.
    instead : Start or None
        A start that is better if noise is small: from bounds, if there are few public rows for columns as skewed as
        theirs; in coordinates that magnify what public rows do not show, if there is such a direction.
    """

    space: WhitenedSpace
    refinements: int
    row_bound: bool = False
    instead: Start | None = None

    @property
    def from_bounds(self) -> bool:
        """Whether it owes nothing to public rows."""
        return self.refinements == _FROM_BOUNDS


def start(
    features: Sequence[str],
    *,
    intercept: bool,
    public: PublicMoments | None,
    schema: Schema | None,
    row_bound: float | None,
) -> Start:
    """Choose the first space from what is public.

    Parameters
    ----------
    features : sequence of str
        Design columns.
    intercept : bool
    public : PublicMoments or None
    schema : Schema or None
        Bounds; categorical columns are bounded by themselves.
    row_bound : float or None
        A public bound on the norm of x.

    Raises
    ------
    UnboundedData
        When none of the three bounds the rows.
    InvalidInput
        When the public moment is singular and no schema scales its null directions.
    """
    found = _start(tuple(features), intercept, public, schema, row_bound)
    return found if schema is None else _filled(found, [schema.fill_of(name) for name in features])


def _filled(found: Start, declared: Sequence[float | None]) -> Start:
    """With what the schema declares that missing cells count as."""
    fill = np.array([old if new is None else new for old, new in zip(found.space.fill, declared, strict=True)])
    instead = None if found.instead is None else _filled(found.instead, declared)
    return replace(found, space=replace(found.space, fill=fill), instead=instead)


def _start(
    names: tuple[str, ...],
    intercept: bool,
    public: PublicMoments | None,
    schema: Schema | None,
    row_bound: float | None,
) -> Start:
    if public is not None:
        if public.names != names:
            raise InvalidInput(f"the public columns {_short(public.names)} are not the features {_short(names)}")
        root = _Root.of(public, intercept, _known_scale(names, schema))
        few = public.n < _ROWS_PER_COLUMN * len(names)
        if schema is None or not schema.bounds_all(names):
            space = root.space()
            return Start(space, refinements=1) if few else Start(space, refinements=0, instead=root.magnified())
        if few or not root.solvable:
            return Start(_near(public, _boxed(names, schema, intercept)), refinements=_FROM_BOUNDS)
        space = root.space()
        if not _misleading(public, space):
            return Start(space, refinements=0, instead=root.magnified())
        bounds = Start(_near(public, _boxed(names, schema, intercept)), refinements=_FROM_BOUNDS)
        return Start(space, refinements=0, instead=bounds)
    if schema is not None and (row_bound is None or schema.bounds_all(names)):
        return Start(_boxed(names, schema, intercept), refinements=_FROM_BOUNDS)
    if row_bound is not None:
        check_row_bound(row_bound)
        return Start(_balled(names, row_bound, intercept), refinements=_FROM_BOUNDS, row_bound=True)
    raise UnboundedData("the rows need a public bound: give public=, schema= or row_bound=")


def unseen_scale(m: int) -> float:
    """What the scales of directions are multiplied by in which m public rows do not vary."""
    return math.sqrt(min(max(_UNSEEN / m, _LEAST_UNSEEN), 1.0))


def _misleading(public: PublicMoments, space: WhitenedSpace) -> bool:
    """Whether there are few public rows for columns this skewed: a few far rows then determine the second moment."""
    if public.rows is None or public.n >= _ROWS_PER_SKEWED_COLUMN * len(public.names):
        return False
    squares = RowNorms.leave_one_out(public, space).sample ** 2
    return bool(np.mean(squares) > _SKEWED * np.median(squares))


def check_row_bound(row_bound: float) -> None:
    """Refuse a bound on the norm of a row that none can have.

    Raises
    ------
    InvalidInput
    """
    if not 1 / _LARGEST_BOUND <= row_bound <= _LARGEST_BOUND:
        raise InvalidInput(f"row_bound must be positive and between 1e-90 and 1e90, not {one_line(row_bound)}")


def from_public(public: PublicMoments, *, intercept: bool, null_scale: Vector | None = None) -> WhitenedSpace:
    """The space whitened by a public second moment.

    Parameters
    ----------
    public : PublicMoments
    intercept : bool
        Whiten ``(1, x)``: the constant comes first, x is centred by the public mean.
    null_scale : ndarray of shape (d,), optional
        Scale of each column, used in directions where the moment is zero; NaN where it is not known.

    Raises
    ------
    InvalidInput
        When the moment is zero in a direction that involves a column without a scale.
    """
    return _Root.of(public, intercept, null_scale).space()


@dataclass(frozen=True, eq=False)
class _Root:
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
    def of(cls, public: PublicMoments, intercept: bool, null_scale: Vector | None) -> _Root:
        """The columns are scaled before the decomposition, so that units far apart cost no digits.

        The scale of a null direction is that of the columns in it; other directions keep the public moment's, however
        wide the bounds.
        """
        if intercept:
            mean = public.augmented(True)[0, 1:]
            rows = None if public.rows is None else _centred(public.rows - mean)
            second = _covariance(public, mean, rows)
        else:
            mean = np.zeros(len(public.names)) if public.mean is None else public.mean
            rows, second = public.rows, public.second
        unit = np.sqrt(np.maximum(np.diag(second), 0))
        unit = np.where(unit > 0, unit, 1.0)
        values, vectors = np.linalg.eigh(second / np.outer(unit, unit))
        null = values <= _RANK_TOLERANCE * max(float(values[-1]), 1e-3)
        if rows is not None:
            values = _believed(values, vectors, rows / unit, intercept)
        shown = (vectors / np.sqrt(np.where(null, 1.0, values)) * ~null) @ vectors.T
        unseen = _unseen(vectors[:, null], unit, null_scale) if null.any() else None
        return cls(public, intercept, mean, shown, unseen, unit)

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

    def magnified(self) -> Start | None:
        """The start in which what m public rows lack is magnified, as it is rare; None if they lack nothing."""
        shorter = unseen_scale(self.public.n)
        return None if self.unseen is None or shorter == 1 else Start(self.space(1 / shorter), refinements=0)


def _unseen(directions: Matrix, unit: Vector, null_scale: Vector | None) -> Matrix:
    """The root in the null directions, the columns of a matrix of shape (d, k).

    Raises
    ------
    InvalidInput
        If a column in them has no scale.
    """
    scale = np.full(len(unit), np.nan) if null_scale is None else null_scale
    if (np.abs(directions[np.isnan(scale)]) > _IN_DIRECTION).any():
        raise InvalidInput(
            f"the public second moment is singular (rank {len(unit) - directions.shape[1]} of {len(unit)}): "
            "give a schema with bounds, more public rows, or leave out constant or repeated columns"
        )
    ratio = np.where(np.isnan(scale), 0.0, unit / scale)
    _, sizes, axes = np.linalg.svd(ratio[:, None] * directions, full_matrices=False)
    turned = directions @ axes.T
    return np.asarray((turned * sizes) @ turned.T)


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
        found, vectors = np.linalg.eigh((inner - mean).T @ (inner - mean))
        vectors = vectors[:, found > _RANK_TOLERANCE * found[-1]]  # a level of the rows left out says nothing of others
        share = (axes.T @ vectors) ** 2
        outside += share @ np.mean(((outer - mean) @ vectors) ** 2, axis=0)
        seen += share.sum(axis=1)
    usual = _USUAL * (m / max(m - d - 1, 1)) ** 2
    return np.asarray(
        np.maximum(values, np.where(seen > _LEAST_SEEN, outside / np.maximum(seen, _LEAST_SEEN), 0) / usual)
    )


def _known_scale(names: tuple[str, ...], schema: Schema | None) -> Vector | None:
    """The schema's scale of each design column, NaN where it has none."""
    if schema is None:
        return None
    return np.array([schema.scale_of(name)[1] if schema.bounds_all([name]) else math.nan for name in names])


def _boxed(names: tuple[str, ...], schema: Schema, intercept: bool) -> WhitenedSpace:
    """Numbers mapped into [-1, 1] by their bounds, indicators left at 0 and 1.

    At most one indicator of a categorical column is 1, so a row's squared norm is at most the number of its
    columns before they were encoded (and 1 for the constant), however many levels they have.
    """
    centre, scale = np.array([schema.scale_of(name) for name in names]).T
    groups = [schema.indicates(name) for name in names]
    indicator = np.array([group is not None for group in groups])
    centre, scale = np.where(indicator, 0.0, centre), np.where(indicator, 1.0, scale)
    columns = len({group for group in groups if group is not None}) + int((~indicator).sum())
    if not intercept:
        scale = scale + np.abs(centre)
        return WhitenedSpace(names, np.diag(1 / scale), math.sqrt(columns), centre)
    whitening = np.diag(np.concatenate([[1.0], 1 / scale]))
    whitening[1:, 0] = -centre / scale
    return WhitenedSpace(names, whitening, math.sqrt(1 + columns), centre, intercept)


def _near(public: PublicMoments, boxed: WhitenedSpace) -> WhitenedSpace:
    """The space of the schema's bounds, unless public rows lie so far beyond them that one of the two must be wrong."""
    if public.rows is not None and float(np.abs(boxed.whiten(public.rows)).max()) > _FARTHEST:
        raise InvalidInput("public rows lie far beyond the bounds of the schema: correct the bounds, or the rows")
    return boxed


def _balled(names: tuple[str, ...], row_bound: float, intercept: bool) -> WhitenedSpace:
    """Columns scaled so that a row of norm ``row_bound`` has norm sqrt(d)."""
    order = len(names) + intercept
    whitening = np.eye(order) * math.sqrt(len(names)) / row_bound
    if intercept:
        whitening[0, 0] = 1.0
    return WhitenedSpace(names, whitening, math.sqrt(order), np.zeros(len(names)), intercept)


def _short(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f", .. ({len(names)} in all)" if len(names) > 6 else "")
