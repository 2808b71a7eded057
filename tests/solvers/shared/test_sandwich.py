"""Estimates for inference without noise: ordinary estimates with White's covariance, and the equation of the mean."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpregress import (
    GDP,
    ApproxDP,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import SeededNoiseWarning
from dpregress.estimators.results import estimates_of
from dpregress.mechanisms import SeededSampler
from dpregress.models import BinomialFamily, contrasts, probabilities
from dpregress.public.facts import PublicFacts
from dpregress.public.schema import Categorical
from dpregress.public.whitening import Start, from_public
from dpregress.releases import Estimates
from dpregress.solvers import MultinomialSteps, ScoreSteps, Solver
from dpregress.solvers.base import Unshrunk
from dpregress.solvers.shared import sandwich
from dpregress.solvers.shared.explained import Evidence
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.radius_plan import TruncationPlan, least_truncating
from dpregress.solvers.shared.sandwich import MeanEquation, gain_of, meat_share
from tests.laws import test_limits as limits
from tests.laws.spies import Silent
from tests.registry import SOLVERS
from tests.solvers.glm import test_multinomial as classes
from tests.support import missing

HUGE = GDP(1e30)


def relative(found: Matrix, right: Matrix) -> float:
    """The largest difference of two covariances, in standard errors."""
    scale = np.sqrt(np.diag(right))
    return float(np.abs((found - right) / np.outer(scale, scale)).max())


def assert_estimates(found: Estimates | None, right: Vector, covariance: Matrix, intercepts: list[int]) -> None:
    """All to 1e-6, but variances of intercepts: the mean residual's is the family's, here right to 5%."""
    assert found is not None
    assert found.cov_type == "robust"
    assert found.identified.all()
    errors = np.sqrt(np.diag(covariance))
    assert (np.abs(found.estimate - right) <= 1e-6 * errors).all()
    slopes = np.setdiff1d(np.arange(len(right)), intercepts)
    assert relative(found.sampling[np.ix_(slopes, slopes)], covariance[np.ix_(slopes, slopes)]) <= 1e-6
    assert np.diag(found.sampling)[intercepts] == pytest.approx(np.diag(covariance)[intercepts], rel=0.05)
    assert (np.diag(found.privacy) <= 1e-6 * np.diag(covariance)).all()


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """No square of a score is cut: the bound grows with the budget as far as it needs."""
    monkeypatch.setattr(sandwich, "_MOST_KAPPA", 1e9)


# ------------------------------------------------------------------ the limit without noise


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("intercept", [False, True])
def test_linear_limit_is_least_squares_with_hc0(intercept: bool, seed: int) -> None:
    """Errors of unequal variance. Deterministic up to the rows drawn."""
    try:
        from statsmodels.regression.linear_model import OLS
    except ImportError:
        missing("statsmodels")
    rng = np.random.default_rng(seed)
    x, y = limits.data(rng)
    y = y + rng.normal(size=len(x)) * (1 + np.abs(x[:, 1] - x[:, 1].mean()) / x[:, 1].std())
    public = PublicMoments.from_rows(x)
    make = next(entry.make for entry in SOLVERS if "unlabelled" in entry.make.__name__)
    solver = make(public, limits.wide(from_public(public, intercept=intercept)), len(x), HUGE, 0.0)
    found = estimates_of(solver.solve(limits.door(x, y)), len(x))
    columns = np.column_stack([np.ones(len(x)), x]) if intercept else x
    scale = columns.std(axis=0) + (columns.std(axis=0) == 0)  # of one size, for the digits of the other
    right = OLS(y, columns / scale).fit(cov_type="HC0")
    covariance = right.cov_params() / np.outer(scale, scale)
    assert_estimates(found, right.params / scale, covariance, [0] if intercept else [])


def exact(make: Callable[[PublicFacts], Solver], x: Matrix, y: Vector, intercept: bool) -> Any:
    """The solution without noise, weights and clips, on surrogate rows that are the private ones."""
    public = PublicMoments.from_rows(x)
    space = from_public(public, intercept=intercept)
    space = space.rewhitened(np.eye(space.order), 1e6)
    facts = PublicFacts(len(x), "y", Start(space, refinements=0), public, None)
    return classes.run(make(facts), x, y, HUGE.mu, Silent())[0]  # type: ignore[arg-type]  # any solver


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("intercept", [False, True])
def test_logistic_limit_is_maximum_likelihood_with_its_sandwich(intercept: bool, seed: int) -> None:
    """Of probabilities that are not logistic. Deterministic up to the rows drawn."""
    try:
        import statsmodels.api as sm
    except ImportError:
        missing("statsmodels")
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3_000, 3))
    y = (rng.random(3_000) < 0.1 + 0.8 / (1 + np.exp(-x @ [1.0, -0.5, 0.0]))).astype(float)
    solution = exact(lambda facts: ScoreSteps(facts, BinomialFamily, HUGE, 0.0, steps=(1.0,) * 60), x, y, intercept)
    columns = sm.add_constant(x) if intercept else x
    right = sm.GLM(y, columns, family=sm.families.Binomial()).fit(cov_type="HC0", tol=1e-14, maxiter=100)
    assert_estimates(estimates_of(solution, 3_000), right.params, right.cov_params(), [0] if intercept else [])


def newton(x: Matrix, y: Vector, count: int) -> tuple[Vector, Matrix]:
    """Coefficients of all classes, class by class, that sum to 0, with White's covariance: row by row."""
    basis, flags = contrasts(count), np.eye(count)[y.astype(int)]
    coef = np.zeros(x.shape[1] * (count - 1))
    for _ in range(12):
        score, squares, information = np.zeros(len(coef)), np.zeros((len(coef),) * 2), np.zeros((len(coef),) * 2)
        for row, flag in zip(x, flags, strict=True):
            odds = np.exp(basis @ (row @ coef.reshape(x.shape[1], -1)))
            chances = odds / odds.sum()
            each = np.kron(row, basis.T @ (flag - chances))
            score += each
            squares += np.outer(each, each)
            spread = basis.T @ (np.diag(chances) - np.outer(chances, chances)) @ basis
            information += np.kron(np.outer(row, row), spread)
        coef = coef + np.linalg.solve(information, score)
    bread = np.linalg.inv(information)
    turn = np.concatenate([np.kron(np.eye(x.shape[1]), row) for row in basis])
    return turn @ coef, turn @ bread @ squares @ bread @ turn.T


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("intercept", [False, True])
def test_multinomial_limit_is_maximum_likelihood_with_its_sandwich(intercept: bool, seed: int) -> None:
    """Deterministic up to the rows drawn."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(600, 2))
    y = (probabilities(x @ [[0.5, 0.2], [-0.4, 0.3]], contrasts(3)).cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
    solution = exact(lambda facts: MultinomialSteps(facts, 3, HUGE, 0.0, steps=(1.0,) * 40), x, y, intercept)
    found = estimates_of(solution, 600, ("a", "b", "c"))
    right, covariance = newton(np.column_stack([np.ones(600), x]) if intercept else x, y, 3)
    assert_estimates(found, right, covariance, [0, 3, 6] if intercept else [])
    assert found is not None
    constant = ["(intercept)"] if intercept else []
    assert found.names == tuple(f"{one}: {name}" for one in "abc" for name in [*constant, "x0", "x1"])


# ------------------------------------------------------------------ the mean residual


def equation(rng: np.random.Generator, k: int, q: int, bias: float = 0.0) -> MeanEquation:
    return MeanEquation(
        asked=rng.normal(size=q),
        value=rng.normal(size=k),
        slope=rng.normal(size=(k, q)),
        constant=rng.normal(size=(q, k)),
        privacy=0.3,
        sampling=np.eye(k) * 0.1,
        bias=bias,
    )


@pytest.mark.parametrize("bias", [0.0, 0.7])
@pytest.mark.parametrize("k", [1, 3])
def test_the_mean_equation_is_least_squares_over_intercepts(k: int, bias: float, seed: int) -> None:
    """Shifts t of the intercepts minimise ``|S c t|^2 / doubt + |g - S (b + c t - asked)|^2 / privacy``."""
    rng = np.random.default_rng(seed)
    q = 7
    mean, coef, root = equation(rng, k, q, bias), rng.normal(size=q), rng.normal(size=(q, q))
    # a residual that its variances explain; others are followed further
    mean = replace(mean, value=mean.slope @ (coef - mean.asked) + 0.3 * rng.uniform(-1, 1, size=k))
    privacy, sampling = root @ root.T, np.eye(q)
    moved, _, known = mean.applied(coef, sampling, privacy)
    doubt = np.trace(mean.slope @ privacy @ mean.slope.T) / k + bias
    across = mean.slope @ mean.constant
    rows = np.concatenate([across / np.sqrt(doubt), across / np.sqrt(mean.privacy)])
    left = (mean.value - mean.slope @ (coef - mean.asked)) / np.sqrt(mean.privacy)
    shift = np.linalg.lstsq(rows, np.concatenate([np.zeros(k), left]), rcond=None)[0]
    np.testing.assert_allclose(moved, coef + mean.constant @ shift, rtol=1e-9, atol=1e-12)
    # mean predictions are then known as two independent numbers together know them
    after = np.trace(mean.slope @ known @ mean.slope.T) / k
    assert after == pytest.approx(doubt * mean.privacy / (doubt + mean.privacy))


def test_the_mean_equation_replaces_the_sampling_error_of_mean_predictions(seed: int) -> None:
    """However little it moves the estimate: both have the errors of the same rows."""
    rng = np.random.default_rng(seed)
    mean, root = equation(rng, 2, 6), rng.normal(size=(6, 6))
    for privacy in (1e-9, 1.0, 1e9):
        _, sampling, _ = mean.applied(np.zeros(6), root @ root.T, privacy * np.eye(6))
        np.testing.assert_allclose(mean.slope @ sampling @ mean.slope.T, mean.sampling, atol=1e-9)


# ------------------------------------------------------------------ the share and the degrees of freedom


def test_the_share_is_between_its_bounds_or_nothing() -> None:
    shares = [meat_share(n, 5, GDP(1.0)) for n in (10, 100, 600, 1_000, 10_000, 10**8)]
    assert shares[0] == shares[1] == 0.0
    assert all(0.01 <= share <= 0.06 for share in shares[2:])
    assert shares[2:] == sorted(shares[2:], reverse=True)
    assert shares[-1] == 0.01


# ------------------------------------------------------------------ fits


ROWS = 5_000
NAMES = ("x0", "x1", "x2")
FEATURES = dict.fromkeys(NAMES, Numeric(-4, 4))
#: Of a response, by its model.
RESPONSES = {"linear": Numeric(-6, 6), "logistic": Numeric(0, 1)}
KINDS: dict[str, tuple[type[Any], Callable[[np.random.Generator, Vector], Vector]]] = {
    "linear": (DPLinearRegression, lambda rng, eta: eta + rng.normal(size=len(eta))),
    "logistic": (DPLogisticRegression, lambda rng, eta: (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(float)),
}


def without_noise(kind: str, mu: float, seed: int, **parameters: Any) -> tuple[Vector, Vector]:
    """Stated errors of a fit whose noise is silent, those due to privacy and in total: functions of the budget."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, 3))
    make, response = KINDS[kind]
    y = response(rng, x @ [0.5, -0.3, 0.1])
    unit = {name: parameters.pop(name) for name in ("unit", "max_rows_per_unit") if name in parameters}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        for name in ("add_gaussian", "_draw"):
            patch.setattr(SeededSampler, name, vars(Silent)[name])
        found = make(GDP(mu), random_state=0, **parameters).fit(x, y, **unit).estimates_
    return np.sqrt(np.diag(found.privacy)), np.sqrt(np.diag(found.covariance))


