"""What released steps do to a belief: how far it is widened, and what slow steps leave."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.solvers.shared.posterior import Posterior, Step, most_left, widening

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
    posterior = Posterior(np.zeros(3), 0 * EYE, EYE)
    step = Step(np.array([1.0, -2.0, 1.0]), EYE, 1.0)
    assert widening(EYE, step) == 1
    assert posterior.inflated(step) is posterior


def test_steps_that_go_a_part_of_the_way_leave_what_they_leave() -> None:
    """Each of four steps goes a third of the way: the stated error covers what is left of 1."""
    truth, posterior = np.array([1.0, 0.0, 0.0]), Posterior(np.zeros(3), 0 * EYE, 1e-6 * EYE)
    for _ in range(4):
        step = Step((truth - posterior.coef) / 3, EYE, 1e-8)
        posterior = posterior.inflated(step).after(step)
    assert posterior.coef[0] == pytest.approx(1 - (2 / 3) ** 4, abs=1e-3)
    assert 1 - posterior.coef[0] < 2 * np.sqrt(posterior.known[0, 0])


def test_exact_steps_leave_nothing_but_their_noise() -> None:
    truth, posterior = np.array([1.0, 0.0, 0.0]), Posterior(np.zeros(3), 0 * EYE, 1e-6 * EYE)
    for _ in range(4):
        posterior = posterior.after(Step(truth - posterior.coef, EYE, 1e-8))
    assert np.diag(posterior.known) == pytest.approx(1e-8 / 4, rel=0.01)


def test_noise_is_not_taken_for_a_step_that_sees_nothing() -> None:
    """Two steps that differ by more than their noise, of a system that is known to three parts in a hundred."""
    posterior = Posterior(np.zeros(3), 0 * EYE, 1e-6 * EYE).after(Step(np.array([0.1, 0.0, 0.0]), EYE, 1e-4))
    step = Step(np.array([0.0, 0.1, 0.1]), EYE, 1e-4)
    doubtful, known = posterior.after(step), posterior.after(step, most_left=most_left(EYE, 0.02, 0.01))
    assert np.sqrt(np.diag(known.known)).max() < 0.02
    assert np.sqrt(np.diag(doubtful.known)).min() > 0.5


def test_what_a_step_leaves_is_bounded_by_what_is_not_known_of_its_slope() -> None:
    """Slopes H within ``off`` of the system, flattened by clips: no eigenvalue of ``I - A^{-1} H`` is larger."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        half, error = rng.normal(size=(2, 4, 4))
        system, error = half @ half.T + 0.5 * np.eye(4), error + error.T
        off, clipped = rng.uniform(0, 0.5), rng.uniform(0, 0.5)
        slope = (1 - clipped) * (system + error / np.linalg.norm(error, 2) * off)
        left = np.linalg.eigvals(np.eye(4) - np.linalg.solve(system, slope))
        assert np.abs(left).max() <= off / np.linalg.eigvalsh(system)[0] + clipped + 1e-12
        assert most_left(system, off, clipped) <= 1.0
    assert most_left(2 * EYE, 0.5, 0.1) == pytest.approx(0.35)
