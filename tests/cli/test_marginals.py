"""``dpregress marginals``: from a table to a file, and from the file to regressions, rows and a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support import run


@pytest.fixture
def coded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with people.csv (3,000 rows) and people.toml, made the current one."""
    rng = np.random.default_rng(0)
    age, sex, steps = rng.uniform(20, 80, 3000), rng.choice(["f", "m"], 3000), rng.integers(0, 5, 3000)
    sick = np.where(rng.random(3000) < 0.2 + 0.1 * steps, "yes", "no")
    lines = [f"{a:.1f},{s},{t},{k}" for a, s, t, k in zip(age, sex, steps, sick, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,steps,sick", *lines, "?,x,9,maybe"]) + "\n")
    (tmp_path / "people.toml").write_text(
        '[age]\nlower = 20\nupper = 80\n[sex]\nlevels = ["f", "m"]\n'
        '[steps]\nlevels = [0, 1, 2, 3, 4]\nordered = true\n[sick]\nlevels = ["no", "yes"]\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


BUDGET = ("--epsilon", 2, "--delta", 1e-6)


def released(capsys: pytest.CaptureFixture[str], *more: object) -> None:
    done = run(capsys, "marginals", "release", "people.csv", "--schema", "people.toml", *BUDGET, "-o", "m.json", *more)
    assert done.code == 0, done.err


def test_the_whole_way(coded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Release, two regressions, rows and a page, from one charge in the ledger."""
    opened = ("ledger", "new", "l.db", "--dataset", "p", "--epsilon", 3, "--delta", 1e-6, "--neighbours", "add-remove")
    assert run(capsys, *opened).code == 0
    released(capsys, "--bins", 8, "--ledger", "l.db", "--dataset", "p")
    for more in (("--target", "steps"), ("--target", "sick", "--family", "binomial", "--features", "steps,sex")):
        done = run(capsys, "marginals", "fit", "m.json", *more)
        assert done.code == 0, done.err
        assert "sex=m" in done.out
        assert "nothing more was spent" in done.out
    formula = ("--formula", "sick ~ C(sex) + steps", "--family", "binomial", "--out", "model")
    done = run(capsys, "marginals", "fit", "m.json", *formula)
    assert done.code == 0, done.err
    assert {path.name for path in (coded / "model").iterdir()} == {"model.json", "privacy.json", "report.html"}
    assert run(capsys, "marginals", "fit", "m.json", *formula).code == 2, "the folder is there"
    done = run(capsys, "predict", "model", "people.csv", "--out", "predicted.csv")
    assert done.code == 0, done.err
    assert (coded / "predicted.csv").read_text().startswith('"P(sick = yes)","sick"\n')
    assert run(capsys, "marginals", "synth", "m.json", "--rows", 50, "--seed", 1, "-o", "s.csv").code == 0
    lines = (coded / "s.csv").read_text().splitlines()
    assert len(lines) == 51
    assert run(capsys, "marginals", "report", "m.json", "-o", "m.html").code == 0
    page = (coded / "m.html").read_text()
    assert page.count("<figure>") == 4 + 6
    assert "±" in page
    assert "left out" in page
    assert not re.search(r"https?://(?!www\.w3\.org)|<script|<link|<img", page), "a page that needs something else"


@pytest.mark.usefixtures("coded")
@pytest.mark.parametrize("mechanism", ["one-shot", "aim", "residuals", "gaussian"])
def test_mechanisms(mechanism: str, capsys: pytest.CaptureFixture[str]) -> None:
    released(capsys, "--recipe", mechanism, "--target", "steps", "--columns", "age,steps,sick")
    assert run(capsys, "marginals", "report", "m.json", "-o", "m.html").code == 0
    assert run(capsys, "marginals", "fit", "m.json", "--target", "steps").code == 0


def test_rows_are_drawn_from_whole_tables(coded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By ``--use``, unless a recipe is named; a release for regressions says what it lacks."""
    synth = ("marginals", "synth", "m.json", "--rows", 5, "--overwrite", "-o", "s.csv")
    for more, law in (((), "entrywise"), (("--use", "rows"), "residuals"),
                      (("--use", "rows", "--recipe", "one-shot"), "entrywise")):  # fmt: skip
        released(capsys, "--overwrite", "--bins", 4, *more)
        assert json.loads((coded / "m.json").read_text())["noise"]["law"] == law
        assert ("--use rows" in run(capsys, *synth).out) == (law == "entrywise")


def test_refusals(coded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line each, nothing written."""
    base = ("marginals", "release", "people.csv", "--schema", "people.toml", *BUDGET)
    big = "[age]\nlower = 20\nupper = 80\n[sex]\nlevels = [" + ",".join(f'"{i}"' for i in range(10_000)) + "]\n"
    (coded / "big.toml").write_text(big)
    for arguments, said in (
        ((*base, "-o", "m.json", "--columns", "age,nothing"), "not in the schema"),
        ((*base, "-o", "m.json", "--bins", 1), "bins"),
        ((*base, "-o", "m.json", "--ledger", "l.db"), "go together"),
        ((*base, "-o", "m.json", "--target", "nothing"), "no column"),
        (("marginals", "release", "people.csv", "--schema", "big.toml", *BUDGET, "-o", "m.json"), "10,000 levels"),
        (("marginals", "fit", "people.toml", "--target", "steps"), "not a file of marginals"),
    ):
        done = run(capsys, *arguments)
        assert done.code == 2
        assert said in done.err
        assert done.err.count("\n") == 1
        assert not (coded / "m.json").exists()
    released(capsys)
    for arguments, said in (
        ((*base, "-o", "m.json"), "already"),
        (("marginals", "fit", "m.json", "--target", "sex"), "not a number"),
        (("marginals", "fit", "m.json", "--target", "steps", "--family", "binomial"), "is a number"),
        (("marginals", "fit", "m.json"), "--target"),
        (("marginals", "fit", "m.json", "--target", "steps", "--formula", "steps ~ age"), "--formula"),
        (("marginals", "fit", "m.json", "--formula", "steps ~ age:sex"), "without functions and products"),
        (("marginals", "fit", "m.json", "--formula", "steps ~ log(age)"), "without functions and products"),
        (("marginals", "fit", "m.json", "--formula", "steps ~ C(age)"), "without functions and products"),
        (("marginals", "fit", "m.json", "--formula", "steps ~ 0 + age"), "keep the intercept"),
        (("marginals", "synth", "m.json", "--rows", 5, "-o", "s.parquet"), "CSV"),
    ):
        done = run(capsys, *arguments)
        assert done.code == 2
        assert said in done.err
