"""Tables in files and in memory, as Arrow tables whose private cells have not been judged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpregress.display import how_many
from dpregress.errors import InvalidInput
from dpregress.rows.design.encoder import present, text_of, untyped
from dpregress.rows.readers import csv
from dpregress.rows.readers.base import ArrowStream, Reader, count_rows, has_columns
from dpregress.rows.readers.csv import Header
from dpregress.rows.readers.failures import raise_alone, reading, told
from dpregress.rows.readers.locations import (
    FileState,
    Location,
    opened,
    partitions_of,
    paths_of,
    states_of,
    unchanged,
)
from dpregress.rows.readers.parquet import MAGIC, RowGroups, consecutive, parquet_file, parquet_footer

_BATCH = 1 << 15
_PART = 16  # chunks in a part of a file, unless its row groups are larger


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
    wanted = list(reader.schema.names) if columns is None else present(columns, reader.schema.names, reader.name)
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


def read_files(source: Any, *, counted: bool = False) -> FilesReader:
    """A reader of files of one kind. Each file is opened once here, and once more in every pass.

    Parameters
    ----------
    source : path, str or sequence of them
        Each a file, a folder of files, a pattern such as ``part-*.parquet``, or with the ``remote`` extra a URL that
        fsspec knows. In a single folder those named ``column=value`` are a column more. A reader is given back.
    counted : bool, default=False
        Count the rows of CSV files while they are open, for a reader whose ``n`` will be asked for.

    Raises
    ------
    InvalidInput
        For files that are not there, are not readable as their kind, or have other columns than the first.
    SourceError
        For a file that changes while it is looked at, or whose rows cannot be counted.
    """
    if isinstance(source, FilesReader):
        return source
    paths = paths_of(source)
    states = states_of(paths)
    looks = {path: _looked_at(path, states[path], counted) for path in paths}
    other = next((path for path in paths if looks[path].parquet != looks[paths[0]].parquet), None)
    if other is not None:
        raise InvalidInput(f"{paths[0]} and {other} are of two kinds: give CSV or Parquet")
    folder = str(source) if isinstance(source, str | Path) and Path(source).is_dir() else None
    kind = ParquetReader if looks[paths[0]].parquet else CSVReader
    return kind(looks, states, partitions_of(source, paths), folder)


class Look(NamedTuple):
    """What one opening tells of a file: its kind, names and types of its columns, and its rows where they are counted.

    Nothing of it is private. ``groups`` has the row groups that are read, each with its rows; CSV files have none.
    """

    parquet: bool
    schema: pa.Schema
    rows: int | None
    groups: RowGroups = ()


def _looked_at(path: Location, state: FileState, counted: bool) -> Look:
    with unchanged(path, state), _first_opened(path) as (file, parquet):
        rows: int | None = None
        groups: RowGroups = ()
        if parquet:
            schema, groups = parquet_footer(path, file)
            rows = sum(size for _, size in groups)
        else:
            schema = pa.schema([untyped(name, pa.binary()) for name in Header.read(file, str(path)).names])
            rows = _count(path, file) if counted else None
        if len(set(schema.names)) != len(schema.names):
            raise InvalidInput(f"{path} has columns of the same name: rename them")
        return Look(parquet, schema, rows, groups)


@contextmanager
def _first_opened(path: Location) -> Iterator[tuple[BinaryIO, bool]]:
    """A file of which nothing has been read, and whether it is Parquet: by its first bytes, else by its name."""
    with ExitStack() as held:
        try:
            file = held.enter_context(opened(path))
            begins = file.peek(len(MAGIC))[: len(MAGIC)]  # type: ignore[attr-defined]
            if len(begins) < len(MAGIC) and not isinstance(path, Path):  # a server may send a few bytes at first
                begins = held.enter_context(opened(path)).read(len(MAGIC))
        except Exception as error:  # of whatever storage this is
            raise_alone(InvalidInput(f"cannot read {path}: {told(error)}"))
        yield file, begins == MAGIC or str(path).lower().endswith((".parquet", ".pq"))


def _count(path: Location, file: BinaryIO) -> int:
    with reading(str(path)):
        return csv.count(file)


class FilesReader(Reader):
    """Files of one kind with the same columns, read one after another.

    Parameters
    ----------
    looks : mapping
        What was found in each file when it was opened first; at least one.
    states : mapping
        The state of each file just before.
    partitions : mapping
        For each path the columns that the names of its folders give, and their cell in all rows of this file.
    folder : str, optional
        What the files are called together; names of folders in it are cells of private rows.

    Raises
    ------
    InvalidInput
        When a file has other columns than the first; when files and folders both give a column.
    SourceError
        Whenever a file is not the one it was when the reader was made.
    """

    def __init__(
        self,
        looks: Mapping[Location, Look],
        states: Mapping[Location, FileState],
        partitions: Mapping[Location, Mapping[str, str | None]],
        folder: str | None = None,
    ) -> None:
        self.paths = tuple(looks)
        self._looks, self._states, self._partitions, self._folder = looks, states, partitions, folder
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
        return f"{self.paths[0]}" + (f" and {how_many(more, 'other file')}" if more else "")

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

    def parts(self, rows: int) -> Iterator[Self]:
        for path in self.paths:
            for look in self._divided(path, _PART * rows):
                state, added = self._states[path].elsewhere(), self._partitions[path]
                place = path.absolute() if isinstance(path, Path) else path
                yield type(self)({place: look}, {place: state}, {place: added}, self._folder)

    def check_reached(self) -> None:
        for path in self.paths:
            with unchanged(path, self._states[path]):
                pass

    @abstractmethod
    def _divided(self, path: Location, rows: int) -> Iterator[Look]:
        """Looks at consecutive parts of one file, of at least so many rows but for the last, where that is possible."""

    def _names(self, path: Location) -> Sequence[str]:
        """Column names of one file."""
        return list(self._looks[path].schema.names)

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

    @property
    def _schemas(self) -> dict[Location, pa.Schema]:
        return {path: look.schema for path, look in self._looks.items()}

    @property
    def _rows(self) -> Sequence[int]:
        return [look.rows or 0 for look in self._looks.values()]

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
        with unchanged(path, self._states[path]), parquet_file(path) as file:
            groups = [group for group, _ in self._looks[path].groups]
            for batch in file.iter_batches(rows, groups, list(columns), use_threads=False):
                yield self._typed(batch.select(list(columns)))

    def _divided(self, path: Location, rows: int) -> Iterator[Look]:
        for groups in consecutive(self._looks[path].groups, rows):
            yield Look(True, self._stored, sum(size for _, size in groups), groups)

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

    @property
    def _rows(self) -> Sequence[int]:
        return [self._counted(path) if look.rows is None else look.rows for path, look in self._looks.items()]

    def _divided(self, path: Location, rows: int) -> Iterator[Look]:  # noqa: ARG002  # a file has no marks in it
        yield self._looks[path]

    def _counted(self, path: Location) -> int:
        with self._begun(path) as (file, _):
            return csv.count(file)

    @property
    def _stored(self) -> pa.Schema:
        return self._looks[self.paths[0]].schema

    def _read(self, path: Location, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # by bytes
        with self._begun(path) as (file, header):
            for table in csv.tables(file, header, columns):
                yield from table.to_batches()

    @contextmanager
    def _begun(self, path: Location) -> Iterator[tuple[BinaryIO, Header]]:
        """An open file after its header."""
        with unchanged(path, self._states[path]), opened(path) as file:
            yield file, Header.read(file, str(path))


def to_table(data: Any, columns: Sequence[str] | None = None, where: str = "the table", known: Any = ()) -> pa.Table:
    """A table in memory as Arrow, without copying where the formats agree.

    Parameters
    ----------
    data : pandas, Polars or Arrow table, or any object with the Arrow stream interface
    columns : sequence of str, optional
        Only these.
    where, known
        What messages call it, and names that they may suggest, as ``declared`` of :func:`present`.
    """
    if isinstance(data, pa.Table):
        table = data
    elif _is_pandas(data):
        if columns is not None:
            present(columns, [str(label) for label in data.columns], where, known)
        table = _from_pandas(data, columns)
    elif is_table(data):
        table = _from_stream(data)
    else:
        raise InvalidInput(f"{type(data).__name__} is not a table: pandas, Polars and Arrow tables are")
    return table if columns is None else table.select(present(columns, table.schema.names, where, known))


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
    if series.dtype.kind == "c":  # pairs are refused where they are asked for
        pairs = np.ascontiguousarray(series.to_numpy(np.complex128)).view(np.float64)
        return pa.FixedSizeListArray.from_arrays(pa.array(pairs), 2)
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
