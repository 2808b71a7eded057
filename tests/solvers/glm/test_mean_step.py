"""The released mean residual: how far the mean prediction follows it."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.coordinates import WhitenedSpace
from dpregress.models import FAMILIES, Family, PoissonFamily, family_of
from dpregress.queries import MeanResidual
from dpregress.rows.bounded import BoundedRows
from dpregress.solvers.glm.mean_step import MeanAnswer, MeanStep
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.surrogate import surrogate_rows

DOUBT, NOISE, BIAS = 0.01, 0.04, 1.0


def moved_mean(found: float, levels: Magnitudes | None) -> float:
    """The change of the mean prediction of a model that has an intercept alone, from a mean of 1."""
    space = WhitenedSpace((), np.eye(1), 2.0, np.zeros(0), intercept=True)
    step = MeanStep(PoissonFamily, space, surrogate_rows(space, None, np.eye(1), None), levels, 1_000)
    eta, slope = np.zeros(1), np.ones(1)
    answer = MeanAnswer(step, np.zeros(1), eta, slope, found, NOISE, BIAS if levels is not None else 0.0)
    return float(np.exp(answer.adjusted(np.array([[DOUBT]]))[0])) - 1


@pytest.mark.parametrize("found", [-0.3, -0.01])
def test_a_mean_that_clips_made_too_small_is_not_lowered_by_noise(found: float) -> None:
    """It is as well known by the coefficients as they say: what clips cut off cannot have made it too large."""
    levels = Magnitudes(np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    assert moved_mean(found, levels) == pytest.approx(found * DOUBT / (DOUBT + NOISE))


def test_a_mean_that_clips_made_too_small_is_raised_as_far_as_they_may_have() -> None:
    levels = Magnitudes(np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    assert moved_mean(0.3, levels) == pytest.approx(0.3 * (DOUBT + BIAS) / (DOUBT + BIAS + NOISE))


@pytest.mark.parametrize("found", [-40.0, 0.001, 40.0])
def test_means_that_are_predictors_move_by_what_is_found(found: float) -> None:
    """Of counts of 500 with an identity link, whose scores are a five-hundredth of residuals."""
    space = WhitenedSpace((), np.eye(1), 2.0, np.zeros(0), intercept=True)
    family, start = family_of("poisson", "identity"), np.array([500.0])
    step = MeanStep(family, space, surrogate_rows(space, None, np.eye(1), None), None, 1_000)
    assert step.moved(start, start, found) == pytest.approx(start + found)


@pytest.mark.parametrize("family", [each for of_name in FAMILIES.values() for each in of_name], ids=str)
def test_the_sampling_error_is_that_of_what_is_summed(family: Family) -> None:
    """The variance of ``(y - m) |f|`` by the family, with the factor where the query has it."""
    space = WhitenedSpace((), np.eye(1), 2.0, np.zeros(0), intercept=True)
    eta = np.array([0.7])
    mean = family.mean(eta)
    query = MeanResidual(space, family, eta, -1e3, 1e3)
    unit = float(np.asarray(query.exact(BoundedRows(np.ones((1, 1)), mean + 1, np.ones(1), 0)))[0])
    step = MeanStep(family, space, surrogate_rows(space, None, np.eye(1), None), None, 1_000)
    found = MeanAnswer(step, eta, eta, np.ones(1), 0.0, NOISE, BIAS).equation(2.0).sampling
    wanted = 2.0 * float(family.distribution.variance(mean)[0]) * unit**2 / 1_000
    assert float(found[0, 0]) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("found", [-0.3, 0.3])
def test_without_clips_both_directions_are_alike(found: float) -> None:
    assert moved_mean(found, None) == pytest.approx(found * DOUBT / (DOUBT + NOISE))
