"""``dpregress release``, ``regress``, ``moments``, ``space`` and ``combine``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpregress import SQLiteLedger
from tests.support import run

BUDGET = ("--epsilon", 2, "--delta", 1e-6)


def _release(capsys: pytest.CaptureFixture[str], *more: object, data: str = "private.csv", out: str = "m.json") -> str:
    done = run(capsys, "release", data, *BUDGET, "-o", out, *more)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.usefixtures("tables")
def test_release_once_regress_many(capsys: pytest.CaptureFixture[str]) -> None:
    """One charge in the ledger, then regressions of every column, a path, a selection and files."""
    assert run(capsys, "ledger", "new", "l.db", "--dataset", "p", "--epsilon", 3, "--delta", 1e-6).code == 0
    said = _release(capsys, "--public", "public.csv", "--complete", "cost", "--ledger", "l.db", "--dataset", "p")
    assert "Recorded in" in said
    for target in ("cost", "age", "bmi"):
        done = run(capsys, "regress", "m.json", "--target", target)
        assert done.code == 0, done.err
        assert f"DPLinearRegression of {target}" in done.out
        assert "nothing more was spent" in done.out
    done = run(capsys, "regress", "m.json", "--target", "cost", "--path", "lasso", "--select", "best", "--out", "model")
    assert done.code == 0, done.err
    assert "After selection" in done.out
    assert "Path of 100 penalties" in done.out
    assert json.loads(Path("model/model.json").read_text())["target"] == "cost"
    assert run(capsys, "predict", "model", "private.csv", "--out", "p.csv").code == 0
    ridge = run(capsys, "regress", "m.json", "--formula", "cost ~ age + bmi", "--alpha", 5, "--level", 0.9)
    assert "DPRidge of cost" in ridge.out
    (charge,) = SQLiteLedger("l.db", "p").charges
    assert charge.note == "moments of 3 columns"
    assert charge.request.formula == "moments of age, bmi, cost"
    assert charge.request.source == "private.csv"


@pytest.mark.usefixtures("tables")
def test_a_dry_run_charges_and_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    said = _release(capsys, "--public", "public.csv", "--dry-run")
    assert "Dry run" in said
    assert not Path("m.json").exists()
    done = run(
        capsys, "release", "private.csv", "--public", "public.csv", "--epsilon", 1, "--delta", 0.01, "-o", "m.json"
    )
    assert done.code == 2
    assert "--confirm-delta" in done.err


@pytest.mark.usefixtures("tables")
def test_correlations_and_components(capsys: pytest.CaptureFixture[str]) -> None:
    _release(capsys, "--schema", "schema.toml")
    done = run(capsys, "moments", "m.json", "--partial", "--components", 2)
    assert done.code == 0, done.err
    assert "Partial correlations" in done.out
    assert "PC2" in done.out
    some = run(capsys, "moments", "m.json", "--columns", "age,cost")
    assert "bmi" not in some.out
    assert run(capsys, "moments", "m.json", "--sites").out.startswith("5,000 private rows")


@pytest.mark.usefixtures("tables")
def test_sites(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path("private.csv").read_text().splitlines()
    Path("north.csv").write_text("\n".join(lines[:2501]) + "\n")
    Path("south.csv").write_text("\n".join([lines[0], *lines[2501:]]) + "\n")
    done = run(capsys, "space", "--public", "public.csv", "--rows", 2500, *BUDGET, "--out", "space.json")
    assert done.code == 0, done.err
    assert "Nothing private was read" in done.out
    for site in ("north", "south"):
        _release(capsys, "--like", "space.json", data=f"{site}.csv", out=f"{site}.json")
    done = run(capsys, "combine", "north.json", "south.json", "--out", "both.json")
    assert done.code == 0, done.err
    assert "Do the sites agree" in done.out
    assert "5,000 private rows" in run(capsys, "moments", "both.json", "--sites").out
    assert "5,000 private records" in run(capsys, "regress", "both.json", "--target", "cost").out


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("release", "private.csv", *BUDGET, "-o", "x.json"), "give --public rows, or a --schema with bounds"),
        (("release", "private.csv", "--like", "public.csv", *BUDGET, "-o", "x.json"), "not a file of released moments"),
        (
            ("release", "private.csv", "--like", "m.json", "--columns", "age", *BUDGET, "-o", "x.json"),
            "leave --columns, --public and --schema out",
        ),
        (("release", "private.csv", "--public", "private.csv", *BUDGET, "-o", "x.json"), "is the private table itself"),
        (("regress", "m.json"), "--target cost, or --formula"),
        (("regress", "m.json", "--target", "size"), "not among the released columns"),
        (("regress", "public.csv", "--target", "size"), "not a file of released moments"),
        (("space", "--rows", 10, *BUDGET, "-o", "x.json"), "give --columns, --public or --schema"),
        (("combine", "m.json", "m.json", "-o", "x.json"), "two sites are called 'm'"),
    ],
)
def test_refusals_are_one_line(command: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    _release(capsys, "--public", "public.csv")
    done = run(capsys, *command)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not Path("x.json").exists()
