"""Bins where the values are: ranges of numbers, narrowed twice by released histograms.

Where values lie, and the range in which they are best told, say :mod:`~dpregress.solvers.shared.column_values`. Missing
cells are counted by themselves, and stand at the mean unless the schema says where.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from dpregress.accounting import GDP, Event, split
from dpregress.coordinates import Attribute, Domain
from dpregress.public.columns import MISSING
from dpregress.queries import Ask, Blocks
from dpregress.releases import Clique, Tables
from dpregress.solvers.shared.column_values import BINS, RANGE_ROUNDS, Values


class Narrowing:
    """Two questions: histograms of all numbers with bounds between these bounds, then within the ranges found.

    Parameters
    ----------
    domain : Domain
    budget : GDP
        All of it is drawn, if there are such numbers.
    target : int, optional
        An attribute whose histogram counts as much as all others.
    """

    def __init__(self, domain: Domain, budget: GDP, target: int | None = None) -> None:
        self.domain = domain
        self.spends = split(budget, [1.0] * RANGE_ROUNDS)
        self.places = self.places_of(domain)
        self._weights = [math.sqrt(len(self.places)) if j == target else 1.0 for j in self.places]

    @staticmethod
    def places_of(domain: Domain) -> list[int]:
        """The attributes that it narrows."""
        return [j for j, attribute in enumerate(domain.attributes) if attribute.edges and attribute.numeric]

    def asked(self, ask_coded: Callable[[Domain], Ask]) -> tuple[Domain, tuple[Event, ...]]:
        """The domain with the ranges that were found, and what they cost.

        Parameters
        ----------
        ask_coded : callable
            Of rows that are coded by a domain.
        """
        domain = self.domain
        events: tuple[Event, ...] = ()
        cliques: list[Clique] = [(), *((i,) for i in range(len(self.places)))]
        weights = [max(self._weights), *self._weights]
        before: list[Values | None] = [None] * len(self.places)
        for spend in self.spends:
            grid = Domain(tuple(_grid(domain.attributes[j]) for j in self.places))
            tables = ask_coded(grid)(Blocks(grid, cliques, weights), spend)
            attributes = list(domain.attributes)
            for i, j in enumerate(self.places):
                values = _values(tables, i).between(*grid.attributes[i].ends, before[i])
                attributes[j], before[i] = _narrowed(attributes[j], self.domain.attributes[j], values), values
            domain, events = Domain(tuple(attributes)), (*events, *tables.events)
        return domain, events


def _grid(attribute: Attribute) -> Attribute:
    """Bins of a histogram, as levels of a class, the last of which holds missing cells."""
    bins = attribute.narrowed(attribute.ends, BINS)
    return replace(bins, levels=(*bins.levels, MISSING), values=(), fill=None, stand_in=bins.size)


def _values(tables: Tables, place: int) -> Values:
    return Values.of_column(tables.blocks[(place,)], tables.sigmas[(place,)], float(tables.blocks[()][0]))


def _narrowed(attribute: Attribute, declared: Attribute, values: Values) -> Attribute:
    """The column in the best range, in as many bins as were declared."""
    found = values.ends(0 if declared.whole else declared.size)
    if found is None:
        return attribute
    narrow = attribute.narrowed(_about_bounds(found, declared), declared.size)
    return replace(narrow, fill=values.mean if declared.fill is None else declared.fill)


def _about_bounds(edges: tuple[float, float], declared: Attribute) -> tuple[float, float]:
    """Edges such that a bound within them is the middle of its bin: many values may lie on it, such as zeros."""
    if declared.whole:
        return edges
    (lower, upper), (least, most) = edges, declared.ends
    below, above, length = int(lower <= least), int(upper >= most), upper - lower
    lower, upper = max(lower, least), min(upper, most)
    if upper - lower < length / 2:  # it lay in the half bin beyond a bound
        lower = min(max(lower, least), most - length)
        upper = lower + length
    half = (upper - lower) / (2 * declared.size - below - above)
    return lower - below * half, upper + above * half
