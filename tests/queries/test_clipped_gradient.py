"""Gradients of whole rows, clipped as vectors, by hand; and what their clip takes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpregress.accounting import Relation
from dpregress.coordinates import ResponseScale, Vector, WhitenedSpace
from dpregress.errors import InvalidInput, NotAnswered
from dpregress.mechanisms.base import exact_total
from dpregress.models import BinomialFamily, Family, GaussianFamily
from dpregress.queries import ClippedGradient, ScoreRemainder, ScoreSquares
from dpregress.rows import RawRows, WhitenedRows
from tests.registry import private

RADIUS, CLIP = 2.0, 1.5
SPACE = WhitenedSpace(("a", "b"), np.eye(2), RADIUS, np.zeros(2), response=ResponseScale("y"))
COEF = np.array([0.5, -1.0])
FAMILIES = {"gaussian": GaussianFamily, "binomial": BinomialFamily}


def gradient(row: Vector, response: float, family: Family, longest: float = math.inf) -> Vector:
    """Of the row as it is, or shortened to this length; a row without a response has none."""
    if not np.isfinite(response):
        return np.zeros(2)
    eta = float(row @ COEF)
    weight = min(1.0, longest / float(np.linalg.norm(row)))
    return np.asarray(weight**2 * row * (response - (eta if family is GaussianFamily else 1 / (1 + math.exp(-eta)))))


def shrunk(vector: Vector, bound: float) -> Vector:
    size = float(np.linalg.norm(vector))
    return vector * (bound / size) if size > bound else vector


def some_rows(seed: int, m: int = 80) -> RawRows:
    """Rows inside and outside the ball, some without a response."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=m) < 0.5, 1.0, 0.0)
    y[::9] = np.nan
    return RawRows(rng.normal(size=(m, 2)) * 3.0 ** rng.integers(-2, 2, size=(m, 1)), y)


def gradients(rows: RawRows, family: Family, longest: float = math.inf) -> Vector:
    assert rows.y is not None
    return np.array([gradient(x, y, family, longest) for x, y in zip(rows.x, rows.y, strict=True)])


@pytest.mark.parametrize("radius", [0.5, RADIUS, math.inf])
@pytest.mark.parametrize("clip", [0.3, CLIP, 1e6])
@pytest.mark.parametrize("name", FAMILIES)
def test_value_is_the_sum_over_whole_rows(name: str, clip: float, radius: float, seed: int) -> None:
    """Whatever the radius is: the weight of the row is undone. Deterministic up to the rounding of grids."""
    family, rows = FAMILIES[name], some_rows(seed)
    each = np.array([shrunk(g, clip) for g in gradients(rows, family)])
    total = exact_total(ClippedGradient(replace(SPACE, radius=radius), family, COEF, clip), private(rows))
    np.testing.assert_allclose(total, each.sum(axis=0), rtol=0, atol=1e-9 * float(np.linalg.norm(each, axis=1).sum()))


@pytest.mark.parametrize("reach", [1.0, 1.5, 4.0])
def test_rows_beyond_the_reach_are_shortened_to_it(reach: float, seed: int) -> None:
    rows = some_rows(seed)
    each = np.array([shrunk(g, CLIP) for g in gradients(rows, GaussianFamily, reach * RADIUS)])
    total = exact_total(ClippedGradient(SPACE, GaussianFamily, COEF, CLIP, reach), private(rows))
    np.testing.assert_allclose(total, each.sum(axis=0), rtol=0, atol=1e-7)


@pytest.mark.parametrize("bound", [0.3, 1e6])
def test_the_remainder_is_what_the_clip_takes(bound: float, seed: int) -> None:
    rows, score = some_rows(seed), ClippedGradient(SPACE, GaussianFamily, COEF, CLIP)
    each = np.array([shrunk(g - shrunk(g, CLIP), bound) for g in gradients(rows, GaussianFamily)])
    query = ScoreRemainder(score, bound)
    np.testing.assert_allclose(exact_total(query, private(rows)), each.sum(axis=0), rtol=0, atol=1e-7)
    bounded = WhitenedRows(SPACE)(rows)
    np.testing.assert_allclose(query.influence(bounded), score.each(bounded) + query.each(bounded), atol=1e-9)


