"""The row map in a fixed order, and sums of products of its integers, for processes that have NumPy and Arrow alone.

Spark sends these functions to its workers by value, so this module imports nothing of the package.
:class:`~dpregress.rows.ordered.OrderedRows` says what the numbers are and why the order is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

#: Rows whose products float64 adds exactly, and bits of the lower word of a sum.
BLOCK, LOW_BITS = 2048, 32
#: What :func:`summed` yields: the two words of the sums of products, row by row, as 64-bit integers.
SCHEMA = "high binary, low binary, usable bigint, n bigint"


class Limits(NamedTuple):
    """Finite cells are clipped to ``largest``, those below ``smallest`` are 0; ``rounder`` rounds to integers."""

    finite: float
    largest: float
    smallest: float
    rounder: float


class Response(NamedTuple):
    """Public numbers of the response: its centre, inverse scale, inverse step and largest integer."""

    centre: float
    factor: float
    steps: float
    most: int


class Numbers(NamedTuple):
    """Public numbers of a space."""

    entries: tuple[tuple[float, ...], ...]
    intercept: bool
    fill: tuple[float, ...]
    limit: float
    steps: float
    most: int
    weighted: bool
    response: Response | None
    limits: Limits


class Rows(NamedTuple):
    """Integers of rows as floats: x of shape (m, p), y of shape (m,), 0 where a bound is exceeded; and weights."""

    x: Any
    y: Any
    weight: Any


def mapped(cells: Sequence[Any], y: Any, numbers: Numbers) -> Rows:
    """The row map.

    Parameters
    ----------
    cells : sequence of ndarray of shape (m,)
    y : ndarray of shape (m,) or None
    numbers : Numbers
    """
    rows = len(cells[0]) if cells else 0
    columns = [_cell(column, fill, numbers.limits) for column, fill in zip(cells, numbers.fill, strict=True)]
    if numbers.intercept:
        columns.insert(0, np.ones(rows))
    whitened = [_in_order(columns, row) for row in numbers.entries]
    norm = np.sqrt(_in_order(whitened, whitened))
    long = norm > numbers.limit
    size = np.where(long, norm, 1.0)
    shrink = np.where(long, numbers.steps / size, numbers.steps / numbers.limit)
    weight = np.where(long, numbers.limit / size, 1.0) if numbers.weighted else np.ones(rows)
    x = np.column_stack([_rounded(z * shrink, numbers.limits) for z in whitened])
    response = np.zeros(rows)
    inside = (x * x).sum(axis=1) <= numbers.most  # sums of integers, which float64 represents
    if y is not None and numbers.response is not None:
        response = _responses(y, weight, numbers.response, numbers.limits)
        inside &= np.abs(response) <= numbers.response.most
    return Rows(x * inside[:, None], response * inside, weight)


def summed(batches: Iterable[pa.RecordBatch], numbers: Numbers, target: bool) -> Iterator[pa.RecordBatch]:
    """The sums over all batches, in one row. Columns are the features, then the response where there is one."""
    order = len(numbers.entries) + (numbers.response is not None)
    high, low = np.zeros((2, order, order), dtype=np.int64)
    usable = n = 0
    for batch in batches:
        columns = [np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64) for column in batch.columns]
        with np.errstate(all="ignore"):
            y = columns.pop() if target else None
            counts = np.ones(batch.num_rows, dtype=bool) if y is None else np.isfinite(y)
            rows = mapped(columns, y, numbers)
        joint = rows.x if numbers.response is None else np.column_stack([rows.x, rows.y])
        joint = joint * counts[:, None]
        for first in range(0, len(joint), BLOCK):
            block = joint[first : first + BLOCK]
            products = (block.T @ block).astype(np.int64)
            high += products >> LOW_BITS
            low += products & ((1 << LOW_BITS) - 1)
        usable += int(counts.sum())
        n += batch.num_rows
    yield pa.RecordBatch.from_pydict(
        {
            "high": pa.array([high.tobytes()], pa.binary()),
            "low": pa.array([low.tobytes()], pa.binary()),
            "usable": pa.array([usable], pa.int64()),
            "n": pa.array([n], pa.int64()),
        }
    )


def kernel(numbers: Numbers, target: bool) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """:func:`summed` as a function of batches alone."""

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from summed(batches, numbers, target)

    return of_batches


def _cell(cells: Any, fill: float, limits: Limits) -> Any:
    clipped = np.where(np.abs(cells) < limits.smallest, 0.0, np.clip(cells, -limits.largest, limits.largest))
    return np.where(np.abs(cells) <= limits.finite, clipped, fill)


def _responses(y: Any, weight: Any, response: Response, limits: Limits) -> Any:
    scaled = (_cell(y, 0.0, limits) - response.centre) * response.factor * weight * response.steps
    return _rounded(np.clip(scaled, -float(response.most), float(response.most)), limits)


def _in_order(columns: Sequence[Any], factors: Sequence[Any]) -> Any:
    """Products of columns with factors, added from the first to the last; products with the number 0 are left out."""
    total = None
    for column, factor in zip(columns, factors, strict=True):
        if isinstance(factor, float) and factor == 0.0:
            continue
        total = column * factor if total is None else total + column * factor
    return np.zeros(len(columns[0])) if total is None else total


def _rounded(numbers: Any, limits: Limits) -> Any:
    return (numbers + limits.rounder) - limits.rounder
