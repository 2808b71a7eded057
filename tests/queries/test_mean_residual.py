"""The mean residual and the histogram of residuals by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpregress.accounting import Relation
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms.base import exact_total
from dpregress.models import GaussianFamily, PoissonFamily
from dpregress.queries import MeanResidual, ResidualHistogram
from dpregress.rows import RawRows
from tests.registry import private

FRAME = WhitenedSpace(("a",), np.eye(1), 2.0, np.zeros(1), response=ResponseScale("y"))
ROWS = RawRows(np.array([[1.0], [1.0], [4.0], [1.0]]), np.array([3.0, -50.0, 90.0, np.nan]))


def test_mean_residual_by_hand() -> None:
    """Row weights play no part (the third row's is 1/2); a row without a response counts 0."""
    query = MeanResidual(FRAME, GaussianFamily, np.array([0.5]), -2.0, 7.0)
    np.testing.assert_allclose(exact_total(query, private(ROWS)), [2.5 - 2.0 + 7.0])
    assert query.sensitivity(Relation.REPLACE_ONE) == 9.0
    assert query.sensitivity(Relation.ADD_REMOVE) == 7.0
    assert query.size == 1


def test_mean_residual_sees_the_unweighted_prediction() -> None:
    query = MeanResidual(FRAME, PoissonFamily, np.array([0.5]), -100.0, 100.0)
    expected = 3 - np.exp(0.5) + -50 - np.exp(0.5) + 90 - np.exp(2.0)
    np.testing.assert_allclose(exact_total(query, private(ROWS)), [expected], rtol=1e-12)


@pytest.mark.parametrize(("lower", "upper"), [(0.1, 1.0), (-1.0, -0.1), (np.nan, 1.0), (-1.0, np.nan)])
def test_bounds_that_do_not_enclose_0_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(InvalidInput, match="enclose 0"):
        MeanResidual(FRAME, GaussianFamily, np.zeros(1), lower, upper)


def test_residual_histogram_by_hand() -> None:
    """Sizes are of weighted residuals, as a clip cuts them: 2.5, 50.5, 44; nothing without a response."""
    query = ResidualHistogram(FRAME, GaussianFamily, np.array([0.5]), np.array([0.0, 1.0, 10.0, 45.0, 60.0]))
    np.testing.assert_array_equal(exact_total(query, private(ROWS)), [0, 1, 1, 1])


@pytest.mark.parametrize("edges", [[0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 2.0, 1.0]])
def test_bad_edges_are_refused(edges: list[float]) -> None:
    with pytest.raises(InvalidInput, match="increasing"):
        ResidualHistogram(FRAME, GaussianFamily, np.zeros(1), np.array(edges))


def test_rows_at_the_edge_of_numbers_count() -> None:
    """A weight so small that dividing by it overflows raises and warns of nothing."""
    rows = RawRows(np.array([[1e308], [1e-320], [1e200]]), np.array([1e308, -1e308, 5e-324]))
    for space in (FRAME, replace(FRAME, radius=1e-90)):
        for query in (
            MeanResidual(space, PoissonFamily, np.array([1e100]), -1.0, 1.0),
            ResidualHistogram(space, PoissonFamily, np.array([-1e100]), np.array([0.0, 1.0, 2.0])),
        ):
            assert np.isfinite(exact_total(query, private(rows))).all()
