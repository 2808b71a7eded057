"""What clips take from the scores of a response in {0, 1}: by hand, and that fits are then not biased."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, nbinom, poisson

from dpregress import PublicMoments
from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.models import BinomialFamily, Family, GammaFamily, PoissonFamily, contrasts, family_of, probabilities
from dpregress.public.whitening import from_public
from dpregress.queries import ClippedGradient
from dpregress.solvers.glm.binary_model import WholeBinaryModel
from dpregress.solvers.glm.cut_off import CutOff, SampleCut, SoftmaxCut, TailCut
from dpregress.solvers.glm.score_loop import ModelledScore, Steps, take_steps
from dpregress.solvers.glm.surrogate_model import SurrogateModel
from dpregress.solvers.shared.explained import FixedPrior, explain
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.public_fit import LabelledRows, fit_public
from dpregress.solvers.shared.surrogate import SurrogateRows
from tests.solvers.shared.test_explained import ORDER, surrogates

TRUE = np.array([0.3, 1.0, -0.7, 0.4])
N, MU = 10_000, 0.5
#: A clip below most of the larger gradients of a row.
BITES = 0.6


def model_with_weights(seed: int) -> WholeBinaryModel:
    """Surrogate rows of which many are cut to the radius, and a clip that bites."""
    rng = np.random.default_rng(seed)
    space, rows, _ = surrogates(rng)
    weight = rng.uniform(0.3, 1.0, size=len(rows.x))
    x = weight[:, None] * np.column_stack([np.ones(len(weight)), 1.5 * rng.normal(size=(len(weight), ORDER - 1))])
    rows = replace(rows, x=x, weight=weight, unseen=np.zeros((ORDER, ORDER)))
    return WholeBinaryModel(BinomialFamily, space, rows, x.T @ x / len(x), N, 1e-12)


def expected_score(model: WholeBinaryModel, asked: Vector, clip: float, true: Vector) -> Vector:
    """The mean clipped gradient of the surrogate rows, over both responses of each, row by row."""
    total = np.zeros(ORDER)
    for x, weight in zip(model.rows.x, model.rows.weight, strict=True):
        here, truth = (1 / (1 + np.exp(-float(x @ coef) / weight)) for coef in (asked, true))
        one, zero = (x * weight * (y - here) for y in (1.0, 0.0))
        one, zero = (g * min(1.0, clip / float(np.linalg.norm(g))) for g in (one, zero))
        total += truth * one + (1 - truth) * zero
    return total / len(model.rows.x)


def cut_off(model: WholeBinaryModel, asked: Vector, clip: float) -> CutOff:
    found = model.cut_off(asked, clip)
    assert found is not None
    return found


@pytest.mark.parametrize("clip", [0.1, 0.6, 1.5])
def test_score_and_slope_by_hand(clip: float, seed: int) -> None:
    """A sum over all rows of what the clip takes, times the chance of the response; the slope by differences."""
    model = model_with_weights(seed)
    asked, coef = 0.5 * TRUE, TRUE + 0.1
    found = cut_off(model, asked, clip)
    whole = expected_score(model, asked, 1e3, coef)
    np.testing.assert_allclose(found.score(coef), whole - expected_score(model, asked, clip, coef), atol=1e-13)
    step = 1e-6
    naive = [(found.score(coef + step * e) - found.score(coef - step * e)) / (2 * step) for e in np.eye(ORDER)]
    np.testing.assert_allclose(found.slope(coef), np.array(naive).T, atol=1e-9)


def test_a_clip_beyond_all_gradients_takes_nothing(seed: int) -> None:
    found = cut_off(model_with_weights(seed), TRUE, 1e3)
    assert not found.score(0 * TRUE).any()
    assert not found.slope(0 * TRUE).any()


def test_a_score_is_expected_where_its_rows_are_of_the_model(seed: int) -> None:
    model = model_with_weights(seed)
    asked, clip = 0.5 * TRUE, 0.6
    score = ModelledScore.of(model, asked, np.zeros(ORDER), 1e-9, model.curvature(asked, asked), clip)
    np.testing.assert_allclose(score.change(TRUE), expected_score(model, asked, clip, TRUE), atol=1e-13)


class Expected:
    """An ``ask`` whose answers are expected scores of rows of the model, without noise."""

    def __init__(self, model: WholeBinaryModel) -> None:
        self.model = model

    def __call__(self, query: Any, spend: GDP) -> Any:
        assert isinstance(query, ClippedGradient)
        assert spend.mu > 0
        return SimpleNamespace(mean=expected_score(self.model, query.coef, query.clip, TRUE))


def biting(model: WholeBinaryModel, coef: Vector, _: GDP) -> ClippedGradient:
    return ClippedGradient(model.space, model.family, coef, BITES)


def explained(steps: Steps) -> Vector:
    """The estimate that explains all scores, not shrunk."""
    nothing = FixedPrior(np.zeros(ORDER), np.zeros((ORDER, ORDER)))
    return explain(steps.told, nothing, steps.coef, lambda move: move).coef


def test_a_logistic_fit_whose_clip_bites_is_not_biased(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With exact expectations the truth to 1e-6; without the account of clips 2% off and more."""
    monkeypatch.setattr(WholeBinaryModel, "question", biting)
    model = model_with_weights(seed)
    spends = [GDP(MU * np.sqrt(share)) for share in (0.1, 0.1, 0.1, 0.2, 0.2)]
    start = model.beginning(np.zeros(ORDER))
    steps = take_steps(Expected(model), lambda *_: model, start, spends, np.zeros((ORDER, ORDER)), N)
    assert steps.clips == (BITES,) * 5
    np.testing.assert_allclose(explained(steps), TRUE, atol=1e-6)

    monkeypatch.setattr(WholeBinaryModel, "cut_off", lambda *_: None)
    steps = take_steps(Expected(model), lambda *_: model, start, spends, np.zeros((ORDER, ORDER)), N)
    off = np.linalg.norm(explained(steps) - TRUE) / np.linalg.norm(TRUE)
    assert off > 0.02


