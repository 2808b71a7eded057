"""A query that selects rows publishes how many it selects: it is said, by the words of the query alone."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from dpregress import ApproxDP, DPRidge, Numeric, Schema, SQLQuery
from dpregress.errors import SelectedRowsWarning
from tests.support import run

SCHEMA = Schema({"age": Numeric(0.0, 100.0), "y": Numeric(0.0, 1.0)})
KEEPING = (
    "SELECT age, y FROM t",
    "SELECT age, CASE WHEN age >= 30 THEN y END AS y FROM t;",
    "SELECT 'where' AS age, \"where\" AS y FROM t -- where nothing is selected\n",
    "SELECT age AS nowhere, y AS joint FROM t /* WHERE age > 3 */",
)
SELECTING = {
    "SELECT age, y FROM t WHERE age >= 30": "WHERE",
    "select age, y from t\nwhere age >= 30": "WHERE",
    "SELECT age, y FROM (SELECT * FROM t WHERE 'a' = 'b')": "WHERE",
    "SELECT 'it''s' AS a, y FROM t WHERE age > 1": "WHERE",
    "SELECT DISTINCT age, y FROM t": "DISTINCT",
    "SELECT age, avg(y) AS y FROM t GROUP  BY age": "GROUP BY",
    "SELECT age, y FROM t LEFT JOIN s USING (id)": "JOIN",
    "SELECT age, y FROM t QUALIFY row_number() OVER (PARTITION BY id) = 1": "QUALIFY",
    "SELECT age, y FROM t EXCEPT SELECT 1, 2": "EXCEPT",
}


@pytest.mark.parametrize("query", KEEPING)
def test_a_query_that_keeps_every_row(query: str) -> None:
    assert SQLQuery("duckdb://", query).selects is None


@pytest.mark.parametrize("query", SELECTING)
def test_a_query_that_selects(query: str) -> None:
    assert SQLQuery("duckdb://", query).selects == SELECTING[query]


def query(condition: str) -> SQLQuery:
    return SQLQuery("duckdb://", f"SELECT i % 90 AS age, 0.5 AS y FROM range(3000) t(i) {condition}")


def test_a_fit_warns() -> None:
    with pytest.warns(SelectedRowsWarning, match=r"selects rows \(WHERE\) and their exact number is published"):
        DPRidge(ApproxDP(1.0, 1e-6), schema=SCHEMA).fit_table(query("WHERE i % 90 >= 30"), "y", ["age"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPRidge(ApproxDP(1.0, 1e-6), schema=SCHEMA).fit_table(query(""), "y", ["age"])


def test_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the way that it offers keeps n: nobody learns how many rows count."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text("[age]\nlower = 0\nupper = 100\n[y]\nlower = 0\nupper = 1\n")
    sql = "SELECT i % 90 AS age, {} AS y FROM range(3000) t(i) {}"
    for number, (select, caution, n) in enumerate(
        [
            (sql.format("0.5", "WHERE i % 90 >= 30"), True, "1,980 private records"),
            (sql.format("CASE WHEN i % 90 >= 30 THEN 0.5 END", ""), False, "3,000 private records"),
        ]
    ):
        said = run(
            capsys, "fit", "--sql", "duckdb://", "--query", select, "--target", "y", "--schema", "s.toml",
            "--epsilon", 1, "--delta", 1e-6, "--out", number,
        )  # fmt: skip
        assert (said.code, said.err) == (0, "")
        assert ("Caution: the query selects rows (WHERE)" in said.out) == caution
        assert n in said.out
