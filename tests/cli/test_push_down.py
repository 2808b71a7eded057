"""``dpregress fit --engine push-down`` and ``--print-sql``."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dpregress import GDP, SQLiteLedger
from dpregress.cli.statements import DIALECTS
from dpregress.rows import push_down_sql
from tests.support import run

SCHEMA = "[a]\nlower = 0\nupper = 1\n\n[y]\nlower = 0\nupper = 1\n"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT random() AS a, random() AS y FROM range(6000)")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    SQLiteLedger.create(tmp_path / "budget.db", "rows", GDP(1.0))
    return [
        "fit", "--sql", f"duckdb:///{tmp_path / 'rows.duckdb'}", "--query", "SELECT a, y FROM t", "--target", "y",
        "--schema", str(tmp_path / "schema.toml"), "--epsilon", "1", "--delta", "1e-6", "--recipe", "one-shot",
        "--ledger", str(tmp_path / "budget.db"), "--dataset", "rows", "--out", str(tmp_path / "out"),
    ]  # fmt: skip


def charges(folder: Path) -> int:
    return len(SQLiteLedger(folder / "budget.db", "rows").charges)


def test_a_fit_in_the_database(capsys: pytest.CaptureFixture[str], command: list[str], tmp_path: Path) -> None:
    done = run(capsys, *command, "--engine", "push-down")
    assert done.code == 0, done.err
    assert (tmp_path / "out" / "model.json").is_file()
    assert charges(tmp_path) == 1


def test_dialects_are_those_of_the_statements() -> None:
    assert DIALECTS == push_down_sql.DIALECTS


@pytest.mark.parametrize("dialect", ["duckdb", "snowflake"])
def test_a_statement_is_printed_and_not_run(
    dialect: str, capsys: pytest.CaptureFixture[str], command: list[str], tmp_path: Path
) -> None:
    """It can be parsed, reads the query, and says what has to be done; nothing is charged or written."""
    sqlglot = pytest.importorskip("sqlglot")
    done = run(capsys, *command, "--print-sql", dialect)
    assert done.code == 0, done.err
    statement = sqlglot.parse_one(done.out, read=dialect)
    assert [table.name for table in statement.find_all(sqlglot.exp.Table)] == ["t"]
    assert "Before this runs, charge" in done.out
    assert "NO NOISE" in done.out
    assert not (tmp_path / "out").exists()
    assert charges(tmp_path) == 0
    if dialect == "duckdb":
        with duckdb.connect(str(tmp_path / "rows.duckdb"), read_only=True) as connection:
            (sums,) = connection.execute(done.out).fetchall()
        assert sums[-2:] == (6000, 6000)


@pytest.mark.parametrize("public", [False, True])
def test_the_statement_of_a_survival_model_is_printed(
    public: bool, capsys: pytest.CaptureFixture[str], command: list[str], tmp_path: Path
) -> None:
    """Of totals by piece where public rows give the coordinates, and of a second moment otherwise."""
    command[command.index("--query") + 1] = "SELECT a, y, y * a AS time FROM t"
    place = command.index("--recipe")
    command[place : place + 2] = ["--family", "survival", "--time", "time", "--cuts", "0.2,0.5,1"]
    if public:
        (tmp_path / "public.csv").write_text("a\n" + "\n".join(str(i / 50) for i in range(50)))
        command += ["--public", str(tmp_path / "public.csv")]
    done = run(capsys, *command, "--engine", "push-down", "--print-sql", "duckdb")
    assert done.code == 0, done.err
    assert ("of a row: events by piece, then times by piece" in done.out) == public
    assert "NO NOISE" in done.out
    assert charges(tmp_path) == 0
    with duckdb.connect(str(tmp_path / "rows.duckdb"), read_only=True) as connection:
        (sums,) = connection.execute(done.out).fetchall()
    assert sums[-1] == 6000


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_statement_with_levels_is_printed(
    dialect: str, capsys: pytest.CaptureFixture[str], command: list[str], tmp_path: Path
) -> None:
    """In each dialect; a level that holds a quote is written by its codes."""
    query = "SELECT a, y, CASE WHEN a > 0.5 THEN 'it''s' ELSE 'no' END AS plan FROM t"
    (tmp_path / "schema.toml").write_text(f'{SCHEMA}\n[plan]\nlevels = ["no", "it\'s"]\n')
    command[command.index("--query") + 1] = query
    done = run(capsys, *command, "--engine", "push-down", "--print-sql", dialect)
    assert done.code == 0, done.err
    assert "NO NOISE" in done.out
    assert "it's" not in done.out.replace(query, "")
    assert charges(tmp_path) == 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_statement_with_a_unit_is_printed(
    dialect: str, capsys: pytest.CaptureFixture[str], command: list[str], tmp_path: Path
) -> None:
    """It numbers the rows of a unit, of 6,000 with three each; what it says runs."""
    sqlglot = pytest.importorskip("sqlglot")
    query = "SELECT a, y, CAST(rowid // 3 AS VARCHAR) AS id FROM t"
    command[command.index("--query") + 1] = query
    SQLiteLedger.create(tmp_path / "budget.db", "people", GDP(1.0), unit="id")
    command[command.index("rows")] = "people"
    done = run(
        capsys, *command, "--unit", "id", "--max-rows-per-unit", "2", "--engine", "push-down", "--print-sql", dialect
    )
    assert done.code == 0, done.err
    (statement,) = sqlglot.parse(done.out.replace(query, "SELECT * FROM t"), read=dialect)
    assert len(list(statement.find_all(sqlglot.exp.Window))) == 1
    assert not SQLiteLedger(tmp_path / "budget.db", "people").charges
    if dialect == "duckdb":
        with duckdb.connect(str(tmp_path / "rows.duckdb"), read_only=True) as connection:
            (sums,) = connection.execute(done.out).fetchall()
        assert sums[-2:] == (4000, 6000)


def test_a_fit_with_a_unit_in_the_database(
    capsys: pytest.CaptureFixture[str], command: list[str], tmp_path: Path
) -> None:
    SQLiteLedger.create(tmp_path / "budget.db", "people", GDP(1.0), unit="id")
    command[command.index("rows")] = "people"
    command[command.index("--query") + 1] = "SELECT a, y, rowid // 3 AS id FROM t"
    refused = run(capsys, *command, "--unit", "id", "--max-rows-per-unit", "2")
    assert refused.code != 0
    assert "with a unit, push-down will do as well" in refused.err
    assert not SQLiteLedger(tmp_path / "budget.db", "people").charges
    done = run(capsys, *command, "--unit", "id", "--max-rows-per-unit", "2", "--engine", "push-down")
    assert done.code == 0, done.err
    assert (tmp_path / "out" / "model.json").is_file()
    assert len(SQLiteLedger(tmp_path / "budget.db", "people").charges) == 1