def assert_falling(errors: list[tuple[Vector, Vector]]) -> None:
    """Those due to privacy fall; of the total, 2% are allowed for: weights, and with them its other part, differ."""
    for (more_privacy, more), (less_privacy, less) in pairwise(errors):
        assert (less_privacy <= 1.001 * more_privacy).all()
        assert (less <= 1.02 * more).all()


FACTS: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "schema": lambda kind, _: {"schema": Schema({**FEATURES, "y": RESPONSES[kind]})},
    "unlabelled": lambda kind, seed: {
        "public": PublicMoments.from_rows(np.random.default_rng(seed + 1).normal(size=(200, 3))),
        "schema": Schema({"y": RESPONSES[kind]}),
    },
}


@pytest.mark.parametrize("facts", FACTS)
@pytest.mark.parametrize("kind", KINDS)
def test_errors_never_fall_when_the_budget_falls(kind: str, facts: str, seed: int) -> None:
    """To a half, whatever else is planned anew with it. Without noise; deterministic up to the rows drawn."""
    assert_falling([without_noise(kind, mu, seed, **FACTS[facts](kind, seed)) for mu in 2.0 ** np.arange(-5, 4)])


@pytest.mark.parametrize("kind", KINDS)
def test_errors_never_fall_when_units_may_have_more_rows(kind: str, seed: int) -> None:
    """Units of one row each, so that the rows are the same. The first error is that of records."""
    unit = np.arange(ROWS)
    facts = FACTS["schema"](kind, seed)
    found = [without_noise(kind, 2.0, seed, unit=unit, max_rows_per_unit=k, **facts) for k in (10, 5, 3, 2, 1)]
    assert_falling([*found, without_noise(kind, 2.0, seed, **facts)])


