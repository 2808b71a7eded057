"""Coefficients that explain released scores: derivatives, the answer of a linear model, shrinking and old scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpregress import PublicMoments
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import BinomialFamily, Family, GaussianFamily, contrasts, family_of
from dpregress.public.whitening import from_public
from dpregress.solvers.glm.binary_model import BinaryModel
from dpregress.solvers.glm.multinomial import SurrogateClasses
from dpregress.solvers.glm.score_loop import Beginning, ModelledScore
from dpregress.solvers.glm.surrogate_model import FamilyModel, ReleasedMean, SurrogateModel
from dpregress.solvers.shared.explained import Evidence, Explained, FixedPrior, Prior, SlopesPrior, explain
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.mixed_prior import MixedPrior
from dpregress.solvers.shared.surrogate import SurrogateRows, surrogate_rows
from tests.registry import FAMILIES

ORDER = 4
#: Of residuals.
SIZES = Magnitudes(np.array([1.0, 3.0]), np.array([0.9, 0.1]))


def surrogates(rng: np.random.Generator) -> tuple[WhitenedSpace, SurrogateRows, Matrix]:
    """Weighted public rows, recoloured to a Gram matrix that is not theirs."""
    public = PublicMoments.from_rows(rng.normal(size=(80, ORDER - 1)) @ rng.normal(size=(ORDER - 1, ORDER - 1)))
    space = from_public(public, intercept=True)
    root = np.eye(ORDER) + 0.1 * rng.normal(size=(ORDER, ORDER))
    gram = 0.7 * root @ root.T
    return space, surrogate_rows(space, public, gram), gram


def model_of(family: Family, rng: np.random.Generator, variance: float = 0.01) -> FamilyModel:
    space, rows, gram = surrogates(rng)
    if family == BinomialFamily:
        return BinaryModel(family, space, rows, gram, 1_000, variance)
    return SurrogateModel(family, space, rows, gram, 1_000, variance, SIZES)


def near(model: FamilyModel, mean: float, rng: np.random.Generator) -> Vector:
    """Coefficients at which all means are possible and inside the link's range."""
    level = model.family.link.predictor(mean) * model.space.constant
    return np.asarray(level + 0.02 * rng.normal(size=ORDER))


def score_of(model: FamilyModel, asked: Vector, value: Vector, variance: float = 1e-4) -> ModelledScore:
    return ModelledScore.of(model, asked, value, variance, model.information(asked))


def test_a_prior_after_a_score_of_rows_beyond_the_range_of_the_link(seed: int) -> None:
    """There the expected scores are huge, while the information leaves such rows out: the system keeps its digits."""
    rng = np.random.default_rng(seed)
    space, rows, gram = surrogates(rng)
    model = SurrogateModel(family_of("inverse-gaussian"), space, replace(rows, x=1e3 * rows.x), gram, 5, 0.01, SIZES)
    coef = np.ones(ORDER)
    system = np.eye(ORDER)
    score = ModelledScore.of(model, coef, np.ones(ORDER), 1.0, system)
    assert np.abs(model.curvature(coef, coef)).max() > 1e12
    prior = MixedPrior.single(coef, np.eye(ORDER))
    after = Beginning(prior, 1.0).after(score, np.eye(ORDER))
    np.testing.assert_allclose(after.known(coef, system).precision, np.eye(ORDER) / 2, rtol=1e-6)


def unlimited(scores: Sequence[Evidence], prior: Prior, start: Vector) -> Explained:
    """What explains the scores, however far away it is."""
    return explain(scores, prior, start, lambda move: move)


def differences(change: Callable[[Vector], Vector], coef: Vector, width: float = 1e-5) -> Matrix:
    """The derivative of a change by central differences."""
    steps = width * np.eye(len(coef))
    return np.array([(change(coef + step) - change(coef - step)) / (2 * width) for step in steps]).T


