"""One of two collectors, attacked by the other one: it knows its own shares, all other answers, and one noisy sum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpregress.collector import ShareReport, Study
from dpregress.collector.shares.lists import AgreedReports
from dpregress.collector.shares.splitting import additive_share, seed_words, sum_of_shares
from dpregress.mechanisms import SeededSampler
from dpregress.mechanisms.base import exact_answer
from dpregress.mechanisms.randomness import random_bytes
from dpregress.rows import RawRows
from tests import registry
from tests.audit.auditor import DRAWS, FAILURE, furthest, lower_bound
from tests.collector.two import Two, two_collectors, two_study


class Redrawn(SeededSampler):
    """Draws the noise of one sum many times, and keeps all draws; the first one is used."""

    drawn: NDArray[np.int64]

    def add_integer_gaussian(self, value: NDArray[np.int64], scale: int) -> NDArray[np.int64]:
        self.drawn = super().add_integer_gaussian(np.tile(value, DRAWS), scale).reshape(DRAWS, len(value))
        return self.drawn[0]


def reported(study: Study, row: RawRows) -> list[ShareReport]:
    """Both shares of a row as a device sends them."""
    seed, name = random_bytes(16), random_bytes(16)
    assert row.y is not None
    share = additive_share(study.exact_steps(row.x[0], float(row.y[0])), seed)
    payloads = (seed, share.astype("<u8").tobytes())
    return [ShareReport(study.digest, name, bytes(32), payload) for payload in payloads]


def seen(two: Two, row: RawRows, attacker: int, sampler: Any, monkeypatch: Any) -> NDArray[np.float64]:
    """What the attacker computes from the other one's noisy sum and its own shares, for every draw of the noise."""
    pair = reported(two.study, row)
    for holder in range(2):
        assert [each.status for each in two.admit([pair[holder]], holder)] == [201]
    lists = two.lists()
    honest = 1 - attacker
    monkeypatch.setattr("dpregress.collector.shares.noisy_sums.SecureSampler", lambda: sampler)
    total = two.sum_of(honest, lists[attacker]).total
    own = pair[attacker].payload
    words = seed_words(own, two.study.query.size) if attacker == 0 else np.frombuffer(own, "<u8").astype(np.uint64)
    return (sum_of_shares([total, words]) - sampler.drawn[0] + sampler.drawn).astype(float)


def test_mu(tmp_path: Path, monkeypatch: Any, seed: int) -> None:
    """Either collector attacks: the bound exceeds a true claim with probability 1e-7; it misses 0.8 with 1e-12."""
    study = two_study(tmp_path, seed, minimum=1)
    query, rng = study.query, np.random.default_rng(seed)
    pair = furthest(query, registry.extremal_rows(query))
    exact = [exact_answer(query, registry.private(row)) * 2.0**study.bits for row in pair]
    direction, middle = exact[1] - exact[0], (exact[0] + exact[1]) / 2
    for attacker in range(2):
        found = []
        for place, row in enumerate(pair):
            folder = tmp_path / f"{attacker}{place}"
            folder.mkdir()
            with two_collectors(study, folder) as two:
                found.append(seen(two, row, attacker, Redrawn(rng), monkeypatch) @ direction)
        shown = lower_bound(found[0], found[1], float(middle @ direction), FAILURE)
        print(f"collector {attacker} shows {shown / study.spend.mu:.3f} of the claim")
        assert 0.8 * study.spend.mu <= shown <= study.spend.mu


def test_reports_agreed_upon_have_one_name() -> None:
    """The digest fixes the ids and both lists."""
    agreed = AgreedReports((bytes(16), bytes([1] * 16)), ("0" * 64, "1" * 64))
    for other in (
        AgreedReports(agreed.ids[:1], agreed.lists),
        AgreedReports(agreed.ids, ("1" * 64, "0" * 64)),
        AgreedReports((bytes(16), bytes([2] * 16)), agreed.lists),
    ):
        assert other.digest != agreed.digest
