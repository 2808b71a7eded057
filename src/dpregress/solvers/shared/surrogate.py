r"""Surrogate rows: public or normal rows, transformed to have the private Gram matrix.

Fisher informations and mean predictions at any coefficients are averages over these rows. The private Gram matrix is
released once, and the weights of every Newton step are computed from surrogate rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from dpregress.coordinates import Exposure, Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.models import Family
from dpregress.public import PublicMoments
from dpregress.solvers.shared.magnitudes import Magnitudes

_PSEUDO_ROWS_LOG2 = 12
#: The number of rows over which exposures are distributed, by multiples of the golden ratio.
_EXPOSED_ROWS = 1 << _PSEUDO_ROWS_LOG2
_GOLDEN = (math.sqrt(5) - 1) / 2
#: Smallest eigenvalue of the public rows' weighted Gram matrix that recolouring may stretch.
_SMALLEST = 1e-3
#: Newton steps along the curve of surrogate rows, how often each is halved, and the share of the way that may be left.
_CURVE_STEPS, _HALVINGS, _CURVE_TOLERANCE = 20, 8, 1e-6


@dataclass(frozen=True, eq=False)
class SurrogateRows:
    """Weighted whitened rows ``s x~`` of shape (m, p) and their weights s, of shape (m,).

    ``unseen`` of shape (p, p) is the part of the private Gram matrix that they lack: directions in which public rows do
    not vary, such as levels that none of them has. ``offset`` of shape (m,) is added to predictors.
    """

    x: Matrix
    weight: Vector
    unseen: Matrix
    offset: Vector | float = 0.0

    def predictor(self, coef: Vector) -> Vector:
        """``x~'b`` of the unweighted rows plus the offset, of shape (m,).

        For several columns of coefficients, of shape (m, columns).
        """
        return np.asarray((self.x @ coef).T / self.weight + self.offset).T

    def exposed(self, exposure: Exposure, levels: Magnitudes, slope: Vector) -> SurrogateRows:
        """The rows, each repeated, with exposures of this distribution that are associated with the features.

        Exposures are ordered by ``x~'slope`` plus normal noise, whose variance is the part of the variance of their
        logarithms that the slope does not explain.

        Parameters
        ----------
        exposure : Exposure
        levels : Magnitudes
            The released distribution of private exposures.
        slope : ndarray of shape (p,)
            Slopes of the logarithm of exposures on the features.
        """
        times = max(1, _EXPOSED_ROWS // len(self.x))
        x, weight = self.x.repeat(times, axis=0), self.weight.repeat(times)
        _, spread = levels.logarithm
        explained = x @ slope / weight
        left = math.sqrt(max(spread**2 - float(np.var(explained)), 0.0))
        noise = ndtri((np.arange(len(x)) + 0.5) * _GOLDEN % 1.0)
        rank = np.argsort(np.argsort(explained + left * noise, kind="stable"))
        offset, _ = exposure.offsets(levels.quantiles((rank + 0.5) / len(rank)))
        return SurrogateRows(x, weight, self.unseen, offset)

    def information(self, family: Family, coef: Vector) -> Matrix:
        """``mean s^2 x~ x~' m'^2 / V`` at these coefficients; unseen directions are weighted as the mean row."""
        eta = self.predictor(coef)
        information, inside = family.information(eta), family.inside(eta)
        if inside.any():  # beyond the range of the link it would equal that at its end, which may be huge
            information = np.where(inside, information, np.mean(information[inside]))
        return np.asarray(self._gram(information) + self.unseen * float(np.mean(information)))

    def along_curve(self, family: Family, coef: Vector, system: Matrix, step: Vector) -> Vector:
        """The move that changes the surrogate rows' expected score by ``system @ step``.

        A Newton step follows the tangent of the expected score, which is curved over long distances; surrogate rows
        allow the curve to be followed. If there is no such move, as beyond the ends of a bounded mean, the result is
        the step itself.
        """
        eta = self.predictor(coef)
        factor = family.factor(eta)
        linear = system - self._gram(factor * family.slope(eta))  # floors, penalties, directions unseen
        start = family.mean(eta)

        def change(move: Vector) -> Vector:
            expected = family.mean(self.predictor(coef + move)) - start
            return np.asarray(self.x.T @ (self.weight * factor * expected) / len(self.x) + linear @ move)

        def slope(move: Vector) -> Matrix:
            return np.asarray(self._gram(factor * family.slope(self.predictor(coef + move))) + linear)

        return followed(step, system @ step, change, slope)

    def _gram(self, weights: Vector) -> Matrix:
        return np.asarray((self.x * weights[:, None]).T @ self.x / len(self.x))


def followed(
    step: Vector, goal: Vector, change: Callable[[Vector], Vector], slope: Callable[[Vector], Matrix]
) -> Vector:
    """The move whose ``change`` is the goal, by Newton's method from 0 with step halving; ``step`` if none is found.

    Parameters
    ----------
    step, goal : ndarray of shape (q,)
    change : callable
        The change from a move; 0 for no move.
    slope : callable
        Its derivative, of shape (q, q).
    """
    moved, left = np.zeros_like(step), goal
    for _ in range(_CURVE_STEPS):
        if np.linalg.norm(left) <= _CURVE_TOLERANCE * np.linalg.norm(goal):
            return moved
        way = np.linalg.lstsq(slope(moved), left, rcond=None)[0]
        tried = (moved + share * way for share in 0.5 ** np.arange(_HALVINGS))
        found = next((each for each in tried if np.linalg.norm(goal - change(each)) < np.linalg.norm(left)), None)
        if found is None:
            break
        moved, left = found, goal - change(found)
    return step


def surrogate_rows(space: WhitenedSpace, public: PublicMoments | None, gram: Matrix) -> SurrogateRows:
    """Public rows, transformed to have a private Gram matrix; normal rows if there are no public rows.

    Parameters
    ----------
    space : WhitenedSpace
    public : PublicMoments or None
    gram : ndarray of shape (p, p)
        Positive definite: the repaired ``mean s^2 x~ x~'``.
    """
    if public is None or public.rows is None:
        return _normal(space, gram)
    whitened = space.whiten(public.rows)
    weight = space.weights(whitened)
    rows = whitened * weight[:, None]
    plain = symmetric_power(rows.T @ rows / len(rows), -0.5, smallest=_SMALLEST)
    recoloured = rows @ plain @ symmetric_power(gram, 0.5)
    return SurrogateRows(recoloured, weight, gram - recoloured.T @ recoloured / len(rows))


def _normal(space: WhitenedSpace, gram: Matrix) -> SurrogateRows:
    """Quasi-random normal rows with the mean and covariance that the Gram matrix implies in original units."""
    back = np.linalg.inv(space.whitening)
    second = back @ gram @ back.T
    degrees = len(space.features)
    points = qmc.Sobol(degrees, scramble=False).random_base2(_PSEUDO_ROWS_LOG2)
    normal = ndtri(points * (1 - 2.0**-_PSEUDO_ROWS_LOG2) + 2.0 ** -(_PSEUDO_ROWS_LOG2 + 1))
    normal -= normal.mean(axis=0)  # in high dimensions they are correlated before this
    normal = normal @ symmetric_power(normal.T @ normal / len(normal), -0.5, smallest=_SMALLEST)
    if not space.intercept:
        rows = normal @ np.linalg.cholesky(second).T
        return SurrogateRows(rows @ space.whitening.T, np.ones(len(rows)), np.zeros_like(gram))
    share = float(second[0, 0])  # E s^2: the constant's own second moment
    mean = second[1:, 0] / share
    covariance = second[1:, 1:] / share - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    x = mean + normal @ (vectors * np.sqrt(np.maximum(values, 0))).T
    rows = np.column_stack([np.ones(len(x)), x]) @ space.whitening.T
    return SurrogateRows(rows * np.sqrt(share), np.full(len(x), np.sqrt(share)), np.zeros_like(gram))
