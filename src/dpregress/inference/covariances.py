r"""Means, correlations and partial correlations from released moments, with errors of sampling and of privacy noise.

The released moment of the whitened rows is ``A + N / n``. In original units, with ``B = W^{-1}`` and rows ``b_0`` (of
the constant) and ``b_i``, the covariance is ``C = H A H' / q`` with ``h_i = b_i - m_i b_0``, ``m_i = b_i A b_0' / q``
the mean and ``q = b_0 A b_0'``. For a statistic f with ``df = tr(G dC)``

    df = tr(K dA),    K = (H'G H - tr(G C) b_0'b_0) / q.

The noise has the same scale s in every entry of svec, so that its part of the variance is ``s^2 |K|_F^2 / n^2``. The
sampling part assumes normal rows: ``2 tr(G C G C) / n``, which for a correlation r is ``(1 - r^2)^2 / n``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import symmetric_power
from dpregress.inference.intervals import normal_reach
from dpregress.releases import Isotropic, Moments

#: The share of a matrix's trace below which an eigenvalue is due to rounding.
_DIGITS = 1e-12
#: The largest correlation that is transformed, short of 1.
_NEARLY_ONE = 1 - 1e-12


@dataclass(frozen=True, eq=False)
class CorrelationTable:
    """Correlations of columns, or partial ones: each given all other columns.

    Parameters
    ----------
    names : tuple of str
    value : ndarray of shape (d, d)
    sampling_error, privacy_error : ndarray of shape (d, d)
        Standard errors due to the sampling of rows, which are taken as normal, and due to privacy noise.
    """

    names: tuple[str, ...]
    value: Matrix
    sampling_error: Matrix
    privacy_error: Matrix

    @property
    def error(self) -> Matrix:
        """Standard errors, of shape (d, d)."""
        return np.hypot(self.sampling_error, self.privacy_error)

    def conf_int(self, *, level: float | None = None, alpha: float | None = None) -> Matrix:
        """Intervals, of shape (d, d, 2), symmetric in Fisher's z (the inverse hyperbolic tangent).

        Parameters
        ----------
        level : float, default=0.95
        alpha : float, optional
            ``1 - level``.
        """
        reach = normal_reach(level, alpha) * self._z_error
        ends = np.tanh(self._z[..., None] + np.stack([-reach, reach], axis=-1))
        ends[np.diag_indices(len(self.names))] = 1.0
        return np.asarray(ends)

    @property
    def pvalues(self) -> Matrix:
        """Two-sided p-values of the hypotheses that a correlation is 0, of shape (d, d); NaN on the diagonal."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = 2 * ndtr(-np.abs(self._z) / self._z_error)
        np.fill_diagonal(found, np.nan)
        return np.asarray(found)

    def to_frame(self) -> Any:
        """A pandas DataFrame of the correlations."""
        import pandas as pd

        return pd.DataFrame(self.value, index=list(self.names), columns=list(self.names))

    @property
    def _z(self) -> Matrix:
        return np.arctanh(np.clip(self.value, -_NEARLY_ONE, _NEARLY_ONE))

    @property
    def _z_error(self) -> Matrix:
        return self.error / np.maximum(1 - self.value**2, 1 - _NEARLY_ONE)