@pytest.mark.parametrize("dispersion", [1.0, 2.5])
@pytest.mark.parametrize("family", [GammaFamily, family_of("gamma", "inverse")], ids=str)
def test_what_a_clip_takes_from_a_tail(family: Family, dispersion: float) -> None:
    """Against the integral over each row's gamma distribution."""
    x, weight = np.array([[1.0, 0.5], [0.8, -0.4]]), np.array([1.0, 0.8])
    rows, coef, clip = SurrogateRows(x, weight, np.zeros((2, 2))), np.array([0.7, 0.3]), 0.9
    wanted = np.zeros(2)
    mean = family.mean(rows.predictor(coef))
    factor = family.factor(rows.predictor(coef))
    for row, s, m, f in zip(x, weight, mean, factor, strict=True):

        def lost(y: float, s: float = s, m: float = m, f: float = f) -> float:
            residual = s * (y - m) * f
            return float(
                (residual - np.clip(residual, -clip, clip)) * gamma.pdf(y, 1 / dispersion, scale=m * dispersion)
            )

        edges = sorted({0.0, max(m - clip / (s * abs(f)), 0.0), m + clip / (s * abs(f)), 200.0})
        wanted += row * sum(quad(lost, low, high, limit=200)[0] for low, high in pairwise(edges)) / len(x)
    found = TailCut.of(rows, family, coef, clip, dispersion)
    np.testing.assert_allclose(found.score(coef), wanted, rtol=1e-6)


@pytest.mark.parametrize("dispersion", [0.3, 2.0])
@pytest.mark.parametrize("family", [GammaFamily, family_of("gamma", "inverse")], ids=str)
def test_what_a_clip_leaves_of_a_change_of_amounts(family: Family, dispersion: float) -> None:
    """By the mean residual of a row when all amounts grow by a part in 1e5."""
    rows, coef, clip, grown = SurrogateRows(np.ones((1, 1)), np.ones(1), np.zeros((1, 1))), np.array([0.7]), 0.9, 1e-5
    mean, factor = float(family.mean(coef)[0]), float(family.factor(coef)[0])

    def clipped(scale: float) -> float:
        def at(y: float) -> float:
            residual = min(max((scale * y - mean) * factor, -clip), clip)
            return residual * float(gamma.pdf(y, 1 / dispersion, scale=mean * dispersion))

        reach = clip / abs(factor)
        edges = sorted({0.0, 1e-6, max(mean - reach, 0.0) / scale, (mean + reach) / scale, 80 * mean})
        return sum(quad(at, low, high, limit=400, epsabs=1e-13)[0] for low, high in pairwise(edges))

    change = (clipped(1 + grown) - clipped(1 - grown)) / (2 * grown * mean * factor)
    assert TailCut.of(rows, family, coef, clip, dispersion).kept == pytest.approx(change, rel=1e-3)


@pytest.mark.parametrize("varied", [0.0, 0.8, 3.0])
@pytest.mark.parametrize(("mean", "clip"), [(0.02, 1.2), (0.1, 1.0), (0.7, 0.5), (2.3, 1.9), (55.0, 8.0)])
def test_what_a_clip_takes_of_counts(varied: float, mean: float, clip: float) -> None:
    """Against sums over Poisson and negative binomial distributions, of another mean for what is left of a change."""
    coef, grown, y = np.array([math.log(mean)]), 1e-4, np.arange(4_000)
    rows = SurrogateRows(np.ones((1, 1)), np.ones(1), np.zeros((1, 1)))

    def clipped(scale: float) -> float:
        at = scale * mean
        law = nbinom(1 / varied, 1 / (1 + varied * at)) if varied else poisson(at)
        return float(np.clip(y - mean, -clip, clip) @ law.pmf(y))

    change = (clipped(1 + grown) - clipped(1 - grown)) / (2 * grown * mean)
    found = TailCut.of(rows, PoissonFamily, coef, clip, 1 + varied * mean)
    assert found.kept == pytest.approx(max(change, 0.05), rel=1e-4)
    np.testing.assert_allclose(found.score(coef), -clipped(1.0), rtol=1e-5, atol=1e-9)


