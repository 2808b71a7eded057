"""Counts of rare events, which the noise of a histogram may hide: all that is seen are the rows without one.

A count that is not 0 is at least 1. Without that, a mean and clips by the sizes that are seen would be those of rows
without an event, and no score could say otherwise.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpregress.models import Family
from dpregress.releases import Histogram
from dpregress.solvers.shared.likely_tail import Looked, bulk_of, with_tail_beside
from dpregress.solvers.shared.likely_values import LikelyValues
from dpregress.solvers.shared.magnitudes import Magnitudes, credible, visible_count

#: The share of the events that noise could hide which is expected.
_EXPECTED = 0.5
#: The most of all rows that hidden events are.
_MOST_HIDDEN = 0.5
#: Where sizes as large as this are seen, some are of rows with an event.
EVENT = 0.5


def may_be_none(family: Family) -> bool:
    """Whether a response may be 0."""
    return bool(family.distribution.possible(np.zeros(1))[0])


def hidden_events(family: Family, seen: Histogram) -> float:
    """Rows with an event that noise may hide, as a share of all; 0 if the response is no count."""
    kind = family.distribution
    counts = kind.fixed_dispersion and bool(kind.possible(np.array([0.0, 2.0])).all())
    return hidden_share(seen) if counts else 0.0


def likely_mean(
    family: Family, seen: Histogram, bounds: tuple[float, float] | None, possible: tuple[float, float] | None
) -> float:
    """The mean response by a histogram of sizes, with a tail beside a commonest one and events that noise may hide."""
    most = math.inf if bounds is None else bounds[1]
    seen = credible(seen, math.inf if possible is None else float(np.max(np.abs(possible))))
    levels = Magnitudes.of_histogram(seen)
    _, longer = tail_of(family, levels, seen, most)
    return max((levels if longer is None else longer).mean, hidden_events(family, seen))


def tail_of(
    family: Family, levels: Magnitudes, seen: Histogram, most: float, before: Looked | None = None
) -> tuple[float, Magnitudes | None]:
    """The largest size of nearly all rows, 0 if they differ, and sizes with a tail beside it if there is one.

    Parameters
    ----------
    family : Family
    levels : Magnitudes
        Sizes that the histogram shows.
    seen : Histogram
    most : float
        The largest possible size.
    before : Looked, optional
        What was seen at first.
    """
    counts = levels.share * seen.n
    bulk = bulk_of(counts, levels.size, seen.n, before)
    return bulk, with_tail_beside(counts, levels.size, seen, bulk, most, EVENT * may_be_none(family))


def hidden_share(seen: Histogram) -> float:
    """The share of the rows that noise may hide in a bin."""
    return _EXPECTED * visible_count(seen) / seen.n


def with_hidden(values: LikelyValues, hidden: float) -> LikelyValues:
    """Values of counts, the first of which is 0, with as many events as noise may hide, of all sizes alike."""
    missing = min(hidden, _MOST_HIDDEN) - float(values.share[1:].sum())
    if missing <= 0:
        return values
    share, rarer = values.share.copy(), 1 / values.value[1:]
    share[0] -= missing
    share[1:] += missing * rarer / rarer.sum()
    return replace(values, share=share)


def with_events(sizes: Magnitudes, family: Family, seen: Histogram) -> Magnitudes:
    """Sizes of residuals, with those of hidden events where none is seen."""
    hidden = hidden_events(family, seen)
    if not hidden or float(sizes.size[sizes.share > 0].max()) >= EVENT:
        return sizes
    share = np.append(sizes.share * (1 - hidden), hidden)
    return Magnitudes(np.append(sizes.size, 1.0), share, sizes.most)
