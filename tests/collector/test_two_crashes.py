"""``collect sum`` is killed at every step: one charge, one release, and the next run goes on."""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dpregress import ApproxDP, SQLiteLedger
from dpregress.accounting import sqlite_ledger
from dpregress.cli import main, places
from dpregress.collector import Study
from dpregress.collector.shares import noisy_sums
from dpregress.collector.store import audit, database, open_store, postgresql, sqlite
from dpregress.mechanisms import SecureSampler
from dpregress.parties.keys import write_secret
from tests.collector.two import KEYS, closed_lists, two_study
from tests.support import run

NewStore = Callable[[], str]
#: Files whose functions read or write what outlives the command; a step is a call of one, or its return.
_STEPS = {module.__file__ for module in (database, sqlite, postgresql, audit, sqlite_ledger, noisy_sums, places)}


def prepared(study: Study, location: str, folder: Path, seed: int) -> None:
    """A closed store at this location, and the other list, a key and a ledger in the folder."""
    closed_lists(study, location, folder, seed)
    write_secret(folder / "clinic.key", KEYS[0])
    SQLiteLedger.create(folder / "l.db", "people", ApproxDP(8.0, 1e-5), unit="user")


def command(location: str) -> list[str]:
    keyed = ["--store", location, "--key", "clinic.key", "--other", "1.list"]
    return ["collect", "sum", *keyed, "--ledger", "l.db", "--dataset", "people", "--out", "clinic.sum"]


class Killed:
    """Runs the command in a child that is killed at its k-th step, and tells whether noise was drawn before."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.folder, self.arguments = folder, arguments
        self._drawn = mmap.mmap(-1, 1)

    @property
    def drawn(self) -> bool:
        return self._drawn[0] == 1

    def at(self, step: int) -> bool:
        """Whether the child was killed; False if it came to its end before."""
        self._drawn[0] = 0
        child = os.fork()
        if child == 0:
            self._work(step)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL

    def _work(self, step: int) -> None:
        code = 1
        try:
            os.chdir(self.folder)
            sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            draw, drawn, taken = SecureSampler.add_integer_gaussian, self._drawn, 0

            def marked(sampler: SecureSampler, value: Any, scale: int) -> Any:
                drawn[0] = 1
                return draw(sampler, value, scale)

            def watch(frame: FrameType, event: str, _: object) -> None:
                nonlocal taken
                if event in ("call", "return") and frame.f_code.co_filename in _STEPS:
                    taken += 1
                    if taken == step:
                        os.kill(os.getpid(), signal.SIGKILL)

            SecureSampler.add_integer_gaussian = marked  # type: ignore[method-assign]
            sys.setprofile(watch)
            main(self.arguments)
            code = 0
        finally:
            os._exit(code)


def state(location: str, folder: Path) -> tuple[int, str | None, str | None, Counter[str]]:
    """Charges, the released sum in the store and in the file, and how often the log tells of what."""
    with open_store(location) as store:
        kinds = Counter(entry.event["kind"] for entry in audit.entries(store.database))
        released = store.noted("released")
    path = folder / "clinic.sum"
    written = path.read_text(encoding="utf-8") if path.exists() else None
    return len(SQLiteLedger(folder / "l.db", "people").charges), released, written, kinds


def check_killed(location: str, folder: Path, drawn: bool) -> str | None:
    """After a kill: no noise that was not paid for, nothing shown that was not kept; the released sum."""
    charges, released, written, kinds = state(location, folder)
    assert charges <= 1
    assert not drawn or (charges, kinds["charged"]) == (1, 1)
    assert written in (None, released)
    assert released is None or charges == kinds["charged"] == kinds["released"] == 1
    return released


def check_resumed(
    location: str, folder: Path, before: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command again: one charge, one release, that of before if there was one, and a store without faults."""
    monkeypatch.chdir(folder)
    said = run(capsys, *command(location))
    assert said.code == 0, said.err
    charges, released, written, kinds = state(location, folder)
    assert (charges, kinds["claimed"], kinds["charged"], kinds["released"]) == (1, 1, 1, 1)
    assert released == written is not None
    assert before in (None, released)
    assert run(capsys, "collect", "verify", "--store", location).code == 0
    assert not list(folder.glob(".clinic*"))


@pytest.fixture
def study(tmp_path: Path, seed: int) -> Study:
    return two_study(tmp_path, seed)


@pytest.mark.nightly
def test_killed_at_every_step(
    study: Study, tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step on a fresh copy of one closed store in SQLite."""
    prepared(study, str(tmp_path / "s.db"), tmp_path, seed)
    seen, step = set(), 0
    while True:
        step += 1
        folder = tmp_path / f"killed{step}"
        folder.mkdir()
        for name in ("s.db", "l.db", "clinic.key", "1.list"):
            shutil.copy(tmp_path / name, folder / name)
        child = Killed(folder, command("s.db"))
        killed = child.at(step)
        before = check_killed(str(folder / "s.db"), folder, child.drawn)
        seen.add((child.drawn, before is not None, (folder / "clinic.sum").exists(), killed))
        check_resumed("s.db", folder, before, capsys, monkeypatch)
        shutil.rmtree(folder)
        if not killed:
            break
    print(f"killed at {step - 1} steps")
    assert step > 100
    assert {each[:3] for each in seen} == {
        (False, False, False), (True, False, False), (True, True, False), (True, True, True)
    }  # fmt: skip


@pytest.mark.slow
def test_killed_again_and_again(
    study: Study,
    new_store: NewStore,
    tmp_path: Path,
    seed: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One store that is killed at later and later steps, on both databases, until the command comes to its end."""
    location = new_store()
    prepared(study, location, tmp_path, seed)
    child, step, before = Killed(tmp_path, command(location)), 1, None
    while child.at(step):
        released = check_killed(location, tmp_path, child.drawn)
        assert before in (None, released)
        assert before is None or not child.drawn
        before, step = released, step + 5
    check_resumed(location, tmp_path, before, capsys, monkeypatch)
