"""Repairs of noisy moments."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpregress.coordinates import WhitenedSpace, svec
from dpregress.releases import Entrywise, Isotropic, Moments, NoiseLaw
from dpregress.solvers.shared.repair import floored, gram_floor, noise_norm, standardised_penalty


def moments(noise: NoiseLaw, *, order: int = 4, n: int = 100) -> Moments:
    names = tuple(f"x{i}" for i in range(order))
    return Moments(n * np.eye(order), n, noise, (), WhitenedSpace(names, np.eye(order), 2.0, np.zeros(order)))


def test_eigenvalues_are_raised_and_directions_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    values = np.array([-3.0, 0.01, 0.2, 1.0, 7.0])
    repaired = floored((vectors * values) @ vectors.T, 0.1)
    np.testing.assert_allclose(repaired, (vectors * [0.1, 0.1, 0.2, 1.0, 7.0]) @ vectors.T, atol=1e-12)
    np.testing.assert_allclose(repaired, repaired.T, atol=1e-14)


def test_a_matrix_above_the_floor_is_left_alone(seed: int) -> None:
    half = np.random.default_rng(seed).normal(size=(4, 4))
    matrix = half @ half.T + np.eye(4)
    np.testing.assert_allclose(floored(matrix, 1.0), matrix, atol=1e-12)


def test_the_noise_norm_is_that_of_random_matrices(seed: int) -> None:
    """Mean of 60 spectral norms against ``sqrt(2 p) sigma / n``, which is 10 sigma / n at p = 50.

    A spectral norm is a 1-Lipschitz function of svec's normal noise, so the mean lies within 0.8 sigma / n of its
    expectation but for a probability of 2 exp(-60 * 0.8^2 / 2) < 1e-8. At p = 50 the expectation is 9.77 (3,000
    simulated draws, standard error 0.01): the formula is its limit for large p.
    """
    order, sigma, n = 50, 3.0, 7
    rng = np.random.default_rng(seed)
    draws = [svec.unsvec(rng.normal(0, sigma, svec.length(order)), order) / n for _ in range(60)]
    mean = np.mean([np.linalg.norm(draw, 2) for draw in draws])
    assert noise_norm(moments(Isotropic(sigma), order=order, n=n)) == pytest.approx(10 * sigma / n)
    assert mean * n / sigma == pytest.approx(9.77, abs=0.85)


def test_the_floor_vanishes_with_the_noise_and_is_never_below_it() -> None:
    floors = {}
    for noise in (0.0, 1e-6, 0.01, 0.1, 0.5, 30.0):
        sigma = noise * 100 / math.sqrt(8)
        found = moments(Isotropic(sigma))
        assert noise_norm(found) == pytest.approx(noise)
        floors[noise] = gram_floor(found)
        assert floors[noise] >= noise * (1 - 1e-12)
    assert floors[0.0] == 0.0
    assert floors[1e-6] < 1e-4
    assert floors[0.5] == pytest.approx(0.5)
    assert sorted(floors.values()) == list(floors.values())


def test_entrywise_noise_of_one_scale_has_the_norm_of_isotropic_noise() -> None:
    """Variance 1 on the diagonal and 1/2 beside it is what isotropic noise on svec is: equal up to the diagonal."""
    isotropic = moments(Isotropic(1.0))
    order = len(isotropic.total)
    entrywise = moments(Entrywise((np.ones((order, order)) + np.eye(order)) / 2))
    assert noise_norm(entrywise) == pytest.approx(noise_norm(isotropic), rel=0.5)
    vector = np.arange(1.0, order + 1)
    np.testing.assert_allclose(entrywise.noise.product_covariance(vector), isotropic.noise.product_covariance(vector))


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_a_penalty_of_standardised_columns_is_the_same_in_all_units_of_the_coordinates(seed: int, unit: float) -> None:
    """The columns are collinear: along one direction of the coordinates they do not vary."""
    rng = np.random.default_rng(seed)
    whitening = np.linalg.inv(np.linalg.cholesky(np.full((4, 4), 0.999) + 0.001 * np.eye(4)))
    space = WhitenedSpace(tuple("abcd"), whitening, 2.0, np.zeros(4))
    deviations, slopes = np.ones(4), rng.normal(size=4)
    other = space.rewhitened(unit * np.eye(4), 2.0)
    found = [
        float(coef @ standardised_penalty(each, deviations) @ coef)
        for each, coef in ((space, slopes), (other, slopes / unit))
    ]
    assert found[1] == pytest.approx(found[0], rel=1e-9)
