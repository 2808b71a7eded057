"""Conversion of the columns of a table to numbers, from public knowledge about each column only.

A numeric column is cast. Text in it is read as a number ("true" and "false" are 1 and 0), or counts as missing if it is
not a number. If the schema says so, an indicator of missing cells is added. A categorical column becomes one indicator
for each level except the first. A missing or undeclared cell is assigned the level that the schema names, by default
the first. No value of a cell raises an error, and no cell affects how another is read.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, did_you_mean
from dpregress.public import Categorical, Numeric, Schema
from dpregress.rows.design.base import Design
from dpregress.rows.readers.base import has_columns

_NUMBER = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?[ \t]*$"
_TRUE = pa.array([b"True", b"true", b"TRUE"], pa.large_binary())
_FALSE = pa.array([b"False", b"false", b"FALSE"], pa.large_binary())
_UNTYPED, _MARK = pa.large_string(), {b"dpregress": b"untyped"}
#: From here on, floats cannot represent all whole numbers.
TOLD_APART = 2**53
#: Decimals of larger exponents are read as floats.
_DIGITS = 300
_QUIET = (int, float, Decimal, np.float64, np.int64)  # types that become a float without a warning


@dataclass(frozen=True)
class Encoder(Design):
    """Converts batches of a table to design columns.

    Parameters
    ----------
    columns : tuple of (str, Numeric or Categorical)
        Source columns in order.
    target : str or None
        The response column.
    classes : tuple of str
        Levels of a categorical response; empty for a number.
    exposed : str or None
        The column of exposures.
    """

    columns: tuple[tuple[str, Numeric | Categorical], ...]
    target: str | None = None
    classes: tuple[str, ...] = ()
    exposed: str | None = None

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        target: str | None,
        schema: Schema | None,
        classes: tuple[str, ...] = (),
        exposed: str | None = None,
    ) -> Encoder:
        """An encoder with types from the schema; columns that it does not declare are numeric."""
        columns = tuple((name, (schema.column(name) if schema else None) or Numeric()) for name in names)
        if not classes and target is not None and schema and isinstance(schema.column(target), Categorical):
            raise InvalidInput(
                f"target {target!r} is categorical: fit its classes with DPLogisticRegression (--family binomial or "
                "multinomial); for a numeric response, declare it as a number or not at all"
            )
        encoder = cls(columns, target, classes, exposed)
        for name in names:  # such as a column called "sex=m" next to the level m of sex
            if encoder.features.count(name) > 1 and list(names).count(name) == 1:
                raise InvalidInput(f"column {name!r} has the name of an indicator of the schema: rename it")
        return encoder

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the design columns: ``name``, or ``name=level`` and ``name=missing`` for indicators."""
        return tuple(design for name, column in self.columns for design in column.design(name))

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns of the table that are read."""
        others = [name for name in (self.target, self.exposed) if name is not None]
        return (*(name for name, _ in self.columns), *others)

    def x(self, batch: pa.Table | pa.RecordBatch) -> Matrix:
        """Design matrix of shape (m, d), column after column in memory; missing cells are NaN."""
        block = np.empty((len(self.features), batch.num_rows))
        at = 0
        for name, column in self.columns:
            at += _encode(batch.column(name), column, block[at:])
        return block.T

    def y(self, batch: pa.Table | pa.RecordBatch) -> Vector | None:
        """Response of shape (m,), or positions of classes; missing cells and undeclared classes are NaN."""
        if self.target is None:
            return None
        column = batch.column(self.target)
        return to_codes(column, self.classes) if self.classes else to_numbers(column)

    def exposure(self, batch: pa.Table | pa.RecordBatch) -> Vector | None:
        """Exposure of shape (m,); missing cells are NaN."""
        return None if self.exposed is None else to_numbers(batch.column(self.exposed))

    def responses(self) -> Encoder:
        """The same response and exposure without design columns."""
        return replace(self, columns=())

    def check_types(self, schema: pa.Schema) -> None:
        """Refuse missing columns, and types that are neither numbers nor levels; types are public, cells are not."""
        for name in present(self.needed, schema.names):
            kind = schema.field(name).type
            if not readable(kind):
                raise InvalidInput(f"column {name!r} is of type {kind}: it must hold numbers or text")
            check_levels(name, kind, self._levels(name))

    def _levels(self, name: str) -> Sequence[str]:
        """Levels or classes of a column; empty for a number."""
        column = dict(self.columns).get(name)
        if isinstance(column, Categorical):
            return column.levels
        return self.classes if name == self.target else ()


def check_levels(name: str, kind: pa.DataType, levels: Sequence[str]) -> None:
    """Refuse a column of numbers with levels, such as ``1.1`` and ``1.10``, that are the same number.

    So are those of 2^53 and beyond, which floats merge: an absent cell would make floats of whole numbers.
    """
    if not is_number(value_type(kind)):
        return
    sizes = np.abs(to_numbers(pa.array(levels, pa.large_string())))
    large = next((level for level, size in zip(levels, sizes.tolist(), strict=True) if size >= TOLD_APART), None)
    if large is not None:
        raise InvalidInput(
            f"column {name!r} is of type {kind}, in which the level {large!r} may be another number as well: read it "
            "as text"
        )
    same = ambiguous(levels)
    if same is not None:
        raise InvalidInput(
            f"column {name!r} is of type {kind}, in which the levels {same[0]!r} and {same[1]!r} are one number: "
            "read it as text, by the path of its file, or keep one of them"
        )


def to_numbers(column: pa.Array | pa.ChunkedArray) -> Vector:
    """A numeric column as float64; cells that are not numbers are NaN."""
    numbers = np.empty(len(column))
    if _copied(column, numbers):
        return numbers
    column = undictionaried(column)
    if is_text(column.type):
        column = _as_text(column)
        for word, digit in ((_TRUE, b"1"), (_FALSE, b"0")):
            column = pc.if_else(pc.is_in(column, value_set=word), digit, column)
        column = pc.if_else(pc.match_substring_regex(column, _NUMBER), column, None)
        column = pc.ascii_trim_whitespace(pc.cast(column, pa.large_string()))
        column = pc.if_else(pc.starts_with(column, "+"), pc.utf8_slice_codeunits(column, 1), column)
    elif pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.int8())
    cast = pc.fill_null(pc.cast(column, pa.float64(), safe=False), float("nan"))
    return np.asarray(cast, dtype=np.float64)


def text_of(cell: Any) -> str | None:
    """A cell of an object column as Arrow writes its type in text, or None if it has no text.

    Whole numbers, decimals, bytes and UUIDs keep all their digits, because they may be ids.
    """
    try:
        if isinstance(cell, str):
            return str.encode(cell, "utf-8", "replace").decode()  # not a method of the cell's own
        if isinstance(cell, bytes | bytearray | memoryview):
            return bytes(cell).decode("utf-8", "backslashreplace")
        if isinstance(cell, UUID):
            return str(cell)
        if isinstance(cell, bool | np.bool_):
            return str(bool(cell)).lower()
        if type(cell) is int or isinstance(cell, np.integer):
            return str(int(cell)) if np.isfinite(float(cell)) else None  # a float's text would merge large ids
        if cell is None or cell is np.ma.masked or isinstance(cell, complex | np.complexfloating):
            return None
        if type(cell) is Decimal and cell.is_finite() and abs(cell.adjusted()) < _DIGITS:
            return _digits_of(cell)
        number = float(cell) if type(cell) in _QUIET else _unheard(cell)
        if not np.isfinite(number):
            return None
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    except Exception:  # an object may raise anything, and its error may reveal the cell
        return None


def labels_of(array: NDArray[Any]) -> pa.Array:
    """Labels as numbers or text, whichever is faster: both have the same codes."""
    if array.dtype.kind in "iuf" and array.dtype.itemsize <= 8:
        values = array if array.dtype.kind in "iu" else array.astype(np.float64)
        return pa.array(values, mask=~np.isfinite(values))
    if array.dtype.kind == "b":
        return pa.array(array).cast(pa.large_string())
    return pa.array([text_of(cell) for cell in array.tolist()], pa.large_string())


def _digits_of(cell: Decimal) -> str:
    """All digits, in one spelling for each number."""
    text = f"{cell:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) if cell else "0"


def _unheard(cell: Any) -> float:
    """An object as a number, without its warnings, which could reveal it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(cell)


