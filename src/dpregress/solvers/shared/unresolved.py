"""Directions that a released Gram matrix does not resolve: their slopes are not known better than by bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import eigen
from dpregress.errors import UnboundedData
from dpregress.public.schema import Schema
from dpregress.solvers.shared.gram import MixedGram, spectral_noise

#: A slope that changes the response by all of its reach over all of a direction is this many standard deviations away.
_DEVIATIONS = 3.0
_ROUNDING = 1e-9
#: The largest ratio of noise to eigenvalue at which steps themselves tell how far they had to go, so many of their
#: standard deviations included.
_TELLING, _SURE = 0.5, 3.0
#: Share of directions that have to be resolved for any to count as identified.
_FEW = 0.1
#: Rows whose mean squared weight is less than this share of that of public ones are not where these are.
_SHORTENED = 0.25


class Way(NamedTuple):
    """The way from the first coefficients to the fit, and the covariance of what is known about it."""

    length: Vector
    covariance: Matrix


def unresolved_covariance(
    space: WhitenedSpace, mixed: MixedGram, steps: int, reach: float, schema: Schema | None, way: Way
) -> Matrix:
    r"""What may be left of slopes along directions in which the noise of the Gram matrix hides how rows vary.

    Where an eigenvalue was raised to the floor, as along a level that next to no row has, steps may leave all of the
    slope. Along another eigenvector, with eigenvalue l, each leaves ``e / l`` of its way at most, with e the spectral
    norm of the noise. Without data a slope is known to change the response by no more than its reach from one end of
    the rows' range to the other, which says too little where bounds are far wider than rows: it may be as long as the
    ways along directions that are resolved are in the root mean square. Where e is at most half of l, the steps tell
    how long the way was, to a share of ``e / l``: what they went, and three standard deviations, over ``1 - e / l``.

    Parameters
    ----------
    space : WhitenedSpace
    mixed : MixedGram
    steps : int
        That were solved with it.
    reach : float
        Half the range of the response.
    schema : Schema or None
        Bounds of the columns; where there are none, rows are taken to reach the radius.
    way : Way
        That the steps went.

    Returns
    -------
    covariance : ndarray of shape (p, p)
    """
    values, vectors = eigen(mixed.matrix)
    noise = spectral_noise(mixed.variance, len(values))
    share = np.where(values <= mixed.floor * (1 + _ROUNDING), 1.0, np.minimum(1.0, noise / values))
    size = reach / np.maximum(_extents(space, vectors, schema), 1e-300) / _DEVIATIONS
    known = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", vectors, way.covariance, vectors), 0))
    along, told = np.abs(vectors.T @ way.length), share <= _TELLING
    gone = (along + _SURE * known) / np.maximum(1 - share, 1 - _TELLING)
    usual = np.sqrt(max(float(np.mean(along[told] ** 2 - known[told] ** 2)), 0.0)) if told.any() else 0.0
    size = share**steps * np.where(told, np.minimum(size, gone), np.maximum(size, usual))
    return np.asarray((vectors * size**2) @ vectors.T)


def _extents(space: WhitenedSpace, vectors: Matrix, schema: Schema | None) -> Matrix:
    """How far from the origin rows within the bounds may lie along each vector."""
    try:
        bounds = np.array([(-1.0, 1.0) if schema is None else schema.bounds_of(name) for name in space.features])
    except UnboundedData:
        schema = None
    if schema is None:
        return np.full(len(vectors), space.radius)
    centre, half = bounds.mean(axis=1), np.ptp(bounds, axis=1) / 2
    along = vectors.T @ space.whitening
    if not space.intercept:
        return np.asarray(np.abs(along @ centre) + np.abs(along) @ half)
    return np.asarray(np.abs(along[:, 0] + along[:, 1:] @ centre) + np.abs(along[:, 1:]) @ half)


def are_where_public_rows_are(space: WhitenedSpace, gram: Matrix, public: Matrix | None) -> bool:
    """Whether private rows are among the public ones, by the weight that the radius leaves them, if that is known.

    It is known beside an intercept: the released second moment of the constant is the mean squared weight.

    Scores are explained by surrogate rows, which are public ones that are recoloured. Where private rows lie many
    deviations beyond all of them, as ages in years beside public decades, nothing has the shape of such rows.

    Parameters
    ----------
    space : WhitenedSpace
    gram : ndarray of shape (p, p)
        Released.
    public : ndarray of shape (m, d) or None
        In original units.
    """
    if public is None or not space.intercept:
        return True
    rows = space.whiten(public)
    usual = float(np.mean(space.weights(rows) ** 2))
    return float(space.constant @ gram @ space.constant) >= _SHORTENED * usual


def unidentified_directions(mixed: MixedGram) -> Matrix:
    """The projection on eigenvectors along which the Gram matrix does not exceed its noise, of shape (p, p).

    These are all where next to none exceeds it: what the others leave out moves the slopes of the few that do.
    """
    values, vectors = eigen(mixed.matrix)
    noise = spectral_noise(mixed.variance, len(values))
    hidden = values <= max(mixed.floor * (1 + _ROUNDING), noise)
    unknown = vectors[:, hidden | (np.mean(~hidden) < _FEW)]
    return np.asarray(unknown @ unknown.T)
