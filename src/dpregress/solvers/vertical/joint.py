r"""Regressing any column of joined vertical releases on any others, with shrinkage by the known noise.

Correlations between parties are measured with noise of known variance v. They are shrunk toward 0 by
``t^2 / (t^2 + v)``, t^2 the mean square that they have beyond the noise: once for features among each
other, and once for the response, where t^2 must stand out by two standard errors of its estimate and features
explain no more than all of it. Noise alone therefore predicts the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.errors import InvalidInput
from dpregress.releases import Entrywise, Moments
from dpregress.solvers.base import Solution
from dpregress.solvers.shared.repair import floored
from dpregress.solvers.vertical.release import Joint

_STANDARD_ERRORS = 2.0
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
    colour = np.linalg.inv(space.slopes[1:])  # x - mean = colour z
    mean = -colour @ space.whitening[1:, 0]
    chosen = sorted(features, key=lambda name: (joint.owners[at[name]], at[name]))
    owner = np.array([joint.owners[at[name]] for name in (*chosen, target)])
    rows = colour[[at[name] for name in chosen]]
    second = np.where(owner[:-1, None] == owner[:-1], rows @ rows.T, 0.0)
    root = symmetric_power(second, -0.5)
    spread = float(np.linalg.norm(colour[at[target]]))
    basis = np.zeros((len(chosen) + 2, len(space.features) + 1))
    basis[0, 0] = 1.0
    basis[1:-1, 1:] = root @ rows
    basis[-1, 1:] = colour[at[target]] / spread

    whitening = np.eye(len(chosen) + 1)
    whitening[1:, 1:] = root
    whitening[1:, 0] = -root @ mean[[at[name] for name in chosen]]
    response = ResponseScale(target, float(mean[at[target]]), spread)
    fill = space.fill[[at[name] for name in chosen]]
    regressed = WhitenedSpace(tuple(chosen), whitening, math.inf, fill, intercept=True, response=response)
    # a row of the basis lies in one party and has norm 1: noise between two parties keeps its scale
    party = np.array([0, *(1 + at[name] for name in (*chosen, target))])
    assert isinstance(joint.moments.noise, Entrywise)
    sigma = joint.moments.noise.sigma[np.ix_(party, party)]
    total = basis @ joint.moments.total @ basis.T
    cross = np.zeros_like(total, dtype=bool)
    cross[1:, 1:] = owner[:, None] != owner
    return Moments(total, joint.moments.n, Entrywise.of_scales(sigma), joint.moments.events, regressed), cross


def _shrunken(moments: Moments, cross: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
    """The joint mean matrix with shrunken cross entries, and the variance that is left in each entry."""
    assert isinstance(moments.noise, Entrywise)
    value, variance = moments.mean.copy(), (moments.noise.sigma / moments.n) ** 2
    doubt = np.where(cross, variance, 0.0)
    toward = np.zeros_like(cross)
    toward[1:-1, -1] = toward[-1, 1:-1] = True
    left = 1.0  # share of the response that features may still explain
    for entries, demanded, most in (
        (cross & ~toward, 0.0, math.inf),
        (toward & ~cross, _STANDARD_ERRORS, left),
        (toward & cross, _STANDARD_ERRORS, left),
    ):
        if entries.any():
            prior = _mean_square(value[entries], variance[entries], demanded)
            prior = min(prior, 2 * most / int(entries.sum()))
            kept = prior / (prior + variance[entries]) if prior > 0 else 0.0
            value[entries] *= kept
            doubt[entries] *= kept
    return value, doubt


def _mean_square(value: Vector, variance: Vector, demanded: float) -> float:
    """The mean square beyond the noise, less some standard errors; every entry stands twice."""
    error = math.sqrt(2 * float(np.sum(variance**2)) / 2) * 2
    return max(float(np.sum(value**2 - variance)) - demanded * error, 0.0) / len(value)
