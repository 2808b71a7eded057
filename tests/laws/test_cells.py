"""The law of cells: replacing one private cell changes how no other row is read.

It is what makes replacing one record a change of one row. A reader that infers a column's type from
its cells breaks it: one cell of text turns every ``True`` of the column from 1 into nothing.
"""

from __future__ import annotations

import datetime
import decimal
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpregress import GDP, DPLinearRegression, MemoryLedger
from dpregress.errors import InvalidInput
from dpregress.inputs.tables import matrix, numbers
from dpregress.public import Categorical, Numeric, Schema
from dpregress.rows import Encoder
from dpregress.rows.design.encoder import to_codes
from dpregress.rows.readers import files
from dpregress.rows.readers.files import to_table
from dpregress.rows.units import counted

#: What an object column can hold; the first few are also what a column of one type would hold.
CELLS: tuple[Any, ...] = (
    True, False, 1, 0, 2.5, 0.1, np.float32(0.1), 2**70, -(2**63), "7", " 7 ", "True", "x", "", None, float("nan"),
    float("inf"), b"3", decimal.Decimal("1.10"), 1 + 0j, datetime.date(2020, 1, 1), [1], {}, object(),
    "\ud800", "1e999",
)  # fmt: skip
TEXT = ("1", "True", "x", "", "nan", "1e999", "0x1", " 5", "1_000", "7,", "é", '"quoted"')

Reader = Callable[[Sequence[Any]], np.ndarray]


def from_list(cells: Sequence[Any]) -> np.ndarray:
    return matrix([[cell] for cell in cells])[:, 0]


def from_object_array(cells: Sequence[Any]) -> np.ndarray:
    column = np.empty(len(cells), dtype=object)
    column[:] = list(cells)
    return matrix(column[:, None])[:, 0]


def response_from_list(cells: Sequence[Any]) -> np.ndarray:
    return numbers(list(cells))


def from_pandas(cells: Sequence[Any]) -> np.ndarray:
    table = to_table(pd.DataFrame({"a": pd.Series(list(cells), dtype=object)}))
    return Encoder((("a", Numeric()),)).x(table)[:, 0]


def levels_from_pandas(cells: Sequence[Any]) -> np.ndarray:
    table = to_table(pd.DataFrame({"a": pd.Series(list(cells), dtype=object)}))
    return Encoder((("a", Categorical(("0", "1", "True", "x"))),)).x(table) @ [1.0, 2.0, 3.0]


def check_cells_stand_alone(read: Reader, cells: Sequence[Any], others: Sequence[Any]) -> None:
    """Reading ``others + [cell]`` gives the others the same values for every cell."""
    alone = read(others)
    for cell in cells:
        beside = read([*others, cell])
        assert np.array_equal(beside[:-1], alone, equal_nan=True), f"{cell!r} changes how other cells are read"


OTHERS = (
    [True, False, True],
    [1, 2, 3],
    [0.1, np.float32(0.1), 2.5],
    ["1", "2", "x"],
    [None, 2**70, 1],
    [True, 1, "7"],
)


@pytest.mark.parametrize("others", OTHERS, ids=repr)
@pytest.mark.parametrize(
    "read",
    [from_list, from_object_array, response_from_list, from_pandas, levels_from_pandas],
    ids=lambda f: f.__name__,
)
def test_cells_stand_alone(read: Reader, others: list[Any]) -> None:
    check_cells_stand_alone(read, [cell for cell in CELLS if not isinstance(cell, list | dict)], others)


def through_pandas(levels: tuple[str, ...]) -> Reader:
    """Levels of a column whose type pandas inferred from the text of its cells."""

    def read(cells: Sequence[Any]) -> np.ndarray:
        text = "a,b\n" + "".join(f"{cell},1\n" for cell in cells)
        return to_codes(to_table(pd.read_csv(io.StringIO(text)))["a"], levels)

    return read


@pytest.mark.parametrize(
    ("others", "levels"),
    [
        (["1", "2", "2", "3"], ("1", "2")),
        (["1", "2", "2", "3"], ("1.0", "2.0")),
        (["1.0", "2.0", "2.0"], ("1", "2")),
        (["1.0", "2.0", "2.0"], ("1.0", "2.0")),
        (["0.5", "1", "2.50"], ("0.5", "1", "2.5")),
        (["01", "02", "2"], ("01", "02")),
        (["True", "False", "True"], ("true", "false")),
        (["True", "False", "True"], ("True", "False")),
        (["True", "False", "True"], ("0", "1")),
        (["1", "0", "1"], ("false", "true")),
        (["low", "1", "2"], ("low", "1.0", "2")),
        (["120000000000", "7"], ("7", "120000000000")),
    ],
)
def test_levels_stand_alone_through_pandas(others: list[str], levels: tuple[str, ...]) -> None:
    """What one cell makes pandas infer, integers, floats, truth values or text, does not change other rows."""
    read = through_pandas(levels)
    assert np.isfinite(read(others)[:2]).all()
    check_cells_stand_alone(read, ["", "x", "2.5", "1", "True", "nan", "1e300", "12345678901234567890123"], others)


def test_ids_through_pandas_keep_apart_or_are_refused(tmp_path: Path) -> None:
    """A missing id makes pandas read the others as floats, in which large ones merge; the file's path is sound."""
    ids = [str(2**60 + i) for i in range(50)]
    schema = Schema({"a": Numeric(0, 1), "y": Numeric(0, 1)})
    for cell in ("7", ""):
        path = tmp_path / "rows.csv"
        path.write_text("who,a,y\n" + "".join(f"{each},0.5,0.5\n" for each in (*ids, cell)), encoding="utf-8")
        ledger = MemoryLedger(GDP(1.0), unit="who")
        model = DPLinearRegression(GDP(1.0), schema=schema, ledger=ledger)
        space = pd.read_csv(path)
        if cell:
            kept = counted([to_table(space)["who"]], 51, 1)
            assert kept.all()
        else:
            with pytest.raises(InvalidInput, match="give the file by its path"):
                model.fit_table(space, "y", unit="who", max_rows_per_unit=1)
            assert not ledger.spent.parts
            whole = counted([files.read(path)["who"]], 51, 1)
            assert whole.tolist() == [True] * 50 + [False]


@pytest.mark.parametrize("text", TEXT)
def test_lines_of_a_file_stand_alone(text: str, tmp_path: Path) -> None:
    """A line of a CSV file, whatever is in it (short of an unclosed quote), leaves the others as they are."""
    path = tmp_path / "rows.csv"
    encoder = Encoder((("a", Numeric()), ("b", Numeric())))
    path.write_text("a,b\n1,True\n0.1,x\n,3\n", encoding="utf-8")
    alone = encoder.x(files.read(path))
    path.write_text(f"a,b\n1,True\n0.1,x\n,3\n{text},5\n", encoding="utf-8")
    beside = encoder.x(files.read(path))
    assert len(beside) == 4
    assert np.array_equal(beside[:3], alone, equal_nan=True)


def test_the_law_catches_an_inferring_reader() -> None:
    """Planted fault: let Arrow infer a column's type, falling back to text."""

    def inferring(cells: Sequence[Any]) -> np.ndarray:
        try:
            column = pa.array(list(cells))
        except (pa.ArrowException, TypeError):
            column = pa.array([str(cell) for cell in cells])
        return Encoder((("a", Numeric()),)).x(pa.table({"a": column}))[:, 0]

    with pytest.raises(AssertionError, match="changes how other cells are read"):
        check_cells_stand_alone(inferring, ["x"], [np.float32(0.1), 0.5])
