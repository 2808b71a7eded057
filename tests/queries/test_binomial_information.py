"""The information of two classes by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpregress.accounting import Relation
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import NotAnswered
from dpregress.mechanisms.base import exact_total
from dpregress.queries import BinomialInformation
from dpregress.releases import Isotropic
from dpregress.rows import RawRows
from tests.registry import private

COEF = np.array([0.5, -1.0])
SPACE = WhitenedSpace(("a", "b"), np.eye(2), 2.0, np.zeros(2), response=ResponseScale("y"))


def test_value_is_the_information_of_shortened_rows(seed: int) -> None:
    """At the predictor of the row as it was; rows without a response count for nothing. No seed can break it."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(60, 2)) * 10.0 ** rng.integers(-2, 2, size=(60, 1)), rng.integers(0, 2, 60).astype(float)
    y[::9] = np.nan
    expected = np.zeros((2, 2))
    for row in x[~np.isnan(y)]:
        mean = 1 / (1 + np.exp(-np.clip(row @ COEF, -30, 30)))
        weight = min(1.0, SPACE.radius / float(np.linalg.norm(row)))
        expected += mean * (1 - mean) * weight**2 * np.outer(row, row)
    query = BinomialInformation(SPACE, COEF)
    found = query.read(exact_total(query, private(RawRows(x, y))), n=60, noise=Isotropic(1.0), events=())
    np.testing.assert_allclose(found.total, expected, rtol=1e-9, atol=1e-9 * np.trace(expected))


def test_the_sensitivity_is_reached() -> None:
    """By orthogonal rows on the sphere whose classes are even."""
    query = BinomialInformation(SPACE, np.zeros(2))
    rows = [private(RawRows(10 * np.eye(2)[i : i + 1], np.ones(1))) for i in (0, 1)]
    one, other = (exact_total(query, each) for each in rows)
    assert np.linalg.norm(one) == pytest.approx(query.sensitivity(Relation.ADD_REMOVE), rel=1e-9)
    assert np.linalg.norm(one - other) == pytest.approx(query.sensitivity(Relation.REPLACE_ONE), rel=1e-9)


def test_a_database_needs_responses() -> None:
    with pytest.raises(NotAnswered, match="leave the engine out"):
        BinomialInformation(SPACE, COEF).program(False)
    with pytest.raises(NotAnswered, match="leave the engine out"):
        BinomialInformation(replace(SPACE, response=None), COEF).program(True)
