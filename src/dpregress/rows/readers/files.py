"""Tables in files and in memory, as Arrow tables whose private cells have not been judged."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpregress.errors import InvalidInput, SourceError
from dpregress.rows.design.encoder import text_of, untyped
from dpregress.rows.readers import csv
from dpregress.rows.readers.base import ArrowStream, Reader, count_rows, has_columns
from dpregress.rows.readers.csv import Header
from dpregress.rows.readers.failures import raise_alone, reading, told
from dpregress.rows.readers.locations import FileState, Location, opened, partitions_of, paths_of, states_of

_MAGIC = b"PAR1"
_BUFFER = 1 << 18  # bytes of a column that are read at once; without it Arrow holds whole row groups
_BATCH = 1 << 15


def names_of(source: Any) -> list[str]:
    """Column names of CSV or Parquet files (a path, a folder, a pattern, a list of them), in order."""
    return list(read_files(source).schema.names)


def read(source: Any, columns: Sequence[str] | None = None, *, empty: bool = False) -> pa.Table:
    """Read CSV or Parquet files into memory; CSV cells stay text until a schema gives them a type.

    A CSV line with too few or too many cells counts as a row in which every cell is missing. Files without rows
    are read where ``empty``: for add-or-remove neighbours, of whom nobody may learn that there are none.

    Raises
    ------
    InvalidInput
        For a file that is not there, is not readable as its kind, lacks a column, or holds no rows.
    SourceError
        For a file that changes while it is read.
    """
    reader = read_files(source)
    wanted = list(reader.schema.names) if columns is None else present(columns, reader.schema.names)
    reader.check(wanted)
    try:
        batches = list(reader.batches(wanted, _BATCH))
    except (pa.ArrowException, OSError):
        raise_alone(InvalidInput(f"{reader.name} is damaged: write it anew"))
    if count_rows(batches, reader.name) == 0:
        if empty:
            return pa.schema([reader.schema.field(name) for name in wanted]).empty_table()
        raise InvalidInput(f"{reader.name} holds no rows")
    return pa.Table.from_batches(batches)


def read_files(source: Any) -> FilesReader:
    """A reader of files of one kind.

    Parameters
    ----------
    source : path, str or sequence of them
        Each a file, a folder of files, a pattern such as ``part-*.parquet``, or with the ``remote`` extra a URL that
        fsspec knows. In a single folder those named ``column=value`` are a column more.

    Raises
    ------
    InvalidInput
        For files that are not there, are not readable as their kind, or have other columns than the first.
    """
    paths = paths_of(source)
    kinds = [_is_parquet(path) for path in paths]
    if len(set(kinds)) > 1:
        raise InvalidInput(f"{paths[0]} and {paths[kinds.index(not kinds[0])]} are of two kinds: give CSV or Parquet")
    folder = str(source) if isinstance(source, str | Path) and Path(source).is_dir() else None
    return (ParquetReader if kinds[0] else CSVReader)(paths, partitions_of(source, paths), folder)


class FilesReader(Reader):
    """Files of one kind with the same columns, read one after another.

    Parameters
    ----------
    paths : sequence of Path or URL
        At least one.
    partitions : mapping, optional
        For each path the columns that the names of its folders give, and their cell in all rows of this file.
    folder : str, optional
        What the files are called together; names of folders in it are cells of private rows.

    Raises
    ------
    InvalidInput
        When a file is not readable as its kind, has columns of the same name, or other columns than the first; when
        two paths lead to one file; when files and folders both give a column.
    SourceError
        Whenever a file is not the one it was when the reader was made.
    """

    def __init__(
        self,
        paths: Sequence[Location],
        partitions: Mapping[Location, Mapping[str, str | None]] | None = None,
        folder: str | None = None,
    ) -> None:
        self.paths = tuple(paths)
        self._folder = folder
        self._states = states_of(self.paths)
        self._partitions = {path: {} for path in self.paths} if partitions is None else partitions
        first = [*self._names(self.paths[0]), *self._partitions[self.paths[0]]]
        twice = next((name for name in self._partitions[self.paths[0]] if first.count(name) > 1), None)
        if twice is not None:
            raise InvalidInput(
                f"column {twice!r} is in the files and in the names of their folders: give the files as a pattern"
            )
        for path in self.paths:
            names = [*self._names(path), *self._partitions[path]]
            if sorted(names) != sorted(first):
                raise InvalidInput(
                    f"{self.paths[0]}, {has_columns(first)}, and {path}, {has_columns(names)}, name them differently: "
                    "write all files with the same columns"
                )

    @property
    def name(self) -> str:
        if self._folder is not None:
            return self._folder
        more = len(self.paths) - 1
        return f"{self.paths[0]}" + (f" and {more} other file(s)" if more else "")

    @property
    def ordered(self) -> bool:
        return True

    @cached_property
    def n(self) -> int:
        with reading(self.name):
            return sum(self._rows)

    @cached_property
    def schema(self) -> pa.Schema:
        added = [pa.field(name, pa.large_string()) for name in self._partitions[self.paths[0]]]
        return pa.schema([*self._stored, *added])

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        for path in self.paths:
            added = self._partitions[path]
            stored = [name for name in columns if name not in added]
            # where none of them is stored, another column tells how many rows there are
            for batch in self._read(path, stored or self._stored.names[:1], rows):
                for name in (name for name in columns if name in added):
                    cells = pa.repeat(pa.scalar(added[name], pa.large_string()), batch.num_rows)
                    batch = batch.append_column(name, cells)
                yield batch.select(list(columns))

    @contextmanager
    def _unchanged(self, path: Location) -> Iterator[None]:
        """Fail where the file is not the one it was at first, or becomes another one while it is read."""
        self._compare(path)
        try:
            yield
        except Exception:
            self._compare(path)  # what went wrong is rather this
            raise
        self._compare(path)

    def _compare(self, path: Location) -> None:
        try:
            same = FileState.of(path) == self._states[path]
        except InvalidInput:
            same = False
        if not same:
            raise_alone(
                SourceError(f"{path} has changed while it was read; fit a copy of it that nobody writes to, once more")
            )

    @abstractmethod
    def _names(self, path: Location) -> Sequence[str]:
        """Column names of one file."""

    @property
    @abstractmethod
    def _rows(self) -> Sequence[int]:
        """Number of rows of each file."""

    @property
    @abstractmethod
    def _stored(self) -> pa.Schema:
        """Names and types of the columns that the files themselves hold."""

    @abstractmethod
    def _read(self, path: Location, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """These columns of one file, about so many rows at a time."""


class ParquetReader(FilesReader):
    """Parquet files, streamed: a little of each column at a time."""

    def _names(self, path: Location) -> Sequence[str]:
        return list(self._schemas[path].names)

    @cached_property
    def _schemas(self) -> dict[Location, pa.Schema]:
        return {path: schema for path, (schema, _) in self._footers.items()}

    @cached_property
    def _rows(self) -> Sequence[int]:
        return [rows for _, rows in self._footers.values()]

    @cached_property
    def _footers(self) -> dict[Location, tuple[pa.Schema, int]]:
        footers = {}
        for path in self.paths:
            with self._unchanged(path), _parquet(path) as file:
                footers[path] = (file.schema_arrow, int(file.metadata.num_rows))
        return footers

    @cached_property
    def _stored(self) -> pa.Schema:
        """That of the first file; a column of nulls has the type it has elsewhere."""
        fields = []
        for name in self._schemas[self.paths[0]].names:
            kinds = [schema.field(name).type for schema in self._schemas.values() if schema.names.count(name) == 1]
            known = [kind for kind in kinds if not pa.types.is_null(kind)]
            fields.append(pa.field(name, known[0] if known else pa.null()))
        return pa.schema(fields)

    def check(self, columns: Sequence[str]) -> None:
        for name in (name for name in columns if name in self._stored.names):
            expected = self._stored.field(name).type
            for path, schema in self._schemas.items():
                found = schema.field(name).type
                if found != expected and not pa.types.is_null(found):
                    raise InvalidInput(
                        f"column {name!r} is {expected} in {self.paths[0]} and {found} in {path}: write all files with "
                        "one type, or read them through a query"
                    )

    def _read(self, path: Location, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        with self._unchanged(path), _parquet(path) as file:
            for batch in file.iter_batches(rows, columns=list(columns), use_threads=False):
                yield self._typed(batch.select(list(columns)))

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the type that a column of nulls has in other files."""
        if not any(map(pa.types.is_null, batch.schema.types)):
            return batch
        fields = [self._stored.field(name) for name in batch.schema.names]
        arrays = [
            pa.nulls(batch.num_rows, field.type) if pa.types.is_null(column.type) else column
            for field, column in zip(fields, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


class CSVReader(FilesReader):
    """CSV files, every line a record (docs/privacy/private-cells.md)."""

    def _names(self, path: Location) -> Sequence[str]:
        return self._headers[path].names

    @cached_property
    def _headers(self) -> dict[Location, Header]:
        headers = {}
        for path in self.paths:
            with self._begun(path) as (_, header):
                headers[path] = header
        return headers

    @cached_property
    def _rows(self) -> Sequence[int]:
        rows = []
        for path in self.paths:
            with self._begun(path) as (file, _):
                rows.append(csv.count(file))
        return rows

    @cached_property
    def _stored(self) -> pa.Schema:
        return pa.schema([untyped(name, pa.binary()) for name in self._names(self.paths[0])])

    def _read(self, path: Location, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # by bytes
        with self._begun(path) as (file, header):
            for table in csv.tables(file, header, columns):
                yield from table.to_batches()

    @contextmanager
    def _begun(self, path: Location) -> Iterator[tuple[BinaryIO, Header]]:
        """An open file after its header."""
        with self._unchanged(path), opened(path) as file:
            header = Header.read(file, str(path))
            if len(set(header.names)) != len(header.names):
                raise InvalidInput(f"{path} has columns of the same name: rename them")
            yield file, header


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
            present(columns, [str(label) for label in data.columns])
        table = _from_pandas(data, columns)
    elif is_table(data):
        table = _from_stream(data)
    else:
        raise InvalidInput(f"{type(data).__name__} is not a table: pandas, Polars and Arrow tables are")
    return table if columns is None else table.select(present(columns, table.schema.names))


def _from_stream(data: Any) -> pa.Table:
    try:
        table = pa.table(data)
        for name, kind in getattr(data, "schema", {}).items() if _is_polars(data) else ():
            if str(kind) == "Object":  # Arrow gets the places of the objects in memory
                cells = pa.array(map(text_of, data[name].to_list()), pa.large_string())
                table = table.set_column(table.schema.get_field_index(name), untyped(name), cells)
        return table
    except Exception:
        raise_alone(InvalidInput(f"{type(data).__name__} is a column, not a table: put it in a data frame"))


def is_table(data: Any) -> bool:
    """Whether this is a table with named columns that :func:`to_table` takes."""
    return isinstance(data, ArrowStream)


def in_memory(data: Any) -> bool:
    """Whether this is a table whose rows are held in memory already."""
    return isinstance(data, pa.Table | pa.RecordBatch) or _is_pandas(data) or (_is_polars(data) and is_table(data))


def _is_polars(data: Any) -> bool:
    return type(data).__module__.split(".", 1)[0] == "polars"


def _from_pandas(data: Any, columns: Sequence[str] | None) -> pa.Table:
    """Typed columns as they are; a column of objects cell by cell, so that no cell decides how another is read."""
    fields, arrays = [], []
    for position, label in enumerate(data.columns):
        if columns is None or str(label) in columns:
            series = data.iloc[:, position]
            arrays.append(from_series(series))
            kind = arrays[-1].type
            fields.append(untyped(str(label), kind) if series.dtype == object else pa.field(str(label), kind))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def from_series(series: Any) -> pa.Array:
    """A typed column as it is; objects, texts and categories one by one, whatever they hold."""
    if str(series.dtype) == "category":
        codes = pa.array(series.cat.codes.tolist(), pa.int64())
        codes = pc.if_else(pc.less(codes, 0), None, codes)
        categories = series.cat.categories
        if categories.dtype.kind == "f":  # a type that ids may not have: it stays in sight
            return pc.take(pa.array(categories.to_numpy(dtype="float64", na_value=float("nan")), pa.float64()), codes)
        return pc.take(pa.array([text_of(level) for level in categories.tolist()], pa.large_string()), codes)
    if series.dtype == object or str(series.dtype).startswith("str"):
        return pa.array([text_of(cell) for cell in series.tolist()], pa.large_string())
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        if series.dtype.kind == "f":  # sparse, say: it stays in sight
            return pa.array(series.astype("float64").to_numpy())
        return pa.array([text_of(cell) for cell in series.tolist()], pa.large_string())


def _is_pandas(data: Any) -> bool:
    kinds = type(data).__mro__  # GeoPandas and others build on it
    return any(kind.__module__.split(".", 1)[0] == "pandas" and kind.__name__ == "DataFrame" for kind in kinds)


def _is_parquet(path: Location) -> bool:
    try:
        with opened(path) as file:
            return file.read(4) == _MAGIC or str(path).lower().endswith((".parquet", ".pq"))
    except Exception as error:  # of whatever storage this is
        raise_alone(InvalidInput(f"cannot read {path}: {told(error)}"))


def present(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns, all of which must be among the names."""
    absent = [name for name in columns if name not in names]
    if absent:
        raise InvalidInput(f"no column {absent[0]!r} in the table, {has_columns(names)}: check its names")
    return list(columns)


def _in_parts(path: Location) -> BinaryIO:
    """A file elsewhere, of which any part can be read."""
    file = opened(path, in_parts=True)
    try:
        file.seek(-1, os.SEEK_END)
        file.read(1)
        file.seek(0)
    except (OSError, ValueError):
        raise_alone(InvalidInput(f"{path} is on a server that sends no parts of a file: download it, or use CSV"))
    return file


def _parquet(path: Location) -> pq.ParquetFile:
    try:
        with opened(path) as begun:
            if begun.read(4) != _MAGIC:
                raise InvalidInput(f"{path} is not a readable Parquet file: its beginning is missing")
        if isinstance(path, Path):
            file = pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)
        else:
            file = pq.ParquetFile(_in_parts(path), pre_buffer=True)  # many small requests cost more than memory
    except InvalidInput:
        raise
    except Exception as error:
        raise_alone(InvalidInput(f"{path} is not a readable Parquet file: {told(error)}"))
    names = file.schema_arrow.names
    if len(set(names)) != len(names):
        raise InvalidInput(f"{path} has columns of the same name: rename them")
    return file