def to_codes(column: pa.Array | pa.ChunkedArray, levels: Sequence[str]) -> Vector:
    """Positions in ``levels`` (or classes) as float64; NaN for missing and undeclared cells.

    A cell is matched by its spelling, and otherwise by its value: ``1``, ``1.0``, ``"1"`` and ``"1.0"`` are one level,
    and so are ``true`` and ``1``. The type of the column has no influence, because it may depend on other cells. Levels
    of 2^53 and beyond, which floats cannot distinguish, and levels with equal values are matched by spelling only.
    """
    column = undictionaried(column)
    values = _values(levels)
    if not np.isfinite(values).any():
        return _spelt(column, levels)
    if is_number(column.type):  # by value first, which is faster and equivalent if values differ
        codes = _places(to_numbers(column), values)
        exact = np.isfinite(values).all() and not (pa.types.is_float16(column.type) or pa.types.is_float32(column.type))
        return codes if exact else np.where(np.isnan(codes), _spelt(column, levels), codes)
    column = _as_text(column) if is_text(column.type) else column
    codes = _spelt(column, levels).copy()
    other = np.isnan(codes)
    codes[other] = _places(to_numbers(column.filter(pa.array(other))), values)
    return codes


def ambiguous(levels: Sequence[str]) -> tuple[str, str] | None:
    """Two levels with the same value, which only text can distinguish; None if there are none."""
    seen: dict[float, str] = {}
    for level, value in zip(levels, _numbers_of(levels).tolist(), strict=True):
        if value in seen:
            return seen[value], level
        if np.isfinite(value):
            seen[value] = level
    return None


