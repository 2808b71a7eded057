"""Surrogate rows: they have the released Gram matrix, and their constant is a constant."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import Categorical, Numeric, PublicMoments, Schema
from dpregress.models import BinomialFamily
from dpregress.public.whitening import from_public, start
from dpregress.solvers.shared.likely_rows import likely_rows
from dpregress.solvers.shared.repair import floored
from dpregress.solvers.shared.surrogate import surrogate_rows


@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("rows", ["public rows", "normal rows", "likely rows"])
def test_the_constant_stays_a_constant_whatever_the_noise(rows: str, noise: float, seed: int) -> None:
    """The predictor of the constant is 1 in each row, and the rows have the Gram matrix.

    Recoloured with the other columns it would vary over rows, and so would the means of a model without slopes.
    """
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(rng.exponential(size=(200, 3)) @ rng.normal(size=(3, 3)) + 5)
    space = from_public(public, intercept=True)
    assert public.rows is not None
    white = space.whiten(public.rows)
    weighted = white * space.weights(white)[:, None]
    error = rng.normal(size=(4, 4))
    gram = floored(weighted.T @ weighted / len(weighted) + noise * (error + error.T) / 2, 0.05)
    schema = Schema({name: Numeric(-40, 50) for name in space.features}) if rows == "likely rows" else None
    found = surrogate_rows(space, public if rows == "public rows" else None, gram, schema)
    np.testing.assert_allclose(found.predictor(space.constant), 1.0, rtol=1e-9)
    assert (found.weight > 0).all()
    np.testing.assert_allclose(found.x.T @ found.x / len(found.x) + found.unseen, gram, rtol=0, atol=1e-6 * (1 + noise))
    np.testing.assert_allclose(found.unseen, 0, atol=1e-6 * (1 + noise))


def test_without_noise_public_rows_are_their_own_surrogates(seed: int) -> None:
    public = PublicMoments.from_rows(np.random.default_rng(seed).normal(size=(200, 3)) + 1)
    space = from_public(public, intercept=True)
    assert public.rows is not None
    white = space.whiten(public.rows)
    weighted = white * space.weights(white)[:, None]
    found = surrogate_rows(space, public, weighted.T @ weighted / len(weighted))
    np.testing.assert_allclose(found.x, weighted, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.weight, space.weights(white), rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scales", [(1e-6, 1.0, 1e9), (1e-30, 1.0, 1e30)])
def test_normal_rows_have_the_gram_matrix_in_any_units(scales: tuple[float, ...], intercept: bool, seed: int) -> None:
    """Columns far apart in scale cost no digits: nothing is decomposed in original units."""
    rng = np.random.default_rng(seed)
    schema = Schema({f"x{i}": Numeric(-scale, scale) for i, scale in enumerate(scales)})
    space = start(("x0", "x1", "x2"), intercept=intercept, public=None, schema=schema, row_bound=None).space
    space = space.rewhitened(np.eye(space.order) + 0.2 * rng.normal(size=(space.order, space.order)), space.radius)
    error = rng.normal(size=(space.order, space.order))
    gram = error @ error.T + 0.1 * np.eye(space.order)
    found = surrogate_rows(space, None, gram)
    np.testing.assert_allclose(found.x.T @ found.x / len(found.x), gram, atol=1e-9)
    if intercept:
        np.testing.assert_allclose(found.predictor(space.constant), 1.0, rtol=1e-9)


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9, 1e12])
def test_rows_far_from_where_they_were_whitened(distance: float, seed: int) -> None:
    """Their weights are tiny, and their spread is small beside their moment: neither is a difference."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, 2))
    space = from_public(PublicMoments.from_rows(rows), intercept=True)
    for _ in range(20):
        turned = space.rewhitened(np.linalg.qr(rng.normal(size=(3, 3)))[0], space.radius)
        found = surrogate_rows(turned, PublicMoments.from_rows(rows + distance), np.eye(3))
        np.testing.assert_allclose(found.predictor(turned.constant), 1.0, rtol=1e-9)
        np.testing.assert_allclose(found.weight, 1.0, rtol=1e-2)


