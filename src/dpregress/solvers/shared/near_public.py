"""Public rows that many private rows lie far beyond, such as those of another time, are left out.

Coordinates that such rows whiten put private rows at one end, and what their labels say of private rows is an
extrapolation. Where a schema bounds the columns, the fit is then by the schema alone. Whether it is, a released number
of private rows says that lie beyond the ball of a few times the public rows' median norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.coordinates import ResponseScale
from dpregress.errors import DPRegressError
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms
from dpregress.public.whitening import start
from dpregress.queries import Ask, Query, ShortenedRows
from dpregress.solvers.base import Solution, Solver

#: Median norms of public rows beyond which a row is far.
_FAR = 4.0
#: The share of mu^2 that their number costs.
_SHARE = 0.005
#: There are many if they are a larger share than of the public rows, by this or by so many standard deviations of the
#: noise, beside three sampling errors of the public share.
_MANY, _CLEAR, _ERRORS = 0.1, 5.0, 3.0
#: With a smaller n mu for each column a schema alone is little to go by: there are many if they are this share. With
#: more noise than that, or with fewer public rows, they are not counted.
_PER_COLUMN, _MOST, _FEWEST = 200.0, 0.5, 30

#: From public facts and a budget to a solver.
Make = Callable[[PublicFacts, GDP], Solver]


class NearPublic(Solver):
    """A solver with public rows, or one with the schema alone if many private rows lie far beyond public ones.

    Parameters
    ----------
    far : ShortenedRows
        The number of private rows far beyond public ones.
    spend : GDP
        Its cost.
    most : float
        The largest number with which public rows are used.
    public, schema : Solver
        With public rows, and without.
    """

    def __init__(self, far: ShortenedRows, spend: GDP, most: float, public: Solver, schema: Solver) -> None:
        self.far, self.spend, self.most, self.public, self.schema = far, spend, most, public, schema
        self.squares, self.pieces = max(public.squares, schema.squares), max(public.pieces, schema.pieces)

    @property
    def asks(self) -> tuple[type[Query[Any]], ...] | None:
        known = self.public.asks, self.schema.asks
        if known[0] is None or known[1] is None:
            return None
        return tuple(dict.fromkeys((ShortenedRows, *known[0], *known[1])))

    @property
    def rounds(self) -> int:
        return 1 + max(self.public.rounds, self.schema.rounds)

    def solve(self, ask: Ask) -> Solution:
        if float(ask(self.far, self.spend).total[0]) <= self.most:
            return self.public.solve(ask)
        return replace(self.schema.solve(ask), left_out=True)


def unless_far(facts: PublicFacts, budget: GDP, make: Make) -> Solver:
    """The solver that is made of these facts, or :class:`NearPublic` if a count can tell, and a schema is an answer.

    Parameters
    ----------
    facts : PublicFacts
    budget : GDP
    make : callable
    """
    cost, left = split(budget, (_SHARE, 1 - _SHARE))
    beyond, alone = _beyond(facts), _without(facts)
    if beyond is None or alone is None:
        return make(facts, budget)
    noise = _CLEAR * beyond.far.noise(cost, facts.n)
    if noise > _MOST:
        return make(facts, budget)
    try:
        schema = make(alone, left)
    except DPRegressError:  # such as of a response without bounds
        return make(facts, budget)
    most = beyond.public + max(_MANY, noise)
    if facts.n * budget.mu < _PER_COLUMN * facts.start.space.order:
        most = max(most, _MOST)
    return NearPublic(beyond.far, cost, facts.n * most, make(facts, left), schema)


def _without(facts: PublicFacts) -> PublicFacts | None:
    """The facts without public rows, if a schema bounds all columns."""
    space, schema = facts.start.space, facts.schema
    if schema is None or not schema.bounds_all(space.features):
        return None
    bounds = start(space.features, intercept=bool(space.intercept), public=None, schema=schema, row_bound=None)
    return replace(facts, start=bounds, public=None, coded=False)


class _Beyond(NamedTuple):
    """The number of far rows, and the largest share that they have in the population of the public rows."""

    far: ShortenedRows
    public: float


def _beyond(facts: PublicFacts) -> _Beyond | None:
    """In coordinates that public rows whiten; None if there are none."""
    begin, public = facts.start.shrunk or facts.start, facts.public
    if public is None or public.rows is None or public.n < _FEWEST or (begin.refinements and not begin.from_few):
        return None
    norms = RowNorms.of(public, begin.space, refined=False)
    if not 0 < norms.median < math.inf:
        return None
    space = begin.space.rewhitened(np.eye(begin.space.order), _FAR * norms.median)
    share = float(np.mean(norms.sample > _FAR * np.median(norms.sample)))
    share += _ERRORS * math.sqrt((share + 1 / public.n) * (1 - share) / public.n)
    return _Beyond(ShortenedRows(space.with_response(ResponseScale(facts.target))), share)
