r"""Regressing any column of joined vertical releases on any others, with shrinkage by the known noise.

Correlations are measured with noise of known variance v. They are shrunk toward 0 by the mean of ``t^2 / (t^2 + v)``
over values of t^2, each with the likelihood that it gives to correlations which are normal with this variance: once for
features among each other, and for the response once with features of its own party and once with those of others. Noise
alone therefore predicts nearly the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.coordinates.matrices import eigen, symmetric_power
from dpregress.errors import InvalidInput
from dpregress.releases import Entrywise, Moments
from dpregress.solvers.base import Solution
from dpregress.solvers.shared.repair import floored
from dpregress.solvers.vertical.release import Joint

#: Mean squares of correlations that are tried: so many, down to this share of that with which all explain everything.
_TRIED, _LEAST = 60, 1e-12
#: Smallest eigenvalue of a whitened Gram matrix, and smallest share of a response that is left unexplained.
_SMALLEST = 1e-3


def solve_joint(joint: Joint, target: str, features: Sequence[str]) -> Solution:
    """Least squares of one column on others.

    Parameters
    ----------
    joint : Joint
    target : str
    features : sequence of str
        Without the target.

    Raises
    ------
    InvalidInput
        For names that are not columns.
    """
    moments, cross = regression(joint, target, features)
    shrunken, doubt = _shrunken(moments, cross)
    order = moments.space.order
    norm = 2 * float(np.sqrt(doubt[:order, :order].sum(axis=1).max()))
    system = floored(shrunken[:order, :order], max(min(norm, 1.0), _SMALLEST))
    side = shrunken[:order, -1]
    coef = np.linalg.solve(system, side)
    explained = float(side @ coef)
    coef = coef * min(1.0, math.sqrt((1 - _SMALLEST) / max(explained, _SMALLEST)))
    return Solution(np.asarray(coef), system, moments.space, moments)


def regression(joint: Joint, target: str, features: Sequence[str]) -> tuple[Moments, NDArray[np.bool_]]:
    """Moments of some columns and a response of unit variance, each party's columns white.

    Returns
    -------
    moments : Moments
        For any solver that takes moments with entrywise noise.
    cross : ndarray of shape (p + 1, p + 1)
        Which entries belong to two parties.
    """
    space = joint.moments.space
    unknown = [name for name in (target, *features) if name not in space.features]
    if unknown or target in features or not features or len(set(features)) < len(features):
        problem = f"no column {unknown[0]!r}" if unknown else "give different features, none of them the target"
        raise InvalidInput(f"{problem}: the parties hold {', '.join(space.features)}")
    at = {name: place for place, name in enumerate(space.features)}
    back = space.back
    mean, colour = back[1:, 0], back[1:, 1:]  # x - mean = colour z
    chosen = sorted(features, key=lambda name: (joint.owners[at[name]], at[name]))
    places = [at[name] for name in (*chosen, target)]
    owner, size = np.array([joint.owners[place] for place in places]), np.linalg.norm(colour[places], axis=1)
    unit = colour[places] / size[:, None]
    assert isinstance(joint.moments.noise, Entrywise)
    variance = joint.moments.noise.variance / joint.moments.n**2
    root = _white(unit[:-1], owner[:-1], np.sqrt(np.diag(variance)[1:]))
    basis = np.zeros((len(places) + 1, len(space.features) + 1))
    basis[0, 0] = 1.0
    basis[1:-1, 1:] = root @ unit[:-1]
    basis[-1, 1:] = unit[-1]

    whitening = np.eye(len(places))
    whitening[1:, 1:] = root / size[:-1]
    whitening[1:, 0] = -whitening[1:, 1:] @ mean[places[:-1]]
    response = ResponseScale(target, float(mean[places[-1]]), float(size[-1]))
    regressed = WhitenedSpace(
        tuple(chosen), whitening, math.inf, space.fill[places[:-1]], intercept=True, response=response
    )
    total = basis @ joint.moments.total @ basis.T
    cross = np.zeros_like(total, dtype=bool)
    cross[1:, 1:] = owner[:, None] != owner
    # a row of the basis lies in one party and has norm 1: noise between two parties keeps its scale
    between = variance[np.ix_([0, *(1 + place for place in places)], [0, *(1 + place for place in places)])]
    known = np.where(cross, between, _own_variance(basis, variance))
    noise = Entrywise(joint.moments.n**2 * known)
    return Moments(total, joint.moments.n, noise, joint.moments.events, regressed), cross


def _white(unit: Matrix, owner: NDArray[np.int_], noise: Vector) -> Matrix:
    """The root that whitens each party's features, along the directions in which its noise is independent.

    ``unit`` has the features in whitened coordinates of all columns, of norm 1; ``noise`` is the standard deviation of
    the mean square of each coordinate.
    """
    root = np.zeros((len(unit), len(unit)))
    for party in set(owner.tolist()):
        own = np.flatnonzero(owner == party)
        white = symmetric_power(unit[own] @ unit[own].T, -0.5)
        rows = white @ unit[own]
        root[np.ix_(own, own)] = eigen((rows * noise) @ rows.T)[1].T @ white
    return root


def _own_variance(basis: Matrix, variance: Matrix) -> Matrix:
    """The variance of entries of a party's own moments, from the noise of its coordinates.

    With independent noise of scale ``s d_i d_j`` in entry (i, j), ``a'N b`` has the variance
    ``s^2 ((a'Da) (b'Db) + (a'Db)^2) / 2``.
    """
    slopes = basis[:, 1:]
    along = (slopes * np.sqrt(np.diag(variance)[1:])) @ slopes.T
    found = (np.outer(np.diag(along), np.diag(along)) + along**2) / 2
    found[0] = found[:, 0] = slopes**2 @ variance[0, 1:]
    return np.asarray(found)


def _shrunken(moments: Moments, cross: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
    """The joint mean matrix with shrunken cross entries, and the variance that is left in each entry."""
    assert isinstance(moments.noise, Entrywise)
    value, variance = moments.mean.copy(), moments.noise.variance / moments.n**2
    doubt = np.where(cross, variance, 0.0)
    toward = np.zeros_like(cross)
    toward[1:-1, -1] = toward[-1, 1:-1] = True
    for entries in (cross & ~toward, toward & ~cross, toward & cross):
        if entries.any():
            kept = _kept(value[entries], variance[entries])
            value[entries] *= kept
            doubt[entries] *= kept
    return value, doubt


def _kept(value: Vector, variance: Vector) -> Vector:
    """The share of each correlation that is kept; every entry stands twice."""
    most = 1 / (len(value) / 2)
    prior = most * np.geomspace(_LEAST, 1.0, _TRIED)[:, None]
    total = prior + variance
    log = -0.25 * np.sum(np.log(total) + value**2 / total, axis=1)
    likelihood = np.exp(log - log.max())
    return np.asarray(likelihood @ (prior / total) / likelihood.sum())
