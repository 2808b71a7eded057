"""Units: what a row may cost, and which ledgers may be charged."""

from __future__ import annotations

from typing import Any

import pytest

from dpregress.accounting import GDP, RECORD, UNNAMED, MemoryLedger, Unit
from dpregress.errors import BudgetExceeded, InvalidInput, LedgerError

PERSON = Unit("person_id", 4)


@pytest.mark.parametrize("rows", [0, -1, 2.0, "3", True])
def test_k_is_a_whole_number_of_at_least_one(rows: Any) -> None:
    with pytest.raises(InvalidInput, match="whole number of at least 1"):
        Unit("person_id", rows)


@pytest.mark.parametrize("name", ["record", ""])
def test_a_unit_column_is_no_record(name: str) -> None:
    with pytest.raises(InvalidInput, match="rename"):
        Unit(name, 2)


def test_a_row_gets_its_part() -> None:
    assert PERSON.per_record(GDP(1.0)) == GDP(0.25)
    assert RECORD.per_record(GDP(1.0)) == GDP(1.0)
    with pytest.raises(InvalidInput, match="too small"):
        Unit("person_id", 10**9).per_record(GDP(0.5))


def test_what_hides_a_row_is_drawn_k_fold() -> None:
    reservation = MemoryLedger(GDP(1.0), unit="person_id").reserve(GDP(1.0), unit=PERSON)
    reservation.draw(GDP(0.15))
    assert reservation.drawn.parts == (GDP(0.6),)
    reservation.draw(GDP(0.2))
    with pytest.raises(BudgetExceeded):
        reservation.draw(GDP(0.01))
    assert reservation.drawn.mu == pytest.approx(1.0)


@pytest.mark.parametrize(("counts", "unit"), [("record", PERSON), ("person_id", RECORD), ("household", PERSON)])
def test_a_ledger_of_another_unit_is_not_charged(counts: str, unit: Unit) -> None:
    ledger = MemoryLedger(GDP(1.0), unit=counts)
    with pytest.raises(
        LedgerError, match=f"ledger is {counts}, and the unit of this fit is {unit.name}: .*separate budget"
    ):
        ledger.reserve(GDP(0.5), unit=unit)
    assert not ledger.charges


def test_ids_without_a_name_are_told_how_to_get_one() -> None:
    with pytest.raises(LedgerError, match=r"name of their Series.*fit_table\(.., unit='person_id'\)"):
        Unit(UNNAMED, 4).check("person_id")
