"""Rows far beyond the radius: fits that are wrong there are noticed and shortened, others are not."""

from __future__ import annotations

import warnings
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dpregress import GDP, DPLinearRegression, Numeric, PublicMoments, Schema
from dpregress.accounting import split
from dpregress.queries import ScoreRemainder
from dpregress.solvers.linear import far_rows
from dpregress.solvers.linear.residual import Residual
from dpregress.trust import TrustModel

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")

N, M, D = 40_000, 400, 4
SLOPES = np.array([1.0, -0.5, 0.3, 0.0])


def table(seed: int, *, saturates: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which 1% are 30 times as far out; the response follows them or not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N + M, D))
    x[rng.random(len(x)) < 0.01] *= 30
    eta = x @ SLOPES
    return x, (np.tanh(eta) if saturates else eta) + rng.normal(size=len(x))


def fitted(x: np.ndarray, y: np.ndarray, way: str, seed: int) -> DPLinearRegression:
    schema = Schema({f"x{place}": Numeric(-150, 150) for place in range(D)} | {"y": Numeric(-400, 400)})
    given: dict[str, Any] = {
        "labelled": {"public": PublicMoments.from_rows(x[N:], y[N:])},
        "unlabelled": {"public": PublicMoments.from_rows(x[N:]), "schema": schema},
        "schema": {"schema": schema},
    }[way]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPLinearRegression(GDP(1.0), random_state=seed, **given).fit(x[:N], y[:N])


@pytest.mark.parametrize("way", ["labelled", "unlabelled", "schema"])
def test_a_response_that_saturates(way: str, seed: int) -> None:
    """The mean for everybody is hardly better, while the slopes of near rows alone have two to four times its error.

    400 far rows stand out of the count's noise of 14 by 28 deviations, and the correlation by ten or more, so that the
    test fails with a probability below 1e-6.
    """
    x, y = table(seed, saturates=True)
    trivial = np.var(y[:N])
    assert np.mean((y[:N] - fitted(x, y, way, seed).predict(x[:N])) ** 2) < 1.3 * trivial
    if way == "schema":
        place = "dpregress.solvers.linear.residual"  # the remainder tells of far rows as well
        with patch(f"{place}.count_share", return_value=0.0), patch(f"{place}.remainder_share", return_value=0.0):
            near = fitted(x, y, way, seed)
        assert np.mean((y[:N] - near.predict(x[:N])) ** 2) > 1.8 * trivial


@pytest.mark.parametrize("way", ["labelled", "schema"])
def test_a_response_that_follows_its_slopes(way: str, seed: int) -> None:
    """Nothing is shortened but by chance, and then by a few hundredths, which is within what is asserted.

    With 28 deviations of noise between this and a fit that is shortened by a fifth, it fails with a probability below
    1e-6.
    """
    x, y = table(seed, saturates=False)
    model = fitted(x, y, way, seed)
    assert np.abs(model.coef_ - SLOPES).max() < 0.1
    assert np.mean((y[:N] - model.predict(x[:N])) ** 2) < 1.5


def test_what_is_wrong_far_out_is_in_the_errors(seed: int) -> None:
    """A shortened coefficient is no more certain than it was shortened by."""
    x, y = table(seed, saturates=True)
    model = fitted(x, y, "schema", seed)
    assert model.estimates_ is not None
    error = np.sqrt(np.diag(model.estimates_.covariance))[1]
    assert error > 0.05
    assert model.conf_int(level=0.99)[1, 0] < 0.3


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scale", [0.0, 1e-80, 1.0, 1e60])
def test_questions_about_far_rows_never_fail(intercept: bool, scale: float, seed: int) -> None:
    """They are paid, so that they are asked and answered whatever the fit is, as one without slopes. Deterministic."""

    def always(ask: Any, space: Any, gram: Any, spend: Any, step: GDP) -> Any:
        if spend is None:
            return step, None
        far_rows.held_back(ask, space, gram, spend, step)
        left, *kept = split(step, (2, 1, 1))
        return left, far_rows.Kept(*kept)

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(20_200, 2))
    for y in (np.full(len(x), scale), scale * x[:, 0]):
        for public in (PublicMoments.from_rows(x[:200], y[:200]), PublicMoments.from_rows(x[:200])):
            with patch("dpregress.solvers.linear.residual.held_back", always):
                model = DPLinearRegression(GDP(1.0), fit_intercept=intercept, public=public, random_state=seed)
                model.fit(x[200:], y[200:])
            assert np.isfinite(model.coef_).all()
            assert model.privacy_.promise.mu == pytest.approx(1.0)


def test_the_count_is_asked_only_where_it_tells() -> None:
    """Deterministic."""
    assert far_rows.count_share(1_000, GDP(0.3)) == 0.0
    assert 0 < far_rows.count_share(20_000, GDP(0.3)) <= 0.05
    assert far_rows.count_share(10**9, GDP(1.0)) == 0.005


@pytest.mark.parametrize("way", ["labelled", "unlabelled", "schema"])
def test_a_fit_with_far_rows_asks_no_more_than_it_announces(way: str, seed: int) -> None:
    """The factor of the slopes and the wider remainder are three questions more than the count of far rows."""
    asked, announced = [], []
    release, solve = TrustModel.release, Residual.solve

    def released(self: TrustModel, rows: Any, query: Any, *given: Any, **more: Any) -> Any:
        asked.append(query)
        return release(self, rows, query, *given, **more)

    def solved(self: Residual, ask: Any) -> Any:
        announced.append(self.rounds)
        return solve(self, ask)

    with patch.object(TrustModel, "release", released), patch.object(Residual, "solve", solved):
        fitted(*table(seed, saturates=True), way, seed)
    assert sum(isinstance(query, ScoreRemainder) for query in asked) == 2
    assert [len(asked)] <= announced
