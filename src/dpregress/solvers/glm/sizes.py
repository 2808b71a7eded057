"""Sizes of residuals, on which clips are planned: released at the start, and again where scores have led."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.models import Family
from dpregress.queries import Ask, ResidualHistogram
from dpregress.solvers.glm.rare_counts import may_be_none, tail_of, with_events
from dpregress.solvers.glm.surrogate_model import FamilyModel, SurrogateModel
from dpregress.solvers.shared.likely_tail import FAR, Looked, all_the_same
from dpregress.solvers.shared.magnitudes import EDGES, Magnitudes, visible_count
from dpregress.solvers.shared.truncation import Truncation

#: Where the largest size that is seen is so many times the median, some responses are unlike the others.
_OTHERS = 12.0


def released_sizes(
    ask: Ask,
    space: WhitenedSpace,
    family: Family,
    coef: Vector,
    spend: GDP,
    most: float,
    *,
    pooled: bool = False,
    before: Looked | None = None,
) -> Looked:
    """Sizes of weighted residuals at these coefficients, with those that the noise may hide.

    Of responses that are nearly all the same, at first or now, a tail is looked for up to the size ``most``.
    """
    seen = ask(ResidualHistogram(space, family, coef, EDGES), spend)
    levels = Magnitudes.of_histogram(seen, pooled=pooled)
    bulk, longer = tail_of(family, levels, seen, most, before)
    if longer is not None:
        return Looked(longer, bulk, tail=True)
    if before is not None and before.tail:
        return before
    sizes = with_events(levels, family, seen)
    return Looked(sizes.with_hidden_tail(visible_count(seen) / seen.n, FAR), bulk)


def largest_size(family: Family, bounds: tuple[float, float] | None, predictor: float) -> float:
    """The largest residual from this predictor that bounds of the response leave."""
    if bounds is None:
        return math.inf
    at = np.array([predictor])
    return float(np.max(np.abs(np.array(bounds) - family.mean(at))) * np.abs(family.factor(at))[0])


class SizedModel:
    """The model of each score, before the last two of them with sizes of residuals that are released anew.

    Residuals at the start contain what the slopes explain: clips that are planned on them are too wide for later
    scores, and their noise with them.

    Parameters
    ----------
    ask : Ask
    model : FamilyModel
    spend : GDP or None
        Of the second sizes; None if there are none.
    scores : int
        How many there are.
    first : Looked or None
        The first sizes; None if residuals are bounded.
    most : float
        The largest possible size.

    Attributes
    ----------
    model : FamilyModel
        That of the latest score.
    looks : list of Looked
        All sizes.
    """

    def __init__(
        self, ask: Ask, model: FamilyModel, spend: GDP | None, scores: int, first: Looked | None, most: float
    ) -> None:
        self.model, self.looks = model, [] if first is None else [first]
        self._ask, self._spend, self._place, self._most = ask, spend, scores - 1, most

    def __call__(self, place: int, coef: Vector) -> FamilyModel:
        """The model of this score, from 1 on, which is asked at these coefficients."""
        model = self.model
        if self._spend is not None and place == self._place and isinstance(model, SurrogateModel):
            found = model.space, model.family, coef, self._spend, self._most
            self.looks.append(released_sizes(self._ask, *found, before=self.looks[0]))
            self.model = replace(model, levels=self.looks[-1].levels)
        return self.model

    @property
    def vary(self) -> bool:
        """Whether responses are known to vary: others than the commonest ones are seen, or residuals do not shrink."""
        if not self.looks or may_be_none(self.model.family):  # a count that is not 0 is seen apart from the others
            return True
        last = self.looks[-1]
        spread = last.levels.largest > _OTHERS * last.levels.median
        return not last.hides and (spread or not all_the_same(self.looks))

    def truncation(self, coef: Vector, clip: float) -> Truncation:
        """What weights and this clip take from a score, by the latest model."""
        return self.model.truncation(coef, clip)