def assert_slope(evidence: Evidence, coef: Vector) -> None:
    slope = evidence.slope(coef)
    np.testing.assert_allclose(differences(evidence.change, coef), slope, rtol=0, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.distribution.name} {f.link.name}")
def test_the_slope_is_the_derivative_of_the_change(family: Family, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = model_of(family, rng)
    asked, coef = near(model, 0.6, rng), near(model, 0.7, rng)
    for evidence in (score_of(model, asked, np.zeros(ORDER)), ReleasedMean(model, asked, np.zeros(1), 1.0)):
        assert_slope(evidence, coef)
        np.testing.assert_allclose(evidence.change(asked), 0, atol=1e-15)
        assert evidence.error(asked) == 0
        assert evidence.error(coef) > 0


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.distribution.name} {f.link.name}")
def test_a_score_begins_with_the_slope_of_its_system(family: Family, seed: int) -> None:
    """Floors and what no surrogate row shows are in the linear part: a first step is a Newton step."""
    rng = np.random.default_rng(seed)
    model = model_of(family, rng)
    asked = near(model, 0.6, rng)
    np.testing.assert_allclose(score_of(model, asked, np.zeros(ORDER)).slope(asked), model.information(asked))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_slope_is_the_derivative_of_the_change_of_classes(classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    space, rows, gram = surrogates(rng)
    each = np.eye(classes - 1)
    model = SurrogateClasses(space, rows, np.asarray(np.kron(gram, each)), contrasts(classes), 1_000, 0.01)
    asked, coef = rng.normal(size=(2, ORDER * (classes - 1)))
    value, system = np.zeros(len(asked)), model.information(asked)
    assert_slope(ModelledScore.of(model, asked, value, 1.0, system), coef)


@dataclass(frozen=True, eq=False)
class Linear(Evidence):
    """Numbers whose expectation is linear in the coefficients, with an error that grows with the distance."""

    value: Vector
    variance: float
    matrix: Matrix
    asked: Vector
    growth: float = 0.0

    def change(self, coef: Vector) -> Vector:
        return np.asarray(self.matrix @ (coef - self.asked))

    def slope(self, coef: Vector) -> Matrix:  # noqa: ARG002
        return self.matrix

    def error(self, coef: Vector) -> float:
        return self.growth * float(np.sum((coef - self.asked) ** 2))


def test_a_linear_model_has_the_exact_posterior(seed: int) -> None:
    """The information form of the Kalman filter, wherever the descent begins; a score of less than p numbers too."""
    rng = np.random.default_rng(seed)
    prior, root = rng.normal(size=5), rng.normal(size=(5, 5))
    known = root @ root.T + np.eye(5)
    scores = [
        Linear(rng.normal(size=size), variance, rng.normal(size=(size, 5)), rng.normal(size=5))
        for size, variance in ((5, 0.3), (5, 2.0), (1, 0.01))
    ]
    precision, pull = known.copy(), known @ prior
    for one in scores:
        precision += one.matrix.T @ one.matrix / one.variance
        pull += one.matrix.T @ (one.value + one.matrix @ one.asked) / one.variance
    covariance = np.linalg.inv(precision)
    privacy = covariance @ (precision - known) @ covariance
    for start in (prior, 100 * rng.normal(size=5)):
        found = unlimited(scores, FixedPrior(prior, known), start)
        np.testing.assert_allclose(found.coef, np.linalg.solve(precision, pull), rtol=0, atol=1e-7)
        np.testing.assert_allclose(found.covariance, covariance, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.privacy, privacy, rtol=0, atol=1e-9)


def test_a_gaussian_score_with_a_prior_is_ridge_regression(seed: int) -> None:
    """``b_0 + (P + A A / v)^{-1} A g / v`` with A the system of the released score."""
    rng = np.random.default_rng(seed)
    model = model_of(GaussianFamily, rng, variance=0.0)
    asked, value, variance = rng.normal(size=ORDER), rng.normal(size=ORDER), 0.3
    score = score_of(model, asked, value, variance)
    system, known = model.information(asked), 2.0 * np.eye(ORDER)
    found = unlimited([score], FixedPrior(asked, known), asked)
    exact = asked + np.linalg.solve(known + system @ system / variance, system @ value / variance)
    np.testing.assert_allclose(found.coef, exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.distribution.name} {f.link.name}")
def test_an_exact_score_leads_to_where_it_comes_from(family: Family, seed: int) -> None:
    """In one step, along the curve: a Newton step ends elsewhere unless the model is linear."""
    rng = np.random.default_rng(seed)
    model = model_of(family, rng, variance=0.0)
    asked, goal = near(model, 0.5, rng), near(model, 0.8, rng)
    score = score_of(model, asked, score_of(model, asked, np.zeros(ORDER)).change(goal), variance=1e-16)
    found = unlimited([score], FixedPrior(asked, 1e-9 * np.eye(ORDER)), asked)
    np.testing.assert_allclose(found.coef, goal, rtol=0, atol=1e-6)
    newton = asked + np.linalg.solve(score.slope(asked), score.value)
    assert family.link.name == "identity" or np.linalg.norm(newton - goal) > 1e-3


@dataclass(frozen=True, eq=False)
class Saturating(Evidence):
    """A number whose expectation is ``tanh b``."""

    value: Vector
    variance: float = 1e-4

    def change(self, coef: Vector) -> Vector:
        return np.tanh(coef)

    def slope(self, coef: Vector) -> Matrix:
        return np.diag(1 - np.tanh(coef) ** 2)

    def error(self, coef: Vector) -> float:  # noqa: ARG002
        return 0.0


@pytest.mark.parametrize("goal", [0.9, 2.0])
def test_a_score_beyond_all_expectations_meets_the_prior(goal: float) -> None:
    """The objective is stationary at the answer, whether coefficients explain the score or none can."""
    known = 0.5
    found = unlimited([Saturating(np.array([goal]))], FixedPrior(np.zeros(1), np.array([[known]])), np.zeros(1)).coef[0]
    pull = (goal - np.tanh(found)) * (1 - np.tanh(found) ** 2) / 1e-4
    assert pull == pytest.approx(known * found, rel=1e-3)
    assert goal > 1 or found == pytest.approx(np.arctanh(goal), rel=1e-2)


def test_a_descent_ends_where_one_step_may_not_go() -> None:
    """A score that only a root far away explains: the answer lies on the border, and is exact within it."""

    def limited(move: Vector) -> Vector:
        return np.asarray(move * min(1.0, 0.5 / max(float(np.linalg.norm(move)), 1e-300)))

    vague = FixedPrior(np.zeros(1), np.array([[1e-9]]))
    for goal, expected in ((2.0, 0.5), (0.9, 0.5), (0.1, np.arctanh(0.1))):
        found = explain([Saturating(np.array([goal]))], vague, np.zeros(1), limited)
        assert found.coef[0] == pytest.approx(expected, rel=1e-6)


# ------------------------------------------------------------------ slopes of unknown size


def slopes_prior(order: int, reach: float = 3.0) -> SlopesPrior:
    """The first coefficient is the intercept, of which nothing is known."""
    unit = np.eye(order)[0]
    return SlopesPrior(np.zeros(order), np.zeros((order, order)), (np.eye(order) - np.outer(unit, unit),), reach**2)


def identity_score(value: Vector, variance: float) -> Linear:
    return Linear(value, variance, np.eye(len(value)), np.zeros(len(value)))


@pytest.mark.parametrize(("noise", "most"), [(0.1, 0.4), (1.0, 0.02), (100.0, 1e-6)])
def test_noise_alone_is_shrunk_to_nothing(noise: float, most: float, seed: int) -> None:
    """200 slopes of 0 in noise: they keep little of it, and the intercept keeps all of its value.

    The gain rises with the mean square of the slopes, which exceeds 1.61 times the noise's variance with probability
    1e-7; the gain there is below the bound. At its expectation the gain is .02, .004 and 4e-7.
    """
    rng = np.random.default_rng(seed)
    value = noise * rng.normal(size=201)
    found = unlimited([identity_score(value, noise**2)], slopes_prior(201), np.zeros(201))
    assert found.coef[0] == pytest.approx(value[0], rel=1e-6)
    assert np.linalg.norm(found.coef[1:]) < most * np.linalg.norm(value[1:])


def test_the_bound_on_noise_holds_where_noise_is_as_large_as_it_gets() -> None:
    """The values that the test above rests on, which only differ in their mean square."""
    for noise, most in ((0.1, 0.4), (1.0, 0.02), (100.0, 1e-6)):
        value = np.full(201, noise * 1.61**0.5)
        found = unlimited([identity_score(value, noise**2)], slopes_prior(201), np.zeros(201))
        assert (found.coef[1:] < most * value[1:]).all()


def test_noise_far_beyond_the_reach_leaves_nothing(seed: int) -> None:
    """Deterministic: slopes with a variance of 9/20 at most cannot be told in a noise of 10^4."""
    value = 100 * np.random.default_rng(seed).normal(size=21)
    found = unlimited([identity_score(value, 1e4)], slopes_prior(21), np.zeros(21))
    assert (np.abs(found.coef[1:]) <= 0.45 / 1e4 * np.abs(value[1:]) * (1 + 1e-6)).all()
    assert np.diag(found.covariance)[1:].max() <= 0.45


def test_clear_slopes_are_believed(seed: int) -> None:
    value = np.random.default_rng(seed).choice([-0.6, 0.6], size=21)
    found = unlimited([identity_score(value, 1e-6)], slopes_prior(21), np.zeros(21))
    np.testing.assert_allclose(found.coef, value, rtol=1e-4)
    np.testing.assert_allclose(found.covariance, 1e-6 * np.eye(21), atol=1e-10)


# ------------------------------------------------------------------ old scores


def test_an_old_score_counts_less_the_further_away_it_was_asked() -> None:
    """Exactly as its error says: a mean weighted by inverse variances."""
    here, growth = np.zeros(1), 0.5
    vague = FixedPrior(here, np.array([[1e-9]]))
    answers = []
    for distance in (0.0, 1.0, 10.0, 1e3):
        asked = np.array([distance])
        old = Linear(5.0 - asked, 1.0, np.eye(1), asked, growth)  # it says 5
        new = Linear(np.array([0.0]), 1.0, np.eye(1), here, growth)  # it says 0
        weight = 1 / (1.0 + growth * distance**2)
        found = unlimited([old, new], vague, here)
        assert found.coef[0] == pytest.approx(5 * weight / (weight + 1), abs=1e-6)
        answers.append(found.coef[0])
    assert answers == sorted(answers, reverse=True)
    assert answers[-1] < 1e-4


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.distribution.name} {f.link.name}")
def test_the_error_of_a_score_grows_with_the_distance(family: Family, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = model_of(family, rng)
    asked, goal = near(model, 0.5, rng), near(model, 0.8, rng)
    score = score_of(model, asked, np.zeros(ORDER))
    errors = [score.error(asked + share * (goal - asked)) for share in (0.0, 0.25, 0.5, 1.0)]
    assert errors[0] == 0
    assert errors == sorted(errors)
    assert errors[-1] >= model.gram_variance * float(np.sum((goal - asked) ** 2))


def test_the_noise_in_coefficients_is_part_of_their_covariance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = [Linear(rng.normal(size=6), 0.2, rng.normal(size=(6, 6)), rng.normal(size=6), 0.1) for _ in range(3)]
    for prior in (FixedPrior(np.zeros(6), 0.1 * np.eye(6)), slopes_prior(6)):
        found = unlimited(scores, prior, np.zeros(6))
        assert np.linalg.eigvalsh(found.privacy)[0] >= -1e-9
        assert np.linalg.eigvalsh(found.covariance - found.privacy)[0] >= -1e-9
