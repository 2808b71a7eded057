"""Rows far beyond the radius: fits that are wrong there are noticed and shortened, others are not."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dpregress import GDP, DPLinearRegression, Numeric, PublicMoments, Schema
from dpregress.accounting import split
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import start as public_start
from dpregress.queries import FarVotes, ScoreRemainder
from dpregress.rows import RawRows
from dpregress.solvers.linear import far_rows
from dpregress.solvers.linear.residual import Residual
from dpregress.solvers.shared.whitening import far_public_rows, without_far_rows
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


def fitted(x: np.ndarray, y: np.ndarray, way: str, seed: int, mu: float = 1.0) -> DPLinearRegression:
    schema = Schema({f"x{place}": Numeric(-150, 150) for place in range(D)} | {"y": Numeric(-400, 400)})
    given: dict[str, Any] = {
        "labelled": {"public": PublicMoments.from_rows(x[N:], y[N:])},
        "unlabelled": {"public": PublicMoments.from_rows(x[N:]), "schema": schema},
        "schema": {"schema": schema},
    }[way]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPLinearRegression(GDP(mu), random_state=seed, **given).fit(x[:N], y[:N])


@pytest.mark.parametrize("way", ["labelled", "unlabelled", "schema"])
def test_a_response_that_saturates(way: str, seed: int) -> None:
    """The fit is better than the mean for everybody, while the slopes of near rows alone have twice its error.

    400 far rows stand out of the count's noise of 14 by 28 deviations, and some 250 votes for the mean out of theirs by
    ten or more, so that the test fails with a probability below 1e-6.
    """
    x, y = table(seed, saturates=True)
    trivial = np.var(y[:N])
    assert np.mean((y[:N] - fitted(x, y, way, seed).predict(x[:N])) ** 2) < trivial
    if way == "schema":
        place = "dpregress.solvers.linear.residual"  # the remainder tells of far rows as well
        with patch(f"{place}.far_share", return_value=0.0), patch(f"{place}.remainder_share", return_value=0.0):
            near = fitted(x, y, way, seed)
        assert np.mean((y[:N] - near.predict(x[:N])) ** 2) > 1.2 * trivial


@pytest.mark.parametrize("way", ["labelled", "unlabelled", "schema"])
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

    def always(ask: Any, space: Any, gram: Any, spend: GDP | None, step: GDP, **more: Any) -> Any:
        if spend is None:
            return step, None
        far_rows.held_back(ask, space, gram, spend, step, **more)
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


def test_far_rows_are_asked_for_only_where_that_tells() -> None:
    """Deterministic."""
    assert far_rows.far_share(1_000, GDP(0.3)) == 0.0
    assert 0 < far_rows.far_share(20_000, GDP(0.3)) <= 0.05
    assert far_rows.far_share(10**9, GDP(1.0)) == 0.005
    assert far_rows.far_share(1_000, GDP(0.3), public=0.01) == 0.0
    assert far_rows.far_share(20_000, GDP(0.15), public=0.01) == 0.3
    assert far_rows.far_share(10**9, GDP(1.0), public=0.01) < 1e-9


def test_votes_by_hand() -> None:
    """Rows within the radius, far and farther rows, nearer to the fit and to the mean. Deterministic."""
    space = WhitenedSpace(("x",), np.array([[0.5]]), 2.0, np.zeros(1)).with_response(ResponseScale("y"))
    query = FarVotes(space, np.array([4.0]), 4.0, 3.0)  # the fit is 2 x, and rows are far from |x| = 4 on
    x = np.array([3.9, 4.1, 4.1, -4.1, -4.1, 11.9, 12.1, 12.1, -12.1, -12.1, 40.0, 40.0, np.nan, 5.0])
    y = np.array([0.0, 9.0, 4.0, -9.0, -4.0, 11.0, 13.0, 12.0, -13.0, -12.0, -1e9, 1e9, 0.0, np.nan])
    bounded = query.row_map(RawRows(x[:, None], y))
    assert np.asarray(query.exact(bounded)).tolist() == [2, 2, 3, 3, 3]
    assert query.replacement() == FarVotes.largest_change()
    assert (query.contribution(), query.size) == (1.0, 5)


@pytest.mark.parametrize("way", ["labelled", "unlabelled", "schema"])
def test_a_fit_with_far_rows_asks_no_more_than_it_announces(way: str, seed: int) -> None:
    """Votes and the wider remainder are two questions more than the count of far rows."""
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


def test_public_rows_that_are_far_out_do_not_set_the_radius(seed: int) -> None:
    """A few far ones dominate every direction: coordinates and radius are those of the others. Deterministic."""
    x, _ = table(seed, saturates=False)
    public = PublicMoments.from_rows(x[N:])
    start = public_start(public.names, intercept=True, public=public, schema=None, row_bound=None)
    solver = Residual(PublicFacts(N, "y", start, public, None), GDP(1.0), 0.0)
    near = np.linalg.norm(x[N:], axis=1) < 20
    second = np.cov(solver.facts.start.space.whiten(x[N:][near]).T[1:])
    assert 0.9 < np.linalg.eigvalsh(second)[0] < np.linalg.eigvalsh(second)[-1] < 1.1
    assert solver.norms.sample.max() < 8
    assert 0.003 < solver.far_public < 0.03


def test_a_rare_level_is_no_far_row() -> None:
    """Ordinary rows say nothing about its direction, so that coordinates keep it. Deterministic."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(400, 2)), np.arange(400) < 2])
    public = PublicMoments.from_rows(x)
    start = public_start(public.names, intercept=True, public=public, schema=None, row_bound=None)
    facts = PublicFacts(N, "y", start, public, None)
    assert without_far_rows(facts, far_public_rows(facts))[0] is facts