def test_rates_of_rare_counts_vary_by_no_more_than_is_likely() -> None:
    """A tail that was not seen makes any dispersion of rare counts; nearly all of them are within a clip of 1.2."""
    rows = SurrogateRows(np.ones((1, 1)), np.ones(1), np.zeros((1, 1)))
    assert TailCut.of(rows, PoissonFamily, np.array([math.log(0.01)]), 1.2, 5.0).kept > 0.95


def _tips(rng: np.random.Generator, m: int, slope: float = 0.4) -> tuple[Matrix, Vector]:
    """Counts most of which are 0, the others hundreds of times as often as their mean."""
    x = rng.normal(size=(m, 2))
    rate = np.exp(-2 + slope * x[:, 0])
    return x, rng.poisson(rate * rng.gamma(0.05, 20, m)).astype(float)


def test_a_sample_tells_what_a_clip_takes(seed: int) -> None:
    """By a naive mean over many rows, within six of the standard errors that it states (below 1e-8)."""
    rng = np.random.default_rng(seed)
    coef, clip = np.array([-2.0, 0.4, 0.0]), 1.5
    x, y = _tips(rng, 400_000)
    rows = np.column_stack([np.ones(len(x)), x])
    whole = y - np.exp(rows @ coef)
    wanted = rows.T @ (whole - np.clip(whole, -clip, clip)) / len(y)
    for m in (20_000, 60_000):
        part = LabelledRows(rows[:m], np.ones(m), np.zeros(m), y[:m])
        found = SampleCut.of(part, PoissonFamily, coef, clip)
        assert found.variance > 0
        np.testing.assert_allclose(found.score(coef), wanted, atol=6 * np.sqrt(3 * found.variance))
        assert not found.slope(coef).any()
    assert not SampleCut.of(part, PoissonFamily, coef, 1e9).score(coef).any()


def test_a_clipped_score_of_the_same_rows_moves_nothing(seed: int) -> None:
    """Public rows as private ones, without noise: the public fit explains the clipped score up to what is shrunk."""
    rng = np.random.default_rng(seed)
    x, y = _tips(rng, 60_000)
    public = PublicMoments.from_rows(x, y, names=["x0", "x1"])
    space = replace(from_public(public, intercept=True), radius=1e6)
    prior = fit_public(public, space, PoissonFamily)
    rows = SurrogateRows(prior.rows.x, prior.rows.weight, np.zeros((3, 3)))
    levels = Magnitudes.of_sample(prior.residuals)
    model = SurrogateModel(PoissonFamily, space, rows, np.eye(3), len(x), 1e-12, levels, prior.rows)
    residual = y - PoissonFamily.mean(prior.rows.x @ prior.coef)
    clipped = rows.x.T @ np.clip(residual, -1.5, 1.5) / len(x)
    score = ModelledScore.of(model, prior.coef, clipped, 1e-12, model.curvature(prior.coef, prior.coef), 1.5)
    assert np.linalg.norm(clipped) > 0.05
    assert np.linalg.norm(score.value - score.change(prior.coef)) < 0.1 * np.linalg.norm(clipped)


def test_what_a_clip_takes_of_classes(seed: int) -> None:
    """Against a sum over rows and classes; its slope is the derivative where the score was asked."""
    rng = np.random.default_rng(seed)
    basis, clip = contrasts(4), 0.6
    weight = rng.uniform(0.5, 1.0, size=50)
    rows = SurrogateRows(weight[:, None] * rng.normal(size=(50, 3)), weight, np.zeros((3, 3)))
    coef, other = rng.normal(size=(2, 3, 3))
    cut = SoftmaxCut.of(rows, basis, coef, clip)

    def expected(true: np.ndarray) -> np.ndarray:
        asked, found = (probabilities(rows.x / weight[:, None] @ each, basis) for each in (coef, true))
        total = np.zeros((3, 3))
        for x, s, mean, chance in zip(rows.x, weight, asked, found, strict=True):
            for k in range(4):
                residual = s * (basis[k] - mean @ basis)
                taken = residual * max(0.0, 1 - clip / np.linalg.norm(residual))
                total += chance[k] * np.outer(x, taken)
        return total.ravel() / len(weight)

    for true in (coef, other):
        np.testing.assert_allclose(cut.score(true.ravel()), expected(true), atol=1e-12)
    moves = 1e-6 * np.eye(9)
    slope = [(expected(coef + move.reshape(3, 3)) - expected(coef - move.reshape(3, 3))) / 2e-6 for move in moves]
    np.testing.assert_allclose(cut.slope(other.ravel()), np.array(slope).T, atol=1e-7)
    assert not SoftmaxCut.of(rows, basis, coef, 2.0).score(other.ravel()).any()
