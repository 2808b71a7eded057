"""Curves of the papers' methods against independent implementations, at the same settings within Monte-Carlo error.

The data of a repeat are the same on both sides, the noise is not. The truth of an error is the fit without noise on the
same data, so that noise alone decides about it. Mean differences of log errors are compared with their standard errors:
with 40 repeats a statistic above 7 has probability below 1e-7 (Student's t).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.optimize import brentq

from dpregress import Schema
from dpregress.errors import NoScaleWarning
from dpregress.experiments import (
    cao_logistic,
    cao_ridge,
    ferrando_tables,
    wang_simulated,
    wang_tables,
    wu_simulated,
    wu_tables,
)
from dpregress.experiments.base import Reading
from dpregress.experiments.coded_tables import CodedSplit, CodedTask
from dpregress.experiments.simulation import sample
from dpregress.experiments.summaries import VARIANT
from dpregress.papers.ferrando2024 import EstimatorName
from dpregress.papers.wu2022 import published_sigma
from dpregress.public.coding import domain_of
from tests.reference import accounting, cao2026, ferrando2024, mckenna2022_whole, wang2023, wu2022
from tests.reference import ferrando2024_baselines as baselines

Rng = np.random.Generator
#: A budget at which noise moves fits, but does not decide about all of them.
MU = 300.0
pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")


def agree(pairs: Iterable[tuple[float, float]]) -> None:
    """The mean log ratio of errors is 0 within 7 standard errors."""
    ratios = np.log([mine / theirs for mine, theirs in pairs])
    assert np.isfinite(ratios).all()
    assert len(ratios) >= 40
    assert abs(ratios.mean()) <= 7 * ratios.std(ddof=1) / math.sqrt(len(ratios)), ratios.mean()


def no_worse(pairs: Iterable[tuple[float, float]]) -> None:
    """The mean log ratio of errors is not above 0 by more than 7 standard errors."""
    ratios = np.log([mine / theirs for mine, theirs in pairs])
    assert np.isfinite(ratios).all()
    assert len(ratios) >= 40
    assert ratios.mean() <= 7 * ratios.std(ddof=1) / math.sqrt(len(ratios)), ratios.mean()


def streams(seed: int, repeats: int = 40) -> Iterable[tuple[Rng, Rng, Rng]]:
    """For each repeat: two generators of the same data, and one of other noise."""
    for repeat in range(repeats):
        yield (*(np.random.default_rng([seed, repeat]) for _ in range(2)), np.random.default_rng([seed, repeat, 1]))


def shown(readings: Iterable[Reading], method: str) -> float:
    """The last value of a method."""
    return [reading.value for reading in readings if reading.method == method][-1]


@pytest.mark.parametrize("method", [cao_ridge.OWN, cao_ridge.ORACLE, cao_ridge.DESCENT])
def test_cao_ridge(method: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    way = cao_ridge._Descent(1.0, 0.09, steps=5)
    monkeypatch.setitem(cao_ridge._DESCENTS, "", way)
    monkeypatch.setattr(cao_ridge, "_library", lambda *_: np.zeros(10))  # its curves are not the subject
    setting = cao_ridge.RidgeSetting("n", "", 200, 60, MU, 0.01, 0.05, descent=method == cao_ridge.DESCENT)
    shared = {"alpha": 0.01, "eta": 0.05}

    def theirs(data: cao_ridge.Sample, rng: Rng, mu: float = MU) -> np.ndarray:
        if method == cao_ridge.OWN:
            return cao2026.pmt_ridge(data.x, data.y, data.x_public, data.y_public, **shared, mu=mu, rng=rng)
        if method == cao_ridge.ORACLE:
            second, size = cao2026.raw_second_moment(data.x), np.linalg.norm(data.beta)
            known = {"second_moment": second, "coef_norm": size}
            return cao2026.private_only_ridge(data.x, data.y, **known, **shared, mu=mu, rng=rng)
        total = math.sqrt(2) * mu
        return cao2026.gradient_descent(data.x, data.y, mu=total, steps=way.steps, clip=1.0, rate=0.09, rng=rng)

    def drawn(rng: Rng, **sizes: int) -> cao_ridge.Sample:
        data = sample(rng, **sizes)
        return replace(data, beta=theirs(data, np.random.default_rng(0), mu=1e12))

    monkeypatch.setattr(cao_ridge, "sample", drawn)
    found = []
    for first, again, noise in streams(seed):
        data = drawn(again, n=setting.n, m=setting.m)
        error = float(np.linalg.norm(theirs(data, noise) - data.beta))
        found.append((shown(cao_ridge._simulate(setting, first), method), error))
    agree(found)


@pytest.mark.parametrize("method", [cao_logistic.OWN, cao_logistic.ORACLE])
def test_cao_logistic(method: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cao_logistic, "STEPS", 3)
    monkeypatch.setattr(cao_logistic, "_library", lambda *_: np.zeros(8))
    setting = cao_logistic.NewtonSetting("mu", "", 200, MU, 0.05, 0.05)
    shared = {"alpha": 0.05, "eta": 0.05, "steps": cao_logistic.STEPS}
    real = cao_logistic._drawn

    def theirs(data: cao_logistic.Sample, rng: Rng, mu: float = MU) -> np.ndarray:
        if method == cao_logistic.OWN:
            return np.asarray(cao2026.pmt_logistic(data.x, data.y, data.x_public, **shared, mu=mu, rng=rng))[-1]
        second = cao2026.raw_second_moment(data.x)
        fit = cao2026.private_only_logistic(data.x, data.y, second_moment=second, **shared, mu=mu, rng=rng)
        return np.asarray(fit)[-1]

    def drawn(setting: cao_logistic.NewtonSetting, rng: Rng) -> cao_logistic.Sample:
        data = real(setting, rng)
        return replace(data, beta=theirs(data, np.random.default_rng(0), mu=1e12))

    monkeypatch.setattr(cao_logistic, "_drawn", drawn)
    found = []
    for first, again, noise in streams(seed):
        data = drawn(setting, again)
        error = float(np.linalg.norm(theirs(data, noise) - data.beta))
        found.append((shown(cao_logistic._simulate(setting, first), method), error))
    agree(found)


def exponential_over_e(
    x: np.ndarray, y: np.ndarray, public: np.ndarray, *draws: np.ndarray | None, epsilon: float, delta: float,
    pooled: bool,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Algorithm 2 for responses exp(x'w - 1)."""
    scales = wang2023.one_round_scales(1.0, epsilon, delta)
    rows = wang2023.checked_rows(x, 1.0)
    return wang2023.one_round(rows, np.clip(y, -1, 1), public, lambda z: np.exp(z - 1), *draws, scales, pooled)


