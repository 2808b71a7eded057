"""Frames: refused when they contradict themselves, and undone exactly."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpregress.coordinates import ResponseScale, Weighting, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.rows import RawRows, WhitenedRows

NAMES = ("a", "b")


def space(**changes: Any) -> WhitenedSpace:
    whitening = np.array([[1.0, 0.5, 0.0], [0.2, 2.0, 0.3], [0.0, 0.1, 0.7]])
    whitening[0] = [1.0, 0.0, 0.0]
    response = ResponseScale("y", centre=4.0, scale=2.0, bound=3.0, cross=0.5)
    return replace(WhitenedSpace(NAMES, whitening, 2.5, np.array([0.1, -0.2]), True, response), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"whitening": np.eye(2)},
        {"whitening": np.ones((3, 2))},
        {"intercept": False},
        {"fill": np.zeros(3)},
        {"features": ("a",)},
    ],
    ids=str,
)
def test_shapes_must_agree(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="needs a whitening of shape"):
        space(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"radius": 0.0},
        {"radius": -1.0},
        {"radius": math.nan},
        {"whitening": np.full((3, 3), np.nan)},
        {"whitening": np.diag([1.0, np.inf, 1.0])},
        {"fill": np.array([0.0, np.nan])},
    ],
    ids=str,
)
def test_numbers_must_be_finite(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="positive radius and finite public moments"):
        space(**changes)


def test_parts_of_the_whitening() -> None:
    whole = space()
    assert whole.order == 3
    np.testing.assert_array_equal(whole.slopes, whole.whitening[:, 1:])
    assert whole.shift is not None
    np.testing.assert_array_equal(whole.shift, whole.whitening[:, 0])
    plain = WhitenedSpace(NAMES, np.diag([1.0, 2.0]), 1.0, np.zeros(2))
    assert plain.shift is None
    np.testing.assert_array_equal(plain.slopes, plain.whitening)


def test_joint_radius() -> None:
    assert space().joint_radius == pytest.approx(math.hypot(2.5, 0.5 * 3.0))
    assert space(response=None).joint_radius == 2.5


@pytest.mark.parametrize("intercept", [True, False])
def test_pull_back_predicts_what_the_whitened_coefficients_predict(intercept: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    order = 2 + intercept
    response = ResponseScale("y", centre=4.0 if intercept else 0.0, scale=2.0, bound=1e9)
    whitening = rng.normal(size=(order, order)) + 3 * np.eye(order)
    whole = WhitenedSpace(NAMES, whitening, math.inf, np.zeros(2), intercept, response)
    x, whitened = rng.normal(size=(50, 2)), rng.normal(size=order)
    bounded = WhitenedRows(whole)(RawRows(x, None))
    coef, constant = whole.pull_back(whitened)
    predicted = response.centre + response.scale * (bounded.x @ whitened)
    np.testing.assert_allclose(x @ coef + constant, predicted, rtol=1e-9, atol=1e-9)


def test_pull_back_without_a_response_is_in_units_of_one() -> None:
    plain = WhitenedSpace(NAMES, np.diag([2.0, 3.0]), 1.0, np.zeros(2))
    coef, constant = plain.pull_back(np.ones(2))
    assert coef.tolist() == [2.0, 3.0]
    assert constant == 0.0


def test_rewhitening_multiplies_from_the_left() -> None:
    again = space().rewhitened(2 * np.eye(3), 7.0)
    np.testing.assert_array_equal(again.whitening, 2 * space().whitening)
    assert again.radius == 7.0


@pytest.mark.parametrize(
    "changes",
    [
        {"features": ("b", "a")},
        {"radius": 2.6},
        {"whitening": np.diag([1.0, 1.0, 1.0 + 1e-12])},
        {"fill": np.zeros(2)},
        {"response": None},
        {"response": ResponseScale("y", 4.0, 2.0, 3.0, 0.6)},
        {"weighting": Weighting.FEATURES},
    ],
    ids=str,
)
def test_spaces_are_the_same_in_every_part_or_not_at_all(changes: dict[str, Any]) -> None:
    assert space().same_as(space())
    assert not space().same_as(space(**changes))


@pytest.mark.parametrize("changes", [{}, {"response": None}, {"response": ResponseScale("y")}], ids=str)
def test_plain_values_go_through_json(changes: dict[str, Any]) -> None:
    record = json.loads(json.dumps(space(**changes).encode(), allow_nan=False))
    assert record["features"] == list(NAMES)
    assert record["weighting"] == "row"
    np.testing.assert_array_equal(record["whitening"], space().whitening)
