"""Correlations, components and the agreement of sites: their algebra without noise, and their errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from dpregress.coordinates import Matrix, WhitenedSpace, svec
from dpregress.inference import (
    ReleasedCovariance,
    coefficient_heterogeneity,
    moment_estimates,
    moment_heterogeneity,
    principal_components,
)
from dpregress.releases import Isotropic, Moments
from dpregress.releases.subsets import regression_moments

D, N = 4, 4_000
NAMES = ("a", "b", "c", "d")
MIXING = np.array([[3.0, 0, 0, 0], [1.0, 1.0, 0, 0], [0.5, 0.4, 0.8, 0], [0.0, 0.3, 0.2, 0.5]])
MEAN = np.array([1.0, -2.0, 0.0, 5.0])
TRUTH = MIXING @ MIXING.T


def space() -> WhitenedSpace:
    root = np.linalg.inv(MIXING) @ (np.eye(D) + 0.1 * np.ones((D, D)))
    whitening = np.block([[np.ones((1, 1)), np.zeros((1, D))], [-(root @ (MEAN + 0.2))[:, None], root]])
    return WhitenedSpace(NAMES, whitening, 100.0, np.zeros(D), intercept=True)


def drawn(rng: np.random.Generator, sigma: float, n: int = N, mean: Matrix = MEAN) -> tuple[Moments, Matrix]:
    """Moments of normal rows with noise, and the rows."""
    rows = rng.normal(size=(n, D)) @ MIXING.T + mean
    there = space()
    joint = there.whiten(rows)
    noise = svec.unsvec(rng.normal(0.0, sigma, svec.length(D + 1)), D + 1)
    total = joint.T @ joint + noise
    return Moments((total + total.T) / 2, n, Isotropic(sigma), (), there), rows


def partial(covariance: Matrix) -> Matrix:
    precision = np.linalg.inv(covariance)
    found = -precision / np.sqrt(np.outer(np.diag(precision), np.diag(precision)))
    np.fill_diagonal(found, 1.0)
    return found


def test_without_noise_it_is_numpys(seed: int) -> None:
    moments, rows = drawn(np.random.default_rng(seed), 0.0)
    found = ReleasedCovariance.of(moments)
    np.testing.assert_allclose(found.mean, rows.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.matrix, np.cov(rows.T, bias=True), rtol=1e-8)
    np.testing.assert_allclose(found.correlations().value, np.corrcoef(rows.T), rtol=1e-8)
    np.testing.assert_allclose(found.partial_correlations().value, partial(np.cov(rows.T)), rtol=1e-8)
    parts = principal_components(found, D)
    np.testing.assert_allclose(parts.eigenvalues, np.linalg.eigvalsh(np.corrcoef(rows.T))[::-1], rtol=1e-8)
    np.testing.assert_allclose(parts.share.sum(), 1.0)
    np.testing.assert_allclose(principal_components(found, 2, correlation=False).eigenvalues,
                               np.linalg.eigvalsh(np.cov(rows.T, bias=True))[:1:-1], rtol=1e-8)  # fmt: skip
    np.testing.assert_allclose(
        found.correlations().sampling_error, (1 - np.corrcoef(rows.T) ** 2) / np.sqrt(N), atol=1e-12
    )
    assert found.keeping([2, 0]).names == ("c", "a")
    header, *lines = str(found.correlations()).splitlines()
    assert header.split() == list(found.names)
    assert [line.split()[0] for line in lines] == list(found.names)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.0, 40.0], ids=["sampling", "noise"])
def test_intervals_cover(sigma: float, seed: int) -> None:
    """250 draws, 90% intervals of 46 statistics: counts that coverages of 84% stay below less than once in 10^9.

    Failure: below 1e-7.
    """
    rng, repeats, reach = np.random.default_rng(seed), 250, norm.isf(0.05)
    correlation = TRUTH / np.sqrt(np.outer(np.diag(TRUTH), np.diag(TRUTH)))
    values, vectors = np.linalg.eigh(correlation)
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(D)])
    inside = [np.zeros((D, D)), np.zeros((D, D)), np.zeros(D), np.zeros(2), np.zeros((D, 2))]
    for _ in range(repeats):
        found = ReleasedCovariance.of(drawn(rng, sigma)[0])
        for place, (table, right) in enumerate(
            ((found.correlations(), correlation), (found.partial_correlations(), partial(TRUTH)))
        ):
            lower, upper = np.moveaxis(table.conf_int(level=0.9), -1, 0)
            inside[place] += (lower <= right + 1e-12) & (right <= upper + 1e-12)
        inside[2] += np.abs(found.mean - MEAN) <= reach * np.hypot(*found.mean_errors)
        parts = principal_components(found, 2)
        assert parts.separated.all()
        ends = parts.conf_int(level=0.9)
        inside[3] += (ends[:, 0] <= values[:1:-1]) & (values[:1:-1] <= ends[:, 1])
        inside[4] += np.abs(parts.loadings - vectors[:, :1:-1]) <= reach * parts.loading_error
    least = binom.ppf(1e-9, repeats, 0.84)
    for counts in inside:
        assert (counts >= least).all(), counts / repeats


def shortened(share: float, factor: float) -> tuple[Moments, Matrix, Matrix]:
    """Moments in which some rows, far out on one side, have been shrunk; what they fall short of; and the rows."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(N, D))
    rows[: round(share * N)] += rng.exponential(4.0, (round(share * N), 1)) * np.array([1.0, 0.5, 2.0, 0.0])
    rows = rows @ MIXING.T + MEAN
    whitened = space().whiten(rows)
    weight = np.where(np.arange(N) < share * N, factor, 1.0)
    kept, short = ((whitened * part[:, None]).T @ whitened for part in (weight**2, 1 - weight**2))
    return Moments((kept + kept.T) / 2, N, Isotropic(0.0), (), space()), (short + short.T) / (2 * N), rows


