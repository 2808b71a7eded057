"""Domains: the public coordinates of coded tables, whose attributes have public lists of levels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from dpregress.coordinates.svec import Matrix
from dpregress.coordinates.whitened import Coordinates
from dpregress.errors import InvalidInput, did_you_mean

#: The largest magnitude of a level's value.
_LARGEST = 1e150
#: The largest edge of bins of whole numbers.
LARGEST_WHOLE = 2.0**40


@dataclass(frozen=True)
class Attribute:
    """A column with a public list of levels, coded 0, 1, ..

    Parameters
    ----------
    name : str
    levels : tuple of str
    values : tuple of float
        The increasing values of the levels, if the attribute is a number; empty if it is a class. A number enters
        regressions as the position of its level, scaled to [-1, 1]; a class enters as indicators.
    edges : tuple of float
        ``(lower, upper)`` of a continuous column that was divided into equal bins, else empty.
    stand_in : int, optional
        The level assigned to a cell that is missing or holds no declared level. Default: the first level of a class,
        the middle level of a number.
    fill : float, optional
        The value that stands for a missing cell of bins: its bin is then the level, rather than ``stand_in``.
    limits : tuple of float
        The declared bounds of a column in bins, whatever its edges; else empty.
    """

    name: str
    levels: tuple[str, ...]
    values: tuple[float, ...] = ()
    edges: tuple[float, ...] = ()
    stand_in: int | None = None
    fill: float | None = None
    limits: tuple[float, ...] = ()

    @classmethod
    def binned(
        cls,
        name: str,
        edges: tuple[float, float],
        bins: int,
        *,
        fill: float | None = None,
        limits: tuple[float, ...] = (),
        beyond: bool = False,
    ) -> Attribute:
        """A number in equal bins, each of which stands for its middle.

        Parameters
        ----------
        name : str
        edges : (float, float)
        bins : int
        fill : float, optional
        limits : tuple of float
        beyond : bool
            Whether the names of the outer bins say that they hold all values beyond the edges.
        """
        inner = np.linspace(*edges, bins + 1)
        middles = tuple(float(value) for value in (inner[:-1] + inner[1:]) / 2)
        ends = float(inner[0]), float(inner[-1])
        shift = 0.5 if cls._are_whole(ends, bins) else 0.0
        texts = [_interval_text(low + shift, high - shift) for low, high in pairwise(inner)]
        if beyond:
            texts[0] = f"{inner[1] - shift:.6g} or less"
            texts[-1] = f"{inner[-2] + shift:.6g} or more"
        levels = texts if len(set(texts)) == bins else [f"bin {i + 1}" for i in range(bins)]
        return cls(name, tuple(levels), middles, ends, fill=fill, limits=limits)

    @staticmethod
    def _are_whole(edges: tuple[float, ...], bins: int) -> bool:
        """Whether these bins hold whole numbers: their edges lie halfway between two of them."""
        if len(edges) != 2 or max(map(abs, edges)) > LARGEST_WHOLE:
            return False
        return edges[0] % 1 == 0.5 and edges[1] % 1 == 0.5 and (edges[1] - edges[0]) % bins == 0

    @property
    def ends(self) -> tuple[float, float]:
        """The edges of bins, or the outer values of the levels of a number."""
        known = self.edges or self.values
        return known[0], known[-1]

    @property
    def is_narrowed(self) -> bool:
        """Whether its bins lie in a part of the declared bounds."""
        if not (self.limits and self.edges):
            return False
        least, most = self._whole_limits if self.whole else self.limits
        return self.edges[0] > least or self.edges[1] < most

    @property
    def whole(self) -> bool:
        """Whether its bins hold whole numbers."""
        return self._are_whole(self.edges, self.size)

    def narrowed(self, edges: tuple[float, float], bins: int) -> Attribute:
        """The same column in at most so many bins between other edges; bins of whole numbers stay such."""
        lower, upper = edges
        if self.whole:
            least, most = self._whole_limits
            upper = min(upper, most)
            lower = min(lower, upper - 1)
            length, bins = whole_bins(upper - lower, bins)
            lower = max(min(lower, most - length), least)
            upper = lower + length
        return Attribute.binned(self.name, (lower, upper), bins, fill=self.fill, limits=self.limits, beyond=True)

    @property
    def _whole_limits(self) -> tuple[float, float]:
        """The outer edges of the whole numbers within the limits."""
        least, most = self.limits or self.ends
        return math.ceil(least) - 0.5, math.floor(most) + 0.5

    @property
    def reach(self) -> tuple[float, float]:
        """The outer values of a number, within its limits."""
        least, most = self.limits or self.ends
        return max(self.values[0], least), min(self.values[-1], most)

    @property
    def consistent(self) -> bool:
        """Whether there are at least two levels, and the values, edges and ``stand_in`` fit them."""
        ends, steps = np.array(self.edges), np.diff([value / _LARGEST for value in self.values])
        spaced = len(self.values) == self.size and bool((steps > 0).all()) and max(map(abs, self.values)) <= _LARGEST
        bounded = ends.shape == (2,) and bool(np.isfinite(ends).all()) and bool(ends[0] < ends[1])
        known = self.stand_in is None or 0 <= self.stand_in < self.size
        filled = self.fill is None or (bool(self.edges) and math.isfinite(self.fill))
        filled &= len(self.limits) in (0, 2) and all(map(math.isfinite, self.limits))
        return self.size >= 2 and (spaced or not self.values) and (bounded or not self.edges) and known and filled

    @property
    def unknown(self) -> int:
        """The level assigned to a cell without a declared level."""
        if self.fill is not None:
            lower, upper = self.ends
            return int(np.clip((self.fill - lower) / (upper - lower) * self.size, 0, self.size - 1))
        if self.stand_in is not None:
            return self.stand_in
        return self.size // 2 if self.numeric else 0

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @property
    def numeric(self) -> bool:
        """Whether it enters regressions as one score rather than as indicators."""
        return bool(self.values)

    @cached_property
    def steps(self) -> Matrix:
        """Integer encoding of shape (levels, columns): ``2 code - (k - 1)`` for a number, the identity for a class."""
        if self.numeric:
            return np.arange(1.0 - self.size, self.size, 2.0)[:, None]
        return np.eye(self.size)

    @property
    def unit(self) -> float:
        """The largest step: ``steps / unit`` lies in [-1, 1]."""
        return self.size - 1.0 if self.numeric else 1.0

    @property
    def encoding(self) -> Matrix:
        """Design columns of shape (levels, columns), before a reference level is dropped."""
        return self.steps / self.unit

    @property
    def scale(self) -> tuple[float, float]:
        """``(centre, half)``: a number's encoding of ``z`` stands for ``centre + half z`` in the units of users.

        Of evenly spaced levels these are their values, of others their positions 0, 1, ..
        A class has the scale of its indicators, ``(0, 1)``.
        """
        if not self.numeric:
            return 0.0, 1.0
        first, last = (self.values[0], self.values[-1]) if self.evenly_spaced else (0.0, self.size - 1.0)
        half = (last - first) / 2
        return first + half, half

    @property
    def design(self) -> Matrix:
        """Design columns of shape (levels, columns) in the units of users: the encoding at its :attr:`scale`."""
        centre, half = self.scale
        return centre + half * self.encoding

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its design columns, including that of the reference level."""
        return (self.name,) if self.numeric else tuple(f"{self.name}={level}" for level in self.levels)

    @property
    def evenly_spaced(self) -> bool:
        """Whether the values of its levels are equally spaced."""
        steps = np.diff(self.values)
        return bool(np.allclose(steps, steps[0]))


