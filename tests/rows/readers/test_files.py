"""Tables in files: what is public about a file may be refused, what is in its cells may not."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpregress import GDP, DPRidge, MarginalsRegression, Numeric, Schema, SQLQuery
from dpregress.cli.main import cli
from dpregress.coordinates import Matrix
from dpregress.errors import InvalidInput
from dpregress.rows import Encoder
from dpregress.rows.design.encoder import to_codes, to_numbers
from dpregress.rows.readers import csv as csv_reader
from dpregress.rows.readers.csv import MISSING
from dpregress.rows.readers.files import is_table, names_of, read, read_files, to_table
from tests.rows.leaks import everything_said
from tests.rows.properties import untimed

nan = float("nan")


def numbers(table: pa.Table) -> Matrix:
    return np.column_stack([to_numbers(table[name]) for name in table.schema.names])


def csv_file(folder: Path, content: bytes | str, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(path: Path, *, names_too: bool = False) -> str:
    """The text of the one-line refusal to read a file."""
    with pytest.raises(InvalidInput) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    if names_too:
        with pytest.raises(InvalidInput):
            names_of(path)
    return str(caught.value)


# ------------------------------------------------------------------ CSV


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,2\n3,\n",
        "a,b\n1,2\n3,",
        "a,b\r\n1,2\r\n3,\r\n",
        "a;b\n1;2\n3;\n",
        "a\tb\n1\t2\n3\t\n",
        b"\xef\xbb\xbfa,b\n1,2\n3,\n",
        '"a","b"\n"1","2"\n"3",""\n',
    ],
    ids=["commas", "no last line end", "Windows", "semicolons", "tabs", "byte order mark", "quotes"],
)
def test_dialects(tmp_path: Path, content: bytes | str) -> None:
    path = csv_file(tmp_path, content)
    assert names_of(path) == ["a", "b"]
    np.testing.assert_array_equal(numbers(read(path)), [[1, 2], [3, nan]])


@pytest.mark.parametrize("cell", [*MISSING, "n.a.", "x", "1 000", "\u00e9", '"a,b"', '"say ""hi"""'])
def test_cells_that_are_no_numbers_are_missing(tmp_path: Path, cell: str) -> None:
    path = csv_file(tmp_path, f"a,b\n{cell},2\n3,4\n")
    np.testing.assert_array_equal(numbers(read(path)), [[nan, 2], [3, 4]])


def test_cells_keep_their_text_until_a_schema_reads_them(tmp_path: Path) -> None:
    table = read(csv_file(tmp_path, "sex,y\nm,1\n01,2\nNA,3\n"))
    np.testing.assert_array_equal(to_codes(table["sex"], ("f", "m", "01")), [1, 2, nan])


def test_only_the_columns_asked_for(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "a,b,c\n1,2,3\n")
    assert read(path, ["c", "a"]).to_pydict() == {"c": [b"3"], "a": [b"1"]}
    with pytest.raises(InvalidInput, match=r"no column 'z' in .*rows\.csv, which has 3 columns"):
        read(path, ["z"])


def test_ragged_lines_are_rows_of_missing_cells(tmp_path: Path) -> None:
    table = numbers(read(csv_file(tmp_path, "a,b\n1,2\n3\n4,5,6\n7,8\n")))
    assert len(table) == 4
    np.testing.assert_array_equal(table[~np.isnan(table).all(axis=1)], [[1, 2], [7, 8]])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n", "column names"),
        (b"a,b\n", "holds no rows"),
        (b"a,b", "rows.csv"),
        (b"a,a\n1,2\n", "columns of the same name"),
        (b"a,\xff\n1,2\n", "column names"),
        ("a,b\n1,2\n".encode("utf-16"), "column names"),
    ],
    ids=["empty", "blank", "header only", "header without line end", "names twice", "not UTF-8", "UTF-16"],
)
def test_a_bad_shape_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in refused(csv_file(tmp_path, content))


def test_empty_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    assert "holds no files" in refused(tmp_path, names_too=True)
    refused(tmp_path / "none.csv", names_too=True)


# ------------------------------------------------------------------ folders


@pytest.mark.parametrize("as_path", [Path, str])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_folder_is_its_files_in_order(tmp_path: Path, kind: str, as_path: Callable[[Path], Path | str]) -> None:
    folder = tmp_path / "parts"
    (folder / "more").mkdir(parents=True)
    (folder / "_temporary").mkdir()
    for at, name in enumerate(["part-0", "part-1", "more/part-2"]):
        part = pd.DataFrame({"a": [float(at)], "b": [float(at + 10)]})
        part.to_csv(folder / f"{name}.{kind}", index=False) if kind == "csv" else pq.write_table(
            pa.table(part), folder / f"{name}.{kind}"
        )
    for name in ("_SUCCESS", ".part-0.crc", "_temporary/part-9.csv", "_metadata"):
        (folder / name).write_bytes(b"nothing to read")
    assert names_of(as_path(folder)) == ["a", "b"]
    np.testing.assert_array_equal(numbers(read(as_path(folder))), [[2, 12], [0, 10], [1, 11]])


