r"""The second moment of a whole table, in which no column is the response.

Every choice is a function of public facts or of an earlier release (docs/release.md):

1. all columns are whitened together, by the public moment or from the bounds of a schema. Private second moments, at
   10% of mu^2 each, whiten them again: three from bounds, which keep uncommon levels within reach (``levels.py``) and
   do not magnify what rows beyond the radius hide; one where there are few public rows for their skewness, if its noise
   is below the sampling error of the public moment;
2. one radius, weighed between noise and truncation, and one row weight ``s = min(1, R / ||x~||)`` for all columns;
3. for the rest of the budget, ``sum s^2 x~ x~'``.

Regressing a column on others in these coordinates has noise in proportion to its residual standard deviation, because
whitening turns every residual into a unit vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.coordinates import WhitenedSpace
from dpregress.coordinates.matrices import eigen
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms, positive
from dpregress.queries import Ask, Counted, Query, SecondMoment, noise_in_mean
from dpregress.releases import Moments
from dpregress.releases.sites import Shortened
from dpregress.solvers.shared.gram import mixed_gram
from dpregress.solvers.shared.radius_plan import plan_moments
from dpregress.solvers.shared.repair import floored, gram_floor
from dpregress.solvers.shared.surrogate import surrogate_rows
from dpregress.solvers.shared.whitening import REFINE, Rewhitened, planned_start, refined_in_turn

#: With fewer public rows than this many per column, a private second moment may be worth its cost.
_ROWS_PER_COLUMN = 20
#: The same for rows with skewed norms: the mean squared norm exceeds the median one by this factor.
_ROWS_PER_SKEWED_COLUMN, _SKEWED = 200, 1.25
#: A private second moment is worth its cost if its noise is below this share of the public moment's sampling error.
_CLEARER = 0.5


@dataclass(frozen=True, eq=False)
class WholeTable:
    """The question of all columns, after at most three small ones that whiten them.

    Parameters
    ----------
    facts : PublicFacts
        Without a response.
    budget : GDP
        All of it is drawn.
    fixed : bool
        Whether the space of the facts and its radius are final, so that several sites can release in them.
    shortened : Shortened, optional
        What weights take there of public rows, or of those of an earlier release.
    """

    facts: PublicFacts
    budget: GDP
    fixed: bool = False
    shortened: Shortened | None = None

    def __post_init__(self) -> None:
        if not self.fixed:
            object.__setattr__(self, "facts", planned_start(self.facts, self.budget))

    @property
    def rounds(self) -> int:
        """The number of questions."""
        return 1 + self._refinements

    @property
    def asks(self) -> tuple[type[Query[Any]], ...]:
        """The kinds of its questions."""
        return (SecondMoment,)

    @property
    def planned(self) -> WhitenedSpace:
        """The space by public facts alone, without any refinement, for several sites to release in."""
        start = self.facts.start
        if self.facts.public is None:
            return start.space  # of bounds, within which the rows lie
        return self._truncated(start.space, RowNorms.of(self.facts.public, start.space, refined=False), self.budget)

    @property
    def public_shortened(self) -> Shortened | None:
        """What weights take of public rows in :attr:`planned`; None where these are not known."""
        public, space = self.facts.public, self.planned
        if public is None or public.rows is None:
            return None
        rows = space.whiten(public.rows)
        weight = space.weights(rows)[:, None]
        parts = ((rows * part).T @ rows / len(rows) for part in (weight**2, (1 - weight) ** 2, 1 - weight**2))
        return Shortened.of(*parts)

    def estimate(self, ask: Ask) -> tuple[Moments, Shortened]:
        """Ask within the budget: the released moments, and what weights take of them."""
        shares = [REFINE] * self._refinements
        *first, last = split(self.budget, [*shares, 1 - sum(shares)])
        space = self.facts.start.space if self.fixed else self._whitened(ask, first, last)
        moments = ask(Counted(SecondMoment(space)), last)
        gram = floored(moments.gram, gram_floor(moments))
        if self.shortened is not None:
            return moments, self.shortened.recoloured(gram)
        rows = surrogate_rows(space, self.facts.public, gram, self.facts.schema)
        return moments, Shortened.of(gram, rows.lost, rows.shortfall)

    @cached_property
    def _refinements(self) -> int:
        if self.fixed:
            return 0
        return self.facts.start.refinements or int(self._worth_refining)

    @property
    def _worth_refining(self) -> bool:
        """Whether a private second moment improves on that of the public rows."""
        public, space = self.facts.public, self.facts.start.space
        if public is None or public.rows is None:
            return False
        squares = RowNorms.leave_one_out(public, space).sample ** 2
        skewed = float(np.mean(squares)) > _SKEWED * float(np.median(squares))
        few = public.n < (_ROWS_PER_SKEWED_COLUMN if skewed else _ROWS_PER_COLUMN) * len(public.names)
        change = SecondMoment.largest_change(space.radius) / math.sqrt(REFINE)
        return few and noise_in_mean(change, self.budget, self.facts.n) < _CLEARER / math.sqrt(public.n)

    def _whitened(self, ask: Ask, first: list[GDP], last: GDP) -> WhitenedSpace:
        """The space after its refinements, with the radius for the last question."""
        start, public = self.facts.start, self.facts.public
        if start.refinements or not first:
            norms = RowNorms.of(public, start.space, refined=start.refinements > 0)
            better = refined_in_turn(ask, Rewhitened(start.space, norms), first, self.facts.schema)
            return self._truncated(better.space, better.norms, last)
        assert public is not None
        assert public.rows is not None
        second = ask(Counted(SecondMoment(start.space)), first[0])
        mixed = mixed_gram(second, start.space.whiten(public.rows))
        values, vectors = eigen(mixed.matrix)
        space = start.space.rewhitened(vectors / np.sqrt(values) @ vectors.T, 1.0)
        sample = positive(np.linalg.norm(space.whiten(public.rows), axis=1))
        return self._truncated(space, RowNorms(sample, float(np.median(sample))), last)

    def _truncated(self, space: WhitenedSpace, norms: RowNorms, spend: GDP) -> WhitenedSpace:
        public = self.facts.public
        rows = 0 if public is None or self._refinements else public.n
        radius = plan_moments(norms, space.order, n=self.facts.n, spend=spend, public_rows=rows)
        return replace(space, radius=radius)
