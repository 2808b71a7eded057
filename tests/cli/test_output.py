"""Files appear whole or not at all, and ``python -m dpregress`` is the command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpregress import __version__
from dpregress.cli.places import write_one
from dpregress.errors import OutputError


def test_a_failed_write_leaves_no_folder_that_it_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "there").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", refuse)
        for folder in (tmp_path / "new" / "inner", tmp_path / "there"):
            with pytest.raises(OutputError, match="No space left"):
                write_one(folder / "a.json", "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    write_one(tmp_path / "new" / "inner" / "a.json", "{}")
    assert (tmp_path / "new" / "inner" / "a.json").read_text() == "{}"


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "dpregress", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"dpregress, version {__version__}\n"
