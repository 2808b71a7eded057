"""Score steps: what they ask at which share, and their limit without noise, which is statsmodels' fit."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpregress import GDP, MemoryLedger, PublicMoments
from dpregress.accounting import Composed, Event
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import Sampler, SeededSampler
from dpregress.models import BinomialFamily, Family, GammaFamily, PoissonFamily, family_of
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import Start, from_public, start
from dpregress.queries import ClippedScore, MeanResidual, Query, ResidualHistogram, ResponseHistogram, SecondMoment
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers import ScoreSteps, Solution
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.trust import Central, Session
from tests.laws.spies import Silent
from tests.registry import FAMILIES, responses
from tests.support import kinds, statsmodels_family

NAMES = ("x0", "x1", "x2")
Asked = list[tuple[Query[Any], Event]]


def design(rng: np.random.Generator, n: int) -> Matrix:
    """Correlated columns of different units."""
    mixing = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]]) * [1.0, 10.0, 0.1]
    return rng.uniform(-1, 1, size=(n, 3)) @ mixing


def data(family: Family, rng: np.random.Generator, n: int, intercept: bool) -> tuple[Matrix, Vector]:
    """Rows of the model; where predictors must be positive they are, with and without an intercept."""
    x = design(rng, n)
    link = family.link.name
    coef = np.array([0.4, 0.03, -2.0])
    if link in ("identity", "inverse"):
        x, coef = np.abs(x), np.abs(coef)
    mean = family.mean(x @ coef + (0.7 if intercept else 0.05 if link in ("identity", "inverse") else 0.0))
    return x, responses(family, mean, rng, dispersion=0.1)


def run(solver: ScoreSteps, x: Matrix, y: Vector, mu: float, sampler: Sampler) -> tuple[Solution, Asked]:
    reservation = MemoryLedger(GDP(mu)).reserve(GDP(mu))
    door = Session(Central(), PrivateRows(ArraySource(x, y)), sampler, reservation)
    questions: Asked = []

    def ask(query: Query[Any], spend: Event) -> Any:
        questions.append((query, spend))
        return door(query, spend)

    return solver.solve(ask), questions


# ------------------------------------------------------------------ what is asked

N, M = 4_000, 200


def facts(public: PublicMoments | None, *, intercept: bool = True, n: int = N) -> PublicFacts:
    found = start(NAMES, intercept=intercept, public=public, schema=None, row_bound=60.0)
    return PublicFacts(n, "y", found, public, None)


S, H, R, G, M1 = SecondMoment, ResponseHistogram, ResidualHistogram, ClippedScore, MeanResidual
#: Family, public rows, labelled, intercept; queries and shares of mu^2.
SETTINGS: dict[str, tuple[Family, int, bool, bool, list[type[Query[Any]]], list[float]]] = {
    "labelled": (PoissonFamily, M, True, True, [S, G, G, G, M1], [0.2, 0.1, 0.1, 0.2, 0.4]),
    "labelled, no intercept": (PoissonFamily, M, True, False, [S, G, G, G], [0.2, 0.2, 0.2, 0.4]),
    "unlabelled": (
        GammaFamily,
        M,
        False,
        True,
        [S, H, R, G, G, G, G, M1],
        [0.2, 0.05, 0.05, 0.09, 0.09, 0.09, 0.18, 0.25],
    ),
    "unlabelled, no intercept": (GammaFamily, M, False, False, [S, R, G, G, G, G], [0.2, 0.05, 0.15, 0.15, 0.15, 0.3]),
    "few public rows": (
        PoissonFamily,
        14,
        False,
        True,
        [S, S, H, R, G, G, G, G, M1],
        [0.1, 0.2, 0.05, 0.05, 0.07, 0.07, 0.07, 0.14, 0.25],
    ),
    "no public rows": (
        PoissonFamily,
        0,
        False,
        True,
        [S, S, H, R, G, G, G, G, M1],
        [0.1, 0.2, 0.05, 0.05, 0.07, 0.07, 0.07, 0.14, 0.25],
    ),
    "few labelled public rows": (
        PoissonFamily,
        14,
        True,
        True,
        [S, S, H, R, G, G, G, G, M1],
        [0.1, 0.2, 0.05, 0.05, 0.07, 0.07, 0.07, 0.14, 0.25],
    ),
    "logistic, unlabelled": (
        BinomialFamily,
        M,
        False,
        True,
        [S, M1, G, G, G, G, M1],
        [0.2, 0.05, 0.14, 0.14, 0.14, 0.28, 0.05],
    ),
    "logistic, labelled": (BinomialFamily, M, True, False, [S, G, G, G], [0.2, 0.2, 0.2, 0.4]),
}


def solver_of(setting: str, rng: np.random.Generator, mu: float) -> ScoreSteps:
    family, rows, labelled, intercept, _, _ = SETTINGS[setting]
    public = PublicMoments.from_rows(*data(family, rng, rows, intercept)) if rows else None
    if public is not None and not labelled:
        public = public.unlabelled()
    # by its name, as the estimators have it
    return ScoreSteps(facts(public, intercept=intercept), family_of(family.distribution.name), GDP(mu), 0.0)


@pytest.mark.parametrize("setting", SETTINGS)
def test_rounds_and_shares(setting: str, seed: int) -> None:
    family, _, _, intercept, queries, shares = SETTINGS[setting]
    rng = np.random.default_rng(seed)
    solver = solver_of(setting, rng, 2.0)
    _, questions = run(solver, *data(family, rng, N, intercept), 2.0, SeededSampler(rng))
    assert kinds(questions) == queries
    assert solver.rounds == len(queries)
    np.testing.assert_allclose([spend.mu**2 / 4 for _, spend in questions], shares)
    spent = Composed.of([spend for _, spend in questions])
    assert GDP(2.0).covers(spent)
    assert math.isclose(spent.mu, 2.0, rel_tol=1e-9)


class Scripted(Sampler):
    """Answers that do not depend on the rows: what comes after can only come from public facts and answers."""

    seeded = True

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def _draw(self, value: Vector, sigma: float) -> Vector:  # noqa: ARG002 - the rows have no say
        return np.abs(self._rng.normal(size=len(value))) * 100


def _parameters(query: Query[Any]) -> dict[str, Any]:
    """All numbers of a query, its space's among them."""
    own = {name: value for name, value in vars(query).items() if name in ("clip", "lower", "coef", "edges")}
    return {**own, "radius": query.space.radius, "whitening": query.space.whitening, "fill": query.space.fill}


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_choice_is_public_or_released(setting: str, seed: int) -> None:
    """Other private rows and the same answers: the same questions to the last bit, at the same prices.

    Deterministic: no seed can break it.
    """
    family, _, _, intercept, _, _ = SETTINGS[setting]
    asked = []
    for private in (1, 2):
        solver = solver_of(setting, np.random.default_rng(seed), 1.5)
        x, y = data(family, np.random.default_rng([seed, private]), N, intercept)
        solution, questions = run(solver, private * x, private**3 * y, 1.5, Scripted(seed))
        asked.append((questions, solution.whitened))
    (one, first), (other, second) = asked
    assert len(one) == len(other)
    for (query, spend), (twin, price) in zip(one, other, strict=True):
        assert type(query) is type(twin)
        assert spend == price
        for name, value in _parameters(query).items():
            np.testing.assert_array_equal(value, _parameters(twin)[name], err_msg=name)
    np.testing.assert_array_equal(first, second)


