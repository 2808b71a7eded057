"""Ridge regressions of labelled public rows: the prior of a private linear fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen, symmetric_power

#: The share of the largest eigenvalue below which public rows are taken not to vary in a direction.
_UNSEEN = 1e-9
#: The smallest relative size of residuals: after a perfect public fit, private residuals are still not 0.
_SMALLEST = 1e-4
#: The share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-15
#: Penalties on slopes of standardised columns, in rows.
_RIDGES = 10.0 ** np.arange(-2, 4.1, 0.5)
#: Parts of the public rows that are left out in turn.
_FOLDS = 5
#: Standard errors by which such a fit must predict better than that to whitened slopes.
_SURE = 1.0
#: The power of the share that scores tell with which the whitened fit counts beside the one that predicts best.
_POWER = 10


@dataclass(frozen=True, eq=False)
class RidgePrior:
    """A public ridge fit in whitened coordinates.

    Attributes
    ----------
    coef : ndarray of shape (p,)
    covariance : ndarray of shape (p, p)
        The covariance of the coefficients that the same fit to the whole population would give.
    dispersion : float
        Residual variance.
    residuals : ndarray of shape (m,)
        Leave-one-out residuals.
    unseen : bool
        Whether there are directions in which the rows do not vary.
    """

    coef: Vector
    covariance: Matrix
    dispersion: float
    residuals: Vector
    unseen: bool = False

    def told(self, noise: float) -> float:
        """The mean share of its errors that a score tells whose noise has this variance in each direction."""
        variances = np.linalg.eigvalsh(self.covariance)
        return float(np.mean(variances / (variances + noise)))

    def beside(self, other: RidgePrior, told: float) -> RidgePrior:
        """Between the other fit, where scores tell nothing, and this one, where they tell all."""
        share = told**_POWER
        return replace(
            self,
            coef=share * self.coef + (1 - share) * other.coef,
            covariance=share * self.covariance + (1 - share) * other.covariance,
            dispersion=share * self.dispersion + (1 - share) * other.dispersion,
            residuals=share * self.residuals + (1 - share) * other.residuals,
        )


def ridge_prior(x: Matrix, y: Vector, constant: Vector | None, penalty: Matrix) -> RidgePrior:
    r"""Ridge regression of public labels, with the empirical Bayes penalty ``lambda = d s^2 / signal``.

    In directions without variation, a slope may be large enough to explain the whole variance of the response.

    Parameters
    ----------
    x : ndarray of shape (m, p)
        Whitened public rows.
    y : ndarray of shape (m,)
    constant : ndarray of shape (p,) or None
        The direction that is not penalised.
    penalty : ndarray of shape (p, p)
        The penalty that the user asked for, per row.
    """
    rows = _LabelledRows(x, y, constant, penalty)
    return rows.fit(rows.whitened)


def best_prior(x: Matrix, y: Vector, constant: Vector | None, penalty: Matrix, standardised: Matrix) -> RidgePrior:
    """The ridge regression whose predictions of public rows that were left out are best.

    The candidates are that of :func:`ridge_prior` and penalties on slopes of standardised columns. Whitening magnifies
    directions in which columns hardly vary; if it does so by chance, or if a few far rows decide, fits that are
    penalised there predict better.

    Parameters
    ----------
    x, y, constant, penalty
        As in :func:`ridge_prior`.
    standardised : ndarray of shape (p, p)
        The penalty of one row on slopes of standardised columns.
    """
    rows = _LabelledRows(x, y, constant, penalty)
    shape = rows.slopes @ standardised @ rows.slopes
    usual = rows.left_out(rows.whitened)
    found = [(ridge * shape, rows.left_out(ridge * shape)) for ridge in _RIDGES]
    other, errors = min(found, key=lambda each: float(each[1].sum()))
    better = (usual - errors) / max(float(usual.max()), 1e-300)  # squared once more below
    sure = float(better.sum()) > _SURE * math.sqrt(len(y)) * float(better.std())
    return rows.fit(other if sure else rows.whitened)


@dataclass(frozen=True, eq=False)
class _LabelledRows:
    """Whitened public rows with responses, the direction that is not penalised, and the penalty that was asked for."""

    x: Matrix
    y: Vector
    constant: Vector | None
    penalty: Matrix

    @cached_property
    def slopes(self) -> Matrix:
        """The projection on what is penalised."""
        along = np.eye(self.x.shape[1])
        if self.constant is not None:
            unit = self.constant / np.linalg.norm(self.constant)
            along -= np.outer(unit, unit)
        return np.asarray(along)

    @cached_property
    def _least(self) -> float:
        """The least variance of residuals."""
        return (_SMALLEST * (float(np.std(self.y)) or abs(float(np.mean(self.y))) or 1.0)) ** 2

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """Those of the residuals of least squares, and of what slopes explain."""
        m, p = self.x.shape
        d = p - (self.constant is not None)
        plain = np.linalg.lstsq(self.x, self.y, rcond=None)[0]
        variance = max(float(np.sum((self.y - self.x @ plain) ** 2)) / max(m - p, 1), self._least)
        centred = self.y if self.constant is None else self.y - self.y.mean()
        return variance, max(float(np.mean(centred**2)) - variance, max(d, 1) * variance / m)

    @property
    def whitened(self) -> Matrix:
        """The empirical Bayes penalty on whitened slopes."""
        variance, signal = self._variances
        return np.asarray((self.x.shape[1] - (self.constant is not None)) * variance / signal * self.slopes)

    def left_out(self, shrinkage: Matrix) -> Vector:
        """The squared errors of rows that were left out a fifth at a time, by fits to the others, of shape (m,)."""
        fold, errors = np.arange(len(self.y)) % _FOLDS, np.empty(len(self.y))
        for turn in range(_FOLDS):
            inner, outer = fold != turn, fold == turn
            x, penalty = self.x[inner], shrinkage + int(inner.sum()) * self.penalty
            coef = _solved(x.T @ x + penalty, x.T @ self.y[inner])
            errors[outer] = (self.y[outer] - self.x[outer] @ coef) ** 2
        return errors

    def fit(self, shrinkage: Matrix) -> RidgePrior:
        """The fit with this penalty on slopes, and what is known about its errors."""
        x, y, (m, p) = self.x, self.y, self.x.shape
        second = x.T @ x
        values, vectors = eigen(second)
        unseen = vectors[:, values <= _UNSEEN * values[-1]]
        system = second + shrinkage + m * self.penalty
        inverse = symmetric_power(system, -1.0, smallest=_DIGITS * float(np.trace(system)))
        coef = np.linalg.lstsq(system, x.T @ y, rcond=None)[0]
        leverage = np.minimum(np.einsum("ij,ij->i", x @ inverse, x), 1.0)
        residuals = (y - x @ coef) / np.maximum(1 - leverage, 1e-3)
        dispersion = max(float(np.mean(residuals**2)) * (1 - p / m), self._least)
        influence = x @ inverse * (residuals * np.sqrt(1 - leverage))[:, None]
        covariance = _misfitted(m / max(m - p, 1) * dispersion * inverse, influence)
        covariance += sum(self._variances) * unseen @ unseen.T
        small = np.abs(residuals) < math.sqrt(self._least)
        residuals = np.where(small, math.sqrt(self._least), residuals)
        return RidgePrior(coef, np.asarray(covariance), dispersion, residuals, bool(unseen.size))


def _solved(system: Matrix, right: Vector) -> Vector:
    """The solution of a system, the shortest one where it is singular; most are not, and are solved much faster."""
    try:
        return np.asarray(np.linalg.solve(system, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0])


def _misfitted(model: Matrix, influence: Matrix) -> Matrix:
    """A covariance of coefficients, widened where the influences of rows vary by more than it allows.

    Where a model is not exact, a few long rows with large residuals may determine a coefficient. Eigenvalues of the
    influences' covariance that those of normal rows reach widen nothing: they deviate twice as far as the law of
    Marchenko and Pastur says of a second moment, since influences are products.

    Parameters
    ----------
    model : ndarray of shape (p, p)
    influence : ndarray of shape (m, p)
        Of each row, with residuals that have the variance of errors (HC2).
    """
    m, p = influence.shape
    tiny = _DIGITS * float(np.trace(model))
    root, back = symmetric_power(model, 0.5), symmetric_power(model, -0.5, smallest=tiny)
    values, vectors = eigen(back @ (influence.T @ influence) @ back)
    widened = np.maximum(values / (1 + 2 * math.sqrt(p / m)) ** 2, 1.0)
    return np.asarray(root @ (vectors * widened) @ vectors.T @ root)