_ALGORITHMS: dict[str, Callable[..., tuple[np.ndarray, float]]] = {
    "logistic, diagonal": lambda *a, **k: wang2023.gaussian_glm(*a[:3], "logistic", *a[3:], **k),
    "logistic, non-diagonal": lambda *a, **k: wang2023.gaussian_glm(*a[:3], "logistic", *a[3:], **k),
    "exponential, Bernoulli": exponential_over_e,
    "logistic, Bernoulli": lambda *a, **k: wang2023.bounded_glm(*a[:3], "logistic", *a[3:], radius=1.0, **k),
    "sigmoid, diagonal": lambda *a, **k: wang2023.gaussian_nonlinear(*a[:3], "sigmoid", *a[3:], noise_bound=0.05, **k),
    "cubic, Bernoulli": lambda *a, **k: wang2023.bounded_nonlinear(
        *a[:3], "cubic", *a[3:], noise_bound=0.05, radius=1.0, **k
    ),
    "log(1 + exp(-z)), Bernoulli": lambda *a, **k: wang2023.bounded_nonlinear(
        *a[:3], "softplus", *a[3:], noise_bound=0.05, radius=1.0, **k
    ),
}


def test_every_model_of_the_figures_is_compared() -> None:
    assert set(_ALGORITHMS) == set(wang_simulated._MODELS)


def has_root(coef: np.ndarray, public: np.ndarray) -> bool:
    """Whether the library's search, which ends at a root mean square of 10, finds that root of Stein's equation too."""
    return bool(np.mean((public @ coef) ** 2) <= 100.0)