# ------------------------------------------------------------------ the limit

#: Links for which the score equations already make the mean prediction right.
BALANCED = {("gaussian", "identity"), ("binomial", "logit"), ("poisson", "log")}
ROWS = 600


def statsmodels_fit(family: Family, x: Matrix, y: Vector, intercept: bool) -> Vector:
    theirs = statsmodels_family(family)
    import statsmodels.api as sm

    design = np.column_stack([np.ones(len(x)), x]) if intercept else x
    begin = np.zeros(design.shape[1])
    begin[0] = family.link.predictor(float(y.mean())) if intercept else 0.0
    if not intercept and family.link.name in ("identity", "inverse"):
        begin = np.full(3, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some links give means that the distribution cannot have
        model = sm.GLM(y, design, family=theirs)
        return model.fit(start_params=begin, maxiter=300, tol=1e-14, tol_criterion="params").params


def limit(
    family: Family, rng: np.random.Generator, intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> tuple[Vector, Vector, Matrix, Vector]:
    """Slopes with the intercept of a fit without noise, weights or clips, and of statsmodels; its rows."""
    x, y = data(family, rng, ROWS, intercept)
    # a clip is one of the sizes that were seen: the largest of them is below the largest private one
    monkeypatch.setattr(Magnitudes, "best_clip", lambda *_, **__: 1e9)
    # without labels: a gain that knows of the noise alone takes later steps for repetitions of the first
    public = PublicMoments.from_rows(x)
    space = replace(from_public(public, intercept=intercept), radius=1e6)
    exact = PublicFacts(ROWS, "y", Start(space, refinements=0), public, None)
    solver = ScoreSteps(exact, family, GDP(1e30), 0.0, steps=(1.0,) * 60)
    solution, _ = run(solver, x, y, 1e30, Silent())
    slopes, constant = solution.space.pull_back(solution.whitened)
    found = np.concatenate([[constant], slopes]) if intercept else slopes
    return found, statsmodels_fit(family, x, y, intercept), x, y


@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.distribution.name} {f.link.name}")
def test_without_noise_it_is_statsmodels(
    family: Family, intercept: bool, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The slopes to 1e-6; the intercept too where the link is canonical, else it makes the mean prediction right."""
    rng = np.random.default_rng(seed)
    found, expected, x, y = limit(family, rng, intercept, monkeypatch)
    scale = np.concatenate([[1.0], x.std(axis=0)])[-len(found) :]
    size = np.linalg.norm(expected * scale)
    balanced = (family.distribution.name, family.link.name) in BALANCED
    if balanced or not intercept:
        assert np.linalg.norm((found - expected) * scale) <= 1e-6 * size
        return
    assert np.linalg.norm((found - expected)[1:] * scale[1:]) <= 1e-6 * size
    assert float(family.mean(x @ found[1:] + found[0]).mean()) == pytest.approx(float(y.mean()), rel=1e-9)
