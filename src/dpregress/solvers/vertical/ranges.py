"""Ranges of a party's numbers, by two released histograms of each, and its coordinates within them.

Public bounds are often much wider than the values between them. Noise in the party's moments is in proportion to the
bounds, and would hide means, spreads and the coordinates of the sketch. The rule for a range is that of
:mod:`~dpregress.solvers.shared.column_values`. Values beyond it count as its ends, in the moments, in the sketch and
in predictions. Missing cells are counted by themselves, and stand at the mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dpregress.accounting import GDP, Event, split
from dpregress.coordinates import Matrix, Ranges, WhitenedSpace, endless
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


def range_spends(budget: GDP, numbers: Mapping[int, float | None]) -> tuple[GDP | None, GDP]:
    """What ranges take of a party's budget, None without numbers to look for; and what is left."""
    if not numbers:
        return None, budget
    look, rest = split(budget, RANGE_SHARES)
    return look, rest


def find_ranges(ask: Ask, space: WhitenedSpace, numbers: Mapping[int, float | None], spend: GDP) -> FoundRanges:
    """Ask for histograms of numbers between their bounds, and again within the ranges found.

    Parameters
    ----------
    ask : Ask
    space : WhitenedSpace
        In which every number lies between -1 and 1 by its bounds.
    numbers : mapping of int to float or None
        The places of the columns to look for, and what their missing cells count as; None for the mean.
    spend : GDP
        All of it is drawn.
    """
    places = list(numbers)
    bounds = bounds_of(space)
    ends, fill = bounds.copy(), space.fill.copy()
    events: tuple[Event, ...] = ()
    for part in split(spend, [1.0] * RANGE_ROUNDS):
        asked = ask(ColumnHistograms(_counting(space, places, ends), places, np.linspace(-1.0, 1.0, BINS + 1)), part)
        events = (*events, *asked.events)
        assert isinstance(asked.noise, Isotropic)
        for place, counts in zip(places, asked.by_column, strict=True):
            values = Values.of_column(counts, asked.noise.sigma, float(asked.n))
            lower, upper = (float(end) for end in ends[:, place])
            declared = numbers[place]
            fill[place] = lower + values.mean * (upper - lower) / BINS if declared is None else declared
            found = values.ends(lower, upper, BINS)
            if found is not None:
                ends[:, place] = np.clip(found, *bounds[:, place])
    kept = endless(len(fill))
    kept[:, places] = ends[:, places]
    return FoundRanges(Ranges(kept, fill), events)


def ranged_space(space: WhitenedSpace, ranges: Ranges) -> WhitenedSpace:
    """The coordinates in which a number lies between -1 and 1 by its range; others are as they were."""
    return replace(space, whitening=_scaled(space.whitening, ranges.places, ranges.ends), fill=ranges.fill)


def bounds_of(space: WhitenedSpace) -> Matrix:
    """Where the coordinates of columns are -1 and 1, of shape (2, d), if each depends on its own column alone."""
    assert space.shift is not None
    return np.asarray((np.array([[-1.0], [1.0]]) - space.shift[1:]) / np.diag(space.slopes[1:]))


def _counting(space: WhitenedSpace, places: Sequence[int], ends: Matrix) -> WhitenedSpace:
    """Coordinates for histograms, in which missing cells are far beyond all others."""
    fill, (lower, upper) = space.fill.copy(), ends[:, places]
    fill[places] = (lower + upper) / 2 + ABSENT * (upper - lower)
    return replace(space, whitening=_scaled(space.whitening, places, ends), radius=math.inf, fill=fill)


def _scaled(whitening: Matrix, places: Sequence[int], ends: Matrix) -> Matrix:
    """The whitening with these columns from -1 to 1 between their ends."""
    found = whitening.copy()
    for place in places:
        lower, upper = ends[:, place]
        found[1 + place, 0] = -(upper + lower) / (upper - lower)
        found[1 + place, 1 + place] = 2 / (upper - lower)
    return found
