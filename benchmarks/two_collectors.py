"""Accuracy of one study under three kinds of trust, at one price: devices, two collectors, a curator.

``python -m benchmarks.two_collectors`` prints the root mean square error of four slopes on invented people, the
median of all repeats. 500 more people are public without their responses.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from dpregress import ApproxDP, DPGLMRegressor, DPRidge, LocalGLM, PublicMoments
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import IntegerGaussian
from dpregress.mechanisms.randomness import sampling_generator
from dpregress.releases import Isotropic, Release
from dpregress.rows import RawRows
from dpregress.solvers.local.message_plan import MessagePlan

_SLOPES, _PUBLIC, _DELTA = np.array([0.8, -0.6, 0.4, 0.2]), 500, 1e-6
_BOUNDS = {"gaussian": (-5.0, 5.0), "binomial": (0.0, 1.0)}
Rng = np.random.Generator


def people(rng: Rng, family: str, n: int) -> tuple[Matrix, Vector]:
    """Rows of correlated columns and their responses."""
    x = rng.normal(size=(n, 4)) @ np.linalg.cholesky(0.5 * np.eye(4) + 0.5)
    eta = x @ _SLOPES
    if family == "gaussian":
        return x, np.clip(eta + rng.normal(size=n), *_BOUNDS[family])
    return x, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


def collected(plan: MessagePlan, x: Matrix, y: Vector, rng: Rng) -> Release:
    """What two collectors release about these people, with seeded noise of the law of the study."""
    noise = IntegerGaussian.for_query(plan.query, plan.spend)  # type: ignore[arg-type]
    step = 2.0**-noise.bits
    sigma = np.sqrt(plan.collectors) * noise.scale * step
    total = plan.query.value(plan.query.row_map(RawRows(x, y))) + rng.normal(0, sigma, plan.query.size)
    released: Release = plan.query.read(total, n=len(y), noise=Isotropic(sigma), events=(plan.spend,))
    return released


def slopes(family: str, epsilon: float, n: int, rng: Rng) -> dict[str, Vector]:
    """The slopes of one repeat by each kind of trust."""
    x, y = people(rng, family, n)
    public = PublicMoments.from_rows(people(rng, family, _PUBLIC)[0])
    budget, bounds = ApproxDP(epsilon, _DELTA), _BOUNDS[family]
    local = LocalGLM(budget, family=family, public=public, response_bounds=bounds, random_state=rng)
    two = LocalGLM(budget, family=family, public=public, response_bounds=bounds)
    plan = two.plan(("x0", "x1", "x2", "x3"), n, collectors=2)
    curator = (
        DPRidge(budget, public=public, random_state=rng)
        if family == "gaussian"
        else DPGLMRegressor(budget, family="binomial", public=public, random_state=rng)
    )
    return {
        "devices": local.fit(x, y).coef_,
        "two collectors": two.fit_release(collected(plan, x, y, rng), plan).coef_,
        "curator": np.ravel(curator.fit(x, y).coef_),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")  # seeded noise
    print("| family | epsilon | people | devices | two collectors | curator |\n|---|---|---|---|---|---|")
    for family in _BOUNDS:
        for epsilon in (1.0, 4.0):
            for n in (2_000, 20_000):
                rng = sampling_generator([n, int(epsilon), len(family)])  # type: ignore[arg-type]
                runs = [slopes(family, epsilon, n, rng) for _ in range(repeats)]
                errors = [np.median([np.sqrt(np.mean((run[name] - _SLOPES) ** 2)) for run in runs]) for name in runs[0]]
                print(
                    f"| {family} | {epsilon:g} | {n:,} | {' | '.join(f'{each:.3f}' for each in errors)} |", flush=True
                )


if __name__ == "__main__":
    main()
