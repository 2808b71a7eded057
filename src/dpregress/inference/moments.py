r"""Linear estimates for inference from released joint moments, without a penalty and without shrinkage.

The released moments are ``M + N / n`` with a noise matrix N of known law. The estimate is ``b = A^{-1} c`` with the
released Gram matrix A. To second order, noise moves it by

    A^{-1} N g / n - A^{-1} N A^{-1} N g / n^2,    g = (b, -1/u).

The covariance of the first term is :func:`~dpregress.inference.linear.privacy_covariance`; that of the second, with
independent copies of the two N, is added, and tells which coefficients the noise leaves identified.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen, sandwich, symmetric_power
from dpregress.inference.estimates import original_estimates
from dpregress.inference.linear import privacy_covariance
from dpregress.releases import Estimates, Moments, NoiseLaw

#: A coefficient is not identified if its second-order variance is above this share of the first-order one.
_SECOND_ORDER = 1 / 16
#: The second-order variance is counted this many times, for the orders beyond it and for noise in the plug-in values.
_BEYOND = 2.0
#: The standard deviation of what a model misses of the mean response, in those of the residuals: a convention.
_MISSED = 0.1
#: How much of the most that shrunk rows can move a coefficient, whatever the signs of their residuals, counts as a
#: standard deviation: a convention.
_HIDDEN = 0.1
#: The share of a matrix's trace below which an eigenvalue is due to rounding.
_DIGITS = 1e-12


@np.errstate(all="ignore")  # whatever was released, there is an answer
def moment_estimates(
    moments: Moments, *, lost: Matrix | None = None, shortfall: Matrix | None = None, rows_of_a_unit: int = 1
) -> Estimates:
    """Least squares from released moments, with homoscedastic sampling errors and the known noise.

    Parameters
    ----------
    moments : Moments
        With a response.
    lost : ndarray of shape (p, p), optional
        The part of ``mean x~ x~'`` that row weights take.
    shortfall : ndarray of shape (p + 1, p + 1), optional
        What the moments fall short of those of unweighted rows, in the coordinates of the features and the response:
        how far the estimate may be from that of unweighted rows is added to the error.
    rows_of_a_unit : int
        The k rows of a unit may all have the same error: the sampling covariance is k times that of independent rows.
    """
    space, n = moments.space, moments.n
    assert space.response is not None
    gram = (moments.gram + moments.gram.T) / 2
    values, vectors = eigen(gram)
    floor = max(moments.noise.spectral_norm(space.order) / n, _DIGITS * float(np.abs(values).sum()), 1e-300)
    system = symmetric_power(gram, 1.0, smallest=floor)
    coef = np.asarray(np.linalg.solve(system, moments.cross), dtype=np.float64)
    first = privacy_covariance(moments, coef, system)
    second = sandwich(system, product_of(moments.noise, first, len(coef) + 1) / n**2)
    squares, df = residual_variance(moments, coef, first)
    inverse = sandwich(system, system)
    moved = np.zeros_like(gram) if shortfall is None else _moved(coef, system, shortfall)
    unknown = vectors[:, values <= floor]
    found = original_estimates(
        space, coef, n=n, sampling=rows_of_a_unit * squares / n * inverse, privacy=first + _BEYOND * second + moved,
        unidentified=unknown @ unknown.T,
        shift=None if lost is None else _MISSED**2 * squares * sandwich(system, lost),
        df=df, dispersion=squares * space.response.scale**2 / _weight(moments), gram=gram,
    )  # fmt: skip
    turn = space.whitening.T
    beyond, near = (np.einsum("ki,ij,kj->k", turn, part, turn) for part in (second, first))
    return replace(found, identified=found.identified & (beyond <= _SECOND_ORDER * near))


def product_of(noise: NoiseLaw, covariance: Matrix, order: int) -> Matrix:
    """The covariance of ``N d``, d independent of N with this covariance and 0 for the response."""
    if not np.isfinite(covariance).all():
        return np.full_like(covariance, np.inf)
    values, vectors = eigen(covariance)
    found = np.zeros_like(covariance)
    for value, vector in zip(np.maximum(values, 0), vectors.T, strict=True):
        padded = np.append(vector, np.zeros(order - len(vector)))
        found += value * noise.product_covariance(padded)[: len(vector), : len(vector)]
    return found


def residual_variance(moments: Moments, coef: Vector, privacy: Matrix) -> tuple[float, float]:
    """The mean squared residual and its degrees of freedom.

    Its minimum over coefficients lies below its value at the true ones by ``tr(A V)`` in the mean, which is added. The
    noise of ``g'N g`` has a known variance: the square is at least one of its standard deviations.
    """
    assert moments.space.response is not None
    joint = np.append(coef, -1 / moments.space.response.cross)
    error = math.sqrt(max(float(joint @ moments.noise.product_covariance(joint) @ joint), 0.0)) / moments.n
    left = float(moments.response_second - 2 * coef @ moments.cross + coef @ moments.gram @ coef)
    square = max(left + float(np.sum(moments.gram * privacy)), error, 1e-300)
    return square, math.inf if error == 0 else 2 * (square / error) ** 2


def _moved(coef: Vector, system: Matrix, shortfall: Matrix) -> Matrix:
    """The squared distance to the coefficients with the shortfall, and what signs hide of it (:data:`_HIDDEN`)."""
    within = shortfall[:-1, :-1]
    distance = np.linalg.solve(system + within, shortfall[:-1, -1] - within @ coef)
    residual = np.append(-coef, 1.0)
    most = float(residual @ shortfall @ residual) * sandwich(system, within)
    return np.asarray(np.outer(distance, distance) + _HIDDEN**2 * most)


def _weight(moments: Moments) -> float:
    """The mean squared weight of a row: the constant's second moment; 1 without an intercept."""
    if not moments.space.intercept:
        return 1.0
    constant = moments.space.constant
    return min(max(float(constant @ moments.gram @ constant), _MISSED), 1.0)
