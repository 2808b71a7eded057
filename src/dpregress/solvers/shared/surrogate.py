r"""Surrogate rows: public or normal rows, transformed to have the private Gram matrix.

Fisher informations and mean predictions at any coefficients are averages over these rows. The private Gram matrix is
released once, and the weights of every Newton step are computed from surrogate rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.special import ndtri

from dpregress.coordinates import Exposure, Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.coordinates.quasi_random import quasi_normal
from dpregress.models import Family
from dpregress.public import PublicMoments
from dpregress.public.schema import Schema
from dpregress.solvers.shared.likely_rows import likely_rows
from dpregress.solvers.shared.magnitudes import Magnitudes

_PSEUDO_ROWS_LOG2 = 12
#: The number of rows over which exposures are distributed, by multiples of the golden ratio.
_EXPOSED_ROWS = 1 << _PSEUDO_ROWS_LOG2
_GOLDEN = (math.sqrt(5) - 1) / 2
#: Smallest eigenvalue of the public rows' weighted Gram matrix that recolouring may stretch.
_SMALLEST = 1e-3
#: The least weight of a row of which the unweighted one is taken for like a private row.
_LEAST_WEIGHT = 0.01
#: Predictors with so many times the standard deviation of their privacy noise are not limited at all.
_NOISELESS = 1_000.0
#: Predictors may be so many times further from the median than extremes of normal numbers.
_FARTHER = 1.2
#: Public rows for each column that show how long rows are.
_ENOUGH = 3.0


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

    def reach(self, coef: Vector, covariance: Matrix, privacy: Matrix, n: int) -> tuple[float, float]:
        """How far predictors of n unweighted rows go, without offsets, if m of them go as far as these do.

        That is as much further from the median as the largest of n normal numbers is than the largest of m, and
        somewhat more; not further at all where the predictors, with coefficients of this covariance, are mostly noise;
        and anywhere in the limit where there is no privacy noise.

        Parameters
        ----------
        coef : ndarray of shape (p,)
        covariance, privacy : ndarray of shape (p, p)
            Of the coefficients, and the part that is due to privacy noise.
        n : int
        """
        x = self.x / self.weight[:, None]
        eta, m = x @ coef, max(len(x), 2)
        middle, variance = float(np.median(eta)), float(np.var(eta))
        second = x.T @ x / len(x)
        noise, added = (max(float(np.sum(part * second)), 1e-300) for part in (covariance, privacy))
        further = _FARTHER * math.sqrt(max(math.log(n) / math.log(m), 1.0)) - 1
        further = (1 + variance / (variance + noise) * further) * max(1.0, math.sqrt(variance / added) / _NOISELESS)
        return middle + further * (float(eta.min()) - middle), middle + further * (float(eta.max()) - middle)

    def among(self, which: NDArray[np.bool_]) -> SurrogateRows:
        """Those of the rows."""
        offset = self.offset if isinstance(self.offset, float) else self.offset[which]
        return replace(self, x=self.x[which], weight=self.weight[which], offset=offset)

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

    def information(self, family: Family, coef: Vector, *, sure: bool = False) -> Matrix:
        """``mean s^2 x~ x~' m'^2 / V`` at these coefficients; unseen directions are weighted as the mean row.

        Beyond the range of the link it equals that at its end. That may be huge, and is then taken for the usual one;
        or nothing, if the means there are ``sure`` and not perhaps one step too far, which should not lengthen the
        next.
        """
        eta = self.predictor(coef)
        information, inside = family.information(eta), family.inside(eta)
        if inside.any():
            usual = np.full(len(eta), np.mean(information[inside]))
            information = np.where(inside, information, np.minimum(information, usual) if sure else usual)
        return np.asarray(self._gram(information) + self.unseen * float(np.mean(information)))

    def expected(self, family: Family, coef: Vector, asked: Vector) -> Vector:
        """The mean of ``s x~ m(x~'b) f(x~'a)``: the expected score at b, with the factors f at a, up to a constant."""
        weight = self.weight * family.factor(self.predictor(asked)) * family.mean(self.predictor(coef))
        return np.asarray(self.x.T @ weight / len(self.x))

    def curvature(self, family: Family, coef: Vector, asked: Vector) -> Matrix:
        """Its derivative by b."""
        return self._gram(family.factor(self.predictor(asked)) * family.slope(self.predictor(coef)))

    @property
    def lost(self) -> Matrix:
        """The part of the unweighted rows' second moment that weights take: ``mean (1 - s)^2 x~ x~'``."""
        return self._gram(((1 - np.minimum(self.weight, 1)) / self.weight) ** 2)

    @property
    def shortfall(self) -> Matrix:
        """What the weighted second moment is short of that of the rows: ``mean (1 - s^2) x~ x~'``.

        Of unseen rows nobody knows how long they are: theirs is taken to be half of it.
        """
        return self._gram((1 - np.minimum(self.weight, 1) ** 2) / self.weight**2) + self.unseen

    @property
    def shortening(self) -> Vector:
        """The weights that shorten rows, of which those of rows beyond a hundred radii are not followed further."""
        return np.clip(self.weight, _LEAST_WEIGHT, 1.0)

    @property
    def unweighted(self) -> SurrogateRows:
        """The rows without the weights that shorten them, with the same predictors."""
        return self.within(1 / _LEAST_WEIGHT)

    def within(self, reach: float) -> SurrogateRows:
        """The rows shortened to so many radii in place of one, with the same predictors."""
        shorter = np.maximum(self.shortening, 1 / reach)
        return replace(self, x=self.x / shorter[:, None], weight=self.weight / shorter)

    def whole(self, reach: float) -> SurrogateRows:
        """The rows within a reach, with what they lack: of unseen rows nobody knows how long they are.

        Rows beyond the reach have ``reach^2`` times the second moment of rows shortened to the radius, others the same.
        """
        return replace(self.within(reach), unseen=reach * self.unseen)

    def complete(self, most: float, floor: float) -> bool:
        """Whether the rows tell how long private ones are, of which some may have levels that no row here has.

        They hold most of the Gram matrix, and along no direction is there more than this unseen beyond the floor of
        noise.
        """
        largest, unseen = float(np.linalg.eigvalsh(self.unseen)[-1]), float(np.trace(self.unseen))
        return unseen <= float(np.trace(self.gram)) and largest <= floor + most

    @property
    def gram(self) -> Matrix:
        """``mean x x'`` of the rows as they are weighted."""
        return self._gram(np.ones(len(self.x)))

    @property
    def second(self) -> Matrix:
        """The same with what is unseen."""
        return self.gram + self.unseen

    def _gram(self, weights: Vector) -> Matrix:
        return np.asarray((self.x * weights[:, None]).T @ self.x / len(self.x))


