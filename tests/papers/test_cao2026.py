"""Cao, Bi, Zhang (2026) against a naive reference written from the paper's formulas alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import mannwhitneyu

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import DPRegressError, InvalidInput
from dpregress.mechanisms import Sampler
from dpregress.models import BinomialFamily, Family, GaussianFamily, PoissonFamily
from dpregress.papers import cao2026
from tests.reference import cao2026 as reference
from tests.reference import cao2026_glm

N, M, D = 300, 60, 4
ETA = 0.05
STEPS = 3
FAR = 3
COEF_NORM = 2.0
Data = dict[str, Any]


def make_data(seed: int) -> Data:
    """Rows on an ill-conditioned scale, three of them far away, so that truncation acts; responses of both kinds."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(D, D)))[0]
    rows = rng.normal(size=(N + M, D)) @ (rotation * np.sqrt(np.logspace(0, -2, D))).T + rng.normal(size=D) / 4
    y = rows @ rng.normal(size=D) + 0.1 * rng.normal(size=N + M)
    rows[:FAR] = 100.0 * np.sign(rng.normal(size=(FAR, D)))
    y[:FAR] = 1e4
    binary = (rng.random(N + M) < expit(y)).astype(float)
    return {
        "X": rows[:N],
        "y": y[:N],
        "binary": binary[:N],
        "X_public": rows[N:],
        "y_public": y[N:],
        "second_moment": rows[N:].T @ rows[N:] / M,
    }


@pytest.fixture
def data(seed: int) -> Data:
    return make_data(seed)


Call = Callable[[Any, Data, float, float, np.random.Generator], Vector]


def pmt_ridge(module: Any, of: Data, mu: float, alpha: float, rng: np.random.Generator) -> Vector:
    return module.pmt_ridge(of["X"], of["y"], of["X_public"], of["y_public"], mu=mu, alpha=alpha, eta=ETA, rng=rng)


def private_only_ridge(module: Any, of: Data, mu: float, alpha: float, rng: np.random.Generator) -> Vector:
    oracle = {"second_moment": of["second_moment"], "coef_norm": COEF_NORM}
    return module.private_only_ridge(of["X"], of["y"], **oracle, mu=mu, alpha=alpha, eta=ETA, rng=rng)


def pmt_logistic(module: Any, of: Data, mu: float, alpha: float, rng: np.random.Generator) -> Matrix:
    options = {"mu": mu, "alpha": alpha, "eta": ETA, "steps": STEPS, "rng": rng}
    return module.pmt_logistic(of["X"], of["binary"], of["X_public"], **options)


def private_only_logistic(module: Any, of: Data, mu: float, alpha: float, rng: np.random.Generator) -> Matrix:
    options = {"mu": mu, "alpha": alpha, "eta": ETA, "steps": STEPS, "rng": rng}
    return module.private_only_logistic(of["X"], of["binary"], second_moment=of["second_moment"], **options)


def gradient_descent(module: Any, of: Data, mu: float, alpha: float, rng: np.random.Generator) -> Vector:  # noqa: ARG001 - no penalty
    return module.gradient_descent(of["X"], of["y"], mu=mu, steps=8, clip=0.5, rate=0.3, rng=rng)


CALLS: tuple[Call, ...] = (
    pmt_ridge,
    private_only_ridge,
    pmt_logistic,
    private_only_logistic,
    gradient_descent,
)
every_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)


# ------------------------------------------------------------------ the same algorithm