@pytest.mark.parametrize("kind", KINDS)
def test_the_sampling_covariance_of_units_is_k_times_that_of_records(kind: str, seed: int) -> None:
    """At the same noise, which k times the budget buys."""
    facts, unit = FACTS["schema"](kind, seed), np.arange(ROWS)
    privacy, total = without_noise(kind, 2.0, seed, **facts)
    for k in (2, 5):
        privacy_of_units, total_of_units = without_noise(kind, 2.0 * k, seed, unit=unit, max_rows_per_unit=k, **facts)
        np.testing.assert_allclose(privacy_of_units, privacy, rtol=1e-6)
        np.testing.assert_allclose(total_of_units**2 - privacy**2, k * (total**2 - privacy**2), rtol=1e-5)


def test_a_level_without_rows_is_not_identified(seed: int) -> None:
    """And the other coefficients are. At n mu = 20,000 rare levels of 2,000 rows are far above the noise."""
    rng = np.random.default_rng(seed)
    level = np.array(["a", "b", "c", "never"])[np.arange(20_000) % 3]
    table = {"kind": level, "age": rng.uniform(20, 80, 20_000)}
    table["y"] = 0.02 * table["age"] + (level == "b") + 0.3 * rng.normal(size=20_000)
    schema = Schema({"kind": Categorical(("a", "b", "c", "never")), "age": Numeric(20, 80), "y": Numeric(-2, 6)})
    with pytest.warns(UserWarning, match="seed"):
        model = DPLinearRegression(ApproxDP(8.0, 1e-6), schema=schema, random_state=seed).fit_table(
            pd.DataFrame(table), "y"
        )
    found = model.estimates_
    assert found is not None
    known = dict(zip(found.names, found.identified.tolist(), strict=True))
    assert [name for name, is_known in known.items() if not is_known] == ["kind=never"]


