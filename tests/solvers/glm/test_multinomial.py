"""Multinomial steps: what they ask at which share, and their limit without noise, which is statsmodels' fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from dpregress import GDP, DPLogisticRegression, MemoryLedger, Numeric, PublicMoments, Schema
from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import Sampler, SeededSampler
from dpregress.models import contrasts, probabilities
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import Start, from_public, start
from dpregress.queries import (
    ClassRemainder,
    MeanClassResidual,
    MultinomialScore,
    Query,
    ResponseHistogram,
    ScoreSquares,
    SecondMoment,
)
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers import MultinomialSteps, Solution
from dpregress.solvers.glm.multinomial import SurrogateClasses, of_classes
from dpregress.solvers.glm.score_loop import ModelledScore
from dpregress.solvers.glm.softmax_fit import softmax_information, softmax_scoring
from dpregress.solvers.shared.explained import FixedPrior, explain
from dpregress.solvers.shared.surrogate import surrogate_rows
from dpregress.trust import Central, Session
from tests.laws.spies import Silent
from tests.solvers.glm.asked import without_wider
from tests.support import kinds, missing

NAMES = ("x0", "x1", "x2")
CLASSES = 4


def data(rng: np.random.Generator, n: int, intercept: bool = True) -> tuple[Matrix, Vector]:
    """Correlated columns of different units, and classes of unequal shares."""
    mixing = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]]) * [1.0, 10.0, 0.1]
    x = rng.uniform(-1, 1, size=(n, 3)) @ mixing
    coef = np.array([[0.5, -0.05, 2.0], [0.4, 0.1, -4.0], [-1.0, 0.05, 5.0]])
    chances = probabilities(x @ coef.T + np.array([0.3, -0.5, 0.8]) * intercept, contrasts(CLASSES))
    y = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return x, np.minimum(y, CLASSES - 1).astype(float)


def run(
    solver: MultinomialSteps, x: Matrix, y: Vector, mu: float, sampler: Sampler
) -> tuple[Solution, list[tuple[Query[Any], Event]]]:
    door = Session(Central(), PrivateRows(ArraySource(x, y)), sampler, MemoryLedger(GDP(mu)).reserve(GDP(mu)))
    asked: list[tuple[Query[Any], Event]] = []

    def ask(query: Query[Any], spend: Event) -> Any:
        asked.append((query, spend))
        return door(query, spend)

    return solver.solve(ask), asked


S, G, R, Q, M = SecondMoment, MultinomialScore, ClassRemainder, ScoreSquares, MeanClassResidual
H = ResponseHistogram


def without_labels(before: list[float], start: float) -> list[float]:
    """The shares of the classes' histogram, of what is asked before four scores, of these, and of what follows."""
    left = 1 - sum(before) - 0.11
    whole = [*before, *[left / 6] * 3, 0.05, left / 2, 0.01, 0.05]
    return [start, *((1 - start) * share for share in whole)]


