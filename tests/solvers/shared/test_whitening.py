"""Coordinates that private second moments refine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpregress import GDP
from dpregress.accounting import Event
from dpregress.coordinates import Matrix, WhitenedSpace
from dpregress.queries import Query
from dpregress.releases import Isotropic, Moments
from dpregress.solvers.shared.whitening import refined

NAMES = ("x0", "x1", "x2")
SPACE = WhitenedSpace(NAMES, np.eye(3), 100.0, np.zeros(3))


def rows(seed: int, n: int) -> Matrix:
    """Rows with a tail: every tenth is five times as far out."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * np.where(rng.random(n) < 0.1, 5.0, 1.0)[:, None] * [1.0, 10.0, 0.1]


def answering(x: Matrix) -> Any:
    """What answers a question for a second moment, without noise."""

    def ask(query: Query[Any], spend: Event) -> Moments:  # noqa: ARG001  # the only question there is
        return Moments(x.T @ x, len(x), Isotropic(1e-9), (), SPACE)

    return ask


def test_public_rows_tell_how_long_rows_are_in_coordinates_that_owe_nothing_to_them(seed: int) -> None:
    private, public = rows(seed, 5_000), rows(seed + 1, 200)
    better = refined(answering(private), SPACE, GDP(1.0), public)
    lengths = np.linalg.norm(better.space.whiten(public), axis=1)
    np.testing.assert_allclose(np.sort(better.norms.sample), np.sort(lengths))
    assert better.space.radius == better.norms.median == pytest.approx(np.median(lengths))
    assert not better.norms.assumed
    assert refined(answering(private), SPACE, GDP(1.0)).norms.assumed


def test_public_rows_of_zeros_tell_nothing() -> None:
    better = refined(answering(rows(0, 500)), SPACE, GDP(1.0), np.zeros((40, 3)))
    assert better.norms.assumed
