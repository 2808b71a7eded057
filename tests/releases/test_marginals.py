"""Mixtures, moments and noise laws of marginals, and their files."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress import ApproxDP
from dpregress.accounting import GDP, MemoryLedger, Relation
from dpregress.errors import InvalidInput
from dpregress.estimators.marginals_release import release_marginals
from dpregress.mechanisms import SeededSampler
from dpregress.releases import Entrywise, Marginals, Mixture
from dpregress.releases.marginals import encoded_design
from dpregress.releases.marginals_files import load_marginals, marginals_text
from dpregress.rows import ArraySource, LevelRows, PrivateRows
from dpregress.rows.codes import decoded
from dpregress.solvers.marginals.residual_planner import ResidualPlanner
from dpregress.trust import Central, Session
from tests import registry
from tests.registry import DOMAINS


def mixture_of(rng: np.random.Generator, name: str) -> Mixture:
    domain = DOMAINS[name]
    blocks = [rng.dirichlet(np.ones(size), size=5) for size in domain.sizes]
    return Mixture(domain, np.hstack(blocks))


@pytest.mark.parametrize("name", DOMAINS)
def test_moments_of_a_mixture(name: str, seed: int) -> None:
    """Points and rows of a mixture have its moments: within 0.05 for 20,000 points.

    Rows are independent and entries lie in [-1, 1]: a mean of 40,000 is off by 0.05 with probability below 1e-20.
    """
    rng = np.random.default_rng(seed)
    mixture = mixture_of(rng, name)
    features = mixture.domain.names
    for codes in (mixture.points(20_000), mixture.sample(40_000, rng)):
        assert (codes >= 0).all()
        assert (codes < np.array(mixture.domain.sizes)).all()
        rows = encoded_design(mixture.domain, codes, features)
        places = Marginals(mixture.domain, 1.0, mixture.design_moment, Entrywise(np.zeros((1, 1))), mixture, (),
                           np.zeros(1)).places(features)  # fmt: skip
        expected = mixture.design_moment[np.ix_(places, places)]
        assert np.abs(rows.T @ rows / len(rows) - expected).max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", DOMAINS)
def test_residual_noise_is_exact(name: str, seed: int) -> None:
    """``Cov(N v)`` of ResidualPlanner's moments against 3,000 releases.

    Each entry's average has a standard error below 0.03 of the largest variance (products of normals have at most
    twice the variance of a square); a quarter of it is 8 of them, passed with probability below 1e-12 an entry.
    """
    rng = np.random.default_rng(seed)
    domain = DOMAINS[name]
    rows = PrivateRows(ArraySource(LevelRows(domain)(registry.coded_rows(rng, domain, 200)).x))
    vector = rng.normal(size=domain.width)
    found, promise = [], GDP(1.0)
    solver = ResidualPlanner(domain, promise)
    from unittest.mock import patch

    with patch("dpregress.solvers.marginals.residual_planner.MixtureFit", _NoFit):
        for _ in range(3000):
            reservation = MemoryLedger(promise, relation=Relation.ADD_REMOVE).reserve(
                promise, relation=Relation.ADD_REMOVE
            )
            estimate = solver.estimate(Session(Central(), rows, SeededSampler(rng), reservation))
            found.append(estimate.gram @ vector)
    noise = estimate.noise.product_covariance(vector)
    empirical = np.cov(np.array(found).T)
    assert np.abs(empirical - noise).max() < 0.25 * np.abs(noise).max()
    cut = estimate.noise.cut([0, 1]).product_covariance(vector[:2])
    assert cut.shape == (2, 2)


class _NoFit:
    """Stands for the mixture's fit, which this test does not look at."""

    def __init__(self, domain: object, chances: list[np.ndarray]) -> None:
        self.mixture = Mixture(domain, np.concatenate(chances)[None])  # type: ignore[arg-type]

    def fit(self, *_: object) -> Mixture:
        return self.mixture


