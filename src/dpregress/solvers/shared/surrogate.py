r"""Rows that stand in for the private ones: public or normal rows with the private Gram matrix.

Fisher informations at any coefficients, and mean predictions, are averages over them: the private Gram
matrix is released once and the weights of every Newton step come from here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space
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

    def expected(self, family: Family, coef: Vector, asked: Vector) -> Vector:
        """The mean of ``s x~ m(x~'b) f(x~'a)``: the expected score at b, with the factors f at a, up to a constant."""
        weight = self.weight * family.factor(self.predictor(asked)) * family.mean(self.predictor(coef))
        return np.asarray(self.x.T @ weight / len(self.x))

    def curvature(self, family: Family, coef: Vector, asked: Vector) -> Matrix:
        """Its derivative by b."""
        return self._gram(family.factor(self.predictor(asked)) * family.slope(self.predictor(coef)))

    def _gram(self, weights: Vector) -> Matrix:
        return np.asarray((self.x * weights[:, None]).T @ self.x / len(self.x))


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
    if not space.intercept:
        recoloured = rows @ _recolouring(rows.T @ rows / len(rows), gram)
        return SurrogateRows(recoloured, weight, gram - recoloured.T @ recoloured / len(rows))
    constant = space.constant
    mean, mean_square, spread = _about_constant(rows.T @ rows / len(rows), constant)
    wanted, wanted_square, wanted_spread = _about_constant(gram, constant)
    across = null_space(constant[None, :])
    turned = across @ _recolouring(across.T @ spread @ across, across.T @ wanted_spread @ across) @ across.T
    longer = weight * math.sqrt(wanted_square / mean_square)
    recoloured = np.outer(longer, wanted) + (rows - np.outer(weight, mean)) @ turned
    return SurrogateRows(recoloured, longer, gram - recoloured.T @ recoloured / len(rows))


def _about_constant(gram: Matrix, constant: Vector) -> tuple[Vector, float, Matrix]:
    """The weighted mean row, the mean squared weight and the spread of rows about it, by their Gram matrix."""
    square = float(constant @ gram @ constant)
    mean = gram @ constant / square
    return mean, square, np.asarray(gram - square * np.outer(mean, mean))


def _recolouring(public: Matrix, wanted: Matrix) -> Matrix:
    """``A`` with ``A' public A = wanted``, but for directions in which public rows hardly vary."""
    return np.asarray(symmetric_power(public, -0.5, smallest=_SMALLEST) @ symmetric_power(wanted, 0.5))


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
