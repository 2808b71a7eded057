"""The published algorithms beside a naive implementation of the papers' formulas, with the same noise in both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpregress import GDP, ZCDP, MemoryLedger, Schema
from dpregress.accounting import Event, Relation
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.mechanisms import SeededSampler
from dpregress.mechanisms.base import exact_answer
from dpregress.papers import ferrando2024
from dpregress.public.coding import domain_of
from dpregress.queries import Blocks, ModelErrors
from dpregress.releases import Clique, Marginals
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers.marginals.aim import AIM, MixtureEstimator
from dpregress.solvers.marginals.residual_planner import ResidualPlanner, reconstructed
from dpregress.trust import Central, Session
from tests.laws.spies import Silent
from tests.reference import ferrando2024 as reference
from tests.reference import ferrando2024_baselines as baselines
from tests.reference import mckenna2022, residual_planner

SIZES = (4, 3, 7, 2)
SCHEMA = Schema.from_levels({"a": range(4), "b": range(3), "y": range(7), "s": range(2)}, numeric=["a", "y"])
DOMAIN = domain_of(SCHEMA)


def records(rng: np.random.Generator, rows: int = 500) -> Matrix:
    """Dependent codes, so that systems are well conditioned and blocks far from independent."""
    a, b = rng.integers(4, size=rows), rng.integers(3, size=rows)
    y = np.clip(a + b + rng.integers(0, 2, rows), 0, 6)
    return np.column_stack([a, b, y, (y + rng.integers(0, 4, rows) > 4)]).astype(np.float64)


def table_of(codes: Matrix) -> pa.Table:
    return pa.table({name: codes[:, j].astype(int) for j, name in enumerate(DOMAIN.names)})


def door(codes: Matrix, promise: Event, source: Any) -> Session:
    ledger = MemoryLedger(promise, relation=Relation.ADD_REMOVE)
    reservation = ledger.reserve(promise, relation=Relation.ADD_REMOVE)
    return Session(Central(), PrivateRows(ArraySource(codes)), source, reservation)


# ---------------------------------------------------------------- Ferrando, Sheldon


@pytest.mark.parametrize(("target", "fit"), [("y", "ddssp_linear"), ("s", "ddssp_logistic")])
def test_ddssp(target: str, fit: str, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """On exact tables both are least squares of the papers' design, 1e-6: scores of numbers, classes less one level."""
    codes = records(np.random.default_rng(seed))

    def exact(table: pa.Table, **_: Any) -> Marginals:
        held = np.column_stack([table[name].to_numpy() for name in DOMAIN.names]).astype(np.float64)
        return ResidualPlanner(DOMAIN, GDP(1.0)).estimate(door(held, GDP(1.0), Silent()))

    monkeypatch.setattr(ferrando2024, "aim_marginals", exact)
    found = getattr(ferrando2024, fit)(
        table_of(codes), target, schema=SCHEMA, epsilon=1.0, delta=1e-5, rng=np.random.default_rng(seed)
    )
    tables = reference.all_marginals(codes.astype(int).tolist(), SIZES)
    encodings = [
        reference.scalar_encoding(np.linspace(-1, 1, 4)),
        reference.reduced_encoding(3),
        reference.scalar_encoding(np.linspace(-1, 1, 7)),
        reference.scalar_encoding([-1, 1]) if target == "s" else reference.reduced_encoding(2),
    ]
    expected = getattr(reference, fit)(tables, encodings, {"y": 3, "s": 4}[target])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_chebyshev() -> None:
    np.testing.assert_allclose(
        ferrando2024.chebyshev_coefficients(2, 6.0), reference.chebyshev_coefficients(6.0), atol=1e-12
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1e4])
def test_adassp(epsilon: float, seed: int) -> None:
    """The same draws through both, 1e-6; scales as printed."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(400, 3)) / 2
    y = np.clip(x @ [0.5, -0.2, 0.1] + 0.1 * rng.normal(size=400), -1, 1)
    draws = np.random.default_rng(seed + 1)
    first, square, cross = draws.normal(), draws.normal(size=6), draws.normal(size=3)
    noise = np.zeros((3, 3))
    noise[np.triu_indices(3)] = square
    expected, _ = baselines.adassp(
        x, y, epsilon=epsilon, delta=1e-5, x_bound=1.0, y_bound=1.0,
        noise_min=first, noise_xx=noise, noise_xy=cross,
    )  # fmt: skip
    found = ferrando2024.published_adassp(
        x, y, x_bound=1.0, y_bound=1.0, epsilon=epsilon, delta=1e-5, rng=np.random.default_rng(seed + 1)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 100.0])
def test_objective_perturbation(epsilon: float, seed: int) -> None:
    """The same tilt through both, 1e-6: the minimiser is exact."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(300, 3)) / 2
    y = np.where(rng.random(300) < 0.5 + x[:, 0] / 2, 1.0, -1.0)
    penalty, scale = baselines.objective_scales(epsilon, 1e-5, 1.0)
    tilt = scale * np.random.default_rng(seed + 1).normal(size=3)
    found = ferrando2024.objective_perturbation(
        x, y, x_bound=1.0, epsilon=epsilon, delta=1e-5, rng=np.random.default_rng(seed + 1)
    )
    expected = baselines.objective_perturbation(x, y, tilt, penalty)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------- AIM


