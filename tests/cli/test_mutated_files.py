"""Mutated files of every kind through every command that reads one: used, or refused in one line.

Five hundred mutations by a fixed seed: bytes flipped, cut out, doubled and cut off, and words put in that no file of
the kind holds. ``tests/laws/test_wild_files.py`` sets every place of every document to wild values; here the text
itself is broken.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress import SQLiteLedger
from dpregress.collector import Study
from dpregress.errors import DPRegressError
from tests.support import run

GOLDEN = Path(__file__).parents[1] / "golden" / "files"
TABLE = "id,age,plan,y\n" + "".join(f"{i},{20 + i % 60},{'abc'[i % 3]},{i % 7}\n" for i in range(120))
SCHEMA = '[age]\nlower = 0\nupper = 100\nunit = "years"\n[plan]\nlevels = ["a", "b", "c"]\n[y]\nlower = 0\nupper = 7\n'
TERMS = 'study = "s"\nn = 50\nidentifiers = ["id"]\n' + "".join(
    f"[parties.{party}]\nepsilon = 1.0\ndelta = 1e-6\ncolumns.{party} = {{ lower = 0, upper = 9 }}\n" for party in "ab"
)
BUDGET = ("--epsilon", 1, "--delta", 1e-6, "--out", "new")
FIT = ("fit", "rows.csv", "--target", "y", "--features", "age,plan", *BUDGET)
LEDGER = ("--ledger", "l.db", "--dataset", "d")
MARGINALS = ("marginals", "release", "rows.csv", "--schema", "s.toml", "--bins", 4, *BUDGET)
PARTY = ("--party", "a", "--keys", "keys-a", "--key", "alignment.key", "--exchange", "exchange", "--mock")
OLD = "vertical/"
#: The file that is mutated, and the command that reads it.
COMMANDS: dict[str, tuple[str, tuple[object, ...]]] = {
    "check": ("rows.csv", ("check", "rows.csv", "--target", "y", "--schema", "s.toml")),
    "check, schema": ("s.toml", ("check", "rows.csv", "--schema", "s.toml")),
    "schema init, rows": ("rows.csv", ("schema", "init", "rows.csv", "--out", "new")),
    "schema init, dictionary": ("words.csv", ("schema", "init", "words.csv", "--out", "new")),
    "schema init, domain": ("domain.json", ("schema", "init", "domain.json", "--out", "new")),
    "schema check": ("s.toml", ("schema", "check", "s.toml")),
    "schema check, moments": ("moments.json", ("schema", "check", "s.toml", "--public", "moments.json")),
    "public": ("rows.csv", ("public", "rows.csv", "--schema", "s.toml", "--out", "new")),
    "ledger new": ("l.db", ("ledger", "new", "l.db", "--dataset", "e", "--epsilon", 1, "--delta", 1e-6)),
    "ledger show": ("l.db", ("ledger", "show", "l.db", "--if-spent", 1)),
    "ledger show, JSON": ("l.db", ("ledger", "show", "l.db", "--json")),
    "fit, ledger": ("l.db", (*FIT, "--schema", "s.toml", *LEDGER)),
    "fit": ("rows.csv", (*FIT, "--schema", "s.toml")),
    "fit, formula": ("rows.csv", ("fit", "rows.csv", "--formula", "y ~ age + C(plan)", *BUDGET, "--schema", "s.toml")),
    "fit, schema": ("s.toml", (*FIT, "--schema", "s.toml", "--dry-run")),
    "fit, public": ("public.csv", (*FIT, "--schema", "s.toml", "--public", "public.csv", "--dry-run")),
    "fit, moments": ("moments.json", (*FIT, "--schema", "s.toml", "--public", "moments.json", "--dry-run")),
    "predict": ("model.json", ("predict", "model.json", "rows.csv", "--out", "new")),
    "predict, rows": ("rows.csv", ("predict", "model.json", "rows.csv", "--out", "new")),
    "marginals release": ("rows.csv", MARGINALS),
    "marginals release, schema": ("s.toml", (*MARGINALS, "--dry-run")),
    "marginals fit": ("m.json", ("marginals", "fit", "m.json", "--target", "y")),
    "release, like": ("space.json", ("release", "rows.csv", "--like", "space.json", "--dry-run", *BUDGET)),
    "combine": ("site-a.json", ("combine", "site-a.json", "site-b.json", "--out", "new")),
    "moments": ("site-a.json", ("moments", "site-a.json")),
    "regress": ("site-a.json", ("regress", "site-a.json", "--target", "y", "--out", "new")),
    "diagnose": ("model.json", ("diagnose", "model.json", "rows.csv", "--dry-run", *BUDGET)),
    "marginals synth": ("m.json", ("marginals", "synth", "m.json", "--rows", 5, "--out", "new")),
    "marginals report": ("m.json", ("marginals", "report", "m.json", "--out", "new")),
    "vertical plan": ("terms.toml", ("vertical", "plan", "terms.toml", "--key", "new.key", "--out", "new")),
    "vertical sign": ("shared/plan.json", ("vertical", "sign", "shared/plan.json", "--party", "a", "--keys", "keys-a")),
    "vertical align": ("shared/a.signature.json", ("vertical", "align", "shared/plan.json", *PARTY)),
    "vertical align, key": ("alignment.key", ("vertical", "align", "shared/plan.json", *PARTY)),
    "vertical release": (
        "exchange/b.pseudonyms.json",
        ("vertical", "release", "shared/plan.json", *PARTY, "--out", "new"),
    ),
    "vertical inspect": (
        f"{OLD}a.release.json",
        ("vertical", "inspect", f"{OLD}a.release.json", "--plan", f"{OLD}plan.json"),
    ),
    "vertical inspect, plan": (
        f"{OLD}plan.json",
        ("vertical", "inspect", f"{OLD}a.release.json", "--plan", f"{OLD}plan.json"),
    ),
    "vertical join": (
        f"{OLD}b.release.json",
        ("vertical", "join", f"{OLD}plan.json", f"{OLD}a.release.json", f"{OLD}b.release.json", "--out", "new"),
    ),
    "vertical fit": (f"{OLD}joint.json", ("vertical", "fit", f"{OLD}joint.json", "--target", "y", "--out", "new")),
}
#: Mutations of each, so that there are 500 and more in all.
FEW, MANY = 2, 16
WORDS = (
    b"\0", b"\xff", b"\x1b[2J", b"1e999", b"-1", b"NaN", b"null", b"true", b"{}", b"[", b"]", b"}", b'"', b"\\", b"\n",
    b"\r", b",", b"=", b"#", b"9" * 400, b"\\ud800", "\u00e9\u202e".encode(), b"'; DROP TABLE charge; --",
    b"\xef\xbb\xbf", b"[" * 2000,
)  # fmt: skip


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The content after one to three changes."""
    for _ in range(int(rng.integers(1, 4))):
        span = min(len(content), int(rng.choice([60, 1 << 20])))  # often at the beginning, where names and formats are
        start, stop = sorted(int(place) for place in rng.integers(0, span + 1, size=2))
        stop = min(stop, start + int(rng.choice([1, 8, 64, 1 << 20])))
        word = WORDS[int(rng.integers(len(WORDS)))]
        way = int(rng.integers(6))
        if way == 0 and start < len(content):
            content = content[:start] + bytes([content[start] ^ 1 << int(rng.integers(8))]) + content[start + 1 :]
        elif way == 1:
            content = content[:start] + content[stop:]
        elif way == 2:
            content = content[:stop] + content[start:stop] + content[stop:]
        elif way == 3:
            content = content[:start]
        else:  # a word in place of something, or between
            content = content[:start] + word + content[start if way == 4 else stop :]
    return content


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a valid file of every kind, made the current one."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "rows.csv": TABLE, "public.csv": TABLE[: TABLE.index("\n90,")] + "\n", "s.toml": SCHEMA, "terms.toml": TERMS,
        "words.csv": "name,type,lower,upper,levels\nage,numeric,0,100,\nplan,categorical,,,a|b|c\n",
        "domain.json": '{"a": 3, "b": 2}',
    }.items():  # fmt: skip
        Path(name).write_text(text)
    shutil.copytree(GOLDEN / "vertical", "vertical")
    for arguments in (
        ("public", "public.csv", "--features", "age,plan", "--schema", "s.toml", "--out", "moments.json"),
        ("ledger", "new", "l.db", "--dataset", "d", "--epsilon", 9, "--delta", 1e-5),
        (*FIT[:-1], "model", "--schema", "s.toml", *LEDGER),
        (*MARGINALS[:-1], "m.json"),
        ("space", "--schema", "s.toml", "--rows", 120, *BUDGET[:-1], "space.json"),
        *(("release", "rows.csv", "--like", "space.json", "--site", s, *BUDGET[:-1], f"site-{s}.json") for s in "ab"),
        ("vertical", "plan", "terms.toml", "--key", "alignment.key", "--out", "shared"),
        *(("vertical", "sign", "shared/plan.json", "--party", p, "--keys", f"keys-{p}") for p in "ab"),
        *(("vertical", "align", "shared/plan.json", "--party", p, "--keys", f"keys-{p}", *PARTY[4:]) for p in "ab"),
    ):
        assert run(capsys, *arguments).code == 0, arguments
    shutil.move("model/model.json", "model.json")
    shutil.rmtree("model")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """All files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_mutations(kind: str, times: int, seed: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal is one line, leaves all files as they were, and prints nothing else; a success says no error."""
    name, arguments = COMMANDS[kind]
    before = contents(folder)
    refusals = 0
    assert run(capsys, *arguments).code == 0, "the command works before the file is broken"
    restore(folder, before)
    for turn in range(times):
        rng = np.random.default_rng([seed, turn, *kind.encode()])
        broken = mutated(before[name], rng)
        (folder / name).write_bytes(broken)
        outcome = run(capsys, *arguments)
        said = f"{kind}, mutation {turn}: {outcome}"
        assert outcome.code in (0, 2), said
        assert (outcome.err == "") == (outcome.code == 0), said
        if outcome.code == 2:
            refusals += 1
            assert outcome.err.startswith("error: "), said
            assert outcome.err.count("\n") == 1, said
            assert outcome.err.rstrip("\n").isprintable(), said
            assert outcome.out == "", said
            assert {**contents(folder), name: b""} == {**before, name: b""}, said
            assert (folder / name).read_bytes() == broken, said
        assert not [path for path in folder.rglob(".*") if path.name.endswith((".dpregress", "-journal"))], said
        restore(folder, before)
    assert times < MANY or refusals, f"{kind}: no mutation was refused"


