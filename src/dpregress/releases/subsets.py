r"""The moments of a regression within released moments of all columns.

With W the whitening of the release and ``B = W^{-1}``, the rows of a regression are ``(1, x, y) = S x~``, S the rows of
B of its columns, the response last. With ``S = L Q'`` (L lower triangular, Q with orthonormal columns), ``Q' x~ =
L^{-1} (1, x, y)`` are coordinates of these columns alone, in which

* the released moment is ``Q'(M + N) Q``, and the noise ``Q' N Q`` has the law of N: the same scale in every entry of
  svec, because that law is invariant under rotations;
* the last one is ``(y - (1, x)'b0) / t``, the residual of the regression by the coordinates themselves, in units of its
  standard deviation there.

The noise is therefore in proportion to the residuals of the regression and not to the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput, did_you_mean, one_line
from dpregress.releases.noise import Isotropic
from dpregress.releases.release import Moments


@dataclass(frozen=True, eq=False, repr=False)
class RegressionMoments(ShownInShort):
    """Joint moments of features and of what ``baseline`` leaves of a response.

    Parameters
    ----------
    moments : Moments
        Their response is ``(y - (1, x)'b0) / t``.
    baseline : ndarray of shape (p,)
        b0 in original units, the intercept first if there is one.
    axes : ndarray of shape (q, p + 1)
        Q: the coordinates of the release of order q in those of the regression.
    """

    moments: Moments
    baseline: Vector
    axes: Matrix


def regression_moments(
    moments: Moments, target: str, features: Sequence[str], *, intercept: bool = True
) -> RegressionMoments:
    """The moments of one regression.

    Parameters
    ----------
    moments : Moments
        Of all columns, without a response, with isotropic noise.
    target : str
    features : sequence of str
    intercept : bool

    Raises
    ------
    InvalidInput
        For a column that was not released, or one that is named twice.
    """
    space = moments.space
    wanted = [*features, target]
    if not features or len(set(wanted)) != len(wanted):
        raise InvalidInput(f"regress {one_line(target)} on at least one other column, each once, and not on itself")
    if intercept and not space.intercept:
        raise InvalidInput("these moments were released without a constant: fit with fit_intercept=False")
    places = places_of(space, wanted)
    axes, upper = np.linalg.qr(space.back[([0] if intercept else []) + places].T)
    sign = np.where(np.diag(upper) < 0, -1.0, 1.0)
    axes, lower = axes * sign, (upper * sign[:, None]).T
    inverse = solve_triangular(lower, np.eye(len(lower)), lower=True)
    scale = float(lower[-1, -1])
    own = WhitenedSpace(
        tuple(features),
        inverse[:-1, :-1],
        space.radius,
        space.fill[[space.features.index(name) for name in features]],
        intercept,
        ResponseScale(target, scale=scale),
    )
    total = axes.T @ moments.total @ axes
    assert isinstance(moments.noise, Isotropic)
    found = Moments((total + total.T) / 2, moments.n, moments.noise, moments.events, own)
    return RegressionMoments(found, np.asarray(-scale * inverse[-1, :-1]), axes)


def not_released(name: object, columns: Sequence[str]) -> InvalidInput:
    """The refusal of a column that is not among those that were released."""
    choose = "choose from " + ", ".join(columns[:12]) + (", .." if len(columns) > 12 else "")
    mend = did_you_mean(name, columns, choose) if isinstance(name, str) else choose
    return InvalidInput(f"{one_line(name)} is not among the released columns: {mend}")


def places_of(space: WhitenedSpace, names: Sequence[str]) -> list[int]:
    """Places of columns among the rows of ``W^{-1}``.

    Raises
    ------
    InvalidInput
        For a column that was not released.
    """
    absent = [name for name in names if name not in space.features]
    if absent:
        raise not_released(absent[0], space.features)
    return [space.intercept + space.features.index(name) for name in names]
