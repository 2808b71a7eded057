"""Softmax regression on rows that need no protection: public rows, and non-private fits for comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import definite_inverse
from dpregress.models import contrasts, probabilities
from dpregress.public import PublicMoments
from dpregress.solvers.shared.public_fit import DIGITS

_STEPS = 50
#: Penalties on whitened coefficients, in rows.
_RIDGES = (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
#: Largest change of a class predictor in one step.
LONGEST = 3.0
#: A class that a row was predicted not to have counts no more in the dispersion: one such row would widen everything.
_LARGEST_SQUARE = 30.0


@dataclass(frozen=True, eq=False)
class PublicClasses:
    """Whitened coefficients of contrasts, of shape (p, K - 1), their precision when flat, and the dispersion."""

    coef: Matrix
    precision: Matrix
    dispersion: float


def softmax_information(x: Matrix, mean: Matrix, basis: Matrix) -> Matrix:
    """``sum x x' (x) Q'(diag(pi) - pi pi')Q``, of order p (K - 1).

    Parameters
    ----------
    x : ndarray of shape (m, p)
    mean : ndarray of shape (m, K)
        Probabilities pi.
    basis : ndarray of shape (K, K - 1)
    """
    order, size = x.shape[1], basis.shape[1]
    within = mean @ basis
    found = np.empty((order, size, order, size))
    for i in range(size):
        for j in range(i, size):
            curvature = mean @ (basis[:, i] * basis[:, j]) - within[:, i] * within[:, j]
            found[:, i, :, j] = found[:, j, :, i] = (x * curvature[:, None]).T @ x
    return found.reshape(order * size, order * size)


def class_covariances(mean: Matrix, basis: Matrix) -> Vector:
    """``Q'(diag(pi) - pi pi')Q`` of each row, of shape (m, K - 1, K - 1).

    Parameters
    ----------
    mean : ndarray of shape (m, K)
        Probabilities pi.
    basis : ndarray of shape (K, K - 1)
    """
    within = mean @ basis
    whole = np.einsum("mk,ki,kj->mij", mean, basis, basis, optimize=True)
    return np.asarray(whole - within[:, :, None] * within[:, None, :])


def softmax_scoring(x: Matrix, y: Vector, start: Matrix, *, ridge: float = 0.0) -> Matrix:
    """Coefficients of contrasts that maximise the log-likelihood minus ``ridge / 2 ||B - start||^2``.

    Parameters
    ----------
    x : ndarray of shape (m, p)
    y : ndarray of shape (m,)
        Positions of classes.
    start : ndarray of shape (p, K - 1)
    ridge : float
    """
    basis = contrasts(start.shape[1] + 1)
    taken = basis[y.astype(np.intp)]
    coef = start.copy()
    for _ in range(_STEPS):
        mean = probabilities(x @ coef, basis)
        score = x.T @ (taken - mean @ basis) - ridge * (coef - start)
        information = softmax_information(x, mean, basis) + ridge * np.eye(coef.size)
        step = np.linalg.lstsq(information, score.ravel(), rcond=None)[0].reshape(coef.shape)
        longest = float(np.abs(x @ step @ basis.T).max())
        coef = coef + step * min(1.0, LONGEST / max(longest, 1e-300))
        if longest < 1e-12:
            break
    return coef


def fit_public_classes(public: PublicMoments, space: WhitenedSpace, classes: int) -> PublicClasses:
    """Penalised scoring on labelled public rows, with the penalty chosen by leave-one-out deviance.

    Parameters
    ----------
    public : PublicMoments
        With rows, whose labels are positions of classes.
    space : WhitenedSpace
    classes : int
    """
    assert public.rows is not None
    assert public.labels is not None
    x, labels = space.whiten(public.rows), public.labels
    y = labels.astype(np.intp)
    basis = contrasts(classes)
    start = np.zeros((space.order, classes - 1))
    if space.intercept:
        counts = np.bincount(y, minlength=classes) + 0.5
        start = np.outer(space.constant, basis.T @ np.log(counts / counts.sum()))
    fits = [(ridge, softmax_scoring(x, labels, start, ridge=ridge)) for ridge in _RIDGES]
    ridge, coef = min(fits, key=lambda fit: _left_out(x, labels, fit[1], fit[0]))
    mean = probabilities(x @ coef, basis)
    freedom = max(len(y) - space.order, 1)
    # r'V^{-1}r of a softmax residual is 1 / pi_y - 1, with the mean K - 1
    squares = (1 / np.maximum(mean[np.arange(len(y)), y], 1e-12) - 1) / (classes - 1)
    dispersion = max(float(np.sum(np.minimum(squares, _LARGEST_SQUARE))) / freedom, 1.0)
    information = softmax_information(x, mean, basis) + ridge * np.eye(coef.size)
    return PublicClasses(coef, information * freedom / (dispersion * len(y)), dispersion)


def _left_out(x: Matrix, y: Vector, coef: Matrix, ridge: float) -> float:
    """The leave-one-out mean deviance of public rows, by one scoring step for each."""
    basis = contrasts(coef.shape[1] + 1)
    mean = probabilities(x @ coef, basis)
    information = softmax_information(x, mean, basis) + ridge * np.eye(coef.size)
    covariance = definite_inverse(information, DIGITS).reshape(*coef.shape, *coef.shape)
    leverage = np.einsum("mp,piqj,mq->mij", x, covariance, x, optimize=True)
    curvature = class_covariances(mean, basis)
    taken = y.astype(np.intp)
    residual = basis[taken] - mean @ basis
    left = np.eye(coef.shape[1]) - leverage @ curvature
    # rows that determine their own prediction would make this singular
    steps = np.linalg.solve(left + 0.01 * np.eye(coef.shape[1]), leverage @ residual[:, :, None])[:, :, 0]
    without = probabilities(x @ coef - steps, basis)
    return float(np.mean(-2 * np.log(np.maximum(without[np.arange(len(y)), taken], 1e-10))))
