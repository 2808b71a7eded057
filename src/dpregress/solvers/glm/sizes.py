"""Sizes of residuals, on which clips are planned: released at the start, and again where scores have led."""

from __future__ import annotations

from dataclasses import replace

from dpregress.accounting import GDP
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.models import Family
from dpregress.queries import Ask, ResidualHistogram
from dpregress.solvers.glm.rare_counts import with_events
from dpregress.solvers.glm.surrogate_model import FamilyModel, SurrogateModel
from dpregress.solvers.shared.magnitudes import EDGES, Magnitudes, visible_count
from dpregress.solvers.shared.truncation import Truncation

#: Half octaves above the largest size seen that sizes may lie.
FAR = 12


def released_sizes(
    ask: Ask, space: WhitenedSpace, family: Family, coef: Vector, spend: GDP, *, pooled: bool = False
) -> Magnitudes:
    """Sizes of weighted residuals at these coefficients, with those that the noise may hide."""
    seen = ask(ResidualHistogram(space, family, coef, EDGES), spend)
    sizes = with_events(Magnitudes.of_histogram(seen, pooled=pooled), family, seen)
    return sizes.with_hidden_tail(visible_count(seen) / seen.n, FAR)


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

    Attributes
    ----------
    model : FamilyModel
        That of the latest score.
    """

    def __init__(self, ask: Ask, model: FamilyModel, spend: GDP | None, scores: int) -> None:
        self.model = model
        self._ask, self._spend, self._place = ask, spend, scores - 1

    def __call__(self, place: int, coef: Vector) -> FamilyModel:
        """The model of this score, from 1 on, which is asked at these coefficients."""
        model = self.model
        if self._spend is not None and place == self._place and isinstance(model, SurrogateModel):
            sizes = released_sizes(self._ask, model.space, model.family, coef, self._spend)
            self.model = replace(model, levels=sizes)
        return self.model

    def truncation(self, coef: Vector, clip: float) -> Truncation:
        """What weights and this clip take from a score, by the latest model."""
        return self.model.truncation(coef, clip)
