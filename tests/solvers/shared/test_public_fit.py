"""Penalised fits to labelled public rows: how likely each penalty is, how precise a fit, and where they begin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from dpregress import PublicMoments
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import BinomialFamily, Family, PoissonFamily, family_of
from dpregress.public.whitening import from_public
from dpregress.solvers.shared import public_fit
from dpregress.solvers.shared.public_fit import RIDGES, PublicFit, fit_public
from dpregress.solvers.shared.scoring import fisher_scoring
from dpregress.solvers.shared.weak_prior import WeakPrior


def fitted(x: Matrix, y: Vector, family: Family, *, weak: bool = False) -> tuple[PublicFit, WhitenedSpace]:
    public = PublicMoments.from_rows(x, y)
    space = from_public(public, intercept=True)
    gram = np.eye(space.order)
    return fit_public(public, space, family, WeakPrior.of(space, gram, None) if weak else None), space


def classes(rng: np.random.Generator, m: int, strength: float = 1.0) -> tuple[Matrix, Vector]:
    x = rng.normal(size=(m, 4))
    return x, (rng.random(m) < expit(strength * (x @ [1, -1, 0.5, 0]) - 0.5)).astype(float)


def test_penalties_are_as_likely_as_they_predict_rows_that_are_left_out(seed: int) -> None:
    """Against the definition, for penalties of ten rows and of a hundred on whitened slopes."""
    x, y = classes(np.random.default_rng(seed), 90)
    fit, space = fitted(x, y, BinomialFamily)
    z, start = fit.rows.x, (np.mean(y) * 0.98 + 0.01)
    begin = np.log(start / (1 - start)) * space.constant

    def left_out(ridge: float) -> float:
        total = 0.0
        for turn in range(5):
            out = np.arange(90) % 5 == turn
            penalty = 0.8 * ridge * np.eye(space.order)
            coef = fisher_scoring(z[~out], y[~out], BinomialFamily, begin, penalty=penalty)
            mean = expit(z[out] @ coef)
            total -= 2 * float(np.sum(np.log(np.where(y[out] == 1, mean, 1 - mean))))
        return total

    coefs = {
        ridge: fisher_scoring(z, y, BinomialFamily, begin, penalty=ridge * np.eye(space.order)) for ridge in (10, 100)
    }
    found = {
        ridge: next(each for each in fit.prior.among if np.allclose(each.mean, coef, atol=1e-9))
        for ridge, coef in coefs.items()
    }
    wanted = (left_out(100) - left_out(10)) / (2 * fit.dispersion)
    assert found[10].log_weight - found[100].log_weight == pytest.approx(wanted, abs=1e-6)
    mean = expit(z @ coefs[10])
    whole = (z * (mean * (1 - mean))[:, None]).T @ z + 10 * np.eye(space.order)
    np.testing.assert_allclose(found[10].precision, whole / (fit.dispersion * 90 / 85), rtol=1e-9, atol=1e-12)


def test_the_likeliest_penalty_makes_the_fit(seed: int) -> None:
    for family, draw in ((BinomialFamily, classes), (PoissonFamily, classes)):
        fit, _ = fitted(*draw(np.random.default_rng(seed), 200), family)
        np.testing.assert_array_equal(fit.coef, fit.prior.among[0].mean)
        np.testing.assert_array_equal(fit.precision, fit.prior.among[0].precision)
        weights = [each.log_weight for each in fit.prior.among]
        assert weights == sorted(weights, reverse=True)
        assert 1 < len(weights) <= 2 * len(RIDGES)


def test_many_rows_need_no_penalty(seed: int) -> None:
    """The fit is that of maximum likelihood, but for less than a standard deviation in each of five directions."""
    x, y = classes(np.random.default_rng(seed), 40_000)
    fit, _ = fitted(x, y, BinomialFamily)
    away = fit.coef - fisher_scoring(fit.rows.x, y, BinomialFamily, np.zeros(5))
    assert away @ fit.precision @ away < 5


def test_a_huge_amount_moves_no_intercept_that_a_penalty_holds(seed: int) -> None:
    """The mean of amounts is where slopes are 0, however far their range goes beyond it."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(200, 3)), rng.gamma(2, size=200)
    y[0] = 1_000 * y[1:].mean()
    fit, space = fitted(x, y, family_of("gamma"))
    strong = max(fit.prior.among, key=lambda each: float(np.trace(each.precision)))
    mean = np.exp(fit.rows.x @ strong.mean)
    assert float(mean.mean()) == pytest.approx(float(y.mean()), rel=0.05)
    assert space.order == 4


def test_slopes_of_separable_classes_are_not_held_back(seed: int) -> None:
    """With a weak prior of one size the largest predictors would be a third as large."""
    x, y = classes(np.random.default_rng(seed), 300, strength=400.0)
    fit, space = fitted(x, y, BinomialFamily, weak=True)
    weak = WeakPrior.of(space, np.eye(space.order), None)
    narrow = fit_public(PublicMoments.from_rows(x, y), space, BinomialFamily, replace(weak, root=30 * weak.root))
    assert np.abs(fit.rows.x @ fit.coef).max() > 2 * np.abs(narrow.rows.x @ narrow.coef).max()


def test_some_of_many_rows_judge_penalties(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The fit is to all rows: with the same penalty it is the same, and as precise."""
    x, y = classes(np.random.default_rng(seed), 4_000)
    whole, _ = fitted(x, y, BinomialFamily)
    monkeypatch.setattr(public_fit, "_JUDGES", 1_000)
    some, _ = fitted(x, y, BinomialFamily)
    assert len(some.rows.y) == len(some.residuals) == 4_000
    nearest = [min(np.abs(each.mean - other.mean).max() for other in whole.prior.among) for each in some.prior.among]
    assert min(nearest) < 1e-9
    away = some.coef - whole.coef
    assert away @ whole.precision @ away < 5
    np.testing.assert_allclose(np.trace(some.precision), np.trace(whole.precision), rtol=0.1)


@pytest.mark.parametrize("m", [10_000, 12_345, 1_000_000])
@pytest.mark.parametrize("period", [2, 3, 5, 7, 10])
def test_judges_do_not_depend_on_what_comes_in_turn(m: int, period: int) -> None:
    """As in a table of pairs of a case and a control. Deterministic: no seed can break it."""
    places = public_fit.judging(m)
    assert len(places) >= 4_900
    shares = np.bincount(places % period, minlength=period) / len(places)
    np.testing.assert_allclose(shares, 1 / period, rtol=0.1)
