"""Tables of the data folder, checked before an experiment uses them: anybody may have put them there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpregress.coordinates import Matrix, Vector
from dpregress.datasets import dataset_named, folder_table
from dpregress.errors import InvalidInput, one_line


def table_with(name: str, columns: Sequence[str] = ()) -> pa.Table:
    """A table that has these columns, or without any given those of its source.

    Raises
    ------
    InvalidInput
        For a table that lacks one of them, or has two columns of one name.
    """
    table, needed = folder_table(name), columns or dataset_named(name).columns
    missing = [each for each in needed if each not in table.column_names]
    if missing:
        raise InvalidInput(f"{name}.parquet has no column {_listed(missing)}: it needs the columns {_listed(needed)}")
    if len(set(table.column_names)) < table.num_columns:
        raise InvalidInput(f"{name}.parquet has two columns of one name: rename or remove one of them")
    return table


def numbers_of(name: str, table: pa.Table, columns: Sequence[str]) -> Matrix:
    """The cells of columns as numbers, of shape (n, d).

    Raises
    ------
    InvalidInput
        For columns of another type, empty or infinite cells, and no rows or columns at all.
    """
    if not columns or not table.num_rows:
        raise InvalidInput(
            f"{name}.parquet has no {'rows' if columns else 'columns of features'}: supply a whole table"
        )
    wrong = [each for each in columns if not _numeric(table[each].type)]
    if wrong:
        raise InvalidInput(
            f"{name}.parquet has columns of text or of another type where numbers are needed: give "
            f"{_listed(wrong)} as numbers, since the columns {_listed(columns)} must be numeric"
        )
    cells = np.column_stack([table[each].cast(pa.float64(), safe=False).to_numpy() for each in columns])
    if not np.isfinite(cells).all():
        empty = [each for each, fine in zip(columns, np.isfinite(cells).all(axis=0), strict=True) if not fine]
        raise InvalidInput(f"{name}.parquet has empty cells or infinite numbers in {_listed(empty)}: remove these rows")
    return cells


def level_places(name: str, table: pa.Table, column: str) -> Vector:
    """A column as numbers: text as the place of each level in the alphabet."""
    if not _text(table[column].type):
        return numbers_of(name, table, [column])[:, 0]
    return np.unique(_texts(name, table, column), return_inverse=True)[1].astype(float)


def is_level(
    name: str, table: pa.Table, column: str, level: float | str, among: Collection[float | str] = ()
) -> Vector:
    """1 where a column has a level and 0 elsewhere.

    Parameters
    ----------
    name : str
    table : Table
    column : str
    level : float or str
    among : collection
        All levels that the column may have; any others if empty.

    Raises
    ------
    InvalidInput
        Unless the level and another one occur, and none that the column may not have.
    """
    text = isinstance(level, str)
    cells: Any = _texts(name, table, column) if text else numbers_of(name, table, [column])[:, 0]
    found = np.asarray(cells == level)
    if not found.any() or found.all() or (among and not np.isin(cells, list(among)).all()):
        coded = f"with the levels {_listed(sorted(among))}" if among else f"with {one_line(level)} for one class"
        raise InvalidInput(f"{name}.parquet must have both classes in {one_line(column)}: code this column {coded}")
    return np.asarray(found, dtype=float)


def enough_rows(name: str, rows: int, needed: int) -> None:
    """Refuse a table with fewer rows than an experiment needs."""
    if rows < needed:
        raise InvalidInput(f"{name}.parquet has {rows:,} rows, and {needed:,} are needed: supply the whole table")


def _texts(name: str, table: pa.Table, column: str) -> Any:
    if not _text(table[column].type) or table[column].null_count or not table.num_rows:
        raise InvalidInput(f"{name}.parquet needs a text in every cell of {one_line(column)}: fill it or remove rows")
    return np.asarray(table[column].to_pylist(), dtype=str)


def _text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _numeric(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(one_line, names))
