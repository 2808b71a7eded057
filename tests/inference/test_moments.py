"""Linear estimates for inference from joint moments: their algebra, their coverage, and what they leave out."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom, t

from dpregress import GDP, DPLinearRegression, DPRidge, PublicMoments
from dpregress.coordinates import Matrix, ResponseScale, WhitenedSpace, svec
from dpregress.inference import moment_estimates, privacy_covariance
from dpregress.releases import Entrywise, Estimates, Isotropic, Moments, NoiseLaw

ORDER, N = 4, 1_000
COEF = np.array([0.5, -1.0, 0.2, 0.8])
SPACE = WhitenedSpace(
    ("a", "b", "c"), np.eye(ORDER), 3.0, np.zeros(3), intercept=True, response=ResponseScale("y", 5.0, 10.0, 3.0, 0.7)
)
#: The same coefficients in original units.
ORIGINAL = 10.0 * COEF + [5.0, 0, 0, 0]


def population() -> Matrix:
    """Totals of a population of joint rows ``(x, 0.7 y)`` with correlated columns and residual variance 0.25."""
    gram = np.eye(ORDER) + 0.3 * (np.ones((ORDER, ORDER)) - np.eye(ORDER))
    gram[0, 1:] = gram[1:, 0] = 0.0
    joint = np.zeros((ORDER + 1, ORDER + 1))
    joint[:-1, :-1], joint[:-1, -1], joint[-1, :-1] = gram, 0.7 * gram @ COEF, 0.7 * gram @ COEF
    joint[-1, -1] = 0.49 * (COEF @ gram @ COEF + 0.25)
    return N * joint


def released(noise: NoiseLaw, added: Matrix | float = 0.0) -> Moments:
    return Moments(population() + added, N, noise, (), SPACE)


def drawn(law: NoiseLaw, rng: np.random.Generator) -> Matrix:
    if isinstance(law, Isotropic):
        return svec.unsvec(rng.normal(0.0, law.sigma, svec.length(ORDER + 1)), ORDER + 1)
    assert isinstance(law, Entrywise)
    upper = np.triu(rng.normal(size=law.sigma.shape) * law.sigma)
    return upper + np.triu(upper, 1).T


def entrywise(scale: float) -> Entrywise:
    return Entrywise.of_scales(scale * (1 + np.add.outer(np.arange(5.0), np.arange(5.0)) / 4))


LAWS = (Isotropic(30.0), entrywise(15.0))


def test_without_noise_it_is_the_textbooks() -> None:
    found = moment_estimates(released(Isotropic(1e-9)))
    np.testing.assert_allclose(found.estimate, ORIGINAL, rtol=1e-9)
    gram = population()[:-1, :-1] / N
    np.testing.assert_allclose(found.sampling, 100 * 0.25 * np.linalg.inv(gram) / N, rtol=1e-6)
    np.testing.assert_allclose(found.dispersion, 25.0, rtol=1e-6)
    np.testing.assert_allclose(found.spread, gram[1:, 1:], rtol=1e-9)
    assert found.identified.all()


@pytest.mark.parametrize("law", LAWS, ids=["isotropic", "entrywise"])
def test_the_second_order_is_that_of_two_noises(law: NoiseLaw) -> None:
    """``A^-1 N d`` with d independent of N, summed entry by entry of N."""
    moments = released(law)
    system = moments.gram
    first = privacy_covariance(moments, COEF, system)
    entries = law.sigma if isinstance(law, Entrywise) else np.where(np.eye(5), law.sigma, law.sigma / math.sqrt(2))  # type: ignore[attr-defined]
    inverse, second = np.linalg.inv(system), np.zeros((ORDER, ORDER))
    for i in range(ORDER):
        for j in range(i, ORDER):
            unit = np.zeros((ORDER, ORDER))
            unit[i, j] = unit[j, i] = entries[i, j] / N
            second += inverse @ unit @ first @ unit @ inverse
    found = moment_estimates(moments)
    # the whitening is the identity and the scale 10; coefficients are solved from the same moments
    np.testing.assert_allclose(found.privacy / 100, first + 2 * second, rtol=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=["isotropic", "entrywise"])
def test_intervals_cover_the_noise(law: NoiseLaw, seed: int) -> None:
    """400 draws, 90% intervals, four coefficients: counts that coverages of 87% stay below less than once in 10^9 each.

    Sampling has no part in the draws and is left out of the intervals. Failure: below 1e-8.
    """
    rng, inside = np.random.default_rng(seed), np.zeros(ORDER)
    for _ in range(400):
        found = moment_estimates(released(law, drawn(law, rng)))
        assert found.identified.all()
        inside += np.abs(found.estimate - ORIGINAL) <= 1.645 * np.sqrt(np.diag(found.privacy))
    assert (inside >= binom.ppf(1e-9, 400, 0.87)).all(), inside / 400


def test_errors_grow_with_the_noise() -> None:
    """At the same released values; with enough noise nothing is identified."""
    found = [moment_estimates(released(Isotropic(scale))) for scale in (0.0, 1.0, 10.0, 50.0, 100.0, 1000.0)]
    errors = [np.diag(each.covariance) for each in found]
    assert all((smaller <= larger * (1 + 1e-9)).all() for smaller, larger in pairwise(errors))
    assert found[0].identified.all()
    assert not found[-1].identified.any()


def test_a_column_that_hardly_varies_is_not_identified() -> None:
    """Others keep their intervals."""
    total = population()
    total[3] *= 1e-3
    total[:, 3] *= 1e-3
    found = moment_estimates(Moments(total, N, Isotropic(10.0), (), SPACE))
    assert found.identified.tolist() == [True, True, True, False]


def test_rows_of_a_unit_may_share_their_errors() -> None:
    one, three = (moment_estimates(released(Isotropic(1.0)), rows_of_a_unit=k) for k in (1, 3))
    np.testing.assert_allclose(three.sampling, 3 * one.sampling)
    np.testing.assert_allclose(three.privacy, one.privacy)


def test_any_order_of_features() -> None:
    found = moment_estimates(released(Isotropic(1.0)))
    other = found.in_order(("c", "a"))
    assert other.names == ("(intercept)", "c", "a")
    places = [0, 3, 1]
    np.testing.assert_array_equal(other.estimate, found.estimate[places])
    np.testing.assert_array_equal(other.covariance, found.covariance[np.ix_(places, places)])
    assert found.spread is not None
    np.testing.assert_array_equal(other.spread, found.spread[np.ix_([2, 0], [2, 0])])


# ------------------------------------------------------------------ the one-shot recipe


def sample(rng: np.random.Generator, n: int) -> tuple[Matrix, Matrix]:
    x = rng.normal(size=(n, 3)) * [1.0, 30.0, 0.1] + [0.0, 500.0, 0.0]
    return x, 2.0 + x @ [1.0, 0.05, -10.0] + rng.normal(size=n)


def fitted(rng: np.random.Generator, n: int = 5_000, alpha: float = 0.0, mu: float = 1.0) -> Estimates:
    public = PublicMoments.from_rows(*sample(rng, 200))
    x, y = sample(rng, n)
    model = DPRidge(GDP(mu), public=public, alpha=alpha, recipe="one-shot", random_state=rng).fit(x, y)
    assert model.estimates_ is not None
    return model.estimates_


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_a_penalty_shrinks_no_estimate(seed: int) -> None:
    found = [fitted(np.random.default_rng(seed), alpha=alpha) for alpha in (0.0, 1e4)]
    np.testing.assert_array_equal(found[0].estimate, found[1].estimate)
    assert (found[0].shift[1:] > 0).all()  # rows beyond the radius have smaller weights


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_one_shot_intervals_cover(seed: int) -> None:
    """150 samples, 90% intervals: counts that coverages of 85% stay below less than once in 10^9 for each of four."""
    inside, repeats = np.zeros(4), 150
    for repeat in range(repeats):
        found = fitted(np.random.default_rng([seed, repeat]))
        error = np.sqrt(np.diag(found.covariance))
        inside += np.abs(found.estimate - [2.0, 1.0, 0.05, -10.0]) <= t.ppf(0.95, found.degrees_of_freedom) * error
    assert (inside >= binom.ppf(1e-9, repeats, 0.85)).all(), inside / repeats


def test_the_papers_recipe_has_no_estimates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(*sample(rng, 200))
    model = DPLinearRegression(GDP(1.0), public=public, recipe="paper").fit(*sample(rng, 2_000))
    assert model.estimates_ is None
