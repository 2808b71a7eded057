"""Places of results: one command at a time, taken before the charge, filled in one step however a command ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dpregress import ApproxDP, SQLiteLedger
from dpregress.cli import places
from dpregress.cli.places import taken, write_one
from dpregress.errors import InvalidInput, OutputError
from tests.support import run

NAMES = ("model.json", "privacy.json")
#: A command that writes without a budget, and what it writes: arguments but the place, and whether that is a folder.
FIT = ("fit", "private.csv", "--target", "cost", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6")


def dpregress(*arguments: object, **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dpregress", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload, no-any-return]


@pytest.mark.slow
def test_of_three_fits_at_once_one_is_charged(tables: Path) -> None:
    SQLiteLedger.create("budget.db", "d", ApproxDP(9.0, 1e-5))
    started = [dpregress(*FIT, "--ledger", "budget.db", "--dataset", "d", "--out", "result") for _ in range(3)]
    ended = [(process.communicate(timeout=300), process.returncode) for process in started]
    assert sorted(code for _, code in ended) == [0, 2, 2]
    for (_, err), code in ended:
        assert err.count("\n") == (code == 2)
        assert code == 0 or "another command is writing to result" in err or "already exists" in err
    assert len(SQLiteLedger("budget.db", "d").charges) == 1
    assert not list(tables.glob(".*.dpregress"))
    assert (tables / "result/report.html").is_file()


def in_child(act: Callable[[], None]) -> int:
    """Run it in a process of its own; how that ended."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def killed_at(step: int) -> None:
    """From now on this process is killed at its ``step``-th call to the file system that changes something."""
    left = step

    def watch(event: str, _: object) -> None:
        nonlocal left
        if event in {"os.rename", "os.mkdir", "os.rmdir", "os.remove", "shutil.rmtree", "open", "ctypes.dlsym"}:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def contents(folder: Path) -> tuple[str | None, ...]:
    return tuple((folder / name).read_text() if (folder / name).exists() else None for name in NAMES)


def write(folder: Path, text: str) -> None:
    with taken(folder, NAMES, overwrite=True) as place:
        place.write(*[text] * len(NAMES))


@pytest.mark.parametrize("way", ["new", "alone", "others", "no exchange", "inside"])
def test_a_killed_command_never_mixes_old_and_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Killed at every step in turn: all old, all new, or in between some missing; the next command finds its way."""
    if way == "no exchange":
        monkeypatch.setattr(places, "_exchanged", lambda *_: False)
    if way == "inside":
        monkeypatch.setattr(places, "_home", lambda target, _: target)
    atomic = way in ("new", "alone")
    for step in range(200):
        folder = tmp_path / f"{step}"
        if way != "new":
            write(folder, "old")
        if way == "others":
            (folder / "mine.txt").write_text("kept")

        def act(folder: Path = folder, step: int = step) -> None:
            killed_at(step)
            write(folder, "new")

        ended = in_child(act)
        found = contents(folder)
        assert not {"old", "new"} <= {*found}, (step, found)
        if atomic:
            assert found in [("old", "old"), ("new", "new")] or (way == "new" and found == (None, None)), (step, found)
        with suppress(InvalidInput), taken(folder, NAMES, overwrite=False):
            assert contents(folder) == (None, None)
        if way != "new":
            assert contents(folder) in [("old", "old"), ("new", "new")], (step, contents(folder))
        write(folder, "newest")
        assert contents(folder) == ("newest", "newest")
        assert way != "others" or (folder / "mine.txt").read_text() == "kept"
        assert not [path for path in [*tmp_path.iterdir(), *folder.iterdir()] if path.name.startswith(".")]
        if ended == 0:
            break
    else:
        pytest.fail("it never came to its end")
    assert step > 5


def test_a_killed_command_leaves_the_place_free(tmp_path: Path) -> None:
    """The system gives the lock back; what was staged is cleaned away."""

    def act() -> None:
        with taken(tmp_path / "out", NAMES, overwrite=False) as place:
            (place.staging / "new").mkdir()
            (place.staging / "new" / "model.json").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(act) == signal.SIGKILL
    assert (tmp_path / ".out.dpregress").is_dir()
    with taken(tmp_path / "out", NAMES, overwrite=False) as place:
        assert [path.name for path in place.staging.iterdir()] == ["lock"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [(), NAMES], ids=["file", "folder"])
def test_a_place_is_taken_once(tmp_path: Path, names: tuple[str, ...]) -> None:
    out = tmp_path / "a" / "out"
    with taken(out, names, overwrite=True) as place:
        for other in (out, tmp_path / "a" / "b" / ".." / "out"):
            with (
                pytest.raises(InvalidInput, match="another command is writing to"),
                taken(other, names, overwrite=True),
            ):
                pass
        with taken(tmp_path / "a" / "else", names, overwrite=False):
            pass
        place.write(*["x"] * (len(names) or 1))
    assert os.listdir(tmp_path / "a") == ["out"]


def test_a_refused_command_leaves_no_folder(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in tables.iterdir())
    said = run(capsys, "predict", "none.json", "private.csv", "--out", "a/b/../c/p.csv")
    assert said.code == 2
    SQLiteLedger.create("budget.db", "d", ApproxDP(0.1, 1e-6))
    said = run(capsys, *FIT, "--ledger", "budget.db", "--dataset", "d", "--out", "a/b/../c")
    assert (said.code, "the budget of 'd'" in said.err) == (2, True)
    assert sorted(path.name for path in tables.iterdir()) == sorted([*before, "budget.db"])
    assert run(capsys, *FIT, "--out", "a/b/../c").code == 0
    assert [path.name for path in (tables / "a").iterdir()] == ["c"]


def test_the_folder_one_works_in_is_kept(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its other files stay, and nobody is left in a folder that was taken away."""
    number = tables.stat().st_ino
    for _ in range(2):
        assert run(capsys, *FIT, "--out", ".", "--overwrite").code == 0
    assert tables.stat().st_ino == number
    assert {"private.csv", "schema.toml", "model.json", "privacy.json", "report.html"} <= set(os.listdir())
    os.mkdir("inner")
    os.chdir("inner")
    assert run(capsys, "ledger", "new", "b.db", "--dataset", "d", "--epsilon", 1, "--delta", 1e-6).code == 0


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "real") == ("new", "new")


