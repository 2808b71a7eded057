"""What released steps do to a belief: how far it is widened, and what slow steps leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpregress.coordinates import Matrix, Vector
from dpregress.solvers.shared.posterior import Posterior, Step, Taken, most_left, together, widening

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
        posterior = posterior.inflated(step).update(step)
    assert posterior.coef[0] == pytest.approx(1 - (2 / 3) ** 4, abs=1e-3)
    assert 1 - posterior.coef[0] < 2 * np.sqrt(posterior.known[0, 0])


def test_exact_steps_leave_nothing_but_their_noise() -> None:
    truth, posterior = np.array([1.0, 0.0, 0.0]), Posterior(np.zeros(3), 0 * EYE, 1e-6 * EYE)
    for _ in range(4):
        posterior = posterior.update(Step(truth - posterior.coef, EYE, 1e-8))
    assert np.diag(posterior.known) == pytest.approx(1e-8 / 4, rel=0.01)


def test_noise_is_not_taken_for_a_step_that_sees_nothing() -> None:
    """Two steps that differ by more than their noise, of a system that is known to three parts in a hundred."""
    posterior = Posterior(np.zeros(3), 0 * EYE, 1e-6 * EYE).update(Step(np.array([0.1, 0.0, 0.0]), EYE, 1e-4))
    step = Step(np.array([0.0, 0.1, 0.1]), EYE, 1e-4)
    doubtful, known = posterior.update(step), posterior.update(step, most_left=most_left(EYE, 0.02, 0.01))
    assert np.sqrt(np.diag(known.known)).max() < 0.02
    assert np.sqrt(np.diag(doubtful.known)).min() > 0.5


def test_a_difference_many_times_as_long_as_the_move_is_not_what_the_move_left() -> None:
    """A false alarm: a prior that is sure moves next to nothing, and the noise of the next step is its own."""
    posterior = Posterior(np.zeros(3), 0 * EYE, 1e4 * EYE).update(Step(np.array([0.1, 0.0, 0.0]), EYE, 1e-2))
    doubted = posterior.update(Step(np.array([0.0, 0.9, 0.0]), EYE, 1e-2))
    assert np.sqrt(np.diag(doubted.known)).max() < 0.011


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


def test_an_update_is_that_of_kalman(seed: int) -> None:
    """By the textbook: gain ``P A (A P A + v I)^{-1}`` on a score ``A b + noise``, for coefficients and their noise."""
    rng = np.random.default_rng(seed)
    root, half, carried = (rng.normal(size=(3, 3)) for _ in range(3))
    known, system, privacy = root @ root.T + EYE, half @ half.T + EYE, carried @ carried.T
    start, step = rng.normal(size=3), Step(rng.normal(size=3), system, 0.3)
    posterior = Posterior.before(start, known)
    assert posterior.known == pytest.approx(known)
    assert not posterior.privacy.any()

    def as_it_is(move: Vector) -> tuple[Vector, Matrix]:
        return move, np.zeros((3, 3))

    found = replace(posterior, privacy=privacy).update(step, follow=as_it_is)
    gain = known @ system @ np.linalg.inv(system @ known @ system + 0.3 * EYE)
    kept = EYE - gain @ system
    assert found.coef == pytest.approx(start + gain @ system @ step.value)
    assert found.known == pytest.approx(kept @ known)
    assert found.privacy == pytest.approx(kept @ privacy @ kept.T + 0.3 * gain @ gain.T)


def test_a_move_that_is_cut_short_is_made_as_it_was_cut() -> None:
    posterior = Posterior.before(np.zeros(3), EYE)
    step = Step(np.ones(3), EYE, 1.0)
    plain = posterior.update(step, follow=lambda move: (move, 0 * EYE))
    short = posterior.update(step, follow=lambda move: (0.5 * move, 2 * EYE))
    assert short.coef == pytest.approx(0.5 * plain.coef)
    assert short.known == pytest.approx(plain.known + 2 * EYE)


def test_eigenvalues_far_apart_are_no_error() -> None:
    """The budget is spent by then: a fit that fails would have cost it for nothing."""
    known = np.diag([0.0, 1.0, 1e40])
    posterior = Posterior.before(np.zeros(3), known)
    for _ in range(3):
        step = Step(np.array([1.0, -1e10, 1e20]), np.diag([1e-20, 1.0, 1e20]), 1e-12)
        posterior = posterior.inflated(step).update(step, follow=lambda move: (move, np.outer(move, move)))
        for part in (posterior.coef, posterior.known, posterior.privacy):
            assert np.isfinite(part).all()


def test_steps_from_elsewhere_are_steps_from_here(seed: int) -> None:
    """Where a step leads does not depend on where it was asked, and the prior before all may change afterwards."""
    rng = np.random.default_rng(seed)
    taken, posterior = [], Posterior(np.zeros(3), 0 * EYE, 2 * EYE)
    for _ in range(3):
        square = rng.normal(size=(3, 3))
        step = Step(0.1 * rng.normal(size=3), square @ square.T + EYE, 0.5)  # so short that none is a surprise
        taken.append(Taken(posterior.coef, step, 0.0, 0.0))
        posterior = posterior.update(step, most_left=0.0)
    replayed = Posterior(np.zeros(3), 0 * EYE, 2 * EYE).after(taken)
    np.testing.assert_allclose(replayed.coef, posterior.coef, rtol=1e-9)
    np.testing.assert_allclose(replayed.privacy, posterior.privacy, rtol=1e-9)
    way, noise = together(np.zeros(3), taken)
    np.testing.assert_allclose(np.linalg.inv(noise), sum(each.step.precision for each in taken), rtol=1e-9)
    exact = np.linalg.solve(np.linalg.inv(noise) + 2 * EYE, np.linalg.solve(noise, way))
    np.testing.assert_allclose(replayed.coef, exact, atol=1e-6)
