"""The secant correction of a surrogate model, and fits whose surrogate rows are a poor likeness of the private ones."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import GDP, DPLogisticRegression, Numeric, Schema
from dpregress.baselines import scored_fit
from dpregress.models import family_of
from dpregress.solvers.glm.secant import Correction


def test_a_correction_explains_the_change_that_was_found(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(5, 5))
    truth, move = root @ root.T + np.eye(5), rng.normal(size=5)
    found = Correction(np.zeros((5, 5))).updated(move, 0.1 * move, truth @ move, noise=0.0, known=0.0)
    np.testing.assert_allclose(0.1 * move + found.slope @ move, truth @ move, rtol=1e-10)
    np.testing.assert_allclose(found.slope, found.slope.T, rtol=1e-12)
    assert found.missed == pytest.approx(np.sum((truth @ move - 0.1 * move) ** 2) / np.sum((0.1 * move) ** 2))


def test_noise_and_known_errors_correct_nothing(seed):
    rng = np.random.default_rng(seed)
    move = rng.normal(size=5)
    before = Correction(np.eye(5), 0.4)
    for noise, known in ((100.0, 0.0), (0.0, 100.0)):
        after = before.updated(move, move, 2 * move, noise=noise, known=known)
        np.testing.assert_array_equal(after.slope, before.slope)
        assert after.missed == 0.2


def test_an_information_stays_definite():
    information = np.diag([1.0, 0.5])
    kept = Correction(np.diag([0.0, -0.2])).applied(information)
    np.testing.assert_array_equal(kept, np.diag([1.0, 0.3]))
    np.testing.assert_array_equal(Correction(np.diag([0.0, -0.7])).applied(information), information)


def _series(rng, n):
    """Three indicators of the economy that follow the month, in units of their own, and a class that depends on it."""
    month = rng.integers(0, 10, n)
    level = np.array([-1.8, -1.7, -2.9, 1.1, 1.4, 1.4, -0.1, 1.4, 1.1, -3.4])[month]
    x = np.column_stack(
        [
            level,
            5100 + 45 * np.tanh(level) + 20 * (month == 2) + rng.normal(size=n),
            93.5 + 0.3 * level + 0.8 * (month == 9) + 0.01 * rng.normal(size=n),
            rng.normal(size=n),
        ]
    )
    eta = -2.5 - 0.9 * level + 1.5 * (month == 2) + 0.5 * x[:, 3]
    return x, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


def _excess(mu, seed):
    rng = np.random.default_rng(seed)
    x, y = _series(rng, 30_000)
    schema = Schema({"x0": Numeric(-4, 2), "x1": Numeric(4900, 5300), "x2": Numeric(92, 96), "x3": Numeric(-6, 6)})
    with pytest.warns(UserWarning, match="seed"):
        model = DPLogisticRegression(GDP(mu), schema=schema, classes=(0, 1), random_state=seed).fit(x, y)
    family = family_of("binomial")
    mean = np.clip(model.predict_proba(x)[:, 1], 1e-12, 1 - 1e-12)
    plain = family.mean(scored_fit(x, y, family).predict(x))
    loss = [float(np.mean(family.distribution.unit_deviance(y, one))) for one in (mean, plain)]
    return loss[0] / loss[1]


def test_more_budget_never_makes_a_fit_to_collinear_series_worse(seed):
    # In 21 fits the excess was at most .003; without the correction it is .0066 in the median.
    assert np.median([_excess(3.0, [seed, turn]) for turn in range(3)]) < 1.004