@dataclass(frozen=True, eq=False)
class ReleasedCovariance:
    """Means and covariance of columns, with what the errors of their functions need.

    Parameters
    ----------
    names : tuple of str
    mean : ndarray of shape (d,)
    matrix : ndarray of shape (d, d)
        The covariance of the weighted rows.
    rows : ndarray of shape (d, p)
        H / sqrt(q): the columns about their means in whitened coordinates.
    constant : ndarray of shape (p,)
        ``b_0 / sqrt(q)``.
    noise : float
        Of an entry of svec of the mean moment.
    n : float
        Rows, divided by the largest number that one unit may have.
    """

    names: tuple[str, ...]
    mean: Vector
    matrix: Matrix
    rows: Matrix
    constant: Vector
    noise: float
    n: float

    @classmethod
    def of(cls, moments: Moments, *, rows_of_a_unit: int = 1) -> ReleasedCovariance:
        """From released moments with an intercept; eigenvalues below the noise are raised to it."""
        assert isinstance(moments.noise, Isotropic)
        space = moments.space
        gram = (moments.gram + moments.gram.T) / 2
        floor = max(moments.noise.spectral_norm(space.order) / moments.n, _DIGITS * abs(float(np.trace(gram))), 1e-300)
        gram, turn = symmetric_power(gram, 1.0, smallest=floor), space.back
        square = float(turn[0] @ gram @ turn[0])
        mean = turn[1:] @ gram @ turn[0] / square
        rows = (turn[1:] - np.outer(mean, turn[0])) / math.sqrt(square)
        return cls(
            space.features, np.asarray(mean), np.asarray(rows @ gram @ rows.T), np.asarray(rows),
            turn[0] / math.sqrt(square), moments.noise.sigma / moments.n, moments.n / rows_of_a_unit,
        )  # fmt: skip

    def variances(self, gradient: Matrix) -> tuple[float, float]:
        """Of a statistic with this symmetric gradient by C, of shape (d, d): due to sampling, and due to the noise."""
        sampled, trace = gradient @ self.matrix, float(np.sum(gradient * self.matrix))
        noisy, across = gradient @ (self.rows @ self.rows.T), self.rows @ self.constant
        own = float(self.constant @ self.constant)
        size = float(np.sum(noisy * noisy.T)) - 2 * trace * float(across @ gradient @ across) + (trace * own) ** 2
        return 2 * float(np.sum(sampled * sampled.T)) / self.n, self.noise**2 * max(size, 0.0)

    @property
    def mean_errors(self) -> tuple[Vector, Vector]:
        """Standard errors of the means: due to sampling, and due to the noise."""
        squares, across = np.einsum("ij,ij->i", self.rows, self.rows), self.rows @ self.constant
        noise = (squares * float(self.constant @ self.constant) + across**2) / 2
        return np.sqrt(np.diag(self.matrix) / self.n), self.noise * np.sqrt(noise)

    def correlations(self) -> CorrelationTable:
        """The correlations of all pairs."""
        scale = np.sqrt(np.diag(self.matrix))
        return self._pairs(self.matrix / np.outer(scale, scale), self.rows / scale[:, None], 1.0)

    def partial_correlations(self) -> CorrelationTable:
        """The correlation of each pair given all other columns: ``-P_ij / sqrt(P_ii P_jj)`` with ``P = C^{-1}``."""
        unit = np.sqrt(np.diag(self.matrix))
        precision = np.linalg.inv(self.matrix / np.outer(unit, unit))
        scale = np.sqrt(np.diag(precision))
        turned = precision @ (self.rows / unit[:, None]) / scale[:, None]
        return self._pairs(precision / np.outer(scale, scale), turned, -1.0)

    def _pairs(self, r: Matrix, rows: Matrix, sign: float) -> CorrelationTable:
        """With a and b the rows of a pair, ``K = (ab' + ba')/2 - r/2 (aa' + bb')``, whose squared norm is summed."""
        inner = rows @ rows.T
        squares = np.diag(inner)
        both = np.add.outer(squares, squares)
        size = (np.outer(squares, squares) + inner**2) / 2 - r * inner * both
        size += r**2 / 4 * (np.add.outer(squares**2, squares**2) + 2 * inner**2)
        value = sign * r
        np.fill_diagonal(value, 1.0)
        np.fill_diagonal(size, 0.0)
        sampling = np.maximum(1 - value**2, 0.0) / math.sqrt(self.n)
        return CorrelationTable(self.names, value, sampling, self.noise * np.sqrt(np.maximum(size, 0.0)))

    def keeping(self, places: list[int]) -> ReleasedCovariance:
        """Of some of the columns, in this order."""
        names = tuple(self.names[place] for place in places)
        within = self.matrix[np.ix_(places, places)]
        return ReleasedCovariance(
            names, self.mean[places], within, self.rows[places], self.constant, self.noise, self.n
        )