@pytest.mark.parametrize("factor", [0.3, 0.7, 1.0])
def test_errors_tell_how_far_weights_move_a_statistic(factor: float) -> None:
    """The shortfall is exact, so that errors are at least the distance to the rows' own; without weights it is 0."""
    moments, shortfall, rows = shortened(0.05, factor)
    found, plain = ReleasedCovariance.of(moments, shortfall), ReleasedCovariance.of(moments)
    correlation, precise = np.corrcoef(rows.T), partial(np.cov(rows.T))
    kinds = [(found.mean_errors[1], plain.mean_errors[1], found.mean, rows.mean(axis=0))]
    for kind, right in (("correlations", correlation), ("partial_correlations", precise)):
        table = getattr(found, kind)()
        kinds.append((table.privacy_error, getattr(plain, kind)().privacy_error, table.value, right))
    for own, before, value, right in kinds:
        assert (np.abs(value - right) <= own + 1e-9).all()
        assert (own > before).any() == (factor < 1)
    assert found.keeping([2, 0]).mean_errors[1] == pytest.approx(found.mean_errors[1][[2, 0]])
    parts, still = principal_components(found, 2), principal_components(plain, 2)
    assert (parts.eigenvalue_error >= still.eigenvalue_error).all()


@pytest.mark.parametrize("factor", [0.3, 0.7])
def test_errors_of_coefficients_tell_how_far_weights_move_them(factor: float) -> None:
    moments, shortfall, rows = shortened(0.05, factor)
    own = regression_moments(moments, "d", ("a", "b", "c"))
    found = moment_estimates(own.moments, shortfall=own.axes.T @ shortfall @ own.axes)
    full = np.column_stack([np.ones(N), rows[:, :3]])
    right = np.linalg.lstsq(full, rows[:, 3], rcond=None)[0]
    assert (np.abs(found.estimate + own.baseline - right) <= np.sqrt(np.diag(found.privacy)) + 1e-9).all()