def _numbers_of(levels: Sequence[str]) -> Vector:
    """The levels as numbers; NaN for those that are not numbers or that floats cannot distinguish from others."""
    values = to_numbers(pa.array(levels, pa.large_string()))
    return np.where(np.abs(values) < TOLD_APART, values, np.nan)


def _values(levels: Sequence[str]) -> Vector:
    """The same, with NaN also for levels with equal values."""
    values = _numbers_of(levels)
    found, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    return np.where(np.isin(values, found[counts == 1]), values, np.nan)


def _spelt(column: pa.Array | pa.ChunkedArray, levels: Sequence[str]) -> Vector:
    """Positions of the levels whose spelling is that of Arrow for the cells."""
    if is_text(column.type):
        column = pc.cast(_as_text(column), pa.large_binary())
    else:
        column = pc.cast(pc.cast(column, pa.large_string()), pa.large_binary())
    declared = pa.array([level.encode() for level in levels], pa.large_binary())
    codes = pc.cast(pc.index_in(column, declared), pa.float64())
    return np.asarray(pc.fill_null(codes, float("nan")), dtype=np.float64)


def whole_numbers(levels: Sequence[str]) -> NDArray[np.int64] | None:
    """The levels as whole numbers that floats represent exactly; None if a level is not spelt as such a number."""
    try:
        numbers = [int(level) for level in levels]
    except ValueError:
        return None
    if not numbers or [str(number) for number in numbers] != list(levels) or max(map(abs, numbers)) >= TOLD_APART:
        return None
    return np.array(numbers, dtype=np.int64)


def _places(cells: Vector, values: Vector) -> Vector:
    """The position of each cell among distinct values, some of which may be NaN; NaN for a cell that equals none."""
    if np.array_equal(values, values[0] + np.arange(len(values))):
        place = cells - values[0]
        with np.errstate(invalid="ignore"):
            return np.where((np.floor(place) == place) & (place >= 0) & (place < len(values)), place, np.nan)
    order = np.argsort(values)[: np.count_nonzero(np.isfinite(values))]
    near = np.minimum(np.searchsorted(values[order], cells), len(order) - 1)
    return np.where(values[order][near] == cells, order[near], np.nan)


def _encode(column: pa.Array | pa.ChunkedArray, declared: Numeric | Categorical, out: Matrix) -> int:
    """Fill the first rows of ``out`` with the design columns of a column, and return their number."""
    if isinstance(declared, Categorical):
        codes = np.nan_to_num(to_codes(column, declared.levels), nan=declared.stand_in)
        width = len(declared.all_levels) - 1
        np.equal(codes, np.arange(1, width + 1)[:, None], out=out[:width], casting="unsafe")
        return width
    if not _copied(column, out[0]):
        out[0] = to_numbers(column)
    if declared.missing == "indicator":
        np.equal(np.isfinite(out[0]), False, out=out[1], casting="unsafe")
        return 2
    return 1


def _copied(column: pa.Array | pa.ChunkedArray, out: Vector) -> bool:
    """Copy a column of plain numbers without nulls in one step; False for any other column."""
    kind = column.type
    plain = pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    if not plain or column.null_count:
        return False
    first = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        out[first : first + len(chunk)] = chunk.to_numpy(zero_copy_only=True)
        first += len(chunk)
    return True


def undictionaried(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A dictionary column as its values."""
    if not pa.types.is_dictionary(column.type):
        return column
    kind = pa.large_binary() if is_text(column.type.value_type) else column.type.value_type
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    plain = [pc.take(pc.cast(chunk.dictionary, kind), chunk.indices) for chunk in chunks]
    return pa.chunked_array(plain, type=kind)


def _as_text(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column as bytes rather than text, so that a cell that is not UTF-8 raises no error."""
    return pc.cast(column, pa.large_binary())


def is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def untyped(name: str, kind: pa.DataType = _UNTYPED) -> pa.Field:
    """The field of a text column without a declared type, in which any cell may be a number."""
    return pa.field(name, kind, metadata=_MARK)


def is_untyped(field: pa.Field) -> bool:
    """Whether the type of a column says nothing about its cells."""
    return bool(field.metadata == _MARK)


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the cells of a column, also if it is dictionary-encoded."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def present(
    columns: Sequence[str], names: Sequence[str], where: str = "the table", declared: Iterable[str] = ()
) -> list[str]:
    """The columns, each of which must be among the names once.

    Of other names only ``declared`` ones are suggested: without a first line of names, a file's others are cells.
    """
    found = Counter(names)
    for name in columns:
        if found[name] != 1:
            problem = "several columns" if found[name] else "no column"
            known = () if found[name] else (each for each in declared if found[each])
            mend = did_you_mean(name, known, "check its names")
            raise InvalidInput(f"{problem} {name!r} in {where}, {has_columns(names)}: {mend}")
    return list(columns)


def readable(kind: pa.DataType) -> bool:
    kind = value_type(kind)
    return bool(
        is_text(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )
