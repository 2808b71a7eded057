r"""Products of rows with public matrices that do not depend on the position of a row, bit for bit.

A matrix library may add the terms of a row in a different order at the end of a matrix than in its middle. Where terms
cancel, the result depends on that order, and so on the position of the row, which other rows can shift. Here the
product of a row is a function of that row alone:

1. Rows are multiplied in blocks of a fixed shape, in buffers of a fixed alignment. At each position of such a block,
   the library then performs one fixed sequence of roundings, whatever the numbers are.
2. Before a shape is used for the first time, every position is tested with the same :data:`_ROWS` rows of extreme
   numbers, whose sums cancel. If any two positions give different bits, the shape is never used: columns are then
   added one by one, elementwise, which IEEE arithmetic makes independent of the position.
3. Blocks require copies. A shape of chunk that occurs repeatedly is multiplied as a whole, after the same test has
   shown that each of its positions gives the same bits as the block.

docs/privacy/floating-point.md states what is assumed about the library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dpregress.coordinates import Matrix, Vector

#: Rows of a block with few columns, rows of one with many, and the number of entries that counts as many.
_BLOCK, _WIDE_BLOCK, _WIDE = 256, 64, 1 << 14
_ALIGNMENT = 64
#: Rows in a test, the smallest number of matrices for each, and of entries computed at every position.
_ROWS, _MATRICES, _ENTRIES = 24, 6, 48
#: Chunks of one shape that are multiplied block by block before the shape is tested as a whole.
_PATIENCE = 2

#: ``(columns of rows as (d, m), public (q, d), out as (q, m))``.
Kernel = Callable[[Matrix, Matrix, Matrix], None]


def products(x: Matrix, matrix: Matrix) -> Matrix:
    """``x @ matrix.T``; each row of the result is a function of that row of x alone.

    Parameters
    ----------
    x : ndarray of shape (m, d)
        Private rows.
    matrix : ndarray of shape (q, d)
        Public.

    Returns
    -------
    ndarray of shape (m, q)
        Stored column by column, so that operations on all rows run along contiguous columns.

    Examples
    --------
    >>> products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0]])).tolist()
    [[3.0], [7.0]]
    """
    return _evaluated(_matmul, x, matrix).T


def squared_norms(x: Matrix) -> Vector:
    """``sum_j x_ij^2``, of shape (m,); each entry is a function of that row of x alone.

    Examples
    --------
    >>> squared_norms(np.array([[3.0, 4.0], [1.0, 0.0]])).tolist()
    [25.0, 1.0]
    """
    return np.asarray(_evaluated(_squares, x, np.empty((1, x.shape[1])))[0])


def row_sums(x: Matrix) -> Vector:
    """``sum_j x_ij``, of shape (m,), added column by column.

    Examples
    --------
    >>> row_sums(np.array([[3.0, 4.0], [1.0, 0.0]])).tolist()
    [7.0, 1.0]
    """
    total = np.zeros(len(x))
    for column in x.T:
        total += column
    return total


# ---------------------------------------------------------------- kernels, and what stands in for them


def _matmul(columns: Matrix, matrix: Matrix, out: Matrix) -> None:
    np.matmul(matrix, columns, out=out)


def _squares(columns: Matrix, matrix: Matrix, out: Matrix) -> None:  # noqa: ARG001 - a kernel
    np.einsum("ij,ij->j", columns, columns, out=out[0])


def _one_by_one(kernel: Kernel, columns: Matrix, matrix: Matrix) -> Matrix:
    """The same, elementwise."""
    out = np.zeros((len(matrix), columns.shape[1]))
    for j, column in enumerate(columns):
        out += column * column if kernel is _squares else matrix[:, j, None] * column
    return out


# ---------------------------------------------------------------- evaluation


def _evaluated(kernel: Kernel, x: Matrix, matrix: Matrix) -> Matrix:
    """The kernel on all rows, of shape (q, m)."""
    (m, d), q = x.shape, len(matrix)
    if d == 0 or q == 0:
        return np.zeros((q, m))
    x = np.asarray(x, dtype=np.float64)
    with one_blas_thread:
        trial = _trial(kernel, d, q)
        if not trial.passed:
            return _one_by_one(kernel, x.T, matrix)
        held = _aligned((q, d))
        held[...] = matrix
        columns = _without_gaps(x.T)
        if trial.whole(columns.T):
            out = _aligned((q, m))
            kernel(columns, held, out)
            return out
        return _in_blocks(kernel, columns, held, trial.block)


def _without_gaps(columns: Matrix) -> Matrix:
    """The same numbers, copied where they do not lie side by side."""
    if columns.flags.c_contiguous or columns.flags.f_contiguous:
        return columns
    copied = _aligned((columns.shape[0], columns.shape[1]))
    copied[...] = columns
    return copied


def _in_blocks(kernel: Kernel, columns: Matrix, matrix: Matrix, block: int) -> Matrix:
    """The kernel on blocks of rows, the last filled up with zeros."""
    (d, m), q = columns.shape, len(matrix)
    out, given, found = _aligned((q, m)), _aligned((d, block)), _aligned((q, block))
    for first in range(0, m, block):
        rows = min(block, m - first)
        given[:, :rows] = columns[:, first : first + rows]
        given[:, rows:] = 0.0
        kernel(given, matrix, found)
        out[:, first : first + rows] = found[:, :rows]
    return out


def _aligned(shape: tuple[int, int], shift: int = 0) -> Matrix:
    """A new array, row by row, whose address lies ``shift`` bytes beyond a multiple of the alignment."""
    size = 8 * shape[0] * shape[1]
    memory = np.empty(size + 2 * _ALIGNMENT, dtype=np.uint8)
    first = -memory.ctypes.data % _ALIGNMENT + shift
    return memory[first : first + size].view(np.float64).reshape(shape)


# ---------------------------------------------------------------- trials


@dataclass(frozen=True)
class _Shape:
    """What the roundings of one call may depend on: its shape, the order of x in memory, and where x begins."""

    rows: int
    by_columns: bool
    shift: int

    @classmethod
    def of(cls, x: Matrix) -> _Shape | None:
        """None for an array whose numbers do not lie at multiples of their size."""
        shift = x.ctypes.data % _ALIGNMENT
        if shift % 8:
            return None
        return cls(len(x), x.flags.f_contiguous, shift)

    def empty(self, columns: int) -> Matrix:
        """An array (rows, columns) of this kind."""
        if self.by_columns:
            return _aligned((columns, self.rows), self.shift).T
        return _aligned((self.rows, columns), self.shift)


class _Trial:
    """Whether every place of a block gives a row the same bits, and which whole chunks give them too."""

    def __init__(self, kernel: Kernel, d: int, q: int) -> None:
        self.block = _BLOCK if d * q <= _WIDE else _WIDE_BLOCK
        self._kernel, self._d, self._q = kernel, d, q
        self._seen: dict[_Shape, int] = {}
        self._whole: dict[_Shape, bool] = {}
        self._expected = self._products_in_a_block()
        self.passed = bool(len(self._expected))

    def whole(self, x: Matrix) -> bool:
        """Whether a chunk like this may be multiplied at once."""
        shape = _Shape.of(x) if len(x) > 4 * self.block else None
        if shape is None:
            return False
        if shape not in self._whole:
            self._seen[shape] = self._seen.get(shape, 0) + 1
            if self._seen[shape] <= _PATIENCE:
                return False
            self._whole[shape] = self._chunk_agrees(shape)
        return self._whole[shape]

    def _products_in_a_block(self) -> NDArray[np.float64]:
        """Of wild rows, of shape (matrices, q, rows), each at every place of a block; empty unless all places agree."""
        rows, matrices = _wild(self._d, self._q)
        given, found, held = (_aligned(shape) for shape in self._shapes(self.block))
        expected = np.empty((len(matrices), self._q, _ROWS))
        for k, matrix in enumerate(matrices):
            held[...] = matrix
            for i, row in enumerate(rows):
                given[...] = row[:, None]
                self._kernel(given, held, found)
                expected[k, :, i] = found[:, 0]
                if not (found == found[:, :1]).all():
                    return expected[:0]
        return expected

    def _chunk_agrees(self, shape: _Shape) -> bool:
        """Fill a chunk with wild rows in turn, so that every place has as many of them as there are matrices."""
        rows, matrices = _wild(self._d, self._q)
        _, found, held = (_aligned(each) for each in self._shapes(shape.rows))
        given = shape.empty(self._d)
        for k, matrix in enumerate(matrices):
            held[...] = matrix
            turn = (np.arange(shape.rows) + k) % _ROWS
            given[...] = rows[turn]
            self._kernel(given.T, held, found)
            if not (found == self._expected[k][:, turn]).all():
                return False
        return True

    def _shapes(self, rows: int) -> tuple[tuple[int, int], ...]:
        """Of columns, products and matrix."""
        return (self._d, rows), (self._q, rows), (self._q, self._d)


@lru_cache(maxsize=256)
def _trial(kernel: Kernel, d: int, q: int) -> _Trial:
    return _Trial(kernel, d, q)


def _wild(d: int, q: int) -> tuple[Matrix, NDArray[np.float64]]:
    """Rows (:data:`_ROWS`, d) and matrices (.., q, d) of numbers of many sizes, whose products nearly cancel.

    The second half of a matrix is the first up to 2^-26 of itself, and that of every other row is minus its first:
    of their products' sums little more than rounding is left, which another order of additions changes.
    """
    matrices = max(_MATRICES, -(-_ENTRIES // q))
    size = _ROWS * d
    bits = _mixed(size + matrices * q * d)
    numbers = np.ldexp((bits >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0, (bits & np.uint64(15)).astype(int))
    rows, public = numbers[:size].reshape(_ROWS, d).copy(), numbers[size:].reshape(matrices, q, d).copy()
    half = d // 2
    rows[::2, half : 2 * half] = -rows[::2, :half]
    public[:, :, half : 2 * half] = public[:, :, :half] * (1 + 2.0**-26 * public[:, :, half : 2 * half])
    rows[::3] *= np.ldexp(1.0, (bits[: len(rows[::3]) * d] >> np.uint64(59)).astype(int)).reshape(-1, d)
    return rows, public


def _mixed(count: int) -> NDArray[np.uint64]:
    """Fixed numbers without a pattern: Steele, Lea, Flood (2014), SplitMix64."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# ---------------------------------------------------------------- threads of the library


@cache
def _controller() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes milliseconds, so it is done once."""
    return ThreadpoolController()


class _OneThread:
    """One BLAS thread for all who ask at the same time; the last to leave restores what the first found."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._before: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = _controller().limit(limits=1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._before.restore_original_limits()


#: A context, entered by any number of threads at once.
one_blas_thread = _OneThread()