def test_errors_of_privacy_are_those_of_the_noise(seed: int) -> None:
    """400 small noises on the same rows: mean squared ratios between chi-square quantiles at 1e-10, of 24 statistics.

    Failure: below 1e-8. The noise is so small that its second order is below a hundredth.
    """
    rng, repeats, sigma = np.random.default_rng(seed), 400, 10.0
    exact, _ = drawn(rng, 0.0)
    still = ReleasedCovariance.of(exact)
    upper = np.triu_indices(D, 1)

    def statistics(found: ReleasedCovariance) -> Matrix:
        parts = principal_components(found, 2), principal_components(found, 2, correlation=False)
        tables = found.correlations().value[upper], found.partial_correlations().value[upper]
        return np.concatenate(
            [*tables, found.mean, *(each.eigenvalues for each in parts), parts[0].loadings.ravel("F")]
        )

    noisy = replace(exact, noise=Isotropic(sigma))
    about = ReleasedCovariance.of(noisy)
    stated = replace(about, n=1e30)  # without the sampling of rows
    errors = [*(principal_components(stated, 2, correlation=how) for how in (True, False))]
    error = np.concatenate([
        about.correlations().privacy_error[upper], about.partial_correlations().privacy_error[upper],
        about.mean_errors[1], *(each.eigenvalue_error for each in errors), errors[0].loading_error.ravel("F"),
    ])  # fmt: skip
    squares = np.zeros(len(error))
    for _ in range(repeats):
        noise = svec.unsvec(rng.normal(0.0, sigma, svec.length(D + 1)), D + 1)
        moved = ReleasedCovariance.of(replace(noisy, total=exact.total + noise))
        squares += ((statistics(moved) - statistics(still)) / error) ** 2
    assert (squares > chi2.ppf(1e-10, repeats)).all(), squares / repeats
    assert (squares < chi2.isf(1e-10, repeats)).all(), squares / repeats


def test_components_that_noise_mixes_have_no_loadings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    there = WhitenedSpace(NAMES, np.eye(D + 1), 100.0, np.zeros(D), intercept=True)
    total = np.eye(D + 1) * N + svec.unsvec(rng.normal(0.0, 50.0, svec.length(D + 1)), D + 1)
    parts = principal_components(ReleasedCovariance.of(Moments(total, N, Isotropic(50.0), (), there)), 3)
    assert not parts.separated[1]
    assert np.isnan(parts.loading_error[:, ~parts.separated]).all()


# ------------------------------------------------------------------ sites


def p_values(rng: np.random.Generator, shift: float) -> tuple[float, float]:
    """Of the two tests, for three sites of which the last has another mean."""
    sites = [drawn(rng, 30.0, 2_000, MEAN + shift * (i == 2) * MIXING[:, 0])[0] for i in range(3)]
    estimates = []
    for site in sites:
        own = regression_moments(site, "d", ("a", "b", "c"))
        estimates.append(moment_estimates(own.moments))
    return moment_heterogeneity(sites).pvalue, coefficient_heterogeneity(estimates).pvalue


@pytest.mark.slow
def test_sites_that_agree_are_told_apart_as_often_as_stated(seed: int) -> None:
    """200 draws at 10%: at most the 1 - 1e-9 quantile of binomial counts at 15%, at least that of 5%; both tests."""
    rng = np.random.default_rng(seed)
    counts = np.sum([np.array(p_values(rng, 0.0)) < 0.1 for _ in range(200)], axis=0)
    assert (counts <= binom.isf(1e-9, 200, 0.15)).all(), counts
    assert (counts >= binom.ppf(1e-9, 200, 0.05)).all(), counts


def test_a_site_that_differs_is_found(seed: int) -> None:
    """A shift of a quarter of a standard deviation in 2,000 rows is eight standard errors."""
    moments, coefficients = p_values(np.random.default_rng(seed), 0.25)
    assert moments < 1e-6
    assert coefficients > 1e-9  # the regression is the same: only its rows lie elsewhere