def test_pmt_is_the_references(data: Data) -> None:
    second = reference.raw_second_moment(data["X_public"])
    for found, expected in zip(cao2026.pmt(data["X"], second, ETA), reference.pmt(data["X"], second, ETA), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_rows_are_cut_off_in_these_tests(data: Data) -> None:
    truncated, _, radius = cao2026.pmt(data["X"], reference.raw_second_moment(data["X_public"]), ETA)
    np.testing.assert_allclose(np.linalg.norm(truncated[:FAR], axis=1), radius)
    oracle = math.sqrt(np.trace(data["second_moment"]) + D * math.log(N / ETA))
    assert (np.linalg.norm(data["X"][:FAR], axis=1) > oracle).all()
    assert (data["y"][:FAR] > oracle * COEF_NORM).all()


@every_call
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
def test_without_noise_the_answers_agree(call: Call, alpha: float, data: Data, seed: int) -> None:
    rngs = [np.random.default_rng(seed + extra) for extra in (1, 2)]
    found = call(cao2026, data, 1e10, alpha, rngs[0])
    expected = call(reference, data, 1e10, alpha, rngs[1])
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


# ------------------------------------------------------------------ the same noise


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Length and scale of every noise vector that is drawn."""
    found: list[tuple[int, float]] = []
    add_gaussian = Sampler.add_gaussian

    def spy(self: Sampler, value: Vector, sigma: float, *, apart: int = 0) -> Vector:
        found.append((len(value), sigma))
        return add_gaussian(self, value, sigma, apart=apart)

    monkeypatch.setattr(Sampler, "add_gaussian", spy)
    return found


MATRIX = D * (D + 1) // 2


def expected_scales(call: Call, of: Data, mu: float) -> list[tuple[int, float]]:
    """Length and scale of the noise of every release, on means, from the reference's formulas."""
    trace = float(np.trace(of["second_moment"]))
    if call is gradient_descent:
        return [(D, reference.gradient_descent_scale(N, mu, 8, 0.5))] * 8
    if call is pmt_ridge:
        pair = reference.ridge_scales(N, D, mu, ETA)
    elif call is private_only_ridge:
        pair = reference.private_only_ridge_scales(N, D, mu, ETA, trace, COEF_NORM)
    elif call is pmt_logistic:
        pair = reference.logistic_scales(N, D, mu, ETA, STEPS)
    else:
        pair = reference.private_only_logistic_scales(N, D, mu, ETA, STEPS, trace)
    steps = 1 if call in (pmt_ridge, private_only_ridge) else STEPS
    return [(MATRIX, pair[0]), (D, pair[1])] * steps


@every_call
@pytest.mark.parametrize("mu", [0.3, 3.0])
def test_every_release_has_the_papers_noise(
    call: Call, mu: float, data: Data, drawn: list[tuple[int, float]], seed: int
) -> None:
    call(cao2026, data, mu, 1.0, np.random.default_rng(seed))
    expected = expected_scales(call, data, mu)
    assert [length for length, _ in drawn] == [length for length, _ in expected]
    np.testing.assert_allclose([sigma / N for _, sigma in drawn], [scale for _, scale in expected], rtol=1e-6)


@every_call
def test_errors_have_the_references_distribution(call: Call, seed: int) -> None:
    """Distances to the noise-free answer, 60 from each, by an exact two-sample rank test.

    Both draw independent noise of one law on one data set, so p is uniform (or larger, being discrete):
    p < 1e-7 has a probability of at most 1e-7.
    """
    data = make_data(seed)
    truth = call(reference, data, 1e10, 1.0, np.random.default_rng(seed))
    samples = []
    for extra, module in enumerate((cao2026, reference), start=1):
        rng = np.random.default_rng([seed, extra])
        samples.append([float(np.linalg.norm(call(module, data, 1.0, 1.0, rng) - truth)) for _ in range(60)])
    assert mannwhitneyu(*samples, method="exact").pvalue >= 1e-7


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("eta", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_a_bad_eta_is_refused(eta: float, data: Data) -> None:
    rng = np.random.default_rng(0)
    x, y, binary, second = (data[key] for key in ("X", "y", "binary", "second_moment"))
    options: dict[str, Any] = {"mu": 1.0, "alpha": 1.0, "eta": eta, "rng": rng}
    calls: list[Callable[[], object]] = [
        lambda: cao2026.pmt(x, np.eye(D), eta),
        lambda: cao2026.pmt_ridge(x, y, data["X_public"], data["y_public"], **options),
        lambda: cao2026.private_only_ridge(x, y, second_moment=second, coef_norm=1.0, **options),
        lambda: cao2026.pmt_logistic(x, binary, data["X_public"], steps=2, **options),
        lambda: cao2026.private_only_logistic(x, binary, second_moment=second, steps=2, **options),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="eta must lie between 0 and 1"):
            call()


@every_call
@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_mu_is_refused(call: Call, mu: float, data: Data) -> None:
    with pytest.raises(InvalidInput, match="mu must be positive"):
        call(cao2026, data, mu, 1.0, np.random.default_rng(0))


@pytest.mark.parametrize("call", CALLS[:-1], ids=lambda call: call.__name__)
@pytest.mark.parametrize("alpha", [-1.0, math.nan, math.inf])
def test_a_bad_alpha_is_refused(call: Call, alpha: float, data: Data) -> None:
    with pytest.raises(InvalidInput, match="alpha"):
        call(cao2026, data, 1.0, alpha, np.random.default_rng(0))


@every_call
def test_rows_and_responses_of_other_lengths_are_refused(call: Call, data: Data) -> None:
    for key in ("y", "binary"):
        data[key] = data[key][:-1]
    with pytest.raises(InvalidInput, match="must have shape"):
        call(cao2026, data, 1.0, 1.0, np.random.default_rng(0))


@pytest.mark.parametrize("call", [pmt_ridge, pmt_logistic], ids=lambda call: call.__name__)
@pytest.mark.parametrize("spoil", [lambda v: v[:, :-1], lambda v: v[:0], lambda v: v * np.nan, lambda v: v * 0])
def test_bad_public_rows_are_refused(call: Call, spoil: Callable[[Matrix], Matrix], data: Data) -> None:
    data["X_public"] = spoil(data["X_public"])
    data["y_public"] = data["y_public"][: len(data["X_public"])]
    with pytest.raises(InvalidInput):
        call(cao2026, data, 1.0, 1.0, np.random.default_rng(0))


def test_public_labels_must_fit(data: Data) -> None:
    data["y_public"] = data["y_public"][:-1]
    with pytest.raises(InvalidInput, match="labels"):
        pmt_ridge(cao2026, data, 1.0, 1.0, np.random.default_rng(0))


@pytest.mark.parametrize("second", [np.eye(D - 1), np.ones(D), np.full((D, D), np.nan), -9 * np.eye(D)], ids=str)
def test_a_bad_oracle_moment_is_refused(second: Matrix, data: Data) -> None:
    data["second_moment"] = second
    for call in (private_only_ridge, private_only_logistic):
        with pytest.raises(InvalidInput):
            call(cao2026, data, 1.0, 1.0, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("call", "options"),
    [
        ("gradient_descent", {"steps": 0, "clip": 1.0, "rate": 0.1}),
        ("gradient_descent", {"steps": 3, "clip": 0.0, "rate": 0.1}),
        ("gradient_descent", {"steps": 3, "clip": -1.0, "rate": 0.1}),
        ("gradient_descent", {"steps": 3, "clip": math.nan, "rate": 0.1}),
        ("private_only_ridge", {"second_moment": np.eye(D), "coef_norm": 0.0, "alpha": 1.0, "eta": ETA}),
        ("private_only_ridge", {"second_moment": np.eye(D), "coef_norm": math.nan, "alpha": 1.0, "eta": ETA}),
        ("private_only_logistic", {"second_moment": np.eye(D), "steps": 0, "alpha": 1.0, "eta": ETA}),
    ],
    ids=str,
)
def test_bad_steps_and_clips_are_refused(call: str, options: dict[str, Any], data: Data) -> None:
    with pytest.raises(DPRegressError):
        getattr(cao2026, call)(data["X"], data["y"], mu=1.0, rng=np.random.default_rng(0), **options)


# ------------------------------------------------------------------ Algorithm 4

CANONICAL = pytest.mark.parametrize(
    "family", [GaussianFamily, BinomialFamily, PoissonFamily], ids=lambda f: f.distribution.name
)
RESPONSE_BOUND = 5.0


def glm_data(seed: int) -> Data:
    """Public rows around the mean of the private ones; counts, some of them above the bound."""
    of = make_data(seed)
    of["counts"] = np.random.default_rng(seed).poisson(2.0, size=N).astype(float)
    of["counts"][:FAR] = 100.0
    return of


def pmt_glm(family: Family, of: Data, mu: float, coef_bound: float, alpha: float = 0.1, seed: int = 0) -> Matrix:
    return cao2026.pmt_glm(
        of["X"], of["counts"], of["X_public"], family=family, mu=mu, alpha=alpha, eta=ETA, steps=STEPS,
        response_bound=RESPONSE_BOUND, coef_bound=coef_bound, rng=np.random.default_rng(seed),
    )  # fmt: skip


def whitened_norms(path: Matrix, of: Data) -> Vector:
    """Norms of iterates in the space in which they are projected."""
    values, vectors = np.linalg.eigh(of["second_moment"])
    return np.linalg.norm(path @ (vectors * np.sqrt(values)) @ vectors.T, axis=1)


@CANONICAL
@pytest.mark.parametrize("coef_bound", [0.02, 0.5])
@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_glm_without_noise_agrees(family: Family, coef_bound: float, alpha: float, seed: int) -> None:
    """Noise at this mu is below 1e-7 of every total."""
    of = glm_data(seed)
    found = pmt_glm(family, of, 1e11, coef_bound, alpha, seed)
    expected = cao2026_glm.pmt_glm(
        of["X"], of["counts"], of["X_public"], cumulant=family.distribution.name, mu=1e11, alpha=alpha, eta=ETA,
        steps=STEPS, response_bound=RESPONSE_BOUND, coef_bound=coef_bound, rng=np.random.default_rng(seed),
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@CANONICAL
@pytest.mark.parametrize("mu", [0.3, 3.0])
def test_glm_has_the_papers_noise(family: Family, mu: float, drawn: list[tuple[int, float]], seed: int) -> None:
    pmt_glm(family, glm_data(seed), mu, 0.3, seed=seed)
    pair = cao2026_glm.glm_scales(N, D, mu, ETA, STEPS, family.distribution.name, RESPONSE_BOUND, 0.3)
    assert [length for length, _ in drawn] == [MATRIX, D] * STEPS
    np.testing.assert_allclose([sigma / N for _, sigma in drawn], list(pair) * STEPS, rtol=1e-6)


@CANONICAL
@pytest.mark.parametrize("mu", [0.01, 1e11])
def test_glm_iterates_stay_in_the_ball(family: Family, mu: float, seed: int) -> None:
    """With much noise and with none; without noise a small ball is reached."""
    of = glm_data(seed)
    norms = whitened_norms(pmt_glm(family, of, mu, 0.02, alpha=0.0, seed=seed), of)
    assert (norms <= 0.02 * (1 + 1e-9)).all()
    if mu > 1:
        assert norms.max() >= 0.02 * (1 - 1e-9)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan])
def test_glm_needs_finite_bounds(bound: float) -> None:
    of = glm_data(0)
    with pytest.raises(InvalidInput, match="coef_bound"):
        pmt_glm(PoissonFamily, of, 1.0, bound)
    options = {"family": PoissonFamily, "mu": 1.0, "alpha": 0.0, "eta": ETA, "steps": 1, "coef_bound": 1.0}
    with pytest.raises(InvalidInput, match="response_bound"):
        cao2026.pmt_glm(
            of["X"], of["counts"], of["X_public"], response_bound=bound, rng=np.random.default_rng(0), **options
        )