def test_folders_of_two_kinds_and_delta_tables_are_refused(tmp_path: Path) -> None:
    csv_file(tmp_path, "a\n1\n")
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "rows.parquet")
    assert "are of two kinds: give CSV or Parquet" in refused(tmp_path, names_too=True)
    (tmp_path / "_delta_log").mkdir()
    assert "is a Delta table" in refused(tmp_path, names_too=True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_folders_named_by_a_column_hold_its_cells(tmp_path: Path, kind: str) -> None:
    """As Hive, Spark and Arrow write them; the cells stay text until a schema reads them, as those of CSV do."""
    for plan, year, cost in (("gold", "2019", 1.0), ("a b", "x", 2.0), (None, "2020", 3.0)):
        shown = "__HIVE_DEFAULT_PARTITION__" if plan is None else plan.replace(" ", "%20")
        folder = tmp_path / f"plan={shown}" / f"year={year}"
        folder.mkdir(parents=True)
        if kind == "csv":
            csv_file(folder, f"cost\n{cost}\n")
        else:
            pq.write_table(pa.table({"cost": [cost]}), folder / "part-0.parquet")
    table = read(tmp_path, ["year", "cost", "plan"])
    assert table["plan"].to_pylist() == [None, "a b", "gold"]
    assert table["year"].type == pa.large_string()
    np.testing.assert_array_equal(numbers(table.select(["year", "cost"])), [[2020, 3], [nan, 2], [2019, 1]])
    assert read(tmp_path, ["plan"])["plan"].to_pylist() == [None, "a b", "gold"]
    assert names_of(str(tmp_path / "plan=gold" / "year=2019")) == ["cost"]
    assert read_files(tmp_path).name == str(tmp_path)  # no cell in it, nor how many different ones there are
    (tmp_path / "plan=gold" / "year=2019" / "part-9.csv").write_text("cost,plan\n1,gold\n")
    if kind == "csv":
        assert "name them differently" in refused(tmp_path)


def test_a_column_of_files_and_folders_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan=gold").mkdir()
    csv_file(tmp_path / "plan=gold", "cost,plan\n1,gold\n")
    assert "column 'plan' is in the files and in the names of their folders" in refused(tmp_path, names_too=True)
    np.testing.assert_array_equal(numbers(read(tmp_path / "plan=*" / "*.csv", ["cost"])), [[1]])


LINES = {
    "blank": b"",
    "text": b"x,y",
    "too few": b"5",
    "too many": b"5,6,7",
    "not UTF-8": b"\xff\xfe,5",
    "zero byte": b"\0,5",
    "unclosed quote": b'"5,6',
    "quote in the middle": b'5"6,7',
    "text after a quote": b'"5"6,7',
    "lone carriage return": b"5\r6,7",
    "long cell": b"9" * (3 << 20) + b",5",
}


@pytest.mark.parametrize("line", LINES.values(), ids=list(LINES))
@pytest.mark.parametrize("place", [0, 20, 39])
def test_no_line_changes_another(tmp_path: Path, line: bytes, place: int) -> None:
    """Replacing one record must change one row: n stays, and so do the cells of every other line."""
    before = [b"%d,%d" % (row, row + 1) for row in range(40)]
    with_line = [*before[:place], line, *before[place:]]
    table = numbers(read(csv_file(tmp_path, b"a,b\n" + b"\n".join(with_line) + b"\n")))
    assert len(table) == 41
    kept = {tuple(row) for row in table.tolist()}
    assert {(float(row), float(row + 1)) for row in range(40)} <= kept


def test_a_blank_line_is_a_row_wherever_it_stands(tmp_path: Path) -> None:
    """Were blank lines at the end dropped, the last record would decide n by being blank."""
    for end, rows in ((b"", 2), (b"\n", 3), (b"\r\n\n", 4), (b"\n \n", 4)):
        assert read(csv_file(tmp_path, b"a,b\n1,2\n3,4\n" + end)).num_rows == rows


#: Bytes of a line that is neither blank nor touches quotes and line ends.
plain_bytes = st.lists(st.sampled_from(sorted(set(range(256)) - set(b'\r\n"'))), min_size=1, max_size=30).map(bytes)


@given(st.lists(plain_bytes, min_size=1, max_size=6))
@untimed
def test_no_bytes_make_reading_raise(tmp_path: Path, lines: list[bytes]) -> None:
    table = read(csv_file(tmp_path, b"a,b\n" + b"\n".join(lines) + b"\n"))
    assert table.num_rows == len(lines)
    assert numbers(table).shape == (len(lines), 2)


@given(st.lists(st.tuples(*[st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))] * 2)))
@untimed
def test_no_quoted_text_makes_reading_raise(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("a", "b"), ("1", "2"), *rows])
    table = read(csv_file(tmp_path, text.getvalue()))
    assert table.num_rows == len(rows) + 1
    found = table.to_pydict()
    for row, cells in enumerate(rows, start=1):
        for name, cell in zip("ab", cells, strict=True):
            assert found[name][row] == (None if cell in MISSING else cell.encode())


