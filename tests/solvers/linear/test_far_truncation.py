"""What intervals doubt of far rows: residuals that grow with the square of a row's length."""

from __future__ import annotations

import numpy as np

from dpregress.public import Numeric, PublicMoments, Schema
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import start
from dpregress.solvers.linear.far_truncation import LinearTruncation, number_directions
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.surrogate import surrogate_rows

SIZES, CLIP, RADIUS = np.array([0.5, 1.0, 3.0]), 4.0, 3.0


def truncation(x: np.ndarray, numbers: tuple[bool, bool] = (True, True)) -> LinearTruncation:
    schema = Schema({"a": Numeric(-60, 60), "b": Numeric(-60, 60)})
    public = PublicMoments.from_rows(x, names=("a", "b"))
    first = start(("a", "b"), intercept=False, public=public, schema=schema, row_bound=None)
    facts = PublicFacts(1_000, "y", first, public, schema, None)
    space = first.space.rewhitened(np.eye(2), RADIUS)
    rows = space.whiten(x)
    weights = np.minimum(1, RADIUS / np.linalg.norm(rows, axis=1))
    gram = (rows * weights[:, None] ** 2).T @ rows / len(rows)
    return LinearTruncation(
        surrogate_rows(space, facts.public, gram, schema),
        Magnitudes(SIZES, np.full(3, 1 / 3)),
        CLIP,
        numeric=number_directions(space, numbers),
    )


def test_rows_of_ordinary_lengths_are_as_before(seed: int) -> None:
    """No row of a square is longer than 1.7 root mean squares."""
    taken = truncation(np.random.default_rng(seed).uniform(-1, 1, size=(400, 2)))
    np.testing.assert_allclose(taken.doubted.lost(0.1), taken.lost(0.1))


def test_along_indicators_nothing_bends(seed: int) -> None:
    """The rows of a rare level are far out, and as far as those of a number that is."""
    x = np.random.default_rng(seed).uniform(-1, 1, size=(400, 2))
    x[:, 1] = np.arange(400) < 8
    np.testing.assert_allclose(truncation(x, (True, False)).doubted.lost(0.1), truncation(x).lost(0.1))
    assert np.trace(truncation(x).doubted.lost(0.1)) > 4 * np.trace(truncation(x).lost(0.1))


def test_far_rows_are_doubted_and_a_bound_shows_a_part_of_what_they_lose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 2))
    x[:8] *= 12
    taken = truncation(x)
    doubted = taken.doubted
    assert np.trace(doubted.lost(1.0)) > 4 * np.trace(taken.lost(1.0)) > 0
    seen = [float(np.trace(doubted.likely(bound))) for bound in (0.1, 1.0, 10.0, 1e9)]
    assert seen == sorted(seen)
    np.testing.assert_allclose(doubted.likely(1e9), doubted.lost(0.0))
    np.testing.assert_allclose(taken.likely(1.0), taken.lost(0.0))  # predictions compare with all of it
