"""Surrogate rows: they have the released Gram matrix, and their constant is a constant."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import PublicMoments
from dpregress.public.whitening import from_public
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
