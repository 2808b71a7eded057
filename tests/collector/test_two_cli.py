"""The commands of two collectors, end to end, and commands that are killed where it hurts most."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpregress import ApproxDP, SQLiteLedger
from dpregress.collector import Study
from dpregress.collector.rehearsal import serving
from dpregress.collector.server.app import Collector, Settings
from dpregress.collector.store import open_store
from dpregress.parties.keys import read_secret, write_secret
from tests.collector.support import ADMIN_KEY, DESCRIPTION, arrival, get, make_study, pilot, reports
from tests.support import run

ANSWERS = ("--answer", "age=44", "--answer", "coffee=2", "--answer", "smoker=no", "--answer", "tired=yes")
NAMES = ("clinic", "university")


def free_addresses() -> list[str]:
    """Two addresses on this machine where nobody listens."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in NAMES]
        return [f"http://127.0.0.1:{each.getsockname()[1]}" for each in sockets]


@pytest.fixture
def folder(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a study of two collectors, invitations, and their keys."""
    monkeypatch.chdir(tmp_path)
    pilot(tmp_path, seed)
    for name, enrolment in (("open", "open"), ("invited", "token")):
        text = DESCRIPTION.format(enrolment=enrolment, minimum=3, epsilon=4.0)
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    for name, address in zip(NAMES, free_addresses(), strict=True):
        said = run(
            capsys, "collect", "identity", "--name", name, "--address", address, "--key", f"{name}.key",
            "--out", f"{name}.json",
        )  # fmt: skip
        assert said.code == 0, said.err
        assert (tmp_path / f"{name}.key").stat().st_mode & 0o077 == 0
    for name in ("open", "invited"):
        two = ("--two-collectors", "clinic.json", "university.json")
        said = run(capsys, "study", "new", f"{name}.toml", "--public", "pilot.csv", "--out", f"{name}.json", *two)
        assert said.code == 0, said.err
        for phrase in ("no proof that answers are bounded", "if they do not collude", "http://127.0.0.1:"):
            assert phrase in said.out
    return tmp_path


def good(capsys: pytest.CaptureFixture[str], *command: object) -> str:
    said = run(capsys, *command)
    assert said.code == 0, (command, said.err)
    return said.out


def tokens_of(capsys: pytest.CaptureFixture[str], folder: Path) -> list[str]:
    """Four invitations, which both collectors admit."""
    good(
        capsys, "collect", "invite", "invited.json", "--store", "clinic.db", "--key", "clinic.key", "--address",
        Study.load("invited.json").holders[1].address, "--count", 4, "--out", "links.txt", "--hashes", "hashes.txt",
    )  # fmt: skip
    admit = ("collect", "admit", "invited.json", "--store", "university.db", "--key", "university.key")
    assert "4 invitations: 4 new" in good(capsys, *admit, "--hashes", "hashes.txt")
    assert "4 invitations: 0 new, 4 admitted before" in good(capsys, *admit, "--hashes", "hashes.txt")
    tokens = [link.rpartition("=")[2] for link in (folder / "links.txt").read_text().split()]
    assert not any(token in (folder / "hashes.txt").read_text() for token in tokens)
    return tokens


def test_two_collectors_by_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Devices send over HTTP to both services; lists, sums and the fit; the same bytes again; one share too late."""
    tokens, study = tokens_of(capsys, folder), Study.load("invited.json")
    device = ("report", "invited.json", "--hash", study.digest.hex(), *ANSWERS)
    with ExitStack() as served:
        sends: list[str] = []
        for place, name in enumerate(NAMES):
            settings = Settings(ADMIN_KEY, rate=1e9, burst=1e9, holder=place)
            port = int(study.holders[place].address.rpartition(":")[2])
            made = Collector(study, lambda n=name: open_store(f"{n}.db"), settings)
            sends = ["--send", served.enter_context(serving(made, port)), *sends]  # in the other order
            status, _, body = get(port, "/api/result", authorization=f"Bearer {ADMIN_KEY.hex()}")
            assert (status, b"holds shares" in body) == (403, True)
        for place, token in enumerate(tokens[:3]):
            said = good(capsys, *device, "--token", token, "--out", f"r{place}", *sends)
            assert said.count("has stored it") == 2
        before = [path.read_bytes() for path in sorted((folder / "r0").iterdir())]
        assert good(capsys, *device, "--token", tokens[0], "--out", "r0", *sends).count("had stored it before") == 2
        assert [path.read_bytes() for path in sorted((folder / "r0").iterdir())] == before
        assert (folder / "r0").stat().st_mode & 0o077 == 0
    for name in NAMES:
        SQLiteLedger.create("l.db", name, ApproxDP(8.0, 1e-5), unit="user")
        keyed = ("--store", f"{name}.db", "--key", f"{name}.key")
        assert "3 reports" in good(capsys, "collect", "list", *keyed, "--out", f"{name}.list")
    good(capsys, *device, "--token", tokens[3], "--out", "r3")
    late = run(capsys, "collect", "add", "--store", "clinic.db", "r3/clinic.share")
    assert (late.code, "is closed" in late.err) == (2, True)
    for name, other in (NAMES, NAMES[::-1]):
        keyed = ("--store", f"{name}.db", "--key", f"{name}.key", "--other", f"{other}.list")
        said = good(capsys, "collect", "sum", *keyed, "--out", f"{name}.sum")
        assert ("charged no ledger" in said, "Each user spent" in said) == (True, False)
        first = (folder / f"{name}.sum").read_bytes()
        said = good(capsys, "collect", "sum", *keyed, "--out", f"{name}.sum", "--ledger", "l.db", "--dataset", name)
        assert ("Each user spent" in said, "charged no ledger" in said) == (True, False)
        assert len(SQLiteLedger("l.db", name).charges) == 1
        assert (folder / f"{name}.sum").read_bytes() == first
        assert "3 reports" in good(capsys, "collect", "verify", "--store", f"{name}.db")
    joined = good(
        capsys, "collect", "join", "invited.json", "university.sum", "clinic.sum", "--public", "pilot.csv", "--out", "m"
    )
    assert "no proof that answers are bounded" in joined
    blank = good(capsys, "collect", "join", "invited.json", "university.sum", "clinic.sum")
    assert "No intervals without --public" in blank
    assert sorted(path.name for path in (folder / "m").iterdir()) == ["model.json", "privacy.json"]
    assert "collude" in (folder / "m" / "privacy.json").read_text()


def test_refusals_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens_of(capsys, folder)
    hashes = (folder / "hashes.txt").read_text()
    (folder / "bad.txt").write_text("zz\n", encoding="utf-8")
    good(capsys, "study", "new", "open.toml", "--public", "pilot.csv", "--out", "one.json")
    store = ("--store", "clinic.db")
    report = ("report", "open.json", "--any-hash", *ANSWERS, "--out", "r")
    single = ("report", "one.json", "--any-hash", *ANSWERS, "--out", "r")
    identity = ("collect", "identity", "--name", "clinic", "--key", "clinic.key", "--out", "other.json")
    one, other = (each.address for each in Study.load("open.json").holders)
    misdirected = [
        [part for address in given for part in ("--send", address)]
        for given in ((one,), (one, one), (other, other), (one, "https://x.example"), (one, other, other))
    ]
    invite = ("collect", "invite", "invited.json", *store, "--count", 1, "--out", "o", "--address", "https://x.example")
    for command, said in (
        (
            ("study", "new", "open.toml", "--out", "x.json", "--two-collectors", "clinic.json", "clinic.json"),
            "of their own",
        ),
        (("collect", "serve", "open.json", "--store", "x.db", "--admin-key", "a"), "say which one this is"),
        (("collect", "serve", "one.json", "--store", "x.db", "--admin-key", "a", "--key", "clinic.key"), "leave --key"),
        (("collect", "fit", *store), "join the sums"),
        (("collect", "list", *store, "--key", "university.key", "--out", "l"), "not the key"),
        (("collect", "list", *store, "--key", "clinic.key", "--out", "l"), "0 of 3 reports"),
        (
            ("collect", "admit", "invited.json", *store, "--key", "clinic.key", "--hashes", "bad.txt"),
            "ask for the file",
        ),
        (("collect", "join", "one.json", "a", "b"), "has one collector"),
        (("collect", "join", "invited.json", "a", "b"), "it is not there"),
        *(((*report, *sends), "each once") for sends in misdirected),
        ((*single, "--send", "http://study.example"), "use https://"),
        ((*single, "--send", "https://a.example", "--send", "https://a.example"), "give --send once"),
        ((*identity, "--address", "http://clinic.example"), "use https://"),
        ((*invite, "--key", "clinic.key"), "--hashes goes with"),
        ((*invite, "--key", "clinic.key", "--hashes", "more.txt"), "addresses in the study only"),
        ((*invite[:-1], one, "--key", "clinic.key", "--hashes", "hashes.txt"), "hashes.txt already exists"),
    ):
        outcome = run(capsys, *command)
        assert outcome.code == 2, command
        assert said in outcome.err, (command, outcome.err)
        assert outcome.err.count("\n") == 1
        assert not Path("r").exists()
    assert (folder / "hashes.txt").read_text() == hashes
    assert "Invitations: 0 of 4 used" in good(capsys, "collect", "status", *store)


def test_a_rehearsal_of_both(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("open", "invited"):
        before = sorted(folder.iterdir())
        said = good(capsys, "collect", "simulate", f"{name}.json", "--users", 30, "--seed", 1, "--public", "pilot.csv")
        assert "30 invented users" in said
        assert sorted(folder.iterdir()) == before


# ------------------------------------------------------------ kill -9


def killed(place: str, *arguments: str) -> None:
    """Run a command that is killed when it reaches this function of a module."""
    module, _, name = place.partition(":")
    code = (
        "import functools, importlib, os, signal, sys\n"
        f"found = importlib.import_module({module!r})\n"
        f"*inner, last = {name!r}.split('.')\n"
        "found = functools.reduce(getattr, inner, found)\n"
        "setattr(found, last, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))\n"
        "from dpregress.cli.main import main\n"
        f"main({[*arguments]!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["dpregress.collector.client:SecureSampler", "dpregress.cli.places:_sync"])
def test_a_killed_device_leaves_no_report(
    place: str, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither an empty file nor half of one, and the command works when it is run again."""
    monkeypatch.chdir(tmp_path)
    make_study(tmp_path, seed, enrolment="open").save("s.json")
    command = ("report", "s.json", "--any-hash", *ANSWERS, "--out", "r.bin")
    killed(place, *command)
    assert not Path("r.bin").exists()
    assert "Wrote r.bin" in good(capsys, *command)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_a_killed_backup_leaves_no_store(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    study = make_study(tmp_path, seed)
    with open_store("s.db", study) as store:
        store.add([arrival(each) for each in reports(study, seed, 4)])
    command = ("collect", "backup", "--store", "s.db", "--out", "b.db")
    killed("dpregress.collector.store.reports:Store.verify", *command)
    assert not Path("b.db").exists()
    assert "Copied 4" in good(capsys, *command)
    assert not list(tmp_path.glob(".*"))
    with open_store("b.db") as copy:
        assert copy.verify() == 4


def test_a_full_disk_leaves_no_key(tmp_path: Path) -> None:
    """An empty key would be refused ever after as damaged."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_secret(tmp_path / "signing.key", bytes(32))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())
    write_secret(tmp_path / "signing.key", bytes(range(32)))
    assert read_secret(tmp_path / "signing.key") == bytes(range(32))
    with pytest.raises(FileExistsError):
        write_secret(tmp_path / "signing.key", bytes(32))
    assert len(list(tmp_path.iterdir())) == 1
