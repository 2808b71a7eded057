"""The noise of devices in other languages: known answers on given bytes, and the law of the reference."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, norm

from tests.reference.discrete_gaussian import gaussian, known_answers

VECTORS = Path(__file__).parent / "vectors" / "discrete_gaussian.json"


def test_known_answers() -> None:
    """The file is what the reference draws: browsers are compared with the file."""
    assert json.loads(VECTORS.read_text(encoding="utf-8")) == known_answers()


@pytest.mark.parametrize("scale", [1, 3])
def test_the_reference_has_the_law(scale: int, seed: int) -> None:
    """4,000 draws against ``exp(-k^2 / 2 s^2)``; chi-square, failure probability 1e-9."""
    rng = np.random.default_rng([seed, scale])
    n, far = 4_000, 4 * scale
    counts = Counter(int(np.clip(gaussian(scale, rng.bytes), -far, far)) for _ in range(n))
    support = np.arange(-12 * scale, 12 * scale + 1)
    weight = np.exp(-(support**2) / (2 * scale**2))
    weight /= weight.sum()
    expected = {k: n * float(weight[np.clip(support, -far, far) == k].sum()) for k in range(-far, far + 1)}
    few = [k for k in expected if expected[k] < 20]
    kept = [k for k in expected if expected[k] >= 20]
    pairs = [(counts[k], expected[k]) for k in kept]
    pairs.append((sum(counts[k] for k in few), sum(expected[k] for k in few)))
    statistic = sum((found - wanted) ** 2 / wanted for found, wanted in pairs if wanted > 0)
    assert statistic < chi2.isf(1e-9, len(pairs) - 1)


def test_a_large_scale_is_nearly_normal(seed: int) -> None:
    """2,000 draws at 2^24: mean and mean square within 6.2 standard errors, failure probability 2e-9."""
    rng, n = np.random.default_rng(seed), 2000
    z = np.array([gaussian(2**24, rng.bytes) for _ in range(n)]) / 2**24
    limit = float(norm.isf(5e-10))
    assert abs(z.mean()) < limit / math.sqrt(n)
    assert abs((z**2).mean() - 1) < limit * math.sqrt(2 / n)
