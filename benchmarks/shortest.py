"""``python -m benchmarks.shortest``: the shortest intervals that one noisy gradient can give, over robust ones.

An oracle: the whole budget buys a single gradient, at the population's coefficients, of rows whitened by their own
covariance, clipped at the best of its quantiles. Its root has the covariance
``S^{-1} (M / n + s^2 I) S^{-1}``, with ``s = 2 K / (n mu)``, M the second moment of clipped gradients and S the
information of rows that the clip leaves whole. A fit also pays for the Gram matrix, for sizes of residuals and for the
steps that lead to the coefficients. Designs are those of :mod:`benchmarks.coverage` whose model holds and whose clip
biases little.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.command import answer_help
from benchmarks.coverage import FAMILIES, drawn, truth
from dpregress.coordinates import Matrix, Vector
from dpregress.models import family_of

_DESIGNS = ("linear", "logistic", "poisson")
_ROWS, _SEED = 200_000, 0
_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0)


def whitened(x: Matrix) -> Matrix:
    """Centred rows of unit covariance, with a column of ones."""
    centred = x - x.mean(axis=0)
    root = np.linalg.cholesky(np.linalg.inv(centred.T @ centred / len(x)))
    return np.column_stack([np.ones(len(x)), centred @ root])


def moment(x: Matrix, weight: Vector) -> Matrix:
    """``mean w x x'``."""
    return np.asarray((x * weight[:, None]).T @ x / len(x))


@lru_cache(maxsize=1)
def gradients(design: str) -> tuple[Matrix, Vector, Vector, Vector]:
    """Whitened rows with their residuals and information at the population's coefficients, and norms of gradients."""
    x, y = drawn(design, _ROWS, np.random.default_rng(_SEED))
    coef, family = truth(design, _ROWS), family_of(FAMILIES[design])
    eta, rows = coef[0] + x @ coef[1:], whitened(x)
    residual, information = y - family.mean(eta), family.information(eta)
    return rows, residual, information, np.linalg.norm(rows, axis=1) * np.abs(residual)


def shortest(design: str, n: int, mu: float) -> float:
    """The median length over those of robust intervals without privacy."""
    rows, residual, information, sizes = gradients(design)

    def errors(clip: float, noise: float) -> Vector:
        kept = np.minimum(1.0, clip / np.maximum(sizes, 1e-300))
        inverse = np.linalg.inv(moment(rows, information * (sizes <= clip)))
        inner = moment(rows, (residual * kept) ** 2) / n + noise**2 * np.eye(rows.shape[1])
        return np.asarray(np.sqrt(np.diag(inverse @ inner @ inverse)))

    robust, clips = errors(np.inf, 0.0), np.quantile(sizes, _SHARES).tolist()
    return min(float(np.median(errors(clip, 2 * clip / (n * mu)) / robust)) for clip in clips)


def main() -> None:
    budgets = (0.5, 1.0, 3.0)
    table = Table("design", "n", *(f"mu = {mu:g}" for mu in budgets))
    for design in _DESIGNS:
        for n in (2_000, 10_000, 100_000):
            table.add_row(design, f"{n:,}", *(f"{shortest(design, n, mu):.2f}" for mu in budgets))
    Console().print(table)


if __name__ == "__main__":
    answer_help(__doc__)
    main()
