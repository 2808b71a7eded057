"""Releases: sums of disjoint sources, and the views that solvers read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpregress.accounting import GDP
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.releases import Coefficients, Histogram, Isotropic, Moments, NoiseLaw, Score

RESPONSE = ResponseScale("y", scale=2.0, bound=3.0, cross=0.25)
FRAME = WhitenedSpace(("a", "b"), np.eye(2), 2.0, np.zeros(2), response=RESPONSE)


def moments(space: WhitenedSpace = FRAME, n: int = 10, sigma: float = 3.0) -> Moments:
    order = space.order + (space.response is not None)
    total = np.arange(1.0, 1 + order**2).reshape(order, order)
    return Moments(total + total.T, n, Isotropic(sigma), (GDP(1.0),), space)


def test_disjoint_sources_add_up() -> None:
    both = moments() + moments(n=30, sigma=4.0)
    np.testing.assert_array_equal(both.total, 2 * moments().total)
    assert both.n == 40
    assert both.noise == Isotropic(5.0)
    assert both.events == (GDP(1.0), GDP(1.0))
    assert both.space is FRAME
    np.testing.assert_array_equal(both.mean, both.total / 40)


def test_another_space_is_refused() -> None:
    other = replace(FRAME, radius=2.1)
    with pytest.raises(InvalidInput, match="in the same coordinates"):
        moments() + moments(other)


def test_another_kind_is_refused() -> None:
    score = Score(np.zeros(2), 10, Isotropic(1.0), (GDP(1.0),), FRAME)
    with pytest.raises(InvalidInput, match="of the same kind"):
        moments() + score  # type: ignore[operator]


def test_unknown_noise_does_not_add() -> None:
    class Unknown(NoiseLaw):
        def __add__(self, other: NoiseLaw) -> NoiseLaw:
            return NotImplemented

    with pytest.raises(TypeError):
        Isotropic(1.0) + Unknown()


def test_views_of_joint_moments() -> None:
    joint = moments()
    np.testing.assert_array_equal(joint.gram, joint.total[:2, :2] / 10)
    np.testing.assert_allclose(joint.cross, joint.total[:2, 2] / 10 / 0.25)
    assert joint.response_second == pytest.approx(joint.total[2, 2] / 10 / 0.25**2)


def test_moments_without_a_response_have_no_cross_moment() -> None:
    alone = moments(FRAME.with_response(None))
    assert alone.gram.shape == (2, 2)
    with pytest.raises(InvalidInput, match="no response"):
        _ = alone.cross
    with pytest.raises(InvalidInput, match="no response"):
        _ = alone.response_second


# ------------------------------------------------------------------ histograms

EDGES = np.array([0.0, 1.0, 2.0, 4.0, 8.0])


def histogram(*counts: float, n: int = 100) -> Histogram:
    return Histogram(np.array(counts), n, Isotropic(1.0), (GDP(1.0),), FRAME, EDGES)


@pytest.mark.parametrize(
    ("level", "edge"), [(0.0, 1.0), (0.1, 1.0), (0.3, 1.0), (0.31, 2.0), (0.7, 2.0), (0.71, 4.0), (0.9, 4.0)]
)
def test_a_quantile_is_the_right_edge_of_its_bin(level: float, edge: float) -> None:
    assert histogram(30, 40, 20, 10).quantile(level) == edge


def test_the_largest_quantile_is_the_last_inner_edge() -> None:
    assert histogram(30, 40, 20, 10).quantile(0.95) == 4.0
    assert histogram(0, 0, 0, 100).quantile(0.5) == 4.0
    assert histogram(-50, -50, 0, 0).quantile(0.99) == 4.0


def test_counts_below_a_level_are_at_least_that_level(seed: int) -> None:
    """With exact counts the quantile lies above a share ``level`` of the values, whatever they are."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        values = rng.exponential(1.0, size=200)
        values = values[values < 4.0]
        counts = np.histogram(values, EDGES)[0].astype(float)
        level = rng.uniform(0, 1)
        quantile = histogram(*counts, n=len(values)).quantile(level)
        assert np.mean(values < quantile) >= level


def test_negative_counts_do_not_move_a_quantile_back() -> None:
    assert histogram(60, -20, 20, 40).quantile(0.55) == 1.0


# ------------------------------------------------------------------ coefficients


def test_coefficients_predict() -> None:
    fitted = Coefficients(("a", "b"), np.array([1.0, -2.0]), 3.0, "y", 10, np.zeros(2), np.zeros(2), np.zeros(2))
    assert fitted.predict(np.array([[1.0, 1.0], [0.0, 2.0]])).tolist() == [2.0, -1.0]
