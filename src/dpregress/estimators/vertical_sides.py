"""What each party brings to a joint fit: its rows, its public space, and the numbers whose ranges are looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpregress.coordinates import WhitenedSpace
from dpregress.public import Numeric, PublicMoments, Schema
from dpregress.public.whitening import start
from dpregress.rows import Source

#: The ball of a party's first space is this many times that of its public rows.
_PUBLIC_REACH = 2.0


@dataclass(frozen=True)
class PartySide:
    """A party's rows and public space, and the columns whose ranges are looked for, as in :func:`numbers_among`."""

    source: Source
    space: WhitenedSpace
    numbers: Mapping[int, float | None]

    def without(self, name: str) -> PartySide:
        """The same without looking for the range of a column, which has two values."""
        kept = {place: fill for place, fill in self.numbers.items() if self.space.features[place] != name}
        return replace(self, numbers=kept)


def numbers_among(names: Sequence[str], schema: Schema) -> dict[int, float | None]:
    """The places of numbers among design columns, with what their missing cells count as if that is declared."""
    return {place: schema.fill_of(name) for place, name in enumerate(names) if isinstance(schema.column(name), Numeric)}


def party_space(names: Sequence[str], schema: Schema, public: PublicMoments | None = None) -> WhitenedSpace:
    """A party's first space: its public moments with a ball of twice their radius, else its bounds."""
    space = start(names, intercept=True, public=public, schema=schema, row_bound=None).space
    return space if public is None else space.rewhitened(np.eye(space.order), _PUBLIC_REACH * space.radius)