#: Public rows, labelled, intercept; queries and shares of mu^2.
SETTINGS: dict[str, tuple[int, bool, bool, list[type[Query[Any]]], list[float]]] = {
    "labelled": (200, True, True, [S, G, G, R, G, Q, M], [0.15, 0.185, 0.185, 0.05, 0.37, 0.01, 0.05]),
    "labelled, no intercept": (200, True, False, [S, G, G, R, G, Q], [0.15, 0.1975, 0.1975, 0.05, 0.395, 0.01]),
    "unlabelled": (200, False, True, [H, S, G, G, G, R, G, Q, M], without_labels([0.15], 0.13)),
    "few public rows": (14, True, True, [H, S, S, G, G, G, R, G, Q, M], without_labels([0.1, 0.15], 0.12)),
    "no public rows": (
        0,
        False,
        True,
        [H, S, S, S, S, G, G, G, R, G, Q, M],
        without_labels([0.1, 0.1, 0.1, 0.15], 0.13),
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_rounds_and_shares(setting: str, seed: int) -> None:
    rows, labelled, intercept, queries, shares = SETTINGS[setting]
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(*data(rng, rows)) if rows else None
    if public is not None and not labelled:
        public = public.unlabelled()
    found = start(NAMES, intercept=intercept, public=public, schema=None, row_bound=60.0)
    solver = MultinomialSteps(PublicFacts(4_000, "y", found, public, None), CLASSES, GDP(2.0), 0.0)
    solution, asked = run(solver, *data(rng, 4_000), 2.0, SeededSampler(rng))
    asked = without_wider(asked)
    assert kinds(asked) == queries
    assert solver.rounds == len(queries) + 1
    np.testing.assert_allclose([spend.mu**2 / 4 for _, spend in asked], shares)
    assert np.isfinite(solution.whitened).all()


def limit(alpha: float, intercept: bool, x: Matrix, y: Vector) -> tuple[Matrix, Vector]:
    """The fit without noise, weights and clips, as many private rows as count nothing for the prior."""
    public = PublicMoments.from_rows(x)
    space = from_public(public, intercept=intercept)
    space = space.rewhitened(np.eye(space.order), 1e6)
    facts = PublicFacts(len(x), "y", Start(space, refinements=0), public, None)
    mu = 1e30
    solver = MultinomialSteps(facts, CLASSES, GDP(mu), alpha, steps=(1.0,) * 40)
    each = of_classes(run(solver, x, y, mu, Silent())[0], CLASSES)
    coef, constants = zip(*(one.space.pull_back(one.whitened) for one in each), strict=True)
    return np.array(coef), np.array(constants)


@pytest.mark.parametrize("intercept", [False, True])
def test_limit_is_maximum_likelihood(intercept: bool, seed: int) -> None:
    """Deterministic up to the rows drawn; classes overlap, so that the maximum exists."""
    try:
        from statsmodels.discrete.discrete_model import MNLogit
    except ImportError:
        missing("statsmodels")
    x, y = data(np.random.default_rng(seed), 3_000)
    coef, constants = limit(0.0, intercept, x, y)
    columns = np.column_stack([np.ones(len(x)), x]) if intercept else x
    # against class 0, in columns of one scale: Newton's method in the units of x stops early
    scale = np.abs(columns).max(axis=0)
    right = MNLogit(y, columns / scale).fit(method="newton", maxiter=100, disp=0, tol=1e-14).params.T / scale
    found = np.column_stack([constants, coef]) if intercept else coef
    np.testing.assert_allclose((found[1:] - found[0]) * scale, right * scale, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=0) * scale, 0, atol=1e-9)


@pytest.mark.parametrize("alpha", [1.0, 100.0])
def test_limit_with_a_penalty_is_scikit_learns(alpha: float, seed: int) -> None:
    """The mean residual moves the intercept only, to where the penalised one is: mean probabilities are right there."""
    x, y = data(np.random.default_rng(seed), 3_000)
    coef, constants = limit(alpha, True, x, y)
    right = LogisticRegression(C=1 / alpha, tol=1e-6, max_iter=10_000, solver="newton-cg").fit(x, y)
    right_coef, right_constants = polished(right.coef_, right.intercept_, alpha, x, y)
    scale = x.std(axis=0)
    np.testing.assert_allclose(coef * scale, (right_coef - right_coef.mean(axis=0)) * scale, rtol=0, atol=1e-6)
    np.testing.assert_allclose(constants, right_constants - right_constants.mean(), rtol=0, atol=1e-6)


def polished(coef: Matrix, constants: Vector, alpha: float, x: Matrix, y: Vector) -> tuple[Matrix, Vector]:
    """scikit-learn's answer to the last digit: its own line search stops where the loss no longer changes."""
    scale = x.std(axis=0)
    columns, flags = np.column_stack([np.ones(len(x)), x / scale]), np.eye(CLASSES)[y.astype(int)]
    start = np.column_stack([constants - constants.mean(), coef * scale])

    def gradient(flat: Vector) -> Vector:
        b = flat.reshape(start.shape)
        slope = (softmax(columns @ b.T, axis=1) - flags).T @ columns
        slope[:, 1:] += alpha * b[:, 1:] / scale**2
        slope[:, 0] += b[:, 0].sum()  # the constants' sum is free
        return np.asarray(slope.ravel() / len(x))

    end = root(gradient, start.ravel(), tol=1e-12).x.reshape(start.shape)
    np.testing.assert_allclose(end, start, rtol=0, atol=1e-3)
    return end[:, 1:] / scale, end[:, 0]


class Scripted(Sampler):
    """Answers that do not depend on the rows: what comes after can only come from public facts and answers."""

    seeded = True

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def _draw(self, value: Vector, sigma: float) -> Vector:  # noqa: ARG002 - the rows have no say
        return self._rng.normal(size=len(value)) * 100


@pytest.mark.parametrize("labelled", [False, True])
def test_every_choice_is_public_or_released(labelled: bool, seed: int) -> None:
    """With the same answers two tables are asked the same questions."""
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(*data(rng, 200))
    public = public if labelled else public.unlabelled()
    found = start(NAMES, intercept=True, public=public, schema=None, row_bound=None)
    asked = []
    for scale in (1.0, 1e3):
        x, y = data(rng, 500)
        solver = MultinomialSteps(PublicFacts(500, "y", found, public, None), CLASSES, GDP(1.0), 0.1)
        asked.append(run(solver, x * scale, y, 1.0, Scripted(seed))[1])
    for (one, spent), (other, also) in zip(*asked, strict=True):
        assert type(one) is type(other)
        assert math.isclose(spent.mu, also.mu)
        assert one.space.same_as(other.space)
        for name in ("coef", "clip"):
            np.testing.assert_array_equal(getattr(one, name, 0), getattr(other, name, 0))


def test_scoring_on_public_rows_with_a_class_that_none_has(seed: int) -> None:
    """Its predictor is low and finite."""
    x, y = data(np.random.default_rng(seed), 300)
    y[y == 3] = 0
    coef = softmax_scoring(x / x.std(axis=0), y, np.zeros((3, 3)), penalty=np.eye(9))
    assert np.isfinite(coef).all()


def test_the_noise_of_shares_is_that_of_usable_rows(seed: int) -> None:
    """Nine rows of ten have no class: shares of the tenth have ten times the noise, by which they are shrunk."""
    x, y = data(np.random.default_rng(seed), 20_000)
    hidden = np.where(np.arange(len(y)) % 10, np.nan, y)
    known, fewer = (released_variance(x, labels, seed) for labels in (y, hidden))
    assert fewer == pytest.approx(100 * known, rel=0.1)


def released_variance(x: Matrix, y: Vector, seed: int) -> float:
    """Of the shares of classes, which nothing public tells."""
    found = start(NAMES, intercept=True, public=None, schema=None, row_bound=60.0)
    solver = MultinomialSteps(PublicFacts(len(y), "y", found, None, None), CLASSES, GDP(2.0), 0.0)
    rows, ledger = PrivateRows(ArraySource(x, y)), MemoryLedger(GDP(2.0))
    return solver._shares(
        Session(Central(), rows, SeededSampler(np.random.default_rng(seed)), ledger.reserve(GDP(2.0)))
    ).variance


def test_a_step_follows_the_curve_of_the_expected_score(seed: int) -> None:
    """What explains a score changes the surrogate rows' mean score by just that; the Newton step is far off."""
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(*data(rng, 200)).unlabelled()
    found = start(NAMES, intercept=True, public=public, schema=None, row_bound=60.0)
    rows, basis, coef = surrogate_rows(found.space, public, np.eye(4)), contrasts(CLASSES), np.zeros((4, CLASSES - 1))
    before = probabilities(rows.predictor(coef), basis)
    system = softmax_information(rows.x, before, basis) / len(rows.x)
    goal = rng.normal(size=coef.shape)  # of coefficients that far away
    after = probabilities(rows.predictor(goal), basis)
    change = rows.x.T @ (rows.weight[:, None] * ((after - before) @ basis)) / len(rows.x)
    step = np.linalg.solve(system, change.ravel())
    model = SurrogateClasses(found.space, rows, np.eye(4 * (CLASSES - 1)), basis, 4_000, 0.0)
    score = ModelledScore.of(model, coef.ravel(), change.ravel(), 1e-12, system)
    vague = FixedPrior(coef.ravel(), np.zeros_like(system))
    moved = explain([score], vague, coef.ravel(), lambda move: move).coef
    np.testing.assert_allclose(moved, goal.ravel(), atol=1e-3)
    assert np.linalg.norm(step - goal.ravel()) > 10 * np.linalg.norm(moved - goal.ravel())


# ---------------------------------------------------------------- models that are wrong


def folded(rng: np.random.Generator, rows: int) -> tuple[Matrix, Vector]:
    """A fiftieth of the rows is far out along the first column, where its slopes have another sign."""
    x, far = rng.normal(size=(rows, 3)), rng.random(rows) < 0.02
    x[far, 0] = rng.choice([-1, 1], far.sum()) * (8 + rng.normal(size=far.sum()))
    first = np.where(far, -0.5, 1.0) * x[:, 0]
    predictors = np.column_stack([first, -first, 0.5 * x[:, 1]])
    return x, (predictors + rng.gumbel(size=predictors.shape)).argmax(axis=1).astype(float)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_estimates_of_a_wrong_model_are_the_ordinary_ones(seed: int) -> None:
    """Without a remainder the slopes of the first column were missed by several standard errors.

    The median of nine standard normal numbers has a standard deviation of about .41: it exceeds 2.5 with a probability
    below 1e-8, and of twelve coefficients the largest one below 2e-7.
    """
    rng = np.random.default_rng(seed)
    x, y = folded(rng, 200_000)
    coef = softmax_scoring(np.column_stack([np.ones(len(x)), x]), y, np.zeros((4, 2))) @ contrasts(3).T
    schema, missed = Schema({name: Numeric(-12, 12) for name in ("x0", "x1", "x2")}), []
    for _ in range(9):
        model = DPLogisticRegression(GDP(1.0), schema=schema, classes=(0, 1, 2), random_state=rng)
        found = model.fit(*folded(rng, 10_000)).estimates_
        missed.append((found.estimate - coef.T.ravel()) / np.sqrt(np.diag(found.covariance)))
    assert (np.abs(np.median(missed, axis=0)) < 2.5).all()


@pytest.mark.parametrize("wrong", [True, False])
def test_where_a_model_is_wrong_a_wider_remainder_is_asked(wrong: bool, seed: int) -> None:
    """A quarter of the last score's cost pays for it. Of a right model chance can call for it: its draws are fixed."""
    rng = np.random.default_rng(seed if wrong else 1)
    x, y = folded(rng, 10_000)
    if not wrong:
        x = rng.normal(size=x.shape)
        y = (np.outer(x[:, 0], [1.0, -1.0, 0.0]) + rng.gumbel(size=x.shape)).argmax(axis=1).astype(float)
    public = PublicMoments.from_rows(rng.normal(size=(200, 3)))
    found = start(NAMES, intercept=True, public=public, schema=None, row_bound=60.0)
    solver = MultinomialSteps(PublicFacts(10_000, "y", found, public, None), CLASSES, GDP(3.0), 0.0)
    _, asked = run(solver, x, y, 3.0, SeededSampler(rng))
    remainders = [spend.mu for query, spend in asked if isinstance(query, ClassRemainder)]
    last = [spend.mu for query, spend in asked if isinstance(query, MultinomialScore)][-1]
    assert len(asked) == solver.rounds - (not wrong)
    assert len(remainders) == 1 + wrong
    if wrong:
        assert remainders[1] == pytest.approx(last / math.sqrt(3))
