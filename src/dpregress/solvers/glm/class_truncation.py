"""What row weights and a clip take from the scores of several classes, by surrogate rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import moment_of_products
from dpregress.solvers.glm.softmax_fit import softmax_information
from dpregress.solvers.shared.surrogate import SurrogateRows
from dpregress.solvers.shared.truncation import Truncation


@dataclass(frozen=True, eq=False)
class ClassTruncation(Truncation):
    """Of the class that each surrogate row may have.

    Attributes
    ----------
    rows : SurrogateRows
    mean : ndarray of shape (m, K)
        Probabilities of the classes.
    basis : ndarray of shape (K, K - 1)
        Contrasts.
    clip : float
        On the norm of weighted residuals.
    """

    rows: SurrogateRows
    mean: Matrix
    basis: Matrix
    clip: float

    @cached_property
    def _residual(self) -> Vector:
        """Weighted residuals of each row if it is of each class, of shape (m, K, K - 1)."""
        within = self.mean @ self.basis
        return np.asarray(self.rows.weight[:, None, None] * (self.basis - within[:, None, :]))

    @cached_property
    def _taken(self) -> Vector:
        """With what the weighted row is multiplied in what is taken, of the same shape."""
        size = np.maximum(np.linalg.norm(self._residual, axis=2, keepdims=True), 1e-300)
        whole = 1 / self.rows.shortening[:, None, None] ** 2
        return np.asarray(self._residual * (whole - np.minimum(1.0, self.clip / size)))

    @cached_property
    def _length(self) -> Matrix:
        """Norms of what is taken, of shape (m, K)."""
        lengths = np.linalg.norm(self.rows.x, axis=1)[:, None] * np.linalg.norm(self._taken, axis=2)
        return np.asarray(np.maximum(lengths, 1e-300))

    def lost(self, bound: float) -> Matrix:
        hit = (self._length > bound).any(axis=1)
        length = self._length[hit]
        beyond = np.maximum(length - bound, 0.0) / length
        taken = self._taken[hit] * beyond[:, :, None]
        squares = np.einsum("mk,mki,mkj->mij", self.mean[hit], taken, taken, optimize=True)
        return np.asarray(moment_of_products(self.rows.x[hit], squares) / len(self.mean))

    @cached_property
    def scores(self) -> Matrix:
        whole = self.rows.unweighted.x
        return softmax_information(whole, self.mean, self.basis) / len(whole)

    @property
    def spread(self) -> float:
        squares = np.einsum("mk,mki,mki->", self.mean, self._residual, self._residual, optimize=True)
        return float(np.sqrt(squares / (len(self.mean) * self.basis.shape[1])))
