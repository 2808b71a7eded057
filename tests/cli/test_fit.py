"""``dpregress fit`` as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import SQLiteLedger, load
from dpregress.mechanisms import SeededSampler, randomness
from dpregress.releases.model_files import load_model
from tests.support import Outcome, run

BUDGET = ("--epsilon", 1, "--delta", 1e-6)


def fit(capsys: pytest.CaptureFixture[str], *more: object, data: str = "private.csv") -> Outcome:
    return run(capsys, "fit", data, "--target", "cost", *BUDGET, *more)


@pytest.mark.usefixtures("tables")
class TestSuccess:
    def test_writes_model_and_report(self, capsys: pytest.CaptureFixture[str]) -> None:
        done = fit(capsys, "--public", "public.csv", "--out", "result")
        assert done.code == 0, done.err
        assert done.err == ""
        assert "epsilon = 1 at delta = 1e-06" in done.out
        assert "not recorded" in done.out
        model = load_model("result/model.json")
        assert model.features == ("age", "bmi")
        assert np.allclose(model.coef, [100, 300], rtol=0.5)  # noise sd is about 1 and 8
        page = Path("result/report.html").read_text()
        assert "<svg" in page
        assert "<dt>Source</dt><dd>private.csv</dd>" in page
        for outside in ("src=", "<script", "<link", "@import", "url(http"):
            assert outside not in page
        assert sorted(os.listdir("result")) == ["model.json", "privacy.json", "report.html"]

    def test_what_is_printed_is_the_summary_of_the_model(self, capsys: pytest.CaptureFixture[str]) -> None:
        said = fit(capsys, "--public", "public.csv", "--out", "result").out
        summary = load("result").summary()
        for row in summary.tables[1].texts():
            assert next(line for line in said.splitlines() if line.startswith(row[0])).split()[1] == row[1]
            cells = f'<th scope="row">{row[0]}</th><td data-label="coef">{row[1]}</td>'
            assert cells in Path("result/report.html").read_text()
        for note in summary.notes:
            assert note in said
        block = said.splitlines()[: len(str(summary).splitlines()) - 1]
        assert max(map(len, block)) <= 100

    def test_parquet_equals_csv(self, capsys: pytest.CaptureFixture[str]) -> None:
        table = pa.csv.read_csv("private.csv")
        pq.write_table(table, "private.parquet", row_group_size=700)
        fit(capsys, "--public", "public.csv", "--seed", 1, "--out", "a")
        fit(capsys, "--public", "public.csv", "--seed", 1, "--out", "b", data="private.parquet")
        assert np.allclose(load_model("a/model.json").coef, load_model("b/model.json").coef, rtol=1e-9)

    def test_a_folder_with_a_column_in_its_names(self, tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
        rows = (tables / "private.csv").read_text().splitlines()
        for plan, part in (("gold", rows[1:2500]), ("basic", rows[2500:])):
            (tables / "rows" / f"plan={plan}").mkdir(parents=True)
            (tables / "rows" / f"plan={plan}" / "part-0.csv").write_text("\n".join([rows[0], *part]) + "\n")
        (tables / "rows" / "_SUCCESS").touch()
        (tables / "plans.toml").write_text(
            (tables / "schema.toml").read_text() + '[plan]\nlevels = ["basic", "gold"]\n'
        )
        outcome = run(
            capsys, "fit", "rows", "--target", "cost", "--schema", "plans.toml", "--epsilon", 1, "--delta", "1e-6",
            "--out", "out",
        )  # fmt: skip
        assert outcome.code == 0, outcome.err
        assert set(load_model(Path("out/model.json")).features) == {"age", "bmi", "plan=gold"}

    def test_labels_can_be_ignored(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """With given noise: a score that contradicts public rows, by chance, has a histogram before the next."""
        monkeypatch.setattr(randomness, "SecureSampler", lambda: SeededSampler(np.random.default_rng(1)))
        fit(capsys, "--public", "public.csv", "--out", "a")
        fit(capsys, "--public", "public.csv", "--ignore-public-labels", "--out", "b")
        events = [len(json.loads(Path(f"{name}/model.json").read_text())["privacy"]["events"]) for name in "ab"]
        assert events == [7, 16]  # what labels tell is then bought privately

    def test_a_covariance_by_the_model_is_free(self, capsys: pytest.CaptureFixture[str]) -> None:
        seeded = ("--public", "public.csv", "--seed", 1)  # by chance a remainder may stand out, and be asked again
        fit(capsys, *seeded, "--out", "a")
        assert fit(capsys, *seeded, "--cov-type", "model", "--out", "b").code == 0
        models = [json.loads(Path(f"{name}/model.json").read_text()) for name in "ab"]
        assert [model["estimates"]["cov_type"] for model in models] == ["robust", "model"]
        assert [len(model["privacy"]["events"]) for model in models] == [7, 6]

    def test_moments_file_in_place_of_rows(self, capsys: pytest.CaptureFixture[str]) -> None:
        made = run(capsys, "public", "public.csv", "--features", "age,bmi", "-o", "moments.json")
        assert made.code == 0, made.err
        record = json.loads(Path("moments.json").read_text())
        assert record["n"] == 200
        assert record["names"] == ["age", "bmi"]
        assert set(record) == {"format", "n", "names", "mean", "second_moment"}
        assert fit(capsys, "--public", "moments.json").code == 0

    def test_schema_alone(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert fit(capsys, "--schema", "schema.toml").code == 0

    def test_ledger_is_charged_and_then_refuses(self, capsys: pytest.CaptureFixture[str]) -> None:
        opened = run(capsys, "ledger", "new", "budget.db", "--dataset", "d", "--epsilon", 1.5, "--delta", 1e-6)
        assert opened.code == 0, opened.err
        ledger = ("--ledger", "budget.db", "--dataset", "d")
        assert "Recorded in budget.db" in fit(capsys, "--public", "public.csv", *ledger, "--out", "a").out
        assert fit(capsys, "--public", "public.csv", *ledger, "--out", "b").code == 0
        refused = fit(capsys, "--public", "public.csv", *ledger, "--out", "c")
        assert refused.code == 2
        assert "what is left does not cover" in refused.err
        assert not Path("c").exists()
        shown = run(capsys, "ledger", "show", "budget.db")
        assert shown.out.count("DPLinearRegression") == 2

    def test_overwrite(self, capsys: pytest.CaptureFixture[str]) -> None:
        fit(capsys, "--public", "public.csv")
        before = Path("dpregress-out/model.json").read_text()
        refused = fit(capsys, "--public", "public.csv")
        assert refused.code == 2
        assert "--overwrite" in refused.err
        assert Path("dpregress-out/model.json").read_text() == before
        assert fit(capsys, "--public", "public.csv", "--overwrite").code == 0
        assert Path("dpregress-out/model.json").read_text() != before


#: (what, arguments, words of the message)
REFUSALS = [
    ("epsilon zero", ["--public", "public.csv", "--epsilon", 0], "epsilon must be positive"),
    ("epsilon negative", ["--public", "public.csv", "--epsilon", -1], "epsilon must be positive"),
    ("epsilon nan", ["--public", "public.csv", "--epsilon", "nan"], "epsilon must be positive"),
    ("epsilon infinite", ["--public", "public.csv", "--epsilon", "inf"], "epsilon must be positive"),
    ("delta zero", ["--public", "public.csv", "--delta", 0], "delta must lie"),
    ("delta one", ["--public", "public.csv", "--delta", 1], "delta must lie"),
    ("nothing public", [], "give --public rows, or a --schema"),
    ("no public file", ["--public", "nowhere.csv"], "no file nowhere.csv"),
    ("no feature", ["--public", "public.csv", "--features", "age,height"], "no column 'height'"),
    ("target as feature", ["--public", "public.csv", "--features", "age,cost"], "among the features"),
    ("repeated feature", ["--public", "public.csv", "--features", "age,age"], "different column names"),
    ("negative alpha", ["--public", "public.csv", "--alpha", -1], "alpha must be finite"),
    ("ledger without name", ["--public", "public.csv", "--ledger", "budget.db"], "go together"),
    ("no ledger", ["--public", "public.csv", "--ledger", "none.db", "--dataset", "d"], "ledger new none.db"),
    ("no such budget", ["--public", "public.csv", "--ledger", "budget.db", "--dataset", "e"], "no budget for 'e'"),
    ("no schema file", ["--schema", "none.toml"], "cannot read none.toml"),
    ("public of other columns", ["--public", "other.csv"], "no column 'bmi' in other.csv"),
    ("public text", ["--public", "text.csv"], "declare its levels"),
    ("public constant", ["--public", "constant.csv"], "singular"),
    ("public empty", ["--public", "header.csv"], "holds no rows"),
    ("out is a file", ["--public", "public.csv", "--out", "public.csv"], "is a file"),
    ("schema without bounds", ["--schema", "part.toml"], "no public bounds for 'bmi'"),
    ("schema of nonsense", ["--schema", "broken.toml"], "as a schema"),
]


@pytest.fixture
def refusal_files(tables: Path) -> Path:
    (tables / "other.csv").write_text("age,height,cost\n30,170,2\n40,180,3\n")
    (tables / "text.csv").write_text("age,bmi,cost\n30,low,2\n40,high,3\n")
    (tables / "constant.csv").write_text("age,bmi,cost\n30,25,2\n40,25,3\n50,25,3\n")
    (tables / "header.csv").write_text("age,bmi,cost\n")
    (tables / "part.toml").write_text("[age]\nlower = 0\nupper = 110\n")
    (tables / "broken.toml").write_text("age = {lower")
    from dpregress import ApproxDP

    SQLiteLedger.create(tables / "budget.db", "d", ApproxDP(1.0, 1e-6))
    return tables


@pytest.mark.parametrize(("arguments", "words"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_refusals_are_one_line_and_leave_nothing(
    refusal_files: Path, capsys: pytest.CaptureFixture[str], arguments: list[object], words: str
) -> None:
    before = sorted(os.listdir(refusal_files))
    refused = fit(capsys, *arguments)
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith("error: ")
    assert refused.err.count("\n") == 1
    assert words in refused.err
    assert sorted(os.listdir(refusal_files)) == before
    assert SQLiteLedger("budget.db", "d").charges == ()


def test_refused_data_charges_nothing(refusal_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = ("--public", "public.csv", "--ledger", "budget.db", "--dataset", "d")
    (refusal_files / "none.csv").write_text("")
    for data in ("nowhere.csv", "header.csv", "none.csv", "."):
        assert fit(capsys, *ledger, data=data).code == 2
    assert SQLiteLedger("budget.db", "d").charges == ()


def test_private_cells_never_show(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cells that cannot be read change neither the messages nor whether the fit succeeds."""
    clean = fit(capsys, "--public", "public.csv", "--out", "clean")
    lines = (tables / "private.csv").read_bytes().split(b"\n")
    lines[1] = b"s3cret,27,1000"
    lines[2] = b"1e999,,nan"
    lines[3] = b"1,2"
    lines[4] = b"1,2,3,4,5,s3cret"
    lines[5] = b"\xff\xfe,\x00,s3cret"
    lines[6] = b'"unfinished,27,1000'
    (tables / "private.csv").write_bytes(b"\n".join(lines))
    dirty = fit(capsys, "--public", "public.csv", "--out", "dirty")
    assert dirty.code == clean.code == 0, dirty.err
    assert dirty.err == clean.err == ""
    written = Path("dirty/model.json").read_text() + Path("dirty/report.html").read_text()
    assert "s3cret" not in dirty.out + written


def test_killed_fit_keeps_its_charge(tables: Path) -> None:
    """kill -9 after the charge: the budget is gone, no file is half-written."""
    from dpregress import ApproxDP

    SQLiteLedger.create(tables / "budget.db", "d", ApproxDP(3.0, 1e-6))
    code = (
        "import os, signal\n"
        "import dpregress.mechanisms.gaussian as g\n"
        "g.unrounded_answer = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from dpregress.cli import main\n"
        "main('fit private.csv --target cost --public public.csv --epsilon 1 --delta 1e-6 "
        "--ledger budget.db --dataset d --out result'.split())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tables, capture_output=True, check=False)
    assert done.returncode == -9
    assert len(SQLiteLedger(tables / "budget.db", "d").charges) == 1
    assert not (tables / "result").exists()