# ------------------------------------------------------------------ Parquet


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    table = pa.table({"a": [1.0, 2.0, None], "b": ["4", "x", "6"], "secret": [31337.5] * 3})
    pq.write_table(table, path)
    return path


def test_parquet(parquet: Path) -> None:
    assert names_of(parquet) == ["a", "b", "secret"]
    np.testing.assert_array_equal(numbers(read(parquet, ["b", "a"])), [[4, 1], [nan, 2], [6, nan]])
    with pytest.raises(InvalidInput, match="no column 'z'"):
        read(parquet, ["z"])


def test_parquet_is_known_by_its_first_bytes(parquet: Path) -> None:
    other = parquet.rename(parquet.with_suffix(".data"))
    assert names_of(other) == ["a", "b", "secret"]


def test_parquet_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), path)
    assert "holds no rows" in refused(path)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_truncated_parquet_is_refused(parquet: Path, share: float) -> None:
    content = parquet.read_bytes()
    parquet.write_bytes(content[: int(share * len(content))])
    assert "not a readable Parquet file" in refused(parquet, names_too=True)


def test_damaged_parquet_is_refused_without_its_cells(parquet: Path) -> None:
    content = parquet.read_bytes()
    parquet.write_bytes(content[:8] + bytes(120) + content[128:])
    with pytest.raises(InvalidInput) as caught:
        read(parquet)
    assert "31337" not in everything_said(caught.value)


def test_text_that_says_it_is_parquet_is_refused(tmp_path: Path) -> None:
    refused(csv_file(tmp_path, "a,b\n1,2\n", "rows.parquet"), names_too=True)


# ------------------------------------------------------------------ tables in memory

FRAME = pd.DataFrame({"a": [1.0, nan, 3.0], "b": [4, 5, 6]})


@pytest.mark.parametrize(
    "table",
    [FRAME, pl.from_pandas(FRAME), pa.table(FRAME), pa.record_batch(FRAME), FRAME.astype(object), FRAME.astype(str)],
    ids=["pandas", "Polars", "Arrow", "record batch", "objects", "text"],
)
def test_tables_of_every_library(table: object) -> None:
    assert is_table(table)
    np.testing.assert_array_equal(numbers(to_table(table)), FRAME)
    np.testing.assert_array_equal(numbers(to_table(table, ["b"])), FRAME[["b"]])
    with pytest.raises(InvalidInput, match="no column 'z'"):
        to_table(table, ["z"])


@pytest.mark.parametrize("thing", [{"a": [1]}, [[1]], np.eye(2), pl.DataFrame({"a": [1]}).lazy(), None, "rows.csv"])
def test_other_things_are_no_tables(thing: object) -> None:
    assert not is_table(thing)
    with pytest.raises(InvalidInput, match="is not a table"):
        to_table(thing)


