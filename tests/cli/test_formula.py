"""``dpregress fit --formula`` as a user types it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pytest

from dpregress import ApproxDP, SQLiteLedger
from dpregress.releases.model_files import load_model
from tests.support import Outcome, run

pytest.importorskip("formulaic")

BUDGET = ("--epsilon", 1, "--delta", 1e-6)
LEDGER = ("--ledger", "budget.db", "--dataset", "d")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """private.csv (5,000 rows) and public.csv (300) with levels and a class, schema.toml, and a ledger."""
    rng = np.random.default_rng(0)
    age, plan = rng.integers(20, 80, 5300), rng.choice(["basic", "gold"], 5300)
    cost = 2.0 * age + 30 * (plan == "gold") + rng.normal(0, 5, 5300)
    sick = np.where(rng.logistic(size=5300) < (age - 50) / 10, "yes", "no")
    lines = [f"{a},{p},{c:.2f},{s}" for a, p, c, s in zip(age, plan, cost, sick, strict=True)]
    for name, rows in (("public.csv", lines[:300]), ("private.csv", lines[300:])):
        (tmp_path / name).write_text("\n".join(["age,plan,cost,sick", *rows]) + "\n")
    (tmp_path / "schema.toml").write_text(
        '[age]\nlower = 20\nupper = 80\n[plan]\nlevels = ["basic", "gold"]\n[cost]\nlower = 0\nupper = 250\n'
    )
    SQLiteLedger.create(tmp_path / "budget.db", "d", ApproxDP(9.0, 1e-6))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(capsys: pytest.CaptureFixture[str], formula: str, *more: object) -> Outcome:
    return run(capsys, "fit", "private.csv", "--formula", formula, *BUDGET, *more)


@pytest.mark.usefixtures("folder")
class TestSuccess:
    def test_computed_response_with_a_schema(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("positive.toml").write_text("[age]\nlower = 20\nupper = 80\n[cost]\nlower = 1\nupper = 250\n")
        done = fit(capsys, "log(cost) ~ age", "--schema", "positive.toml", "--out", "m")
        assert done.code == 0, done.err

    def test_schema_alone_fits_and_predicts_from_the_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        done = fit(capsys, "cost ~ age + C(plan) + log(age):plan", "--schema", "schema.toml", "--out", "m")
        assert done.code == 0, done.err
        assert done.err == ""
        assert "log(age):plan=gold" in done.out
        record = json.loads(Path("m/model.json").read_text())
        assert record["formula"] == {
            "text": "cost ~ age + C(plan) + log(age):plan",
            "levels": {"plan": ["basic", "gold"]},
            "missing": {},
        }
        predicted = run(capsys, "predict", "m/model.json", "public.csv", "-o", "predicted.csv")
        assert predicted.code == 0, predicted.err
        table = pacsv.read_csv("predicted.csv")
        truth = pacsv.read_csv("public.csv")["cost"].to_numpy()
        assert (
            np.corrcoef(table["cost"].to_numpy(), truth)[0, 1] > 0.5
        )  # it is 0.99 without noise, and the noise costs 0.002

    def test_public_rows(self, capsys: pytest.CaptureFixture[str]) -> None:
        public = ("--public", "public.csv", "--schema", "schema.toml")
        assert fit(capsys, "cost ~ age * plan", *public, "--out", "a").code == 0
        assert fit(capsys, "cost ~ age * plan", *public, "--ignore-public-labels", "--out", "b").code == 0
        assumed = [json.loads(Path(f"{name}/model.json").read_text())["privacy"]["assumed_public"] for name in "ab"]
        assert ["responses" in " ".join(each) for each in assumed] == [True, False]
        model = load_model("a/model.json")
        assert model.features == ("age", "plan=gold", "age:plan=gold")
        assert np.allclose(model.coef[0], 2.0, atol=0.5)  # its standard error is 0.04

    def test_moments_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        names = ("--features", "age,plan", "--schema", "schema.toml")
        assert run(capsys, "public", "public.csv", "-o", "moments.json", *names).code == 0
        moments = ("--public", "moments.json", "--schema", "schema.toml")
        assert fit(capsys, "cost ~ plan + age", *moments).code == 0
        refused = fit(capsys, "cost ~ log(age)", *moments, "--out", "b")
        assert refused.code == 2
        assert "give the public rows themselves" in refused.err

    def test_two_classes(self, capsys: pytest.CaptureFixture[str]) -> None:
        classes = ("--family", "binomial", "--classes", "no,yes", "--public", "public.csv")
        done = fit(capsys, "sick ~ sqrt(age)", *classes, "--out", "m")
        assert done.code == 0, done.err
        assert run(capsys, "predict", "m/model.json", "public.csv", "-o", "p.csv").code == 0
        assert set(pacsv.read_csv("p.csv")["sick"].to_pylist()) <= {"no", "yes"}

    def test_gaps_of_public_rows_are_counted_aloud(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "public.csv").write_text((folder / "public.csv").read_text() + "0,gold,50,no\n")
        done = fit(capsys, "cost ~ log(age)", "--public", "public.csv")
        assert done.code == 0, done.err
        assert "1 public row with missing cells was left out" in done.out

    def test_ledger(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert fit(capsys, "log(cost) ~ age", "--public", "public.csv", *LEDGER).code == 0
        (charge,) = SQLiteLedger("budget.db", "d").charges
        assert (charge.note, charge.request.formula) == ("DPLinearRegression of log(cost)", "log(cost) ~ age")
        assert "log(cost)" in run(capsys, "ledger", "show", "budget.db").out


#: (formula, more arguments, words of the message)
REFUSALS = [
    ("cost ~ age", ["--target", "cost"], "--target and --features do not go with --formula"),
    ("cost ~ age", ["--features", "age"], "--target and --features do not go with --formula"),
    ("cost ~ age", ["--no-intercept"], "write 0 + in the formula"),
    ("", [], "name the response"),
    ("cost ~", [], "nothing to regress on"),
    ("cost ~ age +", [], "write it as in"),
    ("cost ~ height", [], "no column 'height' in private.csv"),
    ("height ~ age", [], "no column 'height' in private.csv"),
    ("cost ~ C(age)", [], "levels of 'age' are not declared"),
    ("cost ~ scale(age)", [], "scale() would read private data"),
    ("cost ~ bs(age, df=4)", [], "bs() would read private data"),
    ("cost ~ lag(age)", [], "would mix the rows"),
    ("cost ~ __import__('os')", [], "unknown function"),
    ("cost ~ age.real", [], "no column 'age.real'"),
    ("cost ~ log(age - 20)", [], "no finite public bounds for 'log(age - 20)'"),
    ("cost ~ sick", [], "no public bounds for 'sick'"),
    ("cost ~ sick", ["--public", "public.csv"], "declare its levels"),
    ("plan ~ age", [], "is categorical"),
    ("log(cost) ~ age", ["--family", "binomial"], "a response of classes is a column"),
    ("cost ~ age + extra", ["--public", "narrow.csv"], "no column 'extra'"),
    ("cost ~ age", ["--public", "narrow.csv"], "no column 'age' in narrow.csv"),
    ("cost ~ age", ["--out", "private.csv"], "is a file"),
    ("cost ~ " + "+".join(["age"] * 5000), [], "more than 10,000 characters"),
]


@pytest.mark.parametrize(("formula", "more", "words"), REFUSALS, ids=[case[0][:30] for case in REFUSALS])
def test_refusals_are_one_line_and_leave_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], formula: str, more: list[object], words: str
) -> None:
    (folder / "narrow.csv").write_text("cost\n1\n2\n")
    before = sorted(os.listdir(folder))
    refused = fit(capsys, formula, "--schema", "schema.toml", *LEDGER, *more)
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith("error: ")
    assert refused.err.count("\n") == 1
    assert words in refused.err
    assert sorted(os.listdir(folder)) == before
    assert SQLiteLedger("budget.db", "d").charges == ()


def test_a_response_is_needed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    refused = run(capsys, "fit", "private.csv", "--schema", "schema.toml", *BUDGET)
    assert refused.code == 2
    assert "name the response: --target" in refused.err
