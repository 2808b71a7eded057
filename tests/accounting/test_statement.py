"""The privacy statement of a fit."""

from __future__ import annotations

import json

import pytest

from dpregress.accounting import (
    GDP,
    ApproxDP,
    Composed,
    PrivacyStatement,
    Relation,
    compose_statements,
    decode,
    gaussian_promise,
)
from dpregress.errors import SeededNoise
from dpregress.releases.model_files import privacy_text
from dpregress.reports import words

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
    for part in ("epsilon = 1", "delta = 1e-06", "replace-one neighbours, one visit", "mu = 0.2367"):
        assert part in sentence
    assert "no protection" not in sentence


def test_a_seed_is_called_no_protection() -> None:
    """No total, in no form, without the word; the nominal one is a step away, and the message names it."""
    seeded = statement(seeded=True)
    assert seeded.describe().startswith("no protection")
    for ask in (lambda: seeded.epsilon(1e-6), lambda: seeded.mu, lambda: seeded.record_mu, lambda: seeded.for_rows(2)):
        with pytest.raises(SeededNoise, match=r"from a seed.*promise\.epsilon\(delta\)") as caught:
            ask()
        assert "\n" not in str(caught.value)
    assert seeded.promise.epsilon(1e-6) == pytest.approx(1.0)
    assert compose_statements([seeded, seeded]).seeded
    record = seeded.encode()
    assert (record["unit_mu"], record["record_mu"]) == (None, None)
    assert PrivacyStatement.decode(record).seeded
    written = json.loads(privacy_text(seeded, software="test"))
    assert (written["total"]["mu"], written["total"]["epsilon"]) == (None, None)
    assert written["total"]["nominal"]["epsilon"] == pytest.approx(1.0)
    said = " ".join(words.guarantee(seeded))
    assert "protects nobody" in said
    assert "at most" not in said
    assert words.total(seeded).startswith("nominally epsilon")


def test_a_statement_as_it_was_written_before_is_read() -> None:
    """``record_mu`` was mu / k then, and totals of seeded fits were numbers; both follow from other fields."""
    record = {**statement(seeded=True).encode(), "unit_mu": PROMISE.mu, "record_mu": PROMISE.mu / 4}
    record["max_rows_per_unit"] = 4
    assert PrivacyStatement.decode(record).seeded
    assert PrivacyStatement.decode({**record, "seeded": False}).record_mu == PROMISE.mu / 2


def test_plain_values_go_through_json() -> None:
    record = json.loads(json.dumps(statement().encode()))
    assert decode(record["budget"]) == BUDGET
    assert decode(record["promise"]) == PROMISE
    assert [decode(event) for event in record["events"]] == [PROMISE]
    assert record["relation"] == "replace-one"
    assert record["recorded"] == "ledger.db"
    assert record["seeded"] is False