def test_the_factor_by_hand() -> None:
    """Rows are those that voted, not a sum of weights; votes for the mean within their noise do not count."""
    space = WhitenedSpace(("a", "b"), np.eye(2), 3.0, np.zeros(2)).with_response(ResponseScale("y"))
    coef, votes = np.array([2.0, 1.0]), np.array([900.0, 40.0, 30.0, 20.0, 10.0])

    def moved(mu: float) -> Any:
        answer = SimpleNamespace(total=votes)
        found = far_rows.confirmed(lambda *_: answer, space, coef, np.eye(2), GDP(mu))  # type: ignore[arg-type,return-value]
        return found.unlimited

    clear = (1000 + 50 * 40 + 900 * 20) / (1000 + 50 * 70 + 900 * 30)
    np.testing.assert_allclose(moved(10.0), (clear - 1) * coef)
    one = (1000 + 50 * 40 + 900 * 20) / (1000 + 50 * 70 + 900 * 20)
    np.testing.assert_allclose(moved(0.2), (one - 1) * coef)
    np.testing.assert_allclose(moved(0.165), 0 * coef)  # 3.5 deviations: one fit in four thousand
    np.testing.assert_allclose(moved(0.1), 0 * coef)


def test_a_public_row_that_holds_all_of_the_moment() -> None:
    """Nothing fails after the charge. Deterministic."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(34, 1)), rng.normal(size=34)
    x[0] = 1e9
    model = DPLinearRegression(GDP(1.0), public=PublicMoments.from_rows(x, y), fit_intercept=False, random_state=0)
    assert np.isfinite(model.fit(rng.normal(size=(500, 1)), rng.normal(size=500)).coef_).all()


def coded(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which .4% have a code for a missing value in place of the first column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N + M, D))
    y = x @ SLOPES + rng.normal(size=len(x))
    x[rng.permutation(N)[: N // 250], 0] = 300.0
    return x, y


@pytest.mark.parametrize("way", ["labelled", "unlabelled"])
@pytest.mark.parametrize("mu", [0.08, 1.0])
def test_codes_that_no_public_row_has_are_not_predicted_as_if_measured(way: str, mu: float, seed: int) -> None:
    """Whatever is asked about them, and though too few are far to vote at the smaller budget.

    Without a limit the error is that of 160 predictions of 300, 360 times that of the mean. With one, it would have to
    be at ten times as far as the farthest ordinary row to exceed that of the mean: 40 deviations.
    """
    x, y = coded(seed)
    model = fitted(x, y, way, seed, mu)
    assert np.mean((y[:N] - model.predict(x[:N])) ** 2) < 1.1 * np.var(y[:N])


@pytest.mark.parametrize("follows", [True, False])
def test_public_rows_tell_how_far_predictions_go(follows: bool) -> None:
    """By hand: of normal rows as far as their tail, of a far one as far as it likes if labels follow. Deterministic."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    space = WhitenedSpace(("a", "b", "c"), np.eye(3), 2.0, np.zeros(3)).with_response(ResponseScale("y"))
    known = np.array([2.0, 0.0, 0.0]), np.eye(3), None, (-1e9, 1e9)

    def reach(rows: np.ndarray, labels: np.ndarray | None, *, counted: bool = True) -> float:
        facts = SimpleNamespace(
            public=SimpleNamespace(rows=rows), trusted_labels=labels, n=10_000, response_bounds=(-1e9, 1e9)
        )
        low, high = far_rows.confirmed_reach(facts, space, *known, counted=counted)  # type: ignore[arg-type]
        assert low == -high
        return high

    assert 2 * 2 * np.sqrt(2 * np.log(10_000)) <= reach(x, None) < 40
    assert reach(x, 2 * x[:, 0]) == reach(x, None)
    assert reach(x[:50], None) == 1e9
    assert reach(x, None, counted=False) == 1e9
    far = np.vstack([x, [30.0, 0.0, 0.0]])
    assert reach(far, None) == 1e9
    assert (reach(far, np.append(2 * x[:, 0], 60.0 if follows else 0.0)) == 1e9) == follows
    tails = np.exp(0.5 * x)
    assert reach(tails, None) > 2 * np.exp(0.5 * 4)


def test_the_limit_with_the_least_error_by_hand() -> None:
    """Votes for the mean limit predictions at five deviations, and next to nothing is left of slopes elsewhere.

    Votes for both do so only if the fit's are fewer. Deterministic.
    """
    none, some = np.zeros(2), np.array([0.0, 100.0])
    assert far_rows._least_error(1.0, 10_000.0, some, none) == (1.0, np.inf)
    factor, reach = far_rows._least_error(0.1, 10_000.0, none, some)
    assert reach == 5 * factor
    assert factor == pytest.approx(10_000 / (10_000 + 25 * 100))
    plain = (10_000 + 900 * 100) / (10_000 + 900 * 110)
    assert far_rows._least_error(plain, 10_000.0, some, some / 10)[1] == np.inf
