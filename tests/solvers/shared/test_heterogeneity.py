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


def test_one_score_is_itself() -> None:
    np.testing.assert_allclose(reconciled([Plain(np.array([3.0]), 1.0)], flat(1), np.zeros(1)).coef, 3.0)


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