@dataclass(frozen=True, eq=False)
class Half(Evidence):
    """Two scores: one that no coefficient explains, since means saturate, and one that is linear."""

    value: Vector
    variance: float = 1e-6

    def change(self, coef: Vector) -> Vector:
        return np.array([1 - np.exp(-coef[0]), coef[1]])

    def slope(self, coef: Vector) -> Matrix:
        return np.diag([np.exp(-coef[0]), 1.0])

    def error(self, coef: Vector) -> float:  # noqa: ARG002
        return 0.0


def test_a_direction_without_a_root_does_not_take_the_others_along() -> None:
    """A level of which no row has an event: its coefficient is without end, and the covariance of all others was."""
    meat, nothing = sandwich.Meat(np.eye(2), math.inf, "model"), np.zeros((2, 2))

    def found(weak: Matrix | None) -> Unshrunk:
        return sandwich.unshrunk(
            [Half(np.array([1.1, 0.3]))], np.zeros(2), np.eye(2), meat, np.eye(2),
            n=100, mean=None, hidden=nothing, unidentified=nothing, dispersion=1.0, lost=nothing, weak=weak,
        )  # fmt: skip

    held = found(np.eye(2) / 9)
    assert held.coef[0] < 15
    assert held.privacy[0, 0] < 9.01
    assert held.coef[1] == pytest.approx(0.3, abs=1e-6)
    assert held.privacy[1, 1] == pytest.approx(1e-6, rel=1e-3)
    assert found(None).coef[0] > held.coef[0]


