"""Whole fits, attacked: every transcript stays within its claim, and the same attack finds planted faults."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.audit.__main__ import AUDITS, lines, searched, tally
from benchmarks.audit.attack import Audit, Pair, Tally, claimed, lower_bound
from benchmarks.audit.search import FitAudit, Neighbours
from scipy.stats import binom, norm

from dpregress import GDP, ZCDP, LocalGLM
from dpregress.accounting import PureDP, Reservation
from dpregress.coordinates.exact import ExactVector
from dpregress.errors import SeededNoiseWarning
from dpregress.mechanisms import SeededSampler
from dpregress.queries import ClippedGradient, ResponseHistogram, RowSketch, SecondMoment
from dpregress.rows import BoundedRows
from tests.registry import FITS

ROOT = Path(__file__).parents[2]
RECORDS: dict[str, dict[str, Any]] = json.loads((ROOT / "benchmarks/audit/audit.json").read_text())
#: Probability that a test of a true claim, or of an attack with the reach that it had, fails.
FAILURE = 1e-7
#: Rounding in sums and norms.
ROUNDING = 1e-9
RUNS, FEW_RUNS = 300, 3
#: Bounds of these are slow; their transcripts are checked every time, and an attack reaches no more than they show.
SLOW = ("linear, unlabelled", "logistic, labelled", "Poisson, labelled", "marginals, aim", "vertical, two parties")
FAST = ("linear, labelled",)
BOUNDED = (*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW))
BY_NAME = {audit.name: audit for audit in AUDITS}
WHOLE_FITS = [audit for audit in AUDITS if isinstance(audit, FitAudit)]


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        yield


def pair_of(name: str) -> Pair:
    """The pair that the benchmark found."""
    row, other = (None if row is None else np.array(row) for row in RECORDS[name]["pair"])
    assert row is not None
    return Pair(row, other)


def attacked(name: str) -> Neighbours:
    attack = BY_NAME[name].attack(pair_of(name))
    assert isinstance(attack, Neighbours)
    return attack


# ---------------------------------------------------------------- claims hold


def test_every_estimator_is_audited() -> None:
    """Users' own reports stand for the local model, whose fit only simulates their sum."""
    audited = {audit.cell.kind for audit in WHOLE_FITS} | {LocalGLM}
    assert {entry.kind for entry in FITS} <= audited


@pytest.mark.parametrize("audit", WHOLE_FITS, ids=str)
def test_no_transcript_exceeds_its_claim(audit: FitAudit, seed: int) -> None:
    """Exactly, on whichever table: no answer and no sum of answers is further apart than what it cost."""
    attack, rng = attacked(audit.name), np.random.default_rng(seed)
    for run in range(FEW_RUNS):
        transcript = attack.transcript(run % 2, rng)
        assert max(step.reach for step in transcript.steps) <= audit.cell.most * (1 + ROUNDING)
        assert transcript.reach <= 1 + ROUNDING
        assert transcript.paid <= claimed(audit.claim) * (1 + ROUNDING)


@pytest.mark.parametrize("name", BOUNDED)
def test_bound(name: str, seed: int) -> None:
    """Two tests fail with probability 1e-7: that the claim holds, and that the attack is as good as in the table."""
    audit = BY_NAME[name]
    found = Tally()
    rng, attack = np.random.default_rng(seed), attacked(name)
    while found.runs < RUNS:
        found.add(attack.run(rng))
    assert found.bound(audit.claim, FAILURE) <= claimed(audit.claim)
    assert found.largest <= 1 + ROUNDING
    assert found.reach >= 0.97 * Tally(**RECORDS[name]["tally"]).reach
    if not isinstance(audit.claim, ZCDP):  # whose choices make losses that are not normal
        assert found.right >= binom.ppf(FAILURE, RUNS, norm.cdf(0.98 * found.reach * claimed(audit.claim) / 2))


@pytest.mark.parametrize("audit", [audit for audit in AUDITS if not isinstance(audit, FitAudit)], ids=str)
def test_reports_of_devices(audit: Audit, seed: int) -> None:
    """As above."""
    pair = searched(audit)
    found = tally(audit, pair, Tally(), 50, seed=seed)
    assert found.largest <= 1 + ROUNDING
    assert found.reach >= 0.99
    assert found.bound(audit.claim, FAILURE) <= claimed(audit.claim)