@pytest.mark.parametrize("name", _ALGORITHMS)
def test_wang(name: str, seed: int) -> None:
    """At an epsilon where the published noise leaves something of the moments, and where Stein's equation has a root.

    The paper says nothing of other draws, one in twenty where the design is not diagonal: they are left out by the same
    rule on both sides; more than 20 of 60 have probability below 1e-9.
    """
    n, d, epsilon = 100, 8, 1e6
    setting = wang_simulated.LocalSetting(name, "n", n, d, 200, (epsilon,))
    model = wang_simulated._MODELS[name]
    found = []
    for first, again, noise in streams(seed, 60):
        x, y, public, w, _ = wang_simulated._drawn(setting, first)
        x, y, public, w, _ = wang_simulated._drawn(setting, again)
        draws = noise.normal(size=(n, d, d)), noise.normal(size=(n, d))
        terms = {"delta": n**-1.1, "pooled": False}
        with warnings.catch_warnings(), suppress(NoScaleWarning, ArithmeticError):
            warnings.simplefilter("error", NoScaleWarning)
            mine = wang_simulated._published(model, x, y, public, epsilon, first)
            theirs, _ = _ALGORITHMS[name](x, y, public, *draws, epsilon=epsilon, **terms)
            w, _ = _ALGORITHMS[name](x, y, public, None, None, epsilon=epsilon, **terms)
            if has_root(theirs, public) and has_root(w, public):
                found.append(tuple(wang_simulated._error(model.design, coef, w) for coef in (mine, theirs)))
    agree(found)


def test_wang_two_rounds(seed: int) -> None:
    n, d, epsilon = 100, 8, 1e6
    setting = wang_simulated.LocalSetting("logistic, diagonal", "n", n, d, 200, (epsilon,), two_rounds=True)
    model = wang_simulated._MODELS[setting.model]
    found = []
    for first, again, noise in streams(seed):
        x, y, _, w, largest = wang_simulated._drawn(setting, first)
        mine = wang_simulated._two_rounds(model, x, y, largest, epsilon, first)
        x, y, _, w, largest = wang_simulated._drawn(setting, again)
        draws = noise.normal(size=(n, d, d)), noise.normal(size=(n, d)), noise.normal(size=n)
        terms = {"covariance_norm": largest, "delta": n**-1.1}
        theirs = wang2023.two_round_glm(x, y, "logistic", *draws, epsilon=epsilon, **terms)[0]
        w = wang2023.two_round_glm(x, y, "logistic", None, None, None, epsilon=epsilon, **terms)[0]
        found.append(tuple(wang_simulated._error(model.design, coef, w) for coef in (mine, theirs)))
    agree(found)


class Unasked:
    """In place of the library's own fit, which refuses an epsilon as large as these tests have."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def fit(self, *_: object) -> Unasked:
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.zeros(len(x))


def test_wang_tables(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of wrong predictions on held-out rows; rows beyond the public radius are cut, as for Gaussian rows."""
    n, m, epsilon = 400, 200, 1e7
    of = wang_tables._TABLES["susy"]
    monkeypatch.setitem(wang_tables._TABLES, "susy", replace(of, held_out=1_000, epsilons=(epsilon,)))
    monkeypatch.setattr(wang_tables, "LocalGLM", Unasked)
    setting, found = wang_tables.AccuracySetting("susy", "n", n, m), []
    for first, again, noise in streams(seed):
        data = np.random.default_rng(again.integers(2**32))
        x = data.normal(size=(n + m + 1_000, 4)) * (1, 5, 0.1, 2)
        y = (x @ (1, 0.2, 5, 0) + 3 * data.normal(size=len(x)) > 0).astype(float)
        monkeypatch.setattr(wang_tables, "_rows", lambda _, x=x, y=y: (x, y))
        mine = shown(wang_tables._simulate(setting, first), wang_tables.OWN)
        order = np.random.default_rng(noise.integers(2**32)).permutation(len(x))
        public, rows, test = np.split(order, [m, m + n])
        z = (x - x[public].mean(axis=0)) / x[public].std(axis=0)
        radius = np.abs(z[public]).sum(axis=1).max()
        scales = wang2023.one_round_scales(radius, epsilon, n**-1.1)
        draws = noise.normal(size=(n, 4, 4)), noise.normal(size=(n, 4))
        private = wang2023.clipped_rows(z[rows], radius)
        w, _ = wang2023.one_round(private, y[rows], z[public], wang2023.LOSSES["logistic"], *draws, scales, False)
        found.append((1 - mine, float(np.mean((z[test] @ w > 0) != (y[test] > 0.5)))))
    agree(found)


