"""What each party brings to a joint fit: its rows, its public space, and the numbers whose ranges are looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import WhitenedSpace
from dpregress.public import Numeric, PublicMoments, Schema
from dpregress.public.whitening import start
from dpregress.rows import Source
from dpregress.solvers.vertical.ranges import range_spends
from dpregress.solvers.vertical.release import plan_rows

#: The ball of a party's first space is this many times that of its public rows.
_PUBLIC_REACH = 2.0


@dataclass(frozen=True, repr=False)
class PartySide:
    """A party's rows and public space, and the columns whose ranges are looked for, as in :func:`numbers_among`."""

    source: Source
    space: WhitenedSpace
    numbers: Mapping[int, Numeric]

    def without(self, name: str) -> PartySide:
        """The same without looking for the range of a column, which has two values."""
        kept = {place: column for place, column in self.numbers.items() if self.space.features[place] != name}
        return replace(self, numbers=kept)


def numbers_among(names: Sequence[str], schema: Schema) -> dict[int, Numeric]:
    """The places of numbers among design columns, with their declarations."""
    columns = ((place, schema.column(name)) for place, name in enumerate(names))
    return {place: column for place, column in columns if isinstance(column, Numeric)}


def party_space(names: Sequence[str], schema: Schema, public: PublicMoments | None = None) -> WhitenedSpace:
    """A party's first space: its public moments with a ball of twice their radius, else its bounds."""
    space = start(names, intercept=True, public=public, schema=schema, row_bound=None).space
    return space if public is None else space.rewhitened(np.eye(space.order), _PUBLIC_REACH * space.radius)


def length_of_mixture(sides: Sequence[PartySide], promise: GDP) -> int:
    """The rule's length of the sketches, by public facts (:func:`~dpregress.solvers.vertical.release.plan_rows`)."""
    mus = [range_spends(promise, side.numbers)[1].mu for side in sides]
    return plan_rows([len(side.space.features) for side in sides], mus, sides[0].source.n)
