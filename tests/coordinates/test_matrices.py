"""Eigenvectors, also where the fast method gives up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpregress.coordinates.matrices import eigen


def gives_up(*_: Any, **__: Any) -> None:
    raise np.linalg.LinAlgError("Eigenvalues did not converge")


def test_another_method_answers_where_the_fast_one_gives_up(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It did once for a covariance of order 121 with a condition number of 14, and a moment later it did not."""
    square = np.random.default_rng(seed).normal(size=(9, 9))
    matrix = square @ square.T
    values, vectors = eigen(matrix)
    monkeypatch.setattr(np.linalg, "eigh", gives_up)
    others, axes = eigen(matrix)
    np.testing.assert_allclose(others, values, rtol=1e-9)
    np.testing.assert_allclose((axes * others) @ axes.T, (vectors * values) @ vectors.T, atol=1e-9)


def test_numbers_that_are_not_finite_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.linalg, "eigh", gives_up)
    with pytest.raises(np.linalg.LinAlgError):
        eigen(np.full((2, 2), np.nan))