def shows_lengths(public: PublicMoments | None, order: int) -> bool:
    """Whether there are enough public rows to tell how long rows of this many columns are."""
    return public is not None and public.rows is not None and len(public.rows) >= _ENOUGH * order


def likely_alone(space: WhitenedSpace, schema: Schema) -> bool:
    """Whether rows without public ones are likely rows between declared bounds, and not normal ones."""
    return space.intercept and schema.bounds_all(space.features)


def surrogate_rows(
    space: WhitenedSpace, public: PublicMoments | None, gram: Matrix, schema: Schema | None = None
) -> SurrogateRows:
    """Public rows, transformed to have a private Gram matrix; likely or normal rows if there are no public rows.

    Parameters
    ----------
    space : WhitenedSpace
    public : PublicMoments or None
    gram : ndarray of shape (p, p)
        Positive definite: the repaired ``mean s^2 x~ x~'``.
    schema : Schema, optional
        With bounds of all columns, the rows that take the place of public ones are likely rows within them.
    """
    if public is not None and public.rows is not None:
        return _recoloured(space, public.rows, gram)
    if schema is None or not likely_alone(space, schema):
        return _normal(space, gram)
    mean, covariance = _implied(space, gram)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    correlated = _standard_normal(len(mean)) @ symmetric_power(covariance / np.outer(deviation, deviation), 0.5)
    return _recoloured(space, likely_rows(schema, space.features, correlated, mean, deviation**2), gram)


