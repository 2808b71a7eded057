"""Wang et al. (2023): the published noise, the noise-free answer, and what the proofs need."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import chi2

from dpregress.accounting import ApproxDP
from dpregress.accounting.classical import classical_mu
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, NoScaleWarning
from dpregress.mechanisms import SeededSampler
from dpregress.models.mean_responses import MeanResponse
from dpregress.papers import wang2023

N, M, D = 4_000, 500, 3
EPSILON, DELTA = 0.8, 1e-5
RADIUS = 1.0
Data = dict[str, Any]


@pytest.fixture
def data(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    w = rng.normal(size=D)
    w /= np.linalg.norm(w)
    x, public = rng.normal(size=(N, D)), rng.normal(size=(M, D))
    return {"w": w, "X": x, "public": public, "z": x @ w}


def gaussian_glm(of: Data, rng: np.random.Generator, **budget: Any) -> Vector:
    return wang2023.gaussian_glm(of["X"], expit(of["z"]), of["public"], loss="logistic", rng=rng, **budget)


def bounded_glm(of: Data, rng: np.random.Generator, **budget: Any) -> Vector:
    y = np.exp(of["z"] / 8) / math.e
    x, public = of["X"] / 8, of["public"] / 8
    return wang2023.bounded_glm(x, y, public, loss="exponential", radius=RADIUS, rng=rng, **budget)


def gaussian_nonlinear(of: Data, rng: np.random.Generator, **budget: Any) -> Vector:
    y = expit(of["z"]) + 0.01
    return wang2023.gaussian_nonlinear(of["X"], y, of["public"], link="sigmoid", noise_bound=0.05, rng=rng, **budget)


def bounded_nonlinear(of: Data, rng: np.random.Generator, **budget: Any) -> Vector:
    y = np.logaddexp(0, -of["z"] / 8)
    x, public = of["X"] / 8, of["public"] / 8
    return wang2023.bounded_nonlinear(x, y, public, link="log1pexp", noise_bound=0.05, radius=RADIUS, rng=rng, **budget)


def two_round_glm(of: Data, rng: np.random.Generator, **budget: Any) -> Vector:
    return wang2023.two_round_glm(of["X"], expit(of["z"]), loss="logistic", covariance_norm=1.0, rng=rng, **budget)


CALLS: tuple[Callable[..., Vector], ...] = (
    gaussian_glm,
    bounded_glm,
    gaussian_nonlinear,
    bounded_nonlinear,
    two_round_glm,
)
every_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)

# ------------------------------------------------------------------ the printed noise


class Watched(SeededSampler):
    """Keeps the value and the scale of every draw."""

    def __init__(self, generator: np.random.Generator) -> None:
        super().__init__(generator)
        self.seen: list[tuple[Vector, float]] = []

    def add_gaussian(self, value: Vector, sigma: float, *, apart: int = 0) -> Vector:
        self.seen.append((value, sigma))
        return super().add_gaussian(value, sigma, apart=apart)


def scales(call: Callable[..., Vector], of: Data, monkeypatch: pytest.MonkeyPatch, **budget: Any) -> list[float]:
    sources = []

    def made(rng: np.random.Generator) -> Watched:
        sources.append(Watched(rng))
        return sources[-1]

    monkeypatch.setattr(wang2023, "SeededSampler", made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoScaleWarning)
        call(of, np.random.default_rng(0), **budget)
    (source,) = sources
    return [sigma for _, sigma in source.seen]


def published_radius(of: Data) -> float:
    second = of["public"].T @ of["public"] / M
    return math.sqrt(20 * D * np.linalg.norm(second, 2) * math.log(N))


LOG = math.log(2.5 / DELTA)


@every_call
def test_noise_of_the_second_moment_is_the_printed_one(
    call: Callable[..., Vector], data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``32 r^4 log(2.5/delta)/eps^2`` for one user and entry, n of them in the sum; 128 in two rounds."""
    found = scales(call, data, monkeypatch, epsilon=EPSILON, delta=DELTA)
    radius, factor = published_radius(data), 32
    if call is two_round_glm:
        radius, factor = math.sqrt(10 * D * math.log(N)), 128
        # round two: one noisy prediction a user, which is not summed
        assert math.isclose(found[1] ** 2, 8 * LOG / EPSILON**2, rel_tol=1e-6)
    elif call in (bounded_glm, bounded_nonlinear):
        radius = RADIUS
    assert math.isclose(found[0] ** 2, N * factor * radius**4 * LOG / EPSILON**2, rel_tol=1e-6)


@pytest.mark.parametrize(("link", "bound"), [("sigmoid", 0.5 + 0.05), ("log1pexp", math.log(2) + 0.05)])
def test_noise_of_the_cross_moment_is_the_printed_one(link: str, bound: float, data: Data, seed: int) -> None:
    """``32 r^2 (L r + |f(0)| + C)^2 log(2.5/delta)/eps^2`` an entry and user: two-sided chi-square of level 1e-7."""
    slope = {"sigmoid": 0.25, "log1pexp": float(expit(RADIUS))}[link]
    large = slope * RADIUS + bound
    cross = []

    def kept(matrix: Matrix, vector: Vector, rcond: Any) -> tuple[Vector, None]:  # noqa: ARG001
        cross.append(vector)
        return np.zeros(D), None

    options = {"link": link, "noise_bound": 0.05, "radius": RADIUS, "epsilon": EPSILON, "delta": DELTA}
    repeats = 40
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", NoScaleWarning)
        patch.setattr(wang2023.np.linalg, "lstsq", kept)
        for repeat in range(repeats):
            rng = np.random.default_rng([seed, repeat])
            wang2023.bounded_nonlinear(np.zeros((N, D)), np.zeros(N), data["public"] / 8, rng=rng, **options)
    scale = large * RADIUS * math.sqrt(32 * N * LOG) / EPSILON / N
    found = np.sum((np.array(cross) / scale) ** 2)
    assert chi2.ppf(5e-8, repeats * D) <= found <= chi2.isf(5e-8, repeats * D)