def test_likely_rows_have_the_shapes_that_bounds_and_moments_imply(seed: int) -> None:
    """Indicators are 0 or 1, and an amount whose mean is near its lower bound is skewed; moments are kept."""
    schema = Schema({"g": Categorical(("a", "b")), "amount": Numeric(0, 100), "age": Numeric(0, 100)})
    names = ("g=b", "amount", "age")
    normal = np.random.default_rng(seed).normal(size=(20_000, 3))
    mean, variance = np.array([0.03, 2.0, 50.0]), np.array([0.03 * 0.97, 60.0, 100.0])
    rows = likely_rows(schema, names, normal, mean, variance)
    assert set(np.unique(rows[:, 0])) == {0.0, 1.0}
    assert (rows >= 0).all()
    assert (rows <= 100).all()
    away = np.abs(rows.mean(axis=0) - mean) / np.sqrt(variance / len(rows))
    assert away.max() < 6  # each with a probability of 2e-9 or less, beside what quantiles are rounded by
    np.testing.assert_allclose(rows.var(axis=0)[1:], variance[1:], rtol=0.2)
    assert np.mean(rows[:, 1] < 0.1) > 0.5
    assert abs(np.median(rows[:, 2]) - 50) < 1


def test_a_likely_row_has_one_level_of_a_column(seed: int) -> None:
    """At most one indicator of a categorical column is 1; frequencies are right to six deviations (2e-9 each)."""
    levels = ("a", "b", "c", "d", "e")
    schema = Schema({"g": Categorical(levels), "x": Numeric(0, 1), "h": Categorical(("u", "v", "w"))})
    names = ("g=b", "g=c", "g=d", "g=e", "x", "h=v", "h=w")
    mean, root = np.array([0.1, 0.3, 0.001, 0.5, 0.5, 0.02, 0.6]), np.linalg.cholesky(0.4 * np.eye(7) + 0.6)
    normal = np.random.default_rng(seed).normal(size=(40_000, 7)) @ root.T
    rows = likely_rows(schema, names, normal, mean, np.full(7, 0.05))
    for places in ([0, 1, 2, 3], [5, 6]):
        assert set(np.unique(rows[:, places].sum(axis=1))) <= {0.0, 1.0}
        spread = np.sqrt(mean[places] * (1 - mean[places]) / len(rows))
        assert (np.abs(rows[:, places].mean(axis=0) - mean[places]) < 6 * spread).all()


def test_likely_rows_have_informations_closer_to_those_of_indicators(seed: int) -> None:
    """An indicator of one row in fifty with a large effect: normal rows misstate what its rows tell."""
    rng = np.random.default_rng(seed)
    x = (rng.random((20_000, 2)) < [0.02, 0.5]).astype(float)
    schema = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1)})
    space = from_public(PublicMoments.from_rows(x), intercept=True)
    space = space.rewhitened(np.eye(3), 100.0)
    white = space.whiten(x)
    coef = np.linalg.solve(space.whitening.T, [-4.0, 4.0, 1.0])
    exact = (white * BinomialFamily.information(white @ coef)[:, None]).T @ white / len(x)
    found = []
    for known in (schema, None):
        rows = surrogate_rows(space, None, white.T @ white / len(x), known)
        ratio = np.linalg.eigvals(np.linalg.solve(exact, rows.information(BinomialFamily, coef))).real
        found.append(float(np.abs(np.log(ratio)).max()))
    assert found[0] < 0.2 < 0.4 < found[1]


def test_means_at_their_ends_tell_nothing_and_shorten_steps(seed: int) -> None:
    """A third of the predictors are beyond 30, the range of a logit: what they tell is nothing, not the usual."""
    x = np.random.default_rng(seed).normal(size=(3_000, 2))
    rows = surrogate_rows(
        from_public(PublicMoments.from_rows(x), intercept=False), PublicMoments.from_rows(x), np.eye(2)
    )
    steep = np.array([20.0, 0.0])
    weights = BinomialFamily.information(rows.predictor(steep))
    assert 0.2 < np.mean(np.abs(rows.predictor(steep)) > 30) < 0.4
    exact = (rows.x * weights[:, None]).T @ rows.x / len(x)
    np.testing.assert_allclose(rows.information(BinomialFamily, steep, sure=True), exact, atol=1e-9)
    assert rows.information(BinomialFamily, steep)[0, 0] > 20 * exact[0, 0]  # so that a step too far is no longer one
