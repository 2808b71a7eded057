"""Files that nobody honest writes, of every kind that is read: each is used, or refused in one line.

Plans, signatures, releases and joint releases of institutions are in ``tests/parties/test_hostile.py``, studies in
``tests/collector/test_reports.py``, with the reports of devices.
"""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress import ApproxDP, Schema, SQLiteLedger
from dpregress.curator.drafting import from_domain
from dpregress.errors import DPRegressError
from dpregress.estimators.marginals_fit import fit_marginals
from dpregress.estimators.saved import SavedModel
from dpregress.parties import load_joint, load_plan
from dpregress.public import PublicMoments
from dpregress.releases.marginals_files import load_marginals
from dpregress.releases.model_files import load_moments
from dpregress.reports.marginals import marginals_page
from tests.support import HUGE, run, spoilt

TABLE = "age,plan,y\n" + "".join(f"{20 + i % 60},{'abc'[i % 3]},{i % 7}\n" for i in range(400))
SCHEMA = '[age]\nlower = 0\nupper = 100\nunit = "years"\n[plan]\nlevels = ["a", "b", "c"]\n[y]\nlower = 0\nupper = 7\n'
BUDGET = ("--schema", "s.toml", "--epsilon", 1, "--delta", 1e-6, "--seed", 1)
#: Fits whose models differ in what a file holds.
FITS: dict[str, tuple[object, ...]] = {
    "numbers": ("--target", "y", "--features", "age"),
    "moments": ("--target", "y", "--features", "age", "--recipe", "one-shot"),
    "formula": ("--formula", "y ~ age + C(plan)"),
    "classes": ("--target", "plan", "--features", "age", "--family", "multinomial", "--classes", "a,b,c"),
    "exposure": ("--target", "y", "--features", "plan", "--family", "poisson", "--exposure", "age"),
}
#: Texts that are no document of any kind.
TEXTS = ("", "{", "[" * 100_000, '{"format": ' * 20_000, '{"format": NaN}', "9" * 5000, "null", "[]", '"\\ud800"', "\0")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rows.csv").write_text(TABLE)
    (tmp_path / "s.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def survives(read: Callable[[], Any], what: object) -> None:
    """Nothing but the library's own one-line refusals comes out; a warning is an error here."""
    said = ""
    try:
        read()
    except DPRegressError as refusal:
        said = str(refusal)
    assert "\n" not in said, what


def used(path: Path) -> None:
    """Whatever a model can be used for."""
    SavedModel.load(path).predict_file("rows.csv", Schema.from_toml("s.toml"))


@pytest.mark.parametrize("kind", FITS)
def test_models(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "fit", "rows.csv", *FITS[kind], *BUDGET, "--out", "o").code == 0
    record = json.loads((folder / "o/model.json").read_text())
    path = folder / "wild.json"
    if kind != "moments":
        record["moments"] = None
    record["privacy"] = None  # a prediction needs none
    classes = [copy.deepcopy(record) for _ in range(3)]
    classes[0]["response"]["classes"] = ["a"]
    classes[1]["response"]["classes"] = ["a", "b", "b"]
    classes[2]["intercept"] = classes[2]["intercept"][:2] if isinstance(record["intercept"], list) else [1.0]
    (folder / "rows.csv").write_text(TABLE[: TABLE.index("\n", 200) + 1])
    for wild in (*classes, *spoilt(record)):
        path.write_text(json.dumps(wild))
        survives(lambda: load_moments(path) if kind == "moments" else used(path), wild)
    for text in TEXTS:
        path.write_text(text)
        assert run(capsys, "predict", path, "rows.csv", "--out", "p.csv").code == 2


def test_models_of_one_class_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "fit", "rows.csv", *FITS["numbers"], *BUDGET, "--out", "o").code == 0
    record = json.loads((folder / "o/model.json").read_text())
    record["response"] = {"family": "binomial", "link": "logit", "classes": ["one"]}
    (folder / "o/model.json").write_text(json.dumps(record))
    said = run(capsys, "predict", "o", "rows.csv", "--out", "p.csv")
    assert (said.code, "its classes are not those" in said.err) == (2, True)


