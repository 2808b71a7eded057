"""The one-shot recipe: what it asks, in which order, at which share of the budget."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpregress import GDP, MemoryLedger, Numeric, PublicMoments, Schema
from dpregress.accounting import Composed, Event
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.errors import UnboundedData
from dpregress.mechanisms import SeededSampler
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import chi_radius
from dpregress.public.response import DEFAULT_CLIP
from dpregress.public.whitening import start
from dpregress.queries import Query, ResponseHistogram, SecondMoment
from dpregress.releases import Histogram, Isotropic
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers import OneShot, Solution
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.trust import Central, Session
from tests.support import kinds

NAMES = ("x0", "x1", "x2")
BOUNDS = {name: Numeric(-30, 30) for name in NAMES}


def data(seed: int, n: int) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    return x, x @ [1.0, 2.0, 3.0] + rng.normal(size=n)


def facts(n: int, public: PublicMoments | None = None, schema: Schema | None = None) -> PublicFacts:
    found = start(NAMES, intercept=False, public=public, schema=schema, row_bound=60.0)
    return PublicFacts(n, "y", found, public, schema)


class Asked:
    """An ``ask`` that notes what it is asked."""

    def __init__(self, door: Session) -> None:
        self.door = door
        self.questions: list[tuple[Query[Any], Event]] = []

    def __call__(self, query: Query[Any], spend: Event) -> Any:
        self.questions.append((query, spend))
        return self.door(query, spend)


def run(solver: OneShot, x: Matrix, y: Vector, mu: float, seed: int) -> tuple[Solution, list[tuple[Query[Any], Event]]]:
    reservation = MemoryLedger(GDP(mu)).reserve(GDP(mu))
    source = SeededSampler(np.random.default_rng(seed))
    asked = Asked(Session(Central(), PrivateRows(ArraySource(x, y)), source, reservation))
    return solver.solve(asked), asked.questions


N = 5_000
SETTINGS: dict[str, tuple[Any, list[type[Query[Any]]], list[float]]] = {
    "labelled public rows": (lambda x, y: facts(N, PublicMoments.from_rows(x, y)), [SecondMoment], [1.0]),
    "unlabelled public rows": (
        lambda x, _y: facts(N, PublicMoments.from_rows(x)),
        [ResponseHistogram, SecondMoment],
        [0.014, 0.986],
    ),
    "a bounded response": (
        lambda x, _y: facts(N, PublicMoments.from_rows(x), Schema({"y": Numeric(-40, 40), **BOUNDS})),
        [SecondMoment],
        [1.0],
    ),
    "few public rows": (
        # too few for their labels to be used, so that the scale is bought
        lambda x, y: facts(N, PublicMoments.from_rows(x[:14], y[:14])),
        [SecondMoment, ResponseHistogram, SecondMoment],
        [0.1, 0.014, 0.886],
    ),
    "a schema": (
        lambda _x, _y: facts(N, None, Schema({"y": Numeric(-40, 40), **BOUNDS})),
        [SecondMoment, SecondMoment],
        [0.1, 0.9],
    ),
    "bounds of the rows alone": (
        lambda _x, _y: facts(N),
        [SecondMoment, ResponseHistogram, SecondMoment],
        [0.1, 0.014, 0.886],
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_rounds_and_shares(setting: str, seed: int) -> None:
    make, queries, shares = SETTINGS[setting]
    x, y = data(seed, N + 200)
    budget = GDP(2.0)
    solver = OneShot(make(x[N:], y[N:]), budget, 0.0)
    _, questions = run(solver, x[:N], y[:N], 2.0, seed)
    assert kinds(questions) == queries
    assert solver.rounds == len(queries)
    spends = [spend for _, spend in questions]
    np.testing.assert_allclose([spend.mu**2 / budget.mu**2 for spend in spends], shares)
    assert budget.covers(Composed.of(spends))
    assert Composed.of(spends).mu == pytest.approx(2.0)


def test_the_scale_costs_more_where_n_mu_is_small() -> None:
    shares = {}
    for mu in (0.2, 0.1, 0.05):
        solver = OneShot(facts(10_000, PublicMoments.from_rows(np.eye(3).repeat(9, axis=0))), GDP(mu), 0.0)
        assert solver.scale is not None
        shares[mu] = solver.scale.mu**2 / mu**2
    np.testing.assert_allclose(list(shares.values()), [0.014, 0.04, 0.16])


@pytest.mark.parametrize("n_mu", [10.0, 400.0, 447.0])
def test_too_little_budget_to_find_the_scale_is_refused(n_mu: float) -> None:
    unlabelled = PublicMoments.from_rows(np.eye(3).repeat(9, axis=0))
    with pytest.raises(UnboundedData, match="too small to estimate the scale of 'y'") as caught:
        OneShot(facts(10_000, unlabelled), GDP(n_mu / 10_000), 0.0)
    assert "\n" not in str(caught.value)
    schema = Schema({"y": Numeric(0, 1), **BOUNDS})
    for known in (
        facts(10_000, unlabelled, schema),
        facts(10_000, PublicMoments.from_rows(np.eye(3).repeat(10, axis=0), np.ones(30))),
    ):
        assert OneShot(known, GDP(n_mu / 10_000), 0.0).scale is None


def test_refining_whitens_by_a_private_moment(seed: int) -> None:
    x, y = data(seed, N)
    solution, questions = run(OneShot(facts(N), GDP(1e6), 0.0), x, y, 1e6, seed)
    first, refined = questions[0][0].space, solution.space
    assert first.response is None
    np.testing.assert_allclose(refined.whitening @ (x.T @ x / N) @ refined.whitening.T, np.eye(3), atol=1e-3)
    assert refined.radius == pytest.approx(chi_radius(refined))


def test_the_private_scale_is_used_with_the_usual_clip(seed: int) -> None:
    x, y = data(seed, N)
    solution, questions = run(OneShot(facts(N), GDP(1e6), 0.0), x, y, 1e6, seed)
    response = solution.space.response
    assert response is not None
    assert response.bound == DEFAULT_CLIP
    assert response.centre == 0.0
    assert response.scale == pytest.approx(np.sqrt(np.mean(y**2)), rel=2**0.25 - 1)
    assert questions[1][0].space.response is not None
    assert math.isinf(questions[1][0].space.response.bound)


# ------------------------------------------------------------------ the scale from a histogram

EDGES = 2.0 ** np.arange(-40, 40.5, 0.5)


def histogram(values: Vector, sigma: float, noise: Vector | float = 0.0) -> Histogram:
    counts = np.histogram(np.abs(values), EDGES)[0] + noise
    space = WhitenedSpace(("a",), np.eye(1), 1.0, np.zeros(1))
    return Histogram(counts, len(values), Isotropic(sigma), (), space, EDGES)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 3e7])
def test_the_scale_is_within_half_a_bin(scale: float, seed: int) -> None:
    """Bins are a factor sqrt 2 wide and values are taken at their geometric middle: 2^(1/4) at most."""
    values = scale * np.random.default_rng(seed).normal(size=2_000)
    truth = np.sqrt(np.mean(values**2))
    assert 2**-0.25 <= Magnitudes.of_histogram(histogram(values, 1e-9)).root_mean_square / truth <= 2**0.25


def test_bins_within_the_noise_do_not_count(seed: int) -> None:
    """Noise below its largest expected value in all 160 bins, up to the huge ones, leaves the scale alone."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(1.0, 1.4, size=5_000)
    noise = 10.0 * np.clip(rng.normal(size=160), -3, 3)
    assert Magnitudes.of_histogram(histogram(values, 10.0, noise)).root_mean_square == pytest.approx(2**0.25)


def test_the_scale_is_never_taken_from_an_empty_bin(seed: int) -> None:
    """100 histograms of 20,000 normal values with the noise of a real one: every scale within a factor 2.

    Half of the 160 bins are empty, up to 2^40: one of them counting for a row makes the fit worthless, so the
    chance of that has to be negligible over any number of fits. At 1e-8 a histogram for all bins together this fails
    with a probability of at most 1e-6; the bins that hold the scale are beyond 50 sigma.
    """
    rng = np.random.default_rng(seed)
    values = rng.normal(size=20_000)
    for _ in range(100):
        assert (
            0.5 <= Magnitudes.of_histogram(histogram(values, 20.0, 20.0 * rng.normal(size=160))).root_mean_square <= 2.0
        )


def test_where_nothing_stands_out_the_largest_bin_counts() -> None:
    values = np.full(5, 3.0)
    assert Magnitudes.of_histogram(histogram(values, 100.0)).root_mean_square == pytest.approx(2**1.75)