def _recoloured(space: WhitenedSpace, known: Matrix, gram: Matrix) -> SurrogateRows:
    """These rows, transformed to have a private Gram matrix."""
    whitened = space.whiten(known)
    weight = space.weights(whitened)
    rows = whitened * weight[:, None]
    if not space.intercept:
        recoloured = rows @ _recolouring(rows.T @ rows / len(rows), gram)
        return SurrogateRows(recoloured, weight, gram - recoloured.T @ recoloured / len(rows))
    square, mean = float(np.mean(weight**2)), weight @ rows / float(weight @ weight)
    centred = rows - np.outer(weight, mean)
    spread = centred.T @ centred / len(rows)
    wanted = _about_constant(gram, space.constant)
    turned = wanted.across @ _recolouring(wanted.across.T @ spread @ wanted.across, wanted.spread) @ wanted.across.T
    longer = weight * math.sqrt(wanted.square / square)
    recoloured = np.outer(longer, wanted.mean) + centred @ turned
    return SurrogateRows(recoloured, longer, gram - recoloured.T @ recoloured / len(rows))


class _AboutConstant(NamedTuple):
    """A Gram matrix of weighted rows: the mean squared weight, the mean row, and the spread of rows across it."""

    square: float
    mean: Vector
    across: Matrix
    spread: Matrix


def _about_constant(gram: Matrix, constant: Vector) -> _AboutConstant:
    """The parts of a Gram matrix in whitened coordinates, where scales far apart cost no digits."""
    square, across = float(constant @ gram @ constant), null_space(constant[None, :])
    mean = gram @ constant / square
    return _AboutConstant(square, mean, across, across.T @ (gram - square * np.outer(mean, mean)) @ across)


def _recolouring(public: Matrix, wanted: Matrix) -> Matrix:
    """``A`` with ``A' public A = wanted``, but for directions in which public rows hardly vary."""
    return np.asarray(symmetric_power(public, -0.5, smallest=_SMALLEST) @ symmetric_power(wanted, 0.5))


def _standard_normal(degrees: int) -> Matrix:
    """Quasi-random normal rows with mean 0 and the identity as their covariance."""
    normal = quasi_normal(degrees, _PSEUDO_ROWS_LOG2)
    normal -= normal.mean(axis=0)  # in high dimensions they are correlated before this
    return np.asarray(normal @ symmetric_power(normal.T @ normal / len(normal), -0.5, smallest=_SMALLEST))


def _implied(space: WhitenedSpace, gram: Matrix) -> tuple[Vector, Matrix]:
    """The mean and covariance of rows in original units that the Gram matrix implies, with an intercept."""
    back = space.back[1:]
    wanted = _about_constant(gram, space.constant)
    across = back @ wanted.across
    return back @ wanted.mean, np.asarray(across @ (wanted.spread / wanted.square) @ across.T)


def _normal(space: WhitenedSpace, gram: Matrix) -> SurrogateRows:
    """Quasi-random normal rows with the mean and covariance that the Gram matrix implies."""
    normal = _standard_normal(len(space.features))
    if not space.intercept:
        return SurrogateRows(normal @ symmetric_power(gram, 0.5), np.ones(len(normal)), np.zeros_like(gram))
    wanted = _about_constant(gram, space.constant)
    weight = np.full(len(normal), math.sqrt(wanted.square))  # E s^2: the constant's own second moment
    rows = np.outer(weight, wanted.mean) + normal @ symmetric_power(wanted.spread, 0.5) @ wanted.across.T
    return SurrogateRows(rows, weight, np.zeros_like(gram))
