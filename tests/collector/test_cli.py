"""The commands, end to end: two of them bring a study up, devices report, the group reads out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpregress.collector import Report, Study
from dpregress.collector.store import open_store
from tests.collector.support import DESCRIPTION, arrival, get, pilot, reports
from tests.support import run

ANSWERS = ("--answer", "age=44", "--answer", "coffee=2", "--answer", "smoker=no", "--answer", "tired=yes")


@pytest.fixture
def folder(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a description and public rows."""
    monkeypatch.chdir(tmp_path)
    pilot(tmp_path, seed)
    for name, enrolment in (("sleep", "open"), ("invited", "token")):
        text = DESCRIPTION.format(enrolment=enrolment, minimum=3, epsilon=4.0)
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    return tmp_path


@contextmanager
def served(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """``dpregress collect serve`` in a process of its own; its port."""
    command = [sys.executable, "-m", "dpregress", "collect", "serve", *arguments, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    try:
        port = None
        for line in process.stdout:
            found = re.search(r"http://127.0.0.1:(\d+)/study#study=[0-9a-f]{64};", line)
            if found:
                port = int(found[1])
                break
        assert port is not None, "the collector did not start"
        limit = time.monotonic() + 60
        while True:
            try:
                assert get(port, "/ready")[0] == 200
                break
            except (OSError, AssertionError):
                assert time.monotonic() < limit
                time.sleep(0.05)
        yield process, port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdout.close()


@pytest.mark.slow
def test_two_commands_bring_a_study_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands of docs/collector/index.md, then devices, status, fit and verification."""
    made = run(capsys, "study", "new", "sleep.toml", "--public", "pilot.csv", "--out", "sleep.json")
    assert made.code == 0, made.err
    digest = re.search(r"Hash ([0-9a-f]{64})\.", made.out)
    assert digest is not None
    serve = ("sleep.json", "--store", "sleep.db", "--admin-key", "admin.key", "--public", "pilot.csv")
    with served(*serve) as (process, port):
        address = f"http://127.0.0.1:{port}"
        device = ("report", "sleep.json", "--hash", digest[1], *ANSWERS)
        for name in ("a.bin", "b.bin", "c.bin"):
            said = run(capsys, *device, "--out", name, "--send", address)
            assert said.code == 0, said.err
            assert "has stored it" in said.out
        first = (folder / "a.bin").read_bytes()
        again = run(capsys, *device, "--out", "a.bin", "--send", address)
        assert "had stored it before" in again.out
        assert (folder / "a.bin").read_bytes() == first
        key = (folder / "admin.key").read_text().strip()
        status, _, body = get(port, "/api/result", authorization=f"Bearer {key}")
        assert (status, json.loads(body)["n"]) == (200, 3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    for command, expected in (
        (("collect", "status", "--store", "sleep.db"), "stored"),
        (("collect", "verify", "--store", "sleep.db"), "3 reports"),
        (
            ("collect", "fit", "--store", "sleep.db", "--public", "pilot.csv", "--out", "model"),
            "dishonest reports can have moved",
        ),
        (("collect", "backup", "--store", "sleep.db", "--out", "backup.db"), "Copied 3"),
        (("collect", "verify", "--store", "backup.db"), "3 reports"),
    ):
        said = run(capsys, *command)
        assert said.code == 0, said.err
        assert expected in said.out
    (folder / "new.csv").write_text("age,coffee,smoker\n40,2,no\n", encoding="utf-8")
    (folder / "s.toml").write_text(
        '[age]\nlower=18\nupper=90\n[coffee]\nlower=0\nupper=10\n[smoker]\nlevels=["no","yes"]\n', encoding="utf-8"
    )
    said = run(capsys, "predict", "model/model.json", "new.csv", "--schema", "s.toml", "--out", "p.csv")
    assert said.code == 0, said.err


def test_invitations(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Links and QR codes; each admits one report; the store has hashes only."""
    assert run(capsys, "study", "new", "invited.toml", "--public", "pilot.csv", "--out", "i.json").code == 0
    study = Study.load("i.json")
    told = run(capsys, "study", "show", "i.json").out
    assert "PureDP(" not in told + run(capsys, "report", "i.json", "--any-hash", *ANSWERS, "--out", "own.bin").out
    for out in ("links.txt", "sheet.html"):
        said = run(
            capsys, "collect", "invite", "i.json", "--store", "i.db", "--address", "https://x.example/", "--count", 2,
            "--out", out,
        )  # fmt: skip
        assert said.code == 0, said.err
        assert (folder / out).stat().st_mode & 0o077 == 0
    links = (folder / "links.txt").read_text().splitlines()
    pattern = rf"https://x\.example/study#study={study.digest.hex()}&token=([0-9a-f]{{64}})"
    tokens = [re.fullmatch(pattern, link)[1] for link in links]  # type: ignore[index]
    assert len(set(tokens)) == 2
    sheet = (folder / "sheet.html").read_text()
    assert sheet.count("<svg") == 2
    assert "http://" not in sheet.replace("http://www.w3.org/2000/svg", "")
    device = ("report", "i.json", "--hash", study.digest.hex(), *ANSWERS)
    for name, token, code in (("a", tokens[0], 0), ("b", tokens[0], 2), ("c", "0" * 64, 2), ("d", tokens[1], 0)):
        said = run(capsys, *device, "--token", token, "--out", f"{name}.bin")
        assert said.code == 0, said.err
        added = run(capsys, "collect", "add", "--store", "i.db", f"{name}.bin")
        assert (added.code, added.out) == (code, "Stored 1 of 1 report.\n" if code == 0 else "")
    again = run(capsys, "collect", "add", "--store", "i.db", "a.bin")
    assert again.out == "Stored 0 of 1 report; 1 was stored before.\n"
    assert "2 of 4 used" in run(capsys, "collect", "status", "--store", "i.db").out
    stored = b"".join(path.read_bytes() for path in folder.glob("i.db*"))
    assert bytes.fromhex(tokens[0]) not in stored


def test_refusals_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    assert run(capsys, "study", "new", "sleep.toml", "--public", "pilot.csv", "--out", "s.json").code == 0
    study = Study.load("s.json")
    with open_store("s.db", study) as store:
        store.add([arrival(each) for each in reports(study, seed, 2)])
    (folder / "bad.bin").write_bytes(b"x" * 100)
    digest = study.digest.hex()
    for command, said in (
        (("study", "new", "sleep.toml", "--out", "s.json"), "already exists"),
        (("study", "verify", "s.json", "--hash", "0" * 64), "do not answer it"),
        (("study", "verify", "s.json", "--signed-by", "0" * 32), "not signed by that key"),
        (("study", "plan", "s.json", "--users", "x"), "--users takes"),
        (("study", "show", "sleep.toml"), "not a study"),
        (("collect", "fit", "--store", "s.db"), "2 of 3 reports"),
        (("collect", "fit", "--store", "nothing.db"), "no store"),
        (("collect", "fit", "--store", "sleep.toml"), "cannot open the store"),
        (("collect", "add", "--store", "s.db", "bad.bin"), "is refused"),
        (("collect", "invite", "s.json", "--store", "s.db", "--address", "x", "--count", 1, "--out", "o"), "open"),
        (("collect", "serve", "s.json", "--store", "s.db", "--admin-key", "k", "--certificate", "c"), "go together"),
        (("report", "s.json", *ANSWERS, "--out", "r.bin"), "--hash"),
        (("report", "s.json", "--hash", "0" * 64, *ANSWERS, "--out", "r.bin"), "do not answer it"),
        (("report", "s.json", "--hash", digest, "--answer", "weight=1", "--out", "r.bin"), "NAME=VALUE"),
        (("report", "s.json", "--hash", digest, *ANSWERS, "--token", "0" * 64, "--out", "r.bin"), "open enrolment"),
        (("report", "s.json", "--hash", digest, *ANSWERS, "--out", "r.bin", "--send", "nowhere"), "https://"),
    ):
        outcome = run(capsys, *command)
        assert outcome.code == 2, command
        assert said in outcome.err, (command, outcome.err)
        assert outcome.err.count("\n") == 1
        assert "Traceback" not in outcome.err


def test_a_device_pays_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a ledger, the second report for one study is refused, and no file is left behind."""
    assert run(capsys, "study", "new", "sleep.toml", "--public", "pilot.csv", "--out", "s.json").code == 0
    opened = run(
        capsys, "ledger", "new", "d.db", "--dataset", "mine", "--epsilon", 8, "--delta", 1e-5, "--unit", "user"
    )
    assert opened.code == 0, opened.err
    device = ("report", "s.json", "--any-hash", *ANSWERS, "--ledger", "d.db", "--dataset", "mine")
    assert run(capsys, *device, "--out", "a.bin").code == 0
    second = run(capsys, *device, "--out", "b.bin")
    assert second.code == 2
    assert "has reported to this study before" in second.err
    assert "nothing was sent, and this device takes no further part" in second.err
    assert second.err.count("\n") == 1
    assert not (folder / "b.bin").exists()
    assert len(Report.decode((folder / "a.bin").read_bytes(), Study.load("s.json")).id) == 16


def test_a_rehearsal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Invented users through HTTP, with and without invitations; nothing is left behind."""
    for name in ("sleep", "invited"):
        assert run(capsys, "study", "new", f"{name}.toml", "--public", "pilot.csv", "--out", f"{name}.json").code == 0
        before = sorted(folder.iterdir())
        said = run(capsys, "collect", "simulate", f"{name}.json", "--users", 30, "--seed", 1)
        assert said.code == 0, said.err
        assert "30 invented users" in said.out
        assert sorted(folder.iterdir()) == before


def test_signatures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "study", "new", "sleep.toml", "--public", "pilot.csv", "--out", "s.json").code == 0
    signed = run(capsys, "study", "sign", "s.json", "--key", "signing.key")
    fingerprint = signed.out.strip().rpartition(" ")[2]
    verified = run(capsys, "study", "verify", "s.json", "--signed-by", fingerprint)
    assert verified.code == 0, verified.err
    assert (folder / "signing.key").stat().st_mode & 0o077 == 0
    shown = run(capsys, "study", "show", "s.json")
    assert "Were you tired this week?" in shown.out
