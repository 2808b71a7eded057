"""The queries of multinomial models by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpregress.accounting import Relation
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms.base import exact_total
from dpregress.models import BinomialFamily, contrasts, probabilities
from dpregress.queries import (
    ClassRemainder,
    ClippedScore,
    MeanClassResidual,
    MultinomialScore,
    ScoreRemainder,
    remainder_of,
)
from dpregress.rows import RawRows, WhitenedRows
from tests.registry import private

FRAME = WhitenedSpace(("a", "b"), np.eye(2), 2.0, np.zeros(2), response=ResponseScale("y"))


@pytest.mark.parametrize("classes", [2, 3, 7, 40])
def test_contrasts_are_an_orthonormal_basis_of_vectors_that_sum_to_0(classes: int) -> None:
    q = contrasts(classes)
    np.testing.assert_allclose(q.T @ q, np.eye(classes - 1), atol=1e-14)
    np.testing.assert_allclose(q.sum(axis=0), 0, atol=1e-14)


def expected(x: np.ndarray, y: int, coef: np.ndarray, clip: float) -> np.ndarray:
    """One row's score with the residual of all K classes, as a matrix of shape (p, K)."""
    weight = min(1.0, 2 / np.linalg.norm(x))
    eta = x @ coef @ contrasts(3).T
    chances = np.exp(eta) / np.exp(eta).sum()
    residual = weight * (np.eye(3)[y] - chances)
    return np.outer(weight * x, residual * min(1.0, clip / np.linalg.norm(residual)))


def test_score_by_hand(seed: int) -> None:
    """Rows inside and outside the ball; what is no class, or missing, counts for nothing."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(2, 2))
    x = np.array([[1.0, 0.5], [3.0, 4.0], [0.1, -0.2], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    y = np.array([0.0, 2.0, 1.0, 3.0, -1.0, 0.5, np.nan])
    found = exact_total(MultinomialScore(FRAME, coef, 0.5), private(RawRows(x, y))).reshape(2, 2)
    right = sum(expected(row, int(label), coef, 0.5) for row, label in zip(x[:3], y[:3], strict=True))
    np.testing.assert_allclose(found @ contrasts(3).T, right, atol=1e-13)


def test_mean_residual_by_hand(seed: int) -> None:
    """Row weights play no part."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(2, 2))
    x, y = 5 * rng.normal(size=(6, 2)), np.array([0.0, 1.0, 2.0, 1.0, 7.0, np.inf])
    found = exact_total(MeanClassResidual(FRAME, coef), private(RawRows(x, y)))
    right = (np.eye(3)[[0, 1, 2, 1]] - probabilities(x[:4] @ coef, contrasts(3))).sum(axis=0)
    np.testing.assert_allclose(contrasts(3) @ found, right, atol=1e-12)
    assert found.shape == (2,)


def test_two_classes_are_the_logistic_score(seed: int) -> None:
    """With classes 0 and 1 the predictor of the second over the first is ``-sqrt 2 B'x``, and the score follows."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=2)
    rows = private(RawRows(3 * rng.normal(size=(50, 2)), rng.integers(0, 2, 50).astype(float)))
    ours = exact_total(MultinomialScore(FRAME, -beta[:, None] / np.sqrt(2), 10.0), rows)
    np.testing.assert_allclose(-ours / np.sqrt(2), exact_total(ClippedScore(FRAME, BinomialFamily, beta, 10.0), rows))


@pytest.mark.parametrize("clip", [0.3, 1.0, 1.41])
def test_the_contribution_is_reached(clip: float) -> None:
    """By a row on the sphere that is predicted with near certainty to be of another class than it is."""
    query = MultinomialScore(FRAME, np.outer([0.0, 100.0], contrasts(3).T @ [1.0, -1.0, 0.0]), clip)
    found = exact_total(query, private(RawRows(np.array([[1.2, 1.6]]), np.array([1.0]))))
    assert np.linalg.norm(found) == pytest.approx(query.sensitivity(Relation.ADD_REMOVE), rel=1e-9)


@pytest.mark.parametrize("clip", [0.3, np.sqrt(2 / 3)])
def test_the_sensitivity_is_reached(clip: float) -> None:
    """By opposite rows on the sphere, of one class, at coefficients of 0."""
    query = MultinomialScore(FRAME, np.zeros((2, 2)), clip)
    one, other = (
        exact_total(query, private(RawRows(x, np.array([1.0])))) for x in np.array([[[1.2, 1.6]], [[-1.2, -1.6]]])
    )
    assert np.linalg.norm(one - other) == pytest.approx(query.sensitivity(Relation.REPLACE_ONE), rel=1e-9)


@pytest.mark.parametrize("make", [lambda c: MultinomialScore(FRAME, c, 1.0), lambda c: MeanClassResidual(FRAME, c)])
def test_rows_at_the_edge_of_numbers_count(make: Any) -> None:
    rows = RawRows(np.array([[1e308, -1e308], [1e-320, 0.0], [1e200, np.inf]]), np.array([2.0, 1e308, 1.0]))
    assert np.isfinite(exact_total(make(np.full((2, 2), 1e100)), private(rows))).all()


@pytest.mark.parametrize(
    ("coef", "clip", "words"),
    [
        (np.zeros(2), 1.0, "shape"),
        (np.zeros((3, 2)), 1.0, "shape"),
        (np.zeros((2, 0)), 1.0, "shape"),
        (np.full((2, 2), np.nan), 1.0, "diverged"),
        (np.zeros((2, 2)), 0.0, "positive"),
        (np.zeros((2, 2)), np.nan, "positive"),
    ],
)
def test_bad_parameters_are_refused(coef: np.ndarray, clip: float, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        MultinomialScore(FRAME, coef, clip)


# ---------------------------------------------------------------- what a score lacks


CLASS_COEF = np.array([[0.5, -1.0], [0.3, 0.8]])


def remaining(bound: float, clip: float = 0.5) -> ClassRemainder:
    return ClassRemainder(MultinomialScore(FRAME, CLASS_COEF, clip), bound)


def lacking(x: np.ndarray, y: float, bound: float, survey: float = 1.0, clip: float = 0.5) -> np.ndarray:
    """What one row of a survey weight lacks, with the residual of all 3 classes, as a matrix of shape (p, 3)."""
    if y not in (0.0, 1.0, 2.0):
        return np.zeros((2, 3))
    weight = min(1.0, 2 / np.linalg.norm(x)) * np.sqrt(survey)
    eta = x @ CLASS_COEF @ contrasts(3).T
    residual = np.eye(3)[int(y)] - np.exp(eta) / np.exp(eta).sum()
    kept = weight * residual * min(1.0, clip / np.linalg.norm(weight * residual))
    taken = survey * np.outer(x, residual) - np.outer(weight * x, kept)
    return taken * min(1.0, bound / max(np.linalg.norm(taken), 1e-300))


def class_rows(seed: int, m: int = 60) -> RawRows:
    """Rows inside and outside the ball, some without a class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, m).astype(float)
    y[::9], y[4::9] = np.nan, 5.0
    return RawRows(rng.normal(size=(m, 2)) * 3.0 ** rng.integers(-2, 3, size=(m, 1)), y)


