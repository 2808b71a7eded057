"""Who charges a ledger on the command line, what its policy refuses, and dry runs."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

from dpregress import ApproxDP, Policy, SQLiteLedger
from dpregress.cli import places
from tests.laws.spies import watched
from tests.support import Outcome, run

BUDGET = ("--epsilon", 1, "--delta", 1e-6)
FIT = ("fit", "private.csv", "--target", "cost", "--schema", "schema.toml", *BUDGET)
MARGINALS = ("marginals", "release", "private.csv", "--schema", "schema.toml", "--bins", 4, *BUDGET)
LEDGER = ("--ledger", "budget.db", "--dataset", "d")
WHO = ("--analyst", "ann", "--purpose", "yearly report")


@pytest.fixture(autouse=True)
def _folder(tables: Path) -> None:
    """All tests run in the folder of the tables."""


def refused(outcome: Outcome, words: str) -> None:
    assert outcome.code == 2, outcome.out
    assert outcome.err.count("\n") == 1
    assert words in outcome.err, outcome.err


def opened(capsys: pytest.CaptureFixture[str], *more: object) -> None:
    arguments = ("ledger", "new", "budget.db", "--dataset", "d", "--epsilon", 3, "--delta", 1e-6, *more)
    outcome = run(capsys, *arguments)
    assert (outcome.code, outcome.err) == (0, "")


def test_a_fit_is_recorded_with_who_and_what(capsys: pytest.CaptureFixture[str]) -> None:
    opened(capsys)
    assert run(capsys, *FIT, *LEDGER, *WHO, "--out", "model").code == 0
    formula = ("--formula", "cost ~ age + I(age ** 2)")
    assert run(capsys, "fit", "private.csv", *formula, "--schema", "schema.toml", *BUDGET, *LEDGER).code == 0
    first, second = SQLiteLedger("budget.db", "d").charges
    request = first.request
    assert (request.analyst, request.purpose, request.formula) == ("ann", "yearly report", "cost ~ age + bmi")
    assert (request.source, request.output) == ("private.csv", "model")
    assert second.request.formula == "cost ~ age + I(age ** 2)"
    assert second.request.analyst == ""
    refused(run(capsys, *FIT, *WHO, "--out", "b"), "--analyst and --purpose go with --ledger")


def test_the_ledger_is_shown_as_table_json_and_csv(capsys: pytest.CaptureFixture[str]) -> None:
    opened(capsys)
    SQLiteLedger.create("budget.db", "empty", ApproxDP(1.0, 1e-5), policy=Policy(analysts=("ann",)))
    assert run(capsys, *FIT, *LEDGER, *WHO, "--out", "model").code == 0
    table = run(capsys, "ledger", "show", "budget.db", "--if-spent", 1)
    for word in ("yearly", "ann", "private.csv", "dpregress", "2.77 at delta = 1e-06", "2.526 at delta = 1e-06 would"):
        assert word in table.out.replace("\n", " "), word
    assert "analysts ann only" in table.out
    assert "After one more fit of epsilon = 1 at delta = 1e-05: nothing would be left" in table.out

    found = json.loads(run(capsys, "ledger", "show", "budget.db", "--json", "--if-spent", 2.9).out)
    assert found["format"] == "dpregress.ledger/1"
    first, empty = found["datasets"]
    (charge,) = first["charges"]
    assert (charge["analyst"], charge["formula"], charge["source"]) == ("ann", "cost ~ age + bmi", "private.csv")
    assert charge["software"].startswith("dpregress ")
    assert first["spent"]["epsilon"] == pytest.approx(1.0)
    assert first["left"]["epsilon"] == pytest.approx(2.7708, abs=1e-3)
    assert first["left"]["delta"] == 1e-6
    assert first["if_spent"]["refused"]
    assert empty["charges"] == []
    assert empty["policy"]["analysts"] == ["ann"]

    text = run(capsys, "ledger", "show", "budget.db", "--csv").out
    (line,) = csv.DictReader(io.StringIO(text))
    assert (line["dataset"], line["analyst"], line["seeded"]) == ("d", "ann", "false")
    assert float(line["epsilon"]) == pytest.approx(1.0)
    refused(run(capsys, "ledger", "show", "budget.db", "--csv", "--json"), "choose one")
    at = run(capsys, "ledger", "show", "budget.db", "--dataset", "d", "--delta", 1e-9).out
    assert "Left for one more fit: epsilon = 3" in at
    assert "at delta = 1e-09." in at


def test_csv_of_a_ledger_is_no_formula(capsys: pytest.CaptureFixture[str]) -> None:
    opened(capsys)
    SQLiteLedger("budget.db", "d").on_behalf(purpose="=1+1").reserve(ApproxDP(0.1, 1e-9))
    assert "'=1+1" in run(capsys, "ledger", "show", "budget.db", "--csv").out


def test_a_policy_refuses_in_the_words_of_flags(capsys: pytest.CaptureFixture[str]) -> None:
    opened(capsys, "--max-epsilon-per-fit", 0.5, "--analyst", "ann", "--analyst", "ben")
    refused(run(capsys, *FIT, *LEDGER, "--out", "m"), "none is given: give --analyst NAME")
    refused(run(capsys, *FIT, *LEDGER, "--analyst", "eve", "--out", "m"), "'eve' is not one of them")
    words = "allows epsilon = 0.5, delta = 1e-06 for each fit, not epsilon = 1, delta = 1e-06: ask for less"
    refused(run(capsys, *FIT, *LEDGER, *WHO, "--out", "m"), words)
    refused(run(capsys, *FIT, *LEDGER, *WHO, "--out", "m", "--dry-run"), words)
    assert SQLiteLedger("budget.db", "d").charges == ()
    less = ("--epsilon", 0.4, *LEDGER, *WHO, "--out", "m")
    assert run(capsys, *FIT, *less).code == 0
    refused(
        run(capsys, "ledger", "new", "u.db", "--dataset", "d", *BUDGET, "--require-unit"),
        "a required unit goes with a ledger that counts one",
    )


def test_a_refusal_is_in_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    """The user gave epsilon and delta: nothing is said in mu."""
    opened(capsys)
    words = "does not cover epsilon = 4, delta = 1e-06: ask for at most epsilon = 3 at delta = 1e-06"
    outcome = run(capsys, *FIT, "--epsilon", 4, *LEDGER, "--out", "m")
    refused(outcome, words)
    assert "mu" not in outcome.err


@pytest.mark.parametrize("command", [FIT, MARGINALS], ids=["fit", "marginals"])
def test_a_large_delta_is_confirmed_or_refused(command: tuple[object, ...], capsys: pytest.CaptureFixture[str]) -> None:
    large = (*command, "--delta", 1e-3, "--out", "m")
    refused(run(capsys, *large), "or confirm this one with --confirm-delta")
    assert run(capsys, *large, "--confirm-delta", "--dry-run").code == 0
    assert not Path("m").exists()


def test_a_plan_with_a_large_delta_is_confirmed_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    text = 'study = "s"\nn = 500\nidentifiers = ["id"]\n'
    for party in ("a", "b"):
        text += f"[parties.{party}]\nepsilon = 1.0\ndelta = 1e-2\ncolumns.{party} = {{ lower = 0, upper = 1 }}\n"
    Path("terms.toml").write_text(text)
    plan = ("vertical", "plan", "terms.toml", "--key", "k", "--out", "shared")
    refused(run(capsys, *plan), "above 1/n = 0.002")
    assert not Path("shared").exists()
    assert not Path("k").exists()
    assert run(capsys, *plan, "--confirm-delta").code == 0


@pytest.mark.parametrize("command", [FIT, MARGINALS], ids=["fit", "marginals"])
def test_a_full_disk_loses_the_result_and_not_the_charge(
    command: tuple[object, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing half written is left, and the refusal says that the charge stays."""
    opened(capsys, "--neighbours", "replace" if command is FIT else "add-remove")
    before = sorted(os.listdir())

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(places, "_sync", full)
        refused(run(capsys, *command, *LEDGER, "--out", "m"), "No space left on device; if a budget was charged")
    assert sorted(os.listdir()) == before
    assert len(SQLiteLedger("budget.db", "d").charges) == 1


