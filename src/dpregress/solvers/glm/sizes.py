"""Sizes of residuals, on which clips are planned: released at the start, and again where scores have led."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.models import Family
from dpregress.public.facts import PublicFacts
from dpregress.queries import Ask, ResidualHistogram
from dpregress.solvers.glm.rare_counts import may_be_none, tail_of, with_events
from dpregress.solvers.glm.surrogate_model import FamilyModel, SurrogateModel
from dpregress.solvers.shared.likely_tail import FAR, Looked, all_the_same
from dpregress.solvers.shared.magnitudes import EDGES, Magnitudes, credible, visible_count
from dpregress.solvers.shared.surrogate import SurrogateRows
from dpregress.solvers.shared.truncation import Truncation

#: Where the largest size that is seen is so many times the median, some responses are unlike the others.
_OTHERS = 12.0
#: The share of rows below whose predictors no residuals are expected, and as many above.
_NEARLY_NONE = 0.01


def released_sizes(
    ask: Ask,
    space: WhitenedSpace,
    family: Family,
    coef: Vector,
    spend: GDP,
    most: Largest,
    *,
    pooled: bool = False,
    before: Looked | None = None,
) -> Looked:
    """Sizes of weighted residuals at these coefficients, with those that the noise may hide.

    Of responses that are nearly all the same, at first or now, a tail is looked for up to the size that bounds leave
    at the mean. Sizes that they leave nowhere are those of codes or errors.
    """
    found = ask(ResidualHistogram(space, family, coef, EDGES), spend)
    seen = credible(found, most.possible(coef, coded=before is not None and before.coded))
    coded = seen is not found
    levels = Magnitudes.of_histogram(seen, pooled=pooled)
    bulk, longer = tail_of(family, levels, seen, most.at_mean, before)
    if longer is not None:
        return Looked(longer, bulk, tail=True, coded=coded)
    if before is not None and before.tail:
        return replace(before, coded=coded or before.coded)
    sizes = with_events(levels, family, seen)
    return Looked(sizes.with_hidden_tail(visible_count(seen) / seen.n, FAR), bulk, coded=coded)


@dataclass(frozen=True, eq=False)
class Largest:
    """The largest residuals that declared bounds of the response leave.

    Parameters
    ----------
    family : Family
    facts : PublicFacts
    rows : SurrogateRows
    mean : float
        The predictor of the mean row at the start.
    """

    family: Family
    facts: PublicFacts
    rows: SurrogateRows
    mean: float

    @property
    def at_mean(self) -> float:
        """From the mean at the start."""
        return self._from(np.array([self.mean]), self.facts.response_bounds)

    def usual(self, coef: Vector) -> float:
        """From the median row."""
        return self._from(self._predictors(coef, [0.5]), self.facts.response_bounds)

    def possible(self, coef: Vector, *, coded: bool) -> float:
        """From nearly any row, or from the median one where codes were seen, and for bounds that are too narrow."""
        at = [0.5] if coded else [_NEARLY_NONE, 0.5, 1 - _NEARLY_NONE]
        return self._from(self._predictors(coef, at), self.facts.possible)

    def _predictors(self, coef: Vector, at: list[float]) -> Vector:
        """Quantiles of those of the surrogate rows whose mean is possible."""
        eta = self.rows.predictor(coef)
        inside = self.family.inside(eta)
        return np.quantile(eta[inside] if inside.any() else eta, at)

    def _from(self, predictors: Vector, bounds: tuple[float, float] | None) -> float:
        if bounds is None:
            return math.inf
        away = np.abs(np.array(bounds)[:, None] - self.family.mean(predictors))
        return float(np.max(away * np.abs(self.family.factor(predictors))))


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
    most : Largest

    Attributes
    ----------
    model : FamilyModel
        That of the latest score.
    looks : list of Looked
        All sizes.
    """

    def __init__(
        self, ask: Ask, model: FamilyModel, spend: GDP | None, scores: int, first: Looked | None, most: Largest
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
    def coded(self) -> bool:
        """Whether sizes were seen that declared bounds rule out."""
        return any(look.coded for look in self.looks)

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
