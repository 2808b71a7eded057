"""How far a step may go."""

import numpy as np
import pytest

from dpregress.coordinates import WhitenedSpace
from dpregress.models import BinomialFamily, Family, GammaFamily, family_of
from dpregress.solvers.glm.binary_model import BinaryModel
from dpregress.solvers.glm.score_loop import ModelledScore
from dpregress.solvers.glm.surrogate_model import SurrogateModel
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.surrogate import SurrogateRows


def moved(family: Family, share: float) -> float:
    """By how much a move of 20 along an indicator of this share of the rows moves it."""
    x = np.zeros((1_000, 1))
    x[: round(1_000 * share)] = 1.0
    space = WhitenedSpace(("x",), np.eye(1), 10.0, np.zeros(1), intercept=False)
    rows, sizes = SurrogateRows(x, np.ones(1_000), np.zeros((1, 1))), Magnitudes.of_sample(np.ones(1))
    common = (family, space, rows, rows.gram, 1_000, 0.0)
    model = BinaryModel(*common) if family == BinomialFamily else SurrogateModel(*common, sizes)
    return float(model.limited(np.array([20.0]))[0])


@pytest.mark.parametrize("family", [GammaFamily, family_of("poisson")], ids=str)
def test_means_without_an_end_of_a_level_move_by_the_longest_step(family: Family) -> None:
    """A level of 4% of the rows ran off where noise did not stop it, and all later scores with it."""
    assert moved(family, 0.04) == moved(family, 0.5) == family.link.longest
    assert moved(family, 0.005) == 2 * family.link.longest


def test_of_classes_levels_may_move_further() -> None:
    """But not so far that a rare level has no root left: 37 events in 48 rows moved it by 23.6."""
    assert moved(BinomialFamily, 0.04) == 2 * BinomialFamily.link.longest
    assert moved(BinomialFamily, 0.5) == BinomialFamily.link.longest


def test_estimates_do_not_have_the_floor_of_steps() -> None:
    """A steep slope leaves a fifteenth of the mean information along itself: steps take a tenth, estimates that.

    A score's slope differs as the informations do, and its value is the same. Deterministic.
    """
    x = np.random.default_rng(0).normal(size=(4_000, 3))
    space = WhitenedSpace(("a", "b", "c"), np.eye(3), 9.0, np.zeros(3), intercept=False)
    rows = SurrogateRows(x, np.ones(len(x)), np.zeros((3, 3)))
    model, coef = BinaryModel(BinomialFamily, space, rows, rows.gram, 9_000, 0.0), np.array([9.0, 0.0, 0.0])
    usual = float(np.mean(np.linalg.eigvals(np.linalg.solve(rows.gram, rows.information(BinomialFamily, coef))).real))
    there = rows.information(BinomialFamily, coef, sure=True)[0, 0]
    assert 0.02 * usual < there < 0.08 * usual
    assert model.information(coef)[0, 0] == pytest.approx(0.1 * usual, rel=0.05)
    assert model.resolved.information(coef)[0, 0] == pytest.approx(there, rel=0.01)
    assert model.resolved is model.resolved
    score = ModelledScore.of(model, coef, np.zeros(3), 1.0, model.information(coef))
    move = np.array([0.1, 0.0, 0.0])
    less, at = (model.information(coef) - model.resolved.information(coef)) @ move, coef + move
    np.testing.assert_allclose(score.change(at) - score.resolved.change(at), less, rtol=1e-6, atol=1e-12)
