"""A whole fit with bounded contributions, attacked: one unit has twice as many rows as count, all at the edge."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import GDP, DPRidge, PublicMoments
from dpregress.queries import Counted, SecondMoment
from dpregress.trust import session
from tests import registry
from tests.audit.auditor import DRAWS, FAILURE, MU, Repeated, furthest, lower_bound

#: Draws from which the attacker finds the direction to look in.
AIMING = 10_000


@pytest.mark.parametrize("most", [1, 4])
def test_mu_of_a_unit(most: int, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The bound exceeds a true claim with probability 1e-7; with 1e5 draws it misses 0.8 with less than 1e-12."""
    rng = np.random.default_rng(seed)
    x, y = (part[:200] for part in registry.linear_data(rng))
    model = DPRidge(GDP(MU), public=PublicMoments.from_rows(*registry.linear_data(rng, 60)), recipe="one-shot")
    unit = {"unit": [0] * (2 * most) + [f"other {i // 2}" for i in range(200 - 2 * most)], "max_rows_per_unit": most}
    query = Counted(SecondMoment(model.fit(x, y, **unit).moments_.space))
    seen = []
    for row in furthest(query, registry.extremal_rows(query)):
        sampler = Repeated(rng, DRAWS)
        monkeypatch.setattr(session, "noise_sampler", lambda *_, sampler=sampler, **__: sampler)
        x[: 2 * most], y[: 2 * most] = row.x, row.y
        model.fit(x, y, **unit)
        assert len(sampler.answers) == 1
        seen.append(sampler.answers[0])
    middles = [answers[:AIMING].mean(axis=0) for answers in seen]  # other draws than those that are counted
    direction = middles[1] - middles[0]
    without, having = (answers[AIMING:] @ direction for answers in seen)
    found = lower_bound(without, having, float(sum(middles) @ direction) / 2, FAILURE)
    assert 0.8 * MU <= found <= MU
