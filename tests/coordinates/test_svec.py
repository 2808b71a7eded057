"""Symmetric matrices as vectors: an isometry, and its inverse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregress.coordinates import Matrix, svec
from tests.rows.properties import untimed


def symmetric(order: int, seed: int) -> Matrix:
    matrix = np.random.default_rng(seed).normal(size=(order, order))
    return matrix + matrix.T


seeds = st.integers(0, 2**32 - 1)
orders = st.integers(1, 12)


@given(orders, seeds)
@untimed
def test_svec_keeps_inner_products(order: int, seed: int) -> None:
    a, b = symmetric(order, seed), symmetric(order, seed + 1)
    assert np.linalg.norm(svec.svec(a)) == pytest.approx(np.linalg.norm(a))
    assert svec.svec(a) @ svec.svec(b) == pytest.approx(np.sum(a * b), abs=1e-9)


@given(orders, seeds)
@untimed
def test_both_layouts_are_undone(order: int, seed: int) -> None:
    matrix = symmetric(order, seed)
    np.testing.assert_allclose(svec.unsvec(svec.svec(matrix), order), matrix, rtol=1e-15)
    np.testing.assert_array_equal(svec.un_upper(svec.upper(matrix), order), matrix)


@given(orders, seeds)
@untimed
def test_every_vector_is_a_matrix(order: int, seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=svec.length(order))
    for pack, unpack in ((svec.svec, svec.unsvec), (svec.upper, svec.un_upper)):
        matrix = unpack(vector, order)
        np.testing.assert_array_equal(matrix, matrix.T)
        np.testing.assert_allclose(pack(matrix), vector, rtol=1e-15)


def test_layout() -> None:
    matrix = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    assert svec.upper(matrix).tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(svec.svec(matrix), np.array([1, 2, 3, 4, 5, 6]) * np.sqrt([1, 2, 2, 1, 2, 1]))
