"""What weights and clips take from scores, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.accounting import Relation
from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms.base import exact_total
from dpregress.models import Family, GaussianFamily, PoissonFamily
from dpregress.queries import ClippedScore, ScoreRemainder
from dpregress.rows import RawRows, WhitenedRows
from tests.registry import private

RADIUS, CLIP = 2.0, 1.5
SPACE = WhitenedSpace(("a", "b"), np.eye(2), RADIUS, np.zeros(2), response=ResponseScale("y", bound=300.0))
COEF = np.array([0.5, -1.0])
FAMILIES = {"gaussian": GaussianFamily, "poisson": PoissonFamily}


def asked(bound: float, family: Family = GaussianFamily) -> ScoreRemainder:
    return ScoreRemainder(ClippedScore(SPACE, family, COEF, CLIP), bound)


def by_hand(row: Vector, response: float, family: Family, bound: float, survey: float = 1.0) -> Vector:
    """One row's contribution; a row without a response has none. The root of a survey weight is a part of s."""
    if not np.isfinite(response):
        return np.zeros(2)
    length = float(np.linalg.norm(row))
    weight = min(1.0, RADIUS / length) if length > 0 else 1.0
    mean = float(row @ COEF) if family is GaussianFamily else float(np.exp(np.clip(row @ COEF, -30, 30)))
    residual = response - mean
    weight *= float(np.sqrt(survey))
    taken = survey * row * residual - weight * row * min(max(weight * residual, -CLIP), CLIP)
    size = float(np.linalg.norm(taken))
    return taken * (bound / size) if size > bound else taken


def some_rows(seed: int, m: int = 80) -> RawRows:
    """Rows inside and outside the ball, some without a response."""
    rng = np.random.default_rng(seed)
    y = 3 * rng.normal(size=m)
    y[::9] = np.nan
    return RawRows(rng.normal(size=(m, 2)) * 3.0 ** rng.integers(-2, 2, size=(m, 1)), y)


def responses(rows: RawRows) -> Vector:
    assert rows.y is not None
    return rows.y


@pytest.mark.parametrize("bound", [0.3, 4.0, 1e6])
@pytest.mark.parametrize("name", FAMILIES)
def test_value_is_the_sum_over_rows(name: str, bound: float, seed: int) -> None:
    """To the rounding of the grid of rows, 2^-50 of the radius, relative to the largest sum of lengths."""
    family, rows = FAMILIES[name], some_rows(seed)
    each = np.array([by_hand(x, y, family, bound) for x, y in zip(rows.x, responses(rows), strict=True)])
    scale = float(np.linalg.norm(each, axis=1).sum())
    total = exact_total(asked(bound, family), private(rows))
    np.testing.assert_allclose(total, each.sum(axis=0), rtol=0, atol=1e-9 * scale)


def test_rows_inside_the_ball_and_the_clip_have_none(seed: int) -> None:
    """Not even a rounding: weights within the ball are 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.4, 1.4, size=(50, 2))  # the radius is 2
    rows = RawRows(x, x @ COEF + rng.uniform(-0.99, 0.99, size=50) * CLIP)
    np.testing.assert_array_equal(exact_total(asked(3.0), private(rows)), 0.0)


@pytest.mark.parametrize("far", ["outside the ball", "beyond the clip"])
def test_opposite_rows_reach_the_sensitivity(far: str) -> None:
    bound = 3.0
    row = np.array([40.0, 30.0]) if far == "outside the ball" else np.array([0.8, 0.6])
    above = float(row @ COEF) + 100.0
    one, other = (exact_total(asked(bound), private(RawRows(row[None], np.array([y])))) for y in (above, above - 200))
    assert np.linalg.norm(one) == pytest.approx(bound, rel=1e-12)
    assert np.linalg.norm(one - other) == pytest.approx(2 * bound, rel=1e-12)
    assert asked(bound).sensitivity(Relation.ADD_REMOVE) == bound
    assert asked(bound).sensitivity(Relation.REPLACE_ONE) == ScoreRemainder.largest_change(bound) == 2 * bound


@pytest.mark.parametrize("bound", [0.3, 4.0, 1e6])
def test_influence_is_the_score_with_its_remainder(bound: float, seed: int) -> None:
    """Where the bound cuts nothing off, that is the ordinary score of the row."""
    raw = some_rows(seed)
    rows, query = WhitenedRows(SPACE)(raw), asked(bound)
    score = ClippedScore(SPACE, GaussianFamily, COEF, CLIP)
    influence: Matrix = query.influence(rows)
    np.testing.assert_allclose(influence, score.each(rows) + query.each(rows), rtol=1e-9, atol=1e-9)
    if bound == 1e6:
        residual = np.where(np.isfinite(responses(raw)), responses(raw) - raw.x @ COEF, 0.0)
        np.testing.assert_allclose(influence, raw.x * residual[:, None], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bound", [0.3, 1e6])
@pytest.mark.parametrize("survey", [1.0, 0.5, 0.01])
def test_a_row_of_a_survey_weight(survey: float, bound: float, seed: int) -> None:
    """Of v times the ordinary score, what the clipped score of the row lacks; v lies on a grid of 2^-41."""
    raw = some_rows(seed)
    for x, y in zip(raw.x, responses(raw), strict=True):
        rows = RawRows(x[None], np.array([y]), survey=np.array([survey]))
        value = asked(bound).value(WhitenedRows(SPACE)(rows))
        right = by_hand(x, y, GaussianFamily, bound, survey=survey)
        np.testing.assert_allclose(value, right, rtol=1e-8, atol=1e-8)
        assert np.linalg.norm(value) <= bound


@pytest.mark.parametrize("bound", [0.0, -1.0, np.nan])
def test_a_bound_that_is_none_is_refused(bound: float) -> None:
    with pytest.raises(InvalidInput, match="must be positive"):
        asked(bound)
