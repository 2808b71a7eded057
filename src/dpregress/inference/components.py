r"""Principal components of released covariances, with errors of sampling and of privacy noise.

For the correlation matrix R with eigenvalues ``l_k`` and eigenvectors ``v_k``, to first order

    dl_k = v_k' dR v_k,    d(v_k)_i = w_i' dR v_k,  w_i = sum_{m != k} (v_m)_i v_m / (l_k - l_m),

and ``u' dR v = tr(G dC)`` with ``G = sym(D u v' D) - diag(u * R v + R u * v) D^2 / 2``, D the inverse standard
deviations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen
from dpregress.display import ShownInShort
from dpregress.inference.covariances import ReleasedCovariance
from dpregress.inference.intervals import normal_reach

#: Two eigenvalues that differ by fewer standard errors of their difference than this are not separated.
_SEPARATED = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class PrincipalComponents(ShownInShort):
    """Principal components, the largest first.

    Parameters
    ----------
    names : tuple of str
    eigenvalues : ndarray of shape (k,)
    share : ndarray of shape (k,)
        Of the whole variance.
    loadings : ndarray of shape (d, k)
        Eigenvectors of norm 1; the largest entry of each is positive.
    eigenvalue_error : ndarray of shape (k,)
        Standard errors due to sampling, of rows taken as normal, and to privacy.
    loading_error : ndarray of shape (d, k)
    separated : ndarray of bool, of shape (k,)
        Whether the eigenvalue differs from its neighbours by at least two standard errors. Loadings of others are those
        of any turn within the components that are not separated, and their errors are NaN.
    """

    names: tuple[str, ...]
    eigenvalues: Vector
    share: Vector
    loadings: Matrix
    eigenvalue_error: Vector
    loading_error: Matrix
    separated: Vector

    def conf_int(
        self, significance: float | None = None, /, *, level: float | None = None, alpha: float | None = None
    ) -> Matrix:
        """Intervals of the eigenvalues, of shape (k, 2), symmetric in their logarithms.

        Parameters
        ----------
        significance : float, optional
            alpha by position, as in statsmodels; from .5 on it is refused.
        level : float, default=0.95
        alpha : float, optional
            ``1 - level``.
        """
        reach = normal_reach(level, alpha, significance) * self.eigenvalue_error / self.eigenvalues
        return np.asarray(self.eigenvalues[:, None] * np.exp(np.column_stack([-reach, reach])))

    def to_frame(self) -> Any:
        """A pandas DataFrame of the loadings."""
        import pandas as pd

        return pd.DataFrame(
            self.loadings, index=list(self.names), columns=[f"PC{k + 1}" for k in range(len(self.eigenvalues))]
        )


def principal_components(
    covariance: ReleasedCovariance, components: int, *, correlation: bool = True
) -> PrincipalComponents:
    """The first components of the correlation matrix, or of the covariance matrix.

    Parameters
    ----------
    covariance : ReleasedCovariance
    components : int
    correlation : bool
    """
    deviation = np.sqrt(np.diag(covariance.matrix))
    unit = deviation if correlation else np.ones(len(deviation))
    matrix = covariance.matrix / np.outer(unit, unit)
    values, vectors = eigen(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))])

    def error(left: Vector, right: Vector) -> float:
        squares = (left * (matrix @ right) + (matrix @ left) * right) / unit**2 / 2
        parts = covariance.variances(left / unit, right / unit, squares if correlation else 0 * squares)
        return math.sqrt(sum(parts))

    kept = min(components, len(values))
    own = np.array([error(vectors[:, k], vectors[:, k]) for k in range(min(kept + 1, len(values)))])
    gaps = values[: len(own) - 1] - values[1 : len(own)]
    clear = gaps > _SEPARATED * np.hypot(own[:-1], own[1:])
    separated = np.append(True, clear)[:kept] & np.append(clear, True)[:kept]
    spread = np.full((len(values), kept), np.nan)
    for k in np.flatnonzero(separated):
        others = np.arange(len(values)) != k
        turn = vectors[:, others] / (values[k] - values[others]) @ vectors[:, others].T
        spread[:, k] = [error(row, vectors[:, k]) for row in turn]
    return PrincipalComponents(
        covariance.names, values[:kept], values[:kept] / float(values.sum()), vectors[:, :kept], own[:kept], spread,
        separated,
    )  # fmt: skip