@pytest.mark.parametrize("bound", [0.3, 4.0, 1e6])
def test_remainder_by_hand(bound: float, seed: int) -> None:
    rows = class_rows(seed)
    assert rows.y is not None
    found = exact_total(remaining(bound), private(rows)).reshape(2, 2) @ contrasts(3).T
    right = sum(lacking(x, y, bound) for x, y in zip(rows.x, rows.y, strict=True))
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-9 * max(bound, 100.0))


def test_rows_inside_the_ball_and_the_clip_lack_nothing(seed: int) -> None:
    """Not even a rounding."""
    rng = np.random.default_rng(seed)
    rows = RawRows(rng.uniform(-1.4, 1.4, size=(50, 2)), rng.integers(0, 3, 50).astype(float))  # the radius is 2
    np.testing.assert_array_equal(exact_total(remaining(3.0, clip=1.5), private(rows)), 0.0)


@pytest.mark.parametrize("survey", [1.0, 0.5, 0.01])
def test_what_a_row_of_a_survey_weight_lacks(survey: float, seed: int) -> None:
    """v lies on a grid of 2^-41."""
    raw = class_rows(seed)
    assert raw.y is not None
    for x, y in zip(raw.x, raw.y, strict=True):
        row = RawRows(x[None], np.array([y]), survey=np.array([survey]))
        value = remaining(0.7).value(WhitenedRows(FRAME)(row))
        np.testing.assert_allclose(value.reshape(2, 2) @ contrasts(3).T, lacking(x, y, 0.7, survey), atol=1e-8)
        assert np.linalg.norm(value) <= 0.7


@pytest.mark.parametrize("far", [3.0, 1e6, 1e200])
def test_opposite_rows_reach_the_sensitivity_of_a_remainder(far: float) -> None:
    """Without slopes, rows at opposite sides have the same residual."""
    query = ClassRemainder(MultinomialScore(FRAME, np.zeros((2, 2)), 0.1), 0.4)
    one, other = (exact_total(query, private(RawRows(np.array([[x, 0.0]]), np.array([2.0])))) for x in (far, -far))
    assert np.linalg.norm(one) == pytest.approx(0.4, rel=1e-12)
    assert np.linalg.norm(one - other) == pytest.approx(0.8, rel=1e-12)
    assert query.sensitivity(Relation.ADD_REMOVE) == 0.4
    assert query.sensitivity(Relation.REPLACE_ONE) == ClassRemainder.largest_change(0.4) == 0.8


@pytest.mark.parametrize("bound", [0.3, 1e6])
def test_influence_of_a_row_is_its_score_with_what_that_lacks(bound: float, seed: int) -> None:
    rows = WhitenedRows(FRAME)(class_rows(seed))
    query = remaining(bound)
    np.testing.assert_allclose(
        query.influence(rows), query.score.each(rows) + query.each(rows), rtol=0, atol=1e-9 * 100
    )


def test_the_remainder_of_two_classes_is_that_of_the_logistic_score(seed: int) -> None:
    """Contrasts of two classes are 1 / sqrt 2 apart, so that scores differ by that factor."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=2)
    raw = class_rows(seed)
    assert raw.y is not None
    rows = WhitenedRows(FRAME)(RawRows(raw.x, np.where(raw.y > 1, np.nan, raw.y)))
    sign = np.sign(contrasts(2)[1, 0])
    classes = remainder_of(MultinomialScore(FRAME, sign * coef[:, None] / np.sqrt(2), 0.4 * np.sqrt(2)), 3 * np.sqrt(2))
    binary = remainder_of(ClippedScore(FRAME, BinomialFamily, coef, 0.4), 3.0)
    assert isinstance(classes, ClassRemainder)
    assert isinstance(binary, ScoreRemainder)
    np.testing.assert_allclose(sign * classes.value(rows) / np.sqrt(2), binary.value(rows), atol=1e-9)


@pytest.mark.parametrize("bound", [0.0, -1.0, np.nan])
def test_a_bound_of_a_remainder_that_is_none_is_refused(bound: float) -> None:
    with pytest.raises(InvalidInput, match="must be positive"):
        remaining(bound)