def restore(folder: Path, before: dict[str, bytes]) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and str(path.relative_to(folder)) not in before:
            path.unlink()
        elif path.is_dir():
            with suppress(OSError):
                path.rmdir()
    for name, content in before.items():
        if (folder / name).read_bytes() != content:
            (folder / name).write_bytes(content)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", COMMANDS)
def test_five_hundred_mutations(kind: str, seed: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Deterministic but for the noise, on which no outcome depends."""
    check_mutations(kind, MANY, seed, folder, capsys)


@pytest.mark.parametrize(
    "kind", ["fit, ledger", "ledger show", "fit, schema", "predict", "release, like", "combine", "vertical join"]
)
def test_a_few_mutations(kind: str, seed: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_mutations(kind, FEW, seed, folder, capsys)


def test_there_are_five_hundred() -> None:
    assert MANY * len(COMMANDS) >= 500


@pytest.mark.parametrize("name", ["study-gaussian", "study-joint", "study-unit-vector"])
def test_mutated_studies(name: str, seed: int, tmp_path: Path) -> None:
    """Studies are read by devices: each is used, or refused in one line."""
    content = (GOLDEN / f"{name}.json").read_bytes()
    path, refusals = tmp_path / "study.json", 0
    for turn in range(60):
        path.write_bytes(mutated(content, np.random.default_rng([seed, turn, *name.encode()])))
        said = refusal_of(lambda: Study.load(path))
        refusals += said != ""
        assert "\n" not in said
    assert refusals > 30


def refusal_of(read: Callable[[], Any]) -> str:
    """What the library's own error says; nothing if there is none."""
    try:
        read()
    except DPRegressError as refusal:
        return str(refusal)
    return ""


def test_mutated_ledgers(folder: Path, seed: int) -> None:
    """A broken file is read as a ledger, or refused in one line."""
    content = (folder / "l.db").read_bytes()
    for turn in range(60):
        (folder / "l.db").write_bytes(mutated(content, np.random.default_rng([seed, turn])))
        assert "\n" not in refusal_of(lambda: SQLiteLedger("l.db", "d").charges)
