"""What a clip leaves of gradients of whole rows, and which clip is used, on random numbers and row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.solvers.linear.scores import WholeScores
from dpregress.solvers.shared.gram import MixedGram
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.surrogate import SurrogateRows
from tests.reference import unshrunk as reference

ORDER = 3
#: Sizes are the middles of bins of half an octave: they stand for sizes up to a quarter of an octave above.
MOST = 2**0.25


class Case(NamedTuple):
    """Scores, the sizes of residuals, and the same for the reference: H, rows without their weights, weights."""

    scores: WholeScores
    levels: Magnitudes
    gram: Matrix
    rows: Matrix
    weights: Vector


def case(seed: int) -> Case:
    """Rows of which many are beyond the radius and some beyond the reach; the last axis shows in them in part."""
    rng = np.random.default_rng(seed)
    rows = np.exp(0.6 * rng.normal(size=(80, 1))) * rng.normal(size=(80, ORDER))
    weights = np.minimum(1, 2.2 / np.linalg.norm(rows, axis=1))
    rows = rows @ (np.eye(ORDER) + 0.1 * rng.normal(size=(ORDER, ORDER)))  # recoloured, with the weights from before
    weighted = weights[:, None] * rows
    second = weighted.T @ weighted / len(rows)
    unseen = np.diag([0.0, 0.0, 0.2])
    space = WhitenedSpace(tuple("abc"), np.eye(ORDER), 2.2, np.zeros(ORDER))
    mixed = MixedGram(second + unseen, 1e-6, 1e-3, 1e-3)
    levels = Magnitudes(np.exp(rng.normal(size=12)), rng.dirichlet(np.ones(12)), MOST)
    scores = WholeScores(space, mixed, SurrogateRows(weighted, weights, unseen), np.eye(space.order))
    return Case(scores, levels, second + unseen, rows, weights)


def test_slopes_with_and_without_a_clip_are_those_of_the_equations(seed: int) -> None:
    """S counts a size as a clip finds it, in the middle of its bin; both are the same sums, up to rounding."""
    scores, levels, gram, rows, weights = case(seed)
    assert scores.slope == pytest.approx(reference.whole(gram, rows, weights), abs=1e-12)
    for clip in (0.2, 1.0, 3.0, 10.0, 1e6):
        left = reference.left(gram, rows, weights, levels.size, levels.share, clip)
        assert scores.left(levels, clip) == pytest.approx(left, abs=1e-12)


def test_the_share_that_is_clipped_counts_sizes_at_the_upper_ends_of_their_bins(seed: int) -> None:
    scores, levels, _, rows, weights = case(seed)
    for clip in (0.2, 1.0, 3.0, 10.0, 1e6):
        cut = reference.cut(rows, weights, MOST * levels.size, levels.share, clip)
        assert scores.clipped(levels, clip) == pytest.approx(cut, abs=1e-9)


@pytest.mark.parametrize("n", [100, 10_000])
@pytest.mark.parametrize("per_unit", [1e-6, 0.03, 0.1, 0.3, 1.0, 3.0])
def test_the_clip_is_the_largest_that_costs_next_to_nothing_more(per_unit: float, n: int, seed: int) -> None:
    """The same candidate of 45 (gradients at the upper ends of bins), from next to no noise to noise that drowns.

    Two implementations of the same sums: they differ only if two candidates cost the same up to rounding.
    """
    scores, levels, _, rows, weights = case(seed)
    lengths, counts = reference.gradients(rows, weights, MOST * levels.size, levels.share)
    best = reference.best_clip(lengths, counts, per_unit, ORDER, n)
    assert scores.best_clip(levels, per_unit, ORDER / n) == pytest.approx(best, rel=1e-9)
