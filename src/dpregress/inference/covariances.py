r"""Means, correlations and partial correlations from released moments, with errors of sampling and of privacy noise.

The released moment of the whitened rows is ``A + N / n``. In original units, with ``B = W^{-1}`` and rows ``b_0`` (of
the constant) and ``b_i``, the covariance is ``C = H A H' / q`` with ``h_i = b_i - m_i b_0``, ``m_i = b_i A b_0' / q``
the mean and ``q = b_0 A b_0'``. For a statistic f with ``df = tr(G dC)``

    df = tr(K dA),    K = (H'G H - tr(G C) b_0'b_0) / q.

The noise has the same scale s in every entry of svec, so that its part of the variance is ``s^2 |K|_F^2 / n^2``. The
sampling part assumes normal rows: ``2 tr(G C G C) / n``, which for a correlation r is ``(1 - r^2)^2 / n``.

Rows beyond the radius are shrunk, so that A is the second moment of weighted rows, ``E w x~ x~'``. Statistics are those
of weighted rows, and their errors tell how far they may be from those of the rows themselves. With rows that take the
place of private ones, public ones or likely ones, what is missing is ``S = E (1 - w) x~ x~'``. The squared error is

    (tr(G dC))^2 + (k tr(|G| H S H'))^2,

with dC the change of the covariance if S is added to A, and ``tr(|G| H S H')`` the most that rows as long as these move
the statistic, whatever their signs; k is a convention. For a mean the second term is ``k^2 E(1 - w) (H S H')_ii``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import symmetric_power
from dpregress.display import ShownInShort, text_table, to_its_error
from dpregress.inference.intervals import normal_reach
from dpregress.releases import Isotropic, Moments

#: The share of a matrix's trace below which an eigenvalue is due to rounding.
_DIGITS = 1e-12
#: How much of the most that shrunk rows can move a statistic counts as a standard deviation.
_MOVED = 0.5
#: The largest correlation that is transformed, short of 1.
_NEARLY_ONE = 1 - 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class CorrelationTable(ShownInShort):
    """Correlations of columns, or partial ones: each given all other columns.

    Parameters
    ----------
    names : tuple of str
    value : ndarray of shape (d, d)
    sampling_error, privacy_error : ndarray of shape (d, d)
        Standard errors due to the sampling of rows, which are taken as normal, and due to privacy: its noise, and the
        weights of rows beyond the radius.
    """

    names: tuple[str, ...]
    value: Matrix
    sampling_error: Matrix
    privacy_error: Matrix

    @property
    def error(self) -> Matrix:
        """Standard errors, of shape (d, d)."""
        return np.hypot(self.sampling_error, self.privacy_error)

    def conf_int(
        self, significance: float | None = None, /, *, level: float | None = None, alpha: float | None = None
    ) -> Matrix:
        """Intervals, of shape (d, d, 2), symmetric in Fisher's z (the inverse hyperbolic tangent).

        Parameters
        ----------
        significance : float, optional
            alpha by position, as in statsmodels; from .5 on it is refused.
        level : float, default=0.95
        alpha : float, optional
            ``1 - level``.
        """
        reach = normal_reach(level, alpha, significance) * self._z_error
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

    def __str__(self) -> str:
        pairs = zip(self.names, self.value.tolist(), self.error.tolist(), strict=True)
        rows = [[name, *map(to_its_error, values, errors)] for name, values, errors in pairs]
        return text_table(("", *self.names), rows)

    @property
    def _z(self) -> Matrix:
        return np.arctanh(np.clip(self.value, -_NEARLY_ONE, _NEARLY_ONE))

    @property
    def _z_error(self) -> Matrix:
        return self.error / np.maximum(1 - self.value**2, 1 - _NEARLY_ONE)


@dataclass(frozen=True, eq=False, repr=False)
class LostToWeights(ShownInShort):
    """What row weights w take of means and covariance.

    Parameters
    ----------
    share : float
        ``E(1 - w)``, of rows.
    second : ndarray of shape (d, d)
        ``H S H'``: that of their second moment about the mean.
    moved : ndarray of shape (d,)
        How far the mean moves if it is added.
    change : ndarray of shape (d, d)
        How far the covariance does.
    """

    share: float
    second: Matrix
    moved: Vector
    change: Matrix

    def keeping(self, places: list[int]) -> LostToWeights:
        """Of some of the columns, in this order."""
        within = np.ix_(places, places)
        return LostToWeights(self.share, self.second[within], self.moved[places], self.change[within])


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedCovariance(ShownInShort):
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
    shrunk : LostToWeights
        What row weights take.
    """

    names: tuple[str, ...]
    mean: Vector
    matrix: Matrix
    rows: Matrix
    constant: Vector
    noise: float
    n: float
    shrunk: LostToWeights

    @classmethod
    def of(cls, moments: Moments, shortfall: Matrix | None = None, *, rows_of_a_unit: int = 1) -> ReleasedCovariance:
        """From released moments with an intercept; eigenvalues below the noise are raised to it.

        Parameters
        ----------
        moments : Moments
        shortfall : ndarray of shape (p, p), optional
            S; default: no row was shrunk.
        rows_of_a_unit : int
        """
        assert isinstance(moments.noise, Isotropic)
        space = moments.space
        gram = (moments.gram + moments.gram.T) / 2
        floor = max(moments.noise.spectral_norm(space.order) / moments.n, _DIGITS * abs(float(np.trace(gram))), 1e-300)
        gram, turn = symmetric_power(gram, 1.0, smallest=floor), space.back
        missing = np.zeros_like(gram) if shortfall is None else shortfall
        mean, rows, square = _about_mean(turn, gram)
        matrix = rows @ gram @ rows.T / square
        other, about, whole = _about_mean(turn, gram + missing)
        shrunk = LostToWeights(
            float(turn[0] @ missing @ turn[0]), rows @ missing @ rows.T, other - mean,
            about @ (gram + missing) @ about.T / whole - matrix,
        )  # fmt: skip
        return cls(
            space.features, mean, matrix, rows / math.sqrt(square), turn[0] / math.sqrt(square),
            moments.noise.sigma / moments.n, moments.n / rows_of_a_unit, shrunk,
        )  # fmt: skip

    def variances(self, left: Vector, right: Vector, squares: Vector) -> tuple[float, float]:
        """Of a statistic with the gradient ``sym(left right') - diag(squares)`` by C: due to sampling and to privacy.

        Parameters
        ----------
        left, right, squares : ndarray of shape (d,)
        """
        gradient = (np.outer(left, right) + np.outer(right, left)) / 2 - np.diag(squares)
        sampled, trace = gradient @ self.matrix, float(np.sum(gradient * self.matrix))
        noisy, across = gradient @ (self.rows @ self.rows.T), self.rows @ self.constant
        own = float(self.constant @ self.constant)
        size = float(np.sum(noisy * noisy.T)) - 2 * trace * float(across @ gradient @ across) + (trace * own) ** 2
        missing = self.shrunk.second
        most = math.sqrt(max(float(left @ missing @ left) * float(right @ missing @ right), 0.0))
        most += float(np.abs(squares) @ np.diag(missing))
        moved = float(np.sum(gradient * self.shrunk.change)) ** 2 + (_MOVED * most) ** 2
        return 2 * float(np.sum(sampled * sampled.T)) / self.n, self.noise**2 * max(size, 0.0) + moved

    @property
    def mean_errors(self) -> tuple[Vector, Vector]:
        """Standard errors of the means: due to sampling, and due to privacy."""
        squares, across = np.einsum("ij,ij->i", self.rows, self.rows), self.rows @ self.constant
        noise = self.noise**2 * (squares * float(self.constant @ self.constant) + across**2) / 2
        moved = self.shrunk.moved**2 + _MOVED**2 * self.shrunk.share * np.diag(self.shrunk.second)
        return np.sqrt(np.diag(self.matrix) / self.n), np.sqrt(noise + np.maximum(moved, 0.0))

    def correlations(self) -> CorrelationTable:
        """The correlations of all pairs."""
        value, turn = _correlations(self.matrix)
        return self._pairs(value, turn, 1.0, _correlations(self.matrix + self.shrunk.change)[0])

    def partial_correlations(self) -> CorrelationTable:
        """The correlation of each pair given all other columns: ``-P_ij / sqrt(P_ii P_jj)`` with ``P = C^{-1}``."""
        value, turn = _partial_correlations(self.matrix)
        return self._pairs(value, turn, -1.0, _partial_correlations(self.matrix + self.shrunk.change)[0])

    def _pairs(self, r: Matrix, turn: Matrix, sign: float, whole: Matrix) -> CorrelationTable:
        """With a and b the turned rows of a pair, ``K = (ab' + ba')/2 - r/2 (aa' + bb')``, and its squared norm.

        The eigenvalues of its quadratic form are ``(1 - r)/2`` along ``a + b`` and ``-(1 + r)/2`` along ``a - b``.
        """
        rows = turn @ self.rows
        inner = rows @ rows.T
        squares = np.diag(inner)
        both = np.add.outer(squares, squares)
        size = (np.outer(squares, squares) + inner**2) / 2 - r * inner * both
        size += r**2 / 4 * (np.add.outer(squares**2, squares**2) + 2 * inner**2)
        missing = turn @ self.shrunk.second @ turn.T
        most = np.add.outer(np.diag(missing), np.diag(missing)) / 2 - r * missing
        privacy = self.noise**2 * np.maximum(size, 0.0) + (whole - r) ** 2 + (_MOVED * most) ** 2
        value = sign * r
        np.fill_diagonal(value, 1.0)
        np.fill_diagonal(privacy, 0.0)
        sampling = np.maximum(1 - value**2, 0.0) / math.sqrt(self.n)
        return CorrelationTable(self.names, value, sampling, np.sqrt(privacy))

    def keeping(self, places: list[int]) -> ReleasedCovariance:
        """Of some of the columns, in this order."""
        return replace(
            self,
            names=tuple(self.names[place] for place in places),
            mean=self.mean[places],
            matrix=self.matrix[np.ix_(places, places)],
            rows=self.rows[places],
            shrunk=self.shrunk.keeping(places),
        )


def _about_mean(turn: Matrix, gram: Matrix) -> tuple[Vector, Matrix, float]:
    """The means m, the rows H and q of a second moment, with ``turn`` the inverse of the whitening."""
    square = float(turn[0] @ gram @ turn[0])
    mean = np.asarray(turn[1:] @ gram @ turn[0] / square)
    return mean, np.asarray(turn[1:] - np.outer(mean, turn[0])), square


def _correlations(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """Those of a covariance, and the matrix that makes columns of variance 1 of its columns."""
    scale = np.sqrt(np.diag(matrix))
    return matrix / np.outer(scale, scale), np.diag(1 / scale)


def _partial_correlations(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """The negative partial ones, and the matrix that makes residuals given all other columns, of variance 1."""
    unit = np.sqrt(np.diag(matrix))
    precision = np.linalg.inv(matrix / np.outer(unit, unit))
    scale = np.sqrt(np.diag(precision))
    return precision / np.outer(scale, scale), precision / np.outer(scale, unit)
