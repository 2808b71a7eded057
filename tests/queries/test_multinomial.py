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
from dpregress.queries import ClippedScore, MeanClassResidual, MultinomialScore
from dpregress.rows import RawRows
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
