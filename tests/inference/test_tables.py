"""Estimates from released pair tables: their limit without noise, and releases that tell nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpregress import ApproxDP, Schema
from dpregress.errors import SeededNoiseWarning
from dpregress.estimators.marginals_release import release_marginals
from dpregress.inference import table_estimates
from dpregress.models import BinomialFamily, GaussianFamily, PoissonFamily
from dpregress.public.coding import domain_of
from dpregress.releases import Marginals
from dpregress.releases.marginals import original_design
from dpregress.rows.codes import decoded

LEVELS = {"a": 4, "b": 3, "k": 3, "y": 2, "v": 8}
DOMAIN = domain_of(Schema.from_levels({name: range(size) for name, size in LEVELS.items()}, numeric=["a", "b", "v"]))


def released(epsilon: float, n: int = 20_000) -> tuple[Marginals, np.ndarray]:
    rng = np.random.default_rng(0)
    a, k = rng.integers(4, size=n), rng.integers(3, size=n)
    b = np.clip(a // 2 + rng.integers(2, size=n), 0, 2)
    y = (rng.random(n) < 1 / (1 + np.exp(1.5 - a + 0.5 * b - (k == 2)))) * 1
    v = np.minimum(rng.poisson(np.exp(0.3 * a - 0.2 * b)), 7)
    codes = np.column_stack([a, b, k, y, v])
    table = decoded(DOMAIN, codes)
    with pytest.warns(SeededNoiseWarning):
        found = release_marginals(
            table, DOMAIN, privacy=ApproxDP(epsilon, 1e-6), recipe="residuals", random_state=0, progress=False
        )
    return found.marginals, codes


@pytest.mark.parametrize(
    ("target", "family", "level"), [("y", BinomialFamily, "1"), ("v", PoissonFamily, None), ("v", GaussianFamily, None)]
)
def test_without_noise_they_are_maximum_likelihood(target: str, family: object, level: str | None) -> None:
    """To the error of a mixture that stands for the joint distribution of three features: a fifth of a standard error.

    At epsilon 10^5 the privacy noise is below a tenth of the standard errors.
    """
    marginals, codes = released(1e5)
    found = table_estimates(marginals, target, ["a", "b", "k"], family, level)  # type: ignore[arg-type]
    assert found is not None
    x = np.column_stack([np.ones(len(codes)), original_design(DOMAIN, codes, ["a", "b", "k"])])
    y, coef = codes[:, DOMAIN.index(target)].astype(float), np.zeros(5)
    for _ in range(30):
        slope = (x * family.slope(x @ coef)[:, None]).T @ x  # type: ignore[attr-defined]
        coef = coef + np.clip(np.linalg.solve(slope, x.T @ (y - family.mean(x @ coef))), -1, 1)  # type: ignore[attr-defined]
    error = np.sqrt(np.diag(found.sampling))
    assert found.identified.all()
    assert (np.abs(found.estimate - coef) < 0.2 * error).all(), (found.estimate - coef) / error
    assert (np.sqrt(np.diag(found.privacy)) < 0.1 * error).all()


@pytest.mark.parametrize("value", [0.0, 1e300, -1e300])
def test_whatever_was_released_there_is_an_answer(value: float) -> None:
    """Without a warning or an error: coefficients that are not identified, or none."""
    marginals, _ = released(1.0, 500)
    assert marginals.unshrunk is not None
    for family, target, level in ((BinomialFamily, "y", "1"), (PoissonFamily, "v", None), (GaussianFamily, "v", None)):
        wild = replace(marginals, unshrunk=(np.full_like(marginals.gram, value), marginals.unshrunk[1]))
        found = table_estimates(wild, target, ["a", "b", "k"], family, level)
        assert found is None or not np.isfinite(found.estimate[found.identified]).any() or abs(value) < 1
