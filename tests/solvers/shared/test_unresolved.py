"""Directions that a Gram matrix does not resolve: at the floor all of the bound is left, elsewhere next to nothing."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import Numeric, Schema
from dpregress.coordinates import WhitenedSpace
from dpregress.solvers.shared.gram import MixedGram
from dpregress.solvers.shared.unresolved import Way, unidentified_directions, unresolved_covariance

FLOOR, REACH, RADIUS = 0.05, 6.0, 4.0


def untold(order: int) -> Way:
    """Steps that do not tell how far they had to go."""
    return Way(np.zeros(order), 1e200 * np.eye(order))


def turned(seed: int, order: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).normal(size=(order, order)))[0])


def test_a_direction_at_the_floor_gets_the_bound_and_a_resolved_one_nothing(seed: int) -> None:
    """Over the radius the response changes by its reach, which counts as three standard deviations."""
    axes = turned(seed, 3)
    space = WhitenedSpace(("a", "b", "c"), np.eye(3), RADIUS, np.zeros(3))
    mixed = MixedGram.of((axes * [1e-4, 0.5, 1.0]) @ axes.T, FLOOR, 0.0)
    found = unresolved_covariance(space, mixed, 3, REACH, None, untold(3))
    bound = (REACH / RADIUS / 3) ** 2
    np.testing.assert_allclose(found, bound * np.outer(axes[:, 0], axes[:, 0]), atol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_each_step_leaves_a_share_along_a_resolved_direction(steps: int, seed: int) -> None:
    """``e/l`` of its way, e the norm of the noise, and never more than all of it."""
    axes, variance = turned(seed, 3), 1e-4
    values = np.array([0.02, 0.2, 1.0])
    space = WhitenedSpace(("a", "b", "c"), np.eye(3), RADIUS, np.zeros(3))
    mixed = MixedGram.of((axes * values) @ axes.T, 0.01, variance)
    found = unresolved_covariance(space, mixed, steps, REACH, None, untold(3))
    share = np.minimum(2 * np.sqrt(3 * variance) / values, 1.0) ** steps
    np.testing.assert_allclose(axes.T @ found @ axes, np.diag((share * REACH / RADIUS / 3) ** 2), atol=1e-12)


@pytest.mark.parametrize("went", [0.0, 0.3, 1e6])
def test_steps_tell_how_far_they_had_to_go_where_noise_is_small(went: float, seed: int) -> None:
    """What they went and three standard deviations, over ``1 - e/l``, if that is less; elsewhere the longer of bounds
    and what is usual decides."""
    axes, variance = turned(seed, 3), 1e-4
    values, noise = np.array([0.06, 0.2, 1.0]), 2 * np.sqrt(3e-4)
    space = WhitenedSpace(("a", "b", "c"), np.eye(3), RADIUS, np.zeros(3))
    mixed = MixedGram.of((axes * values) @ axes.T, 0.01, variance)
    way = Way(went * axes.sum(axis=1), 0.01 * np.eye(3))
    found = np.diag(axes.T @ unresolved_covariance(space, mixed, 3, REACH, None, way) @ axes)
    bound, shares = REACH / RADIUS / 3, noise / values
    told = np.minimum(bound, (went + 0.3) / (1 - shares))
    usual = max(bound, np.sqrt(max(went**2 - 0.01, 0.0)))
    expected = (shares**3 * np.where(shares > 0.5, usual, told)) ** 2
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14 * expected.max())


@pytest.mark.parametrize("intercept", [False, True])
def test_bounds_of_columns_tell_how_far_rows_reach(intercept: bool) -> None:
    """A column of a wide range says more about its slope: the response changes by its reach over that range."""
    bounds = {"a": (-2.0, 4.0), "b": (0.0, 10.0)}
    schema = Schema({name: Numeric(*pair) for name, pair in bounds.items()})
    order = 2 + intercept
    space = WhitenedSpace(tuple(bounds), np.eye(order), RADIUS, np.zeros(2), intercept)
    gram = np.diag([*[1.0] * intercept, 1e-4, 1e-4])
    found = unresolved_covariance(space, MixedGram.of(gram, FLOOR, 0.0), 3, REACH, schema, untold(order))
    expected = np.array([(REACH / furthest / 3) ** 2 for furthest in (4.0, 10.0)])
    np.testing.assert_allclose(np.diag(found)[intercept:], expected)
    np.testing.assert_allclose(found - np.diag(np.diag(found)), 0, atol=1e-12)
    assert not intercept or found[0, 0] == 0


def test_a_column_without_bounds_leaves_the_radius() -> None:
    space = WhitenedSpace(("a", "b"), np.eye(2), RADIUS, np.zeros(2))
    mixed = MixedGram.of(1e-4 * np.eye(2), FLOOR, 0.0)
    for schema in (None, Schema({"a": Numeric(-2, 4), "b": Numeric()})):
        found = unresolved_covariance(space, mixed, 3, REACH, schema, untold(2))
        np.testing.assert_allclose(found, (REACH / RADIUS / 3) ** 2 * np.eye(2))


@pytest.mark.parametrize("went", [0.0, 50.0])
def test_a_hidden_slope_may_be_as_long_as_the_others_are(went: float, seed: int) -> None:
    """Bounds far wider than rows would allow next to nothing: what resolved directions went decides if it is more."""
    axes = turned(seed, 3)
    space = WhitenedSpace(("a", "b", "c"), np.eye(3), RADIUS, np.zeros(3))
    mixed = MixedGram.of((axes * [1e-4, 0.5, 1.0]) @ axes.T, FLOOR, 0.0)
    way = Way(axes @ np.array([1e3, went, went]), 0.01 * np.eye(3))  # along the first one noise went, not the slope
    found = unresolved_covariance(space, mixed, 3, REACH, None, way)
    size = max(REACH / RADIUS / 3, np.sqrt(max(went**2 - 0.01, 0.0)))
    np.testing.assert_allclose(found, size**2 * np.outer(axes[:, 0], axes[:, 0]), atol=1e-9)


@pytest.mark.parametrize(("resolved", "unknown"), [(0, 20), (1, 20), (2, 18), (20, 0)])
def test_where_next_to_nothing_is_resolved_nothing_is_identified(resolved: int, unknown: int, seed: int) -> None:
    """Of twenty directions one alone has a slope that all others may move."""
    axes = turned(seed, 20)
    values = np.where(np.arange(20) < resolved, 1.0, 1e-4)
    found = unidentified_directions(MixedGram.of((axes * values) @ axes.T, FLOOR, 0.0))
    np.testing.assert_allclose(found @ found, found, atol=1e-9)
    assert round(float(np.trace(found))) == unknown
