"""Surrogate rows: they have the released Gram matrix, and their constant is a constant."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import Numeric, PublicMoments, Schema
from dpregress.public.whitening import from_public, start
from dpregress.solvers.shared.repair import floored
from dpregress.solvers.shared.surrogate import surrogate_rows


@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("rows", [True, False], ids=["public rows", "normal rows"])
def test_the_constant_stays_a_constant_whatever_the_noise(rows: bool, noise: float, seed: int) -> None:
    """The predictor of the constant is 1 in each row, and the rows have the Gram matrix.

    Recoloured with the other columns it would vary over rows, and so would the means of a model without slopes.
    """
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(rng.exponential(size=(200, 3)) @ rng.normal(size=(3, 3)) + 5)
    space = from_public(public, intercept=True)
    assert public.rows is not None
    white = space.whiten(public.rows)
    weighted = white * space.weights(white)[:, None]
    error = rng.normal(size=(4, 4))
    gram = floored(weighted.T @ weighted / len(weighted) + noise * (error + error.T) / 2, 0.05)
    found = surrogate_rows(space, public if rows else None, gram)
    np.testing.assert_allclose(found.predictor(space.constant), 1.0, rtol=1e-9)
    assert (found.weight > 0).all()
    np.testing.assert_allclose(found.x.T @ found.x / len(found.x) + found.unseen, gram, rtol=0, atol=1e-6 * (1 + noise))
    np.testing.assert_allclose(found.unseen, 0, atol=1e-6 * (1 + noise))


def test_without_noise_public_rows_are_their_own_surrogates(seed: int) -> None:
    public = PublicMoments.from_rows(np.random.default_rng(seed).normal(size=(200, 3)) + 1)
    space = from_public(public, intercept=True)
    assert public.rows is not None
    white = space.whiten(public.rows)
    weighted = white * space.weights(white)[:, None]
    found = surrogate_rows(space, public, weighted.T @ weighted / len(weighted))
    np.testing.assert_allclose(found.x, weighted, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.weight, space.weights(white), rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scales", [(1e-6, 1.0, 1e9), (1e-30, 1.0, 1e30)])
def test_normal_rows_have_the_gram_matrix_in_any_units(scales: tuple[float, ...], intercept: bool, seed: int) -> None:
    """Columns far apart in scale cost no digits: nothing is decomposed in original units."""
    rng = np.random.default_rng(seed)
    schema = Schema({f"x{i}": Numeric(-scale, scale) for i, scale in enumerate(scales)})
    space = start(("x0", "x1", "x2"), intercept=intercept, public=None, schema=schema, row_bound=None).space
    space = space.rewhitened(np.eye(space.order) + 0.2 * rng.normal(size=(space.order, space.order)), space.radius)
    error = rng.normal(size=(space.order, space.order))
    gram = error @ error.T + 0.1 * np.eye(space.order)
    found = surrogate_rows(space, None, gram)
    np.testing.assert_allclose(found.x.T @ found.x / len(found.x), gram, atol=1e-9)
    if intercept:
        np.testing.assert_allclose(found.predictor(space.constant), 1.0, rtol=1e-9)


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9, 1e12])
def test_rows_far_from_where_they_were_whitened(distance: float, seed: int) -> None:
    """Their weights are tiny, and their spread is small beside their moment: neither is a difference."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, 2))
    space = from_public(PublicMoments.from_rows(rows), intercept=True)
    for _ in range(20):
        turned = space.rewhitened(np.linalg.qr(rng.normal(size=(3, 3)))[0], space.radius)
        found = surrogate_rows(turned, PublicMoments.from_rows(rows + distance), np.eye(3))
        np.testing.assert_allclose(found.predictor(turned.constant), 1.0, rtol=1e-9)
        np.testing.assert_allclose(found.weight, 1.0, rtol=1e-2)
