"""Parquet files on this machine or at a URL: what their end says of them, and access to their columns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from dpregress.errors import InvalidInput
from dpregress.rows.readers.failures import raise_alone, told
from dpregress.rows.readers.locations import Location, opened

#: The first bytes of a Parquet file.
MAGIC = b"PAR1"
#: Row groups by their places in the file, each with its number of rows.
RowGroups = tuple[tuple[int, int], ...]
_BUFFER = 1 << 18  # bytes of a column that are read at once; without it Arrow holds whole row groups


def parquet_footer(path: Location, begun: BinaryIO) -> tuple[pa.Schema, RowGroups]:
    """Names and types of the columns, and the row groups, of a file that has just been opened.

    Raises
    ------
    InvalidInput
        When the file is not readable as Parquet.
    """
    if begun.peek(len(MAGIC))[: len(MAGIC)] != MAGIC:  # type: ignore[attr-defined]
        raise InvalidInput(f"{path} is not a readable Parquet file: its beginning is missing")
    if not isinstance(path, Path):  # what was opened is a stream: the end of the file needs another request
        with parquet_file(path) as remote:
            return remote.schema_arrow, _groups(remote)
    try:
        with pq.ParquetFile(begun) as file:
            return file.schema_arrow, _groups(file)
    except Exception as error:
        raise_alone(InvalidInput(f"{path} is not a readable Parquet file: {told(error)}"))


def _groups(file: pq.ParquetFile) -> RowGroups:
    found = file.metadata
    return tuple((group, int(found.row_group(group).num_rows)) for group in range(found.num_row_groups))


def consecutive(groups: RowGroups, rows: int) -> Iterator[RowGroups]:
    """Consecutive row groups that together have at least so many rows, but for the last."""
    held: RowGroups = ()
    for each in groups:
        held = (*held, each)
        if sum(size for _, size in held) >= rows or each is groups[-1]:
            yield held
            held = ()


def parquet_file(path: Location) -> pq.ParquetFile:
    """A file whose columns can be read, a little of each at a time.

    Raises
    ------
    InvalidInput
        When the file is not readable as Parquet.
    """
    try:
        if isinstance(path, Path):
            return pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)
        return pq.ParquetFile(_in_parts(path), pre_buffer=True)  # many small requests cost more than memory
    except InvalidInput:
        raise
    except Exception as error:
        raise_alone(InvalidInput(f"{path} is not a readable Parquet file: {told(error)}"))


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
