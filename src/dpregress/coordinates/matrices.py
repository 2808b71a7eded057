"""Small operations on matrices that several packages share."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from dpregress.coordinates.svec import Matrix, Vector

#: The largest condition number of a matrix that floats can invert.
_LARGEST_CONDITION = 1e14


def eigen(matrix: Matrix) -> tuple[Vector, Matrix]:
    """Eigenvalues, increasing, and eigenvectors of a symmetric matrix.

    The fast method fails now and then for no reason in the matrix (``Eigenvalues did not converge``); another answers.

    Examples
    --------
    >>> eigen(np.diag([4.0, 2.0]))[0].tolist()
    [2.0, 4.0]
    """
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:
        if not np.isfinite(matrix).all():
            raise
        values, vectors = eigh(matrix, driver="ev")
    return np.asarray(values), np.asarray(vectors)


def symmetric_power(matrix: Matrix, power: float, *, smallest: float = 0.0) -> Matrix:
    """``M^power`` of a positive definite matrix, after its eigenvalues are raised to at least ``smallest``.

    Examples
    --------
    >>> symmetric_power(np.diag([4.0, 9.0]), -0.5).diagonal().round(3).tolist()
    [0.5, 0.333]
    """
    values, vectors = eigen(matrix)
    return np.asarray((vectors * np.maximum(values, smallest) ** power) @ vectors.T)


def invertible(matrix: Matrix) -> bool:
    """Whether linear equations in the matrix can be solved in floats, whatever the units of its columns."""
    sizes = np.linalg.norm(matrix, axis=0)
    return bool((sizes > 0).all() and np.linalg.cond(matrix / sizes) < _LARGEST_CONDITION)


def sandwich(system: Matrix, meat: Matrix) -> Matrix:
    """``A^{-1} M A^{-1}`` for symmetric A and M.

    Examples
    --------
    >>> sandwich(np.diag([2.0, 4.0]), np.eye(2)).diagonal().tolist()
    [0.25, 0.0625]
    """
    return np.asarray(np.linalg.solve(system, np.linalg.solve(system, meat).T))


def definite_inverse(matrix: Matrix, digits: float) -> Matrix:
    """The inverse of a covariance or a precision, however far apart its eigenvalues are.

    Those below ``digits`` times the trace are rounding and raised to it.

    Examples
    --------
    >>> definite_inverse(np.diag([4.0, 2.0]), 1e-15).diagonal().tolist()
    [0.25, 0.5]
    """
    return symmetric_power(matrix, -1.0, smallest=max(digits * float(np.trace(matrix)), 1e-300))


def moment_of_products(x: Matrix, blocks: Vector) -> Matrix:
    """``sum x x' (x) B`` over rows x with matrices B, of order p k.

    Parameters
    ----------
    x : ndarray of shape (m, p)
    blocks : ndarray of shape (m, k, k)
    """
    order, size = x.shape[1], blocks.shape[1]
    found = np.empty((order, size, order, size))
    for j, k in np.ndindex(size, size):
        found[:, j, :, k] = (x * blocks[:, j, k, None]).T @ x
    return found.reshape(order * size, order * size)
