"""Wu et al. (2022) against a reference written from the paper's listings, draw for draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpregress.papers import wu2022
from tests.reference import wu2022 as naive

WIDTHS = (2, 1, 3)


class Recording(np.random.Generator):
    """A generator that keeps every normal draw with its scale, and all bytes."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self.drawn: list[tuple[float, Any]] = []
        self.given: list[bytes] = []

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        draw = self.standard_normal(size)
        self.drawn.append((float(scale), draw))
        return loc + scale * draw

    def bytes(self, length: int) -> bytes:
        self.given.append(super().bytes(length))
        return self.given[-1]

    def signs(self, k: int, n: int, step: int) -> np.ndarray:
        """B, from the bytes that were handed out, ``step`` columns at a time."""
        blocks = []
        for start, given in zip(range(0, n, step), self.given, strict=True):
            columns = min(step, n - start)
            bits = np.unpackbits(np.frombuffer(given, np.uint8), count=k * columns)
            blocks.append(1.0 - 2.0 * bits.reshape(k, columns))
        return np.hstack(blocks)


def _parties(n: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, sum(WIDTHS)))
    X[:, -1] = 0.3 * X[:, :-1].sum(axis=1) / sum(WIDTHS)
    return np.split(X, np.cumsum(WIDTHS)[:-1], axis=1)


def _noises(rng: Recording, rows: int) -> list[np.ndarray]:
    return [draw.reshape(rows, width) for (_, draw), width in zip(rng.drawn, WIDTHS, strict=True)]


@pytest.mark.parametrize("debias", [True, False])
@pytest.mark.parametrize("epsilon", [1.0, 0.3, 50.0])
def test_dgm_and_bgm_with_the_same_noise(epsilon: float, debias: bool) -> None:
    parties, rng = _parties(400, 0), Recording(1)
    found = wu2022.dgm_ols(parties, epsilon=epsilon, delta=1e-5, rng=rng, debias=debias)
    sigma = wu2022.published_sigma(epsilon, 1e-5)
    expected = naive.dgm_ols(parties, _noises(rng, 400), sigma, debias=debias)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("n", "k", "cells"), [(400, 60, 1 << 22), (333, 7, 700), (50, 130, 1)])
def test_rmgm_with_the_same_mixture_and_noise(n: int, k: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wu2022, "_CELLS", cells)
    parties, rng = _parties(n, 2), Recording(3)
    found = wu2022.rmgm_ols(parties, k=k, epsilon=1.0, delta=1e-5, rng=rng)
    B = rng.signs(k, n, max(1, cells // k))
    assert set(np.unique(B)) == {-1.0, 1.0}
    expected = naive.rmgm_ols(parties, B, _noises(rng, k), naive.classical_sigma(1.0, 1e-5))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0])
def test_the_printed_scales(epsilon: float) -> None:
    expected = naive.noise_sds(WIDTHS, naive.classical_sigma(epsilon, 1e-5))
    for fit, terms in ((wu2022.dgm_ols, {}), (wu2022.rmgm_ols, {"k": 20})):
        rng = Recording(0)
        fit(_parties(100, 0), epsilon=epsilon, delta=1e-5, rng=rng, **terms)
        assert [scale for scale, _ in rng.drawn] == pytest.approx(expected, rel=1e-14)