@pytest.mark.parametrize("survey", [1.0, 0.5, 0.01])
def test_a_row_of_a_survey_weight(survey: float, seed: int) -> None:
    """So many times its gradient, clipped after that; the weight lies on a grid of 2^-41."""
    raw = some_rows(seed)
    assert raw.y is not None
    query = ClippedGradient(SPACE, GaussianFamily, COEF, CLIP)
    for x, y in zip(raw.x, raw.y, strict=True):
        value = query.value(WhitenedRows(SPACE)(RawRows(x[None], np.array([y]), survey=np.array([survey]))))
        np.testing.assert_allclose(value, shrunk(survey * gradient(x, y, GaussianFamily), CLIP), rtol=1e-8, atol=1e-8)
        assert np.linalg.norm(value) <= CLIP


def test_opposite_rows_reach_the_sensitivity() -> None:
    query, row = ClippedGradient(SPACE, GaussianFamily, COEF, CLIP), np.array([40.0, 30.0])
    above = float(row @ COEF) + 1.0
    one, other = (exact_total(query, private(RawRows(row[None], np.array([y])))) for y in (above, above - 2))
    assert np.linalg.norm(one - other) == pytest.approx(2 * CLIP, rel=1e-12)
    assert query.sensitivity(Relation.ADD_REMOVE) == CLIP
    assert query.sensitivity(Relation.REPLACE_ONE) == ClippedGradient.largest_change(CLIP) == 2 * CLIP


def test_a_far_row_that_is_predicted_well_counts_in_full() -> None:
    """In a score of shortened rows it would have the square of its weight, 1/25."""
    row = np.array([[6.0, 8.0]])
    rows = RawRows(row, row @ COEF + 0.1)
    total = exact_total(ClippedGradient(SPACE, GaussianFamily, COEF, CLIP), private(rows))
    np.testing.assert_allclose(total, 0.1 * row[0], rtol=1e-9)


@pytest.mark.parametrize("clip", [0.0, -1.0, math.nan])
def test_a_clip_that_is_none_is_refused(clip: float) -> None:
    with pytest.raises(InvalidInput, match="must be positive"):
        ClippedGradient(SPACE, GaussianFamily, COEF, clip)


def test_rows_of_any_length_are_not_for_databases() -> None:
    query = ClippedGradient(replace(SPACE, radius=math.inf), GaussianFamily, COEF, CLIP)
    for each in (query, ScoreRemainder(query, 1.0), ScoreSquares(query, 1.0)):
        with pytest.raises(NotAnswered, match="leave the engine out"):
            each.program(True)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("reach", [1.0, 1.4, math.inf])
def test_rows_however_far_out_contribute_at_most_the_clip(family: Family, reach: float) -> None:
    """At 1e170 radii the inverse of a squared weight is no number, and times a residual of 0 it is none at all."""
    space = WhitenedSpace(("a",), np.array([[1.0, 0.0], [1e70, 1.0]]), 1e-100, np.zeros(1), True, ResponseScale("y"))
    for response in (0.0, 0.5, 1.0, 1e300):
        rows = WhitenedRows(space)(RawRows(np.array([[1.0]]), np.array([response])), 3)
        gradient_of = ClippedGradient(space, family, np.zeros(2), CLIP, reach)
        for query in (gradient_of, ScoreRemainder(gradient_of, CLIP)):
            assert np.linalg.norm(np.asarray(query.exact(rows))) <= CLIP


@pytest.mark.parametrize("reach", [0.5, -1.0, math.nan, 1e200])
def test_a_reach_is_at_least_one_radius_and_its_square_a_number(reach: float) -> None:
    with pytest.raises(InvalidInput, match="radii"):
        ClippedGradient(SPACE, GaussianFamily, COEF, CLIP, reach)
