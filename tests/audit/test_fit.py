"""A whole fit, attacked: from the table of a user to the moments that the solver sees."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import GDP, DPLinearRegression, DPRidge
from dpregress.mechanisms.base import exact_total
from dpregress.queries import Counted, SecondMoment
from dpregress.rows import RawRows
from dpregress.trust import session
from tests import registry
from tests.audit.auditor import DRAWS, FAILURE, MU, Repeated, furthest, lower_bound
from tests.registry import ESTIMATORS, EstimatorEntry

ONE_RELEASE = [e for e in ESTIMATORS if e.kind in (DPLinearRegression, DPRidge) and e.setting == "the one-shot recipe"]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("entry", ONE_RELEASE, ids=str)
def test_mu(entry: EstimatorEntry, intercept: bool, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The bound exceeds a true claim with probability 1e-7; with 1e5 draws it misses 0.8 with less than 1e-12."""
    rng = np.random.default_rng(seed)
    model = entry.make(rng, privacy=GDP(MU), fit_intercept=intercept)
    x, y = (part[:200] for part in entry.data(rng))
    query = Counted(SecondMoment(model.fit(x, y).moments_.space))
    pair, seen, exact = furthest(query, registry.extremal_rows(query)), [], []
    for row in pair:
        rows = RawRows(np.concatenate([row.x, x[1:]]), np.concatenate([row.y, y[1:]]))
        sampler = Repeated(rng, DRAWS)
        monkeypatch.setattr(session, "noise_sampler", lambda *_, sampler=sampler, **__: sampler)
        model.fit(rows.x, rows.y)
        assert len(sampler.answers) == 1
        seen.append(sampler.answers[0])
        exact.append(exact_total(query, registry.private(rows)))
    direction = exact[1] - exact[0]
    middle = float((exact[0] + exact[1]) @ direction) / 2
    found = lower_bound(seen[0] @ direction, seen[1] @ direction, middle, FAILURE)
    assert 0.8 * MU <= found <= MU
