"""Scores of a path tell how much of a change clips keep."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.coordinates import Matrix, Vector
from dpregress.solvers.linear.kept_changes import kept_changes
from dpregress.solvers.linear.scores import LinearScore

TRUTH, ORDER = np.array([2.0, -1.0, 0.5]), 3


def path(
    kept: float, sigma: float, rng: np.random.Generator, *, places: tuple[float, ...] = (0, 0.6, 0.9)
) -> list[LinearScore]:
    """Scores asked on the way from 0 to the truth, of which clips keep this share of what they are taken to keep."""
    root = rng.normal(size=(ORDER, ORDER))
    slope: Matrix = root @ root.T / ORDER + np.eye(ORDER)

    def score(asked: Vector) -> LinearScore:
        value = kept * slope @ (TRUTH - asked) + sigma * rng.normal(size=ORDER)
        return LinearScore(asked, value, sigma**2, slope, slope, 0.0, 0.0)

    return [score(place * TRUTH) for place in places]


@pytest.mark.parametrize("kept", [0.5, 0.8, 1.0, 1.2])
def test_the_share_is_found(kept: float, seed: int) -> None:
    """Noise of a thousandth: the share is known to a hundredth, the step of the shares, and the doubt is small."""
    found = kept_changes(path(kept, 1e-3, np.random.default_rng(seed)), TRUTH)
    assert found.scores[0].left[0, 0] / found.scores[0].whole[0, 0] == pytest.approx(kept, abs=0.01)
    assert np.linalg.norm(found.doubt) < 0.02


def test_where_noise_hides_it_nothing_changes(seed: int) -> None:
    """Changes of a hundredth of the noise: the share is what it was beforehand, 1 on average, to 5%.

    The doubt is .45 times at most what noise alone does not explain of the way.
    """
    found = kept_changes(path(0.5, 100.0, np.random.default_rng(seed)), TRUTH)
    assert found.scores[0].left[0, 0] / found.scores[0].whole[0, 0] == pytest.approx(1.0, abs=0.05)
    ways = [kept_changes(path(0.5, 100.0, np.random.default_rng([seed, each])), TRUTH).doubt for each in range(40)]
    assert np.mean([not way.any() for way in ways]) > 0.2


def test_scores_at_the_fit_tell_and_cost_nothing(seed: int) -> None:
    scores = path(1.0, 1e-3, np.random.default_rng(seed), places=(1.0, 1.0))
    assert np.linalg.norm(kept_changes(scores, TRUTH).doubt) < 0.01


def test_whatever_was_released_there_is_an_answer() -> None:
    for size in (0.0, 1e-300, 1e150, 1e300):
        nothing = np.zeros((2, 2))
        score = LinearScore(np.zeros(2), np.full(2, size), 1.0, nothing, nothing, 0.0, 0.0)
        found = kept_changes([score, score], np.zeros(2))
        assert np.isfinite(found.doubt).all()
