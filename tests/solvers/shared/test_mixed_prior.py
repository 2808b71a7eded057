"""A mixture of fits as a prior: by hand, against a grid, where scores decide, and where they contradict all."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpregress.coordinates import Matrix
from dpregress.solvers.shared.mixed_prior import Candidate, MixedPrior
from dpregress.solvers.shared.posterior import Step, widening


def definite(rng: np.random.Generator, order: int, size: float = 1.0) -> Matrix:
    root = rng.normal(size=(order, order))
    return size * (root @ root.T / order + 0.1 * np.eye(order))


def candidates(rng: np.random.Generator, order: int) -> list[Candidate]:
    sizes, weights = (0.1, 1.0, 10.0, 300.0), (-3.0, 0.0, -1.0, -0.5)
    pairs = zip(sizes, weights, strict=True)
    return [Candidate(rng.normal(size=order), definite(rng, order, size), weight) for size, weight in pairs]


def test_the_mean_of_all_posteriors_and_the_mean_gain(seed: int) -> None:
    """Weights by normal densities, posteriors by the textbook."""
    rng = np.random.default_rng(seed)
    among, told, scores = candidates(rng, 3), rng.normal(size=3), definite(rng, 3, 2.0)
    noise = np.linalg.inv(scores)
    weights, means, posteriors = [], [], []
    for mean, precision, log_weight in among:
        likely = multivariate_normal(mean, np.linalg.inv(precision) + noise).logpdf(told)
        weights.append(np.exp(log_weight + likely))
        posteriors.append(np.linalg.inv(precision + scores))
        means.append(posteriors[-1] @ (precision @ mean + scores @ told))
    shares = np.array(weights) / np.sum(weights)
    covariance = np.tensordot(shares, posteriors, 1)
    known = MixedPrior.of(told, among).known(told, scores)
    np.testing.assert_allclose(known.precision, np.linalg.inv(covariance) - scores, rtol=1e-8, atol=1e-10)
    posterior = np.linalg.solve(known.precision + scores, known.precision @ known.mean + scores @ told)
    np.testing.assert_allclose(posterior, shares @ np.array(means), rtol=1e-9)


def test_one_candidate_is_a_fixed_prior_whatever_scores_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mean, precision = rng.normal(size=4), definite(rng, 4)
    for size in (1e-6, 1.0, 1e6):
        known = MixedPrior.single(mean, precision).known(rng.normal(size=4), definite(rng, 4, size))
        np.testing.assert_allclose(known.mean, mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(known.precision, precision, rtol=1e-5, atol=1e-6)


def test_precise_scores_choose_the_candidate_that_they_agree_with() -> None:
    tight, wide = Candidate(np.zeros(2), 1e4 * np.eye(2), 0.0), Candidate(np.array([2.0, -1.0]), np.eye(2), -6.0)
    prior = MixedPrior.of(tight.mean, [tight, wide])
    near = prior.known(np.array([0.01, 0.0]), 1e4 * np.eye(2)).precision
    far = prior.known(np.array([1.0, 0.0]), 1e4 * np.eye(2)).precision
    assert near[0, 0] > 1e3
    assert far[0, 0] < 2


def test_scores_that_tell_nothing_leave_what_was_known_before() -> None:
    """And the weights are those beforehand."""
    pair = [Candidate(np.zeros(1), np.eye(1), np.log(0.75)), Candidate(np.full(1, 4.0), np.eye(1), np.log(0.25))]
    known = MixedPrior.of(np.zeros(1), pair).known(np.zeros(1), 1e-9 * np.eye(1))
    np.testing.assert_allclose([known.mean[0], known.precision[0, 0]], [1.0, 1.0], rtol=1e-6)


def test_candidates_that_are_much_less_likely_do_not_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    among = [*candidates(rng, 2), Candidate(rng.normal(size=2), np.eye(2), -50.0)]
    prior = MixedPrior.of(np.zeros(2), among)
    assert [each.log_weight for each in prior.among] == [0.0, -0.5, -1.0, -3.0]


def test_weights_of_any_size_leave_the_likeliest_candidate() -> None:
    """Deviances of left-out rows at the end of a link have twenty digits."""
    among = [Candidate(np.zeros(1), np.eye(1), -2e19), Candidate(np.zeros(1), 2 * np.eye(1), -1e19)]
    prior = MixedPrior.of(np.zeros(1), among)
    assert [each.log_weight for each in prior.among] == [-1e19]
    assert prior.known(np.zeros(1), np.eye(1)).precision[0, 0] == pytest.approx(2)


@pytest.mark.parametrize("away", [0.5, 40.0])
def test_a_step_that_contradicts_all_candidates_widens_them(away: float) -> None:
    """By the least that one of the likely ones needs; one that explains the step, and is likely, needs nothing."""
    order, sampling = 3, 0.01 * np.eye(3)
    step = Step(np.full(order, away), np.eye(order), 1e-4)
    tight, wide = Candidate(np.zeros(order), 4 * np.eye(order), 0.0), Candidate(np.ones(order), np.eye(order), -1.0)
    unlikely = Candidate(step.value, np.eye(order), -10.0)
    after = MixedPrior.of(np.zeros(order), [tight, wide, unlikely]).after(step, sampling)
    needed = [
        widening(np.linalg.inv(each.precision) + sampling, Step(step.value - each.mean, step.system, step.variance))
        for each in (tight, wide)
    ]
    assert (min(needed) > 1) == (away > 1)
    for before, each in zip((tight, wide), after.among, strict=False):
        wider = min(needed) * (np.linalg.inv(before.precision) + sampling)
        np.testing.assert_allclose(each.precision, np.linalg.inv(wider), rtol=2e-3)