@dataclass(frozen=True)
class Domain(Coordinates):
    """The attributes of a coded table, and the positions of their design columns.

    The design columns are the constant, followed by those of each attribute: one score for a number, one indicator for
    each level of a class.
    """

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not all(attribute.consistent for attribute in self.attributes):
            raise InvalidInput(
                "a column needs at least two levels, and its values must be finite, increasing, and one for each level"
            )
        if len({attribute.name for attribute in self.attributes}) != len(self.attributes):
            raise InvalidInput("two columns have the same name: rename one")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of levels."""
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All pairs of attributes."""
        return tuple(combinations(range(len(self.attributes)), 2))

    @property
    def own_pairs(self) -> tuple[tuple[int, int], ...]:
        """Every number paired with itself."""
        return tuple((j, j) for j, attribute in enumerate(self.attributes) if attribute.numeric)

    def index(self, name: str) -> int:
        """The position of an attribute."""
        if name not in self.names:
            there = f"there are {', '.join(self.names[:12])}"
            raise InvalidInput(f"no column {name!r}: {did_you_mean(name, self.names, there)}")
        return self.names.index(name)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(int(end) for end in np.cumsum([1, *(len(a.columns) for a in self.attributes)]))

    @property
    def width(self) -> int:
        """Number of design columns."""
        return self._ends[-1]

    def columns_of(self, attribute: int) -> slice:
        """The positions of an attribute's design columns; the constant is column 0."""
        return slice(self._ends[attribute], self._ends[attribute + 1])

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(int(start) for start in np.cumsum([0, *self.sizes]))

    @property
    def levels(self) -> int:
        """Total number of levels over all attributes."""
        return self._starts[-1]

    def levels_of(self, attribute: int) -> slice:
        """The positions of an attribute's levels among those of all attributes."""
        return slice(self._starts[attribute], self._starts[attribute + 1])

    @property
    def nominal(self) -> Domain:
        """The same levels with every attribute treated as a class."""
        return Domain(tuple(replace(a, values=(), stand_in=a.unknown, fill=None) for a in self.attributes))

    def select(self, names: Sequence[str]) -> Domain:
        """Only these attributes, in this order."""
        return Domain(tuple(self.attributes[self.index(name)] for name in names))

    def same_as(self, other: Coordinates) -> bool:
        """Whether totals in the two may be added."""
        return self == other

    def encode(self) -> list[dict[str, Any]]:
        """Plain values, for files."""
        return [
            {
                "name": a.name,
                "levels": list(a.levels),
                "values": list(a.values),
                "edges": list(a.edges),
                "stand_in": a.stand_in,
                "fill": a.fill,
                "limits": list(a.limits),
            }
            for a in self.attributes
        ]

    @classmethod
    def decode(cls, records: Sequence[Mapping[str, Any]]) -> Domain:
        """Read back what :meth:`encode` wrote."""
        return cls(
            tuple(
                Attribute(
                    str(record["name"]),
                    tuple(str(level) for level in record["levels"]),
                    tuple(float(value) for value in record["values"]),
                    tuple(float(edge) for edge in record["edges"]),
                    None if record.get("stand_in") is None else int(record["stand_in"]),
                    None if record.get("fill") is None else float(record["fill"]),
                    tuple(float(limit) for limit in record.get("limits", ())),
                )
                for record in records
            )
        )


def whole_bins(numbers: float, bins: int) -> tuple[int, int]:
    """How many whole numbers at most so many equal bins hold, if they hold these at least; and the number of bins.

    Examples
    --------
    >>> whole_bins(100, 32)
    (100, 25)
    """
    step = math.ceil(numbers / bins)
    bins = max(math.ceil(numbers / step), 2)
    return bins * step, bins


def _interval_text(first: float, last: float) -> str:
    return f"{first:.6g}" if first == last else f"{first:.6g} to {last:.6g}"