class Recorded(MixtureEstimator):
    """The built-in estimator; keeps every model it gave."""

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.models: list[dict[Clique, Matrix]] = []

    def fit(self, tables: Any, sigmas: Any, *, last: bool) -> None:
        super().fit(tables, sigmas, last=last)
        cliques: list[Clique] = [*((j,) for j in range(len(SIZES))), *DOMAIN.pairs]
        self.models.append({clique: self.table(clique) for clique in cliques})


@pytest.mark.parametrize("rho", [0.01, 1.0])
def test_aim_round_by_round(rho: float, seed: int) -> None:
    """Scales, prices, candidates, qualities, annealing and the last round, each as the paper has it: 1e-6.

    One part in 1e9 of the budget stays unspent, and qualities lie on a grid of 2^-10 a cell.
    """
    rng = np.random.default_rng(seed)
    codes, limit = records(rng), 0.0002  # MB: some pairs are refused early on
    estimator, asked = Recorded(DOMAIN), []
    answer = door(codes, ZCDP(rho), SeededSampler(rng))

    def ask(query: Any, spend: Event) -> Any:
        release = answer(query, spend)
        asked.append((query, spend, release))
        return release

    AIM(DOMAIN, ZCDP(rho), estimator, size_limit=limit).estimate(ask)

    workload = dict.fromkeys(DOMAIN.pairs, 1.0)
    sigma, epsilon = mckenna2022.first_scales(rho, len(SIZES))
    first, spend, _ = asked[0]
    assert isinstance(first, Blocks)
    assert math.isclose(spend.rho, len(SIZES) * mckenna2022.measurement_cost(sigma), rel_tol=1e-6)
    used, measured, last, rounds = spend.rho, set[Clique](), False, iter(asked[1:])
    for turn, ((chooser, price, selection), (_, spend, _)) in enumerate(zip(rounds, rounds, strict=True)):
        assert not last, "nothing is left after the last round"
        sigma, epsilon, last = mckenna2022.next_round(rho - used, sigma, epsilon)
        assert isinstance(chooser, ModelErrors)
        assert math.isclose(price.rho, epsilon**2 / 8, rel_tol=1e-6)
        assert math.isclose(spend.rho, mckenna2022.measurement_cost(sigma), rel_tol=1e-6)
        used += price.rho + spend.rho
        room = mckenna2022.size_limit(used, rho, limit)
        allowed = {
            clique
            for clique in mckenna2022.candidates(workload)
            if len(clique) == 1 or clique in measured or estimator.size([*measured, clique]) <= room * (1 + 1e-6)
        }
        assert set(chooser.cliques) == allowed
        model, weights = estimator.models[turn], [mckenna2022.candidate_weight(c, workload) for c in chooser.cliques]
        held = [residual_planner.table(codes.astype(int).tolist(), c, SIZES) for c in chooser.cliques]
        scores = [
            mckenna2022.quality_score(table, model[c], weight, sigma)
            for table, c, weight in zip(held, chooser.cliques, weights, strict=True)
        ]
        qualities = exact_answer(chooser, answer.rows)
        np.testing.assert_allclose(qualities, scores, rtol=1e-6, atol=max(weights) * 28 * 2.0**-10)
        assert chooser.sensitivity(Relation.ADD_REMOVE) == max(weights)
        chosen = chooser.cliques[selection.chosen]
        measured |= {chosen} if len(chosen) == 2 else set()
        sigma, epsilon = mckenna2022.annealed(model[chosen], estimator.models[turn + 1][chosen], sigma, epsilon)
    assert last
    assert math.isclose(used, rho, rel_tol=1e-6)


