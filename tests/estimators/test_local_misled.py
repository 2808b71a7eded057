"""Studies of users on facts that mislead: shifted public rows, wide bounds, few labels, noise that no mean explains."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import ApproxDP, LocalGLM, Numeric, PublicMoments, Schema
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
SLOPES = np.array([0.5, -0.3, 0.2])


def users(rng: np.random.Generator, n: int, shift: float = 0.0) -> tuple[Matrix, Vector]:
    """A linear model that explains a third, far from the middle of the bounds of the tests."""
    x = rng.normal(size=(n, 3)) + shift * np.array([1.0, 0.5, -0.5])
    return x, 4.0 + x @ SLOPES + 0.9 * rng.normal(size=n)


def over_the_mean(model: LocalGLM, rng: np.random.Generator) -> float:
    """The mean squared error of new predictions over the variance of the response."""
    x, y = users(rng, 5_000)
    return float(np.mean((y - model.predict(x)) ** 2) / np.var(y))


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 5.0])
def test_shifted_public_rows_are_not_taken_for_slopes(shift: float, epsilon: float, seed: int) -> None:
    """Public rows a standard deviation away, a mean at four tenths of the range from its middle: the mean or better.

    With the mean of the public rows in place of that of the private ones, errors were 20 to 50 times as large.
    """
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(users(rng, 300, shift)[0])
    model = LocalGLM(
        ApproxDP(epsilon, 1e-6), family="gaussian", public=public, response_bounds=(-10.0, 10.0), random_state=rng
    ).fit(*users(rng, 30_000))
    assert over_the_mean(model, rng) < {1.0: 1.4, 2.0: 1.15, 5.0: 0.9}[epsilon]


@pytest.mark.parametrize("wide", [10.0, 100.0])
def test_bounds_that_are_far_too_wide(wide: float, seed: int) -> None:
    """By schema and with public rows, 100,000 users at epsilon 2: the mean is told with bounds 90 deviations away."""
    rng = np.random.default_rng(seed)
    columns = {f"x{place}": Numeric(-5, 5) for place in range(3)}
    schema = Schema({**columns, "y": Numeric(-wide, wide)})
    for public in (None, PublicMoments.from_rows(users(rng, 300)[0])):
        given = {"schema": schema, "public": public, "random_state": rng}
        model = LocalGLM(ApproxDP(2.0, 1e-6), family="gaussian", **given).fit(*users(rng, 100_000))
        assert over_the_mean(model, rng) < 1.15


def test_slopes_by_schema_alone(seed: int) -> None:
    """200,000 users at epsilon 4 tell slopes and their errors without any public row."""
    rng = np.random.default_rng(seed)
    schema = Schema({**{f"x{place}": Numeric(-3, 3) for place in range(3)}, "y": Numeric(-4, 12)})
    model = LocalGLM(ApproxDP(4.0, 1e-6), family="gaussian", schema=schema, random_state=rng).fit(*users(rng, 200_000))
    assert over_the_mean(model, rng) < 0.85
    assert model.estimates_ is not None
    assert model.estimates_.identified.all()
    assert (np.abs(model.estimates_.estimate[1:] - SLOPES) < 6 * model.bse[1:]).all()


def test_few_labels_that_a_line_separates(seed: int) -> None:
    """40 public rows whose classes a line separates by chance: no coefficient is without end, and no share is sure."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 6))
    labels = (x @ np.ones(6) + 0.1 * rng.normal(size=40) > 0).astype(float)
    private = rng.normal(size=(6_000, 6))
    chance = 1 / (1 + np.exp(-0.3 * private @ np.ones(6)))
    model = LocalGLM(ApproxDP(1.0, 1e-6), public=PublicMoments.from_rows(x, labels), random_state=rng)
    found = model.fit(private, (rng.random(6_000) < chance).astype(float))
    assert np.abs(found.coef_).max() < 10
    assert np.mean(np.abs(found.predict(private) - chance)) < 0.4


