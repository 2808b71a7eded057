"""CSV text in bounded memory: every line is a record, and no line affects how another is read.

Cells stay bytes until a schema gives them a type.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from dpregress.errors import InvalidInput
from dpregress.rows.design.encoder import to_numbers
from dpregress.rows.readers.failures import raise_alone

#: Texts that denote an empty cell in a CSV file.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", ".")
#: A longer line becomes a row of missing cells, which limits the memory for a record.
LONGEST_LINE = 1 << 24
_BLOCK = 1 << 21
_NEWLINE, _QUOTE, _RETURN = b"\n", b'"', b"\r"
#: Arrow takes one mark from the beginning of a text: given one of ours, it leaves those of the lines alone, so that
#: where a block begins has no influence on any cell.
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Header:
    """The first line of a CSV file: the public names of the columns, and the most frequent separator.

    Parameters
    ----------
    names : tuple of str
    delimiter : str
    """

    names: tuple[str, ...]
    delimiter: str

    @classmethod
    def read(cls, file: BinaryIO, name: str) -> Header:
        """Read the first line of an open file.

        Raises
        ------
        InvalidInput
            If it does not hold column names.
        """
        first = file.readline(LONGEST_LINE)
        if not first:
            raise InvalidInput(f"{name} is empty: it needs a line of column names and the rows below it")
        try:
            line = first.decode("utf-8-sig").rstrip("\r\n")
            if "\0" in line:
                raise InvalidInput(f"{name} does not begin with a line of column names")
            delimiter = max((",", ";", "\t"), key=line.count)
            table = pacsv.read_csv(
                pa.BufferReader((line + "\n").encode()),
                # a thread of Arrow that gives the text back while Python ends would abort the process
                read_options=pacsv.ReadOptions(use_threads=False),
                parse_options=pacsv.ParseOptions(delimiter=delimiter),
            )
        except (pa.ArrowException, UnicodeDecodeError):  # which quote the line: it may be a record
            raise_alone(InvalidInput(f"{name} does not begin with a line of column names"))
        names = tuple(table.schema.names)
        if np.isfinite(to_numbers(pa.array(names, pa.string()))).all():
            # most likely a record: what follows would print its cells as if they were names
            raise InvalidInput(f"{name} begins with numbers, not with a line of column names: add one")
        return cls(names, delimiter)


def count(file: BinaryIO) -> int:
    """The number of records from here to the end of the file: its lines, the last with or without a line end."""
    lines, last = 0, _NEWLINE
    while block := file.read(_BLOCK):
        lines += block.count(_NEWLINE)
        last = block[-1:]
    return lines + (last != _NEWLINE)


def tables(file: BinaryIO, header: Header, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The records from here to the end of the file, one for each line, as columns of bytes."""
    for lines in _whole_lines(file):
        yield _parse(_mended(lines, header), header, columns)


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """The rest of the file in blocks of whole lines; a line that is too long is cut off."""
    begun = b""
    while block := file.read(_BLOCK):
        lines, ended, rest = block.rpartition(_NEWLINE)
        if ended:
            yield b"".join((begun, lines, ended))
            begun = rest
        else:
            begun = (begun + rest)[: LONGEST_LINE + 1]
    if begun:
        yield begun + _NEWLINE


def _parse(lines: bytes, header: Header, columns: Sequence[str]) -> pa.Table:
    marked = _MARK + lines
    return pacsv.read_csv(
        pa.py_buffer(marked),
        read_options=pacsv.ReadOptions(column_names=header.names, block_size=len(marked) + 1, use_threads=False),
        parse_options=pacsv.ParseOptions(delimiter=header.delimiter, ignore_empty_lines=False),
        convert_options=pacsv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, pa.binary()),
            null_values=list(MISSING),
            strings_can_be_null=True,
            check_utf8=False,
        ),
    )


def _mended(lines: bytes, header: Header) -> bytes:
    """The lines, rewritten so that each is one plain record with the right number of cells."""
    lines = lines.replace(_RETURN + _NEWLINE, _NEWLINE)
    if _QUOTE not in lines and _RETURN not in lines and len(lines) <= LONGEST_LINE and _regular(lines, header):
        return lines
    delimiter, cells = header.delimiter.encode(), len(header.names)
    return _NEWLINE.join([*(_record(line, delimiter, cells) for line in lines[:-1].split(_NEWLINE)), b""])


def _regular(lines: bytes, header: Header) -> bool:
    """Whether every line holds the right number of separators."""
    text = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    marks = np.searchsorted(np.flatnonzero(text == ord(header.delimiter)), ends)
    return bool((np.diff(marks, prepend=0) == len(header.names) - 1).all())


def _record(line: bytes, delimiter: bytes, cells: int) -> bytes:
    """The line itself if it is a plain record; with quoted cells rewritten; or missing cells for anything else."""
    missing = delimiter * (cells - 1)
    if len(line) > LONGEST_LINE:
        return missing
    if _QUOTE not in line and _RETURN not in line:
        return line if line.count(delimiter) == cells - 1 else missing
    try:
        (row,) = csv.reader([line.decode("latin-1")], delimiter=delimiter.decode(), strict=True)
    except (csv.Error, ValueError):
        return missing
    if len(row) != cells or any("\r" in cell for cell in row):
        return missing
    quoted = ('"' + cell.replace('"', '""') + '"' for cell in row)
    return delimiter.join(cell.encode("latin-1") for cell in quoted)
