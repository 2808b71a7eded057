"""The published algorithms: their answers without noise, and the scale of what they add."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from dpregress.accounting import GDP
from dpregress.errors import InvalidInput
from dpregress.papers.wu2022 import dgm_ols, published_sigma, rmgm_ols

#: A budget so large that noise is below 1e-6 of anything here.
LAVISH = {"epsilon": 1e8, "delta": 1e-5}


def parties(rng: np.random.Generator, n: int = 400) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    x = rng.uniform(-1, 1, size=(n, 4))
    y = 0.2 * x @ rng.uniform(-1, 1, size=4) + rng.uniform(-0.1, 0.1, size=n)
    return [x[:, :3], np.column_stack([x[:, 3], y])], x, y


@pytest.mark.parametrize("debias", [True, False])
def test_dgm_without_noise(debias: bool, seed: int) -> None:
    """``(X'X/n + ridge I)^{-1} X'y/n``: deterministic up to noise below 1e-6."""
    rng = np.random.default_rng(seed)
    blocks, x, y = parties(rng)
    found = dgm_ols(blocks, rng=rng, debias=debias, ridge=0.3, **LAVISH)
    expected = np.linalg.solve(x.T @ x / len(x) + 0.3 * np.eye(4), x.T @ y / len(x))
    assert np.allclose(found, expected, atol=1e-3)


def test_rmgm_solves_an_exact_system(seed: int) -> None:
    """A response that is exactly linear stays so in any mixture of at least d rows; no noise, no ridge."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(500, 4))
    coef = np.array([0.2, -0.1, 0.05, 0.3])
    found = rmgm_ols([x[:, :2], np.column_stack([x[:, 2:], x @ coef])], k=200, rng=rng, ridge=0.0, **LAVISH)
    assert np.allclose(found, coef, atol=1e-2)


@pytest.mark.parametrize(("widths", "widest"), [((1, 1), 1), ((3, 2), 3)])
def test_scale_of_the_noise(widths: tuple[int, ...], widest: int, seed: int) -> None:
    """Rows of zeros: with a ridge far above the noise the answer is ``N_x'N_y / (n ridge)``.

    Each of its entries is a sum of n products of two independent normals; given N_y it is normal, so that
    ``|w|^2 (n ridge)^2 / (s^2 |N_y|^2)`` is chi-square, and |N_y|^2 is within 10% by its own law. 1e-6 at most.
    """
    rng = np.random.default_rng(seed)
    n, ridge, rounds = 2000, 1e9, 40
    blocks = [np.zeros((n, width)) for width in widths]
    scale = 2 * math.sqrt(widest) * math.sqrt(2 * math.log(1.25e5)) / 0.5
    squares = 0.0
    for _ in range(rounds):
        found = dgm_ols(blocks, epsilon=0.5, delta=1e-5, rng=rng, ridge=ridge)
        squares += float(np.sum((found * n * ridge) ** 2)) / (n * scale**4)
    degrees = rounds * (sum(widths) - 1)
    low, high = chi2.ppf(5e-7 / 2, degrees), chi2.isf(5e-7 / 2, degrees)
    # one |N_y|^2 / n leaves 0.75 .. 1.25 with probability below 1e-14
    assert 0.75 * low < squares < 1.25 * high


def test_calibration() -> None:
    """The printed formula up to 1, where it is a theorem; the analytic mechanism beyond, where it keeps its promise."""
    assert math.isclose(published_sigma(0.3, 1e-5), math.sqrt(2 * math.log(1.25e5)) / 0.3)
    for epsilon in (0.1, 1.0, 1.5, 8.0):
        assert GDP(1 / published_sigma(epsilon, 1e-5)).epsilon(1e-5) <= epsilon * (1 + 1e-9)


def test_cells_beyond_the_bounds_are_cut(seed: int) -> None:
    """A cell of any size counts as one inside [-1, 1], one that is no number as 0."""
    found = []
    for wild in (True, False):
        rng = np.random.default_rng(seed)
        blocks, _, _ = parties(rng)
        blocks[0][:5] = [[np.nan, 7.0, -np.inf]] if wild else [[0.0, 1.0, -1.0]]
        found.append(rmgm_ols(blocks, k=50, epsilon=1.0, delta=1e-5, rng=rng))
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("blocks", "more"),
    [
        ([np.zeros((3, 1))], {}),
        ([np.zeros((3, 1)), np.zeros((4, 1))], {}),
        ([np.zeros((3, 1)), np.zeros((3, 1))], {"k": 0}),
        ([np.zeros((3, 1)), np.zeros((3, 1))], {"ridge": -1.0}),
    ],
)
def test_refusals(blocks: list[np.ndarray], more: dict[str, float], seed: int) -> None:
    parameters = {"k": 3, "epsilon": 1.0, "delta": 1e-5, "rng": np.random.default_rng(seed), **more}
    with pytest.raises(InvalidInput):
        rmgm_ols(blocks, **parameters)
