"""Domains: the public coordinates of coded tables, in which every attribute has a known list of levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from dpregress.coordinates.svec import Matrix
from dpregress.coordinates.whitened import Coordinates
from dpregress.errors import InvalidInput

#: The largest value of a level that can be computed with.
_LARGEST = 1e150


@dataclass(frozen=True)
class Attribute:
    """A column with a public list of levels, coded 0, 1, ..

    Parameters
    ----------
    name : str
    levels : tuple of str
    values : tuple of float
        What each level stands for, increasing, where the attribute is a number; empty where it is a class.
        A number enters regressions as its level's position scaled to [-1, 1], a class by indicators.
    edges : tuple of float
        ``(lower, upper)`` of a continuous column that was cut into equal bins, else empty.
    stand_in : int, optional
        The level that a cell counts as which is missing or holds none. Default: the first of a class, the middle
        one of a number.
    """

    name: str
    levels: tuple[str, ...]
    values: tuple[float, ...] = ()
    edges: tuple[float, ...] = ()
    stand_in: int | None = None

    @property
    def consistent(self) -> bool:
        """Whether there are levels, and values, bounds and stand-in belong to them."""
        ends, steps = np.array(self.edges), np.diff([value / _LARGEST for value in self.values])
        spaced = len(self.values) == self.size and bool((steps > 0).all()) and max(map(abs, self.values)) <= _LARGEST
        bounded = ends.shape == (2,) and bool(np.isfinite(ends).all()) and bool(ends[0] < ends[1])
        known = self.stand_in is None or 0 <= self.stand_in < self.size
        return self.size >= 2 and (spaced or not self.values) and (bounded or not self.edges) and known

    @property
    def unknown(self) -> int:
        """What a cell without a level counts as."""
        if self.stand_in is not None:
            return self.stand_in
        return self.size // 2 if self.numeric else 0

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @property
    def numeric(self) -> bool:
        """Whether it enters by a score, not by indicators."""
        return bool(self.values)

    @cached_property
    def steps(self) -> Matrix:
        """Integer encoding of shape (levels, columns): ``2 code - (k - 1)`` of a number, else the identity."""
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
    def columns(self) -> tuple[str, ...]:
        """Names of its design columns, the reference level's included."""
        return (self.name,) if self.numeric else tuple(f"{self.name}={level}" for level in self.levels)

    @property
    def evenly_spaced(self) -> bool:
        """Whether the values of its levels are one distance apart."""
        steps = np.diff(self.values)
        return bool(np.allclose(steps, steps[0]))


@dataclass(frozen=True)
class Domain(Coordinates):
    """The attributes of a coded table, and where their design columns lie.

    The design columns are the constant, then each attribute's: one score of a number, one indicator for every
    level of a class.
    """

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not all(attribute.consistent for attribute in self.attributes):
            raise InvalidInput("a column needs two levels or more, finite values that increase, one for each level")
        if len({attribute.name for attribute in self.attributes}) != len(self.attributes):
            raise InvalidInput("columns of the same name: rename them")

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

    def index(self, name: str) -> int:
        """The position of an attribute."""
        if name not in self.names:
            raise InvalidInput(f"no column {name!r}; there are {', '.join(self.names[:12])}")
        return self.names.index(name)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(int(end) for end in np.cumsum([1, *(len(a.columns) for a in self.attributes)]))

    @property
    def width(self) -> int:
        """Number of design columns."""
        return self._ends[-1]

    def columns_of(self, attribute: int) -> slice:
        """Where an attribute's design columns lie; the constant is column 0."""
        return slice(self._ends[attribute], self._ends[attribute + 1])

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(int(start) for start in np.cumsum([0, *self.sizes]))

    @property
    def levels(self) -> int:
        """Number of levels of all attributes together."""
        return self._starts[-1]

    def levels_of(self, attribute: int) -> slice:
        """Where an attribute's levels lie among those of all."""
        return slice(self._starts[attribute], self._starts[attribute + 1])

    @property
    def nominal(self) -> Domain:
        """The same levels with every attribute taken as a class."""
        return Domain(tuple(replace(a, values=(), stand_in=a.unknown) for a in self.attributes))

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
                )
                for record in records
            )
        )
