"""What weights and clips take from scores of several classes, by the queries that ask for it."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.coordinates import Matrix, ResponseScale, WhitenedSpace
from dpregress.models import contrasts, probabilities
from dpregress.queries import ClassRemainder, MultinomialScore
from dpregress.rows import RawRows, WhitenedRows
from dpregress.solvers.glm.class_truncation import ClassTruncation
from dpregress.solvers.shared.surrogate import SurrogateRows

CLASSES, COLUMNS, ROWS, CLIP = 4, 3, 60, 0.5
SPACE = WhitenedSpace(tuple("abc"), np.eye(COLUMNS), 2.0, np.zeros(COLUMNS), response=ResponseScale("y"))


def rows_and_coef(seed: int) -> tuple[Matrix, Matrix]:
    """Rows inside and outside the ball."""
    rng = np.random.default_rng(seed)
    return 2 * rng.normal(size=(ROWS, COLUMNS)), 0.5 * rng.normal(size=(COLUMNS, CLASSES - 1))


def truncation(x: Matrix, coef: Matrix, clip: float = CLIP) -> ClassTruncation:
    whitened = WhitenedRows(SPACE)(RawRows(x, np.zeros(len(x))))
    rows = SurrogateRows(whitened.x.copy(), whitened.weight.copy(), np.zeros((COLUMNS, COLUMNS)))
    return ClassTruncation(rows, probabilities(x @ coef, contrasts(CLASSES)), contrasts(CLASSES), clip)


def expected_moment(x: Matrix, coef: Matrix, of: str, bound: float) -> Matrix:
    """The expected second moment, over the classes of each row, of what the bound cuts off, or of whole scores."""
    chances = probabilities(x @ coef, contrasts(CLASSES))
    score, total = MultinomialScore(SPACE, coef, CLIP), np.zeros((coef.size, coef.size))
    for k in range(CLASSES):
        rows = WhitenedRows(SPACE)(RawRows(x, np.full(len(x), float(k))))
        everything = ClassRemainder(score, 1e6)
        cut = everything.each(rows) - ClassRemainder(score, bound).each(rows)
        each = everything.influence(rows) if of == "scores" else cut
        total += (each * chances[:, k, None]).T @ each
    return total / len(x)


@pytest.mark.parametrize("bound", [0.05, 1.0, 4.0])
def test_what_a_bound_cuts_off(bound: float, seed: int) -> None:
    """As the query does; rounding on its grid of 2^-42 of the bound."""
    x, coef = rows_and_coef(seed)
    right = expected_moment(x, coef, "cut", bound)
    np.testing.assert_allclose(truncation(x, coef).lost(bound), right, rtol=0, atol=1e-6 * np.trace(right))


def test_nothing_is_lost_beyond_a_bound_that_no_row_reaches(seed: int) -> None:
    x, coef = rows_and_coef(seed)
    assert not truncation(x, coef).lost(1e6).any()


def test_rows_within_the_ball_and_the_clip_lose_nothing(seed: int) -> None:
    x, coef = rows_and_coef(seed)
    assert not truncation(0.1 * x, coef, 2.0).lost(0.0).any()


def test_the_second_moment_of_ordinary_scores(seed: int) -> None:
    """It is the information of rows without weights."""
    x, coef = rows_and_coef(seed)
    right = expected_moment(x, coef, "scores", 1.0)
    np.testing.assert_allclose(truncation(x, coef).scores, right, rtol=0, atol=1e-6 * np.trace(right))


def test_spread_of_residuals_of_equally_likely_classes() -> None:
    """A residual has the squared norm 1 - 1/K, in K - 1 coordinates."""
    found = truncation(np.zeros((5, COLUMNS)), np.zeros((COLUMNS, CLASSES - 1)))
    assert found.spread == pytest.approx(np.sqrt((1 - 1 / CLASSES) / (CLASSES - 1)))
