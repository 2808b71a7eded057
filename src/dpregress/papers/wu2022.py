r"""Wu et al. (2022): releases of several parties for linear regression, with the paper's constants.

Each party adds noise of variance ``4 d_max sigma^2`` to its rows (DGM, BGM) or to a sketch of them (RMGM). For epsilon
up to 1, ``sigma = sqrt(2 log(1.25/delta)) / epsilon``, which is a theorem there; for larger epsilon, sigma is that of
the analytic Gaussian mechanism. Each release is (epsilon, delta)-DP for its own columns only, and each person is in all
releases. The library's own recipe is :class:`~dpregress.VerticalRegression`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpregress.accounting import ApproxDP
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.mechanisms import SeededSampler

#: The number of entries of the sketch matrix that are in memory at once.
_CELLS = 1 << 22


def dgm_ols(
    parties: Sequence[Matrix], *, epsilon: float, delta: float, rng: np.random.Generator, debias: bool = True,
    ridge: float = 1e-5,
) -> Vector:  # fmt: skip
    r"""Algorithm 1, DGM-OLS, and its baseline BGM-OLS: least squares on rows with noise.

    ``w = (X'X/n - 4 d_max sigma^2 I + ridge I)^{-1} X'Y/n`` of the noisy columns; BGM omits the second term.

    Parameters
    ----------
    parties : sequence of ndarray of shape (n, d_j)
        Entries are clipped to [-1, 1]; the last column of the last party is the response.
    epsilon, delta : float
        The budget of each party.
    rng : numpy.random.Generator
    debias : bool, default=True
        False gives BGM-OLS.
    ridge : float, default=1e-5
        Added to the Hessian, as in the paper's experiments.

    Returns
    -------
    coef : ndarray of shape (d,)
        No intercept.
    """
    return np.asarray(
        np.linalg.solve(*dgm_system(parties, epsilon=epsilon, delta=delta, rng=rng, debias=debias, ridge=ridge))
    )


def dgm_system(
    parties: Sequence[Matrix], *, epsilon: float, delta: float, rng: np.random.Generator, debias: bool = True,
    ridge: float = 1e-5,
) -> tuple[Matrix, Vector]:  # fmt: skip
    """The Hessian and the right-hand side that :func:`dgm_ols` solves, with its parameters."""
    blocks, scale = _checked(parties, epsilon, delta, ridge)
    n = len(blocks[0])
    joint = np.hstack([_noisy(block, scale, rng) for block in blocks])
    second = joint.T @ joint / n
    return second[:-1, :-1] + (ridge - scale**2 * debias) * np.eye(len(second) - 1), second[:-1, -1]


def rmgm_ols(
    parties: Sequence[Matrix], *, k: int, epsilon: float, delta: float, rng: np.random.Generator, ridge: float = 1e-5
) -> Vector:
    r"""Algorithm 2, RMGM-OLS: least squares on noisy random sketches ``B D_j / sqrt k``, B of independent signs.

    ``w = (X'X + ridge I)^{-1} X'Y`` of the sketched columns, as in the published listing: not divided by n,
    and with the noise's ``k 4 d_max sigma^2 I`` in the Hessian.

    Parameters
    ----------
    parties : sequence of ndarray of shape (n, d_j)
        As in :func:`dgm_ols`.
    k : int
        The number of rows of the sketch; the paper's synthetic experiments use ``sqrt(n) / sigma``.
    epsilon, delta, rng, ridge
        As in :func:`dgm_ols`.

    Returns
    -------
    coef : ndarray of shape (d,)
        No intercept.
    """
    return np.asarray(np.linalg.solve(*rmgm_system(parties, k=k, epsilon=epsilon, delta=delta, rng=rng, ridge=ridge)))


def rmgm_system(
    parties: Sequence[Matrix], *, k: int, epsilon: float, delta: float, rng: np.random.Generator, ridge: float = 1e-5
) -> tuple[Matrix, Vector]:
    """The Hessian and the right-hand side that :func:`rmgm_ols` solves, with its parameters."""
    blocks, scale = _checked(parties, epsilon, delta, ridge)
    if k < 1:
        raise InvalidInput(f"a sketch has at least one row, not {k}")
    columns = sum(block.shape[1] for block in blocks)
    mixed = np.zeros((k, columns))
    step = max(1, _CELLS // k)
    for start in range(0, len(blocks[0]), step):
        rows = np.hstack([block[start : start + step] for block in blocks])
        signs = 1.0 - 2.0 * np.unpackbits(
            np.frombuffer(rng.bytes(-(-k * len(rows) // 8)), np.uint8), count=k * len(rows)
        )
        mixed += signs.reshape(k, len(rows)) @ rows
    edges = np.cumsum([block.shape[1] for block in blocks])[:-1]
    joint = np.hstack([_noisy(block, scale, rng) for block in np.hsplit(mixed / math.sqrt(k), edges)])
    second = joint.T @ joint
    return second[:-1, :-1] + ridge * np.eye(columns - 1), second[:-1, -1]


def published_sigma(epsilon: float, delta: float) -> float:
    """``sqrt(2 log(1.25/delta)) / epsilon`` up to epsilon 1; the analytic Gaussian mechanism's scale beyond.

    Examples
    --------
    >>> round(published_sigma(1.0, 1e-5), 4), round(published_sigma(2.0, 1e-5), 4)
    (4.8448, 1.9938)
    """
    exact = 1 / ApproxDP(epsilon, delta).gaussian_mu
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon if epsilon <= 1 else exact


def _checked(parties: Sequence[Matrix], epsilon: float, delta: float, ridge: float) -> tuple[list[Matrix], float]:
    """Blocks inside [-1, 1], and the scale ``2 sqrt(d_max) sigma`` of their noise."""
    blocks = [np.asarray(party, dtype=np.float64) for party in parties]
    if len(blocks) < 2 or any(block.ndim != 2 or len(block) != len(blocks[0]) for block in blocks):
        raise InvalidInput("parties must be at least two arrays of shape (n, d_j) with rows of the same people")
    if not (math.isfinite(ridge) and ridge >= 0):
        raise InvalidInput(f"ridge must be finite and not negative, not {ridge}")
    widest = max(block.shape[1] for block in blocks)
    # a cell that is not a number counts as 0; the paper assumes bounded entries, which clipping ensures
    inside = [np.clip(np.nan_to_num(block, nan=0.0), -1.0, 1.0) for block in blocks]
    return inside, 2 * math.sqrt(widest) * published_sigma(epsilon, delta)


def _noisy(block: Matrix, scale: float, rng: np.random.Generator) -> Matrix:
    return SeededSampler(rng).add_gaussian(block.reshape(-1), scale).reshape(block.shape)
