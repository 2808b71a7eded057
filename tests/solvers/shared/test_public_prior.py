"""What labelled public rows tell: the size and shape of slopes, and a prior from however few rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpregress import GDP, DPLinearRegression, Numeric, PublicMoments, Schema
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.public.whitening import from_public, start
from dpregress.solvers.shared.linear_prior import LinearPrior, told_by_labels
from dpregress.solvers.shared.posterior import Step, Taken
from dpregress.solvers.shared.public_prior import _ODDS, PublicLabels, PublicPrior
from dpregress.solvers.shared.slope_shapes import SizedShape, shape_probabilities

ROWS, COLUMNS = 120, 30


def skewed(seed: int, n: int) -> tuple[Matrix, Vector]:
    """Log-normal columns that share one factor, and a response that follows it."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=n)
    x = np.exp(factor[:, None] + 0.3 * rng.normal(size=(n, COLUMNS)))
    return x, factor + 0.5 * rng.normal(size=n)


def whitened(x: Matrix, *, intercept: bool = True) -> WhitenedSpace:
    """The space whitened by these rows."""
    return from_public(PublicMoments.from_rows(x), intercept=intercept)


def labels_of(space: WhitenedSpace, x: Matrix, y: Vector) -> PublicLabels:
    """Without a penalty."""
    return PublicLabels.of(space, x, y, np.zeros((space.order, space.order)))


def unsized(space: WhitenedSpace, y: Vector, labels: PublicLabels | None) -> LinearPrior:
    """With slopes of 0, and a mean that may lie anywhere."""
    square = float(np.mean(y**2))
    return LinearPrior(space, np.eye(space.order), np.zeros(space.order), square, square, labels)


def prior_of(space: WhitenedSpace, x: Matrix, y: Vector) -> PublicPrior:
    """Of public rows in a space."""
    return unsized(space, y, labels_of(space, x, y)).by_labels


def test_the_prior_of_many_rows_is_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(20_000, 3))
    y = x @ [1.0, -2.0, 0.0] + rng.normal(size=len(x))
    space = whitened(x)
    design = space.whiten(x)
    prior = prior_of(space, x, y)
    np.testing.assert_allclose(prior.coef, np.linalg.lstsq(design, y, rcond=None)[0], atol=1e-3)
    covariance = prior.dispersion * np.linalg.inv(design.T @ design)
    np.testing.assert_allclose(prior.covariance, covariance, rtol=2e-3, atol=1e-6 * covariance.max())
    assert prior.dispersion == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("rows", [20, ROWS])
def test_exact_labels_are_believed(rows: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(rows, 3))
    y = x @ [1.0, 2.0, 3.0]
    space = whitened(x)
    np.testing.assert_allclose(space.slopes.T @ prior_of(space, x, y - y.mean()).coef, [1, 2, 3], atol=1e-3)


def test_odds_are_as_likely_as_normal_errors_and_rows_that_are_left_out_say(seed: int) -> None:
    """Beside dense normal densities with the likeliest variance, and a fit without each row in turn."""
    rng = np.random.default_rng(seed)
    x, m, d = rng.normal(size=(25, 4)), 25, 4
    y = x @ [1.0, 0.5, 0.0, 0.0] + rng.normal(size=m)
    labels = labels_of(whitened(x), x, y)
    rows, centred = labels.rows(labels.shapes[0]), y - y.mean()
    by_errors, by_rows = np.empty(len(_ODDS)), np.empty(len(_ODDS))
    for at, odds in enumerate(_ODDS):
        covariance = np.eye(m) + odds / d * rows @ rows.T
        variance = centred @ np.linalg.solve(covariance, centred) / m
        by_errors[at] = -m / 2 * np.log(variance) - np.linalg.slogdet(covariance)[1] / 2
        errors = []
        for out in range(m):
            inner = np.delete(np.arange(m), out)
            z, mean = rows[inner] - rows[inner].mean(axis=0), y[inner].mean()
            slopes = np.linalg.solve(z.T @ z + d / odds * np.eye(z.shape[1]), z.T @ (y[inner] - mean))
            errors.append(y[out] - mean - (rows[out] - rows[inner].mean(axis=0)) @ slopes)
        by_rows[at] = -m / 2 * np.log(np.mean(np.square(errors)))
    expected = (by_errors + by_rows) / 2 - np.log1p(_ODDS)  # log-uniform shares
    np.testing.assert_allclose(labels.odds[0].log_weight, expected, rtol=1e-6)


