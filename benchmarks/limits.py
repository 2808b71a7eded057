"""``python -m benchmarks.limits``: fits without noise against statsmodels, weighted and of persons with an event time.

The largest relative difference of coefficients, over three tables of 4,000 simulated rows each. The budget is so large
that noise is rounding, and clips and radii shorten nothing. Scores are asked 20 times (8 times of persons), so that
what is left is not the convergence of Newton's method.
"""

from __future__ import annotations

import warnings
from typing import Any
from unittest.mock import patch

import numpy as np
import statsmodels.api as sm

from benchmarks.command import answer_help
from dpregress import (
    GDP,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPSurvival,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.coordinates import Vector
from dpregress.errors import SeededNoiseWarning
from dpregress.models.hazards import event_in_piece, time_in_pieces
from dpregress.solvers import PieceSteps, ScoreSteps

_ROWS, _TABLES, _LARGEST = 4_000, 3, 5
_BUDGET = GDP(1e20)
_CUTS = (0.25, 0.5, 1.0, 1.5)
_SLOPES = np.array([0.5, -0.4])

Rng = np.random.Generator


def _family(name: str) -> Any:
    log = sm.families.links.Log()
    return {
        "binomial": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(link=log),
    }[name]


def _responses(name: str, eta: Vector, rng: Rng) -> Vector:
    if name == "gaussian":
        return eta + rng.normal(size=len(eta))
    if name == "binomial":
        return (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(np.float64)
    if name == "poisson":
        return rng.poisson(np.exp(eta)).astype(np.float64)
    return rng.gamma(2.0, np.exp(eta) / 2.0)


def _apart(found: Vector, right: Vector) -> float:
    return float(np.abs(found / right - 1).max())


def weighted(name: str, rng: Rng) -> float:
    """How far the slopes of a weighted fit are from those of WLS, or of the GLM with frequency weights."""
    x, weights = rng.normal(size=(_ROWS, 2)), rng.integers(1, _LARGEST + 1, _ROWS).astype(np.float64)
    y = _responses(name, 0.3 + x @ _SLOPES, rng)
    kinds = {"gaussian": DPLinearRegression, "binomial": DPLogisticRegression, "poisson": DPPoissonRegressor}
    kind: Any = kinds.get(name, DPGLMRegressor)
    more = {} if name in kinds else {"family": name}
    public, schema = PublicMoments.from_rows(rng.normal(size=(300, 2))), Schema({"weights": Numeric(0, _LARGEST)})

    def steps(facts: Any, family: Any, budget: Any, alpha: float, **options: Any) -> ScoreSteps:
        return ScoreSteps(facts, family, budget, alpha, (1.0,) * 20, **options)

    with patch("dpregress.estimators.glm.ScoreSteps", steps):
        model = kind(_BUDGET, public=public, schema=schema, random_state=rng, **more).fit(x, y, weights=weights)
    design = sm.add_constant(x)
    if name == "gaussian":
        right = sm.WLS(y, design, weights=weights).fit()
    else:
        right = sm.GLM(y, design, family=_family(name), freq_weights=weights).fit(tol=1e-14, maxiter=100)
    return _apart(model.params[1:], right.params[1:])


def survival(rng: Rng) -> float:
    """How far hazard ratios are from those of the Poisson fit to a row for each piece of each person."""
    x = rng.normal(size=(_ROWS, 2))
    life, end = rng.weibull(1.5, _ROWS) * np.exp(-x @ _SLOPES / 1.5), rng.uniform(0.0, 2.0, _ROWS)
    event, time = (life <= end).astype(np.float64), np.minimum(life, end)

    def steps(facts: Any, cuts: Any, budget: Any, **options: Any) -> PieceSteps:
        return PieceSteps(facts, cuts, budget, (1.0,) * 8, **options)

    public = PublicMoments.from_rows(rng.normal(size=(300, 2)))
    with patch("dpregress.estimators.survival.PieceSteps", steps):
        model = DPSurvival(_BUDGET, cuts=_CUTS, public=public, random_state=rng).fit(x, event, time=time)
    pieces = np.eye(len(_CUTS))
    design = np.vstack([np.column_stack([np.tile(piece, (_ROWS, 1)), x]) for piece in pieces])
    exposure, events = time_in_pieces(time, _CUTS).T.ravel(), event_in_piece(time, event, _CUTS).T.ravel()
    risk = exposure > 0
    exploded = sm.GLM(events[risk], design[risk], family=sm.families.Poisson(), exposure=exposure[risk])
    right = exploded.fit(tol=1e-14, maxiter=100)
    return _apart(model.ratios()[:, 0], np.exp(right.params[len(_CUTS) :]))


def main() -> None:
    warnings.simplefilter("ignore", SeededNoiseWarning)
    print("| fit | statsmodels | largest relative difference |")
    print("|---|---|---|")
    for name in ("gaussian", "binomial", "poisson", "gamma"):
        found = max(weighted(name, np.random.default_rng(seed)) for seed in range(_TABLES))
        print(f"| {name}, weighted | {'WLS' if name == 'gaussian' else 'GLM, `freq_weights`'} | {found:.1e} |")
    found = max(survival(np.random.default_rng(seed)) for seed in range(_TABLES))
    print(f"| survival, hazard ratios | GLM of exploded rows | {found:.1e} |")


if __name__ == "__main__":
    answer_help(__doc__)
    main()
