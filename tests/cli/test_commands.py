"""``dpregress public``, ``check``, ``ledger`` and the help texts."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import dpregress
from dpregress.accounting import GDP, SQLiteLedger
from dpregress.cli.main import _IN_FLAGS, cli
from tests.support import run


def _commands(group: click.Group, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        found.append((*prefix, name))
        if isinstance(command, click.Group):
            found.extend(_commands(command, (*prefix, name)))
    return found


@pytest.mark.parametrize("command", [(), *_commands(cli)], ids=" ".join)
def test_every_help_teaches_by_example(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    shown = run(capsys, *command, "--help")
    assert shown.code == 0
    assert "dpregress " in shown.out.split("Options:")[0].split("\n", 1)[1]


def test_version_and_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert "0.1.0" in run(capsys, "--version").out
    refused = run(capsys, "fti")
    assert refused.code == 2
    assert refused.err.startswith("error: No such command 'fti'")


def test_check_counts_what_would_be_mapped(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "dirty.csv").write_text("age,bmi,cost\n30,27,1\nold,,2\n-5,1e999,3\n1,2\n")
    shown = run(capsys, "check", "dirty.csv", "--schema", "schema.toml")
    assert shown.code == 0, shown.err
    assert "DO NOT PUBLISH" in shown.out
    rows = {line.split()[0]: line.split()[2:7] for line in shown.out.splitlines() if " number " in line}
    # missing, not a number, not finite, undeclared, out of bounds; the short line is a row of missing cells
    assert rows["age"] == ["1", "1", "0", "0", "1"]
    assert rows["bmi"] == ["2", "0", "1", "0", "0"]
    assert "6 cells would be replaced" in shown.out
    assert "Beyond the declared bounds: 1 cell." in shown.out
    assert "widen them from the data dictionary, never from these private rows" in shown.out
    assert "unchanged" not in shown.out


def test_check_of_responses_beyond_their_bounds(
    tables: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are no missing ones, whose rows are ignored."""
    monkeypatch.setenv("COLUMNS", "200")
    (tables / "cost.toml").write_text("[age]\nlower = 0\nupper = 110\n[cost]\nlower = 0\nupper = 10\n")
    command = ("check", "costs.csv", "--schema", "cost.toml", "--features", "age", "--target", "cost")
    for cells, said in (("30,1\n40,99", "beyond"), ("30,1\n40,", "ignored"), ("30,99\n40,", "both")):
        (tables / "costs.csv").write_text(f"age,cost\n{cells}\n")
        (row,) = [line for line in run(capsys, *command).out.splitlines() if line.split()[:1] == ["cost"]]
        assert ("row is ignored" in row) == (said != "beyond")
        assert ("residual is clipped" in row) == (said != "ignored")


def test_check_of_a_clean_table(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "can be used unchanged" in run(capsys, "check", tables / "private.csv").out


def test_public_refuses_text_and_existing_files(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "text.csv").write_text("age,sex\n30,f\n40,m\n")
    assert "declare its levels" in run(capsys, "public", "text.csv", "-o", "m.json").err
    assert not (tables / "m.json").exists()
    assert run(capsys, "public", "text.csv", "--features", "age", "-o", "m.json").code == 0
    assert "--overwrite" in run(capsys, "public", "public.csv", "-o", "m.json").err


def test_check_judges_a_response(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "sick.csv").write_text("age,sick,cost\n30,well,-1\n40,ill,2\n50,dead,0\n60,,3\n")
    shown = run(capsys, "check", "sick.csv", "--target", "sick", "--family", "binomial", "--classes", "well, ill")
    assert "NOT PRIVATE" in shown.out
    assert "2 cells would be replaced" in shown.out
    assert "a row without a usable response is ignored" in shown.out
    shown = run(capsys, "check", "sick.csv", "--features", "age", "--target", "cost", "--family", "gamma")
    assert "2 responses cannot come from the family gamma" in shown.out
    (tables / "levels.toml").write_text('[sick]\nlevels = ["well", "ill"]\n')
    for arguments, words in (
        (("--classes", "a,b"), "name its column with --target"),
        (("--target", "height"), "no column 'height'"),
        (("--target", "cost", "--classes", "a,b"), "--classes goes with --family binomial"),
        (("--target", "sick", "--family", "poisson", "--schema", "levels.toml"), "'sick' is categorical"),
    ):
        refused = run(capsys, "check", "sick.csv", *arguments)
        assert refused.code == 2
        assert words in refused.err


def test_public_says_how_many_rows_had_gaps(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "gaps.csv").write_text("age,bmi\n30,20\n40,\n50,30\n")
    assert "1 public row with missing cells was left out" in run(capsys, "public", "gaps.csv", "-o", "m.json").out


def test_ledger_show_refuses_other_files(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("none.db", "private.csv"):
        refused = run(capsys, "ledger", "show", tables / name)
        assert refused.code == 2
        assert refused.err.count("\n") == 1


def test_ledger_show_names_seeded_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = SQLiteLedger.create(tmp_path / "budget.db", "claims", GDP(1.0))
    ledger.reserve(GDP(0.1), note="first")
    assert "SEEDED" not in run(capsys, "ledger", "show", tmp_path / "budget.db").out
    ledger.reserve(GDP(0.1), note="second", seeded=True)
    shown = run(capsys, "ledger", "show", tmp_path / "budget.db").out
    assert shown.count("SEEDED") == 1
    assert "secure" in shown


@pytest.mark.parametrize("name", ["", "  ", "a\nb"])
def test_an_unset_variable_makes_no_ledger(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = ("ledger", "new", tmp_path / "budget.db", "--epsilon", 1, "--delta", 1e-6)
    for named in (("--dataset", name), ("--dataset", "claims", "--unit", name)):
        refused = run(capsys, *new, *named)
        assert refused.code == 2
        assert refused.err.startswith("error: ")
        assert refused.err.count("\n") == 1
        assert not (tmp_path / "budget.db").exists()


def test_every_phrase_that_flags_replace_is_said_by_the_library() -> None:
    """A message that is reworded would else reach users of the command line in the words of Python."""
    source = "".join(
        path.read_text() for path in Path(dpregress.__file__).parent.rglob("*.py") if "cli" not in path.parts
    )
    said = re.sub(r'"\s*f?"', "", source)
    assert [phrase for phrase in _IN_FLAGS if phrase not in said] == []
