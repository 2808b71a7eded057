r"""Symmetric matrices as vectors.

``svec`` holds the diagonal, and each off-diagonal entry once, times sqrt 2. The Euclidean norm of the vector is then
the Frobenius norm of the matrix. ``upper`` holds the unscaled upper triangle, which is the layout of the published
algorithms.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@lru_cache(maxsize=64)
def _layout(order: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Vector]:
    row, column = np.triu_indices(order)
    return row, column, np.where(row == column, 1.0, np.sqrt(2.0))


def length(order: int) -> int:
    """Number of free entries of a symmetric matrix."""
    return order * (order + 1) // 2


def svec(matrix: Matrix) -> Vector:
    """The isometric vector of a symmetric matrix.

    Examples
    --------
    >>> svec(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3).tolist()
    [1.0, 2.828, 3.0]
    """
    row, column, scale = _layout(len(matrix))
    return np.asarray(matrix[row, column] * scale)


def outer(x: Matrix) -> Matrix:
    """``svec(v v')`` of every row v, of shape (m, length)."""
    row, column, scale = _layout(x.shape[1])
    return np.asarray(x[:, row] * x[:, column] * scale)


def unsvec(vector: Vector, order: int) -> Matrix:
    """The symmetric matrix of :func:`svec`."""
    _, _, scale = _layout(order)
    return un_upper(vector / scale, order)


def upper(matrix: Matrix) -> Vector:
    """The upper triangle, unscaled."""
    row, column, _ = _layout(len(matrix))
    return np.asarray(matrix[row, column])


def un_upper(vector: Vector, order: int) -> Matrix:
    """The symmetric matrix with this upper triangle."""
    row, column, _ = _layout(order)
    matrix = np.empty((order, order))
    matrix[row, column] = vector
    matrix[column, row] = vector
    return matrix
