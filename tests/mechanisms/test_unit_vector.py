"""Randomised unit vectors: unbiased, of one law on the device and in a campaign, and as private as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, chi2, ks_2samp

from dpregress.accounting import PureDP, Relation
from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.errors import NotAnswered, UnsafeNoise
from dpregress.mechanisms import Sampler, SecureSampler, SeededSampler, UnitVector
from dpregress.mechanisms.unit_vector import UNIT_BITS, _directions
from dpregress.models import GaussianFamily
from dpregress.queries import ClippedScore
from dpregress.releases import UnitMessages
from dpregress.rows import RawRows
from tests import registry

CASES = [(1.0, 1), (0.5, 2), (1.0, 4), (5.0, 6), (9.0, 8)]
DRAWS = 2_000


def query_of(order: int) -> ClippedScore:
    names = tuple(f"x{i}" for i in range(order))
    space = WhitenedSpace(names, np.eye(order), 2.0, np.zeros(order), response=ResponseScale("y", bound=1.5))
    return ClippedScore(space, GaussianFamily, np.zeros(order), 1.5)


def on_devices(epsilon: float, value: Vector, bound: float, sampler: Sampler, draws: int = DRAWS) -> Matrix:
    mechanism = UnitVector(PureDP(epsilon))
    sent = np.array([mechanism.message(value, bound, sampler) for _ in range(draws)])
    return np.ldexp(sent.astype(float), -UNIT_BITS)


def in_message_plans(epsilon: float, value: Vector, sampler: Sampler) -> Matrix:
    """Releases over one row each, of a query whose answer is ``value``, as unit vectors."""
    mechanism, query = UnitVector(PureDP(epsilon)), query_of(len(value))
    rows = registry.private(RawRows(value[None, :] / 1.5, np.array([1.5])))
    unit = query.contribution() / mechanism.cap(len(value)).gain
    each = [mechanism.release(query, rows, sampler, Relation.REPLACE_ONE).total / unit for _ in range(DRAWS)]
    return np.array(each)


def direction(order: int, rng: np.random.Generator) -> Vector:
    found = rng.normal(size=order)
    return np.asarray(found / np.linalg.norm(found))


@pytest.mark.slow
@pytest.mark.parametrize("length", [1.0, 0.4, 0.0])
@pytest.mark.parametrize(("epsilon", "order"), CASES)
def test_answers_are_unbiased(epsilon: float, order: int, length: float, seed: int) -> None:
    """Hoeffding's inequality for entries in [-1, 1]: below 1e-8 an entry."""
    rng = np.random.default_rng(seed)
    bound, sampler = query_of(order).contribution(), SeededSampler(rng)
    value = length * bound * direction(order, rng)
    gain = UnitVector(PureDP(epsilon)).cap(order).gain
    allowed = 6.2 / math.sqrt(DRAWS)
    for sent in (on_devices(epsilon, value, bound, sampler), in_message_plans(epsilon, value, sampler)):
        np.testing.assert_allclose(np.linalg.norm(sent, axis=1), 1.0, atol=1e-7)
        assert np.abs(sent.mean(axis=0) - gain * value / bound).max() <= allowed


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "order"), [(1.0, 4), (5.0, 6)])
def test_device_and_campaign_agree_in_law(epsilon: float, order: int, seed: int) -> None:
    """Cosines with the value and one coordinate across it; two tests of level 1e-8."""
    rng = np.random.default_rng(seed)
    bound, sampler = query_of(order).contribution(), SeededSampler(rng)
    along = direction(order, rng)
    across = direction(order, rng)
    across -= (across @ along) * along
    pair = (on_devices(epsilon, bound * along, bound, sampler), in_message_plans(epsilon, bound * along, sampler))
    for axis in (along, across):
        assert ks_2samp(*(sent @ axis for sent in pair)).pvalue > 1e-8


@pytest.mark.nightly
def test_the_secure_source_draws_the_same_cosines(seed: int) -> None:
    """Level 1e-8."""
    along = direction(3, np.random.default_rng(seed))
    seeded = on_devices(1.0, along, 1.0, SeededSampler(np.random.default_rng(seed)))
    secure = on_devices(1.0, along, 1.0, SecureSampler(), 1_000)
    assert ks_2samp(seeded @ along, secure @ along).pvalue > 1e-8


