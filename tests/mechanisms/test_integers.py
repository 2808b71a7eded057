"""Integer messages: truncation that never grows, noise that is wide enough, and 32 bits that hold both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import chi2

from dpregress.accounting import GDP, ApproxDP, integer_gaussian_promise
from dpregress.accounting.calibrate import SMALLEST_INTEGER_SCALE, integer_slack
from dpregress.errors import UnsafeNoise
from dpregress.mechanisms import IntegerGaussian, Sampler, SecureSampler, SeededSampler
from dpregress.mechanisms.integers import sensitivity
from dpregress.models import GaussianFamily
from dpregress.queries import ClippedScore, Query, SecondMoment
from tests import registry
from tests.registry import SPACES


class Quiet(SeededSampler):
    """No noise: the value on the grid."""

    def __init__(self) -> None:
        super().__init__(np.random.default_rng(0))

    def add_integer_gaussian(self, value: np.ndarray, scale: int) -> np.ndarray:  # noqa: ARG002
        return value


def cross(space: Any) -> Query[Any]:
    return ClippedScore(space, GaussianFamily, np.zeros(space.order), space.response.bound)


QUERIES = (cross, SecondMoment)
MESSAGES = [(make, name) for make in QUERIES for name in ("plain", "intercept", "small ball", "published")]


@pytest.mark.parametrize("mu", [0.01, 0.3, 3.0])
@pytest.mark.parametrize(("make", "name"), MESSAGES)
def test_neighbours_on_the_grid(make: Any, name: str, mu: float, seed: int) -> None:
    """Extremal and tame rows: no two lie further apart than the noise is made for, and every message fits."""
    rng = np.random.default_rng(seed)
    query = make(SPACES[name](rng))
    device = IntegerGaussian.for_query(query, GDP(mu))
    assert device.scale >= SMALLEST_INTEGER_SCALE
    assert sensitivity(query, device.bits) <= mu * device.scale
    assert device.scale * mu <= 1.01 * math.ldexp(query.replacement(), device.bits)
    rows = [registry.extremal_rows(query), registry.tame_rows(rng, query.space, 60), registry.wild_rows(rng, 60)]
    values = np.concatenate([query.each(query.row_map(each)) for each in rows])
    sent = np.array([device.message(value, Quiet()) for value in values]).astype(float)
    assert pdist(sent).max() <= sensitivity(query, device.bits)
    assert (np.abs(sent) <= np.abs(np.ldexp(values, device.bits))).all(), "truncation made an entry larger"
    assert np.abs(np.ldexp(sent, -device.bits) - values).max() <= math.ldexp(1.0, -device.bits)
    assert np.abs(sent).max() + 50 * device.scale < 2**31


@pytest.mark.parametrize(
    "sampler", [pytest.param(SecureSampler(), marks=pytest.mark.nightly), None], ids=["secure", "seeded"]
)
def test_noise_has_the_scale(sampler: Sampler | None, seed: int) -> None:
    """Two-sided chi-square test of level 1e-7."""
    sampler = SeededSampler(np.random.default_rng(seed)) if sampler is None else sampler
    device, size, draws = IntegerGaussian(10, 2**22), 200, 20
    noise = np.array([device.message(np.zeros(size), sampler) for _ in range(draws)]) / 2**22
    assert noise.dtype == np.float64
    assert chi2.ppf(5e-8, size * draws) <= np.sum(noise**2) <= chi2.isf(5e-8, size * draws)


def test_what_does_not_fit_is_cut_off() -> None:
    assert IntegerGaussian(10, 2**20).message(np.array([1e9, -1e9]), Quiet()).tolist() == [2**31 - 1, -(2**31)]


def test_coarse_noise_is_refused(seed: int) -> None:
    query = cross(SPACES["plain"](np.random.default_rng(seed)))
    with pytest.raises(UnsafeNoise, match="spend less"):
        IntegerGaussian.for_query(query, GDP(1e5))
    with pytest.raises(UnsafeNoise, match="finer grid"):
        SecureSampler().add_integer_gaussian(np.zeros(3, dtype=np.int64), 0)


@pytest.mark.parametrize("size", [3, 231])
@pytest.mark.parametrize("delta", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 14.0, 16.5, 20.0, 1000.0])
def test_delta_covers_the_integers(epsilon: float, delta: float, size: int) -> None:
    """The stated delta holds with the slack of integer noise in it, or there is no promise."""
    spend = integer_gaussian_promise(ApproxDP(epsilon, delta), size)
    slack = integer_slack(epsilon, size)
    if spend is None:
        assert slack > delta / 2
    else:
        assert spend.delta(epsilon) + slack <= delta * (1 + 1e-9)
        assert spend.mu > 0.9 * ApproxDP(epsilon, delta).gaussian_mu
