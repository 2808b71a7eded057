"""Ranges of a party's numbers, by two released histograms of each, and its coordinates within them.

Public bounds are often much wider than the values between them. Noise in the party's moments is in proportion to the
bounds, and would hide means, spreads and the coordinates of the sketch. The rule for a range is that of
:mod:`~dpregress.solvers.shared.column_values`. Values beyond it count as its ends, in the moments, in the sketch and
in predictions. Missing cells are counted by themselves and stand at the mean, unless the schema says where.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dpregress.accounting import GDP, Event, split
from dpregress.coordinates import Matrix, Ranges, WhitenedSpace, endless
from dpregress.public import Numeric
from dpregress.queries import ABSENT, Ask, ColumnHistograms
from dpregress.releases import Isotropic
from dpregress.solvers.shared.column_values import BINS, RANGE_ROUNDS, RANGE_SHARES, Values


class AskWithin(Ask, Protocol):
    """Asks of rows, and of the same rows with their cells in ranges."""

    def within(self, ranges: Ranges) -> Ask:
        """Asks of the rows in these ranges."""
        ...


@dataclass(frozen=True, eq=False)
class FoundRanges:
    """Ranges of a party's columns, and what they cost.

    Attributes
    ----------
    ranges : Ranges
        Of all columns; indicators have no ends.
    events : tuple of Event
    """

    ranges: Ranges
    events: tuple[Event, ...]


def range_spends(budget: GDP, numbers: Mapping[int, Numeric]) -> tuple[GDP | None, GDP]:
    """What ranges take of a party's budget, None without numbers to look for; and what is left."""
    if not numbers:
        return None, budget
    look, rest = split(budget, RANGE_SHARES)
    return look, rest


def find_ranges(ask: Ask, space: WhitenedSpace, numbers: Mapping[int, Numeric], spend: GDP) -> FoundRanges:
    """Ask for histograms of numbers between their bounds, and again within the ranges found.

    Parameters
    ----------
    ask : Ask
    space : WhitenedSpace
        Of the rows.
    numbers : mapping of int to Numeric
        The places of the columns to look for, with their bounds, and what their missing cells count as.
    spend : GDP
        All of it is drawn.
    """
    ends, fill = endless(len(space.fill)), space.fill.copy()
    ends[:, list(numbers)] = np.array([column.bounds for column in numbers.values()]).T
    before: dict[int, Values] = {}
    events: tuple[Event, ...] = ()
    for part in split(spend, [1.0] * RANGE_ROUNDS):
        query = ColumnHistograms(_counting(space, numbers, ends), list(numbers), np.linspace(-1.0, 1.0, BINS + 1))
        asked = ask(query, part)
        events = (*events, *asked.events)
        assert isinstance(asked.noise, Isotropic)
        for (place, column), counts in zip(numbers.items(), asked.by_column, strict=True):
            lower, upper = (float(end) for end in ends[:, place])
            values = Values.of_column(counts, asked.noise.sigma, float(asked.n))
            before[place] = values.between(lower, upper, before.get(place))
            found = before[place].ends(BINS)
            if found is not None:
                assert column.bounds is not None
                ends[:, place] = np.clip(found, *column.bounds)
            wanted = before[place].mean if column.fill is None else column.fill
            fill[place] = np.clip(wanted, *ends[:, place])
    return FoundRanges(Ranges(ends, fill), events)


def ranged_space(space: WhitenedSpace, ranges: Ranges) -> WhitenedSpace:
    """The coordinates in which a number lies between -1 and 1 by its range; others are as they were."""
    return replace(space, whitening=_scaled(space.whitening, ranges.places, ranges.ends), fill=ranges.fill)


def _counting(space: WhitenedSpace, numbers: Mapping[int, Numeric], ends: Matrix) -> WhitenedSpace:
    """Coordinates for histograms, in which missing cells are far beyond all others, or where the schema says."""
    fill = space.fill.copy()
    for place, column in numbers.items():
        lower, upper = ends[:, place]
        fill[place] = (lower + upper) / 2 + ABSENT * (upper - lower) if column.fill is None else column.fill
    return replace(space, whitening=_scaled(space.whitening, tuple(numbers), ends), radius=math.inf, fill=fill)


def _scaled(whitening: Matrix, places: Sequence[int], ends: Matrix) -> Matrix:
    """The whitening with these columns from -1 to 1 between their ends."""
    found = whitening.copy()
    for place in places:
        lower, upper = ends[:, place]
        found[1 + place, 0] = -(upper + lower) / (upper - lower)
        found[1 + place, 1 + place] = 2 / (upper - lower)
    return found