@pytest.mark.parametrize(("epsilon", "order"), [(0.5, 2), (1.0, 5), (2.0, 3)])
def test_an_attacker_learns_epsilon_and_no_more(epsilon: float, order: int, seed: int) -> None:
    """Opposite values, the cap of one of them: Clopper-Pearson limits of failure 1e-8 enclose e^epsilon's power."""
    rng = np.random.default_rng(seed)
    value, sampler = direction(order, rng), SeededSampler(rng)
    cap = UnitVector(PureDP(epsilon)).cap(order)
    hits = [int((on_devices(epsilon, sign * value, 1.0, sampler) @ value >= cap.gamma).sum()) for sign in (1, -1)]
    power = beta.ppf(1e-8, hits[0], DRAWS - hits[0] + 1)
    level = beta.isf(1e-8, hits[1] + 1, DRAWS - hits[1])
    assert math.log(power / level) <= epsilon
    if cap.gamma == 0 or order <= 3:  # the far cap then lies off the near one
        assert math.log(hits[0] / hits[1]) >= 0.6 * epsilon


@pytest.mark.parametrize("order", [1, 2, 7, 300])
@pytest.mark.parametrize("scaled_bound", [False, True])
def test_directions_have_length_one_at_every_scale(order: int, scaled_bound: bool, seed: int) -> None:
    """Epsilon rests on it: entries near 1e-162 square to next to nothing, and their norm with them."""
    rng = np.random.default_rng(seed)
    for power in (*range(-323, 101), -161.5, -162.5):
        values = 10.0**power * rng.normal(size=(20, order)) * 10.0 ** rng.uniform(-3, 0, size=(20, order))
        values[0], values[1, 0], values[2, 0] = 0.0, np.nan, np.inf
        bound = 10.0**power if scaled_bound and power > -300 else 1.0
        for uniform in (np.full(20, 1e-9), np.full(20, 1 - 1e-9)):
            directions = _directions(values, bound, uniform)
            assert np.abs(np.linalg.norm(directions, axis=1) - 1).max() < 1e-12
    unit = np.eye(1, order)
    for uniform, sign in ((0.4, 1.0), (0.6, -1.0)):
        np.testing.assert_array_equal(_directions(0 * unit, 1.0, np.array([uniform])), sign * unit)
        np.testing.assert_array_equal(_directions(1e-3 * unit, 1.0, np.array([uniform])), sign * unit)
        np.testing.assert_array_equal(_directions(unit, 1.0, np.array([uniform])), unit)


def test_the_stated_second_moment(seed: int) -> None:
    """Messages in all directions: the sum's entries have the stated scale, two-sided at 1e-7."""
    rng = np.random.default_rng(seed)
    order, n, repeats = 3, 400, 60
    query, mechanism = query_of(order), UnitVector(PureDP(1.0))
    rows = registry.private(RawRows(rng.normal(size=(n, order)) * 100, 1.5 * rng.choice([-1.0, 1.0], n)))
    found = [
        mechanism.release(query, rows, SeededSampler(np.random.default_rng([seed, i])), Relation.REPLACE_ONE)
        for i in range(repeats)
    ]
    noise = found[0].noise
    assert isinstance(noise, UnitMessages)
    assert found[0].events == (PureDP(1.0),)
    squares = np.sum((np.array([release.total for release in found]) - np.mean([r.total for r in found], axis=0)) ** 2)
    freedom = order * (repeats - 1)
    scaled = squares / (noise.sigma**2 * noise.private)
    # directions are spread, not even: a tenth is allowed for
    assert 0.8 * chi2.ppf(5e-8, freedom) <= scaled <= 1.2 * chi2.isf(5e-8, freedom)


def test_what_cannot_be_kept_is_refused() -> None:
    rows = registry.private(RawRows(np.zeros((2, 3)), np.zeros(2)))
    for epsilon in (1e-5, 11.0):
        with pytest.raises(UnsafeNoise, match="epsilon between"):
            UnitVector(PureDP(epsilon)).check(query_of(3), rows, Relation.REPLACE_ONE)
    with pytest.raises(NotAnswered, match="content of their row"):
        UnitVector(PureDP(1.0)).check(query_of(3), rows, Relation.ADD_REMOVE)
