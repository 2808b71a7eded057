r"""How far dishonest users can move the fit.

An admitted report has a public largest norm, so replacing a share f of the reports moves the mean moment T by a
vector of norm at most ``D = 2 f L``, L being the largest norm of an admitted report in units of T. The unshrunk fit
is the root of ``F(b) = T - mean k x~ (m(x~'b) - c)``, whose second term has the derivative ``J(b) = mean k m'(x~'b)
x~ x~'``.

**Bound.** For a radius r, let ``H(r)`` be ``mean k m_r x~ x~'``, where ``m_r`` is the mean over t in (0, 1) of the
smallest slope m' within ``t r ||J^(-1/2) x~||`` of the predictor of a row. Every ``d`` with ``d'J d = r^2`` satisfies
``d'(M(b + d) - M(b)) >= d'H(r) d`` for the second term M of F, because ``|d'x~| <= r ||J^(-1/2) x~||``. Let lambda be
the smallest eigenvalue of ``J^(-1/2) H(r) J^(-1/2)``, and lambda_0 the largest of ``J^(-1/2)``. If ``r lambda >= D
lambda_0``, the root moves by at most r in the norm of J. *Proof.* On the sphere ``d'J d = r^2`` the change of T
contributes at most ``||d|| D <= r lambda_0 D`` to ``d'F``, and M at least ``lambda r^2`` with the other sign, so F
points inwards and has a root inside (Brouwer). M is strictly monotone, so it is the only one. Coefficient j, a linear
function ``w_j`` of the root, then moves by at most ``r ||J^(-1/2) w_j||``.

**The mean of the rows.** Where users also tell ``F = mean k x~``, public rows are moved to that mean. The slopes are
those of the equations over public rows as they are, with mean G, for ``T~ = (T_0, T_s - delta T_0) / kappa``, where
``kappa = F_0 / G_0`` and ``delta = F_s / F_0 - G_s / G_0``: moved rows have the same predictors with another intercept.
T~ is a function of T and F alone. Both move by at most D and ``D / f``, f being the factor of F in messages, so that
with ``r = D / f`` and ``q = F_0 - r > G_0 / 20`` (below that public rows are not moved all the way), delta moves by at
most ``t ||dF||`` with ``t = (F_0 + ||F_s||) / (F_0 q)``, and T~ by at most

    G_0 / q (1 + ||delta|| + t r) ||dT|| + (G_0 / q) (t |T_0| + ||(T_0, T_s - delta T_0)|| / F_0) ||dF||.

A report moves both together, ``||dT||^2 + f^2 ||dF||^2 <= D^2``, so that T~ moves by at most ``D hypot(a, b / f)``
with these two factors a and b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen
from dpregress.models.mean_responses import MeanResponse
from dpregress.releases import CrossMoments, Release, Score
from dpregress.solvers.local.moment_matching import MomentEquations
from dpregress.solvers.local.reading import LEAST_KEPT

#: Radii that are tried, as multiples of the answer of a linear model.
_TRIED = np.geomspace(1.0, 30.0, 60)
#: Steps of the mean over t. Smallest slopes fall with t, so that their sum at the ends of the steps is below the mean.
_STEPS = np.arange(1, 9) / 8


@dataclass(frozen=True, eq=False)
class StayingTarget:
    """T~ for public rows as they are, of shape (p,), and a bound on how far it moves."""

    target: Vector
    change: float


def staying_target(release: Release, rows: Matrix, weights: Vector, change: float) -> StayingTarget | None:
    """T~ and how far it moves if the mean message moves by a vector of this norm; None where no bound is known.

    Parameters
    ----------
    release : Score, CrossMoments or Moments
    rows : ndarray of shape (m, p)
        Public rows.
    weights : ndarray of shape (m,)
    change : float
        The norm D, in units of the mean message.
    """
    if isinstance(release, Score):
        return StayingTarget(release.mean, change)
    if not isinstance(release, CrossMoments) or release.parts.nodes or release.parts.gram:
        return None
    if not release.parts.first or not release.space.intercept:
        return None
    cross, mean = release.columns.T
    here, far = weights @ rows / len(rows), change / release.parts.first
    left = float(mean[0]) - far
    if not left > LEAST_KEPT * float(here[0]):
        return None
    delta = mean[1:] / mean[0] - here[1:] / here[0]
    centred = np.append(cross[0], cross[1:] - delta * cross[0])
    turned = (float(mean[0]) + float(np.linalg.norm(mean[1:]))) / (float(mean[0]) * left)
    by_cross = 1 + float(np.linalg.norm(delta)) + turned * far
    by_mean = turned * abs(float(cross[0])) + float(np.linalg.norm(centred)) / float(mean[0])
    moves = float(here[0]) / left * math.hypot(by_cross, by_mean / release.parts.first) * change
    return StayingTarget(centred * (here[0] / mean[0]), moves)


def moved_at_most(equations: MomentEquations, coef: Vector, change: float, rows: Matrix) -> Vector:
    """By how much coefficients can move if T moves by a vector of this norm; infinite where no bound holds.

    Parameters
    ----------
    equations : MomentEquations
    coef : ndarray of shape (p,)
        The root.
    change : float
        The norm D.
    rows : ndarray of shape (k, p)
        Each original coefficient as a linear function of the root.
    """
    slope = equations.slope(coef)
    values, vectors = eigen((slope + slope.T) / 2)
    if not values[0] > 0:
        return np.full(len(rows), math.inf)
    back = vectors / np.sqrt(values) @ vectors.T
    reach = np.linalg.norm(equations.rows @ back, axis=1)
    centre, largest = equations.rows @ coef, float(1 / math.sqrt(values[0]))
    for factor in _TRIED:
        radius = factor * change * largest
        least = equations.weights * smallest_slope(equations.response, centre, radius * reach)
        inner = back @ ((equations.rows * least[:, None]).T @ equations.rows / len(equations.rows)) @ back
        if radius * float(np.linalg.eigvalsh((inner + inner.T) / 2)[0]) >= change * largest:
            return np.asarray(radius * np.linalg.norm(rows @ back, axis=1))
    return np.full(len(rows), math.inf)


def smallest_slope(response: MeanResponse, centre: Vector, reach: Vector) -> Vector:
    """The mean over t of the smallest slope within ``t reach`` of each predictor, or less; of shape (m,).

    The slopes of the families of a study have one peak or none: on an interval they are smallest at an end.
    """
    away = reach[:, None] * _STEPS
    places = np.concatenate([centre[:, None] - away, centre[:, None] + away], axis=1)
    with np.errstate(over="ignore"):
        below, above = np.split(response.slope(places.ravel()).reshape(places.shape), 2, axis=1)
    return np.asarray(np.maximum(np.minimum(below, above), 0.0).mean(axis=1))
