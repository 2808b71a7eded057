"""Squares of scores by hand, and the rows' contributions to scores from which they are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpregress.accounting import Relation
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms.base import exact_total
from dpregress.models import GaussianFamily
from dpregress.queries import ClippedScore, MultinomialScore, Query, RowQuery, ScoreSquares
from dpregress.releases import Isotropic, Score
from dpregress.rows import BoundedRows, RawRows, WhitenedRows
from tests.registry import private

SPACE = WhitenedSpace(("a", "b"), np.eye(2), 2.0, np.zeros(2), response=ResponseScale("y", bound=3.0))
SCORES: dict[str, RowQuery[Score]] = {
    "linear": ClippedScore(SPACE, GaussianFamily, np.array([0.5, -1.0]), 1.5),
    "three classes": MultinomialScore(SPACE, np.array([[0.5, 0.2], [-1.0, 0.3]]), 0.6),
}


def raw_rows(seed: int, n: int = 60) -> RawRows:
    """Rows inside and outside the ball, some without a response, some of no class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, size=n).astype(float)
    y[::9] = np.nan
    return RawRows(rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-2, 2, size=(n, 1)), y)


def contributions(score: RowQuery[Score], rows: RawRows) -> np.ndarray:
    """What each row adds to the score, asked of that row alone."""
    assert rows.y is not None
    return np.array(
        [exact_total(score, private(RawRows(x[None, :], np.array([y])))) for x, y in zip(rows.x, rows.y, strict=True)]
    )


@pytest.mark.parametrize("bound", [0.2, 1.0, 100.0])
@pytest.mark.parametrize("name", SCORES)
def test_value_is_the_sum_of_squares_of_shortened_scores(name: str, bound: float, seed: int) -> None:
    score, rows = SCORES[name], raw_rows(seed)
    query = ScoreSquares(score, bound)
    expected = np.zeros((score.size, score.size))
    for u in contributions(score, rows):
        length = float(np.linalg.norm(u))
        v = u if length <= bound else u * (bound / length)
        expected += np.outer(v, v)
    total = exact_total(query, private(rows))
    assert total.shape == (query.size,)
    release = query.read(total, n=len(rows.x), noise=Isotropic(1.0), events=())
    np.testing.assert_allclose(release.total, expected, rtol=1e-12, atol=1e-12 * np.trace(expected))
    np.testing.assert_allclose(np.linalg.norm(total), np.linalg.norm(expected))


@pytest.mark.parametrize("name", SCORES)
def test_each_row_contributes_what_it_adds_to_the_score(name: str, seed: int) -> None:
    """The fast ``each`` of a score is that of every query, row by row."""
    score = SCORES[name]
    rows: BoundedRows = WhitenedRows(SPACE)(raw_rows(seed))
    each = score.each(rows)
    np.testing.assert_allclose(each, Query.each(score, rows), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(each.sum(axis=0), score.value(rows), rtol=1e-12, atol=1e-13)


def check_reached(query: ScoreSquares, rows: RawRows) -> None:
    """By two rows: one alone, and one in place of the other."""
    assert rows.y is not None
    one, other = (exact_total(query, private(RawRows(rows.x[i : i + 1], rows.y[i : i + 1]))) for i in (0, 1))
    assert np.linalg.norm(one) == pytest.approx(query.sensitivity(Relation.ADD_REMOVE), rel=1e-12)
    assert np.linalg.norm(one - other) == pytest.approx(query.sensitivity(Relation.REPLACE_ONE), rel=1e-12)


@pytest.mark.parametrize("bound", [0.1, 1.0, 3.0])
def test_the_sensitivity_is_reached(bound: float) -> None:
    """By orthogonal rows whose scores have norm K or more."""
    score = ClippedScore(SPACE, GaussianFamily, np.zeros(2), 1.5)
    check_reached(ScoreSquares(score, bound), RawRows(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([3.0, 3.0])))


def test_the_sensitivity_is_reached_by_classes() -> None:
    """By orthogonal rows of one class at coefficients of 0."""
    score = MultinomialScore(SPACE, np.zeros((2, 2)), 0.5)
    check_reached(ScoreSquares(score, 0.9), RawRows(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([1.0, 1.0])))


def test_it_is_planned_with_its_own_sensitivity() -> None:
    for bound in (1e-9, 0.3, 7.0):
        query = ScoreSquares(SCORES["linear"], bound)
        assert query.replacement() == ScoreSquares.largest_change(bound) == np.sqrt(2) * bound**2
        assert query.contribution() == bound**2


@pytest.mark.parametrize("bound", [0.0, -1.0, np.nan, np.inf, 1e-200, 1e200])
def test_a_bound_that_is_none_is_refused(bound: Any) -> None:
    with pytest.raises(InvalidInput, match="must be positive"):
        ScoreSquares(SCORES["linear"], bound)
