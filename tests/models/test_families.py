"""Families against numerical differentiation and statsmodels' families and links."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput
from dpregress.models import BinomialFamily, Family, GammaFamily, GaussianFamily, PoissonFamily, family_of
from tests.registry import DRAWS, FAMILIES, responses
from tests.support import statsmodels_family

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.distribution.name} {f.link.name}")


def predictors(family: Family, seed: int) -> Vector:
    """Where the mean is one that the distribution can have."""
    eta = np.random.default_rng(seed).uniform(-3, 3, size=300)
    positive = not family.distribution.possible(np.array([-1.0]))[0] and family.link.name in ("identity", "inverse")
    return np.abs(eta) + 0.1 if positive else eta


@each_family
def test_the_slope_is_the_derivative_of_the_mean(family: Family, seed: int) -> None:
    """Central differences: their error is of order h^2 = 1e-10 and rounding of order 1e-16/h."""
    eta, h = predictors(family, seed), 1e-5
    numerical = (family.mean(eta + h) - family.mean(eta - h)) / (2 * h)
    np.testing.assert_allclose(family.link.slope(eta), numerical, rtol=1e-5, atol=1e-8)


@each_family
def test_the_factor_and_the_information_are_derivatives_of_the_likelihood(family: Family, seed: int) -> None:
    """``-d deviance/2 / d eta = (y - m) factor``; the information is the factor times the slope."""
    eta, h = predictors(family, seed), 1e-5
    mean = family.mean(eta)
    y = responses(family, mean, np.random.default_rng(seed))
    deviance = family.distribution.unit_deviance
    numerical = -(deviance(y, family.mean(eta + h)) - deviance(y, family.mean(eta - h))) / (4 * h)
    np.testing.assert_allclose((y - mean) * family.factor(eta), numerical, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(family.information(eta), family.factor(eta) * family.link.slope(eta), rtol=1e-12)


@each_family
def test_the_link_inverts_the_mean(family: Family, seed: int) -> None:
    for eta in predictors(family, seed)[:20]:
        mean = float(family.mean(np.array([eta]))[0])
        assert family.link.predictor(mean) == pytest.approx(eta, abs=1e-9)


@pytest.mark.parametrize("family", [GaussianFamily, BinomialFamily, PoissonFamily], ids=lambda f: f.distribution.name)
def test_canonical_links_have_a_factor_of_1(family: Family, seed: int) -> None:
    eta = predictors(family, seed)
    np.testing.assert_allclose(family.factor(eta), 1.0, rtol=1e-12)
    np.testing.assert_allclose(family.information(eta), family.link.slope(eta), rtol=1e-12)


EXTREMES = np.array([0.0, -0.0, 5e-324, -1e-310, 1e-6, 1.0, -1.0, 30.0, -30.0, 745.0, -745.0, 1e4, -1e4, 1e75, -1e75])


@each_family
def test_extreme_predictors_stay_finite(family: Family) -> None:
    """Also where the link makes no sense; warnings are errors here."""
    for values in (family.mean(EXTREMES), family.factor(EXTREMES), family.information(EXTREMES)):
        assert np.isfinite(values).all()
    assert (family.information(EXTREMES) >= 0).all()
    variance = family.distribution.variance(family.mean(EXTREMES))
    assert (variance > 0).all(), "a mean that the distribution cannot have"
    assert np.isfinite(family.factor(EXTREMES) ** 2).all()


@each_family
@pytest.mark.parametrize("mean", [0.0, 1e-300, 1.0, 1e6])
def test_any_mean_has_a_starting_predictor(family: Family, mean: float) -> None:
    assert np.isfinite(family.link.predictor(mean))


@pytest.mark.parametrize(
    "family", [GaussianFamily, BinomialFamily, PoissonFamily, GammaFamily], ids=lambda f: f.distribution.name
)
def test_the_default_link(family: Family) -> None:
    assert family_of(family.distribution.name) == family


@pytest.mark.parametrize(("name", "link"), [("tweedie", None), ("poisson", "logit"), ("gamma", "identity")])
def test_other_families_and_links_are_refused(name: str, link: str | None) -> None:
    with pytest.raises(InvalidInput, match="must be one of"):
        family_of(name, link)


@each_family
def test_statsmodels_agrees(family: Family, seed: int) -> None:
    """Mean, slope, variance, weight and deviance."""
    theirs = statsmodels_family(family)
    eta = predictors(family, seed)
    mean = family.mean(eta)
    y = responses(family, mean, np.random.default_rng(seed))
    np.testing.assert_allclose(mean, theirs.link.inverse(eta), rtol=1e-10)
    np.testing.assert_allclose(family.link.slope(eta), theirs.link.inverse_deriv(eta), rtol=1e-9)
    np.testing.assert_allclose(family.distribution.variance(mean), theirs.variance(mean), rtol=1e-10)
    np.testing.assert_allclose(family.information(eta), theirs.weights(mean), rtol=1e-9)
    total = family.distribution.unit_deviance(y, mean).sum()
    assert total == pytest.approx(theirs.deviance(y, mean), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        ("gaussian", [True, True, True, True, True]),
        ("binomial", [False, True, True, True, False]),
        ("poisson", [False, True, True, True, True]),
        ("gamma", [False, False, True, True, True]),
        ("inverse-gaussian", [False, False, True, True, True]),
    ],
)
def test_responses_that_a_family_can_have(name: str, possible: list[bool]) -> None:
    found = family_of(name).distribution.possible(np.array([-1.0, 0.0, 0.5, 1.0, 2.0]))
    assert found.tolist() == possible


def test_every_family_can_be_drawn_from(seed: int) -> None:
    """The table of draws has every family and no other; their means are right: false with probability below 1e-9."""
    assert set(DRAWS) == {family.distribution.name for family in FAMILIES}
    rng = np.random.default_rng(seed)
    for family in FAMILIES:
        mean = np.full(20_000, 0.5)
        y = responses(family, mean, rng)
        assert family.distribution.possible(y).all()
        error = np.sqrt(family.distribution.variance(mean)[0] / len(mean))
        assert abs(y.mean() - 0.5) < 8 * error


@pytest.mark.parametrize("count", [0.9e8, 1.1e8, 1e12, 1e16, 1e30])
def test_the_log_likelihood_of_a_large_count_does_not_cancel(count: float) -> None:
    """That of a perfect fit, ``y log y - y - log y!``, is ``-log(2 pi y) / 2`` but for ``1 / 12y``."""
    found = float(PoissonFamily.distribution.saturated(np.array([count]), 1.0)[0])
    assert found == pytest.approx(-0.5 * np.log(2 * np.pi * count), abs=1e-6)
