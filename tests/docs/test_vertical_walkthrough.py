"""The walk-through of three institutions runs as it stands, and what it ends with can be used."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dpregress.releases.model_files import load_model
from tests.support import run

PAGE = Path(__file__).parents[2] / "docs" / "vertical-walkthrough.md"


@pytest.mark.slow
def test_walkthrough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command on the page, in order, in one folder."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    (setup,) = [block for language, block in fenced if language == "python"]
    exec(compile(setup, PAGE.name, "exec"), {})
    commands = [block for language, block in fenced if not language]
    for line in (line for block in commands for line in block.replace("\\\n", " ").splitlines()):
        outcome = run(capsys, *shlex.split(line)[1:])
        assert outcome.code == 0, f"{line}: {outcome.err}"
        assert outcome.out
        for told in re.findall(r"standard deviation of about [\d.]+", outcome.out):
            assert told in text
    fitted = load_model(tmp_path / "cost-model/model.json")
    assert fitted.features == ("age", "smoker=yes", "dose")
    page = (tmp_path / "cost-model/report.html").read_text(encoding="utf-8")
    assert "clinic: epsilon = 2, delta = 1e-06" in page
    assert '<svg class="forest"' in page
    assert (fitted.coef > 0).all()  # as they were made; more than five privacy standard deviations each
    predicted = run(capsys, "predict", "cost-model/model.json", _joined(tmp_path), "-o", "predicted.csv")
    assert predicted.code == 0, predicted.err


def _joined(folder: Path) -> Path:
    """A few invented rows of all features."""
    path = folder / "new.csv"
    path.write_text("age,smoker=yes,dose\n40,0,3\n70,1,8\n", encoding="utf-8")
    return path
