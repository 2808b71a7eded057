"""Tables in files and in memory, as Arrow tables whose private cells have not been judged."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpregress.errors import InvalidInput
from dpregress.rows.encoding import text_of, to_numbers

#: What an empty cell may be called in a CSV file.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", ".")


@runtime_checkable
class ArrowStream(Protocol):
    """Anything with the Arrow PyCapsule stream interface: pandas, Polars, Arrow, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def names_of(path: str | Path) -> list[str]:
    """Column names of a CSV or Parquet file, in order."""
    path = _existing(path)
    if _is_parquet(path):
        return list(_parquet(path).schema_arrow.names)
    return _header(path)


def read(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a CSV or Parquet file; CSV cells stay text until a schema gives them a type.

    A CSV line with too few or too many cells counts as a row in which every cell is missing.

    Raises
    ------
    InvalidInput
        For a file that is not there, is not readable as its kind, lacks a column, or holds no rows.
    """
    path = _existing(path)
    table = _read_parquet(path, columns) if _is_parquet(path) else _read_csv(path, columns)
    if table.num_rows == 0:
        raise InvalidInput(f"{path} holds no rows")
    return table


def to_table(data: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """A table in memory as Arrow, without copying where the formats agree.

    Parameters
    ----------
    data : pandas, Polars or Arrow table, or any object with the Arrow stream interface
    columns : sequence of str, optional
        Only these.
    """
    if isinstance(data, pa.Table):
        table = data
    elif _is_pandas(data):
        if columns is not None:
            _present(columns, [str(label) for label in data.columns])
        table = _from_pandas(data, columns)
    elif is_table(data):
        table = _from_stream(data)
    else:
        raise InvalidInput(f"{type(data).__name__} is not a table: pandas, Polars and Arrow tables are")
    return table if columns is None else table.select(_present(columns, table.schema.names))


def _from_stream(data: Any) -> pa.Table:
    try:
        return pa.table(data)
    except pa.ArrowException as error:
        raise InvalidInput(f"{type(data).__name__} is a column, not a table: put it in a data frame") from error


def is_table(data: Any) -> bool:
    """Whether this is a table with named columns that :func:`to_table` takes."""
    return isinstance(data, ArrowStream)


def _from_pandas(data: Any, columns: Sequence[str] | None) -> pa.Table:
    """Typed columns as they are; a column of objects cell by cell, so that no cell decides how another is read."""
    names, arrays = [], []
    for position, label in enumerate(data.columns):
        if columns is None or str(label) in columns:
            names.append(str(label))
            arrays.append(_from_series(data.iloc[:, position]))
    return pa.Table.from_arrays(arrays, names=names)


def _from_series(series: Any) -> pa.Array:
    """A typed column as it is; objects, texts and categories one by one, whatever they hold."""
    if str(series.dtype) == "category":
        texts = [text_of(level) for level in series.cat.categories.tolist()]
        codes = pa.array(series.cat.codes.tolist(), pa.int64())
        return pc.take(pa.array(texts, pa.large_string()), pc.if_else(pc.less(codes, 0), None, codes))
    if series.dtype == object or str(series.dtype).startswith("str"):
        return pa.array([text_of(cell) for cell in series.tolist()], pa.large_string())
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([text_of(cell) for cell in series.tolist()], pa.large_string())


def _is_pandas(data: Any) -> bool:
    return type(data).__module__.split(".", 1)[0] == "pandas" and type(data).__name__ == "DataFrame"


def _existing(path: str | Path) -> Path:
    if not isinstance(path, str | Path):  # of an array only its type may be named, not its cells
        raise InvalidInput(f"{type(path).__name__} is neither a path nor a table: give a file, or a data frame")
    try:
        path = Path(path)
        if path.is_file():
            return path
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    raise InvalidInput(f"no file {path}: check the path")


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1" or path.suffix.lower() in {".parquet", ".pq"}
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error


def _present(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    absent = [name for name in columns if name not in names]
    if absent:
        raise InvalidInput(f"no column {absent[0]!r} in the table; it has {', '.join(names[:12])}")
    return list(columns)


def _parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path} is not a readable Parquet file: {_first_line(error)}") from error


def _read_parquet(path: Path, columns: Sequence[str] | None) -> pa.Table:
    file = _parquet(path)
    wanted = None if columns is None else _present(columns, file.schema_arrow.names)
    try:
        table = file.read(columns=wanted)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path} is a damaged Parquet file: write it anew") from error
    if len(set(table.schema.names)) != table.num_columns:
        raise InvalidInput(f"{path} has columns of the same name: rename them")
    return table


def _header(path: Path) -> list[str]:
    """The first line of a CSV file: names, which are public."""
    try:
        with path.open("rb") as file:
            line = file.readline().decode("utf-8-sig").rstrip("\r\n")
        if "\0" in line:
            raise InvalidInput(f"{path} does not begin with a line of column names")
        table = pacsv.read_csv(
            pa.BufferReader((line + "\n").encode()),
            parse_options=pacsv.ParseOptions(delimiter=_delimiter(line)),
        )
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} does not begin with a line of column names") from error
    names = list(table.schema.names)
    if np.isfinite(to_numbers(pa.array(names, pa.string()))).all():
        # most likely a record: what follows would print its cells as if they were names
        raise InvalidInput(f"{path} begins with numbers, not with a line of column names: add one")
    return names


def _delimiter(header: str) -> str:
    return max((",", ";", "\t"), key=header.count)


def _read_csv(path: Path, columns: Sequence[str] | None) -> pa.Table:
    names = _header(path)
    if len(set(names)) != len(names):
        raise InvalidInput(f"{path} has columns of the same name: rename them")
    wanted = names if columns is None else _present(columns, names)
    header, _, body = path.read_bytes().partition(b"\n")
    delimiter = _delimiter(header.decode("utf-8-sig")).encode()
    lines = body.split(b"\n")
    if lines[-1] == b"":
        lines.pop()  # what follows the last line's end; any other blank line is a row of missing cells
    lines = [_mended(line, delimiter, len(names)) for line in lines]
    if not lines:
        return pa.table({name: pa.nulls(0, pa.binary()) for name in wanted})
    return pacsv.read_csv(
        pa.py_buffer(b"\n".join(lines) + b"\n"),
        read_options=pacsv.ReadOptions(
            column_names=names, block_size=min(max(1 << 20, 2 * max(map(len, lines))), 2**31 - 1)
        ),
        parse_options=pacsv.ParseOptions(delimiter=delimiter.decode(), ignore_empty_lines=False),
        convert_options=pacsv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, pa.binary()),
            null_values=list(MISSING),
            strings_can_be_null=True,
            check_utf8=False,
        ),
    )


def _mended(line: bytes, delimiter: bytes, cells: int) -> bytes:
    """A line as it is where it is one plain record; quoted cells rewritten; anything else as missing cells.

    A line is one record whatever is in it: an open quote or a stray carriage return stays in its line.
    """
    line = line.removesuffix(b"\r")
    if b'"' not in line and b"\r" not in line:
        return line if line.count(delimiter) == cells - 1 else delimiter * (cells - 1)
    try:
        (row,) = csv.reader([line.decode("latin-1")], delimiter=delimiter.decode(), strict=True)
    except (csv.Error, ValueError):
        row = []
    if len(row) != cells or any("\r" in cell for cell in row):
        return delimiter * (cells - 1)
    quoted = ('"' + cell.replace('"', '""') + '"' for cell in row)
    return delimiter.join(cell.encode("latin-1") for cell in quoted)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