@pytest.mark.parametrize("rows", [30, 40, 41, 60])
def test_labels_without_a_signal_are_not_interpolated(rows: int, seed: int) -> None:
    """40 columns: fits that pass through all labels predict none of those that are left out."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(rows, 40)), rng.normal(size=rows)
    space = WhitenedSpace(tuple(f"x{i}" for i in range(40)), np.eye(41), 7.0, np.zeros(40), intercept=True)
    prior = prior_of(space, x, y)
    assert prior.dispersion > 0.3
    assert np.sum(prior.coef[1:] ** 2) < 0.8


@pytest.mark.parametrize("rounding", [0.0, 1e-13])
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_that_are_all_equal_leave_a_prior(rounding: float, intercept: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.ones((40, 3)) + rounding * rng.normal(size=(40, 3))
    order = 3 + intercept
    space = WhitenedSpace(("a", "b", "c"), np.eye(order), 2.0, np.zeros(3), intercept=intercept)
    prior = prior_of(space, x, 1 + rng.normal(size=40))
    assert np.isfinite(prior.coef).all()
    assert np.isfinite(prior.covariance).all()
    assert np.abs(prior.coef).max() < 10


def test_labels_of_rows_that_are_all_equal_are_their_mean(seed: int) -> None:
    """A fit by them ended in an overflow."""
    y = np.random.default_rng(seed).normal(size=400)
    x = np.ones((400, 2))
    schema = Schema({"x0": Numeric(0, 1 + 1e-12), "x1": Numeric(0, 1 + 1e-12), "y": Numeric(-8, 8)})
    with pytest.warns(UserWarning, match="seed"):
        model = DPLinearRegression(
            GDP(1.0), public=PublicMoments.from_rows(x[:40], y[:40]), schema=schema, random_state=seed
        ).fit(x[40:], y[40:])
    assert np.abs(model.predict(x[:1])).max() < 3


def test_where_whitening_misleads_slopes_of_standardised_columns_are_likelier() -> None:
    """Of 20 populations they are taken in some, and then lower the error; in none is it much worse."""
    ratios = []
    for turn in range(20):
        x, y = skewed(turn, ROWS)
        space, y = whitened(x), y - y.mean()
        z, w = skewed(1_000 + turn, 4_000)
        w = w - np.mean(skewed(turn, ROWS)[1])
        likelier = labels_of(space, x, y)
        usual = replace(likelier, shapes=likelier.shapes[:1])
        errors = [
            float(np.mean((w - space.whiten(z) @ unsized(space, y, each).by_labels.coef) ** 2))
            for each in (likelier, usual)
        ]
        ratios.append(errors[0] / errors[1])
    assert np.exp(np.mean(np.log(ratios))) < 0.9
    assert max(ratios) < 1.1


def test_a_column_that_public_rows_hardly_show_is_narrow_if_labels_say_so(seed: int) -> None:
    """Two rows in 200 are not 0: its slope may be three times as large as others, unless labels say more.

    Without any effect the chance of a narrow column was .04 at most in 2,000 tables; with a response that is 6 standard
    deviations larger, it was 1 but for at most 2e-8.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 3))
    x[:, 2] = 0
    x[:2, 2] = 1e-3
    space = WhitenedSpace(("a", "b", "c"), np.eye(4), 2.0, np.zeros(3), intercept=True)
    y = x[:, 0] + rng.normal(size=200)
    y[:2] = x[:2, 0]
    labels = labels_of(space, x, y)
    _, *shapes = labels.shapes
    assert len(shapes) == 2
    for shape in shapes:
        assert shape[3, 3] >= 0.09 * shape[1, 1] / 2
    assert narrow_probability(labels) < 0.25
    assert narrow_probability(labels_of(space, x, y + 6_000 * x[:, 2])) > 0.99


def narrow_probability(labels: PublicLabels) -> float:
    """Of the last shape."""
    likely = [SizedShape(odds.shape, odds.slope, odds.log_weight) for odds in labels.odds]
    return float(shape_probabilities(likely)[-1].sum())


