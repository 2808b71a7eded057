"""The response's scale, clip and weight: the minimisers they claim to be, from public facts alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dpregress import GDP, Categorical, Numeric, Schema
from dpregress.coordinates import ResponseScale, Vector, WhitenedSpace
from dpregress.public import response
from dpregress.queries import SecondMoment
from dpregress.rows import RawRows, WhitenedRows
from tests.rows.properties import untimed


def space(radius: float = 3.0, *, intercept: bool = False) -> WhitenedSpace:
    order = 2 + intercept
    return WhitenedSpace(("a", "b"), np.eye(order), radius, np.zeros(2), intercept)


def joint_noise(*, n: int, mu: float) -> response.JointNoise:
    return lambda space: SecondMoment(space).noise(GDP(mu), n)


def labels(seed: int, size: int = 500) -> Vector:
    return np.random.default_rng(seed).standard_t(4, size=size) * 7.0


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
@untimed
def test_the_cross_weight_is_the_minimiser_it_claims(radius: float, bound: float) -> None:
    ratio = (bound / radius) ** 2

    def error(log_square: float) -> float:
        square = math.exp(log_square)
        return 2 * math.log1p(ratio * square / 2) + math.log(1 / square + 0.5)

    best = minimize_scalar(error, bounds=(-30, 30), method="bounded", options={"xatol": 1e-9})
    square = 2 * response.cross_weight(radius, bound) ** 2
    assert error(math.log(square)) <= best.fun + 1e-9
    assert ratio * square <= 2 * (1 + 1e-6)


@given(st.floats(0.1, 100), st.floats(0.1, 100), st.floats(0.2, 5.0))
@untimed
def test_predicted_noise_is_least_at_the_cross_weight(radius: float, bound: float, factor: float) -> None:
    """The prediction follows from the joint row's sensitivity ``sqrt 2 (R^2 + u^2 C^2)`` at any weight u."""

    def predicted(cross: float) -> float:
        sensitivity = math.sqrt(2) * (radius**2 + (cross * bound) ** 2)
        return 2 * (sensitivity / (0.7 * 1e4)) ** 2 * (1 / (2 * cross**2) + 0.5)

    weight = response.cross_weight(radius, bound)
    noise = response.noise_of_clip(space(radius), bound, joint_noise(n=10_000, mu=0.7))
    assert noise == pytest.approx(predicted(weight))
    assert noise <= predicted(weight * factor) * (1 + 1e-12)


def test_labels_give_centre_and_scale(seed: int) -> None:
    y = labels(seed) + 50.0
    centred = response.from_labels("y", y, space(intercept=True), joint_noise(n=10_000, mu=1.0))
    assert centred.centre == pytest.approx(y.mean())
    assert centred.scale == pytest.approx(y.std())
    plain = response.from_labels("y", y, space(), joint_noise(n=10_000, mu=1.0))
    assert plain.centre == 0.0
    assert plain.scale == pytest.approx(np.sqrt(np.mean(y**2)))
    assert plain.cross == response.cross_weight(3.0, plain.bound)


def test_the_clip_minimises_noise_plus_what_it_loses(seed: int) -> None:
    y = labels(seed)
    chosen = response.from_labels("y", y, space(), joint_noise(n=2_000, mu=0.5))
    scaled = y / chosen.scale

    def loss(bound: float) -> float:
        lost = scaled - np.clip(scaled, -bound, bound)
        noise = response.noise_of_clip(space(), bound, joint_noise(n=2_000, mu=0.5))
        return noise + np.mean(lost) ** 2 + np.mean(np.abs(lost)) ** 2

    grid = np.maximum(np.quantile(np.abs(scaled), np.linspace(0.8, 1.0, 41)), 1.0)
    assert loss(chosen.bound) == pytest.approx(min(map(loss, grid)))


def test_the_clip_grows_with_the_budget(seed: int) -> None:
    y = labels(seed)
    bounds = [
        response.from_labels("y", y, space(), joint_noise(n=10_000, mu=mu)).bound for mu in (1e-3, 0.1, 1.0, 10.0, 1e5)
    ]
    assert bounds == sorted(bounds)
    sizes = np.abs(y) / np.sqrt(np.mean(y**2))
    assert bounds[0] == pytest.approx(max(1.0, np.quantile(sizes, 0.8)))
    assert bounds[-1] == pytest.approx(sizes.max())


def test_units_of_the_response_do_not_matter(seed: int) -> None:
    y = labels(seed)
    one = response.from_labels("y", y, space(), joint_noise(n=10_000, mu=1.0))
    other = response.from_labels("y", y * 1e6, space(), joint_noise(n=10_000, mu=1.0))
    assert other.scale == pytest.approx(one.scale * 1e6)
    assert other.bound == pytest.approx(one.bound)


@pytest.mark.parametrize(("value", "scale"), [(0.0, 1.0), (25.0, 25.0), (-25.0, 25.0)])
def test_constant_labels_have_a_scale_too(value: float, scale: float) -> None:
    found = response.from_labels("y", np.full(20, value), space(intercept=True), joint_noise(n=100, mu=1.0))
    assert (found.centre, found.scale, found.bound) == (value, scale, response.DEFAULT_CLIP)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("bounds", [(0.0, 10.0), (-3.0, 100.0), (40.0, 41.0), (-5.0, -4.0)])
def test_declared_bounds_clip_nothing_within_them(intercept: bool, bounds: tuple[float, float], seed: int) -> None:
    schema = Schema({"y": Numeric(*bounds)})
    whole = space(1e6, intercept=intercept)
    found = response.from_bounds("y", schema, whole)
    assert found is not None
    y = np.concatenate([bounds, np.random.default_rng(seed).uniform(*bounds, size=50)])
    mapped = WhitenedRows(whole.with_response(found))(RawRows(np.zeros((52, 2)), y))
    np.testing.assert_allclose(mapped.y * found.scale + found.centre, y, rtol=1e-12, atol=1e-12)
    assert np.abs(mapped.y).max() == pytest.approx(found.bound)


@pytest.mark.parametrize(
    "schema", [None, Schema({}), Schema({"y": Numeric()}), Schema({"y": Categorical(("a", "b"))})], ids=repr
)
def test_without_declared_bounds_there_is_no_scale(schema: Schema | None) -> None:
    assert response.from_bounds("y", schema, space()) is None


def test_a_scaled_response_keeps_its_place() -> None:
    found = response.scaled(ResponseScale("y", 2.0, 5.0), space(4.0), 3.0)
    assert (found.name, found.centre, found.scale, found.bound) == ("y", 2.0, 5.0, 3.0)
    assert found.cross == response.cross_weight(4.0, 3.0)
