r"""How far dishonest users can move the fit.

An admitted report has a public largest norm, so replacing a share f of the reports moves the mean moment T by a vector of
norm at most ``D = 2 f L``, L being the largest norm of an admitted report in units of T. The unshrunk fit is the root of
``F(b) = T - mean k x~ (m(x~'b) - c)``, whose second term has the derivative ``J(b) = mean k m'(x~'b) x~ x~'``.

**Bound.** Let ``H(r)`` be ``mean k min m' x~ x~'``, the smallest slope taken over ``|d'x~| <= r ||x~||_(J^-1)``, that is,
over all roots ``b + d`` with ``d'J d <= r^2``. If ``r lambda >= D lambda_0``, where lambda is the smallest eigenvalue of
``J^(-1/2) H(r) J^(-1/2)`` and lambda_0 the largest singular value of ``J^(-1/2)``, then the root moves by at most r in this
norm. *Proof.* On that ball the map is strongly monotone: ``d'(F(b) - F(b + d)) >= lambda d'J d``. At its boundary the
left side without the change of T is at least ``lambda r^2``, and the change contributes at most ``D lambda_0 r``, so the
field points inwards and has a zero inside (Brouwer); it is the only one by monotonicity. Coefficient j then moves by at
most ``r ||J^(-1/2) w_j||`` with w_j its row of the map to original units.
"""

from __future__ import annotations

import math

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.models.mean_responses import MeanResponse
from dpregress.solvers.local.moment_matching import MomentEquations

#: Radii that are tried, as multiples of the linear answer.
_TRIED = np.geomspace(1.0, 1e3, 200)
#: Points at which the slope of a mean response is compared on an interval; between them it is unimodal.
_POINTS = 33


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
    values, vectors = np.linalg.eigh((slope + slope.T) / 2)
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
    """The smallest slope of a mean response within this distance of each predictor, of shape (m,)."""
    places = centre[:, None] + reach[:, None] * np.linspace(-1.0, 1.0, _POINTS)
    with np.errstate(over="ignore"):
        slopes = response.slope(places.ravel()).reshape(places.shape)
    return np.asarray(np.maximum(slopes.min(axis=1), 0.0))