def test_a_heavy_column_of_which_few_rows_are_not_zero_is_learnt_from_labels(seed: int) -> None:
    """Three of 60 public rows are not 0, in bounds of 140: the error is .011 times that of the mean in the median.

    In 600 tables it was .035 at most; before, it was above .5 in one table of a hundred, and up to .95.
    """
    rng = np.random.default_rng(seed)
    n, d = 60, 30
    x, new = rng.normal(size=(n, d)), rng.normal(size=(4_000, d))
    x[:, 0], new[:, 0] = 0, rng.exponential(3, 4_000) * (rng.random(4_000) < 0.05)
    x[:3, 0] = [1.7, 5.5, 1.0]
    y, truth = x[:, 1] - 3 * x[:, 0] + 0.3 * rng.normal(size=n), new[:, 1] - 3 * new[:, 0]
    names = tuple(f"x{place}" for place in range(d))
    schema = Schema({**dict.fromkeys(names, Numeric(-6, 6)), "x0": Numeric(0, 140)})
    found = start(names, intercept=True, public=PublicMoments.from_rows(x, names=names), schema=schema, row_bound=None)
    assert found.shrunk is not None
    prior = told_by_labels(found.shrunk.space, x, y - y.mean())
    error = truth - y.mean() - found.shrunk.space.whiten(new) @ prior.coef
    assert float(np.mean(error**2)) < 0.2 * float(np.var(truth))


def test_rows_that_do_not_vary_in_a_direction_are_unseen_if_there_are_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = WhitenedSpace(("a", "b", "c"), np.eye(4), 2.0, np.zeros(3), intercept=True)
    for rows, shown, unseen in ((50, 3, False), (50, 2, True), (3, 3, False)):
        x = rng.normal(size=(rows, 3))
        x[:, shown:] = 0
        assert prior_of(space, x, rng.normal(size=rows)).unseen is unseen


def test_a_clear_step_is_believed_and_a_drowned_one_is_not(seed: int) -> None:
    space = WhitenedSpace(tuple("abcdefgh"), np.eye(8), 3.0, np.zeros(8))
    prior = LinearPrior(space, np.eye(8), np.zeros(8), 8.0, 1.0)
    way = np.random.default_rng(seed).normal(size=8)
    for size, variance, believed in ((1.0, 1e-6, 1.0), (100.0, 1e4, 0.0)):
        step = Step(size * way, np.eye(8), variance)
        after = prior.after([Taken(np.zeros(8), step, 0.0, 0.0)])
        np.testing.assert_allclose(after.coef, believed * way, atol=0.1)


def test_a_fit_with_next_to_no_budget_is_no_worse_than_the_mean(seed: int) -> None:
    """With 120 public rows of 30 skewed columns the whitened fit alone has up to twice the error of the mean."""
    x, y = skewed(seed, 2_000)
    schema = Schema({**{f"x{i}": Numeric(0, 400) for i in range(COLUMNS)}, "y": Numeric(-8, 8)})
    public = PublicMoments.from_rows(x[:ROWS], y[:ROWS])
    with pytest.warns(UserWarning, match="seed"):
        model = DPLinearRegression(GDP(0.01), public=public, schema=schema, random_state=seed).fit(x[ROWS:], y[ROWS:])
    z, w = skewed(seed + 1, 4_000)
    assert np.mean((w - model.predict(z)) ** 2) < 1.05 * np.var(w)


@pytest.mark.parametrize("rows", [35, 50, 80])
def test_labels_of_fewer_rows_than_columns_are_not_lost(rows: int, seed: int) -> None:
    """40 columns, one factor: labels alone explain most of the variance, a budget of n mu = 20 next to nothing.

    Before, labels of fewer than two rows a column were ignored, and the error was about that of the mean.
    """
    rng = np.random.default_rng(seed)

    def drawn(n: int) -> tuple[Matrix, Vector]:
        factor = rng.normal(size=n)
        x = factor[:, None] + rng.normal(size=(n, 40))
        return x, factor + 0.1 * rng.normal(size=n)

    (x, y), (u, v), (z, w) = drawn(2_000), drawn(rows), drawn(4_000)
    schema = Schema({**{f"x{i}": Numeric(-9, 9) for i in range(40)}, "y": Numeric(-5, 5)})
    with pytest.warns(UserWarning, match="seed"):
        model = DPLinearRegression(
            GDP(0.01), public=PublicMoments.from_rows(u, v), schema=schema, random_state=seed
        ).fit(x, y)
    assert np.mean((w - model.predict(z)) ** 2) < 0.3 * np.var(w)
