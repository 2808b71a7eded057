"""``dpregress fit --unit`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support import run, write_csv

BUDGET = ("--epsilon", 8, "--delta", 1e-6)
UNIT = ("--unit", "person_id", "--max-rows-per-unit", 3)


@pytest.fixture
def visits(tables: Path) -> Path:
    """A private table in which each of 2,500 people has two rows."""
    rng = np.random.default_rng(0)
    age, bmi = rng.uniform(20, 80, 5000), rng.normal(27, 4, 5000)
    cost = 100 * age + 300 * bmi + rng.normal(0, 500, 5000)
    columns = ("age", "bmi", "person_id", "cost")
    return write_csv(tables / "visits.csv", columns, age, bmi, rng.permutation(5000) // 2, cost)


def fit(capsys: pytest.CaptureFixture[str], *more: object):  # type: ignore[no-untyped-def]
    return run(capsys, "fit", "visits.csv", "--target", "cost", *BUDGET, "--public", "public.csv", *more)


@pytest.mark.usefixtures("visits")
def test_everything_that_is_written_names_the_unit(capsys: pytest.CaptureFixture[str]) -> None:
    done = fit(capsys, *UNIT, "--out", "result")
    assert done.code == 0, done.err
    unit = "value of person_id, with all its rows, of which only 3 are used"
    assert unit in " ".join(done.out.split())
    assert unit in Path("result/report.html").read_text()
    for record in (
        json.loads(Path("result/privacy.json").read_text()),
        json.loads(Path("result/model.json").read_text())["privacy"],
    ):
        assert (record["unit"], record["max_rows_per_unit"]) == ("person_id", 3)
        assert record["record_mu"] == pytest.approx(2 * record["unit_mu"] / 3)
    assert json.loads(Path("result/model.json").read_text())["features"] == ["age", "bmi"]


@pytest.mark.usefixtures("visits")
def test_the_ledger_must_count_the_same_unit(capsys: pytest.CaptureFixture[str]) -> None:
    new = ("ledger", "new", "budget.db", "--epsilon", 9, "--delta", 1e-6, "--dataset")
    assert run(capsys, *new, "records").code == 0
    opened = run(capsys, *new, "people", "--unit", "person_id")
    assert "for replace-one neighbours, one person_id" in opened.out
    wrong = fit(capsys, *UNIT, "--ledger", "budget.db", "--dataset", "records")
    assert wrong.code == 2
    assert "the unit of this ledger is record, and the unit of this fit is person_id" in wrong.err
    assert "--unit person_id" in wrong.err
    assert fit(capsys, "--features", "age", "--ledger", "budget.db", "--dataset", "people").code == 2
    assert fit(capsys, *UNIT, "--ledger", "budget.db", "--dataset", "people").code == 0
    shown = run(capsys, "ledger", "show", "budget.db", "--dataset", "people").out
    assert "person_id" in shown
    assert "nothing spent" in " ".join(run(capsys, "ledger", "show", "budget.db", "--dataset", "records").out.split())


@pytest.mark.usefixtures("visits")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--unit", "person_id"), "goes with"),
        (("--max-rows-per-unit", 2, "--features", "age"), "goes with"),
        (("--unit", "nobody", "--max-rows-per-unit", 2), "no column 'nobody'"),
        (("--unit", "cost", "--max-rows-per-unit", 2, "--features", "age"), "is the target"),
        (("--unit", "age", "--max-rows-per-unit", 2, "--features", "age"), "among the features"),
        (("--unit", "person_id", "--max-rows-per-unit", 0), "at least 1"),
        (("--unit", "person_id", "--max-rows-per-unit", -1), "at least 1"),
        (("--unit", "person_id", "--max-rows-per-unit", "many"), "integer"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], options: tuple[object, ...], said: str) -> None:
    done = fit(capsys, *options)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not Path("dpregress-out").exists()
