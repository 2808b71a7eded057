"""The dry run of a party's release, and who charged its ledger."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress import ApproxDP, Policy, SQLiteLedger, VerticalRegression
from dpregress.errors import BudgetExceeded
from tests.laws.spies import watched
from tests.parties.study import PARTIES, write_study
from tests.parties.test_protocol import agree, ok, open_ledgers, refused, release, step

WHO = ("--analyst", "ann", "--purpose", "pilot")
PARTY = "clinic"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def aligned(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> Path:
    """A study in which all parties have aligned their people."""
    write_study(tmp_path, np.random.default_rng(seed))
    open_ledgers(tmp_path)
    agree(capsys, tmp_path)
    for party in PARTIES:
        ok(capsys, *step(tmp_path, "align", party))
    return tmp_path


def test_a_dry_run_reads_charges_and_writes_nothing(
    aligned: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(aligned)

    def never(*_: Any) -> None:
        raise AssertionError("rows were read")

    with monkeypatch.context() as patched, watched() as steps:
        patched.setattr("dpregress.rows.readers.files.read", never)
        said = ok(capsys, *release(aligned, PARTY, "--dry-run", *WHO))
    assert steps == []
    assert contents(aligned) == before
    assert "nothing was charged or written" in said
    assert "moments and sketch of" in said
    ok(capsys, *release(aligned, PARTY, *WHO))
    (charge,) = SQLiteLedger(aligned / f"{PARTY}.db", PARTY).charges
    assert (charge.request.analyst, charge.request.purpose) == ("ann", "pilot")
    assert charge.request.source.endswith(f"{PARTY}.csv")
    assert charge.request.output.endswith(f"{PARTY}.release.json")


def test_a_dry_run_refuses_what_the_release_refuses(aligned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = aligned / f"{PARTY}.csv"
    text = table.read_text()
    table.write_text(text.replace("age", "height", 1))
    assert "no column" in refused(capsys, *release(aligned, PARTY, "--dry-run"))
    table.write_text(text)
    assert "--dry-run goes with real rows" in refused(capsys, *release(aligned, PARTY, "--dry-run", "--mock"))
    ok(capsys, *release(aligned, PARTY))
    assert "Released before" in ok(capsys, *release(aligned, PARTY, "--dry-run"))
    for kept in (aligned / f"{PARTY}-keys").glob("*.release.json"):
        kept.unlink()
    shutil.rmtree(aligned / "public")
    for more in ((), ("--dry-run",)):
        assert "this release was charged before" in refused(capsys, *release(aligned, PARTY, *more))


def test_parties_that_share_a_budget_are_checked_together(tmp_path: Path) -> None:
    """By different handles of one budget too: no party is charged where another would be refused."""
    rng = np.random.default_rng(0)
    parties = {"a": rng.uniform(size=(200, 1)), "b": rng.uniform(size=(200, 1))}
    y, budget = rng.uniform(size=200), ApproxDP(1.0, 1e-6)
    first = SQLiteLedger.create(tmp_path / "l.db", "d", ApproxDP(1.2, 1e-6))
    ledgers = {"a": first, "b": SQLiteLedger(tmp_path / "l.db", "d").on_behalf(analyst="ann")}
    with pytest.raises(BudgetExceeded):
        VerticalRegression(budget, bounds=(0.0, 1.0), ledger=ledgers).fit(parties, y)
    assert first.charges == ()
    rules = Policy(max_epsilon_per_fit=1.0)
    whole = SQLiteLedger.create(tmp_path / "l.db", "e", ApproxDP(3.0, 1e-6), policy=rules)
    VerticalRegression(budget, bounds=(0.0, 1.0), ledger={"a": whole, "b": whole}).fit(parties, y)
    assert len(whole.charges) == 2
