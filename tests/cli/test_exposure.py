"""``--exposure`` and ``--link`` as a user types them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.support import Outcome, run

HEADER = "age,years,claims,late"
SCHEMA = "[age]\nlower = 0\nupper = 1\n\n[years]\nlower = 0\nupper = 10\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    age, years = rng.random(3_000), rng.exponential(2.0, 3_000).clip(0.01, 9)
    claims = rng.poisson(years * np.exp(age - 1))
    lines = [f"{a:.3f},{y:.3f},{c},{int(a > 0.5)}" for a, y, c in zip(age, years, claims, strict=True)]
    (tmp_path / "private.csv").write_text("\n".join([HEADER, *lines[200:]]) + "\n")
    (tmp_path / "public.csv").write_text("\n".join([HEADER, *lines[:200]]) + "\n")
    (tmp_path / "bare.csv").write_text("\n".join(["age,claims", "0.1,1", "0.2,0", "0.9,4"]) + "\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


BUDGET = ("--epsilon", "5", "--delta", "1e-6", "--seed", "0", "--out", "out")


def fit(capsys: pytest.CaptureFixture[str], *more: object) -> Outcome:
    return run(capsys, "fit", "private.csv", *BUDGET, *more)


@pytest.mark.parametrize(
    "facts",
    [("--schema", "schema.toml"), ("--public", "public.csv"), ("--public", "public.csv", "--ignore-public-labels")],
    ids=["schema", "labelled", "unlabelled"],
)
@pytest.mark.parametrize("formula", [False, True], ids=["columns", "formula"])
def test_a_saved_model_remembers_its_exposure(
    folder: Path, capsys: pytest.CaptureFixture[str], facts: tuple[str, ...], formula: bool
) -> None:
    what = ("--formula", "claims ~ age") if formula else ("--target", "claims", "--features", "age")
    done = fit(capsys, *what, "--family", "poisson", "--exposure", "years", *facts)
    assert done.code == 0, done.err
    record = json.loads((folder / "out/model.json").read_text())
    assert record["features"] == ["age"]
    assert record["response"]["exposure"] == "years"
    assert run(capsys, "predict", "out/model.json", "public.csv", "-o", "p.csv").code == 0
    with (folder / "p.csv").open() as file:
        found = np.array([float(row["claims"]) for row in csv.DictReader(file)])
    rows = np.genfromtxt(folder / "public.csv", delimiter=",", names=True)
    expected = rows["years"] * np.exp(rows["age"] * record["coef"][0] + record["intercept"])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    refused = run(capsys, "predict", "out/model.json", "bare.csv", "-o", "q.csv")
    assert refused.code == 2
    assert "no column 'years', the exposure of the model" in refused.err


def test_the_exposure_is_no_feature(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = fit(capsys, "--target", "claims", "--family", "poisson", "--exposure", "years", "--public", "public.csv")
    assert done.code == 0, done.err
    assert json.loads((folder / "out/model.json").read_text())["features"] == ["age", "late"]


@pytest.mark.parametrize(
    ("target", "family", "link"),
    [
        ("claims", "poisson", "identity"),
        ("claims", "poisson", "log"),
        ("claims", "gaussian", "log"),
        ("late", "binomial", "probit"),
    ],
)
def test_links(folder: Path, capsys: pytest.CaptureFixture[str], target: str, family: str, link: str) -> None:
    done = fit(
        capsys, "--target", target, "--features", "years", "--family", family, "--link", link, "--public", "public.csv"
    )
    assert done.code == 0, done.err
    response = json.loads((folder / "out/model.json").read_text())["response"]
    assert (response["family"], response["link"], response["exposure"]) == (family, link, None)
    assert run(capsys, "predict", "out/model.json", "public.csv", "-o", "p.csv").code == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--family", "poisson", "--link", "probit"), "link of poisson must be one of log, identity, not 'probit'"),
        (("--family", "poisson", "--link", "identity", "--exposure", "years"), "this model's link is identity"),
        (("--exposure", "years"), "this model's link is identity"),
        (("--family", "binomial", "--link", "probit", "--classes", "0,1"), "--classes goes with --link logit"),
        (("--link", "log", "--recipe", "paper"), "--recipe paper goes with --link identity"),
        (("--family", "poisson", "--exposure", "ages"), "no column 'ages'"),
        (("--family", "poisson", "--exposure", "claims"), "is the target"),
        (("--family", "poisson", "--exposure", "age", "--features", "age"), "among the features"),
        (
            ("--family", "poisson", "--exposure", "years", "--public", "bare.csv"),
            "no exposure 'years' beside the target",
        ),
    ],
)
def test_refusals(folder: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], words: str) -> None:
    more = more if "--features" in more else ("--features", "age", *more)
    refused = fit(capsys, "--target", "claims", "--schema", "schema.toml", *more)
    assert refused.code == 2
    assert words in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    assert not (folder / "out").exists()
