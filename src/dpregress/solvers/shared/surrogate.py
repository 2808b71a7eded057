r"""Rows that stand in for the private ones: public or normal rows with the private Gram matrix.

Fisher informations at any coefficients, and mean predictions, are averages over them: the private Gram
matrix is released once and the weights of every Newton step come from here.
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
#: Rows over which exposures are spread, by multiples of the golden ratio.
_EXPOSED_ROWS = 1 << _PSEUDO_ROWS_LOG2
_GOLDEN = (math.sqrt(5) - 1) / 2
#: Smallest eigenvalue of the public rows' weighted Gram matrix that recolouring may stretch.
_SMALLEST = 1e-3
#: Newton steps along the curve of surrogate rows, how often each is halved, and the share of the way that may be left.
_CURVE_STEPS, _HALVINGS, _CURVE_TOLERANCE = 20, 8, 1e-6


@dataclass(frozen=True, eq=False)
class SurrogateRows:
    """Weighted whitened rows ``s x~`` of shape (m, p) and their weights s, of shape (m,).

    ``unseen`` of shape (p, p) is what they lack of the private Gram matrix: directions in which the public
    rows do not vary, such as levels that none of them has. ``offset`` of shape (m,) is added to predictors.
    """

    x: Matrix
    weight: Vector
    unseen: Matrix
    offset: Vector | float = 0.0

    def predictor(self, coef: Vector) -> Vector:
        """``x~'b`` of the rows before their weights, with the offset, of shape (m,).

        Of several columns of coefficients, of shape (m, columns).
        """
        return np.asarray((self.x @ coef).T / self.weight + self.offset).T

    def exposed(self, exposure: Exposure, levels: Magnitudes, slope: Vector) -> SurrogateRows:
        """The same rows, each many times, with exposures of this distribution that go with the features.

        Exposures have the order of ``x~'slope`` plus normal noise, which has what variance of their logarithms
        the slope leaves.

        Parameters
        ----------
        exposure : Exposure
        levels : Levels
            The released distribution of private exposures.
        slope : ndarray of shape (p,)
            Of the logarithm of exposures on the features.
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
        """``mean s^2 x~ x~' m'^2 / V`` at these coefficients; unseen directions count as the mean row does."""
        eta = self.predictor(coef)
        information, inside = family.information(eta), family.inside(eta)
        if inside.any():  # beyond the link's range it would be as at its end, where it may be endless
            information = np.where(inside, information, np.mean(information[inside]))
        return np.asarray(self._gram(information) + self.unseen * float(np.mean(information)))

    def along_curve(self, family: Family, coef: Vector, system: Matrix, step: Vector) -> Vector:
        """The move that changes the surrogate rows' expected score by ``system @ step``.

        A Newton step follows the tangent of the expected score, which curves over long ways; here it can be
        followed. Where there is no such move, as beyond the ends of a bounded mean, the step itself.
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
    """The move whose ``change`` is the goal, by Newton's method from 0 with halved steps; ``step`` where none is found.

    Parameters
    ----------
    step, goal : ndarray of shape (q,)
    change : callable
        Of a move; 0 for none.
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
    """Public rows recoloured to a private Gram matrix; normal rows where there are no public rows.

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
    normal -= normal.mean(axis=0)  # in many dimensions they are far from uncorrelated before
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
