"""Files appear whole or not at all, and ``python -m dpregress`` is the command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpregress import __version__
from dpregress.cli.output import print_table
from dpregress.cli.places import write_one
from dpregress.errors import OutputError


def test_a_failed_write_leaves_no_folder_that_it_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "there").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", refuse)
        for folder in (tmp_path / "new" / "inner", tmp_path / "there"):
            with pytest.raises(OutputError, match="No space left"):
                write_one(folder / "a.json", "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    write_one(tmp_path / "new" / "inner" / "a.json", "{}")
    assert (tmp_path / "new" / "inner" / "a.json").read_text() == "{}"


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "dpregress", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"dpregress, version {__version__}\n"


@pytest.mark.parametrize("columns", ["20", "60", "80", "200"])
def test_tables_break_between_words(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    header = ["column", "read as", "missing", "not a number", "not finite", "undeclared", "out of bounds", "mapped to"]
    print_table("A title", header, [["age", "a number", "123", "0", "0", "0", "12345", "the public mean"]])
    words = capsys.readouterr().out.split()
    assert {word for cell in header for word in cell.split()} <= set(words)
    assert {"number", "public", "mean", "12345"} <= set(words)
