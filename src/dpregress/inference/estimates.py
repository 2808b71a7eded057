"""Whitened estimates and their covariances in original units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import contrasts
from dpregress.releases.estimates import INTERCEPT, CovarianceType, Estimates


def original_estimates(
    space: WhitenedSpace,
    whitened: Vector,
    *,
    n: int,
    sampling: Matrix,
    privacy: Matrix,
    unidentified: Matrix | None = None,
    shift: Matrix | None = None,
    df: float = np.inf,
    cov_type: CovarianceType = "model",
    dispersion: float | None = None,
    gram: Matrix | None = None,
    classes: Sequence[str] = (),
    numbers: Sequence[bool] = (),
) -> Estimates:
    """Estimates in the units of the columns, from whitened ones.

    Parameters
    ----------
    space : WhitenedSpace
    whitened : ndarray of shape (q,)
    n : int
        Private rows.
    sampling, privacy : ndarray of shape (q, q)
        Covariances of the whitened estimates.
    unidentified : ndarray of shape (q, q), optional
        The projection on directions about which too little is known; coefficients that lie along them have no interval.
    shift : ndarray of shape (q, q), optional
        The second moment of what weights and clips may add.
    df, cov_type, dispersion
        As in :class:`~dpregress.releases.Estimates`.
    gram : ndarray of shape (p, p), optional
        The mean ``x~ x~'`` of the private rows.
    classes : sequence of str
        More than two; the estimates are then those of their contrasts, flat.
    numbers : sequence of bool
        Which features are numbers and no indicators, if ``unidentified`` is due to the Gram matrix.
    """
    scale = 1.0 if space.response is None else space.response.scale
    turn = np.asarray(scale * space.whitening.T)
    names = ((INTERCEPT,) if space.intercept else ()) + space.features
    if classes:
        turn = np.concatenate([np.kron(turn, row) for row in contrasts(len(classes))])
        names = tuple(f"{one}: {name}" for one in classes for name in names)
    estimate = turn @ whitened
    if space.intercept and space.response is not None and not classes:
        estimate[0] += space.response.centre
    hidden = np.zeros(len(turn)) if unidentified is None else _squares(turn, unidentified)
    length = np.einsum("ki,ki->k", turn, turn)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the range of floats nothing is identified
        rows, noise = (np.asarray(turn @ part @ turn.T) for part in (sampling, privacy))
        known = np.isfinite(np.diag(rows + noise)) & (np.diag(noise) <= _ROWS * n * np.diag(rows))
    return Estimates(
        names=names,
        estimate=estimate,
        sampling=rows,
        privacy=noise,
        identified=np.asarray(
            (hidden <= _NEGLIGIBLE * length) & known & ~_adrift(space, len(turn), unidentified, numbers)
        ),
        shift=_root_diagonal(turn, shift),
        df=df,
        cov_type=cov_type,
        dispersion=dispersion,
        spread=None if gram is None else _spread(space, gram),
    )


#: Share of a coefficient's squared length that may lie along directions about which too little is known.
_NEGLIGIBLE = 0.01
#: Share of the constant that may lie along such directions: beyond it, rows are more than a third of a standard
#: deviation from where public facts have them.
_SHIFTED = 0.1
#: A coefficient is not identified if its privacy variance exceeds this share of the sampling variance of a single row.
_ROWS = 0.25


def _adrift(
    space: WhitenedSpace, count: int, unidentified: Matrix | None, numbers: Sequence[bool]
) -> NDArray[np.bool_]:
    """Which coefficients are intercepts that the slope of a number decides about which too little is known.

    All rows are at one end of where public facts have this number, such as ages in years beside ages in months, and its
    slope moves the intercept by all of its mean. Of an indicator, no row has the level then, and nothing is moved.
    """
    found = np.zeros(count, dtype=bool)
    if unidentified is None or not space.intercept or not any(numbers):
        return found
    order = space.order
    classes = len(unidentified) // order
    one = np.einsum("ikjk->ij", unidentified.reshape(order, classes, order, classes)) / classes
    constant, slopes = space.constant / np.linalg.norm(space.constant), space.slopes.T
    hidden = _squares(slopes, one) > _NEGLIGIBLE * np.sum(slopes**2, axis=1)
    found[:: 1 + len(space.features)] = constant @ one @ constant > _SHIFTED and bool(np.any(hidden & numbers))
    return found


def _squares(rows: Matrix, metric: Matrix) -> Vector:
    return np.asarray(np.einsum("ki,ij,kj->k", rows, metric, rows))


def _root_diagonal(turn: Matrix, moment: Matrix | None) -> Vector:
    if moment is None:
        return np.zeros(len(turn))
    return np.asarray(np.sqrt(np.maximum(_squares(turn, moment), 0)))


def _spread(space: WhitenedSpace, gram: Matrix) -> Matrix:
    """The covariance of the features, from the second moment of whitened rows."""
    back = np.linalg.inv(space.whitening)
    moment = back @ gram @ back.T
    if not space.intercept:
        return np.asarray(moment)
    mean = moment[0, 1:] / moment[0, 0]
    return np.asarray(moment[1:, 1:] / moment[0, 0] - np.outer(mean, mean))
