"""Ranges of columns: between which values cells count, and what stands for missing ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates.svec import Matrix, Vector
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput
from dpregress.json_files import finite_or_null


@dataclass(frozen=True, eq=False, repr=False)
class Ranges(ShownInShort):
    """Values beyond a range count as its ends; the ranges are public or released.

    Parameters
    ----------
    ends : ndarray of shape (2, d)
        Lower and upper ends, infinite for a column without a range.
    fill : ndarray of shape (d,)
        The values that replace cells that are missing or not finite.

    Raises
    ------
    InvalidInput
        If a lower end is not below the upper one, or a value that replaces cells is not finite.
    """

    ends: Matrix
    fill: Vector

    def __post_init__(self) -> None:
        if self.ends.shape != (2, len(self.fill)) or not (self.ends[0] < self.ends[1]).all():
            raise InvalidInput("every column has one range, whose lower end is below the upper one")
        if not np.isfinite(self.fill).all():
            raise InvalidInput("the values that replace missing cells must be finite numbers")

    @property
    def places(self) -> tuple[int, ...]:
        """The columns that have a range."""
        return tuple(int(place) for place in np.flatnonzero(np.isfinite(self.ends).all(axis=0)))

    def within(self, x: Matrix) -> Matrix:
        """The cells of rows, moved into the ranges, of shape (m, d)."""
        return np.clip(np.where(np.isfinite(x), x, self.fill), *self.ends)


def encode_ends(ends: Matrix) -> list[list[float | None]]:
    """Plain values, for files: null for infinite ends."""
    return [finite_or_null(each) for each in ends]


def decode_ends(record: Sequence[Sequence[float | None]], columns: int) -> Matrix:
    """Read back what :func:`encode_ends` wrote.

    Raises
    ------
    InvalidInput
        If these are not the ends of so many columns.
    """
    lower, upper = record
    low = np.array([-math.inf if end is None else float(end) for end in lower])
    high = np.array([math.inf if end is None else float(end) for end in upper])
    if not len(low) == len(high) == columns or not (low < high).all():
        raise InvalidInput(f"the ends are not those of {columns} columns")
    return np.array([low, high])


def endless(columns: int) -> Matrix:
    """The ends of columns without ranges, of shape (2, columns)."""
    return np.repeat([[-math.inf], [math.inf]], columns, axis=1)