def test_public_moments(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moments = PublicMoments.from_rows(np.random.default_rng(0).normal(size=(50, 2)), names=["age", "y"])
    path = folder / "wild.json"
    for wild in spoilt(json.loads(moments.text())):
        path.write_text(json.dumps(wild))
        survives(lambda: ", ".join((found := PublicMoments.load(path)).names) + str(found.augmented(True)), wild)
    for text in TEXTS:
        path.write_text(text)
        assert run(capsys, "schema", "check", "s.toml", "--public", path).code == 2
    path.write_text(moments.text().replace('"n": 50', f'"n": {HUGE}'))
    said = run(capsys, "fit", "rows.csv", *FITS["numbers"], *BUDGET, "--public", path, "--out", "o")
    assert (said.code, said.err.count("\n")) == (2, 1)


def toml(value: Any) -> str:
    """A value in TOML, as far as it has such values."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return "inf" if value == float("inf") else "nan" if value is None else json.dumps(value)


def test_schemas(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = {
        "age": {"lower": 0, "upper": 100, "unit": "years", "fill": 50, "missing": "indicator"},
        "plan": {"levels": ["a", "b"], "ordered": True, "missing": "a"},
    }
    path = folder / "wild.toml"
    for wild in spoilt(record):
        path.write_text(
            "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in wild.items()), errors="replace"
        )
        survives(lambda: Schema.from_toml(path).to_toml(), wild)
        said = run(capsys, "schema", "check", path)
        assert said.code in (0, 2)
        assert "\x1b" not in said.out + said.err
    for text in (*TEXTS[1:], "a = " + "[" * 100_000, "a = " + "{a = " * 20_000, "[" + "a." * 20_000 + "a]"):
        path.write_text(text)
        assert run(capsys, "schema", "check", path).code == 2
    for wild in spoilt({"a": 3, "b": ["x", "y"]}):
        path.write_text(json.dumps(wild))
        survives(lambda: from_domain(path), wild)


@pytest.mark.parametrize("mechanism", ["one-shot", "residuals"])
def test_marginals(folder: Path, capsys: pytest.CaptureFixture[str], mechanism: str) -> None:
    made = run(
        capsys, "marginals", "release", "rows.csv", *BUDGET, "--bins", 4, "--recipe", mechanism, "--out", "m.json"
    )
    assert made.code == 0
    path = folder / "wild.json"

    def read() -> None:
        released, privacy = load_marginals(path)
        fit_marginals(released, released.domain.names[0], released.domain.names[1:])
        marginals_page("t", released, privacy, software="s")

    record = json.loads((folder / "m.json").read_text())
    for wild in spoilt(record):
        if wild.get("domain") == record["domain"]:  # that of a wild domain is read alone: it takes long to fit
            path.write_text(json.dumps(wild))
            survives(read if wild.get("gram") != record["gram"] else lambda: load_marginals(path), wild)
        else:
            path.write_text(json.dumps(wild))
            survives(lambda: load_marginals(path), wild)
    for text in TEXTS:
        path.write_text(text)
        for command in ("fit", "synth", "report"):
            more = {"fit": ("--target", "y"), "synth": ("--rows", 3, "--out", "o"), "report": ("--out", "o")}[command]
            assert run(capsys, "marginals", command, path, *more).code == 2


def test_documents_of_institutions_and_studies(folder: Path) -> None:
    from dpregress.collector import Study
    from dpregress.collector.shares.holder import load_identity

    for text in TEXTS:
        (folder / "wild.json").write_text(text)
        for read in (load_plan, load_joint, Study.load, load_identity):
            with pytest.raises(DPRegressError) as refusal:
                read(folder / "wild.json")
            assert "\n" not in str(refusal.value)


CELLS = (None, 1, b"\xff", "{", "[" * 100_000, '{"kind": ' * 20_000, '{"kind": "gdp", "mu": 1e999}')
EVENTS = (*CELLS, json.dumps({"kind": "gdp", "mu": HUGE}), '{"kind": "gdp", "mu": [[1]]}', '{"kind": {"kind": []}}')


@pytest.mark.parametrize(
    "place", ["charge.event", "charge.note", "charge.charged", "dataset.budget", "dataset.unit", "dataset.relation"]
)
def test_ledgers(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that somebody wrote into the file by other means."""
    table, column = place.split(".")
    for number, cell in enumerate(EVENTS):
        path = tmp_path / f"{number}.db"
        SQLiteLedger.create(path, "people", ApproxDP(3.0, 1e-5)).reserve(ApproxDP(1.0, 1e-6), note="one")
        with closing(sqlite3.connect(path)) as connection:
            for trigger in [
                name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            ]:
                connection.execute(f"DROP TRIGGER {trigger}")
            try:
                with connection:
                    connection.execute(f"UPDATE {table} SET {column} = ?", (cell,))
            except sqlite3.IntegrityError:  # no nothing in this column
                continue
        survives(lambda path=path: SQLiteLedger(path, "people").charges, cell)
        said = run(capsys, "ledger", "show", path)
        assert said.code in (0, 2), cell
        assert said.err.count("\n") == (said.code == 2), cell
