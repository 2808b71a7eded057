"""Scores that contradict one another: the last one counts more than those before it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dpregress.coordinates import Matrix, Vector
from dpregress.solvers.shared.explained import Evidence, FixedPrior, explain
from dpregress.solvers.shared.heterogeneity import reconciled


@dataclass(frozen=True, eq=False)
class Plain(Evidence):
    """A score whose slope is the identity, asked at 0."""

    value: Vector
    variance: float

    def change(self, coef: Vector) -> Vector:
        return coef

    def slope(self, coef: Vector) -> Matrix:
        return np.eye(len(coef))

    def error(self, coef: Vector) -> float:  # noqa: ARG002
        return 0.0


def flat(order: int) -> FixedPrior:
    return FixedPrior(np.zeros(order), np.zeros((order, order)))


def test_scores_that_agree_are_merged_by_their_variances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = [Plain(np.clip(rng.normal(size=3), -1, 1) * math.sqrt(v), v) for v in (0.5, 1.0, 2.0)]
    found, merged = reconciled(scores, flat(3), np.zeros(3)), explain(scores, flat(3), np.zeros(3), lambda move: move)
    np.testing.assert_array_equal(found.coef, merged.coef)
    np.testing.assert_array_equal(found.covariance, merged.covariance)


@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_one_score_contradicts_no_other(prior: float) -> None:
    """Even if the coefficients do not explain it, as beside a prior."""
    found = reconciled([Plain(np.array([30.0]), 1.0)], FixedPrior(np.zeros(1), prior * np.eye(1)), np.zeros(1))
    np.testing.assert_allclose(found.coef, 30 / (1 + prior))
    np.testing.assert_array_equal(found.doubt, 0.0)


def test_what_the_model_missed_before_it_may_miss_again() -> None:
    """Of three equal changes each score found half: the last one may be as far from its root."""
    told = [Plain(np.array([value]), 1e-6) for value in (1.0, 2.0, 1.0)]
    found = reconciled(told, flat(1), np.zeros(1))
    merged, changes = 4 / 3, 3 * (4 / 3) ** 2 / 1e-6
    missed = math.sqrt(((1 - merged) ** 2 * 2 + (2 - merged) ** 2) / 1e-6 / changes)
    assert abs(found.doubt[0]) == pytest.approx(missed * found.coef[0], rel=1e-3)


def test_scores_that_contradict_get_the_variance_of_paule_and_mandel() -> None:
    """By a minimisation over that variance, of two scores of one number each."""
    first, last, v, w = 10.0, 0.0, 1.0, 2.0

    def merged(between: float) -> float:
        return (first / (v + between) + last / w) / (1 / (v + between) + 1 / w)

    def misfit(between: float) -> float:
        at = merged(between)
        return (first - at) ** 2 / (v + between) + (last - at) ** 2 / w

    between = float(minimize_scalar(lambda e: (misfit(e) - 1) ** 2, bounds=(0, 1e3), method="bounded").x)
    found = reconciled([Plain(np.array([first]), v), Plain(np.array([last]), w)], flat(1), np.zeros(1))
    assert found.coef[0] == pytest.approx(merged(between), rel=0.02)
    assert found.covariance[0, 0] == pytest.approx(1 / (1 / (v + between) + 1 / w), rel=0.02)


@pytest.mark.parametrize("away", [1e2, 1e5, 1e150])
def test_scores_far_from_the_last_one_do_not_count(away: float) -> None:
    found = reconciled([Plain(np.full(2, away), 1.0), Plain(np.zeros(2), 1.0)], flat(2), np.zeros(2))
    assert np.abs(found.coef).max() < 0.1
    np.testing.assert_allclose(np.diag(found.covariance), 1.0, atol=0.01)
