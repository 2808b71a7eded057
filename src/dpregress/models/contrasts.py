"""Contrasts of several classes, and class probabilities from linear predictors."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix
from dpregress.coordinates.products import products, row_sums


def contrasts(classes: int) -> Matrix:
    """Q of shape (K, K - 1): orthonormal columns that each sum to 0.

    Parameters
    ----------
    classes : int
        K >= 2.

    References
    ----------
    Helmert's matrix without its constant row.

    Examples
    --------
    >>> q = contrasts(3)
    >>> bool(np.allclose(q.T @ q, np.eye(2))), bool(np.allclose(q.sum(axis=0), 0))
    (True, True)
    """
    k = np.arange(1.0, classes)
    basis = np.triu(np.ones((classes, classes - 1))) / np.sqrt(k * (k + 1))
    basis[np.arange(1, classes), np.arange(classes - 1)] = -np.sqrt(k / (k + 1))
    return basis


def probabilities(predictor: Matrix, basis: Matrix) -> Matrix:
    """Softmax of the class predictors, of shape (m, K), from their contrasts, of shape (m, K - 1)."""
    classes = products(np.clip(predictor, -1e75, 1e75), basis)
    classes -= classes.max(axis=1)[:, None]
    np.exp(classes, out=classes)
    classes /= row_sums(classes)[:, None]
    return classes
