"""What released steps do to a belief: how far it is widened, and what slow steps leave."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.solvers.belief import Belief, Step, widening

EYE = np.eye(3)


@pytest.mark.parametrize("noise", [1e-8, 1.0, 1e4])
def test_widening_makes_a_step_just_plausible(noise: float) -> None:
    known = np.diag([1.0, 2.0, 3.0]) * 1e-4
    step = Step(np.array([1.0, 2.0, 2.0]) * max(1.0, 10 * noise**0.5), EYE, noise)
    factor = widening(known, step)
    length = step.value @ np.linalg.inv(factor * known + step.covariance) @ step.value
    assert factor > 1
    assert length == pytest.approx(3 + 4 * np.sqrt(6), rel=2e-3)


def test_a_step_within_its_noise_widens_nothing() -> None:
    belief = Belief(np.zeros(3), 0 * EYE, EYE)
    step = Step(np.array([1.0, -2.0, 1.0]), EYE, 1.0)
    assert widening(EYE, step) == 1
    assert belief.doubting(step) is belief


def test_steps_that_go_a_part_of_the_way_leave_what_they_leave() -> None:
    """Each of four steps goes a third of the way: the stated error covers what is left of 1."""
    truth, belief = np.array([1.0, 0.0, 0.0]), Belief(np.zeros(3), 0 * EYE, 1e-6 * EYE)
    for _ in range(4):
        step = Step((truth - belief.coef) / 3, EYE, 1e-8)
        belief = belief.doubting(step).after(step)
    assert belief.coef[0] == pytest.approx(1 - (2 / 3) ** 4, abs=1e-3)
    assert 1 - belief.coef[0] < 2 * np.sqrt(belief.known[0, 0])


def test_exact_steps_leave_nothing_but_their_noise() -> None:
    truth, belief = np.array([1.0, 0.0, 0.0]), Belief(np.zeros(3), 0 * EYE, 1e-6 * EYE)
    for _ in range(4):
        belief = belief.after(Step(truth - belief.coef, EYE, 1e-8))
    assert np.diag(belief.known) == pytest.approx(1e-8 / 4, rel=0.01)
