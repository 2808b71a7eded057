"""The privacy statement of a fit."""

from __future__ import annotations

import json

import pytest

from dpregress.accounting import GDP, ApproxDP, Composed, PrivacyStatement, Relation, decode, gaussian_promise

BUDGET = ApproxDP(1.0, 1e-6)
PROMISE = gaussian_promise(BUDGET)


def statement(*, seeded: bool = False) -> PrivacyStatement:
    return PrivacyStatement(
        budget=BUDGET,
        promise=PROMISE,
        events=Composed.of([PROMISE]),
        relation=Relation.REPLACE_ONE,
        unit="visit",
        assumed_public=("the number of private records",),
        seeded=seeded,
        recorded="ledger.db",
    )


def test_totals_are_those_of_the_promise() -> None:
    assert statement().mu == PROMISE.mu
    assert statement().epsilon(1e-6) == pytest.approx(1.0)
    assert statement().for_rows(3) == GDP(3 * PROMISE.mu)


def test_the_sentence_names_budget_neighbours_and_unit() -> None:
    sentence = statement().describe()
    assert "\n" not in sentence
    for words in ("epsilon = 1", "delta = 1e-06", "replace-one visit", "mu = 0.2367"):
        assert words in sentence
    assert "no protection" not in sentence


def test_a_seed_is_called_no_protection() -> None:
    assert "no protection" in statement(seeded=True).describe()


def test_plain_values_go_through_json() -> None:
    record = json.loads(json.dumps(statement().encode()))
    assert decode(record["budget"]) == BUDGET
    assert decode(record["promise"]) == PROMISE
    assert [decode(event) for event in record["events"]] == [PROMISE]
    assert record["relation"] == "replace-one"
    assert record["recorded"] == "ledger.db"
    assert record["seeded"] is False
