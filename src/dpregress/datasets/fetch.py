"""Downloading a table from its original source, checked before it is kept."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpregress.datasets.catalogue import Dataset
from dpregress.datasets.loaders import data_folder, keep
from dpregress.display import shown
from dpregress.errors import InvalidInput, one_line, reason
from dpregress.rows.readers.files import read

#: Which licences were agreed to, beside the tables.
_AGREED = "licences.json"
_SECONDS, _LARGEST = 60, 1 << 30
Download = Callable[[str], bytes]


def agreed(dataset: Dataset) -> bool:
    """Whether the licence of a data set was agreed to before."""
    return dataset.licence in _agreements().get(dataset.name, [])


def record_agreement(dataset: Dataset) -> None:
    """Remember that the licence of a data set was agreed to."""
    held = _agreements()
    held.setdefault(dataset.name, []).append(dataset.licence)
    text = json.dumps(held, indent=1) + "\n"
    keep(data_folder() / _AGREED, lambda part: part.write_text(text, encoding="utf-8"))


def _agreements() -> dict[str, list[str]]:
    path = data_folder() / _AGREED
    try:
        held = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError):
        return {}
    return {name: each for name, each in held.items() if isinstance(each, list)} if isinstance(held, dict) else {}


def download(url: str) -> bytes:
    """The bytes at an address.

    Raises
    ------
    InvalidInput
        If they are not to be had.
    """
    try:
        with urlopen(url, timeout=_SECONDS) as answer:
            return bytes(answer.read(_LARGEST))
    except (URLError, OSError, ValueError, HTTPException) as error:
        mend = "try again, or put the table there yourself"
        raise InvalidInput(f"{url} cannot be downloaded: {reason(error)}; {mend}") from error


def fetch_dataset(dataset: Dataset, get: Download = download, *, then: Callable[[], object] = lambda: None) -> Path:
    """Download a table, compare its rows with the known checksum, and keep it as Parquet.

    Parameters
    ----------
    dataset : Dataset
    get : callable
        Returns the bytes at an address.
    then : callable
        Called when everything is downloaded, before it is checked.

    Returns
    -------
    path : Path

    Raises
    ------
    InvalidInput
        For a data set without a download, or a file with other rows than the known ones: nothing is kept of it.
    """
    if not dataset.urls:
        raise InvalidInput(
            f"{dataset.name} has no download that can be checked: get it from its source ({dataset.source}) and put "
            f"{dataset.name}.parquet in the folder of DPREGRESS_DATA"
        )
    contents = [get(url) for url in dataset.urls]
    then()
    table = pa.concat_tables([_parsed(dataset, content) for content in contents])
    if checksum_of(table) != dataset.checksum:
        raise InvalidInput(
            f"{dataset.name}: the rows at {' and '.join(dataset.urls)} are not the known ones; nothing was kept"
        )
    path = data_folder() / f"{dataset.name}.parquet"
    keep(path, lambda part: pq.write_table(table, part, compression="zstd"))
    return path


def check_dataset(dataset: Dataset, path: Path) -> None:
    """Refuse a file that does not hold the known table.

    Its columns, the number of its rows and, where one is known, its checksum are compared with the catalogue.

    Raises
    ------
    InvalidInput
        Says what is wrong. The file stays as it is.
    """
    table = read(path)
    missing = [name for name in dataset.columns if name not in table.column_names]
    mend = "remove it and fetch the table again" if dataset.urls else f"get it from its source ({dataset.source})"
    if missing:
        wrong = f"it has no column {', '.join(map(one_line, missing))}"
    elif table.num_rows != dataset.rows:
        wrong = f"its number of rows is {table.num_rows:,}, not {dataset.rows:,}"
    elif dataset.checksum and checksum_of(table) != dataset.checksum:
        wrong = "its cells or the names of its columns are other ones"
    else:
        return
    raise InvalidInput(f"{shown(path)} is not the known table {dataset.name}: {wrong}; {mend}")


def checksum_of(table: pa.Table) -> str:
    """SHA-256 of the names and of the rows in any order: cells as text, numbers at full precision.

    Examples
    --------
    >>> one, other = pa.table({"a": [1, 2], "b": ["x", "y"]}), pa.table({"a": [2, 1], "b": ["y", "x"]})
    >>> checksum_of(one) == checksum_of(other)
    True
    """
    columns = [[_text(cell) for cell in table[name].to_pylist()] for name in table.column_names]
    rows = sorted("\x1f".join(row) for row in zip(*columns, strict=True))
    found = hashlib.sha256("\x1f".join(table.column_names).encode())
    for row in rows:
        found.update(b"\x1e" + row.encode())
    return found.hexdigest()


def _text(cell: object) -> str:
    """A number as the shortest text of its value: 1 and 1.0 are the same."""
    return repr(float(cell)) if isinstance(cell, int | float) else str(cell)


def _parsed(dataset: Dataset, content: bytes) -> pa.Table:
    """The rows of a file of the source: cells trimmed, names ours, a full stop at the end of a class dropped."""
    if dataset.member:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = archive.read(dataset.member)
        except (zipfile.BadZipFile, zlib.error, KeyError) as error:
            raise InvalidInput(f"{dataset.name}: the archive of the source does not hold {dataset.member}") from error
    lines = [
        line
        for line in content.decode("utf-8-sig", "replace").splitlines()
        if line.strip() and not line.startswith("|")
    ]
    tidy = "\n".join(line.strip().removesuffix(".") if dataset.name == "adult" else line.strip() for line in lines)
    options = pacsv.ReadOptions(column_names=dataset.columns, skip_rows=int(dataset.header))
    parse = pacsv.ParseOptions(delimiter=dataset.delimiter)
    convert = pacsv.ConvertOptions(strings_can_be_null=False)
    try:
        table = pacsv.read_csv(
            io.BytesIO(tidy.encode()), read_options=options, parse_options=parse, convert_options=convert
        )
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{dataset.name}: the file of the source is no such table") from error
    return _trimmed(table)


def _trimmed(table: pa.Table) -> pa.Table:
    """Text without blanks around it; dates as text."""

    def one(column: pa.ChunkedArray) -> pa.ChunkedArray:
        if pa.types.is_temporal(column.type):
            return column.cast(pa.string())
        return pc.utf8_trim_whitespace(column) if pa.types.is_string(column.type) else column

    return pa.table({name: one(table[name]) for name in table.column_names})
