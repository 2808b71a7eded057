"""Without noise and truncation the answer is scikit-learn's, whatever public matrix whitened the rows."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from dpregress import PublicMoments
from dpregress.accounting import GDP, MemoryLedger
from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.mechanisms import Sampler, SeededSampler
from dpregress.public.whitening import from_public
from dpregress.queries import SecondMoment
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers import solve_moments
from dpregress.trust import Central, Session
from tests.laws.spies import Silent
from tests.registry import ESTIMATORS, SOLVERS, EstimatorEntry, SolverEntry

#: Relative error of a whole fit.
CLOSE = 1e-8
ROWS, COLUMNS = 400, 4
#: No row and no response comes near these.
RADIUS, BOUND = 1e6, 1e6
#: At this mu the stated noise is far below rounding, so that no solver repairs what it sees.
HUGE = GDP(1e30)
#: The same for a fit, whose radius grows with it.
HUGE_FIT = GDP(1e12)

LINEAR_SOLVERS = [entry for entry in SOLVERS if entry.linear]

Fit = tuple[Vector, float]


def data(rng: np.random.Generator) -> tuple[Matrix, Vector]:
    """Correlated columns of different scale away from zero, and a response that is not quite linear."""
    turn, _ = np.linalg.qr(rng.normal(size=(COLUMNS, COLUMNS)))
    mixing = np.diag(10.0 ** np.arange(-2, COLUMNS - 2)) @ (turn * np.geomspace(0.2, 1.0, COLUMNS))
    x = rng.normal(size=(ROWS, COLUMNS)) @ mixing.T + rng.normal(size=COLUMNS)
    return x, x @ rng.normal(size=COLUMNS) + 3.0 + rng.exponential(size=ROWS)


def public_rows(x: Matrix, rng: np.random.Generator, ratio: float = 1.0) -> PublicMoments:
    """Public rows like the private ones, but ``ratio`` times wider in some direction, with huge labels."""
    mean = x.mean(axis=0)
    root = np.linalg.cholesky(np.cov(x.T))
    turn, _ = np.linalg.qr(rng.normal(size=(COLUMNS, COLUMNS)))
    stretched = np.linalg.solve(root, (x - mean).T).T @ (turn * np.geomspace(1.0, ratio, COLUMNS)) @ turn.T
    return PublicMoments.from_rows(stretched @ root.T + mean, np.tile([-BOUND, BOUND], len(x) // 2))


def door(x: Matrix, y: Vector, sampler: Sampler | None = None) -> Session:
    reservation = MemoryLedger(HUGE).reserve(HUGE)
    return Session(Central(), PrivateRows(ArraySource(x, y)), sampler or Silent(), reservation)


def wide(space: WhitenedSpace) -> WhitenedSpace:
    return space.rewhitened(np.eye(space.order), RADIUS)


def expected(x: Matrix, y: Vector, alpha: float, intercept: bool) -> Fit:
    model: Any = Ridge(alpha=alpha, fit_intercept=intercept, solver="svd") if alpha else None
    model = (model or LinearRegression(fit_intercept=intercept)).fit(x, y)
    return model.coef_, float(model.intercept_)


def assert_close(found: Fit, right: Fit, x: Matrix) -> None:
    """Coefficients in units of their columns, so that each counts alike."""
    scale = x.std(axis=0)
    size = np.linalg.norm(right[0] * scale)
    assert np.linalg.norm((found[0] - right[0]) * scale) <= CLOSE * size, f"{found[0]} is not {right[0]}"
    assert math.isclose(found[1], right[1], rel_tol=CLOSE, abs_tol=CLOSE * (size + np.abs(x.mean(axis=0) @ right[0])))


def check_moments(alpha: float, intercept: bool, seed: int) -> None:
    """One joint second moment, solved and pulled back."""
    rng = np.random.default_rng(seed)
    x, y = data(rng)
    space = wide(from_public(public_rows(x, rng), intercept=intercept))
    space = space.with_response(ResponseScale("y", 2.0 * intercept, 7.0, BOUND, 0.3))
    moments = door(x, y)(SecondMoment(space), HUGE)
    coef, _ = solve_moments(moments, alpha=alpha)
    assert_close(space.pull_back(coef), expected(x, y, alpha, intercept), x)


def check_solver(entry: SolverEntry, alpha: float, intercept: bool, seed: int) -> None:
    """Each solver in the limit."""
    rng = np.random.default_rng(seed)
    x, y = data(rng)
    public = public_rows(x, rng)
    solver = entry.make(public, wide(from_public(public, intercept=intercept)), ROWS, HUGE, alpha)
    solution = solver.solve(door(x, y))
    assert_close(solution.space.pull_back(solution.whitened), expected(x, y, alpha, intercept), x)


def check_missing_responses(entry: SolverEntry, alpha: float, seed: int) -> None:
    """Rows without a response count nowhere: the answer is that of the complete rows."""
    rng = np.random.default_rng(seed)
    x, y = data(rng)
    missing = (x[:, 0] > np.quantile(x[:, 0], 0.6)) & (rng.random(ROWS) < 0.9)
    public = public_rows(x, rng)
    solver = entry.make(public, wide(from_public(public, intercept=True)), ROWS, HUGE, alpha)
    solution = solver.solve(door(x, np.where(missing, np.nan, y)))
    assert_close(solution.space.pull_back(solution.whitened), expected(x[~missing], y[~missing], alpha, True), x)


def check_missing_in_fits(entry: EstimatorEntry, seed: int) -> None:
    """The same of whole fits, whatever is public: a table with gaps gives the fit of its complete rows.

    Also with rows beyond the radius and clips that bite: standard errors are those of the complete rows too.
    """
    rng = np.random.default_rng(seed)
    x, y = entry.data(rng)
    missing = (x[:, 0] > 0.2) & (rng.random(len(x)) < 0.9)
    facts = entry.facts(rng)
    fits = []
    for rows, answers in ((x, np.where(missing, np.nan, y)), (x[~missing], y[~missing])):
        with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
            fits.append(entry.kind(HUGE_FIT, **facts).fit(rows, answers))
    gaps, complete = (np.append(np.ravel(fit.coef_), fit.intercept_) for fit in fits)
    np.testing.assert_allclose(gaps, complete, rtol=0, atol=CLOSE * float(np.linalg.norm(complete)))
    errors = [np.ravel(fit.coefficients_.standard_error) for fit in fits]
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-6)


def check_public_matrix(entry: SolverEntry, ratio: float, seed: int) -> None:
    """Two public matrices, one of them off by ``ratio`` in some direction, and one answer."""
    rng = np.random.default_rng(seed)
    x, y = data(rng)
    fits = []
    for factor in (1.0, ratio):
        public = public_rows(x, rng, factor)
        solver = entry.make(public, wide(from_public(public, intercept=True)), ROWS, HUGE, 0.7)
        solution = solver.solve(door(x, y))
        fits.append(solution.space.pull_back(solution.whitened))
    assert_close(fits[1], fits[0], x)


def check_small_noise(intercept: bool, seed: int) -> None:
    """Noise that is drawn, and too small to matter: no step of the way rounds or clamps the answer."""
    rng = np.random.default_rng(seed)
    x, y = data(rng)
    space = from_public(public_rows(x, rng), intercept=intercept).rewhitened(np.eye(COLUMNS + intercept), 100.0)
    space = space.with_response(ResponseScale("y", 0.0, float(np.abs(y).max()), 1.0, 10.0))
    budget = GDP(1e15)
    reservation = MemoryLedger(budget).reserve(budget)
    ask = Session(Central(), PrivateRows(ArraySource(x, y)), SeededSampler(rng), reservation)
    coef, _ = solve_moments(ask(SecondMoment(space), budget), alpha=0.0)
    assert_close(space.pull_back(coef), expected(x, y, 0.0, intercept), x)


def check_budget_of_solver(entry: SolverEntry, seed: int) -> None:
    """A solver draws all of its budget in no more rounds than it announces."""
    rng = np.random.default_rng(seed)
    x, y = data(rng)
    public = public_rows(x, rng)
    solver = entry.make(public, wide(from_public(public, intercept=True)), ROWS, HUGE, 1.0)
    ask = door(x, y)
    solver.solve(ask)
    assert len(ask.reservation.drawn.parts) <= solver.rounds  # some questions hang on earlier answers
    assert math.isclose(ask.reservation.drawn.mu, HUGE.mu, rel_tol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 300.0])
def test_moments(alpha: float, intercept: bool, seed: int) -> None:
    """Deterministic: no seed can break it."""
    check_moments(alpha, intercept, seed)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 300.0])
@pytest.mark.parametrize("entry", LINEAR_SOLVERS, ids=str)
def test_solver(entry: SolverEntry, alpha: float, intercept: bool, seed: int) -> None:
    """Deterministic: no seed can break it."""
    check_solver(entry, alpha, intercept, seed)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 300.0])
@pytest.mark.parametrize("entry", LINEAR_SOLVERS, ids=str)
def test_missing_responses(entry: SolverEntry, alpha: float, seed: int) -> None:
    """Deterministic: no seed can break it."""
    check_missing_responses(entry, alpha, seed)


@pytest.mark.parametrize("entry", [entry for entry in ESTIMATORS if "paper" not in entry.setting], ids=str)
def test_missing_in_fits(entry: EstimatorEntry, seed: int) -> None:
    """Deterministic: no seed can break it. The paper's radius follows from n: test_missing_responses has its solver."""
    check_missing_in_fits(entry, seed)


@pytest.mark.parametrize("ratio", [0.01, 3.0, 100.0])
@pytest.mark.parametrize("entry", LINEAR_SOLVERS, ids=str)
def test_public_matrix(entry: SolverEntry, ratio: float, seed: int) -> None:
    """Deterministic: no seed can break it."""
    check_public_matrix(entry, ratio, seed)


@pytest.mark.parametrize("intercept", [False, True])
def test_small_noise(intercept: bool, seed: int) -> None:
    """The noise is below 1e-9 of the totals by six standard deviations and more."""
    check_small_noise(intercept, seed)


@pytest.mark.parametrize("entry", SOLVERS, ids=str)
def test_budget_of_solver(entry: SolverEntry, seed: int) -> None:
    """Deterministic: no seed can break it."""
    check_budget_of_solver(entry, seed)
