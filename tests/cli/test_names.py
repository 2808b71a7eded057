"""Names from files that others wrote: no command to a terminal, no formula to a spreadsheet; and options that clash."""

from __future__ import annotations

import csv
import io
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregress import ApproxDP, DPRidge, Numeric, Schema, SQLiteLedger
from dpregress.cli.output import csv_of, no_formula
from dpregress.display import plain
from tests.support import run, write_csv

ESCAPE, REVERSE = "\x1b[2J", "\u202e"
BUDGET = ("--epsilon", 1, "--delta", 1e-6, "--overwrite", "--out", "o")
FORMULAS = ("=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "=", "-")


def obeyed(text: str) -> bool:
    """Whether a terminal would take some of it for a command."""
    return any(not letter.isprintable() and letter != "\n" for letter in text)


def test_no_name_reaches_the_terminal_raw(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"a{ESCAPE}{REVERSE}\r"
    for file in ("private", "public"):
        content = (tables / f"{file}.csv").read_bytes().replace(b"age,", f'"{name[:-1]}",'.encode(), 1)
        (tables / f"{file}.csv").write_bytes(content)
    SQLiteLedger.create("b.db", "people", ApproxDP(9.0, 1e-5)).reserve(ApproxDP(0.1, 1e-7))
    with closing(sqlite3.connect("b.db")) as connection, connection:  # names that are refused today, in a file of old
        connection.execute(
            "INSERT INTO dataset SELECT ?, budget, relation, ?, opened, NULL FROM dataset", (name[:3], ESCAPE)
        )
        connection.execute(
            "INSERT INTO charge (dataset, event, note, charged) SELECT ?, event, ?, charged FROM charge",
            (name[:3], f"n{ESCAPE}"),
        )
    commands = [
        ("fit", "private.csv", "--target", "cost", "--public", "public.csv", *BUDGET),
        ("fit", "private.csv", "--target", name, "--public", "public.csv", *BUDGET),
        ("fit", "private.csv", "--target", "cost", "--features", name[:-1], "--schema", "schema.toml", *BUDGET),
        ("fit", name, "--target", "cost", "--public", "public.csv", *BUDGET),
        ("fit", "private.csv", "--target", "cost", "--family", f"f{ESCAPE}", *BUDGET),
        ("check", "private.csv"),
        ("predict", "o", "private.csv", "--out", "p.csv"),
        ("public", "public.csv", "--out", "m.json"),
        ("schema", "init", "public.csv", "--out", "draft.toml"),
        ("schema", "check", "schema.toml", "--public", "public.csv"),
        ("ledger", "show", "b.db"),
        ("ledger", "show", "b.db", "--dataset", name),
        ("ledger", "new", "b.db", "--dataset", name[:3], "--epsilon", 1, "--delta", 1e-6),
        (f"no{ESCAPE}",),
    ]
    for arguments in commands:
        said = run(capsys, *arguments)
        assert not obeyed(said.out + said.err), (arguments, said)
        assert said.code in (0, 2), said


def test_a_summary_is_plain() -> None:
    schema = Schema({"x": Numeric(0.0, 1.0), "y": Numeric(0.0, 1.0)})
    table = pa.table({"x": np.linspace(0, 1, 500), "y": np.linspace(0, 1, 500)})
    with pytest.warns(UserWarning, match="seed"):
        model = DPRidge(ApproxDP(1.0, 1e-6), schema=schema, random_state=0).fit_table(table, "y", ["x"])
    object.__setattr__(model.coefficients_, "features", (f"x{ESCAPE}",))
    assert not obeyed(str(model.summary()))


@given(st.text())
def test_plain_text_is_obeyed_by_nothing(text: str) -> None:
    assert not obeyed(plain(text))
    assert "\n" not in plain(text)
    assert plain(plain(text)) == plain(text)
    if text.isprintable():
        assert plain(text) == text


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_formula_becomes_text(cell: str) -> None:
    table = pa.table({cell: pa.array([cell, None, "safe"], pa.large_string()), "n": [-1.5, 2.0, -3.0]})
    header, first, _, third = csv.reader(io.StringIO(csv_of(table), newline=""))
    assert (header[0], first[0]) == (f"'{cell}", f"'{cell}")
    assert third[0] == "safe"
    assert float(first[1]) == -1.5


@pytest.mark.parametrize("number", ["-1", "+1", "-1.5e-7", "-.5", "-3."])
def test_numbers_stay_as_they_are(number: str) -> None:
    assert no_formula(number) == number


def test_predictions_and_synthetic_rows_hold_no_formula(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "rows.csv").write_text("x,=y\n" + "".join(f"{i % 9},{('=no', '@yes')[i % 2]}\n" for i in range(500)))
    (tables / "s.toml").write_text('[x]\nlower = 0\nupper = 9\n["=y"]\nlevels = ["=no", "@yes"]\n')
    budget = ("--schema", "s.toml", "--epsilon", 1, "--delta", 1e-6)
    made = ("fit", "rows.csv", "--target", "=y", "--family", "binomial", "--classes", "=no,@yes", *budget, "--out", "o")
    assert run(capsys, *made).code == 0
    assert run(capsys, "predict", "o", "rows.csv", "--out", "p.csv").code == 0
    assert run(capsys, "marginals", "release", "rows.csv", *budget, "--out", "m.json").code == 0
    assert run(capsys, "marginals", "synth", "m.json", "--rows", 50, "--out", "s.csv").code == 0
    for path in (tables / "p.csv", tables / "s.csv"):
        with path.open(newline="") as file:
            for row in csv.reader(file):
                assert all(no_formula(cell) == cell for cell in row), row


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--exposure", "cost", "--features", "age", "--public", "public.csv"), "exposure 'cost' is the target"),
        (("--exposure", "age", "--features", "age,bmi", "--public", "public.csv"), "'age' is among the features"),
        (("--exposure", "cost", "--features", "age", "--schema", "schema.toml"), "exposure 'cost' is the target"),
    ],
)
def test_an_exposure_is_a_column_of_its_own(
    tables: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    said = run(capsys, "fit", "private.csv", "--target", "cost", "--family", "poisson", *arguments, *BUDGET)
    assert (said.code, said.err.count("\n"), words in said.err) == (2, 1, True)
    assert not (tables / "o").exists()


@pytest.mark.usefixtures("tables")
def test_more_synthetic_rows_than_memory_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    made = ("marginals", "release", "private.csv", "--schema", "schema.toml", "--epsilon", 1, "--delta", 1e-6)
    assert run(capsys, *made, "--out", "m.json").code == 0
    for rows in (99_999_999_999, 10**30):
        said = run(capsys, "marginals", "synth", "m.json", "--rows", rows, "--out", "s.csv")
        assert (said.code, said.err.count("\n"), "sample fewer" in said.err) == (2, 1, True)


@pytest.mark.parametrize(
    "classes", ["0,5e-324", "0,1e308", "-1e308,1e308", "0,inf", "nan,1", "1,0", "0,1,2", "0", "x,y"]
)
def test_values_of_classes_that_cannot_be_computed_with(classes: str) -> None:
    from dpregress.cli.parties import read_ends
    from dpregress.errors import InvalidInput

    with pytest.raises(InvalidInput) as refusal:
        read_ends("binomial", classes)
    assert "\n" not in str(refusal.value)


def test_classes_of_a_joint_release_go_with_binomial() -> None:
    from dpregress.cli.parties import read_ends
    from dpregress.errors import InvalidInput

    assert read_ends("gaussian", None) is None
    assert read_ends("binomial", None) == (0.0, 1.0)
    assert read_ends("binomial", "1,3") == (1.0, 3.0)
    with pytest.raises(InvalidInput, match="--family binomial"):
        read_ends("gaussian", "0,1")


def test_a_response_of_huge_numbers(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Legal bounds near the largest: sizes are squared and squared again; nothing overflows after the charge."""
    (tables / "h.toml").write_text(
        "[age]\nlower = 0\nupper = 9e89\n[bmi]\nlower = 0\nupper = 2e-90\n[cost]\nlower = 0\nupper = 9e89\n"
    )
    rng = np.random.default_rng(0)
    columns = [rng.uniform(0, most, 2000) for most in (9e89, 2e-90, 9e89)]
    write_csv(tables / "huge.csv", ("age", "bmi", "cost"), *columns)
    said = run(capsys, "fit", "huge.csv", "--target", "cost", "--schema", "h.toml", *BUDGET)
    assert (said.code, said.err) == (0, "")
    said = run(capsys, "predict", "o", "huge.csv", "--out", "p.csv")
    assert (said.code, said.err) == (0, "")
