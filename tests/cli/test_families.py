"""``dpregress fit --family`` and ``dpregress predict`` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import SQLiteLedger
from dpregress.releases.model_files import load_model, load_response
from tests.support import Outcome, run

BUDGET = ("--epsilon", 5, "--delta", 1e-6)


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """people.csv (6,000 rows) and pilot.csv (300): age, a level, a count, an amount and a class."""
    rng = np.random.default_rng(0)
    age, north = rng.uniform(20, 80, 6300), rng.random(6300) < 0.4
    eta = -2 + 0.04 * age + 0.5 * north
    columns = {
        "age": age.round(3),
        "region": np.where(north, "north", "south"),
        "visits": rng.poisson(np.exp(eta)),
        "cost": rng.gamma(2.0, np.exp(eta + 3) / 2).round(4) + 0.001,
        "ill": np.where(rng.random(6300) < 1 / (1 + np.exp(-eta)), "yes", "no"),
    }
    chosen = (rng.random(6300) < 1 / (1 + np.exp(-eta))).astype(int) + (rng.random(6300) < 0.3)
    columns["plan"] = np.array(["free", "basic", "full"])[chosen]
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "pilot.csv").write_text("\n".join([",".join(columns), *lines[:300]]) + "\n")
    (tmp_path / "people.csv").write_text("\n".join([",".join(columns), *lines[300:]]) + "\n")
    (tmp_path / "levels.toml").write_text('[region]\nlevels = ["south", "north"]\n[age]\nlower = 0\nupper = 110\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(capsys: pytest.CaptureFixture[str], target: str, family: str, *more: object) -> Outcome:
    command = ("fit", "people.csv", "--target", target, "--family", family, "--features", "age,region")
    return run(capsys, *command, "--public", "pilot.csv", "--schema", "levels.toml", *BUDGET, *more)


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("target", "family", "more"),
    [("visits", "poisson", ()), ("cost", "gamma", ()), ("ill", "binomial", ("--classes", "no,yes"))],
)
@pytest.mark.parametrize("labels", [(), ("--ignore-public-labels",)], ids=["labelled", "unlabelled"])
def test_families(
    capsys: pytest.CaptureFixture[str], target: str, family: str, more: tuple[str, ...], labels: tuple[str, ...]
) -> None:
    """Coefficients within ten standard errors of the truth (0.04, 0.5): failure below 1e-12 a test."""
    done = fit(capsys, target, family, *more, *labels)
    assert done.code == 0, done.err
    assert done.err == ""
    model = load_model("dpregress-out/model.json")
    assert model.features == ("age", "region=north")
    assert (np.abs(model.coef - [0.04, 0.5]) < 10 * model.standard_error + [0.01, 0.2]).all()
    statement = json.loads(Path("dpregress-out/privacy.json").read_text())
    assert statement["format"] == "dpregress.privacy/1"
    assert statement["total"]["epsilon"] <= 5
    assert statement["relation"] == "replace-one"
    spent = np.sqrt(sum(event["mu"] ** 2 for event in statement["events"]))
    assert np.isclose(spent, statement["promise"]["mu"])


@pytest.mark.usefixtures("people")
def test_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(capsys, "ill", "binomial", "--classes", " no, yes ").code == 0
    assert load_response("dpregress-out/model.json").classes == ("no", "yes")
    predict = ("predict", "dpregress-out/model.json", "people.csv", "--schema", "levels.toml", "-o", "out.csv")
    done = run(capsys, *predict)
    assert done.code == 0, done.err
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == '"P(ill = yes)","ill"'
    assert len(lines) == 6001
    for line in lines[1:50]:
        probability, likelier = line.split(",")
        assert likelier == ('"yes"' if float(probability) > 0.5 else '"no"')
    assert "--overwrite" in run(capsys, *predict).err
    assert "cannot be read" in run(capsys, "predict", "elsewhere", "people.csv", "-o", "other.csv").err
    # the model file holds the schema, but that of the response
    assert run(capsys, "predict", "dpregress-out/model.json", "people.csv", "-o", "held.csv").code == 0
    assert Path("held.csv").read_text() == Path("out.csv").read_text()
    record = json.loads(Path("dpregress-out/model.json").read_text())
    assert "[region]" in record["schema"]
    assert "ill" not in record["schema"]
    spoilt = {None: "region=north", "[region": "schema", 7: "not text", "[a]\nlevels=1": "levels"}
    for schema, words in spoilt.items():
        Path("spoilt.json").write_text(json.dumps({**record, "schema": schema}))
        refused = run(capsys, "predict", "spoilt.json", "people.csv", "-o", "other.csv")
        assert refused.code == 2
        assert words in refused.err
        assert refused.err.count("\n") == 1
        assert not Path("other.csv").exists()


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("labels", [(), ("--ignore-public-labels",)], ids=["labelled", "unlabelled"])
def test_several_classes(capsys: pytest.CaptureFixture[str], labels: tuple[str, ...]) -> None:
    done = fit(capsys, "plan", "multinomial", "--classes", "free,basic,full", *labels)
    assert done.code == 0, done.err
    for name in ("free", "basic", "full"):
        assert f"plan = {name}" in done.out
        assert f"plan = {name}" in Path("dpregress-out/report.html").read_text()
    predict = ("predict", "dpregress-out/model.json", "people.csv", "--schema", "levels.toml", "-o", "out.csv")
    assert run(capsys, *predict).code == 0
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == '"P(plan = free)","P(plan = basic)","P(plan = full)","plan"'
    assert len(lines) == 6001
    for line in lines[1:50]:
        *chances, likeliest = line.split(",")
        values = np.array(chances, dtype=float)
        assert np.isclose(values.sum(), 1)
        assert likeliest.strip('"') == ("free", "basic", "full")[int(values.argmax())]


@pytest.mark.usefixtures("people")
def test_counts_are_predicted_on_their_own_scale(capsys: pytest.CaptureFixture[str]) -> None:
    """The mean of predicted counts is near that of the counts: ten standard deviations of the noise, below 1e-12."""
    assert fit(capsys, "visits", "poisson").code == 0
    run(capsys, "predict", "dpregress-out", "people.csv", "--schema", "levels.toml", "-o", "out.csv")
    predicted = np.loadtxt("out.csv", skiprows=1)
    rows = [line.split(",") for line in Path("people.csv").read_text().splitlines()[1:]]
    assert abs(predicted.mean() / np.mean([float(row[2]) for row in rows]) - 1) < 0.25


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("target", "family", "more", "words"),
    [
        ("visits", "poisson", ("--classes", "a,b"), "goes with --family binomial"),
        ("visits", "poisson", ("--recipe", "paper"), "goes with --family gaussian"),
        ("visits", "poisson", ("--cov-type", "hc0"), "is not one of 'robust', 'model'"),
        ("plan", "multinomial", (), "three or more"),
        ("plan", "multinomial", ("--classes", "free,full"), "three or more"),
        ("plan", "multinomial", ("--classes", "free,full,full"), "two different"),
        ("plan", "binomial", ("--classes", "free,basic,full"), "choose --family multinomial"),
        ("ill", "binomial", ("--classes", "no"), "two different"),
        ("ill", "binomial", ("--classes", "no,no"), "two different"),
        ("ill", "binomial", ("--classes", "sick,well"), "other responses than the classes sick, well"),
        ("ill", "poisson", (), "declare its levels"),
    ],
)
def test_refusals(
    capsys: pytest.CaptureFixture[str], target: str, family: str, more: tuple[str, ...], words: str
) -> None:
    refused = fit(capsys, target, family, *more)
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert words in refused.err
    assert not Path("dpregress-out").exists()


@pytest.mark.usefixtures("people")
def test_what_nobody_named_is_refused_or_taken_from_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """Levels in the schema are the classes; public labels of other classes name the option that mends it."""
    refused = fit(capsys, "ill", "binomial")
    assert refused.code == 2
    assert "--classes" in refused.err
    schema = Path("levels.toml").read_text()
    Path("levels.toml").write_text(schema + '\n[ill]\nlevels = ["no", "yes"]\n')
    done = fit(capsys, "ill", "binomial")
    assert done.code == 0, done.err
    assert load_response("dpregress-out/model.json").classes == ("no", "yes")


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma", "binomial"])
def test_text_in_a_typed_file_costs_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"a": [0.1, 0.9] * 500, "y": ["No", "Yes"] * 500}), "rows.parquet")
    Path("s.toml").write_text("[a]\nlower = 0\nupper = 1\n")
    run(capsys, "ledger", "new", "b.db", "--dataset", "d", "--epsilon", 9, "--delta", 1e-5)
    more = ("--ledger", "b.db", "--dataset", "d", "--epsilon", 1, "--delta", 1e-6, "--schema", "s.toml")
    refused = run(capsys, "fit", "rows.parquet", "--target", "y", "--family", family, *more)
    assert refused.code == 2
    assert "column 'y' is text (string)" in refused.err
    assert "--classes" in refused.err
    assert not SQLiteLedger("b.db", "d").charges
    assert not Path("dpregress-out").exists()
