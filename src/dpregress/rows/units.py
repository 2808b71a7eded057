r"""Bounded contributions: at most k rows of each unit count.

A row counts if it has a unit id and fewer than k earlier rows have the same id. This depends only on the ids and the
order of the rows of that unit, not on other columns or on rows of other units. A row that does not count is still
included in n and is zero in every sum, like a row of weight 0. As docs/privacy/units.md proves, changing all rows of
one unit changes a query by at most k times its replace-one sensitivity.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpregress.errors import InvalidInput
from dpregress.rows.bounded import RawRows
from dpregress.rows.design.encoder import is_text, readable, text_of, undictionaried, value_type
from dpregress.rows.readers.files import from_series
from dpregress.rows.sources import Part, Piece, Source, SourceOf

_SLICE = 1 << 20  # ids that are sorted at once


@dataclass(frozen=True, eq=False, repr=False)
class CappedSource(SourceOf):
    """A source in which at most ``most`` rows of each unit count.

    One pass over the ids determines which rows count. It is made when rows are first requested, that is, after the
    charge, and holds for all later passes. It takes one byte for each row and one entry for each unit.

    Parameters
    ----------
    rows : Source
    ids : iterable of pyarrow arrays
        One id for each row, in the order of the rows; read once.
    most : int
        k, at least 1.
    column : str, optional
        Of ids in a database that numbers the rows itself, by a rule of its own; the ids are not read then.
    """

    ids: Iterable[pa.Array | pa.ChunkedArray]
    most: int
    column: str | None = None

    @property
    def capped(self) -> bool:
        return True

    @cached_property
    def _counts(self) -> NDArray[np.bool_]:
        return counted(self.ids, self.n, self.most)

    def pieces(self, rows: int) -> Iterator[Piece]:
        counts = self._counts
        for piece in self.rows.pieces(rows):
            yield partial(_masked, piece, counts)

    def parts(self, rows: int) -> Iterator[Part]:
        counts = self._counts
        for first, part in self.rows.parts(rows):
            yield Part(first, self._of(part, counts[first : first + part.n]))

    def responses(self) -> CappedSource:
        if self.column is not None:
            return self  # all columns decide on the rows that count, the same ones in every pass
        return self._of(self.rows.responses(), self._counts)

    def _of(self, rows: Source, counts: NDArray[np.bool_]) -> CappedSource:
        """Other rows, of which it is known already which count: ids are read once."""
        capped = CappedSource(rows, (), self.most)
        capped.__dict__["_counts"] = counts
        return capped


def _masked(piece: Piece, counts: NDArray[np.bool_]) -> RawRows:
    chunk = piece()
    return replace(chunk, counts=counts[chunk.first_row : chunk.first_row + len(chunk.x)])


def counted(ids: Iterable[pa.Array | pa.ChunkedArray], n: int, most: int) -> NDArray[np.bool_]:
    """Which of n rows count: those with an id that fewer than ``most`` rows before them have; of shape (n,).

    Ids are kept as they are, not as digests: no two units are ever taken for one by chance.

    Examples
    --------
    >>> counted([pa.array(["ann", "bob", "ann", None, "ann"])], 5, 2).tolist()
    [True, True, True, False, False]
    """
    seen: dict[bytes, int] = {}
    counts = np.zeros(n, dtype=np.bool_)
    row = 0
    for keys in _slices(ids):
        part = counts[row : row + len(keys)]
        part[:] = _occurrence(keys, seen, most)[: len(part)] < most
        row += len(keys)
    return counts


def _slices(ids: Iterable[pa.Array | pa.ChunkedArray]) -> Iterator[pa.Array]:
    for column in ids:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            for first in range(0, len(chunk), _SLICE):
                yield keys_of(chunk.slice(first, _SLICE))


def _occurrence(keys: pa.Array, seen: dict[bytes, int], most: int) -> NDArray[np.int64]:
    """How many rows before have the same key, of shape (m,); ``most`` for a row without one. Adds to ``seen``."""
    encoded = pc.dictionary_encode(keys)
    units = encoded.dictionary.to_pylist()
    codes = np.asarray(pc.fill_null(encoded.indices, len(units)), dtype=np.int64)
    sizes = np.bincount(codes, minlength=len(units) + 1)
    order = np.argsort(codes, kind="stable")
    place = np.empty(len(codes), dtype=np.int64)
    place[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    before = np.array([*(seen.get(unit, 0) for unit in units), most], dtype=np.int64)
    for unit, known, size in zip(units, before.tolist(), sizes.tolist(), strict=False):
        seen[unit] = min(known + size, most)
    return np.asarray(place + before[codes])


def keys_of(column: pa.Array) -> pa.Array:
    """Unit ids as bytes, null where there is none; two spellings of one id have one key.

    Text loses blanks around it, and empty ids are none.

    Raises
    ------
    InvalidInput
        For a type that holds no ids (see :func:`check_ids`).
    """
    check_ids(column.type, "unit")
    column = undictionaried(column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_fixed_size_binary(column.type):
        column = pc.cast(column, pa.binary())
    if not is_text(column.type):
        column = pc.cast(column, pa.large_string())
    trimmed = _trimmed(pc.cast(column, pa.large_binary()))
    return pc.if_else(pc.greater(pc.binary_length(trimmed), 0), trimmed, None)


def _trimmed(keys: pa.Array) -> pa.Array:
    """Bytes without blanks around them; they need not be UTF-8."""
    blank = pc.match_substring_regex(keys, r"^[ \t\r\n]|[ \t\r\n]$")
    if not pc.any(blank).as_py():
        return keys
    return pa.array([None if key is None else key.strip(b" \t\r\n") for key in keys.to_pylist()], pa.large_binary())


def check_ids(kind: pa.DataType, name: str) -> None:
    """Refuse a type whose cells are no ids, or not all told apart; types are public, cells are not."""
    value = value_type(kind)
    if not (readable(value) or pa.types.is_fixed_size_binary(value)):
        raise InvalidInput(f"unit column {name!r} is of type {kind}: ids are whole numbers or text")
    if pa.types.is_floating(value):
        raise InvalidInput(
            f"unit column {name!r} is of type {kind}, in which ids above 2^53 merge, and pandas makes whole numbers "
            "floats where one is missing: give the file by its path, or read ids as text (dtype=str)"
        )


def ids_of(unit: Any) -> pa.Array | pa.ChunkedArray:
    """One id a row, of anything like an array of shape (n,).

    Objects and lists are read cell by cell, so that no cell decides how another is read.

    Raises
    ------
    InvalidInput
        For another shape, a single text, or a type that holds no ids.
    """
    if isinstance(unit, str | bytes):
        raise InvalidInput("unit= takes one id for each row of X; a column is named in fit_table(.., unit=)")
    if isinstance(unit, pa.Array | pa.ChunkedArray):
        ids = unit
    elif hasattr(unit, "to_arrow"):  # Polars
        ids = _from_cells(unit.to_list()) if str(unit.dtype) == "Object" else unit.to_arrow()
    elif type(unit).__module__.split(".", 1)[0] == "pandas" and np.ndim(unit) == 1:
        ids = _from_pandas(unit)
    else:
        ids = _from_array(unit)
    check_ids(ids.type, "unit")
    return ids


def _from_pandas(unit: Any) -> pa.Array:
    """A Series, or anything else of pandas in one dimension: an array of NumPy may lose its type to missing cells."""
    import pandas as pd

    series = pd.Series(unit)
    if series.dtype == object or str(series.dtype).startswith("str"):
        return _from_cells(series.tolist())
    return from_series(series)


def _from_array(unit: Any) -> pa.Array:
    if isinstance(unit, list | tuple):
        return _from_cells(unit)
    array = np.asarray(unit)
    if array.ndim != 1:
        raise InvalidInput(f"unit= takes one id for each row, an array of shape (n,), not of shape {array.shape}")
    if array.dtype.kind in "biuf":  # floats are refused by type
        array = array.astype(np.float64) if array.dtype.kind == "f" else array
        return pa.array(array, mask=np.ma.getmaskarray(unit) if np.ma.isMaskedArray(unit) else None)
    if array.dtype.kind in "OUST":
        return _from_cells((unit if np.ma.isMaskedArray(unit) else array).tolist())
    raise InvalidInput(f"unit= is an array of type {array.dtype}: ids are numbers or text")


def _from_cells(cells: Iterable[Any]) -> pa.Array:
    """Objects one by one, so that none decides on a shape or type; their warnings would tell of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pa.array([_cell(cell) for cell in cells], pa.large_binary())


def _cell(cell: Any) -> bytes | None:
    """An object as the bytes of an id; None where it is none. Nothing that a cell does may be seen."""
    try:
        if isinstance(cell, bytes):
            return cell
        if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
            return str(int(cell)).encode()
        if isinstance(cell, float) and not math.isfinite(cell):
            return None
        if isinstance(cell, float) and cell.is_integer():
            return str(int(cell)).encode()
        text = text_of(cell)
    except Exception:  # an object may raise anything at all
        return None
    return None if text is None else text.encode()
