"""The bound of a released remainder, and what may lie beyond it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpregress import GDP
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import GaussianFamily
from dpregress.queries import ClippedScore, ScoreRemainder, noise_in_mean
from dpregress.solvers.linear.scores import LinearScore
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.remainder import Answer, Remainder, Untruncated
from dpregress.solvers.shared.surrogate import SurrogateRows
from dpregress.solvers.shared.truncation import ResidualTruncation, Truncation

ORDER = 4


def truncation(rng: np.random.Generator) -> Truncation:
    """Of rows that are all within the radius, and residuals of which hardly any is clipped."""
    rows = SurrogateRows(rng.normal(size=(500, ORDER)), np.ones(500), np.zeros((ORDER, ORDER)))
    return ResidualTruncation(rows, Magnitudes.of_sample(rng.normal(size=1000)), 10.0)


@pytest.mark.parametrize("mu", [0.1, 1.0, 100.0])
def test_a_bound_is_as_wide_as_next_to_no_noise_allows(mu: float, seed: int) -> None:
    """Where surrogate rows lose nothing: some .4 sampling errors of noise, but no more than a score."""
    lost, n, contribution = truncation(np.random.default_rng(seed)), 10_000, 30.0
    bound = lost.best_bound(contribution, GDP(mu), n)
    noise = noise_in_mean(ScoreRemainder.largest_change(bound), GDP(mu), n)
    sampling = math.sqrt(float(np.trace(lost.rows.x.T @ lost.rows.x)) / 500 / ORDER / n) * lost.sizes.root_mean_square
    assert bound == contribution if mu == 100 else 0.3 * sampling < noise < 0.4 * sampling * 1.05


@pytest.mark.parametrize(("size", "share"), [(0.0, 0.2 / 25), (0.5, 0.25 / 25), (1.0, 1 / 25), (100.0, 1.0)])
def test_what_lies_beyond_the_bound_is_as_much_as_what_it_left_says(size: float, share: float) -> None:
    """A remainder as large as the prior says: a fifth of the residuals; one that is all noise: a little at least."""
    lost = np.eye(ORDER)
    limit = 1 + 2 * math.sqrt(2 / ORDER)
    value = np.full(ORDER, math.sqrt((size**2 / 25 + 0.01) / limit))
    found = remainder(value, 0.01, lost).beyond(np.zeros(ORDER))
    np.testing.assert_allclose(found, share / 3 * lost, rtol=1e-9)


def test_what_noise_may_be_does_not_say_that_much_lies_beyond_the_bound() -> None:
    """With noise a hundred times the prior, a remainder of usual size would be magnified to all that rows lose."""
    lost = np.eye(ORDER)
    found = remainder(np.full(ORDER, 2.0), 4.0, lost).beyond(np.zeros(ORDER))
    np.testing.assert_allclose(found, lost / 75, rtol=1e-9)


def test_where_a_model_is_wrong_the_last_score_and_its_remainder_are_least_squares(seed: int) -> None:
    """Along the direction of the first remainder, whatever earlier scores and slopes say. No seed can break it."""
    rng, n = np.random.default_rng(seed), 1_000
    x, y = rng.normal(size=(n, ORDER)), 5 * rng.standard_t(3, size=n)
    asked, fit, explained = rng.normal(size=(3, ORDER))
    gram, residual = x.T @ x / n, y - x @ asked
    score, left = x.T @ np.clip(residual, -1, 1) / n, np.eye(ORDER) * rng.uniform(0.2, 2)
    last = LinearScore(asked, score, 0.0, left, left, 0.0, 0.0)
    values = 10 * rng.normal(size=ORDER), x.T @ residual / n - score
    none, space = np.zeros((ORDER, ORDER)), WhitenedSpace(tuple("abcd"), np.eye(ORDER), 1.0, np.zeros(ORDER))
    first, wide = (
        Answer(
            ScoreRemainder(ClippedScore(space, GaussianFamily, at, 1.0), bound), value, 1e-6, none, none, none, 0.0, n
        )
        for at, bound, value in zip((fit, asked), (1.0, 1e4), values, strict=True)
    )
    elsewhere, there = (Untruncated(gram, lambda b, at=at: (gram - left) @ (b - at)) for at in (fit, asked))
    moved = Remainder(first, elsewhere, wide, there).move(explained, last=last).value
    axis = first.value - elsewhere.expected(explained)
    assert axis @ gram @ (explained + moved) == pytest.approx(axis @ x.T @ y / n, rel=1e-9)


def remainder(value: Vector, variance: float, lost: Matrix) -> Remainder:
    space = WhitenedSpace(tuple("abcd"), np.eye(ORDER), 1.0, np.zeros(ORDER))
    query = ScoreRemainder(ClippedScore(space, GaussianFamily, np.zeros(ORDER), 1.0), 1.0)
    answer = Answer(query, value, variance, lost, lost, lost, float(np.trace(lost)) / len(lost), 1_000)
    return Remainder(answer, Untruncated(np.eye(ORDER), lambda b: np.zeros(len(b))))
