"""Ridge regressions of public labels: which penalty, and how they are mixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpregress import GDP, DPLinearRegression, Numeric, PublicMoments, Schema
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.public.whitening import from_public
from dpregress.solvers.linear.public_prior import best_prior, ridge_prior
from dpregress.solvers.shared.repair import standardised_penalty

ROWS, COLUMNS = 120, 30


def skewed(seed: int, n: int) -> tuple[Matrix, Vector]:
    """Log-normal columns that share one factor, and a response that follows it."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=n)
    x = np.exp(factor[:, None] + 0.3 * rng.normal(size=(n, COLUMNS)))
    return x, factor + 0.5 * rng.normal(size=n)


def known(x: Matrix, y: Vector) -> tuple[WhitenedSpace, tuple[Matrix, Vector, Vector, Matrix], Matrix]:
    """The space whitened by public rows, what both fits are given, and the penalty on standardised columns."""
    space = from_public(PublicMoments.from_rows(x), intercept=True)
    given = (space.whiten(x), y - y.mean(), space.constant, np.zeros((space.order, space.order)))
    return space, given, standardised_penalty(space, x)


def test_where_whitening_misleads_a_penalty_on_standardised_columns_predicts_better() -> None:
    """Of 20 populations it is taken in some, and then halves the error; in none is it much worse."""
    ratios = []
    for turn in range(20):
        x, y = skewed(turn, ROWS)
        space, given, shape = known(x, y)
        z, w = skewed(1_000 + turn, 4_000)
        errors = [
            float(np.mean((w - y.mean() - space.whiten(z) @ prior.coef) ** 2))
            for prior in (best_prior(*given, shape), ridge_prior(*given))
        ]
        ratios.append(errors[0] / errors[1])
    assert np.exp(np.mean(np.log(ratios))) < 0.9
    assert max(ratios) < 1.1


def test_the_best_prior_of_exact_labels_is_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, 3))
    space, given, shape = known(x, x @ [1.0, 2.0, 3.0])
    np.testing.assert_allclose(space.slopes.T @ best_prior(*given, shape).coef, [1, 2, 3], atol=1e-3)


def test_a_mixture_of_priors_is_the_whitened_one_where_scores_tell_all(seed: int) -> None:
    _, given, shape = known(*skewed(seed, ROWS))
    whitened, best = ridge_prior(*given), best_prior(*given, shape)
    for told, same in ((1.0, whitened), (0.0, best)):
        mixed = whitened.beside(best, told)
        np.testing.assert_allclose(mixed.coef, same.coef)
        np.testing.assert_allclose(mixed.covariance, same.covariance)
        np.testing.assert_allclose(mixed.residuals, same.residuals)
        assert mixed.dispersion == pytest.approx(same.dispersion)


def test_scores_tell_more_the_less_noise_they_have(seed: int) -> None:
    _, given, _ = known(*skewed(seed, ROWS))
    prior = ridge_prior(*given)
    told = [prior.told(noise) for noise in (0.0, 1e-3, 1.0, 1e3)]
    assert told == sorted(told, reverse=True)
    assert told[0] == pytest.approx(1)
    assert replace(prior, covariance=4 * prior.covariance).told(4.0) == pytest.approx(told[2])


def test_a_fit_with_next_to_no_budget_is_no_worse_than_the_mean(seed: int) -> None:
    """With 120 public rows of 30 skewed columns the whitened fit alone has up to twice the error of the mean."""
    x, y = skewed(seed, 2_000)
    schema = Schema({**{f"x{i}": Numeric(0, 400) for i in range(COLUMNS)}, "y": Numeric(-8, 8)})
    public = PublicMoments.from_rows(x[:ROWS], y[:ROWS])
    with pytest.warns(UserWarning, match="seed"):
        model = DPLinearRegression(GDP(0.01), public=public, schema=schema, random_state=seed).fit(x[ROWS:], y[ROWS:])
    z, w = skewed(seed + 1, 4_000)
    assert np.mean((w - model.predict(z)) ** 2) < 1.05 * np.var(w)