# ---------------------------------------------------------------- planted faults are found


def test_a_clip_twice_too_large(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    exact = ClippedGradient.exact

    def wide(query: ClippedGradient, rows: BoundedRows) -> ExactVector:
        return exact(ClippedGradient(query.space, query.family, query.coef, 2 * query.clip, query.reach), rows)

    attack = attacked("linear, labelled")
    monkeypatch.setattr(ClippedGradient, "exact", wide)
    assert attack.transcript(0, np.random.default_rng(seed)).reach > 1.5


@pytest.mark.parametrize(
    ("name", "query", "method", "wrong"),
    [
        ("vertical, two parties", SecondMoment, "replacement", lambda query: query.contribution()),
        ("vertical, two parties", RowSketch, "replacement", lambda query: query.contribution()),
        ("linear, unlabelled", ResponseHistogram, "replacement", lambda query: query.contribution()),
    ],
)
def test_the_sensitivity_of_the_other_relation(
    name: str, query: type[Any], method: str, wrong: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Without the factor sqrt 2 or 2."""
    attack = attacked(name)
    monkeypatch.setattr(query, method, wrong)
    transcript = attack.transcript(0, np.random.default_rng(seed))
    assert max(step.reach for step in transcript.steps if isinstance(step.query, query)) > 1.3


def test_charges_not_drawn(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every other draw is forgotten."""
    attack, plain, calls = attacked("linear, labelled"), Reservation.draw, []

    def forgotten(reservation: Reservation, event: Any) -> None:
        calls.append(event)
        if len(calls) % 2:
            plain(reservation, event)

    monkeypatch.setattr(Reservation, "draw", forgotten)
    assert attack.transcript(0, np.random.default_rng(seed)).reach > 1.1


def test_noise_that_depends_on_the_rows(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    attack = attacked("vertical, two parties")
    exact = SecondMoment.contribution
    seen: list[int] = []

    def growing(query: SecondMoment) -> float:
        seen.append(1)
        return exact(query) * (1 + 1e-6 * len(seen))

    monkeypatch.setattr(SecondMoment, "replacement", growing)
    assert attack.transcript(0, np.random.default_rng(seed)).reach == np.inf


@pytest.mark.slow
def test_less_noise_than_the_sampler_says(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Half of it, which only runs can show; missed with probability below 1e-7."""
    audit = BY_NAME["linear one-shot, labelled"]
    attack, rng = attacked(audit.name), np.random.default_rng(seed)
    plain = SeededSampler._draw
    monkeypatch.setattr(SeededSampler, "_draw", lambda sampler, value, sigma: plain(sampler, value, sigma / 2))
    found = Tally()
    while found.runs < 2 * RUNS:
        found.add(attack.run(rng))
    assert found.bound(audit.claim, FAILURE) > claimed(audit.claim)


# ---------------------------------------------------------------- bounds and the page


@pytest.mark.parametrize(
    ("claim", "most"),
    [(GDP(1.0), norm.cdf(0.5)), (PureDP(1.0), 1 / (1 + np.exp(-1))), (ZCDP(0.5), norm.cdf(0.5))],
    ids=str,
)
def test_bounds_hold(claim: Any, most: float, seed: int) -> None:
    """The largest share of right guesses that a claim allows shows less than it, but with probability 1e-7."""
    right = int(np.random.default_rng(seed).binomial(10_000, most))
    bound = lower_bound(claim, right, 10_000, FAILURE)
    assert 0.6 * claimed(claim) < bound <= claimed(claim)


def test_a_coin_shows_nothing() -> None:
    assert lower_bound(GDP(1.0), 50, 100, 0.01) == lower_bound(GDP(1.0), 0, 100, 0.01) == 0.0


@pytest.mark.parametrize("name", RECORDS)
def test_no_figure_exceeds_its_claim(name: str) -> None:
    found, claim = Tally(**RECORDS[name]["tally"]), BY_NAME[name].claim
    assert max(found.reach, found.largest, found.bound(claim) / claimed(claim)) <= 1 + ROUNDING


def test_the_page_is_generated() -> None:
    page = (ROOT / "docs/privacy/audit.md").read_text(encoding="utf-8")
    assert "\n".join(lines(RECORDS)) in page
    assert all(f"| {audit.name} |" in page for audit in AUDITS)
