"""The shares of the questions of score steps: scores keep enough of the budget, whatever else is asked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpregress import GDP, Numeric, PublicMoments, Schema
from dpregress.coordinates import Exposure
from dpregress.models import BinomialFamily, GammaFamily, PoissonFamily
from dpregress.models.families import Family
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import start
from dpregress.solvers.glm.score_steps import ScoreSteps

ROUNDING = 1e-9


def facts(d: int, n: int, known: str, exposed: bool) -> PublicFacts:
    """Facts of a table with d columns: by a schema, or by few or many public rows, with labels or without."""
    names = tuple(f"x{i}" for i in range(d))
    schema = Schema({name: Numeric(-1, 1) for name in names})
    public = None
    if known != "schema":
        rng = np.random.default_rng(d)
        x = rng.uniform(-1, 1, size=(max(30, (3 if known == "few labelled" else 20) * d), d))
        y = rng.integers(0, 2, size=len(x)).astype(np.float64)
        public = PublicMoments.from_rows(x, None if known == "unlabelled" else y, names=names)
    found = start(names, intercept=True, public=public, schema=schema if known == "schema" else None, row_bound=None)
    exposure = Exposure("years", 0.1, 3.0) if exposed else None
    return PublicFacts(n, "y", found, public, schema if known == "schema" else None, exposure)


@pytest.mark.parametrize("family", [PoissonFamily, GammaFamily, BinomialFamily], ids=["counts", "amounts", "classes"])
@pytest.mark.parametrize("known", ["schema", "unlabelled", "labelled", "few labelled"])
def test_scores_keep_enough(family: Family, known: str) -> None:
    """At least 30% of what the start leaves, and all questions together the whole budget."""
    for d, n, epsilon in itertools.product((1, 5, 40), (100, 3_000, 10**6), (0.03, 0.3, 3.0)):
        for exposed in (False, True) if family == PoissonFamily else (False,):
            solver = ScoreSteps(facts(d, n, known, exposed), family, GDP(epsilon), 0.0)
            squares = {name: (part.mu / epsilon) ** 2 for name, part in solver._spend.items()}
            scores = sum((part.mu / epsilon) ** 2 for part in solver._steps)
            assert sum(squares.values()) + scores == pytest.approx(1, rel=ROUNDING)
            assert scores >= 0.3 * (1 - squares.get("start", 0.0)) * (1 - ROUNDING), (d, n, epsilon, exposed)
