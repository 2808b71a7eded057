"""Gram matrices that are mixed entry by entry with those of public rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpregress.coordinates import Matrix, WhitenedSpace
from dpregress.releases import Isotropic, Moments
from dpregress.solvers.shared.gram import entrywise_mixed_gram, mixed_gram

N, ORDER = 1_000, 4
SPREADS = np.array([1.0, 0.5, 0.1, 0.05])


def released(gram: Matrix, noise: float, radius: float = 100.0) -> Moments:
    """A released matrix whose diagonal has noise of this standard deviation."""
    names = tuple(f"x{place}" for place in range(len(gram)))
    space = WhitenedSpace(names, np.eye(len(gram)), radius, np.zeros(len(gram)))
    return Moments(gram * N, N, Isotropic(noise * N), (), space)


def rows_of(seed: int, m: int = 400) -> Matrix:
    return np.asarray(np.random.default_rng(seed).normal(size=(m, ORDER)) * SPREADS)


def test_without_noise_it_is_the_released_matrix_and_with_nothing_else_the_public_one(seed: int) -> None:
    rows, private = rows_of(seed), np.diag(SPREADS**2) + 0.001
    np.testing.assert_allclose(entrywise_mixed_gram(released(private, 1e-9), rows).matrix, private, atol=1e-6)
    found = entrywise_mixed_gram(released(private, 1e6), rows)
    values, axes = np.linalg.eigh(rows.T @ rows / len(rows))
    raised = np.maximum(values, 0.2 * values.mean())
    np.testing.assert_allclose(found.matrix, axes @ np.diag(raised) @ axes.T, atol=1e-6)


def test_noise_does_not_hide_small_eigenvalues_that_public_rows_show(seed: int) -> None:
    """The noise is larger than both small eigenvalues, and one weight for all entries raises them to a floor of 0.2."""
    rng, rows, private = np.random.default_rng([seed, 1]), rows_of(seed), np.diag(SPREADS**2)
    noise = rng.normal(size=(ORDER, ORDER)) * 0.05 / math.sqrt(2)
    moments = released(private + noise + noise.T, 0.05)
    found, evenly = entrywise_mixed_gram(moments, rows), mixed_gram(moments, rows)
    assert np.abs(found.matrix - private)[2:, 2:].max() <= found.floor < 0.1
    assert np.abs(evenly.matrix - private)[2:, 2:].max() > 0.15


@pytest.mark.parametrize("scale", [0.1, 1e-3])
@pytest.mark.parametrize("noise", [1e-4, 0.02, 5.0])
def test_it_has_no_scale_of_its_own(seed: int, scale: float, noise: float) -> None:
    rows, private = rows_of(seed), np.diag(SPREADS**2)
    found = entrywise_mixed_gram(released(private, noise), rows)
    smaller = entrywise_mixed_gram(released(private * scale**2, noise * scale**2, 100 * scale), rows * scale)
    np.testing.assert_allclose(smaller.matrix, found.matrix * scale**2, rtol=1e-9, atol=1e-12 * scale**2)
    assert smaller.variance == pytest.approx(found.variance * scale**4)
    assert smaller.floor == pytest.approx(found.floor * scale**2)


@pytest.mark.parametrize("rows", [None, np.zeros((50, ORDER)), np.full((50, ORDER), 1e-170)])
def test_public_rows_that_show_nothing_have_no_part_in_it(rows: Matrix | None) -> None:
    found = entrywise_mixed_gram(released(np.diag(SPREADS**2), 1e-3), rows).matrix
    assert np.isfinite(found).all()
    assert np.linalg.eigvalsh(found)[0] > 0


def test_levels_that_no_public_row_has_are_left_to_the_released_matrix(seed: int) -> None:
    rows = rows_of(seed)
    rows[:, 3] = 0
    private = np.diag([1.0, 0.25, 0.01, 0.05])
    found = entrywise_mixed_gram(released(private, 1e-6), rows)
    np.testing.assert_allclose(np.diag(found.matrix), np.diag(private), rtol=1e-2)