# ---------------------------------------------------------------- ResidualPlanner


class Noted(SeededSampler):
    """Keeps the noise that it adds."""

    def _draw(self, value: Vector, sigma: float) -> Vector:
        self.added = self.generator.normal(0.0, sigma, size=value.shape)
        return value + self.added


@pytest.mark.parametrize("target", [None, 2])
def test_residual_planner(target: int | None, seed: int) -> None:
    """Tables from the same noise, their covariance against dense algebra, the price: 1e-6; near-optimal scales."""
    rng = np.random.default_rng(seed)
    codes, domain, mu = records(rng), DOMAIN.nominal, 0.8
    planner, source = ResidualPlanner(domain, GDP(mu), target), Noted(rng)
    asked = []
    answer = door(codes, GDP(mu), source)

    def ask(query: Any, spend: Event) -> Any:
        asked.append((query, answer(query, spend)))
        return asked[-1][1]

    marginals = planner.estimate(ask)
    ((query, released),) = asked
    names = [(), *query.cliques]
    parts = [source.added[:1], *query.blocks(source.added[1:])]
    draws = dict(zip(names, (part / released.noise.sigma for part in parts), strict=True))
    draws[()] = draws[()][0]
    scales = dict(released.sigmas)

    held = codes.astype(int).tolist()
    residuals = residual_planner.residuals(held, SIZES, scales, draws)
    tables = reconstructed(domain, released)
    for pair in domain.pairs:
        np.testing.assert_allclose(tables[pair], residual_planner.reconstruct(residuals, pair, SIZES), atol=1e-6)
    for j in range(len(SIZES)):
        np.testing.assert_allclose(tables[(j,)], residual_planner.reconstruct_one_way(residuals, j, SIZES), atol=1e-6)

    assert math.isclose(residual_planner.privacy(SIZES, scales), mu, rel_tol=1e-6)
    assert math.isclose(residual_planner.dense_privacy(SIZES, scales), mu, rel_tol=1e-6)
    weights = {pair: 3.0 if target in pair else 1.0 for pair in domain.pairs}
    best = residual_planner.optimal_scales(SIZES, weights, mu)
    least = residual_planner.total_variance(SIZES, weights, best)
    # weights keep six binary digits: scales are at most 2^-5 off each other's proportions
    assert least * (1 - 1e-9) <= residual_planner.total_variance(SIZES, weights, scales) <= least * (1 + 2**-5) ** 2

    for j, k in domain.pairs:
        found, covariance = residual_planner.dense_reconstruct(residuals, (j, k), SIZES, scales)
        np.testing.assert_allclose(found, tables[j, k], atol=1e-6)
        cells = covariance.reshape(SIZES[j], SIZES[k], SIZES[j], SIZES[k])
        own = domain.columns_of(j)
        for level in range(SIZES[k]):
            unit = np.zeros(domain.width)
            unit[domain.columns_of(k).start + level] = 1.0
            claimed = marginals.noise.product_covariance(unit)[own, own]
            np.testing.assert_allclose(claimed, cells[:, level, :, level], rtol=1e-6, atol=1e-9)
