"""How far a step may go."""

import numpy as np
import pytest

from dpregress.coordinates import WhitenedSpace
from dpregress.models import BinomialFamily, Family, GammaFamily, family_of
from dpregress.solvers.glm.binary_model import BinaryModel
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