@every_call
def test_exact_noise_keeps_the_budget(call: Callable[..., Vector], data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """In mu: what the classical constants spend against what (epsilon, delta) allows."""
    classical = scales(call, data, monkeypatch, epsilon=EPSILON, delta=DELTA)
    exact = scales(call, data, monkeypatch, epsilon=EPSILON, delta=DELTA, calibration="analytic")
    allowed = ApproxDP(EPSILON, DELTA).gaussian_mu
    spent = math.sqrt(2) * classical_mu(EPSILON / 2, DELTA / 2)
    if call is two_round_glm:
        assert math.isclose(classical[0] / exact[0], allowed / classical_mu(EPSILON / 4, DELTA / 2) / 2, rel_tol=1e-6)
    else:
        assert math.isclose(classical[0] / exact[0], allowed / spent, rel_tol=1e-6)


# ------------------------------------------------------------------ without noise


def naive(x: Matrix, y: Vector, z_rows: Matrix | None, slope: Callable[[Vector], Vector], radius: float) -> Vector:
    """Clip, solve, scale: the listing in six lines."""
    clipped = x * np.minimum(1, radius / np.linalg.norm(x, axis=1))[:, None]
    ols = np.linalg.solve(clipped.T @ clipped, clipped.T @ y)
    z = np.clip(clipped @ ols, 0, 1) if z_rows is None else z_rows @ ols
    signs = [c for c in (-1.0, 1.0) if c * np.mean(slope(c * z)) > 0]
    sign = signs[0] if len(signs) == 1 else 1.0
    return sign * brentq(lambda c: sign * c * np.mean(slope(sign * c * z)) - 1, 0, 12) * ols


def test_without_noise_the_answers_are_the_listings(data: Data, seed: int) -> None:
    """At an epsilon of 1e9 the noise is below 1e-4 of everything by six standard deviations."""
    x, public, z = data["X"], data["public"], data["z"]
    logistic = lambda t: expit(t) * expit(-t)  # noqa: E731
    small = {"radius": RADIUS}
    cases = {
        gaussian_glm: naive(x, expit(z), public, logistic, published_radius(data)),
        bounded_glm: naive(x / 8, np.minimum(np.exp(z / 8) / math.e, 1), public / 8, np.exp, **small),
        gaussian_nonlinear: naive(x, expit(z) + 0.01, public, logistic, published_radius(data)),
        bounded_nonlinear: naive(x / 8, np.logaddexp(0, -z / 8), public / 8, lambda t: -expit(-t), **small),
    }
    for call, expected in cases.items():
        found = call(data, np.random.default_rng(seed), epsilon=1e9, delta=0.1)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3, err_msg=call.__name__)


def test_gaussian_rows_give_the_true_coefficients(data: Data, seed: int) -> None:
    """Stein's lemma: with 4,000 rows and hardly any noise the error is far below a fifth of the coefficients'."""
    found = gaussian_glm(data, np.random.default_rng(seed), epsilon=1e9, delta=0.1)
    assert np.linalg.norm(found - data["w"]) < 0.2


@pytest.mark.parametrize("huge", [1e6, -1e6, np.nan, np.inf])
def test_responses_are_clipped(huge: float, data: Data, seed: int) -> None:
    """One wild response moves nothing by more than a bounded one does."""
    y = expit(data["z"])
    answers = []
    for first in (huge, 1.0):
        y[0] = first
        rng = np.random.default_rng(seed)
        answers.append(
            wang2023.gaussian_glm(data["X"], y, data["public"], loss="logistic", epsilon=1e9, delta=0.1, rng=rng)
        )
    np.testing.assert_allclose(answers[0], answers[1], atol=0.02)


# ------------------------------------------------------------------ public input


def test_losses_of_ones_own(data: Data, seed: int) -> None:
    own = MeanResponse("mine", expit, lambda z: expit(z) * expit(-z))
    y = expit(data["z"])
    answers = [
        wang2023.gaussian_glm(
            data["X"], y, data["public"], loss=loss, epsilon=1e9, delta=0.1, rng=np.random.default_rng(seed)
        )
        for loss in ("logistic", own)
    ]
    np.testing.assert_array_equal(*answers)


def test_wrong_public_input_is_refused(data: Data) -> None:
    rng, y = np.random.default_rng(0), np.zeros(N)
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "rng": rng}
    with pytest.raises(InvalidInput, match="none of logistic"):
        wang2023.gaussian_glm(data["X"], y, data["public"], loss="hinge", **options)
    with pytest.raises(InvalidInput, match="radius must be positive"):
        wang2023.bounded_glm(data["X"], y, data["public"], loss="logistic", radius=-1.0, **options)
    with pytest.raises(InvalidInput, match="noise_bound"):
        wang2023.gaussian_nonlinear(data["X"], y, data["public"], link="cubic", noise_bound=-1.0, **options)
    with pytest.raises(InvalidInput, match="shape"):
        wang2023.gaussian_glm(data["X"][:, :2], y, data["public"], loss="logistic", **options)
    with pytest.raises(InvalidInput, match='"classical" or "analytic"'):
        wang2023.gaussian_glm(data["X"], y, data["public"], loss="logistic", calibration="exact", **options)