@pytest.mark.slow
@pytest.mark.parametrize("method", [wu_tables.DGM, wu_tables.BGM, wu_tables.RMGM])
def test_wu_table(method: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test losses on one table."""
    k, epsilon = 24, 200.0
    sigma = published_sigma(epsilon, wu_tables.DELTA)
    monkeypatch.setattr(wu_tables, "SKETCHES", (k,))
    monkeypatch.setattr(wu_tables, "EPSILONS", (epsilon,))
    found = []
    for first, again, noise in streams(seed):
        x = np.random.default_rng(noise.integers(2**32)).uniform(size=(200, 6))
        joint = np.column_stack([x, x @ (0.5, 0.2, 0, 0, 0.1, 0) + 0.1 * x[:, 0] ** 2])
        monkeypatch.setattr(wu_tables, "scaled_table", lambda _, joint=joint: joint)
        readings = wu_tables._simulate(wu_tables.TableSetting("insurance", 1e12), first)
        mine = [reading.value for reading in readings if reading.method.split(VARIANT)[0] == method]
        joint = joint[again.permutation(len(joint))]
        parties = np.array_split(joint[:160], 5, axis=1)
        if method == wu_tables.RMGM:
            signs = noise.choice([-1.0, 1.0], size=(k, 160))
            fit = wu2022.rmgm_ols(parties, signs, [noise.normal(size=(k, party.shape[1])) for party in parties], sigma)
        else:
            draws = [noise.normal(size=party.shape) for party in parties]
            fit = wu2022.dgm_ols(parties, draws, sigma, debias=method == wu_tables.DGM)
        found.append((mine[-1], float(np.mean((joint[160:, :-1] @ fit - joint[160:, -1]) ** 2))))
    agree(found)


@pytest.mark.parametrize("method", [wu_simulated.DGM, wu_simulated.BGM, wu_simulated.RMGM])
def test_wu(method: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wu_simulated, "sketch_rows", lambda *_: 24)
    n, epsilon = 100, 200.0
    sigma = published_sigma(epsilon, wu_simulated.DELTA)
    found = []
    for first, again, noise in streams(seed):
        ((_, mine),) = wu_simulated.distances(n, (epsilon,), first)
        parties, true = wu_simulated.simulated_parties(n, again)
        if method == wu_simulated.RMGM:
            k = wu_simulated.sketch_rows()
            signs = noise.choice([-1.0, 1.0], size=(k, n))
            fit = wu2022.rmgm_ols(parties, signs, [noise.normal(size=(k, party.shape[1])) for party in parties], sigma)
        else:
            draws = [noise.normal(size=party.shape) for party in parties]
            fit = wu2022.dgm_ols(parties, draws, sigma, debias=method == wu_simulated.DGM)
        found.append((mine[method], float(np.linalg.norm(fit - true))))
    agree(found)


# ---------------------------------------------------------------- Ferrando, Sheldon

_EPSILON = 1.0


def coded_split(rng: Rng, target: str, rows: int = 1_500) -> CodedSplit:
    """Two features, a number and a class; the target is a number y, or a class s."""
    a, b = rng.integers(4, size=2 * rows), rng.choice(3, p=(0.6, 0.3, 0.1), size=2 * rows)
    y = np.clip(a + b - 1 + rng.integers(0, 2, 2 * rows), 0, 4)
    response, size = (y, 5) if target == "y" else (y + rng.integers(0, 4, 2 * rows) > 3, 2)
    levels = {"a": range(4), "b": range(3), target: range(size)}
    schema = Schema.from_levels(levels, numeric=["a", "y"] if target == "y" else ["a"])
    task = CodedTask("none", target, ("a", "y"), "gaussian" if target == "y" else "binomial")
    codes = np.column_stack([a, b, response])
    return CodedSplit(task, schema, domain_of(schema), codes[:rows], codes[rows:])


@cache
def zcdp_rho() -> float:
    """The rho whose epsilon at this delta is the experiment's."""
    return brentq(lambda rho: accounting.zcdp_epsilon(rho, ferrando_tables.DELTA) - _EPSILON, 1e-6, _EPSILON)


def by_reference(split: CodedSplit, method: str, rng: Rng) -> np.ndarray:
    """Coefficients of a naive implementation, on its own noise."""
    sizes = split.domain.sizes
    if method in (ferrando_tables.ADASSP, ferrando_tables.OBJECTIVE):
        x, y = split.design(split.train), split.response(split.train)
        bound, d = math.sqrt(len(sizes) - 1), x.shape[1]
        if method == ferrando_tables.OBJECTIVE:
            penalty, scale = baselines.objective_scales(_EPSILON, ferrando_tables.DELTA, bound)
            return baselines.objective_perturbation(x, y, scale * rng.normal(size=d), penalty)
        draws = {"noise_min": rng.normal(), "noise_xx": rng.normal(size=(d, d)), "noise_xy": rng.normal(size=d)}
        bounds = {"x_bound": bound, "y_bound": 1.0}
        return baselines.adassp(x, y, epsilon=_EPSILON, delta=ferrando_tables.DELTA, **bounds, **draws)[0]
    cells = mckenna2022_whole.aim(split.train.astype(int), sizes, zcdp_rho(), rng)
    if method == ferrando_tables.SYNTH:
        cells = mckenna2022_whole.whole(mckenna2022_whole.draw(cells, len(split.train), rng), sizes)
    encodings = [
        ferrando2024.scalar_encoding(np.linspace(-1, 1, sizes[0])),
        ferrando2024.reduced_encoding(sizes[1]),
        ferrando2024.scalar_encoding(np.linspace(-1, 1, sizes[2])),
    ]
    fit = ferrando2024.ddssp_linear if split.task.family == "gaussian" else ferrando2024.ddssp_logistic
    return fit(mckenna2022_whole.pairwise_of(cells), encodings, 3, ridge=1e-9)


def by_experiment(split: CodedSplit, method: str, estimator: EstimatorName, rng: Rng) -> float:
    """The score of the experiment's own method."""
    if method in (ferrando_tables.ADASSP, ferrando_tables.OBJECTIVE):
        return ferrando_tables.baseline_score(split, _EPSILON, rng)
    marginals = ferrando_tables._released(split, ferrando_tables.CodedSetting("none", _EPSILON, estimator), rng)
    if method == ferrando_tables.DDSSP:
        return ferrando_tables._ddssp(split, marginals)
    return ferrando_tables._synthetic(split, marginals, rng)


def ferrando_errors(target: str, method: str, estimator: EstimatorName, seed: int) -> list[tuple[float, float]]:
    """Of the experiment and the reference: mean squared errors of y, areas above the curve of s."""
    found = []
    for first, again, noise in streams(seed):
        mine = by_experiment(coded_split(first, target), method, estimator, first)
        split = coded_split(again, target)
        theirs = split.score(split.design(split.test) @ by_reference(split, method, noise))
        found.append((mine, theirs) if target == "y" else (1 - mine, 1 - theirs))
    return found


@pytest.mark.parametrize(("target", "method"), [("y", ferrando_tables.ADASSP), ("s", ferrando_tables.OBJECTIVE)])
def test_ferrando_baselines(target: str, method: str, seed: int) -> None:
    agree(ferrando_errors(target, method, "mixture", seed))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "target", "method"),
    [
        *(
            ("private-pgm", target, method)
            for target in "ys"
            for method in (ferrando_tables.DDSSP, ferrando_tables.SYNTH)
        ),
        pytest.param("mixture", "y", ferrando_tables.DDSSP, marks=pytest.mark.nightly),
        pytest.param("mixture", "s", ferrando_tables.DDSSP, marks=pytest.mark.nightly),
        pytest.param("mixture", "y", ferrando_tables.SYNTH, marks=pytest.mark.nightly),
        pytest.param("mixture", "s", ferrando_tables.SYNTH, marks=pytest.mark.nightly),
    ],
)
def test_ferrando(target: str, method: str, estimator: EstimatorName, seed: int) -> None:
    """The reference has Private-PGM's model. The built-in one differs from it, and its synthetic rows may be better."""
    if estimator == "private-pgm" and find_spec("mbi") is None:
        pytest.skip("mbi is not installed")
    errors = ferrando_errors(target, method, estimator, seed)
    if estimator == "mixture" and method == ferrando_tables.SYNTH:
        no_worse(errors)
    else:
        agree(errors)
