"""The clip of gradients: by a naive search, and how it follows noise and what is known of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpregress.coordinates import Vector
from dpregress.models import BinomialFamily
from dpregress.solvers.glm.binary_model import WholeBinaryModel
from dpregress.solvers.shared.public_fit import LabelledRows
from tests.solvers.shared.test_explained import ORDER, surrogates

N = 10_000
COEF = np.array([0.3, 1.0, -0.7, 0.4])


def model_of(seed: int) -> WholeBinaryModel:
    """Rows with a heavy tail."""
    rng = np.random.default_rng(seed)
    space, rows, _ = surrogates(rng)
    x = np.column_stack([np.ones(len(rows.x)), rng.standard_t(3, size=(len(rows.x), ORDER - 1))])
    whole = replace(rows, x=x, weight=np.ones(len(x)), unseen=np.zeros((ORDER, ORDER)))
    return WholeBinaryModel(BinomialFamily, space, whole, x.T @ x / len(x), N, 1e-12)


def outcomes(model: WholeBinaryModel) -> tuple[Vector, Vector, Vector]:
    """Lengths of the gradients of both classes of each row, their chances, and the length of the row."""
    sizes, chances, lengths = [], [], []
    for x in model.rows.x:
        mean, length = 1 / (1 + np.exp(-float(x @ COEF))), float(np.linalg.norm(x))
        sizes += [length * (1 - mean), length * mean]
        chances += [mean / len(model.rows.x), (1 - mean) / len(model.rows.x)]
        lengths += [length, length]
    return np.array(sizes), np.array(chances), np.array(lengths)


def loss(model: WholeBinaryModel, clip: float, noise: float) -> float:
    """The formula of docs/methods/score-steps.md, over both outcomes of all rows."""
    sizes, chances, lengths = outcomes(model)
    cut = float(chances @ np.maximum(sizes - clip, 0))
    other = chances[np.arange(len(chances)) ^ 1] * len(model.rows.x)  # the chance of the other class: the residual
    information = chances * len(model.rows.x) * other * lengths**2 / 2
    kept = 1 - 2 * float(information @ np.maximum(other - clip / lengths, 0)) / float(information.sum())
    return ((noise * clip) ** 2 + cut**2 / ORDER) / max(kept, 1e-3) ** 2


@pytest.mark.parametrize("noise", [0.3, 0.03, 0.003])
def test_no_clip_is_better_by_more_than_a_larger_one_may_cost(noise: float, seed: int) -> None:
    """A larger clip may cost .02% of the deviance; candidates are quantiles, so that the least loss is nearly found."""
    model = model_of(seed)
    found = model.best_clip(COEF, noise)
    best = min(loss(model, clip, noise) for clip in np.geomspace(0.05, 30, 300))
    mean = 1 / (1 + np.exp(-model.rows.x @ COEF))
    deviance = -2 * float(np.mean(mean * np.log(mean) + (1 - mean) * np.log(1 - mean)))
    information = float(np.mean(mean * (1 - mean) * np.sum(model.rows.x**2, axis=1))) / ORDER
    assert loss(model, found, noise) <= 1.1 * best + 2e-4 * deviance * information


def test_noise_falls_with_the_budget_and_without_it_nothing_is_clipped(seed: int) -> None:
    model = model_of(seed)
    budgets = 2.0 ** np.arange(-8, 12)
    clips = [model.best_clip(COEF, 1 / mu) for mu in budgets]
    assert np.all(np.diff(clips) >= 0)
    assert np.all(np.diff(np.array(clips) / budgets) <= 1e-12)
    assert model.best_clip(COEF, 1e-12) > outcomes(model)[0].max()


def test_labels_that_the_model_does_not_expect_have_a_wider_clip() -> None:
    """Those that follow it change little: their sizes are a sample of what it expects. Deterministic, one table."""
    model, rng = model_of(0), np.random.default_rng(0)
    model = replace(model, space=replace(model.space, radius=np.inf))
    x, mean = model.rows.x, model.mean(COEF)
    expected = (rng.random(len(x)) < mean).astype(float)
    against = np.where(np.linalg.norm(x, axis=1) > 3, mean < 0.5, expected).astype(float)

    def clip(labels: Vector) -> float:
        weight, offset = np.ones(len(x)), np.zeros(len(x))
        return replace(model, labelled=LabelledRows(x, weight, offset, labels)).best_clip(COEF, 0.03)

    plain = model.best_clip(COEF, 0.03)
    assert 0.8 * plain < clip(expected) < 1.3 * plain
    assert clip(against) > 1.3 * plain