@pytest.mark.parametrize("recipe", ["one-shot", "residuals", "gaussian"])
@pytest.mark.parametrize("name", DOMAINS)
def test_variances_between_attributes_are_those_of_the_law(name: str, recipe: str, seed: int) -> None:
    """The entry (a, b) of N is ``(N e_a)_b``."""
    rng, domain = np.random.default_rng(seed), DOMAINS[name]
    codes = LevelRows(domain)(registry.coded_rows(rng, domain, 50)).x.astype(np.int64)
    released = release_marginals(decoded(domain, codes), domain, privacy=ApproxDP(1.0, 1e-6), recipe=recipe)
    assert released.marginals.unshrunk is not None
    noise = released.marginals.unshrunk[1]
    for first, second in domain.pairs:
        a, others = domain.columns_of(first).start, domain.columns_of(second)
        exact = np.diag(noise.product_covariance(np.eye(domain.width)[a]))
        np.testing.assert_allclose(noise.between[a, others], exact[others], rtol=1e-9)


@pytest.mark.parametrize("recipe", ["one-shot", "residuals"])
def test_files(recipe: str, seed: int, tmp_path: Path) -> None:
    """What is read is what was written; anything else is refused in one line."""
    rng = np.random.default_rng(seed)
    domain = DOMAINS["mixed"]
    codes = LevelRows(domain)(registry.coded_rows(rng, domain, 300)).x.astype(np.int64)
    released = release_marginals(decoded(domain, codes), domain, privacy=ApproxDP(1.0, 1e-6), recipe=recipe)
    path = tmp_path / "m.json"
    path.write_text(marginals_text(released.marginals, released.privacy, software="test"), encoding="utf-8")
    back, privacy = load_marginals(path)
    np.testing.assert_array_equal(back.gram, released.marginals.gram)
    np.testing.assert_array_equal(back.mixture.chances, released.marginals.mixture.chances)
    vector = rng.normal(size=domain.width)
    np.testing.assert_allclose(
        back.noise.product_covariance(vector), released.marginals.noise.product_covariance(vector)
    )
    assert back.unshrunk is not None
    assert released.marginals.unshrunk is not None
    np.testing.assert_array_equal(back.unshrunk[0], released.marginals.unshrunk[0])
    np.testing.assert_array_equal(back.unshrunk[1].between, released.marginals.unshrunk[1].between)
    assert back.domain == domain
    assert privacy.describe() == released.privacy.describe()
    record = json.loads(path.read_text())
    broken: list[tuple[str, Any]] = [
        ("count", 0), ("count", math.inf), ("count", 10**400), ("chances", ""), ("domain", []),
        ("chances", base64.b64encode(np.full(domain.levels, -1.0).tobytes()).decode()),
        ("domain", [record["domain"][0] | {"stand_in": 99}, *record["domain"][1:]]),
        ("domain", [record["domain"][0] | {"values": [1.0]}, *record["domain"][1:]]),
        ("noise", {"law": "residuals", "sigmas": [[[0], 1.0]], "kept": []}),
        ("noise", {"law": "residuals", "sigmas": [], "kept": list(range(domain.width))}),
        ("unshrunk", {"gram": record["gram"], "noise": {"law": "entrywise", "variance": record["gram"]}}),
        ("unshrunk", {"gram": "", "noise": record["unshrunk"]["noise"]}),
    ]  # fmt: skip
    for name, value in broken:
        (tmp_path / "broken.json").write_text(json.dumps(record | {name: value}), encoding="utf-8")
        with pytest.raises(InvalidInput, match="not a file of marginals") as refused:
            load_marginals(tmp_path / "broken.json")
        assert "\n" not in str(refused.value)
    for text in ("{}", "[]", '{"format": "dpregress.marginals/9"}', path.read_text().replace('"count"', '"cnt"')):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidInput, match="not a file of marginals"):
            load_marginals(path)