def test_a_direction_that_is_known_to_be_unknown_is_not_counted_twice() -> None:
    """The prior holds next to the same direction that the design leaves open: the others keep their errors."""
    meat, nothing = sandwich.Meat(np.eye(2), math.inf, "model"), np.zeros((2, 2))

    def unknown(angle: float) -> Matrix:
        along = np.array([np.cos(angle), np.sin(angle)])
        return sandwich.unshrunk(
            [Half(np.array([1.1, 0.3]))], np.zeros(2), np.eye(2), meat, np.eye(2),
            n=100, mean=None, hidden=nothing, unidentified=np.outer(along, along), dispersion=1.0, lost=nothing,
            weak=np.eye(2) / 9,
        ).unidentified  # fmt: skip

    assert np.linalg.matrix_rank(unknown(0.01), tol=1e-9) == 1
    assert unknown(0.01)[1, 1] < 0.01
    assert np.linalg.matrix_rank(unknown(0.3), tol=1e-9) == 2


@dataclass(frozen=True, eq=False)
class Straight(Evidence):
    """A linear score, asked at 0."""

    value: Vector
    variance: float = 1e-6

    def change(self, coef: Vector) -> Vector:
        return coef

    def slope(self, coef: Vector) -> Matrix:
        return np.eye(len(coef))

    def error(self, coef: Vector) -> float:  # noqa: ARG002
        return 0.0


@pytest.mark.parametrize("scores", [1, 5])
def test_what_a_clip_leaves_is_doubted_once_for_all_scores(scores: int) -> None:
    """The share .6 may be .2 or 1: estimates of all scores are off in proportion, but for what noise adds to them."""
    meat, nothing, right = sandwich.Meat(np.eye(2), math.inf, "model"), np.zeros((2, 2)), np.array([0.5, -0.2])
    told = [sandwich.ClippedEvidence(Straight(0.6 * right), 0.6)] * scores
    found = sandwich.unshrunk(
        told, np.zeros(2), np.eye(2), meat, np.eye(2),
        n=100, mean=None, hidden=nothing, unidentified=nothing, dispersion=1.0, lost=nothing,
    )  # fmt: skip
    np.testing.assert_allclose(found.coef, right)
    error = told[0].error(right)
    alone = (1e-6 + error) / (0.6**2 * scores)
    clear = 1 - 2 * alone / float(right @ right)
    np.testing.assert_allclose(found.privacy, alone * np.eye(2) + clear * (0.4 / 0.6) ** 2 * np.outer(right, right))


@pytest.mark.parametrize("make", [DPLinearRegression, DPLogisticRegression, DPPoissonRegressor])
def test_the_model_covariance_releases_nothing_more(make: type[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2_000, 3)), rng.integers(0, 2, 2_000).astype(float)
    found, schema = {}, Schema({**FEATURES, "y": Numeric(0, 1)})
    for name in ("robust", "model"):
        with pytest.warns(UserWarning, match="seed"):
            model = make(GDP(1.0), schema=schema, cov_type=name, random_state=seed).fit(x, y)
        found[name] = model
        assert model.estimates_.cov_type == name
        assert np.isfinite(model.estimates_.df) == (name == "robust")
    robust, free = (len(found[name].privacy_.events.parts) for name in ("robust", "model"))
    assert robust == free + 1


