"""Noise with a scale for every entry: sums, what is no law, and what it says of coefficients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.inference import privacy_covariance
from dpregress.releases import Entrywise, Isotropic, Moments, NoiseLaw
from dpregress.solvers.shared.repair import noise_norm
from tests.registry import NOISE_LAWS


def moments(noise: Entrywise | Isotropic, order: int = 4) -> Moments:
    names = tuple(f"x{i}" for i in range(order - 1))
    space = WhitenedSpace(
        names, np.eye(order - 1), math.inf, np.zeros(order - 1), response=ResponseScale("y", cross=0.7)
    )
    return Moments(np.eye(order), 10, noise, (), space)


def as_entries(sigma: float, order: int = 4) -> Entrywise:
    """Isotropic noise on svec, said entry by entry."""
    return Entrywise.of_scales(np.where(np.eye(order, dtype=bool), sigma, sigma / math.sqrt(2)))


def test_isotropic_noise_said_by_entries(seed: int) -> None:
    """The same covariance of coefficients, and a spectral norm within the diagonal's share."""
    rng = np.random.default_rng(seed)
    coef, system = rng.normal(size=3), np.diag(rng.uniform(1, 2, size=3))
    one, other = moments(Isotropic(0.3)), moments(as_entries(0.3))
    assert np.allclose(privacy_covariance(one, coef, system), privacy_covariance(other, coef, system), rtol=1e-12)
    assert noise_norm(one) <= noise_norm(other) <= 1.2 * noise_norm(one)


def test_covariance_of_coefficients(seed: int) -> None:
    """Against 20,000 drawn matrices: squares along three directions, 10 standard deviations of their mean wide."""
    rng = np.random.default_rng(seed)
    sigma = rng.uniform(0.1, 1.0, size=(4, 4))
    law = Entrywise.of_scales((sigma + sigma.T) / 2)
    release = moments(law)
    coef = rng.normal(size=3)
    covariance = privacy_covariance(release, coef, np.eye(3))
    draws = rng.normal(size=(20_000, 4, 4)) * law.sigma
    upper = np.triu(draws)
    noise = upper + np.transpose(np.triu(draws, 1), (0, 2, 1))
    direction = np.append(coef, -1 / 0.7)
    error = (noise @ direction)[:, :3] / 10
    for side in np.eye(3):
        expected = float(side @ covariance @ side)
        assert abs(np.mean((error @ side) ** 2) / expected - 1) < 10 * math.sqrt(2 / 20_000)
    assert np.allclose(covariance, covariance.T)


def test_sums() -> None:
    law = as_entries(3.0) + as_entries(4.0)
    assert np.allclose(law.sigma, as_entries(5.0).sigma)
    for other in (Isotropic(1.0), as_entries(1.0, order=3)):
        with pytest.raises(TypeError):
            _ = law + other


@pytest.mark.parametrize("sigma", [[[1.0, 2.0], [3.0, 1.0]], [[-1.0]], [[math.nan]]])
def test_what_is_no_law(sigma: list[list[float]]) -> None:
    with pytest.raises(InvalidInput):
        Entrywise.of_scales(np.array(sigma))


@pytest.mark.parametrize("law", NOISE_LAWS, ids=lambda law: type(law).__name__)
def test_every_law(law: NoiseLaw, seed: int) -> None:
    """Covariances are symmetric, have no negative eigenvalue, add up over sums and are cut with their rows."""
    vector = np.random.default_rng(seed).normal(size=3)
    covariance = law.product_covariance(vector)
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() >= -1e-12 * np.trace(covariance)
    np.testing.assert_allclose((law + law).product_covariance(vector), 2 * covariance)
    np.testing.assert_allclose((law + law).spectral_norm(3), math.sqrt(2) * law.spectral_norm(3))
    part = np.append(vector[:2], 0.0)  # what the third row and column hold is not met
    np.testing.assert_allclose(
        law.cut([0, 1]).product_covariance(vector[:2]), law.product_covariance(part)[:2, :2], rtol=1e-9
    )
    for other in NOISE_LAWS:
        if type(other) is not type(law):
            with pytest.raises(TypeError):
                law + other