@pytest.mark.parametrize("column", [pd.Series([31337.5, 1.0]), pl.Series([31337.5, 1.0])], ids=["pandas", "Polars"])
def test_a_single_column_is_no_table(column: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        to_table(column)
    assert "31337" not in everything_said(caught.value)


def test_columns_of_one_name_are_refused() -> None:
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(InvalidInput):
        Encoder.of(["a"], None, None).check_types(to_table(twice).schema)


def test_the_index_of_a_space_is_no_column() -> None:
    assert to_table(FRAME.set_index(pd.Index([7, 8, 9], name="id"))).schema.names == ["a", "b"]


def test_names_that_were_not_asked_for_are_not_shown(tmp_path: Path) -> None:
    """Without a header, they are the first record."""
    path = csv_file(tmp_path, "alice,hiv\nbob,flu\n")
    schema = Schema({"age": Numeric(0, 100), "y": Numeric(0, 1)})
    model = DPRidge(GDP(1.0), schema=schema)
    declared = tmp_path / "schema.toml"
    declared.write_text(schema.to_toml())

    def command(*words: str) -> None:
        given = ["fit", str(path), *words, "--schema", str(declared), "--epsilon", "1", "--delta", "1e-6"]
        cli.main([*given, "--out", str(tmp_path / "out")], standalone_mode=False)

    fits: list[Callable[[], object]] = [
        lambda: read(path, ["y"]),
        lambda: model.fit_table(path, "y"),
        lambda: model.fit_table(path, "y", ["age"]),
        lambda: model.fit_table(
            SQLQuery("duckdb://", f"SELECT * FROM read_csv('{path}', header = true)"), "y", ["age"]
        ),
        lambda: model.fit_table(pl.scan_csv(path), "y", ["age"]),
        lambda: model.fit_table(pl.read_csv(path), "y", ["age"]),
        lambda: DPRidge(GDP(1.0), schema=schema, formula="y ~ age").fit_table(path),
        lambda: MarginalsRegression(GDP(1.0), schema=schema).fit_table(path, "y", ["age"]),
        lambda: read([path, csv_file(tmp_path, "age,y\n1,2\n", "other.csv")]),
        lambda: read([csv_file(tmp_path, "age,y,z\n1,2,3\n", "other.csv"), path]),
        lambda: command("--target", "y", "--features", "age"),
        lambda: command("--formula", "y ~ age"),
    ]
    for fit in fits:
        with pytest.raises(InvalidInput, match=r"which has 2 columns|name the response") as caught:
            fit()
        assert not {"alice", "hiv", "bob", "flu"} & set(re.findall(r"\w+", everything_said(caught.value)))


def test_a_file_without_names_is_refused_and_its_first_record_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="begins with numbers") as caught:
        read(csv_file(tmp_path, b"31337.25,2\n3,4\n"), ["y"])
    assert "31337" not in str(caught.value)
    assert read(csv_file(tmp_path, b"2019,2020,y\n1,2,3\n")).column_names == ["2019", "2020", "y"]


def test_no_text_of_python_is_left_to_a_thread_of_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that gives it back while the process ends aborts it: a fit that was charged, or one that was refused."""
    threads: list[bool] = []
    read_csv = csv_reader.pacsv.read_csv

    def watched(text: object, **options: Any) -> pa.Table:
        threads.append(options.get("read_options", csv_reader.pacsv.ReadOptions()).use_threads)
        return read_csv(text, **options)

    monkeypatch.setattr(csv_reader.pacsv, "read_csv", watched)
    assert read(csv_file(tmp_path, "a,b\n1,2\n")).num_rows == 1
    assert len(threads) > 1
    assert not any(threads)


@pytest.mark.parametrize("leads_to", ["more", "nothing"])
def test_no_link_in_a_folder_is_left_out_in_silence(tmp_path: Path, leads_to: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "more").mkdir()
    csv_file(tmp_path / "folder", "a,b\n1,2\n")
    csv_file(tmp_path / "more", "a,b\n3,4\n", "others.csv")
    (tmp_path / "folder/link").symlink_to(tmp_path / leads_to)
    with pytest.raises(InvalidInput, match="link is no file"):
        read(tmp_path / "folder")


@pytest.mark.parametrize("block", [16, 64, 1 << 21])
def test_byte_order_marks_of_lines_do_not_depend_on_blocks(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow drops a mark at the beginning of a text: of the first line of a block."""
    monkeypatch.setattr(csv_reader, "_BLOCK", block)
    lines = "".join(f"\ufeff{row % 2},note\n" for row in range(40))
    (tmp_path / "marked.csv").write_text(f"x,note\n{lines}", encoding="utf-8")
    cells = read(tmp_path / "marked.csv", ["x"])["x"].to_pylist()
    assert cells == [f"\ufeff{row % 2}".encode() for row in range(40)]


@pytest.mark.parametrize("frame", ["pandas", "arrow"])
def test_columns_of_one_name_are_refused_in_one_line(frame: str) -> None:
    rows = pd.DataFrame([[0.0, 1.0, 2.0]], columns=["x", "x", "y"])
    table = rows if frame == "pandas" else pa.Table.from_arrays([pa.array([0.0])] * 3, names=["x", "x", "y"])
    schema = Schema({"x": Numeric(0, 1), "y": Numeric(0, 1)})
    with pytest.raises(InvalidInput, match="several columns 'x'"):
        DPRidge(GDP(1.0), schema=schema).fit_table(table, "y", ["x"])
    with pytest.raises(InvalidInput, match="several columns 'y'"):
        DPRidge(GDP(1.0), schema=schema).fit_table(rows.set_axis(["x", "y", "y"], axis=1), "y", ["x"])