def test_a_strong_signal_without_a_root_of_stein(seed: int) -> None:
    """Two clusters, one for each class: least squares explain more than a normal predictor could, without noise."""
    rng = np.random.default_rng(seed)

    def drawn(n: int) -> tuple[Matrix, Vector]:
        side = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        x = np.column_stack([side + 0.4 * rng.normal(size=n), rng.normal(size=n)])
        return x, (side > 0).astype(float)

    public = PublicMoments.from_rows(drawn(2_000)[0])
    model = LocalGLM(ApproxDP(2.0, 1e-6), public=public, random_state=rng).fit(*drawn(100_000))
    x, y = drawn(5_000)
    assert not model.scale_.root
    assert np.mean((model.predict(x) > 0.5) == (y > 0.5)) > 0.97


def test_a_rare_class_is_not_all_but_certain(seed: int) -> None:
    """Skewed columns, 2% in a class: noise lets least squares explain more than any likely predictor could.

    Of eight fits without the limit, six had predictors of standard deviation 4.3 to 8.5; with it .7 to 3.0.
    """
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=(30_600, 6))
    chance = 1 / (1 + np.exp(-8 * (x[:, 0] - 4)))
    y = (rng.random(len(x)) < chance).astype(float)
    model = LocalGLM(ApproxDP(8.0, 1e-6), public=PublicMoments.from_rows(x[:600]), random_state=rng)
    found = model.fit(x[600:], y[600:])
    assert np.std(found.coefficients_.predict(x[:600])) < 4
    assert np.corrcoef(found.predict(x[600:]), y[600:])[0, 1] > 0.3


@pytest.mark.parametrize("slopes", [(2.5, -2.0), (4.0, -3.0)])
def test_a_strong_signal_that_noise_does_not_explain_is_kept(slopes: tuple[float, float], seed: int) -> None:
    """Predictors of standard deviation 3.2 and 5, 100,000 users: errors are about .1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(101_000, 2))
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-x @ slopes))).astype(float)
    model = LocalGLM(ApproxDP(8.0, 1e-6), public=PublicMoments.from_rows(x[:1000]), random_state=rng)
    np.testing.assert_allclose(model.fit(x[1000:], y[1000:]).coef_, slopes, atol=0.8)


def test_predictions_stay_within_the_bounds_of_responses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(users(rng, 300)[0])
    far = np.array([[1e6, 0.0, 0.0], [-1e6, 0.0, 0.0], [0.0, 1e9, 0.0]])
    for family, bounds in (("gaussian", (-2.0, 9.0)), ("poisson", (0.0, 9.0))):
        model = LocalGLM(ApproxDP(5.0, 1e-6), family=family, public=public, response_bounds=bounds, random_state=rng)
        predicted = model.fit(*users(rng, 50_000)).predict(far)
        assert ((bounds[0] <= predicted) & (predicted <= bounds[1] * (1 + 1e-9))).all()


def test_too_few_users_are_refused_with_how_many_would_do() -> None:
    schema = Schema({"x0": Numeric(-1, 1), "y": Numeric(-1, 1)})
    model = LocalGLM(ApproxDP(0.5, 1e-6), family="gaussian", schema=schema)
    with pytest.raises(InvalidInput, match=r"ask about [0-9]+ users"):
        model.plan(("x0",), 100)
    assert model.plan(("x0",), 100_000).mean_error < 0.01


def test_users_who_contradict_the_labels_are_believed(seed: int) -> None:
    """The share of ones is a half in 300 public rows and 85% among 50,000 users: predictions are about the latter."""
    rng = np.random.default_rng(seed)
    x, private = rng.normal(size=(300, 3)), rng.normal(size=(50_000, 3))
    labels = (rng.random(300) < 1 / (1 + np.exp(-x @ SLOPES))).astype(float)
    chance = 1 / (1 + np.exp(-(2 + private @ SLOPES)))
    model = LocalGLM(ApproxDP(5.0, 1e-6), public=PublicMoments.from_rows(x, labels), random_state=rng)
    found = model.fit(private, (rng.random(50_000) < chance).astype(float)).predict(private)
    assert abs(float(np.mean(found - chance))) < 0.1
