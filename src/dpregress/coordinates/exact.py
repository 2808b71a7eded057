r"""Sums without rounding: numbers on public grids, whose products float64 adds exactly.

A number on a :class:`Grid` is an integer of at most 21 bits times a power of two. A product of two such numbers is an
integer of at most 42 bits times a power of two, and 2,048 products add up to at most 2^53 of these units. float64
represents all of these integers. A matrix library therefore computes such sums exactly, in whatever order it adds,
with or without fused operations, on any number of threads. The sums of blocks are added as integers.

Small tables can afford more: there, a number is cut into three words of 21 bits, and the products of all pairs of
words are added separately (Ozaki, Ogita, Oishi, Rump 2012, "error-free transformations of matrix multiplication").

docs/privacy/floating-point.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import svec
from dpregress.coordinates.products import squared_norms
from dpregress.coordinates.svec import Matrix, Vector

#: Bits of a word of a factor, and of a word of a term that is added without being multiplied.
FACTOR_BITS, TERM_BITS = 21, 42
#: Rows whose products are added in float64: ``2 * 21 + log2(2048) = 42 + log2(2048) = 53``.
_BLOCK = 2048
#: Words of a number in tables of up to this many rows. They take less time there than drawing the noise.
FINE, _SMALL = 3, 1 << 12
#: Steps are not smaller: products of two, and their reciprocals, are floats.
_LEAST_STEP = 2.0**-500
#: Norms are shrunk to this many times d units in the last place below their bound, so that rounding never exceeds it.
ULPS = 8
#: With fewer columns, multiplying a short block by its columns from the second on is faster than a symmetric product,
#: which has half the operations: libraries reach only a quarter of their speed on such narrow matrices.
_NARROW = 24

#: Integers of any size: int64 where they fit, Python's otherwise.
Integers = NDArray[Any]


def words_for(n: int) -> int:
    """The number of words of each number in a table of n rows."""
    return FINE if n <= _SMALL else 1


@dataclass(frozen=True)
class Grid:
    """Multiples of a power of two, for numbers or vectors of at most a given norm.

    Parameters
    ----------
    bound : float
        The largest norm, a public number.
    words : int
        Words of a number.
    bits : int
        Bits of a word.
    """

    bound: float
    words: int
    bits: int = FACTOR_BITS

    @cached_property
    def step(self) -> float:
        """The power of two; ``bound`` is at most ``2^(bits * words)`` steps. Bounds far below a step leave 0 alone."""
        return max(math.ldexp(1.0, math.frexp(self.bound)[1] - self.bits * self.words), _LEAST_STEP)

    def inside(self, length: int) -> float:
        """A bound on the computed norm of a vector, which :meth:`nearest` then moves to a norm within ``bound``."""
        shrunk = self.bound * (1 - ULPS * (length + 4) * float(np.finfo(float).eps))
        return max(shrunk - 0.5 * math.sqrt(length) * self.step, 0.0)

    def nearest(self, values: Matrix) -> Matrix:
        """The nearest multiples of the step, in place: each number moves by at most half a step."""
        values *= 1 / self.step  # a power of two, and faster than a division
        np.rint(values, out=values)
        values *= self.step
        return values

    def within_ball(self, vectors: Matrix) -> Matrix:
        """Rows of at most the norm ``bound`` on the grid, in place: longer ones are shrunk."""
        length = np.sqrt(np.maximum(squared_norms(vectors), np.finfo(float).tiny))
        vectors *= np.minimum(1.0, self.inside(vectors.shape[1]) / length)[:, None]
        return self.nearest(vectors)

    def clipped(self, values: Matrix, lower: float | Vector = -math.inf, upper: float | Vector = math.inf) -> Matrix:
        """``clip(values, lower, upper)`` on the grid, within the bounds and ``bound``; a new array."""
        low = np.ceil(np.maximum(lower, -self.bound) / self.step) * self.step
        high = np.floor(np.minimum(upper, self.bound) / self.step) * self.step
        return self.nearest(np.clip(values, low, high))

    def cut(self, values: Matrix) -> Iterator[tuple[Matrix, int]]:
        """The words of numbers on the grid, each with the place of its last bit above the step."""
        if self.words == 1:
            yield values, 0
            return
        rest = values.copy("K")
        for place in range(self.bits * (self.words - 1), -1, -self.bits):
            unit = math.ldexp(self.step, place)
            word = np.rint(rest / unit) * unit
            yield word, place
            rest -= word


@dataclass(frozen=True, eq=False)
class ExactVector:
    """The real numbers ``whole * unit``, of which NumPy sees the nearest floats.

    Parameters
    ----------
    whole : ndarray of int64 or of Python integers, of shape (k,)
    unit : float or ndarray of shape (k,)
        Public.
    """

    whole: Integers
    unit: float | Vector = 1.0

    def __len__(self) -> int:
        return len(self.whole)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.whole.astype(np.float64) * self.unit, dtype=dtype)

    def multiples(self, exponent: int) -> list[int]:
        """The nearest multiples of ``2^exponent``, by exact arithmetic: each number moves by at most half a step."""
        units = np.broadcast_to(np.asarray(self.unit, dtype=np.float64), self.whole.shape).tolist()
        return [_multiple(whole, unit, exponent) for whole, unit in zip(self.whole.tolist(), units, strict=True)]


def _multiple(whole: int, unit: float, exponent: int) -> int:
    numerator, denominator = unit.as_integer_ratio()  # the denominator is a power of two
    places = -exponent - (denominator.bit_length() - 1)
    product = whole * numerator
    return product << places if places >= 0 else (product + (1 << (-places - 1))) >> -places


def symmetric(whole: Integers, unit: float | Matrix) -> ExactVector:
    """The ``svec`` of a symmetric matrix of integers, times units that are symmetric as well."""
    return ExactVector(svec.upper(whole), svec.svec(np.broadcast_to(unit, whole.shape)))


# ---------------------------------------------------------------- sums over rows


def gram(x: Matrix, grid: Grid) -> Integers:
    """``x'x`` in units of ``step^2``, of shape (p, p).

    Examples
    --------
    >>> grid = Grid(8.0, words=1)
    >>> (gram(np.array([[1.0, 2.0], [3.0, 4.0]]), grid) * grid.step**2).tolist()
    [[10.0, 14.0], [14.0, 20.0]]
    """
    words = list(grid.cut(x))
    total = _whole(_gram_of_word(words[0][0]), words[0], words[0], grid, grid)
    for i, one in enumerate(words):
        for other in words[max(i, 1) :]:
            part = _whole(_products_of_words(one[0], other[0]), one, other, grid, grid)
            total = total + part if one is other else total + part + part.T
    return total


def cross(x: Matrix, z: Matrix, grid_x: Grid, grid_z: Grid) -> Integers:
    """``x'z`` in units of ``step_x step_z``, of shape (p, q).

    Examples
    --------
    >>> grid = Grid(1.0, words=1)
    >>> int(cross(np.array([[0.5], [0.25]]), np.array([[0.5], [-0.5]]), grid, grid)[0, 0]) * grid.step**2
    0.125
    """
    parts = [
        _whole(_products_of_words(one[0], other[0]), one, other, grid_x, grid_z)
        for one in grid_x.cut(x)
        for other in grid_z.cut(z)
    ]
    return sum(parts[1:], parts[0])


def column_sums(x: Matrix, grid: Grid) -> Integers:
    """``sum_i x_i`` in units of ``step``, of shape (p,)."""
    parts = []
    for word, place in grid.cut(x):
        sums = np.concatenate([block.sum(axis=1) for block in _blocks(word)])
        parts.append(_placed((sums / math.ldexp(grid.step, place)).astype(np.int64).sum(axis=0), place))
    return sum(parts[1:], parts[0])


def _blocks(x: Matrix) -> Iterator[Matrix]:
    """The rows in stacks of blocks of 2,048, of shape (blocks, rows, p), without copying columns; then the others."""
    full = len(x) // _BLOCK * _BLOCK
    if full:
        yield x.T[:, :full].reshape(x.shape[1], -1, _BLOCK).transpose(1, 2, 0)
    if full < len(x) or not full:
        yield x[full:][None]


def _products_of_words(x: Matrix, z: Matrix) -> Matrix:
    """``x'z`` of each block, of shape (blocks, p, q): sums that float64 represents."""
    stacks = zip(_blocks(x), _blocks(z), strict=True)
    return np.concatenate([np.matmul(one.transpose(0, 2, 1), other) for one, other in stacks])


def _gram_of_word(x: Matrix) -> Matrix:
    """``x'x`` of each block, of shape (blocks, p, p)."""
    order = x.shape[1]
    total = np.empty((max(-(-len(x) // _BLOCK), 1), order, order))
    for place, part in enumerate(total):
        rows = x[place * _BLOCK : (place + 1) * _BLOCK]
        if order >= _NARROW:
            np.matmul(rows.T, rows, out=part)
            continue
        np.matmul(rows.T, rows[:, 1:], out=part[:, 1:])
        part[0, 0] = rows[:, 0] @ rows[:, 0]
        part[:, 0] = part[0]
    return total


def _whole(sums: Matrix, one: tuple[Matrix, int], other: tuple[Matrix, int], grid: Grid, by: Grid) -> Integers:
    """The sum over blocks as integers, in units of the product of the two steps."""
    sums *= 1 / math.ldexp(grid.step, one[1]) / math.ldexp(by.step, other[1])
    return _placed(sums.astype(np.int64).sum(axis=0), one[1] + other[1])


def _placed(whole: Integers, place: int) -> Integers:
    """``whole * 2^place``; int64 stays as it is where there is one word."""
    return whole if place == 0 else whole.astype(object) * (1 << place)