def test_a_planted_folder_is_not_used(tmp_path: Path) -> None:
    """Whoever may write beside a place could else have files of theirs taken for results."""
    (tmp_path / "planted" / "ready").mkdir(parents=True)
    (tmp_path / "planted" / "ready" / "model.json").write_text("planted")
    (tmp_path / ".out.dpregress").symlink_to(tmp_path / "planted")
    with pytest.raises(InvalidInput, match="not a folder that you own"), taken(tmp_path / "out", NAMES, overwrite=True):
        pass
    assert sorted(os.listdir(tmp_path)) == [".out.dpregress", "planted"]
    assert (tmp_path / "planted" / "ready" / "model.json").read_text() == "planted"


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out", "old")
    write_one(tmp_path / "file", "old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(places, "_sync", refuse)
        with pytest.raises(OutputError, match="No space left"):
            write(tmp_path / "out", "new")
        with pytest.raises(OutputError, match="No space left"):
            write_one(tmp_path / "file", "new")
    assert contents(tmp_path / "out") == ("old", "old")
    assert (tmp_path / "file").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["file", "out"]


def test_secrets_are_their_owners(tmp_path: Path) -> None:
    write_one(tmp_path / "keys" / "secret", "s", private=True)
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "keys" / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_terminal_without_letters_loses_no_result(tables: Path) -> None:
    """A charge whose results are lost because a terminal lacks a letter."""
    lines = (tables / "private.csv").read_text().replace("age,bmi,cost", "\u00e2ge,bmi,cost", 1)
    (tables / "private.csv").write_text(lines, encoding="utf-8")
    (tables / "schema.toml").write_text(
        '["\u00e2ge"]\nlower = 0\nupper = 110\n[bmi]\nlower = 10\nupper = 60\n[cost]\nlower = 0\nupper = 30000\n',
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LANG": "C", "PYTHONUTF8": "0"}
    out, err = (process := dpregress(*FIT, "--out", "r", env=environment)).communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert "\\xe2ge" in out
    assert "\u00e2ge" in json.loads((tables / "r/model.json").read_text())["features"]


@pytest.mark.parametrize("names", [NAMES, ()])
def test_a_link_to_itself_is_refused_before_anything_is_charged(tmp_path: Path, names: tuple[str, ...]) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InvalidInput, match="leads nowhere"), taken(tmp_path / "loop", names, overwrite=True):
        pytest.fail("taken")


@pytest.mark.parametrize("names", [(), NAMES])
def test_a_pipe_is_not_replaced(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Nor is a device: with --overwrite too, only a regular file gives way."""
    pipe = tmp_path / (names[0] if names else "result.json")
    os.mkfifo(pipe)
    with (
        pytest.raises(InvalidInput, match=r"is not a regular file: choose another --out"),
        taken(tmp_path if names else pipe, names, overwrite=True),
    ):
        raise AssertionError("the place was taken")
    assert pipe.is_fifo()
