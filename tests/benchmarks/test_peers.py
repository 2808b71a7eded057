"""The peers of the grid: right without noise, as noisy as their budget says, and tuned by public rows alone."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.peers import (
    PEERS,
    Known,
    Spend,
    Tuner,
    constant_fit,
    descent,
    perturbed,
    public_fit,
    stochastic,
    sufficient,
)
from benchmarks.subsampling import noise_of
from scipy.stats import chi2

from dpregress.baselines import least_squares, scored_fit
from dpregress.coordinates import Matrix, Vector
from dpregress.models import Family, family_of

FAMILIES = ("gaussian", "binomial", "poisson", "gamma")


def sample(rng: np.random.Generator, family: str, n: int) -> tuple[Matrix, Vector]:
    x = rng.normal(size=(n, 3)) * [1.0, 5.0, 0.2] + [0.0, 3.0, 1.0]
    mean = family_of(family).mean(0.3 + x @ [0.5, -0.1, 1.0])
    draw = {
        "gaussian": lambda: mean + rng.normal(size=n),
        "binomial": lambda: (rng.random(n) < mean).astype(float),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(2.0, mean / 2),
    }[family]
    return x, draw()


def known_of(x: Matrix, y: Vector, family: str) -> Known:
    bounds = (0.0, 1.0) if family == "binomial" else (float(y.min()), float(y.max()))
    return Known(x, y, family_of(family), np.array([5.0, 25.0, 1.0]), bounds)


def plain(x: Matrix, y: Vector, family: Family) -> Vector:
    fit = least_squares(x, y) if family.distribution.name == "gaussian" else scored_fit(x, y, family)
    return np.append(fit.coef, fit.intercept)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_public_fit_learns_and_is_near_maximum_likelihood(family: str, seed: int) -> None:
    """A public fit that were the mean for everybody would lose several times this much."""
    x, y = sample(np.random.default_rng(seed), family, 4_000)
    fit = public_fit(x, y, family_of(family))
    known = known_of(x, y, family)
    best = scored_fit(x, y, family_of(family)) if family != "gaussian" else least_squares(x, y)
    gain = known.deviance(constant_fit(x, y, family_of(family))) - known.deviance(best)
    assert known.deviance(fit) - known.deviance(best) <= 0.02 * gain


def test_a_class_of_few_public_rows_gets_its_share(seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(200, 3))
    y = np.zeros(200)
    y[:4] = 1
    fit = public_fit(x, y, family_of("binomial"))
    assert not fit.coef.any()
    assert fit.intercept == pytest.approx(np.log(4.5 / 196.5))


@pytest.mark.parametrize("start", ["zero", pytest.param("public", marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_descent_without_noise_or_clip_is_maximum_likelihood(family: str, start: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = sample(rng, family, 5_000)
    known = known_of(*sample(rng, family, 500), family)
    fit = descent(known, x, y, (start, 60, 1.0), Spend(1e9, 1e-6, 1e9), rng)
    loose = known_of(x, y, family)
    best = plain(x, y, family_of(family))
    gap = loose.deviance(fit) / loose.deviance(type(fit)(best[:-1], float(best[-1])))
    assert gap <= 1.01  # the largest public score is the clip


@pytest.mark.parametrize("steps", [3, 10])
def test_the_noise_of_descent_is_that_of_its_budget(steps: int, seed: int) -> None:
    """With y = 0 = prediction no score moves; the last of T sums has noise 2 C sqrt(T)/mu: a chi-square law, 1e-6."""
    rng = np.random.default_rng(seed)
    known = known_of(*sample(rng, "gaussian", 400), "gaussian")
    space, first = known.space("zero"), known.start("zero")
    n, spend = 10, Spend(1.0, 1e-6)
    x = np.tile(space.centre + 0.0, (n, 1))
    rows = space.rows(x)
    clip = np.quantile(
        np.abs(known.y - first.intercept) * np.linalg.norm(space.rows(known.x), axis=1), 0.5
    )  # fmt: skip
    orthogonal = np.linalg.svd(rows[:1])[2][1:]  # directions in which no private row has a score
    squares = 0.0
    for _ in range(300):
        fit = descent(known, x, np.full(n, first.intercept), ("zero", steps, 0.5), spend, rng)
        moved = orthogonal @ (space.coordinates(fit) - space.coordinates(first))
        sigma = 2 * clip * np.sqrt(steps) / (spend.mu * n) * np.sqrt(steps)  # the sum of T draws
        squares += float(np.sum((moved / sigma) ** 2))
    assert chi2.ppf(5e-7, 900) <= squares <= chi2.isf(5e-7, 900)


@pytest.mark.parametrize("copies", [1.0, 5.0])
def test_the_noise_of_a_batch_is_that_of_its_budget(copies: float, seed: int) -> None:
    """No score moves; one step of rate .3 has noise .3 c s / (q n): a chi-square law, 1e-6."""
    rng = np.random.default_rng(seed)
    known = known_of(*sample(rng, "gaussian", 400), "gaussian")
    space, first = known.space("zero"), known.start("zero")
    n, share, spend = 10, 0.1, Spend(1.0, 1e-6, copies)
    x = np.tile(space.centre + 0.0, (n, 1))
    orthogonal = np.linalg.svd(space.rows(x)[:1])[2][1:]
    sigma = 0.3 * known.clip("zero", 0.5) * noise_of(share, 1, 1.0, 1e-6) / (share * copies * n)
    squares = 0.0
    for _ in range(300):
        fit = stochastic(known, x, np.full(n, first.intercept), ("zero", share, 1, 0.3, 0.5), spend, rng)
        moved = orthogonal @ (space.coordinates(fit) - space.coordinates(first))
        squares += float(np.sum((moved / sigma) ** 2))
    assert chi2.ppf(5e-7, 900) <= squares <= chi2.isf(5e-7, 900)


def test_batches_with_little_noise_are_near_maximum_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = sample(rng, "binomial", 5_000)
    fit = stochastic(known_of(x, y, "binomial"), x, y, ("zero", 0.3, 100, 0.3, 1.0), Spend(20.0, 1e-2, 1e3), rng)
    best = plain(x, y, family_of("binomial"))
    loose = known_of(x, y, "binomial")
    assert loose.deviance(fit) <= 1.002 * loose.deviance(type(fit)(best[:-1], float(best[-1])))


def test_objective_and_adassp_without_noise_are_the_plain_fits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loud = Spend(200.0, 1e-2, 1e9)
    x, y = sample(rng, "binomial", 3_000)
    fit = perturbed(known_of(x, y, "binomial"), x, y, (0.5, 1.0), loud, rng)
    np.testing.assert_allclose(np.append(fit.coef, fit.intercept), plain(x, y, family_of("binomial")), rtol=1e-3)
    x, y = sample(rng, "gaussian", 3_000)
    fit = sufficient(known_of(x, y, "gaussian"), x, y, (1.0, 1.0), loud, rng)
    np.testing.assert_allclose(np.append(fit.coef, fit.intercept), plain(x, y, family_of("gaussian")), rtol=1e-3)


def test_columns_that_are_constant_in_public_rows_take_the_schema_scale() -> None:
    rng = np.random.default_rng(0)
    x, y = sample(rng, "gaussian", 300)
    x[:, 2] = 1.0
    space = known_of(x, y, "gaussian").space("zero")
    assert space.scale[2] == 1.0
    fit = space.pull_back(np.arange(4.0))
    np.testing.assert_allclose(space.coordinates(fit), np.arange(4.0), atol=1e-9)
    np.testing.assert_allclose(space.rows(x) @ np.arange(4.0), fit.predict(x), atol=1e-9)


def test_what_is_chosen_depends_on_public_rows_and_the_number_of_private_ones_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tuner = Tuner(known_of(*sample(rng, "binomial", 300), "binomial"), 5_000, 1e-6)
    peer = PEERS[0]
    before = tuner.chosen(peer, 1.0)
    for rows in (50, 2_000):
        tuner.fit(peer, *sample(rng, "binomial", rows), 1.0, rng)
    assert tuner.chosen(peer, 1.0) == before


def test_peers_without_labels_are_told_none(seed: int) -> None:
    """Other public responses, the same fit."""
    x, y = sample(np.random.default_rng(seed), "binomial", 300)
    private = sample(np.random.default_rng(seed + 1), "binomial", 1_000)
    for peer in (peer for peer in PEERS if peer.knows != "labelled" and "binomial" in peer.families):
        fits = [
            Tuner(known_of(x, labels, "binomial"), 1_000, 1e-6).fit(peer, *private, 1.0, np.random.default_rng(1))
            for labels in (y, 1 - y)
        ]
        assert fits[0] is not None
        assert fits[1] is not None
        np.testing.assert_array_equal(fits[0].coef, fits[1].coef)