def test_a_residual_that_noise_cannot_explain_is_followed() -> None:
    """With .6 found, .05 doubted and noise of .04, the level was off; within the noise the gain is the Kalman gain."""
    longest = 1 + 4 * np.sqrt(2)
    assert gain_of(np.array([0.6]), 0.05**2, 0.04**2) == pytest.approx(1 - longest * 0.04**2 / 0.36)
    assert gain_of(np.array([0.01]), 0.05**2, 0.04**2) == pytest.approx(25 / 41)
    assert gain_of(np.array([0.01]), 0.0, 0.04**2) == 0


def test_a_residual_that_noise_may_explain_is_not_taken_for_an_error() -> None:
    """Noise is beyond two standard deviations in one fit of twenty; nearly all of it would then be in the answer."""
    known, noise = 0.01**2, 0.1**2
    for found in (0.1, 0.2, 0.255):
        assert gain_of(np.array([found]), known, noise) == pytest.approx(known / (known + noise))
        assert gain_of(np.array([found]), known, noise, biased=True) == pytest.approx(
            max(0.01, 1 - noise / found**2), 0.1
        )
    gains = [gain_of(np.array([found]), known, noise) for found in (0.2, 0.3, 0.5, 1.0, 10.0)]
    assert gains == sorted(gains)
    assert gains[-1] > 0.999
    assert gain_of(np.full(5, 0.2), known, noise) < gain_of(np.full(5, 0.3), known, noise) < 0.75


def test_the_least_truncation_that_costs_next_to_nothing() -> None:
    """Not a worse plan than is tolerated, and not the largest radius where a smaller one truncates as little."""
    plans = [
        TruncationPlan(3.0, 2.0, expected=1.00, truncated=0.20),
        TruncationPlan(5.0, 2.0, expected=1.04, truncated=0.02),
        TruncationPlan(8.0, 2.0, expected=1.08, truncated=0.019),
        TruncationPlan(20.0, 2.0, expected=2.00, truncated=0.0),
    ]
    assert least_truncating(plans, 0.1).radius == 5.0
    assert least_truncating(plans, 0.01).radius == 3.0
    assert least_truncating(plans, 2.0).radius == 20.0


@pytest.mark.parametrize("bound", [0.5, 20.0, 1e6])
def test_what_a_bound_takes_is_undone_along_every_direction(bound: float, seed: int) -> None:
    """Rows with a rare level are long and cut most; of a direction in which no row varies nothing is cut."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([np.ones(1000), rng.normal(size=1000), 15.0 * (np.arange(1000) < 4), np.zeros(1000)])
    sizes = Magnitudes.of_sample(rng.exponential(size=200))
    squares = sizes.quantiles((np.arange(64) + 0.5) / 64) ** 2
    kept = [np.minimum(squares, bound**2 / square).mean() / squares.mean() for square in np.sum(rows**2, axis=1)]
    whole, cut = rows.T @ rows / 1000, (rows * np.array(kept)[:, None]).T @ rows / 1000
    found = sandwich._uncut(rows, sizes, bound**2, 4)

    np.testing.assert_allclose(found, found.T, atol=1e-12)
    np.testing.assert_allclose(found[3], [0, 0, 0, 1], atol=1e-9)
    undone = found @ cut @ found
    if bound >= 20:  # more than a fifth is left of every direction
        np.testing.assert_allclose(undone, whole, atol=1e-3 * np.trace(whole))
    assert (np.diag(found) <= 1 / math.sqrt(0.2) + 1e-9).all()
    assert found[2, 2] >= found[1, 1] - 1e-9
    np.testing.assert_allclose(sandwich._uncut(rows, sizes, bound**2, 8), np.kron(found, np.eye(2)), atol=1e-12)
