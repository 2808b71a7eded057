r"""Where a fit starts: coordinates and a radius from public facts alone.

Public second moment S: ``W = S^{-1/2}`` (symmetric root) and the radius is the median leave-one-out
norm of the public rows, ``sqrt((m - 1) h / (1 - h))`` with h their leverages, at most 1/2 (measured best).
Without public moments, the schema's bounds or a plain bound on the row norm give a first space that the recipe refines
with private second moments; for few public rows, or skewed ones, there are two such starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.errors import InvalidInput, UnboundedData, one_line
from dpregress.public.moments import PublicMoments
from dpregress.public.radius import RowNorms
from dpregress.public.root import NARROWEST, Root
from dpregress.public.schema import Schema

#: So many in m private rows may vary where m public rows do not; and this share at least, as public rows may be unlike.
_UNSEEN, _LEAST_UNSEEN = 36.0, 1 / 16
#: With fewer public rows than this many per column, a private second moment is worth its cost.
_ROWS_PER_COLUMN = 5
#: The same for rows with skewed norms: the mean squared norm exceeds the median one by this factor.
_ROWS_PER_SKEWED_COLUMN, _SKEWED = 10, 1.25
#: With fewer public rows their variances are no better a start than bounds.
_FEWEST = 10
#: Of an untold column whose values lie closer together than the scale of the schema by this factor, bounds do not tell.
_NARROW = 10.0
#: A bound on rows lies between its inverse and this: systems can be solved in its units.
_LARGEST_BOUND = 1e90
#: Public rows that lie beyond the bounds by a larger factor are refused: squares of squares would overflow.
_FARTHEST = 1e30
#: The number of private second moments that refine a start from bounds: each resolves a few orders of scale.
_FROM_BOUNDS = 3


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
    shrunk : Start or None
        If there are few public rows, or skewed ones, a start from their moment with shrunk correlations.
    from_few : bool
        Whether it is such a start.
    """

    space: WhitenedSpace
    refinements: int
    row_bound: bool = False
    instead: Start | None = None
    shrunk: Start | None = None
    from_few: bool = False

    @property
    def whitened_privately(self) -> bool:
        """Whether private second moments alone whiten it: public rows then give bounds at most, or scales."""
        return self.refinements == _FROM_BOUNDS or self.from_few


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
    shrunk = None if found.shrunk is None else _filled(found.shrunk, declared)
    return replace(found, space=replace(found.space, fill=fill), instead=instead, shrunk=shrunk)


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
        scale = _known_scale(names, schema)
        root = Root.of(public, intercept, scale)
        few = public.n < _ROWS_PER_COLUMN * len(names)
        if schema is None or not schema.bounds_all(names):
            if not few:
                return Start(root.space(), refinements=0, instead=_magnified(root))
            return Start(root.space(), refinements=1, shrunk=_shrunk(public, intercept, schema))
        space = None if few or not root.solvable else root.space()
        if space is not None and not _misleading(public, space):
            return Start(space, refinements=0, instead=_magnified(root))
        bounds = Start(_near(public, _boxed(names, schema, intercept)), refinements=_FROM_BOUNDS)
        found = bounds if space is None else Start(space, refinements=0, instead=bounds)
        return replace(found, shrunk=_shrunk(public, intercept, schema))
    if schema is not None and (row_bound is None or schema.bounds_all(names)):
        return Start(_boxed(names, schema, intercept), refinements=_FROM_BOUNDS)
    if row_bound is not None:
        check_row_bound(row_bound)
        return Start(_balled(names, row_bound, intercept), refinements=_FROM_BOUNDS, row_bound=True)
    raise UnboundedData("the rows need a public bound: give public=, schema= or row_bound=")


def unseen_scale(m: int) -> float:
    """What the scales of directions are multiplied by in which m public rows do not vary."""
    return math.sqrt(min(max(_UNSEEN / m, _LEAST_UNSEEN), 1.0))


def _magnified(root: Root) -> Start | None:
    """The start in which what m public rows lack is magnified, as it is rare; None if they lack nothing."""
    shorter = unseen_scale(root.public.n)
    return None if root.unseen is None or shorter == 1 else Start(root.space(1 / shorter), refinements=0)


def _shrunk(public: PublicMoments, intercept: bool, schema: Schema | None) -> Start | None:
    """The start from public rows with shrunk correlations; None if there are too few, or none that can be seen.

    Its refinements are those of a start from bounds if these limit the scale of a numeric column, or give it though few
    rows show that it is narrower. What no row shows is rare: bounds do for it.
    """
    if public.rows is None or public.n < _FEWEST:
        return None
    scale = _known_scale(public.names, schema)
    try:
        root = Root.shrunk(public, intercept, scale)
        space = root.space()
        median = float(np.median(np.linalg.norm(space.whiten(public.rows), axis=1)))
        space = space.rewhitened(np.eye(space.order), median)
    except InvalidInput:  # of rows of zeros, or in units that floats cannot square
        return None
    far = False
    if schema is not None and scale is not None:
        numeric = np.array([schema.indicates(name) is None for name in public.names])
        spread, apart = public.rows.std(axis=0), np.ptp(public.rows, axis=0)
        most = np.where(root.shown.any(axis=1), NARROWEST * spread, _NARROW * apart)
        far = bool((numeric & (apart > 0) & (scale > most)).any())
    return Start(space, refinements=_FROM_BOUNDS if far else 1, from_few=True)


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
    return Root.of(public, intercept, null_scale).space()


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