# ---------------------------------------------------------------- dry runs


@pytest.mark.parametrize("command", [FIT, MARGINALS], ids=["fit", "marginals"])
@pytest.mark.parametrize("ledger", [True, False])
def test_a_dry_run_reads_charges_and_writes_nothing(
    command: tuple[object, ...], ledger: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(capsys, "--neighbours", "replace" if command is FIT else "add-remove")
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    with watched() as steps:
        outcome = run(capsys, *command, *((*LEDGER, *WHO) if ledger else ()), "--out", "new/m", "--dry-run")
    assert (outcome.code, outcome.err) == (0, "")
    assert steps == []
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before
    assert "nothing was charged or written" in outcome.out
    assert "epsilon = 1, delta = 1e-06 (mu = 0.236704)" in outcome.out
    if ledger:
        assert "epsilon = 1 at delta = 1e-06 would then be spent, epsilon = 2.77 at delta = 1e-06 left" in outcome.out
    else:
        assert "recorded in no ledger" in outcome.out


def test_a_dry_run_says_the_same_for_all_private_cells(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, *FIT, "--dry-run").out
    lines = Path("private.csv").read_text().splitlines()
    Path("private.csv").write_text("\n".join([lines[0], *("x,,1e999" for _ in lines[1:])]) + "\n")
    assert run(capsys, *FIT, "--dry-run").out == said


#: What a dry run refuses as the fit itself does: arguments, and words of the refusal.
WRONG: dict[str, tuple[tuple[object, ...], str]] = {
    "column": (("--features", "height"), "height"),
    "schema": (("--schema", "none.toml"), "none.toml"),
    "formula": (("--formula", "cost ~ age +"), ""),
    "place": (("--out", "taken"), "already exists"),
    "budget": ((*LEDGER, "--epsilon", 9), "does not cover"),
    "unit": (("--unit", "age", "--max-rows-per-unit", 2, *LEDGER), "unit"),
    "ledger": (("--ledger", "none.db", "--dataset", "d"), "no ledger"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_dry_run_refuses_what_the_fit_refuses(kind: str, tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened(capsys)
    (tables / "taken").mkdir()
    (tables / "taken" / "model.json").touch()
    arguments, words = WRONG[kind]
    dry, real = run(capsys, *FIT, *arguments, "--dry-run"), run(capsys, *FIT, *arguments)
    refused(dry, words)
    assert dry == real
    assert SQLiteLedger("budget.db", "d").charges == ()
